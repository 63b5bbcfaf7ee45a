//! A report as rows of a table: one for each job, with a column for each figure of each direction.

use super::{Direction, JobReport, Report};
use crate::table::{Cell, Column, Kind};

/// Figures of a direction, with names that follow `read_`, `write_` or `trim_`.
const DIRECTION: [(&str, Kind); 8] = [
    ("ios", Kind::Integer),
    ("iops", Kind::Number),
    ("bw_bytes", Kind::Integer),
    ("clat_mean_ns", Kind::Number),
    ("clat_p50_ns", Kind::Integer),
    ("clat_p99_ns", Kind::Integer),
    ("clat_p99_9_ns", Kind::Integer),
    ("clat_max_ns", Kind::Integer),
];

impl Report {
    /// Columns of [`Report::rows`]. Units: `_ns` nanoseconds, `_ms` milliseconds, `iops` 1/s,
    /// `bw_bytes` bytes a second; CPU times, waiting and shares in percent.
    pub fn columns() -> Vec<Column> {
        let run = ["scenario", "rules", "machine", "scheduler", "device"];
        let job = [
            ("ios", Kind::Integer),
            ("errors", Kind::Integer),
            ("runtime_ms", Kind::Integer),
            ("iops", Kind::Number),
            ("bw_bytes", Kind::Integer),
        ];
        let last = [
            ("usr_cpu", Kind::Number),
            ("sys_cpu", Kind::Number),
            ("ctx", Kind::Integer),
            ("cpu_busy", Kind::Number),
            ("lock_wait", Kind::Number),
            ("worst_lock", Kind::Text),
            ("worst_lock_wait_share", Kind::Number),
            ("device_depth_mean", Kind::Number),
            ("device_depth_max", Kind::Integer),
        ];
        let column = |(name, kind)| Column::new(name, kind);
        let mut all: Vec<Column> = run.map(|name| column((name, Kind::Text))).to_vec();
        all.extend([("seed", Kind::Integer), ("cpus", Kind::Integer)].map(column));
        all.extend([("outcome", Kind::Text), ("job", Kind::Text)].map(column));
        all.push(column(("threads", Kind::Integer)));
        all.extend(job.map(column));
        for direction in ["read", "write", "trim"] {
            let named = |(name, kind)| Column::new(format!("{direction}_{name}"), kind);
            all.extend(DIRECTION.map(named));
        }
        all.extend(last.map(column));
        all
    }

    /// A row for each job: its clones together. What a direction without I/O has is missing.
    pub fn rows(&self) -> Vec<Vec<Cell<'static>>> {
        self.jobs.iter().map(|job| self.cells(job)).collect()
    }

    fn cells(&self, job: &JobReport) -> Vec<Cell<'static>> {
        let run = &self.blksim;
        let directions = job.directions().map(|(_, direction)| direction);
        let of_all = |of: fn(&Direction) -> u64| directions.iter().map(|io| of(io)).sum::<u64>();
        let iops: f64 = directions.iter().map(|io| io.iops).sum();
        let mut cells: Vec<Cell<'static>> = vec![
            run.scenario.clone().into(),
            run.rules.into(),
            run.machine.clone().into(),
            run.scheduler_as_written().into(),
            self.device.kind.into(),
            run.seed.into(),
            u32::from(run.cpus).into(),
            run.outcome.into(),
            job.jobname.clone().into(),
            job.threads.into(),
            of_all(|io| io.total_ios).into(),
            of_all(|io| io.errors).into(),
            directions.iter().map(|io| io.runtime).max().into(),
            super::round(iops).into(),
            of_all(|io| io.bw_bytes).into(),
        ];
        for io in directions {
            let lat = &io.clat_ns;
            let has = io.total_ios > 0;
            let some = |value: Cell<'static>| if has { value } else { Cell::Missing };
            let at = |name| some(lat.percentile.at(name).into());
            cells.extend([
                io.total_ios.into(),
                some(io.iops.into()),
                some(io.bw_bytes.into()),
                some(lat.mean.into()),
                at("50.000000"),
                at("99.000000"),
                at("99.900000"),
                some(lat.max.into()),
            ]);
        }
        let worst = self.worst_lock();
        cells.extend([
            job.usr_cpu.into(),
            job.sys_cpu.into(),
            job.ctx.into(),
            super::round(100.0 - self.cpus.idle).into(),
            self.cpus.lock_wait.into(),
            worst.map(|lock| lock.name).into(),
            worst.map(|lock| lock.wait_share).into(),
            self.device.depth_mean.into(),
            self.device.depth_max.into(),
        ]);
        cells
    }
}
