//! Operations that a thread waits for in the system call that asks for them.
//!
//! All operations of the sync engines; trims, which are an ioctl(2), of all engines; fsync(2) of
//! libaio. fio 3.33: fio_libaio_queue(), fio_ioring_queue(), do_io_u_sync(), do_io_u_trim(). If
//! I/Os are prepared and not submitted, fio submits those first and then waits for one
//! (FIO_Q_BUSY). Kernel: submit_bio_wait() in block/bio.c, blkdev_issue_flush() in
//! block/blk-flush.c.

use blkmq::path::Unplug;
use blkmq::request::{Op, Status};
use blkmq::time::SimTime;

use super::steps::On;
use super::{FioTask, Stage, bio};
use crate::cost::Step;
use crate::machine::cpu::Mode;
use crate::machine::task::Turn;
use crate::plan::Engine;

/// The I/O that a thread waits for in its system call, and when it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) slot: u32,
    pub(super) ended: Option<SimTime>,
    /// The flush after its synchronous write (generic_write_sync()).
    pub(super) flushes: bool,
}

impl FioTask {
    /// The thread waits for an operation of this kind in the call that asks for it. (A polling
    /// thread does not.)
    pub(super) fn is_call(&self, op: Op) -> bool {
        match self.plan.engine {
            Engine::Sync => !self.plan.polled,
            Engine::Libaio => matches!(op, Op::Flush | Op::Discard),
            Engine::IoUring | Engine::PosixAio => op == Op::Discard,
            // fio_null_init()
            Engine::Null => self.plan.iodepth == 1,
        }
    }

    /// Enters the kernel with a bio that the call waits for.
    pub(super) fn begin_call(&mut self, on: &mut On<'_>, slot: u32) -> Turn {
        let id = on.id;
        match self.plan.engine {
            Engine::Null => return self.end_in_engine(on, slot),
            // fio_ioring_prep() counts a trim, and then does it itself.
            Engine::IoUring => drop(self.forces_async(slot)),
            Engine::Libaio | Engine::Sync | Engine::PosixAio => {}
        }
        on.cpus.charge_as(id, Step::Syscall, Mode::System);
        let io = self.slots[slot as usize].io;
        self.charge_issue(on.cpus, id, Engine::Sync, io.op);
        on.lines
            .touch_io(on.cpus, id, self.row, slot, Step::SyncIssue);
        self.in_flight += 1;
        self.slots[slot as usize].issued = on.cpus.at(id);
        self.call = Some(Call {
            slot,
            ended: None,
            flushes: false,
        });
        self.note_call_begins(on);
        let queue = on.layer.numbers.queue_of(io.disk);
        let rules = &on.layer.mq.queue(queue).settings.rules;
        self.own_plug.start(on.cpus, id, rules, io.op);
        let path = bio::add(on.layer, id, self, on.task, slot, false);
        on.cpus.submit(id, path);
        self.stage = Stage::Called;
        Turn::Again
    }

    /// A call that waits for its I/O is one submission and one look for completions.
    pub(super) fn note_call_begins(&self, on: &mut On<'_>) {
        if let Some(fio) = &mut on.recorder.fio
            && !self.helps()
        {
            let at = on.cpus.at(on.id);
            fio.submits(self.thread, at, 1, self.in_flight);
            fio.completes(self.thread, at, 1);
        }
    }

    /// The bio is submitted. The thread sleeps until it has ended, and schedule() flushes the plug.
    pub(super) fn await_call(&mut self, on: &mut On<'_>) -> Turn {
        if self.own_plug.flushes(on.cpus, on.id, Unplug::Schedule) {
            return Turn::Again;
        }
        let call = self.call.expect("the thread is in a call");
        match call.ended {
            None => return Turn::Sleep,
            Some(ended) if ended > on.cpus.at(on.id) => return Turn::Pause(ended),
            Some(_) => {}
        }
        if self.plan.writes.dsync && !call.flushes && self.syncs_after(call.slot) {
            self.call = Some(Call {
                slot: call.slot,
                ended: None,
                flushes: true,
            });
            let path = bio::add(on.layer, on.id, self, on.task, call.slot, false);
            on.cpus.submit(on.id, path);
            return Turn::Again;
        }
        self.call = None;
        if self.helps() {
            return self.helped(on, call.slot);
        }
        self.reap_one(on.cpus, on.lines, on.recorder, on.id, call.slot);
        self.stage = self.after_call();
        Turn::Again
    }

    /// Its write succeeded: a flush follows.
    fn syncs_after(&self, slot: u32) -> bool {
        let write = self.slots[slot as usize];
        write.io.op == Op::Write && write.status == Status::Ok
    }

    /// The bio of this I/O is that of the flush after it.
    pub(super) fn flushes(&self, slot: u32) -> bool {
        self.call
            .is_some_and(|call| call.flushes && call.slot == slot)
    }

    /// An I/O has ended. False if it is not the one that the call waits for.
    pub(super) fn note_call(&mut self, slot: u32, at: SimTime) -> bool {
        match &mut self.call {
            Some(call) if call.slot == slot => {
                call.ended = Some(at);
                true
            }
            _ => false,
        }
    }
}
