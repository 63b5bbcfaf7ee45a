//! A device and its driver below the block layer: accepts a request or returns why not, completes
//! it later.
//!
//! A device knows requests by slot, with the fields that the driver would read. It owns no CPU and
//! no clock: it requests actions through [`Actions`]. Read next: `device/null_blk.rs`. Kernel:
//! struct blk_mq_ops in include/linux/blk-mq.h (6.1.192, 6.12.117).

use core::any::Any;
use core::fmt::Debug;

use crate::plan::BusyKind;
use blkmq::request::{CpuId, HctxId, Op, OpFlags, RequestId, Sector, Sectors, Status};
use blkmq::time::{Duration, SimTime};

mod ahci;
mod captured;
mod command_timers;
pub mod fault;
pub mod fc;
mod info;
mod make;
mod mapped;
mod mid_layer;
pub mod null_blk;
pub mod nvme;
pub mod scsi_debug;
mod setup;

#[cfg(test)]
pub(crate) mod bench;

pub use captured::{CapturedCounts, CapturedDevice};
pub use info::{Charges, DeviceNumbers, DriverInfo, Ops, Pair, Parameters};
pub use make::make;
pub use mapped::MappedDevice;
use setup::jittered;
pub use setup::{DeviceSetup, QueueLayout};

/// The fields of a request that queue_rq reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    pub rq: RequestId,
    /// The unit of the device that the request is for.
    pub unit: u16,
    pub hctx: HctxId,
    pub cpu: CpuId,
    pub op: Op,
    pub flags: OpFlags,
    pub sector: Sector,
    pub sectors: Sectors,
    pub polled: bool,
    /// `bd.last`: no further request follows at once.
    pub last: bool,
    /// Passed by queue_rqs, with the following requests of this CPU up to `last`.
    pub of_plug: bool,
    /// Budget token, where the driver has budgets.
    pub budget: Option<u32>,
    pub since_start: Duration,
}

/// The driver's answer (blk_status_t of queue_rq).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// BLK_STS_OK.
    Accepted,
    /// BLK_STS_RESOURCE.
    Resource,
    /// BLK_STS_DEV_RESOURCE.
    DevResource,
    /// Another error: the block layer ends the request with it.
    Error(Status),
    /// BLK_STS_OK, but the driver called blk_mq_requeue_request() first: it will be offered again.
    Requeued {
        /// RQF_DONTPREP: the driver has left its own data in the request.
        dontprep: bool,
    },
}

/// The driver's answer and whether it called blk_mq_start_request(), which a refusal may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    pub verdict: Verdict,
    /// The request was started: D is traced.
    pub started: bool,
}

impl Reply {
    pub const ACCEPTED: Reply = Reply {
        verdict: Verdict::Accepted,
        started: true,
    };

    /// The command did not reach the hardware. `started`: the driver calls blk_mq_start_request()
    /// before it can know.
    pub fn turned_down(why: TurnedDown, started: bool) -> Reply {
        let verdict = match why {
            TurnedDown::Busy(BusyKind::Resource) => Verdict::Resource,
            TurnedDown::Busy(BusyKind::DevResource) => Verdict::DevResource,
            TurnedDown::GivenBack => Verdict::Requeued { dontprep: false },
        };
        Reply { verdict, started }
    }
}

/// An action that a device requests, in the order of the driver's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// blk_mq_end_request() in the calling context.
    End { rq: RequestId, status: Status },
    /// blk_mq_complete_request() in the calling context: may be redirected to a softirq or
    /// another CPU.
    Complete { rq: RequestId, status: Status },
    /// [`Device::timer`] with this mark, after this time. Uses no CPU time: the timer is the
    /// device's.
    Timer { after: Duration, mark: u64 },
    /// A hard interrupt on `cpu` after this time; its handler calls [`Device::interrupt`] until no
    /// completion is left.
    Interrupt {
        after: Duration,
        cpu: CpuId,
        /// Passed to the handler: an MSI-X vector, or the command of a timer.
        vector: u32,
    },
    /// blk_mq_stop_hw_queue() of all hctxs.
    StopQueues,
    /// blk_mq_start_stopped_hw_queues(async = true).
    StartQueues,
    /// blk_mq_run_hw_queues(async = true) or, with a delay, blk_mq_delay_run_hw_queues().
    RunQueues {
        /// The unit whose queue is run; `None`: the queues of all units.
        unit: Option<u16>,
        /// Zero: at once.
        delay: Duration,
    },
}

/// Actions of one call. The caller empties it.
pub type Actions = Vec<Action>;

/// One completion found by an interrupt handler or a poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    pub rq: RequestId,
    pub status: Status,
    pub by: EndedBy,
}

/// How a driver ends a request that it found completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndedBy {
    /// blk_mq_end_request() at once.
    End,
    /// blk_mq_complete_request(): may be redirected.
    Complete,
    /// blk_mq_complete_request_remote(); a completion that stays on this CPU joins the handler's
    /// batch where blk_mq_add_to_batch() allows it.
    Batch,
}

/// Why queue_rq of a driver returns before the command reaches its hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnedDown {
    /// The hardware accepts no more for now, or the driver lacks a resource.
    Busy(BusyKind),
    /// The driver calls blk_mq_requeue_request() for it.
    GivenBack,
}

/// A device with its driver.
///
/// A wrapper (`fault.rs`) uses `admit`, `turn_down` and `fickle` where it replaces the hardware's
/// part of a command, or leaves it out; the device does not know.
pub trait Device: Any + Debug + Send {
    /// get_budget of a unit: a token, or `None` for now. Called only where the plan gives a budget.
    /// Default: a token each time.
    fn get_budget(&mut self, _unit: u16, _now: SimTime, _out: &mut Actions) -> Option<u32> {
        Some(0)
    }

    /// blk_lld_busy() of a unit. Called only where the plan gives a budget.
    fn is_busy(&self, _unit: u16) -> bool {
        false
    }

    /// put_budget of a token that was never offered with a request.
    fn put_budget(&mut self, _token: u32) {}

    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply;

    /// The driver's part of queue_rq: whether the command may go to the hardware, and what the
    /// driver allocates for it.
    fn admit(&mut self, _command: &Command, _out: &mut Actions) -> Result<(), Reply> {
        Ok(())
    }

    /// The driver's part of queue_rq, and its answer if the command does not reach the hardware.
    fn turn_down(&mut self, _command: &Command, why: TurnedDown) -> Reply {
        Reply::turned_down(why, false)
    }

    /// commit_rqs: no further request follows from this CPU, though the last one was passed without
    /// `last`. Default: a driver that sends each command at once.
    fn commit_rqs(&mut self, _hctx: HctxId, _cpu: CpuId, _now: SimTime, _out: &mut Actions) {}

    /// An [`Action::Timer`] has expired.
    ///
    /// # Panics
    /// If the device sets no timer: this is the default.
    fn timer(&mut self, mark: u64, _now: SimTime, _out: &mut Actions) {
        unreachable!("the device set no timer {mark}")
    }

    /// The handler of `vector` looks for one more completion; `None` if there is none.
    fn interrupt(&mut self, vector: u32, now: SimTime, out: &mut Actions) -> Option<Found>;

    /// A poller of `hctx` looks for one more completion. Default: the device has no poll queue.
    fn poll(&mut self, _hctx: HctxId, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        None
    }

    /// When, after `now`, a poller finds the next command that neither timer nor interrupt
    /// announces. Default: there is no such command.
    fn due_after(&self, _now: SimTime) -> Option<SimTime> {
        None
    }

    /// The device may accept a command that it has just refused, though nothing has happened in
    /// between.
    fn fickle(&self) -> bool {
        false
    }

    /// A unit goes out of reach, or comes back. Only for a device with faults.
    ///
    /// # Panics
    /// For any other device.
    fn set_out(&mut self, unit: u16, out: bool) {
        unreachable!("unit {unit} out of reach: {out}, of a device without faults")
    }

    /// The block layer has ended the request: budget and host resources are released.
    fn ended(&mut self, _rq: RequestId, _now: SimTime, _out: &mut Actions) {}

    /// Commands that were accepted and not yet reported complete.
    fn in_flight(&self) -> u32;

    /// The state in one line, for stall reports.
    fn describe(&self) -> String;
}
