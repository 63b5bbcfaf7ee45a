//! Published tables: their content, and the comparison with a simulated run.
//!
//! Not here: running (`reproduce.rs`).

use serde::Deserialize;

use scenario::report::{FunctionReport, Report};

/// Throughput may be off by this part.
const IOPS: f64 = 0.15;
/// The ratio of two throughputs of a table may be off by this part.
const RATIO: f64 = 0.10;
/// Cycles per I/O may be off by this part.
const CYCLES: f64 = 0.15;
/// Points that the lock share may be off.
const LOCK_POINTS: f64 = 8.0;
/// Points that the CPU share may be off.
const SYS_POINTS: f64 = 6.0;

/// Tolerance, as a factor, of figures that are published as an order of magnitude.
const CLASS: f64 = 1.5;

/// The tables that come with the program.
const PUBLISHED: &str = include_str!("../../tables/published.toml");

/// All tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// In the order of the file.
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Short name.
    pub name: String,
    /// The measured workload, its author, and the machine.
    pub title: String,
    /// Rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
    /// Ratios of throughputs that have bounds of their own; without any, those of all pairs of rows
    /// are judged.
    #[serde(default, rename = "ratio")]
    pub ratios: Vec<Bounds>,
    /// Ratios of CPU shares, where the shares themselves have little meaning.
    #[serde(default, rename = "sys_ratio")]
    pub sys_ratios: Vec<TimeRatio>,
    /// Ratios of the time an I/O that locks are held, waiting aside: of one process, whose only
    /// spin lock is the scheduler's.
    #[serde(default, rename = "hold_ratio")]
    pub hold_ratios: Vec<TimeRatio>,
}

/// The throughput of one row in proportion to that of another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Name of the row whose throughput is divided.
    pub after: String,
    /// Name of the row by whose throughput it is divided.
    pub before: String,
    /// Published.
    pub ratio: f64,
    /// The simulated one is not below.
    pub from: f64,
    /// Nor above.
    pub to: f64,
}

/// A time of one row in proportion to that of another: the CPU share, or the time under locks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeRatio {
    /// Name of the row whose time is divided.
    pub after: String,
    /// Name of the row by whose time it is divided.
    pub before: String,
    /// Published.
    pub ratio: f64,
    /// How far the simulated ratio may be off.
    pub within: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The difference to the other rows.
    pub name: String,
    /// The built-in scenario that is this row; none while it waits for something.
    pub scenario: Option<String>,
    /// Assignments as of `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Those of a short run, if 10 ms are too short.
    pub quick: Option<Vec<String>>,
    /// A feature that must be modelled first.
    pub waits_for: Option<String>,
    pub iops: Option<f64>,
    /// MB a second instead, if the size of the I/Os is not known: judged only in its ratio to other
    /// rows.
    pub mb_per_s: Option<f64>,
    /// Part by which they may be off. Default: that of all rows.
    pub iops_within: Option<f64>,
    /// Time of a thread in the kernel, percent.
    pub sys: Option<f64>,
    /// Waiting time for spin locks, percent of the time that is not idle.
    pub lock_share: Option<f64>,
    /// The simulated share is not below the first nor above the second. Default: so many points off
    /// as that of all rows.
    pub lock_share_within: Option<[f64; 2]>,
    /// Cycles per I/O, waiting aside.
    pub cycles: Option<f64>,
    /// Mean time of a call of blk_mq_sched_restart(), microseconds.
    pub restart_us: Option<f64>,
}

/// One figure, published and simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the row, or of the two rows of a ratio.
    pub row: String,
    pub figure: &'static str,
    pub published: f64,
    pub simulated: f64,
    /// How far they may be apart, in words.
    pub tolerance: String,
    /// They are not farther apart.
    pub within: bool,
}

/// The tables that come with the program.
pub fn published() -> Tables {
    toml::from_str(PUBLISHED).expect("the tables that are built in are right")
}

impl Row {
    /// In the table's unit.
    fn throughput(&self) -> f64 {
        let given = self.iops.or(self.mb_per_s);
        given.expect("a row of a table that is built in has one")
    }

    /// This row's figures, against the report of its run.
    pub fn judge(&self, report: &Report) -> Vec<Figure> {
        let within = self.iops_within.unwrap_or(IOPS);
        let mut figures = Vec::new();
        if let Some(published) = self.iops {
            figures.push(part(&self.name, "IOPS", published, iops(report), within));
        }
        if let Some(published) = self.restart_us {
            let functions = report.functions.iter().flatten();
            let mut restart = functions.filter(|f| f.function == FunctionReport::SCHED_RESTART);
            let simulated = restart.next().map_or(0.0, |f| f.mean_ns / 1000.0);
            figures.push(class(&self.name, "us/call", published, simulated));
        }
        if let Some(sys) = self.sys {
            figures.push(points(&self.name, "sys %", sys, sys_of(report), SYS_POINTS));
        }
        if let Some(share) = self.lock_share {
            // queued_spin_lock_slowpath() is one function for all locks.
            let shares = report.locks.iter().map(|lock| lock.wait_share * 100.0);
            let simulated = shares.sum();
            figures.push(match self.lock_share_within {
                None => points(&self.name, "lock %", share, simulated, LOCK_POINTS),
                Some(ends) => between(&self.name, "lock %", share, simulated, ends),
            });
        }
        if let Some(cycles) = self.cycles {
            let work = report.work.iter().map(|work| work.cycles_per_io);
            figures.push(part(&self.name, "cycles", cycles, work.sum(), CYCLES));
        }
        figures
    }
}

impl Table {
    /// All figures of the rows that were simulated: of each row, of pairs of rows.
    pub fn judge(&self, rows: &[(&Row, &Report)]) -> Vec<Figure> {
        let mut figures: Vec<Figure> = rows
            .iter()
            .flat_map(|(row, report)| row.judge(report))
            .collect();
        if self.ratios.is_empty() {
            figures.extend(ratios(rows));
        }
        let report_of = |name: &str| {
            let found = rows.iter().find(|(row, _)| row.name == name);
            found.map(|(_, report)| *report)
        };
        for one in &self.ratios {
            if let (Some(after), Some(before)) = (report_of(&one.after), report_of(&one.before)) {
                let simulated = iops(after) / iops(before).max(1.0);
                let (row, ends) = (
                    format!("{} / {}", one.after, one.before),
                    [one.from, one.to],
                );
                figures.push(between(&row, "ratio", one.ratio, simulated, ends));
            }
        }
        let times: [(&'static str, &[TimeRatio], TimeOf); 2] = [
            ("sys ratio", &self.sys_ratios, sys_of),
            ("hold ratio", &self.hold_ratios, hold_of),
        ];
        for (figure, all, time_of) in times {
            for one in all {
                let rows = (report_of(&one.after), report_of(&one.before));
                if let (Some(after), Some(before)) = rows {
                    figures.push(one.judge(figure, time_of(after), time_of(before)));
                }
            }
        }
        figures
    }
}

/// A time of a run, in any unit.
type TimeOf = fn(&Report) -> f64;

impl TimeRatio {
    fn judge(&self, figure: &'static str, after: f64, before: f64) -> Figure {
        let simulated = after / before.max(f64::MIN_POSITIVE);
        Figure {
            row: format!("{} / {}", self.after, self.before),
            figure,
            published: self.ratio,
            simulated,
            tolerance: format!("{:.2}", self.within),
            within: (simulated - self.ratio).abs() <= self.within,
        }
    }
}

/// Time an I/O that locks are held, ns.
fn hold_of(report: &Report) -> f64 {
    let held: u64 = report.locks.iter().map(|lock| lock.hold_ns).sum();
    let ios = report
        .jobs
        .iter()
        .flat_map(|job| [&job.read, &job.write, &job.trim]);
    held as f64 / ios.map(|io| io.total_ios).sum::<u64>().max(1) as f64
}

/// Kernel time of the first job's threads, percent of the time.
fn sys_of(report: &Report) -> f64 {
    report.jobs.first().map_or(0.0, |job| job.sys_cpu)
}

/// Ratios of the throughputs of any two rows that were simulated.
fn ratios(rows: &[(&Row, &Report)]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (index, (first, before)) in rows.iter().enumerate() {
        for (second, after) in &rows[index + 1..] {
            let name = format!("{} / {}", second.name, first.name);
            let published = second.throughput() / first.throughput();
            let simulated = iops(after) / iops(before).max(1.0);
            figures.push(part(&name, "ratio", published, simulated, RATIO));
        }
    }
    figures
}

fn iops(report: &Report) -> f64 {
    let jobs = report.jobs.iter();
    jobs.map(|job| job.read.iops + job.write.iops + job.trim.iops)
        .sum()
}

fn part(row: &str, figure: &'static str, published: f64, simulated: f64, part: f64) -> Figure {
    Figure {
        row: row.to_owned(),
        figure,
        published,
        simulated,
        tolerance: format!("{:.0} %", part * 100.0),
        within: (simulated / published - 1.0).abs() <= part,
    }
}

fn between(
    row: &str,
    figure: &'static str,
    published: f64,
    simulated: f64,
    [from, to]: [f64; 2],
) -> Figure {
    let digits = if to > 2.0 { 0 } else { 2 };
    Figure {
        row: row.to_owned(),
        figure,
        published,
        simulated,
        tolerance: format!("{from:.digits$}-{to:.digits$}"),
        within: (from..=to).contains(&simulated),
    }
}

fn class(row: &str, figure: &'static str, published: f64, simulated: f64) -> Figure {
    Figure {
        row: row.to_owned(),
        figure,
        published,
        simulated,
        tolerance: format!("times {CLASS}"),
        within: (published / CLASS..=published * CLASS).contains(&simulated),
    }
}

fn points(row: &str, figure: &'static str, published: f64, simulated: f64, points: f64) -> Figure {
    let low = published < 50.0 && (simulated / published - 1.0).abs() > 0.30;
    Figure {
        row: row.to_owned(),
        figure,
        published,
        simulated,
        tolerance: format!("{points:.0} points"),
        within: (simulated - published).abs() <= points && !low,
    }
}

#[cfg(test)]
mod tests {
    use super::{between, class, part, points, published};

    #[test]
    fn tolerances_have_two_sides() {
        let within = |published, simulated| part("a", "IOPS", published, simulated, 0.15).within;
        assert!(within(100.0, 114.9) && within(100.0, 85.1));
        assert!(!within(100.0, 116.0) && !within(100.0, 84.0));
        let within = |published, simulated| points("a", "sys %", published, simulated, 6.0).within;
        assert!(within(90.0, 96.0) && !within(90.0, 96.1) && !within(90.0, 83.9));
        // Small shares must be near in proportion, too.
        assert!(within(10.0, 12.9) && !within(10.0, 13.1));
        let within = |published, simulated| class("a", "us/call", published, simulated).within;
        assert!(within(583.0, 389.0) && within(583.0, 874.0));
        assert!(!within(583.0, 388.0) && !within(583.0, 875.0));
        let within = |simulated| between("a", "lock %", 25.0, simulated, [15.0, 38.0]).within;
        assert!(within(15.0) && within(38.0) && !within(14.9) && !within(38.1));
    }

    #[test]
    fn a_row_runs_or_names_the_missing_feature() {
        for table in published().tables {
            for row in &table.rows {
                assert!(row.scenario.is_some() != row.waits_for.is_some(), "{row:?}");
                assert!(row.iops.is_none() || row.mb_per_s.is_none(), "{row:?}");
                // Any two rows are put into proportion where none are named.
                assert!(!table.ratios.is_empty() || row.throughput() > 0.0);
                let named = table
                    .ratios
                    .iter()
                    .any(|one| [&one.after, &one.before].contains(&&row.name));
                assert!(
                    row.iops.or(row.mb_per_s).or(row.lock_share).is_some() || named,
                    "{row:?} is judged by nothing"
                );
                if let (Some(share), Some([from, to])) = (row.lock_share, row.lock_share_within) {
                    assert!((from..=to).contains(&share), "{row:?}");
                }
            }
            for one in &table.ratios {
                let is_row = |name: &str| table.rows.iter().any(|row| row.name == name);
                assert!(is_row(&one.after) && is_row(&one.before), "{one:?}");
                assert!((one.from..=one.to).contains(&one.ratio), "{one:?}");
            }
            for one in table.sys_ratios.iter().chain(&table.hold_ratios) {
                let is_row = |name: &str| table.rows.iter().any(|row| row.name == name);
                assert!(is_row(&one.after) && is_row(&one.before), "{one:?}");
                assert!(one.judge("", one.ratio, 1.0).within && !one.judge("", 0.0, 1.0).within);
            }
        }
    }
}
