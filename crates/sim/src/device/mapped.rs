//! In place of the device of a mapped queue: a name and a count.
//!
//! Its requests do not come here: the block layer maps them to queues below
//! (`blkmq/src/path/map.rs`). Kernel: drivers/md/dm-rq.c (6.1.192).

use super::info::{Charges, DeviceNumbers, DriverInfo, Ops};
use super::{Actions, Command, Device, DeviceSetup, Found, Reply};
use crate::cost::Step;
use crate::plan::MappedPlan;
use blkmq::dm::selector::SelectorKind;
use blkmq::dm::table::{GroupTable, QueueMode};
use blkmq::request::RequestId;
use blkmq::rules::Rules;
use blkmq::time::SimTime;

#[derive(Debug)]
pub struct MappedDevice {
    ended: u64,
}

/// Parameters under the names of dmsetup, multipath.conf and the module.
fn parameters(plan: &MappedPlan, rules: &Rules) -> Vec<(&'static str, String)> {
    let (table, mapper) = (&plan.table, &rules.device_mapper);
    let mut all = vec![
        ("paths", plan.below.len().to_string()),
        ("table", format!("multipath {table}")),
        ("features", table.features()),
        ("hw_handler", table.hw_handler_words()),
    ];
    if let Some(group) = table.groups.first() {
        let each = |of: fn(&GroupTable) -> String| {
            let first = of(group);
            table
                .groups
                .iter()
                .all(|other| of(other) == first)
                .then_some(first)
        };
        all.extend(each(GroupTable::path_selector).map(|value| ("path_selector", value)));
        let count = group.paths.first().map(|path| path.repeat_count);
        let same = table.paths().all(|path| Some(path.repeat_count) == count);
        let counts = |group: &GroupTable| group.selector != SelectorKind::IoAffinity;
        let count = count.filter(|_| same && table.groups.iter().all(counts));
        all.extend(count.map(|value| ("rr_min_io_rq", value.to_string())));
    }
    if table.queue_mode == QueueMode::Bio {
        all.push(("queue_mode", "bio".to_owned()));
    } else if mapper.requests.old_top.is_some() {
        let single = rules.single_queue.is_some();
        all.push(("use_blk_mq", u8::from(!single).to_string()));
    }
    all.extend(
        plan.no_path_retry
            .clone()
            .map(|looks| ("no_path_retry", looks)),
    );
    let seconds = plan.interval.0 / 1_000_000_000;
    all.push(("polling_interval", seconds.to_string()));
    if mapper.no_path_timer {
        let seconds = plan.timeout_secs.to_string();
        all.push(("queue_if_no_path_timeout_secs", seconds));
    }
    let changes = mapper.changes().into_iter();
    all.extend(changes.map(|(key, value)| (key, value.to_owned())));
    all
}

pub(super) fn info(plan: &MappedPlan, rules: &Rules) -> DriverInfo {
    DriverInfo {
        driver: "dm-multipath",
        parameters: parameters(plan, rules),
        numbers: DeviceNumbers {
            major: 253,
            minors: 1,
        },
        ops: Ops::PLAIN,
        charges: Charges {
            starts_first: true,
            ..Charges::plain(Step::Bio)
        },
    }
}

impl MappedDevice {
    /// The device of `setup`. Panics if it has faults, which belong to its paths.
    pub fn new(setup: &DeviceSetup<'_>) -> MappedDevice {
        let faulty = super::fault::is_wanted(&setup.plan.fault);
        assert!(!faulty, "faults are those of the devices below");
        MappedDevice { ended: 0 }
    }
}

impl Device for MappedDevice {
    fn queue_rq(&mut self, command: &Command, _now: SimTime, _out: &mut Actions) -> Reply {
        unreachable!("{command:?} is mapped")
    }

    fn interrupt(&mut self, _vector: u32, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        None
    }

    fn ended(&mut self, _rq: RequestId, _now: SimTime, _out: &mut Actions) {
        self.ended += 1;
    }

    /// Its requests are with the devices below, and counted there.
    fn in_flight(&self) -> u32 {
        0
    }

    fn describe(&self) -> String {
        format!("mapped: {} requests ended", self.ended)
    }
}
