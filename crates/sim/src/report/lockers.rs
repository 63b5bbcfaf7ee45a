//! What threads got that do nothing but take one lock.

use core::fmt;

use serde::Serialize;

use super::locks::Handoffs;
use super::{ratio, round};
use crate::plan::Plan;
use crate::recorder::{LockStats, Recorder};

/// All lockers together, and by group.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LockersReport {
    /// Unlocks in the measured time.
    pub operations: u64,
    /// The same a second.
    pub operations_a_second: f64,
    /// Operations that had to wait, 0 to 1.
    pub contended: f64,
    /// Wait of those, mean.
    pub wait_mean_ns: f64,
    /// Hold, with what the lock costs, mean.
    pub hold_mean_ns: f64,
    /// Grants to somebody who waited, by the distance from the CPU that released.
    pub handoffs: Handoffs,
    /// One entry a `[[locker]]`.
    pub groups: Vec<LockerGroup>,
}

/// Threads of one `[[locker]]`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LockerGroup {
    /// Its name.
    pub name: String,
    /// How many.
    pub threads: usize,
    /// Unlocks of all of them.
    pub operations: u64,
    /// The same a second.
    pub operations_a_second: f64,
    /// Those of the thread that had most.
    pub operations_max: u64,
    /// Those of the thread that had fewest.
    pub operations_min: u64,
}

impl LockersReport {
    /// Nothing if the run had none.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> Option<LockersReport> {
        let time = plan.lockers.iter().map(|locker| locker.runtime.0).max()?;
        let a_second = |count: u64| round(count as f64 * 1e9 / time.max(1) as f64);
        let all = || plan.lockers.iter().zip(&recorder.lock_operations);
        let groups = plan.lockers.chunk_by(|a, b| a.group == b.group);
        let groups = groups.map(|group| {
            let of = || {
                all()
                    .filter(|(l, _)| l.group == group[0].group)
                    .map(|(_, n)| *n)
            };
            LockerGroup {
                name: group[0].name.clone(),
                threads: group.len(),
                operations: of().sum(),
                operations_a_second: a_second(of().sum()),
                operations_max: of().max().unwrap_or(0),
                operations_min: of().min().unwrap_or(0),
            }
        });
        let operations = all().map(|(_, n)| *n).sum();
        let locks = &recorder.locks;
        let sum = |of: fn(&LockStats) -> u64| u128::from(locks.iter().map(of).sum::<u64>());
        let taken = sum(|lock| lock.acquisitions);
        let contended = sum(|lock| lock.contended);
        let waits = locks.iter().filter_map(|lock| lock.waits.as_ref());
        let handoffs = waits.fold([0; 5], |sum: [u64; 5], waits| {
            core::array::from_fn(|distance| sum[distance] + waits.handoffs[distance])
        });
        Some(LockersReport {
            operations,
            operations_a_second: a_second(operations),
            contended: round(ratio(contended, taken)),
            wait_mean_ns: round(ratio(sum(|lock| lock.wait.0), contended)),
            hold_mean_ns: round(ratio(sum(|lock| lock.hold.0), taken)),
            handoffs: Handoffs::new(handoffs),
            groups: groups.collect(),
        })
    }
}

impl fmt::Display for LockersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nLock: {:.0} operations a second; {:.1} % waited, {:.0} ns on average; held for \
             {:.0} ns",
            self.operations_a_second,
            self.contended * 100.0,
            self.wait_mean_ns,
            self.hold_mean_ns
        )?;
        for group in &self.groups {
            writeln!(
                f,
                "  {:<12} {:>4} threads {:>12.0} operations a second; a thread {} to {}",
                group.name,
                group.threads,
                group.operations_a_second,
                group.operations_min,
                group.operations_max
            )?;
        }
        Ok(())
    }
}
