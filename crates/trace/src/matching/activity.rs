//! What btt says of a device beside its latencies: seeks, plugs, requests waiting, active periods.
//!
//! Filled by `btt`, by its rules. Read first: blktrace 1.2.0, btt/seek.c, devs.c, p_live.c.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

use super::latency::histogram;
use crate::blktrace::Event;

/// Distances are counted one by one, for the mode, until so many different ones have been seen.
const DISTANCES: usize = 1 << 13;
/// Depths of unplugs that are counted one by one; longer ones count as the last.
const DEPTHS: usize = 65;
/// Periods that a late completion may still join.
const PERIODS: usize = 1 << 12;

/// Distances between ranges that follow each other, in sectors. Ranges that overlap or touch have
/// none; backwards it is from start to start.
#[derive(Clone, PartialEq, Debug)]
pub struct Seeks {
    pub count: u64,
    /// Those of a distance.
    pub moved: u64,
    pub total: u128,
    longest: u64,
    last: (u64, u64),
    spread: Histogram<u64>,
    /// Distance and count at a place given by a hash; a count of 0 is a free place.
    exact: Vec<(u64, u64)>,
    different: usize,
}

impl Default for Seeks {
    fn default() -> Seeks {
        Seeks {
            count: 0,
            moved: 0,
            total: 0,
            longest: 0,
            last: (0, 0),
            spread: histogram(),
            exact: Vec::new(),
            different: 0,
        }
    }
}

impl Seeks {
    /// Takes the next range; says whether it is elsewhere.
    #[inline]
    pub(super) fn add(&mut self, event: &Event) -> bool {
        let (start, end) = (event.sector, event.end());
        let (from, to) = std::mem::replace(&mut self.last, (start, end));
        let inside = |sector| (from..=to).contains(&sector);
        let distance = if inside(start) || inside(end) {
            0
        } else if start > to {
            start - to
        } else {
            start.abs_diff(from)
        };
        self.count += 1;
        self.moved += u64::from(distance > 0);
        self.total += u128::from(distance);
        self.longest = self.longest.max(distance);
        self.spread.record(distance).expect("it grows");
        self.count_exactly(distance);
        distance > 0
    }

    #[inline]
    fn count_exactly(&mut self, distance: u64) {
        if self.different == DISTANCES {
            return;
        }
        if self.exact.is_empty() {
            self.exact.resize(2 * DISTANCES, (0, 0));
        }
        let mask = self.exact.len() - 1;
        let mut at = (distance.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask;
        while self.exact[at].1 > 0 && self.exact[at].0 != distance {
            at = (at + 1) & mask;
        }
        self.different += usize::from(self.exact[at].1 == 0);
        self.exact[at] = (distance, self.exact[at].1 + 1);
    }

    pub fn mean(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }

    /// At most 1 % too long. btt prints the root of its tree instead, most often 0.
    pub fn median(&self) -> u64 {
        self.spread.value_at_quantile(0.5).min(self.longest)
    }

    /// The most frequent distance, the shortest of several, and how often it occurs: up to the seek
    /// with the 8192nd different distance, which ends the counting.
    pub fn mode(&self) -> (u64, u64) {
        let order = |&&(distance, count): &&(u64, u64)| (count, u64::MAX - distance);
        self.exact
            .iter()
            .max_by_key(order)
            .copied()
            .unwrap_or_default()
    }
}

/// Times in which a request was with the driver: overlapping spans from D to C put together.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Periods {
    pub count: u64,
    pub total_ns: u64,
    pub first: Option<u64>,
    pub last: u64,
    /// Those that may still grow, in order of time; counted like the others.
    open: VecDeque<(u64, u64)>,
}

impl Periods {
    #[inline]
    pub(super) fn add(&mut self, from: u64, to: u64) {
        let (mut start, mut end) = (from, to);
        while let Some((earlier, until)) = self.open.pop_back_if(|(_, until)| *until >= start) {
            start = start.min(earlier);
            end = end.max(until);
            self.count -= 1;
            self.total_ns -= until - earlier;
        }
        self.open.push_back((start, end));
        if self.open.len() > PERIODS {
            self.open.pop_front();
        }
        self.count += 1;
        self.total_ns += end.saturating_sub(start);
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        self.last = self.last.max(end);
    }
}

/// Plugs of a device, as if all tasks had one together.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Plugs {
    since: Option<u64>,
    pub plugged_ns: u64,
    /// Unplugs of a plugged device, explicit and by sleeping tasks, with the requests in them.
    pub explicit: u64,
    pub explicit_requests: u64,
    pub timed: u64,
    pub timed_requests: u64,
    /// All unplugs by their requests; the last is 64 or more.
    pub depths: Vec<u64>,
}

impl Plugs {
    pub(super) fn plug(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    pub(super) fn unplug(&mut self, event: &Event, timed: bool) {
        let now = event.time.0;
        self.depths.resize(DEPTHS, 0);
        self.depths[(event.extra as usize).min(DEPTHS - 1)] += 1;
        let Some(since) = self.since.take() else {
            return;
        };
        let (unplugs, requests) = match timed {
            true => (&mut self.timed, &mut self.timed_requests),
            false => (&mut self.explicit, &mut self.explicit_requests),
        };
        *unplugs += 1;
        *requests += event.extra;
        self.plugged_ns += now.saturating_sub(since);
    }

    /// A plug that was left counts up to the end, and as an unplug.
    pub(super) fn finish(&mut self, end: u64) {
        if let Some(since) = self.since.take() {
            self.explicit += 1;
            self.plugged_ns += end.saturating_sub(since);
        }
    }
}

/// See the head of the file. Events without data count for requeues only.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Activity {
    /// Between submissions, and between issues.
    pub q2q: Seeks,
    pub d2d: Seeks,
    pub plugs: Plugs,
    pub periods: Periods,
    /// Requeues: btt counts each as a Q.
    pub requeues: u64,
    /// Requests that are neither issued nor merged, and their sum over all Q and R.
    waiting: u64,
    pub waiting_total: u64,
    /// Sectors of completions: least, greatest and all.
    pub blocks: (u64, u64, u64),
    /// First and last event that btt counts.
    pub span: Option<(u64, u64)>,
}

impl Activity {
    #[inline]
    pub(super) fn enter(&mut self) {
        self.waiting_total += self.waiting;
        self.waiting += 1;
    }

    #[inline]
    pub(super) fn leave(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    #[inline]
    pub(super) fn complete(&mut self, sectors: u64) {
        let (least, most, all) = self.blocks;
        let least = if all == 0 {
            sectors
        } else {
            least.min(sectors)
        };
        self.blocks = (least, most.max(sectors), all + sectors);
    }
}
