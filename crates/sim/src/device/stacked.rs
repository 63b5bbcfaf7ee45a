//! A pass-through device over several others: each request becomes a clone for the next of them.
//!
//! No hardware of its own, no choice of a path beyond taking turns, no retry of what failed: the
//! place that dm-multipath takes. What is below refuses or takes a clone on its own
//! (`blkmq/src/path/clone.rs`); a refused one is offered anew, then to the next device.
//! Kernel: dm_mq_queue_rq(), dm_complete_request() in drivers/md/dm-rq.c (6.1.192).

use super::facts::{Charges, Facts, Numbers, Ops};
use super::{Action, Actions, Command, Device, DeviceSetup, Found, Reply, Verdict};
use crate::cost::Step;
use crate::plan::StackedPlan;
use blkmq::request::{HctxId, QueueId, RequestId, Status};
use blkmq::time::SimTime;

/// A stacked device.
#[derive(Debug)]
pub struct Stacked {
    // Settings.
    below: Vec<QueueId>,

    // State.
    /// Index of the queue that comes next.
    turn: usize,
    /// Requests whose clones were asked for.
    clones: u64,
    /// Requests whose clones have ended.
    ended: u64,
}

/// Of a device over others.
pub(super) fn facts(plan: &StackedPlan) -> Facts {
    Facts {
        driver: "stacked",
        parameters: vec![("devices", plan.below.len().to_string())],
        numbers: Numbers {
            major: 254,
            minors: 1,
        },
        ops: Ops {
            queue_rqs: false,
            commit_rqs: false,
            blocking: false,
            vectors: false,
            batches: false,
            redirects: true,
        },
        charges: Charges {
            // The clone with its bio.
            queue_rq: Step::Bio,
            starts_first: true,
            timer: None,
            last: None,
            commit: None,
            maps_bios: false,
            completion: None,
            poll: None,
            pair: None,
        },
    }
}

impl Stacked {
    /// The device of `setup`. Panics if nothing is below it.
    pub fn new(setup: &DeviceSetup<'_>) -> Stacked {
        assert!(!setup.below.is_empty(), "a stacked device is made of some");
        Stacked {
            below: setup.below.to_vec(),
            turn: 0,
            clones: 0,
            ended: 0,
        }
    }
}

impl Device for Stacked {
    /// Never asked: it has no budget of its own. Hands out a token all the same.
    fn get_budget(&mut self, _unit: u8, _now: SimTime, _out: &mut Actions) -> Option<u32> {
        Some(0)
    }

    fn put_budget(&mut self, _token: u32) {}

    /// The request is started before its clone is made: dm_start_request().
    fn queue_rq(&mut self, _command: &Command, _now: SimTime, _out: &mut Actions) -> Reply {
        let below = self.below[self.turn];
        self.turn = (self.turn + 1) % self.below.len();
        self.clones += 1;
        Reply {
            verdict: Verdict::Below(below),
            started: true,
        }
    }

    fn commit_rqs(&mut self, _hctx: HctxId, _now: SimTime, _out: &mut Actions) {}

    /// Has no timer. Panics.
    fn timer(&mut self, mark: u64, _now: SimTime, _out: &mut Actions) {
        panic!("a stacked device set no timer {mark}");
    }

    fn interrupt(&mut self, _vector: u32, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        None
    }

    fn poll(&mut self, _hctx: HctxId, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        None
    }

    fn due_after(&self, _now: SimTime) -> Option<SimTime> {
        None
    }

    fn ended(&mut self, _rq: RequestId, _now: SimTime, _out: &mut Actions) {}

    /// dm_complete_request().
    fn ended_below(&mut self, rq: RequestId, status: Status, _now: SimTime, out: &mut Actions) {
        self.ended += 1;
        out.push(Action::Complete { rq, status });
    }

    /// What it has is with the devices below, and counted there.
    fn in_flight(&self) -> u32 {
        0
    }

    fn describe(&self) -> String {
        format!(
            "stacked: {} clones asked for, {} ended, over queues {:?}",
            self.clones,
            self.ended,
            self.below.iter().map(|queue| queue.0).collect::<Vec<_>>()
        )
    }
}
