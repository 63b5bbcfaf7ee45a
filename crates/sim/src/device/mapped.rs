//! What a mapped queue has in the place of a device: a name and an account.
//!
//! Its requests never come here: the block layer maps them to queues below
//! (`blkmq/src/path/map.rs`).
//! Kernel: drivers/md/dm-rq.c (6.1.192).

use super::facts::{Charges, Facts, Numbers, Ops};
use super::{Actions, Command, Device, DeviceSetup, Found, Reply};
use crate::cost::Step;
use crate::plan::MappedPlan;
use blkmq::dm::table::QueueMode;
use blkmq::request::{HctxId, RequestId};
use blkmq::rules::Rules;
use blkmq::time::SimTime;

/// A device-mapper device.
#[derive(Debug)]
pub struct MappedDevice {
    /// Requests that have ended.
    ended: u64,
}

/// Of a device over others.
pub(super) fn facts(plan: &MappedPlan, rules: &Rules) -> Facts {
    let mut parameters = vec![("paths", plan.below.len().to_string())];
    if plan.table.queue_mode == QueueMode::Bio {
        parameters.push(("queue_mode", "bio".to_owned()));
    }
    if rules.single_queue.is_some() {
        parameters.push(("use_blk_mq", "0".to_owned()));
    }
    Facts {
        driver: "dm-multipath",
        parameters,
        numbers: Numbers {
            major: 253,
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

impl MappedDevice {
    /// The device of `setup`. Panics if it has faults, which are those of its paths.
    pub fn new(setup: &DeviceSetup<'_>) -> MappedDevice {
        let faulty = super::fault::is_wanted(&setup.plan.fault);
        assert!(!faulty, "faults are those of the devices below");
        MappedDevice { ended: 0 }
    }
}

impl Device for MappedDevice {
    fn get_budget(&mut self, unit: u8, _now: SimTime, _out: &mut Actions) -> Option<u32> {
        unreachable!("unit {unit}: a mapped queue has no budget")
    }

    fn put_budget(&mut self, token: u32) {
        unreachable!("token {token}: a mapped queue has no budget")
    }

    fn queue_rq(&mut self, command: &Command, _now: SimTime, _out: &mut Actions) -> Reply {
        unreachable!("{command:?} is mapped")
    }

    fn commit_rqs(&mut self, _hctx: HctxId, _now: SimTime, _out: &mut Actions) {}

    fn timer(&mut self, mark: u64, _now: SimTime, _out: &mut Actions) {
        unreachable!("a mapped queue sets no timer {mark}")
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

    fn ended(&mut self, _rq: RequestId, _now: SimTime, _out: &mut Actions) {
        self.ended += 1;
    }

    /// What it has is with the devices below, and counted there.
    fn in_flight(&self) -> u32 {
        0
    }

    fn describe(&self) -> String {
        format!("mapped: {} requests ended", self.ended)
    }
}
