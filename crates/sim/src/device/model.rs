//! The closed set of device models, and what a fault needs to know of their drivers.
//!
//! Holds no behaviour of its own. Read next: `null_blk.rs`, the simplest of them.

use super::null_blk::NullBlk;
use super::nvme::Nvme;
use super::scsi_debug::ScsiDebug;
use super::{Actions, Command, Device, DeviceSetup, Found, Reply, Verdict};
use crate::plan::{BusyKind, DeviceKind};
use blkmq::request::{HctxId, RequestId};
use blkmq::time::SimTime;

/// One of the device models.
#[derive(Debug)]
pub enum Model {
    /// null_blk.
    NullBlk(NullBlk),
    /// An NVMe drive.
    Nvme(Nvme),
    /// scsi_debug.
    ScsiDebug(ScsiDebug),
}

impl Model {
    /// The device of a plan, idle and without its faults. Panics if a size in it is zero.
    pub fn new(setup: &DeviceSetup<'_>) -> Model {
        match &setup.plan.kind {
            DeviceKind::NullBlk(plan) => Model::NullBlk(NullBlk::new(plan, setup)),
            DeviceKind::Nvme(plan) => Model::Nvme(Nvme::new(plan, setup)),
            DeviceKind::ScsiDebug(plan) => Model::ScsiDebug(ScsiDebug::new(plan, setup)),
        }
    }

    /// Whether completions found by an interrupt may be ended in batches.
    pub(super) fn ends_in_batches(&self) -> bool {
        match self {
            Model::NullBlk(_) | Model::ScsiDebug(_) => false,
            Model::Nvme(_) => true,
        }
    }

    /// queue_rq of a driver that finds itself busy.
    pub(super) fn queue_busy(&mut self, command: &Command, busy: BusyKind) -> Reply {
        let started = match self {
            Model::NullBlk(device) => device.starts_before_refusal(),
            // Resources are missed while the command is prepared.
            Model::Nvme(_) => false,
            Model::ScsiDebug(device) => return device.queue_busy(command, busy),
        };
        let verdict = match busy {
            BusyKind::Resource => Verdict::Resource,
            BusyKind::DevResource => Verdict::DevResource,
        };
        Reply { verdict, started }
    }

    /// queue_rq of a driver that begins with the command and gives it back to the block layer. What
    /// waits for a later `last` is rung for: the block layer takes the command for accepted.
    ///
    /// Kernel: null_queue_rq(); RQF_DONTPREP of nvme_setup_cmd() and scsi_mq_requeue_cmd().
    pub(super) fn queue_requeue(
        &mut self,
        command: &Command,
        now: SimTime,
        out: &mut Actions,
    ) -> Reply {
        let started = match self {
            Model::NullBlk(device) => device.starts_before_refusal(),
            Model::Nvme(_) => true,
            Model::ScsiDebug(device) => match device.give_back(command) {
                Ok(()) => true,
                Err(reply) => return reply,
            },
        };
        if command.last {
            self.commit_rqs(command.hctx, now, out);
        }
        let dontprep = matches!(self, Model::Nvme(_));
        Reply {
            verdict: Verdict::Requeued { dontprep },
            started,
        }
    }

    /// queue_rq of a driver that takes the command and never answers.
    pub(super) fn queue_unanswered(
        &mut self,
        command: &Command,
        now: SimTime,
        out: &mut Actions,
    ) -> Reply {
        match self {
            Model::NullBlk(device) => device.queue_unanswered(command, out),
            Model::Nvme(device) => device.queue_unanswered(command, now, out),
            Model::ScsiDebug(device) => device.queue_unanswered(command),
        }
    }
}

impl Device for Model {
    fn get_budget(&mut self, now: SimTime, out: &mut Actions) -> Option<u32> {
        match self {
            Model::NullBlk(device) => device.get_budget(now, out),
            Model::Nvme(device) => device.get_budget(now, out),
            Model::ScsiDebug(device) => device.get_budget(now, out),
        }
    }

    fn put_budget(&mut self, token: u32) {
        match self {
            Model::NullBlk(device) => device.put_budget(token),
            Model::Nvme(device) => device.put_budget(token),
            Model::ScsiDebug(device) => device.put_budget(token),
        }
    }

    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        match self {
            Model::NullBlk(device) => device.queue_rq(command, now, out),
            Model::Nvme(device) => device.queue_rq(command, now, out),
            Model::ScsiDebug(device) => device.queue_rq(command, now, out),
        }
    }

    fn commit_rqs(&mut self, hctx: HctxId, now: SimTime, out: &mut Actions) {
        match self {
            Model::NullBlk(device) => device.commit_rqs(hctx, now, out),
            Model::Nvme(device) => device.commit_rqs(hctx, now, out),
            Model::ScsiDebug(device) => device.commit_rqs(hctx, now, out),
        }
    }

    fn timer(&mut self, mark: u64, now: SimTime, out: &mut Actions) {
        match self {
            Model::NullBlk(device) => device.timer(mark, now, out),
            Model::Nvme(device) => device.timer(mark, now, out),
            Model::ScsiDebug(device) => device.timer(mark, now, out),
        }
    }

    fn interrupt(&mut self, vector: u32, now: SimTime, out: &mut Actions) -> Option<Found> {
        match self {
            Model::NullBlk(device) => device.interrupt(vector, now, out),
            Model::Nvme(device) => device.interrupt(vector, now, out),
            Model::ScsiDebug(device) => device.interrupt(vector, now, out),
        }
    }

    fn poll(&mut self, hctx: HctxId, now: SimTime, out: &mut Actions) -> Option<Found> {
        match self {
            Model::NullBlk(device) => device.poll(hctx, now, out),
            Model::Nvme(device) => device.poll(hctx, now, out),
            Model::ScsiDebug(device) => device.poll(hctx, now, out),
        }
    }

    fn ended(&mut self, rq: RequestId, now: SimTime, out: &mut Actions) {
        match self {
            Model::NullBlk(device) => device.ended(rq, now, out),
            Model::Nvme(device) => device.ended(rq, now, out),
            Model::ScsiDebug(device) => device.ended(rq, now, out),
        }
    }

    fn in_flight(&self) -> u32 {
        match self {
            Model::NullBlk(device) => device.in_flight(),
            Model::Nvme(device) => device.in_flight(),
            Model::ScsiDebug(device) => device.in_flight(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Model::NullBlk(device) => device.describe(),
            Model::Nvme(device) => device.describe(),
            Model::ScsiDebug(device) => device.describe(),
        }
    }
}
