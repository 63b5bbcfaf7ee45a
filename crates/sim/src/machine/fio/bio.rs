//! The bio of a fio thread's I/O: made in its slot of the pool, not carried there.
//!
//! Kernel: block/fops.c, __blkdev_direct_IO_simple() and its siblings (v6.1).

use blkmq::path::{Execute, ExecutePath, Frame, ThenUnplug};
use blkmq::request::{Bio, CpuId, IoClass, Op, OpFlags};

use super::FioTask;
use crate::machine::layer::Layer;
use crate::machine::task::TaskId;
use crate::plan::DEFAULT_PRIORITY;

/// Puts the bio of an I/O into its slot, and begins to submit it.
pub(super) fn add(
    layer: &Layer,
    cpu: CpuId,
    fio: &FioTask,
    task: TaskId,
    slot: u32,
    nowait: bool,
) -> Frame {
    let queue = layer.numbers.queue_of(fio.slots[slot as usize].io.disk);
    let mut pool = layer.mq.queue(queue).pool.held(cpu);
    let bio = pool.fill_bio(|bio| make_bio(bio, fio, task, slot, nowait));
    let bio = bio.expect("the plan counts every bio that can be alive");
    if fio.plan.passthrough {
        // nvme_uring_cmd_io(), blk_execute_rq_nowait()
        let how = Execute {
            at_head: false,
            in_background: false,
        };
        return Frame::Execute(ExecutePath::new(queue, bio, how));
    }
    layer.mq.submits(queue, bio, ThenUnplug::Task)
}

/// The bio of an I/O, as the block device's direct I/O builds it.
fn make_bio(bio: &mut Bio, fio: &FioTask, task: TaskId, slot: u32, nowait: bool) {
    let io = fio.slots[slot as usize].io;
    let write = io.op == Op::Write;
    let is_fsync = io.op == Op::Flush || fio.flushes(slot);
    let prio = match io.prio.class {
        IoClass::None => fio.plan.priority,
        _ => io.prio,
    };
    *bio = Bio::default();
    bio.group = fio.plan.group;
    bio.op = if is_fsync { Op::Write } else { io.op };
    bio.flags = OpFlags {
        // submit_bio_wait() and direct writes.
        sync: write || is_fsync || fio.is_call(io.op),
        preflush: is_fsync,
        fua: write && !is_fsync && fio.plan.writes.fua,
        nowait: nowait && !is_fsync,
        polled: fio.plan.polled && matches!(io.op, Op::Read | Op::Write) && !is_fsync,
        ..OpFlags::default()
    };
    if !is_fsync {
        bio.sector = io.sector;
        bio.sectors = io.sectors;
    }
    if io.op == Op::Discard {
        bio.segments = 1;
    } else {
        bio.scatter();
    }
    bio.ioprio = if prio.class == IoClass::None {
        DEFAULT_PRIORITY
    } else {
        prio
    };
    bio.io_context = fio.io_context;
    bio.owner = task.0 << 16 | slot;
}
