//! Sums over batches of equal simulated time, for intervals: I/Os, bytes, latencies, and how many
//! latencies are above each percentile.
//!
//! Sums go on for the whole run; kept is how far they were at each boundary between two batches. If
//! there is no room for a further one, every second is dropped: memory does not grow with the run.
//! Read next: `batch_means.rs` for the intervals.

use core::ops::Range;

use blkmq::time::{Duration, SimTime};
use hdrhistogram::Histogram;

use super::DirectionStats;
use crate::batch_means::{BATCHES_MAX, Interval, TESTED_MIN, TooShort, interval, warm_up};
use crate::plan::PERCENTILES;

/// All of something, in hundredths of a percent.
const ALL: u64 = 10_000;
/// Place of the median, from where a latency's place is looked for.
const MEDIAN: usize = 6;
/// Length of a batch at first, ns.
const FINEST: u64 = 4096;
/// I/Os after which the limits between ranks are set, and from then on eight times as many.
const FIRST_LIMITS: u64 = 64;
/// Fewest I/Os of batches, so that most have some.
const IOS_MIN: f64 = 64.0;
/// Fewest I/Os on either side of a percentile that has an interval.
const BESIDE_MIN: f64 = 10.0;

/// How far the sums were at a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    ios: u64,
    bytes: u64,
    latency: u64,
    /// Wraps around: only differences are used.
    ranks: [u32; PERCENTILES.len() + 1],
}

/// Latencies by rank: about so many percent of them are below each limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranks {
    /// Ascending. A latency at the limit is below it.
    limits: [u64; PERCENTILES.len()],
    counts: [u32; PERCENTILES.len() + 1],
    /// Since when each limit is what it is; none before the first are set.
    since: [Option<SimTime>; PERCENTILES.len()],
    /// I/Os after which the limits are looked at.
    next: u64,
}

/// Batches of one job, or of all of them.
#[derive(Clone, Debug)]
pub struct Batches {
    from: SimTime,
    length: u64,
    /// Next boundary.
    pub(super) until: SimTime,
    /// Boundaries so far.
    count: usize,
    /// Of each direction, from its first I/O on.
    marks: [Vec<Mark>; 4],
    latency: [u64; 4],
    ranks: [Ranks; 4],
}

/// Batches of one direction, without its warm-up.
#[derive(Debug)]
pub struct Steady<'a> {
    /// Boundaries.
    marks: &'a [Mark],
    from: SimTime,
    length: Duration,
    /// Measured time before.
    pub warm_up: Duration,
}

impl Batches {
    pub(super) fn new() -> Batches {
        Batches {
            from: SimTime::ZERO,
            length: FINEST,
            until: SimTime::ZERO,
            count: 0,
            marks: [const { Vec::new() }; 4],
            latency: [0; 4],
            ranks: [const { Ranks::new() }; 4],
        }
    }

    /// Allocates a direction's batches, before the run. Other directions allocate with their first
    /// I/O.
    pub(super) fn expect(&mut self, direction: usize) {
        let marks = &mut self.marks[direction];
        marks.reserve_exact(BATCHES_MAX + 1 - marks.len());
    }

    /// Batches begin there, those before are forgotten.
    pub(super) fn begin(&mut self, from: SimTime) {
        (self.from, self.until, self.count, self.length) = (from, from, 0, FINEST);
        self.marks.iter_mut().for_each(Vec::clear);
    }

    /// No further boundary comes.
    pub(super) fn freeze(&mut self) {
        self.until = SimTime(u64::MAX);
    }

    /// An I/O ended: its latency. The other sums are the direction's own.
    #[inline]
    pub(super) fn add(&mut self, direction: usize, latency: u64) {
        self.latency[direction] = self.latency[direction].wrapping_add(latency);
        self.ranks[direction].add(latency);
    }

    /// Sum of latencies so far.
    pub(super) fn latency_sum(&self, direction: usize) -> u64 {
        self.latency[direction]
    }

    /// The boundaries up to this time: nothing has ended since the last I/O.
    #[cold]
    pub(super) fn advance(&mut self, at: SimTime, directions: &[DirectionStats; 4]) {
        let mut marks = [Mark::default(); 4];
        for (index, (mark, of)) in marks.iter_mut().zip(directions).enumerate() {
            *mark = Mark {
                ios: of.ios,
                bytes: of.bytes,
                latency: self.latency[index],
                ranks: self.ranks[index].counts,
            };
        }
        self.mark(at, &marks);
        let last = self.boundary(self.count.saturating_sub(1));
        for (ranks, of) in self.ranks.iter_mut().zip(directions) {
            if of.ios >= ranks.next {
                ranks.settle(&of.latency, last);
            }
        }
    }

    /// The same, where all sums are another's.
    #[cold]
    pub(super) fn advance_with(&mut self, at: SimTime, [ios, bytes, latency]: [u64; 3]) {
        let mut marks = [Mark::default(); 4];
        marks[0] = Mark {
            ios,
            bytes,
            latency,
            ..Mark::default()
        };
        self.mark(at, &marks);
    }

    fn mark(&mut self, at: SimTime, marks: &[Mark; 4]) {
        while self.until <= at {
            if self.count > BATCHES_MAX {
                self.halve();
                continue;
            }
            for (direction, mark) in marks.iter().enumerate().filter(|of| of.1.ios > 0) {
                if self.marks[direction].is_empty() {
                    self.expect(direction);
                    self.marks[direction].resize(self.count, Mark::default());
                }
                self.marks[direction].push(*mark);
            }
            self.count += 1;
            self.until = self.until + Duration(self.length);
        }
    }

    /// Every second boundary goes.
    fn halve(&mut self) {
        self.count = self.count.div_ceil(2);
        self.length *= 2;
        for marks in &mut self.marks {
            let kept = marks.len().div_ceil(2);
            for index in 0..kept {
                marks[index] = marks[2 * index];
            }
            marks.truncate(kept);
        }
        self.until = self.boundary(self.count);
    }

    /// The boundary of this number.
    pub(super) fn boundary(&self, number: usize) -> SimTime {
        self.from + Duration(self.length * number as u64)
    }

    /// The next boundary after those so far whose number is a multiple of this one.
    pub(super) fn next_boundary(&self, multiple: usize) -> SimTime {
        self.boundary(self.count.next_multiple_of(multiple))
    }

    /// Batches within this time without those of the warm-up, which throughput and latencies show.
    pub fn steady(&self, direction: usize, of: Range<SimTime>) -> Result<Steady<'_>, TooShort> {
        let boundary = |at: SimTime| at.since(self.from).0;
        let first = boundary(of.start).div_ceil(self.length) as usize;
        let last = (boundary(of.end) / self.length) as usize;
        let marks = &self.marks[direction];
        let last = last.min(marks.len().saturating_sub(1));
        if of.is_empty() || last < first + TESTED_MIN {
            return Err(TooShort::Batches);
        }
        let marks = &marks[first..=last];
        let rises = |sum: fn(&Mark) -> u64| marks.windows(2).map(move |of| rise(of, sum));
        let ios = warm_up(rises(|mark| mark.ios)).ok_or(TooShort::WarmUp)?;
        let latency = warm_up(rises(|mark| mark.latency)).ok_or(TooShort::WarmUp)?;
        let skipped = ios.max(latency);
        let from = self.boundary(first + skipped);
        let steady = Steady {
            marks: &marks[skipped..],
            from,
            length: Duration(self.length),
            warm_up: match skipped {
                0 => Duration::ZERO,
                _ => from.since(of.start),
            },
        };
        match steady.ios() < IOS_MIN {
            true => Err(TooShort::Ios),
            false => Ok(steady),
        }
    }

    /// The latencies of these batches at a percentile, by its place among [`PERCENTILES`].
    pub fn percentile(
        &self,
        direction: usize,
        steady: &Steady<'_>,
        place: usize,
        latency: &Histogram<u64>,
    ) -> Result<(u64, u64), TooShort> {
        let since = self.ranks[direction].since[place].ok_or(TooShort::Ios)?;
        let skipped = since.since(steady.from).0.div_ceil(steady.length.0) as usize;
        let marks = steady.marks.get(skipped..).ok_or(TooShort::Batches)?;
        let below = |of: &[Mark]| {
            let ranks = of[0].ranks.iter().zip(&of[1].ranks).take(place + 1);
            let counts = ranks.map(|(before, after)| f64::from(after.wrapping_sub(*before)));
            counts.sum::<f64>()
        };
        let parts: Vec<f64> = marks.windows(2).map(below).collect();
        let ios = rises(marks, |mark| mark.ios);
        let share = interval(&parts, &ios, 1.0)?;
        let wanted = f64::from(PERCENTILES[place]) / ALL as f64;
        let all = steady.ios();
        if all * wanted.min(1.0 - wanted) < BESIDE_MIN || !(0.0 < share.mean && share.mean < 1.0) {
            return Err(TooShort::Ios);
        }
        // The limit is near the percentile only: the variance is that of a share near it.
        let near = wanted * (1.0 - wanted) / (share.mean * (1.0 - share.mean));
        // Of all these batches, not only of those with this limit.
        let part = ios.iter().sum::<f64>() / all;
        let half = share.half * (near * part).sqrt();
        if half >= wanted || half >= 1.0 - wanted {
            return Err(TooShort::Ios);
        }
        let at = |share: f64| latency.value_at_quantile(share);
        Ok((
            latency.lowest_equivalent(at(wanted - half)),
            at(wanted + half),
        ))
    }
}

impl Steady<'_> {
    /// I/Os a second.
    pub fn iops(&self) -> Result<Interval, TooShort> {
        self.a_second(|mark| mark.ios, 1.0)
    }

    /// Bytes a second.
    pub fn bandwidth(&self) -> Result<Interval, TooShort> {
        let bytes: f64 = rises(self.marks, |mark| mark.bytes).iter().sum();
        self.a_second(|mark| mark.bytes, bytes / self.ios())
    }

    fn a_second(&self, sum: fn(&Mark) -> u64, one: f64) -> Result<Interval, TooShort> {
        let seconds = vec![self.length.0 as f64 / 1e9; self.marks.len().saturating_sub(1)];
        interval(&rises(self.marks, sum), &seconds, one)
    }

    fn ios(&self) -> f64 {
        rises(self.marks, |mark| mark.ios).iter().sum()
    }

    /// Nanoseconds an I/O.
    pub fn latency(&self) -> Result<Interval, TooShort> {
        let ios = rises(self.marks, |mark| mark.ios);
        interval(&rises(self.marks, |mark| mark.latency), &ios, 0.0)
    }
}

fn rise(of: &[Mark], sum: fn(&Mark) -> u64) -> f64 {
    sum(&of[1]).wrapping_sub(sum(&of[0])) as f64
}

fn rises(marks: &[Mark], sum: fn(&Mark) -> u64) -> Vec<f64> {
    marks.windows(2).map(|of| rise(of, sum)).collect()
}

impl Ranks {
    const fn new() -> Ranks {
        Ranks {
            limits: [0; PERCENTILES.len()],
            counts: [0; PERCENTILES.len() + 1],
            since: [None; PERCENTILES.len()],
            next: FIRST_LIMITS,
        }
    }

    #[inline]
    fn add(&mut self, latency: u64) {
        let limits = &self.limits;
        let mut rank = MEDIAN;
        if latency > limits[MEDIAN] {
            rank += 1;
            while rank < limits.len() && latency > limits[rank] {
                rank += 1;
            }
        } else {
            while rank > 0 && latency <= limits[rank - 1] {
                rank -= 1;
            }
        }
        self.counts[rank] = self.counts[rank].wrapping_add(1);
    }

    /// Limits that are far from their percentiles move there, from this boundary on.
    fn settle(&mut self, latency: &Histogram<u64>, at: SimTime) {
        const PLACES: usize = PERCENTILES.len();
        let all = latency.len();
        self.next = 8 * all;
        let apart = |place: usize, below: u64| odds_apart(below, all, PERCENTILES[place]);
        let (mut wanted, mut far) = (self.limits, [f64::INFINITY; PLACES]);
        let (mut sum, mut found, mut passed) = (0, 0, 0);
        for cell in latency.iter_recorded() {
            let value = cell.value_iterated_to();
            while passed < PLACES && self.limits[passed] < latency.lowest_equivalent(value) {
                far[passed] = apart(passed, sum);
                passed += 1;
            }
            let before = sum;
            sum += cell.count_at_value();
            while found < PLACES && sum * ALL >= all * u64::from(PERCENTILES[found]) {
                // Where many latencies are equal, those below may be nearer to the percentile.
                wanted[found] = match apart(found, before) < apart(found, sum) {
                    true => latency.lowest_equivalent(value) - 1,
                    false => value,
                };
                found += 1;
            }
        }
        let moves = |place: usize| {
            self.since[place].is_none() || wanted[place] != self.limits[place] && far[place] > 2.0
        };
        let mut moves: [bool; PLACES] = core::array::from_fn(moves);
        let of = |place: usize| match moves[place] {
            true => wanted[place],
            false => self.limits[place],
        };
        if !(0..PLACES).is_sorted_by_key(of) {
            moves = [true; PLACES];
        }
        for place in (0..PLACES).filter(|&place| moves[place]) {
            (self.limits[place], self.since[place]) = (wanted[place], Some(at));
        }
    }
}

/// By which factor the odds of being below differ from those of a percentile, at least 1.
fn odds_apart(below: u64, all: u64, percentile: u32) -> f64 {
    if below == 0 || below == all {
        return f64::INFINITY;
    }
    let (below, above) = (below as f64, (all - below) as f64);
    let (wanted, rest) = (f64::from(percentile), (ALL - u64::from(percentile)) as f64);
    let times = below * rest / (above * wanted);
    times.max(1.0 / times)
}

#[cfg(test)]
mod tests;
