//! The plug of a single operation, for tasks without another: as block devices start them.
//!
//! Kernel: blkdev_write_iter() in block/fops.c (v6.1), blkdev_issue_discard() in block/blk-lib.c
//! (v6.1), blk_ioctl_discard() in block/ioctl.c (v6.12). The plug of v6.12 around each bio is the
//! block layer's (`submit`).

use blkmq::path::{Frame, Plug, PlugPath, Unplug};
use blkmq::request::{CpuId, Op};
use blkmq::rules::{BioPlug, Rules};

use crate::machine::cpus::Cpus;

/// Whether the running task's plug is one of these.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::machine) struct OwnPlug(bool);

impl OwnPlug {
    /// blk_start_plug() of an operation that has one; within another plug it has no effect.
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

    /// The plug ends, or its task goes to sleep with it. True if that began with a flush: call
    /// again afterwards.
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
        let path = PlugPath::new(plug.queue(), why);
        cpus.push(id, Frame::Plug(path));
        true
    }
}
