//! Intervals of a run and of its jobs, while it goes on and at its end.
//!
//! Read next: `batches.rs` for the sums, `batch_means.rs` for the intervals.

use blkmq::time::SimTime;

use super::{Recorder, Steady};
use crate::batch_means::{Interval, TooShort};
use crate::plan::{Figure, Wanted};

impl Recorder {
    /// The batches of all jobs together, up to now.
    #[cold]
    pub(super) fn advance(&mut self, at: SimTime) {
        if at < self.batches.until {
            return;
        }
        let mut sums = [0; 3];
        for job in &self.jobs {
            for (index, of) in job.directions.iter().take(3).enumerate() {
                let of = [of.ios, of.bytes, job.latency_sum(index)];
                sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += of);
            }
        }
        self.batches.advance_with(at, sums);
    }

    /// All batches up to now.
    pub(crate) fn advance_all(&mut self, now: SimTime) {
        self.advance(now);
        self.jobs.iter_mut().for_each(|job| job.advance(now));
    }

    /// The boundary of this number between batches of all jobs together.
    pub(crate) fn boundary(&self, number: usize) -> SimTime {
        self.batches.boundary(number)
    }

    /// The next one whose number is a multiple of this one.
    pub(crate) fn next_boundary(&self, multiple: usize) -> SimTime {
        self.batches.next_boundary(multiple)
    }

    /// The interval is as narrow as wanted, of a run up to this time.
    pub(crate) fn is_known(&self, wanted: Wanted, until: SimTime) -> bool {
        let known = self.precision(wanted.figure, until);
        known.is_ok_and(|known| known * 1e6 <= f64::from(wanted.ppm))
    }

    /// Half the interval of a figure as a part of the figure, of a run up to this time; of
    /// percentiles the widest one.
    pub fn precision(&self, figure: Figure, until: SimTime) -> Result<f64, TooShort> {
        let part = |of: Interval| of.half / of.mean.max(f64::MIN_POSITIVE);
        match figure {
            Figure::Iops => self.steady(until)?.iops().map(part),
            Figure::Bandwidth => self.steady(until)?.bandwidth().map(part),
            Figure::Latency => self.steady(until)?.latency().map(part),
            Figure::Percentile(place) => {
                let mut widest = Err(TooShort::Batches);
                for job in &self.jobs {
                    let directions = job.directions.iter().take(3).enumerate();
                    for (index, _) in directions.filter(|(_, of)| of.ios > 0) {
                        let steady = job.steady(index, until)?;
                        let (low, high) = job.percentile(index, &steady, place)?;
                        let part = (high - low) as f64 / (high + low).max(1) as f64;
                        widest = Ok(widest.map_or(part, |of: f64| of.max(part)));
                    }
                }
                widest
            }
        }
    }

    /// Batches of reads, writes and trims of all jobs together, while threads of all of them run,
    /// of a run up to this time.
    pub fn steady(&self, until: SimTime) -> Result<Steady<'_>, TooShort> {
        let times = self.jobs.iter().map(|job| job.steady_time(until));
        let all = times.reduce(|a, b| a.start.max(b.start)..a.end.min(b.end));
        let all = all.unwrap_or(self.from..until);
        self.batches.steady(0, all.start.max(self.from)..all.end)
    }
}
