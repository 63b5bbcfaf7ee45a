//! The figures of a run that are compared.

use scenario::report::{Direction, Interval, Intervals, JobReport, Report};
use sim::estimate::Estimate;

/// Unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A plain number.
    Number,
    /// Bytes a second.
    Bytes,
    /// Nanoseconds.
    Time,
    Percent,
}

#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// As in JSON and CSV, with the unit last.
    pub name: &'static str,
    pub title: &'static str,
    /// Head of a column.
    pub short: &'static str,
    pub unit: Unit,
    /// It is of one direction too, not only of the whole run.
    pub directed: bool,
    /// The figure of one direction by its name, or of [`ALL`] together.
    pub of: fn(&Report, &str) -> f64,
    /// Its interval from one run; nothing where percentiles of several directions would have to be
    /// added up, and of what has no batches.
    pub interval: fn(&Report, &str) -> Option<Interval>,
}

impl Measure {
    /// The figure of one run with its interval.
    pub fn estimate(&self, report: &Report, direction: &str) -> Estimate {
        let mean = (self.of)(report, direction);
        let interval = (self.interval)(report, direction);
        interval.map_or(Estimate::alone(mean), |of| of.about(mean))
    }

    /// Differences are in percent of the first value; else in percentage points.
    pub fn is_relative(&self) -> bool {
        self.unit != Unit::Percent
    }

    /// As in JSON and CSV.
    pub fn unit_name(&self) -> &'static str {
        match self.unit {
            Unit::Number => "1/s",
            Unit::Bytes => "bytes/s",
            Unit::Time => "ns",
            Unit::Percent => "percent",
        }
    }

    /// As in JSON and CSV.
    pub fn difference_unit(&self) -> &'static str {
        if self.is_relative() {
            "percent"
        } else {
            "points"
        }
    }
}

/// Reads, writes and trims together.
pub const ALL: &str = "all";

/// All of them, in the order of the table.
const MEASURES: [Measure; 10] = [
    Measure {
        name: "iops",
        title: "IOPS",
        short: "IOPS",
        unit: Unit::Number,
        directed: true,
        of: |report, of| directions(report, of).map(|d| d.iops).sum(),
        interval: |report, of| Some(intervals(report, of)?.iops),
    },
    Measure {
        name: "bw_bytes",
        title: "bandwidth",
        short: "bandwidth",
        unit: Unit::Bytes,
        directed: true,
        of: |report, of| directions(report, of).map(|d| d.bw_bytes as f64).sum(),
        interval: |report, of| Some(intervals(report, of)?.bw_bytes),
    },
    Measure {
        name: "clat_mean_ns",
        title: "latency, mean",
        short: "mean",
        unit: Unit::Time,
        directed: true,
        of: |report, of| weighted(report, of, |d| Some(d.clat_ns.mean)),
        interval: |report, of| Some(intervals(report, of)?.mean_ns),
    },
    Measure {
        name: "clat_p50_ns",
        title: "latency, 50 %",
        short: "50 %",
        unit: Unit::Time,
        directed: true,
        of: |report, of| weighted(report, of, |d| percentile(d, "50.000000")),
        interval: |report, of| of_only(report, of, "50.000000"),
    },
    Measure {
        name: "clat_p99_ns",
        title: "latency, 99 %",
        short: "99 %",
        unit: Unit::Time,
        directed: true,
        of: |report, of| worst(report, of, |d| percentile(d, "99.000000")),
        interval: |report, of| of_worst(report, of, "99.000000"),
    },
    Measure {
        name: "clat_p99_9_ns",
        title: "latency, 99.9 %",
        short: "99.9 %",
        unit: Unit::Time,
        directed: true,
        of: |report, of| worst(report, of, |d| percentile(d, "99.900000")),
        interval: |report, of| of_worst(report, of, "99.900000"),
    },
    Measure {
        name: "clat_max_ns",
        title: "latency, longest",
        short: "max",
        unit: Unit::Time,
        directed: true,
        of: |report, of| worst(report, of, |d| Some(d.clat_ns.max as f64)),
        interval: |_, _| None,
    },
    Measure {
        name: "lock_wait",
        title: "waiting for locks, of busy time",
        short: "lock wait",
        unit: Unit::Percent,
        directed: false,
        of: |report, _| {
            let busy = 100.0 - report.cpus.idle;
            if busy > 0.0 {
                100.0 * report.cpus.lock_wait / busy
            } else {
                0.0
            }
        },
        interval: |_, _| None,
    },
    Measure {
        name: "kernel",
        title: "kernel without waiting, of all CPUs",
        short: "kernel",
        unit: Unit::Percent,
        directed: false,
        of: |report, _| report.cpus.system + report.cpus.softirq + report.cpus.irq,
        interval: |_, _| None,
    },
    Measure {
        name: "idle",
        title: "idle, of all CPUs",
        short: "idle",
        unit: Unit::Percent,
        directed: false,
        of: |report, _| report.cpus.idle,
        interval: |_, _| None,
    },
];

/// Those that are of one direction too, or those that are only of a whole run.
pub fn measures_of(directed: bool) -> impl Iterator<Item = &'static Measure> {
    let all = MEASURES.iter();
    all.filter(move |measure| measure.directed == directed)
}

/// Names of the directions that did I/O in a report.
pub fn busy_directions(report: &Report) -> impl Iterator<Item = &'static str> {
    let busy = |name| directions(report, name).any(|io| io.total_ios > 0);
    ["read", "write", "trim"]
        .into_iter()
        .filter(move |name| busy(name))
}

fn directions<'a>(report: &'a Report, wanted: &'a str) -> impl Iterator<Item = &'a Direction> {
    let all = report.jobs.iter().flat_map(JobReport::directions);
    let all = all.filter(move |(name, _)| wanted == ALL || wanted == *name);
    all.map(|(_, direction)| direction)
}

fn percentile(direction: &Direction, name: &str) -> Option<f64> {
    Some(direction.clat_ns.percentile.at(name)? as f64)
}

/// Mean over directions of all jobs, each counted as often as it did I/O.
fn weighted(report: &Report, wanted: &str, of: impl Fn(&Direction) -> Option<f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for direction in directions(report, wanted).filter(|d| d.total_ios > 0) {
        if let Some(value) = of(direction) {
            sum += value * direction.total_ios as f64;
            count += direction.total_ios as f64;
        }
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The largest over directions of all jobs.
fn worst(report: &Report, wanted: &str, of: impl Fn(&Direction) -> Option<f64>) -> f64 {
    directions(report, wanted)
        .filter_map(of)
        .fold(0.0, f64::max)
}

/// Directions that did I/O.
fn busy<'a>(report: &'a Report, wanted: &'a str) -> impl Iterator<Item = &'a Direction> {
    directions(report, wanted).filter(|io| io.total_ios > 0)
}

/// The intervals of one direction, if one job did I/O of it, or of all together.
fn intervals<'a>(report: &'a Report, wanted: &str) -> Option<&'a Intervals> {
    if busy(report, wanted).count() == busy(report, ALL).count() {
        return Some(&report.blksim.intervals);
    }
    let jobs = report.jobs.iter().flat_map(JobReport::directions);
    let mut of_it = jobs.filter(|(name, io)| *name == wanted && io.total_ios > 0);
    let only = of_it.next().filter(|_| of_it.next().is_none())?;
    only.1.intervals.as_ref()
}

fn of_only(report: &Report, wanted: &str, name: &str) -> Option<Interval> {
    let mut all = busy(report, wanted);
    let only = all.next().filter(|_| all.next().is_none())?;
    only.intervals.as_ref()?.at(name).copied()
}

fn of_worst(report: &Report, wanted: &str, name: &str) -> Option<Interval> {
    let all = busy(report, wanted);
    let worst = all.max_by_key(|of| of.clat_ns.percentile.at(name))?;
    worst.intervals.as_ref()?.at(name).copied()
}
