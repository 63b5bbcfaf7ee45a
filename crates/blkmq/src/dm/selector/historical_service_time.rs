//! historical-service-time: the path that was the fastest so far, unless that is out of date.
//!
//! Numbers are in 10-bit fixed point: 1024 is 1 ns.
//! Kernel: drivers/md/dm-ps-historical-service-time.c (6.1.192).

use core::fmt;

use super::{Account, EndOfIo, Paths};
use crate::dm::table::GroupTable;
use crate::time::SimTime;

/// Bits after the point (HST_FIXED_SHIFT).
const SHIFT: u32 = 10;
/// 1 (HST_FIXED_1).
const ONE: u64 = 1 << SHIFT;
/// The largest service time (HST_FIXED_MAX).
const MOST: u64 = u64::MAX >> SHIFT;
/// A bucket of the weights is 2^24 ns (HST_BUCKET_SHIFT).
const BUCKET_SHIFT: u32 = 24;
/// Buckets (HST_WEIGHT_COUNT).
const BUCKETS: usize = 64;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HistoricalServiceTime {
    // Settings.
    /// The weight of the past, by the duration of an I/O.
    weights: Vec<u32>,
    /// threshold_multiplier.
    threshold: u32,

    // State.
    pub(super) paths: Paths,
}

/// The past of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct History {
    /// historical_service_time.
    service_time: u64,
    outstanding: i64,
    /// From then on it is out of date, ns.
    stale_after: u64,
    /// The end of the last I/O, ns.
    last_finish: u64,
}

impl HistoricalServiceTime {
    /// With all paths of the group.
    pub fn new(table: &GroupTable) -> HistoricalServiceTime {
        let base = u64::from(table.base_weight);
        let weight = |bucket: usize| match bucket + 1 == BUCKETS {
            true => 0,
            false => power(base, bucket as u32 + 1) as u32,
        };
        HistoricalServiceTime {
            weights: (0..BUCKETS).map(weight).collect(),
            threshold: table.threshold_multiplier,
            paths: Paths::new(table.paths.len()),
        }
    }

    /// The best path; of equals the first. It goes to the end of the list.
    pub fn select(&mut self, accounts: &[Account], now: SimTime) -> Option<usize> {
        let mut best: Option<usize> = None;
        for path in self.paths.valid() {
            let better = |best| self.compare(of(accounts, path), of(accounts, best), now.0) < 0;
            if best.is_none_or(better) {
                best = Some(path);
            }
        }
        let path = best?;
        self.paths.to_end(path);
        Some(path)
    }

    /// hst_compare(): negative if the first path is better.
    fn compare(&self, first: &History, second: &History, now: u64) -> i64 {
        let (hst1, hst2) = (first.service_time, second.service_time);
        let (out1, out2) = (first.outstanding, second.outstanding);
        let (more, less) = (hst1.max(hst2), hst1.min(hst2));
        if more <= u64::from(self.threshold).wrapping_mul(less) {
            return out1 - out2;
        }
        let (idle1, idle2) = (out1 == 0, out2 == 0);
        let (stale1, stale2) = (first.stale_after < now, second.stale_after < now);
        if idle1 && stale1 || idle2 && stale2 || idle1 && idle2 {
            let since = |idle: bool, after: u64| if idle { after as i64 } else { 0 };
            return since(idle2, first.stale_after) - since(idle1, second.stale_after);
        }
        let second_better = if out1 == out2 {
            hst1 > hst2
        } else {
            let large = out1 >= ONE as i64 || out2 >= ONE as i64;
            let shift = if large { SHIFT } else { 0 };
            // A count that was decremented twice is below zero.
            let cost = |hst: u64, out: i64| (hst >> shift).wrapping_mul((1 + out) as u64);
            cost(hst1, out1) > cost(hst2, out2)
        };
        // A best path that is out of date gets as much as the other one.
        match second_better {
            true if stale2 => out1 - out2,
            true => 1,
            false if stale1 => out1 - out2,
            false => -1,
        }
    }

    /// hst_end_io(). Requests that went to the device while it had another one count as if they
    /// came one by one.
    pub(super) fn end(&self, history: &mut History, end: EndOfIo) {
        let started = end.started.0.max(history.last_finish);
        history.last_finish = end.now.0;
        let took = end.now.0.saturating_sub(started);
        history.outstanding -= 1;
        let bucket = (took >> BUCKET_SHIFT).min(BUCKETS as u64 - 1) as usize;
        let weight = u64::from(self.weights[bucket]);
        let next = took.wrapping_mul(ONE).min(MOST);
        history.service_time = average(history.service_time, next, weight);
        let valid = self.paths.valid_count() as u64;
        let fresh = valid.wrapping_mul(history.service_time >> SHIFT);
        history.stale_after = history.last_finish.wrapping_add(fresh);
    }

    pub(super) fn status(&self) -> String {
        format!("2 {} {}", self.weights[0], self.threshold)
    }
}

impl History {
    /// A path that had no I/O: 1 ns.
    pub const NEW: History = History {
        service_time: ONE,
        outstanding: 0,
        stale_after: 0,
        last_finish: 0,
    };

    pub(super) fn start(&mut self) {
        self.outstanding += 1;
    }

    pub(super) fn outstanding(&self) -> i64 {
        self.outstanding
    }
}

/// As in the status line.
impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, out) = (self.service_time, self.outstanding);
        write!(f, "{time} {out} {}", self.stale_after)
    }
}

fn of(accounts: &[Account], path: usize) -> &History {
    match &accounts[path] {
        Account::History(history) => history,
        _ => unreachable!("historical-service-time has histories"),
    }
}

/// fixed_power(): `base` to the power of `exponent`, by squares that are rounded.
fn power(mut base: u64, mut exponent: u32) -> u64 {
    let product = |a: u64, b: u64| (a * b + (ONE >> 1)) >> SHIFT;
    let mut result = ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, base);
        }
        exponent >>= 1;
        if exponent > 0 {
            base = product(base, base);
        }
    }
    result
}

/// fixed_ema(): the past by its weight, and the new value by the rest.
fn average(last: u64, next: u64, weight: u64) -> u64 {
    let past = last.wrapping_mul(weight);
    let now = next.wrapping_mul(ONE - weight);
    past.wrapping_add(now).wrapping_add(ONE >> 1) >> SHIFT
}
