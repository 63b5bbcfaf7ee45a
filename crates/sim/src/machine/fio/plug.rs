//! A plug around one operation of a task, where it has no other: those that block devices start.
//!
//! Kernel: blkdev_write_iter() in block/fops.c (v6.1), blkdev_issue_discard() in block/blk-lib.c
//! (v6.1), blk_ioctl_discard() in block/ioctl.c (v6.12). What v6.12 starts around each bio is of
//! the block layer (`submit`).

use blkmq::path::{Frame, Plug, PlugPath, Unplug};
use blkmq::request::{CpuId, Op};
use blkmq::rules::{BioPlug, Rules};

use crate::machine::cpus::Cpus;

/// Whether the running task's plug is one of these.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::machine) struct OwnPlug(bool);

impl OwnPlug {
    /// blk_start_plug() of an operation that does so; within another plug it means nothing.
    pub(in crate::machine) fn start(&mut self, cpus: &mut Cpus, id: CpuId, rules: &Rules, op: Op) {
        let starts = match op {
            Op::Discard => true,
            Op::Write => rules.bio_plug == BioPlug::EachWrite,
            Op::Read | Op::Flush | Op::WriteZeroes => false,
        };
        let plug = &mut cpus[id].env.plug;
        if starts && !plug.active {
            plug.start(1);
            self.0 = true;
        }
    }

    /// It ends, or its task goes to sleep with it. True if that began with a flush: ask again
    /// behind it.
    pub(in crate::machine) fn flushes(&mut self, cpus: &mut Cpus, id: CpuId, why: Unplug) -> bool {
        if !self.0 {
            return false;
        }
        let plug = cpus[id].env.plug;
        if plug.is_empty() {
            self.0 = false;
            cpus[id].env.plug = Plug::default();
            return false;
        }
        let path = PlugPath::unplug(plug.queue(), why);
        cpus.push(id, Frame::Plug(path));
        true
    }
}
