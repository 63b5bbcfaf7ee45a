//! Statistics of one job: I/Os and latencies by direction, as sums and over time.

use core::ops::Range;

use blkmq::request::Status;
use blkmq::time::{Duration, SimTime};
use hdrhistogram::Histogram;

use super::{Batches, IoRecord, LATENCY_MAX, Steady};
use crate::batch_means::TooShort;
use crate::plan::ThreadPlan;

/// I/Os of one direction of one job.
#[derive(Clone, Debug)]
pub struct DirectionStats {
    /// I/Os that ended in the measured time.
    pub ios: u64,
    pub bytes: u64,
    pub errors: u64,
    /// Their latencies, ns.
    pub latency: Histogram<u64>,
}

impl DirectionStats {
    pub(super) fn all(grows: bool) -> [DirectionStats; 4] {
        core::array::from_fn(|_| DirectionStats::new(grows))
    }

    fn new(grows: bool) -> DirectionStats {
        let longest = if grows { 2 } else { LATENCY_MAX };
        let mut latency =
            Histogram::new_with_bounds(1, longest, 3).expect("bounds and digits are valid");
        latency.auto(grows);
        DirectionStats {
            ios: 0,
            bytes: 0,
            errors: 0,
            latency,
        }
    }

    pub(super) fn add(&mut self, io: &IoRecord) {
        self.ios += 1;
        self.bytes += u64::from(io.sectors.0) * 512;
        self.errors += u64::from(io.status != Status::Ok);
        let latency = io.latency.0.clamp(1, LATENCY_MAX);
        let recorded = self.latency.record(latency);
        recorded.expect("it has room for the longest latency, or grows");
    }

    fn reset(&mut self) {
        (self.ios, self.bytes, self.errors) = (0, 0, 0);
        self.latency.reset();
    }
}

/// Statistics of one job (a section of a fio file, or several that are reported together): all of
/// its threads.
#[derive(Clone, Debug)]
pub struct JobStats {
    pub name: String,
    pub directions: [DirectionStats; 4],
    /// The same over time.
    pub(super) batches: Batches,
    /// When its measured time began.
    pub from: SimTime,
    /// When the measured time of its first thread to end did.
    first_end: Option<SimTime>,
    /// When the measured time of its last thread ended.
    pub until: SimTime,
    /// When its last thread ended.
    pub ended: SimTime,
    /// Threads that have started and not ended.
    pub running: u32,
    /// Longest measured time of a thread, by which fio divides.
    pub runtime: Duration,
    pub threads: u32,
    /// Threads that a failed I/O ended.
    pub failed_threads: u32,
    /// How the first of those I/Os ended.
    pub error: Status,
}

impl JobStats {
    pub(super) fn new(name: &str, grows: bool) -> JobStats {
        JobStats {
            name: name.to_owned(),
            directions: DirectionStats::all(grows),
            batches: Batches::new(),
            from: SimTime::ZERO,
            first_end: None,
            until: SimTime::ZERO,
            ended: SimTime::ZERO,
            running: 0,
            runtime: Duration::ZERO,
            threads: 0,
            failed_threads: 0,
            error: Status::Ok,
        }
    }

    /// A further thread, and what it will do.
    pub(super) fn expects(&mut self, thread: &ThreadPlan) {
        self.threads += 1;
        let mix = thread.mix;
        let syncs = thread.fsync > 0 || thread.fdatasync > 0;
        let does = [
            mix.read_percent > 0,
            mix.write_percent > 0,
            mix.trim_percent > 0,
            syncs,
        ];
        for (direction, _) in does.iter().enumerate().filter(|(_, does)| **does) {
            self.batches.expect(direction);
        }
    }

    /// A thread starts. The job's measured time begins with the last one's.
    pub(super) fn starts(&mut self, count_from: SimTime) {
        if self.from < count_from {
            self.from = count_from;
            self.batches.begin(count_from);
        }
        self.running += 1;
    }

    /// The only thread counts from here on, and nothing before.
    pub(super) fn counts_anew(&mut self, from: SimTime) {
        self.directions.iter_mut().for_each(DirectionStats::reset);
        self.from = from;
        self.batches.begin(from);
    }

    /// A thread has ended, and its measured time before or then.
    pub(super) fn ends(&mut self, measured: Range<SimTime>, at: SimTime) {
        self.runtime = self.runtime.max(measured.end.since(measured.start));
        if self.first_end.is_none() {
            self.first_end = Some(measured.end);
            self.batches.advance(measured.end, &self.directions);
            self.batches.freeze();
        }
        self.until = self.until.max(measured.end);
        self.ended = self.ended.max(at);
        self.running -= 1;
    }

    /// One I/O ended in the measured time.
    pub(super) fn add(&mut self, direction: usize, io: &IoRecord) {
        if io.at >= self.batches.until {
            self.batches.advance(io.at, &self.directions);
        }
        self.directions[direction].add(io);
        self.batches.add(direction, io.latency.0);
    }

    /// Sum of a direction's latencies, ns.
    pub(super) fn latency_sum(&self, direction: usize) -> u64 {
        self.batches.latency_sum(direction)
    }

    /// Its batches up to now, unless a thread has ended.
    pub(super) fn advance(&mut self, now: SimTime) {
        self.batches.advance(now, &self.directions);
    }

    /// Measured time in which all threads run, of a run up to this time.
    pub(super) fn steady_time(&self, until: SimTime) -> Range<SimTime> {
        self.from..self.first_end.unwrap_or(until)
    }

    /// Batches of a direction while all threads run, of a run up to this time.
    pub fn steady(&self, direction: usize, until: SimTime) -> Result<Steady<'_>, TooShort> {
        self.batches.steady(direction, self.steady_time(until))
    }

    /// The interval of a direction's percentile, by its place among `PERCENTILES`, ns.
    pub fn percentile(
        &self,
        direction: usize,
        steady: &Steady<'_>,
        place: usize,
    ) -> Result<(u64, u64), TooShort> {
        let latency = &self.directions[direction].latency;
        self.batches.percentile(direction, steady, place, latency)
    }
}
