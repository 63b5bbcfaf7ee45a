//! Locks over time: holds and waits of each, the holder and the waiters at any time.

use std::collections::BTreeMap;

use blkmq::path::Label;
use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};
use sim::recorder::{SpanKind, Timeline};

use super::depths::levels;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Hold {
    pub(super) from: SimTime,
    pub(super) to: SimTime,
    pub(super) cpu: CpuId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LockWait {
    pub(super) length: Duration,
    /// The label that ran once the lock was granted.
    pub(super) label: Label,
}

/// One lock.
#[derive(Clone, Default, Debug)]
pub(super) struct Lock {
    /// In order of time.
    pub(super) holds: Vec<Hold>,
    /// By end and CPU.
    waits: BTreeMap<(SimTime, CpuId), LockWait>,
    /// Beginnings of the waits, in order.
    begins: Vec<SimTime>,
    /// Ends of the waits, in order.
    ends: Vec<SimTime>,
}

impl Lock {
    pub(super) fn holder(&self, at: SimTime) -> Option<&Hold> {
        let begun = self.holds.partition_point(|hold| hold.from <= at);
        self.holds[..begun].last().filter(|hold| at < hold.to)
    }

    /// The next holder of a lock that is free at this time, if it waits for it already.
    pub(super) fn heir(&self, at: SimTime) -> Option<&Hold> {
        let begun = self.holds.partition_point(|hold| hold.from <= at);
        let next = self.holds.get(begun)?;
        let waited = self.wait_before(next)?.length;
        (next.from.0 - waited.0 < at.0).then_some(next)
    }

    /// CPUs that have begun to wait before `at`, and still do.
    pub(super) fn waiters(&self, at: SimTime) -> u64 {
        let begun = self.begins.partition_point(|from| *from < at);
        (begun - self.ends.partition_point(|to| *to <= at)) as u64
    }

    /// The wait that ended with this hold.
    pub(super) fn wait_before(&self, hold: &Hold) -> Option<&LockWait> {
        self.waits.get(&(hold.from, hold.cpu))
    }

    /// The number of waiters over time; empty for a lock without.
    pub(super) fn waiters_over_time(&self) -> Vec<(SimTime, i64)> {
        let Some(first) = self.begins.first() else {
            return Vec::new();
        };
        let begins = self.begins.iter().map(|from| (*from, 1));
        let ends = self.ends.iter().map(|to| (*to, -1));
        levels((*first, 0), begins.chain(ends).collect())
    }
}

/// All locks that were held or waited for, by dense number.
pub(super) fn of(timeline: &Timeline) -> BTreeMap<u32, Lock> {
    let mut locks: BTreeMap<u32, Lock> = BTreeMap::new();
    for span in timeline.spans().iter().filter(|span| span.from < span.to) {
        let (cpu, from, to) = (span.cpu, span.from, span.to);
        match span.kind {
            SpanKind::Hold { slot, .. } => {
                let lock = locks.entry(slot).or_default();
                lock.holds.push(Hold { from, to, cpu });
            }
            SpanKind::Wait { slot, label, .. } => {
                let lock = locks.entry(slot).or_default();
                let length = to.since(from);
                lock.waits.insert((to, cpu), LockWait { length, label });
                lock.begins.push(from);
                lock.ends.push(to);
            }
            SpanKind::Task(_) | SpanKind::Softirq | SpanKind::Irq | SpanKind::Traced => {}
        }
    }
    for lock in locks.values_mut() {
        lock.holds.sort_unstable();
        lock.begins.sort_unstable();
        lock.ends.sort_unstable();
    }
    locks
}
