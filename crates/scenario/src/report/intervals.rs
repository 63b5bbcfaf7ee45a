//! 95 % confidence intervals of a run's figures, from batch means of its measured time.
//!
//! Read first: `batch_means.rs` of `sim`. Not here: intervals over seeds (`study::compare`).

use serde::Serialize;

use super::direction::LIST;
use super::text::{bytes, micros, thousands};
use super::{as_map, round};
use sim::batch_means::{self, TooShort};
use sim::estimate::Estimate;
use sim::plan::{PERCENTILES, Plan};
use sim::recorder::{JobStats, Recorder, Steady};

/// 95 % confidence intervals, from batch means of the measured time without its warm-up.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Intervals {
    /// Measured time that was found to be warm-up, ns; 0 if there is no interval.
    pub warm_up_ns: u64,
    /// Of the rate, 1/s.
    pub iops: Interval,
    /// Of the bandwidth, bytes a second.
    pub bw_bytes: Interval,
    /// Of the mean latency, ns.
    pub mean_ns: Interval,
    /// Of the latencies at fio's percentiles, ns. Left out where there are no percentiles.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub percentile: Vec<(&'static str, Interval)>,
}

/// Where a figure would be in the long run, with 95 % confidence.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Interval {
    /// Its lower end. Left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end. Left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The run is too short for an interval: of its `warm-up`, has too few `batches`, its longest
    /// batches are still `dependent` on each other, or it has too few `ios` beside a percentile.
    /// Left out if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_short: Option<&'static str>,
    #[serde(skip)]
    why: Option<TooShort>,
}

/// How well a figure is known that `precision` asks for.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct PrecisionReport {
    /// Its name: iops, bw, mean, p99.
    pub figure: String,
    /// Wanted: half the interval's length, percent of the figure.
    pub wanted: f64,
    /// The same as reached. Left out if there is no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<f64>,
    /// As of an interval. Left out if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_short: Option<&'static str>,
}

impl Interval {
    fn of(found: Result<batch_means::Interval, TooShort>) -> Interval {
        Interval::between(found.map(|of| (of.mean - of.half, of.mean + of.half)))
    }

    fn between(found: Result<(f64, f64), TooShort>) -> Interval {
        Interval {
            low: found.ok().map(|(low, _)| round(low)),
            high: found.ok().map(|(_, high)| round(high)),
            too_short: found.err().map(TooShort::name),
            why: found.err(),
        }
    }

    /// As a report that was read back has it.
    pub fn with(ends: Option<(f64, f64)>) -> Interval {
        Interval {
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
            too_short: None,
            why: None,
        }
    }

    /// Why there is none.
    pub fn why_not(&self) -> Option<TooShort> {
        self.why
    }

    /// Its middle, and half its length.
    pub fn estimate(&self) -> Option<Estimate> {
        let (low, high) = self.low.zip(self.high)?;
        Some(Estimate {
            mean: f64::midpoint(low, high),
            half: Some((high - low) / 2.0),
        })
    }

    /// A reported figure with the farther end of its interval. The middle of the interval in its
    /// place, if the warm-up moved the figure out of it; the figure alone without an interval.
    pub fn about(&self, mean: f64) -> Estimate {
        let half = match self.low.zip(self.high) {
            Some((low, high)) if low <= mean && mean <= high => Some((high - mean).max(mean - low)),
            Some((low, high)) => {
                return Estimate {
                    mean: f64::midpoint(low, high),
                    half: Some((high - low) / 2.0),
                };
            }
            None => None,
        };
        Estimate { mean, half }
    }

    /// Half its length in percent of its middle.
    pub fn half_percent(&self) -> Option<f64> {
        let Estimate { mean, half } = self.estimate()?;
        Some(100.0 * half? / mean.abs().max(f64::MIN_POSITIVE))
    }

    /// Without an interval false.
    pub fn holds(&self, value: f64) -> bool {
        let ends = self.low.zip(self.high);
        ends.is_some_and(|(low, high)| low <= value && value <= high)
    }
}

impl Intervals {
    fn none(why: TooShort) -> Intervals {
        let none = Interval::between(Err(why));
        Intervals {
            warm_up_ns: 0,
            iops: none,
            bw_bytes: none,
            mean_ns: none,
            percentile: Vec::new(),
        }
    }

    fn new(steady: &Steady<'_>) -> Intervals {
        Intervals {
            warm_up_ns: steady.warm_up.0,
            iops: Interval::of(steady.iops()),
            bw_bytes: Interval::of(steady.bandwidth()),
            mean_ns: Interval::of(steady.latency()),
            percentile: Vec::new(),
        }
    }

    /// Of reads, writes and trims of all jobs together.
    pub(super) fn of_all(recorder: &Recorder) -> Intervals {
        let steady = recorder.steady(recorder.until);
        steady.map_or_else(Intervals::none, |steady| Intervals::new(&steady))
    }

    /// Of a direction of a job, by its number.
    pub(super) fn of(job: &JobStats, direction: usize, recorder: &Recorder) -> Intervals {
        let steady = job.steady(direction, recorder.until);
        let at = |place: usize| {
            let steady = steady.as_ref().map_err(|why| *why)?;
            let (low, high) = job.percentile(direction, steady, place)?;
            Ok((low as f64, high as f64))
        };
        let places = 0..PERCENTILES.len();
        let percentile = places.map(|place| (LIST[place].1, Interval::between(at(place))));
        let percentile: Vec<_> = percentile.collect();
        let all = match &steady {
            Ok(steady) => Intervals::new(steady),
            Err(why) => Intervals::none(*why),
        };
        Intervals { percentile, ..all }
    }

    /// At a percentile, by fio's name.
    pub fn at(&self, name: &str) -> Option<&Interval> {
        let found = self.percentile.iter().find(|(known, _)| *known == name);
        found.map(|(_, interval)| interval)
    }
}

impl PrecisionReport {
    /// Of each figure that the plan asks for.
    pub(super) fn all(plan: &Plan, recorder: &Recorder) -> Vec<PrecisionReport> {
        let all = plan.precision.iter().map(|wanted| {
            let known = recorder.precision(wanted.figure, recorder.until);
            PrecisionReport {
                figure: wanted.figure.name(),
                wanted: f64::from(wanted.ppm) / 1e4,
                reached: known.ok().map(|known| round(100.0 * known)),
                too_short: known.err().map(TooShort::name),
            }
        });
        all.collect()
    }

    /// It is known as well as wanted.
    pub fn is_reached(&self) -> bool {
        self.reached.is_some_and(|reached| reached <= self.wanted)
    }

    /// `iops 151.3 k ±0.93 %, wanted ±1 %`; of a run that did not reach it how long one would have
    /// to be. The figure is the one that the interval is of, without a warm-up.
    pub(super) fn text(&self, all: &Intervals) -> String {
        let PrecisionReport { figure, wanted, .. } = self;
        let Some(reached) = self.reached else {
            let why = self.too_short.unwrap_or_default();
            return format!("{figure}: NOT \u{b1}{wanted} %, no interval: too short ({why})");
        };
        let middle = |of: &Interval| of.estimate().map_or(0.0, |of| of.mean);
        // Percentiles are of each job.
        let value = match &**figure {
            "iops" => format!("{} ", thousands(middle(&all.iops))),
            "bw" => format!("{}/s ", bytes(middle(&all.bw_bytes) as u64)),
            "mean" => format!("{} us ", micros(middle(&all.mean_ns))),
            _ => String::new(),
        };
        let without = match all.warm_up_ns {
            0 => String::new(),
            ns => format!(", without a warm-up of {:.2} ms", ns as f64 / 1e6),
        };
        if self.is_reached() {
            return format!(
                "{figure} {value}\u{b1}{reached:.2} %, wanted \u{b1}{wanted} %{without}"
            );
        }
        // The length of an interval falls with the root of the time.
        let longer = (reached / wanted) * (reached / wanted);
        format!(
            "{figure} {value}\u{b1}{reached:.2} %, NOT the wanted \u{b1}{wanted} %{without}: that \
             takes about {longer:.1} times the measured time, see --runtime"
        )
    }
}
