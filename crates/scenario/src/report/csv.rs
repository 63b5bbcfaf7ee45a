//! A report as CSV: a header, then a row for each direction of each job that did any I/O.
//!
//! Rows of several runs can be put below each other: each row identifies its run. Quoting follows
//! RFC 4180, line ends are LF.

use crate::table::csv_of;

use super::{Direction, Interval, Intervals, JobReport, LockReport, Report, RunReport};

/// Columns of [`Report::to_csv`].
const COLUMNS: [&str; 42] = [
    "scenario",
    "seed",
    "rules",
    "machine",
    "cpus",
    "scheduler",
    "device",
    "outcome",
    "job",
    "threads",
    "direction",
    "ios",
    "bytes",
    "errors",
    "runtime_ms",
    "iops",
    "bw_bytes",
    "clat_mean_ns",
    "clat_p50_ns",
    "clat_p99_ns",
    "clat_p99_9_ns",
    "clat_max_ns",
    "usr_cpu",
    "sys_cpu",
    "ctx",
    "cpu_busy",
    "lock_wait",
    "worst_lock",
    "worst_lock_wait_share",
    "device_depth_mean",
    "device_depth_max",
    "warm_up_ns",
    "iops_low",
    "iops_high",
    "clat_mean_low_ns",
    "clat_mean_high_ns",
    "clat_p50_low_ns",
    "clat_p50_high_ns",
    "clat_p99_low_ns",
    "clat_p99_high_ns",
    "clat_p99_9_low_ns",
    "clat_p99_9_high_ns",
];

/// Columns that name the run, before those of the result.
const NAMING: usize = 7;

impl Report {
    pub fn to_csv(&self) -> String {
        Report::csv_of_all(core::slice::from_ref(self))
    }

    /// One table of several runs. What `varied` has gets a column of its own, after those that name
    /// the run, or is the value of the column of its name.
    pub fn csv_of_all<'a>(reports: impl IntoIterator<Item = &'a Report> + Clone) -> String {
        let mut more: Vec<&str> = Vec::new();
        for (name, _) in reports.clone().into_iter().flat_map(|of| &of.blksim.varied) {
            if !COLUMNS.contains(&name.as_str()) && !more.contains(&name.as_str()) {
                more.push(name);
            }
        }
        let with = |mut cells: Vec<String>, more: Vec<String>| {
            cells.splice(NAMING..NAMING, more);
            cells
        };
        let head = COLUMNS.map(str::to_owned).to_vec();
        let mut rows = vec![with(
            head,
            more.iter().map(|&name| name.to_owned()).collect(),
        )];
        for report in reports {
            for job in &report.jobs {
                let directions = job.directions().into_iter();
                for (name, io) in directions.filter(|(_, io)| io.total_ios > 0) {
                    let mut cells = report.row(job, name, io).to_vec();
                    for (column, cell) in COLUMNS.iter().zip(&mut cells).take(NAMING) {
                        if let Some(value) = report.blksim.value_of(column) {
                            value.clone_into(cell);
                        }
                    }
                    let value = |name: &&str| report.blksim.value_of(name).unwrap_or_default();
                    rows.push(with(
                        cells,
                        more.iter().map(value).map(str::to_owned).collect(),
                    ));
                }
            }
        }
        csv_of(&rows)
    }

    fn row(&self, job: &JobReport, name: &str, io: &Direction) -> [String; COLUMNS.len()] {
        let run = &self.blksim;
        let lat = &io.clat_ns;
        let at = |name| lat.percentile.at(name).unwrap_or(0).to_string();
        let worst = self.worst_lock();
        let intervals = io.intervals.as_ref();
        // Empty if there is no interval.
        let end = |of: Option<&Interval>, end: fn(&Interval) -> Option<f64>| {
            of.and_then(end)
                .map_or(String::new(), |value| value.to_string())
        };
        let of = |of: fn(&Intervals) -> &Interval| {
            let of = intervals.map(of);
            [end(of, |of| of.low), end(of, |of| of.high)]
        };
        let ends = |name| {
            let of = intervals.and_then(|of| of.at(name));
            [end(of, |of| of.low), end(of, |of| of.high)]
        };
        let [iops_low, iops_high] = of(|of| &of.iops);
        let [mean_low, mean_high] = of(|of| &of.mean_ns);
        let [p50_low, p50_high] = ends("50.000000");
        let [p99_low, p99_high] = ends("99.000000");
        let [p99_9_low, p99_9_high] = ends("99.900000");
        [
            run.scenario.clone(),
            run.seed.to_string(),
            run.rules.to_owned(),
            run.machine.clone(),
            run.cpus.to_string(),
            run.scheduler_as_written(),
            self.device.kind.to_owned(),
            run.outcome.to_owned(),
            job.jobname.clone(),
            job.threads.to_string(),
            name.to_owned(),
            io.total_ios.to_string(),
            io.io_bytes.to_string(),
            io.errors.to_string(),
            io.runtime.to_string(),
            io.iops.to_string(),
            io.bw_bytes.to_string(),
            lat.mean.to_string(),
            at("50.000000"),
            at("99.000000"),
            at("99.900000"),
            lat.max.to_string(),
            job.usr_cpu.to_string(),
            job.sys_cpu.to_string(),
            job.ctx.to_string(),
            super::round(100.0 - self.cpus.idle).to_string(),
            self.cpus.lock_wait.to_string(),
            worst.map_or("", |lock| lock.name).to_owned(),
            worst.map_or(0.0, |lock| lock.wait_share).to_string(),
            self.device.depth_mean.to_string(),
            self.device.depth_max.to_string(),
            intervals.map_or(String::new(), |of| of.warm_up_ns.to_string()),
            iops_low,
            iops_high,
            mean_low,
            mean_high,
            p50_low,
            p50_high,
            p99_low,
            p99_high,
            p99_9_low,
            p99_9_high,
        ]
    }

    /// The kind of lock with the longest total wait; the first of equals.
    pub(super) fn worst_lock(&self) -> Option<&LockReport> {
        let waited = self.locks.iter().filter(|lock| lock.wait_ns > 0);
        waited.reduce(|worst, lock| {
            if lock.wait_ns > worst.wait_ns {
                lock
            } else {
                worst
            }
        })
    }
}

impl RunReport {
    /// Value of a varied option.
    fn value_of(&self, name: &str) -> Option<&str> {
        let varied = self.varied.iter().find(|(varied, _)| varied == name);
        varied.map(|(_, value)| value.as_str())
    }

    /// The scheduler with its series, as `--scheduler` takes both.
    pub(super) fn scheduler_as_written(&self) -> String {
        match self.series {
            Some(series) => format!("{}+{series}", self.scheduler),
            None => self.scheduler.to_owned(),
        }
    }
}
