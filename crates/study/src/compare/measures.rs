//! The figures of a run that are compared.

use scenario::report::{Direction, JobReport, Report};

#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// As in JSON and CSV, with the unit last.
    pub name: &'static str,
    pub title: &'static str,
    /// Differences are in percent of the first value; else in percentage points.
    pub relative: bool,
    pub of: fn(&Report) -> f64,
}

/// All of them, in the order of the table.
pub(super) const MEASURES: [Measure; 8] = [
    Measure {
        name: "iops",
        title: "IOPS",
        relative: true,
        of: |report| directions(report).map(|d| d.iops).sum(),
    },
    Measure {
        name: "bw_bytes",
        title: "bytes a second",
        relative: true,
        of: |report| directions(report).map(|d| d.bw_bytes as f64).sum(),
    },
    Measure {
        name: "clat_mean_ns",
        title: "latency, mean, ns",
        relative: true,
        of: |report| weighted(report, |d| Some(d.clat_ns.mean)),
    },
    Measure {
        name: "clat_p50_ns",
        title: "latency, 50 %, ns",
        relative: true,
        of: |report| weighted(report, |d| percentile(d, "50.000000")),
    },
    Measure {
        name: "clat_p99_ns",
        title: "latency, 99 %, ns",
        relative: true,
        of: |report| worst(report, |d| percentile(d, "99.000000")),
    },
    Measure {
        name: "lock_wait",
        title: "waiting for locks, % of busy time",
        relative: false,
        of: |report| {
            let busy = 100.0 - report.cpus.idle;
            if busy > 0.0 {
                100.0 * report.cpus.lock_wait / busy
            } else {
                0.0
            }
        },
    },
    Measure {
        name: "kernel",
        title: "kernel without waiting, % of all CPUs",
        relative: false,
        of: |report| report.cpus.system + report.cpus.softirq + report.cpus.irq,
    },
    Measure {
        name: "idle",
        title: "idle, % of all CPUs",
        relative: false,
        of: |report| report.cpus.idle,
    },
];

fn directions(report: &Report) -> impl Iterator<Item = &Direction> {
    let all = report.jobs.iter().flat_map(JobReport::directions);
    all.map(|(_, direction)| direction)
}

fn percentile(direction: &Direction, name: &str) -> Option<f64> {
    Some(direction.clat_ns.percentile.at(name)? as f64)
}

/// Mean over directions of all jobs, each counted as often as it did I/O.
fn weighted(report: &Report, of: impl Fn(&Direction) -> Option<f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for direction in directions(report).filter(|d| d.total_ios > 0) {
        if let Some(value) = of(direction) {
            sum += value * direction.total_ios as f64;
            count += direction.total_ios as f64;
        }
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The largest over directions of all jobs.
fn worst(report: &Report, of: impl Fn(&Direction) -> Option<f64>) -> f64 {
    directions(report).filter_map(of).fold(0.0, f64::max)
}
