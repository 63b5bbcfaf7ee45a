//! Tables of many runs of one scenario.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::blocks::Made;
use super::markdown::{columns, fenced, grouped, table};
use super::runs::{Blksim, iops, number, word};
use crate::paths;
use crate::step::{Failure, Result};

/// Numbers of drives in their table.
const DRIVES: [usize; 6] = [1, 2, 3, 4, 6, 8];
const DRIVE_SCHEDULERS: [&str; 2] = ["none", "mq-deadline"];

/// Throughput of one process on several drives, and the cost of interrupts.
pub(super) fn drives(blksim: &Blksim) -> Result<String> {
    let mut lines = Vec::new();
    for count in DRIVES {
        let names: Vec<String> = (0..count).map(|n| format!("/dev/nvme{n}n1")).collect();
        for scheduler in DRIVE_SCHEDULERS {
            lines.push(format!(
                "run nvme-eight-drives --json --scheduler {scheduler} --set device.count={count} \
                 --set job.filename={}",
                names.join(":")
            ));
        }
    }
    let reports = blksim.all(&lines)?;
    let (mut rows, mut rates) = (Vec::new(), Vec::new());
    for (count, reports) in DRIVES.iter().zip(reports.chunks(DRIVE_SCHEDULERS.len())) {
        let mut row = vec![count.to_string()];
        for report in reports {
            let rate = iops(report)?;
            rates.push(rate);
            row.push(format!("{:.1}", rate / 1000.0));
            row.push(format!("{:.0}", component(report, "interrupt")?));
        }
        rows.push(row);
    }
    let header = [
        "drives",
        "none, thousands of IOPS",
        "cycles of interrupts",
        "mq-deadline",
        "cycles of interrupts",
    ];
    let [none, scheduled] = [0, 1].map(|column| {
        let of: Vec<f64> = rates.iter().skip(column).step_by(2).copied().collect();
        100.0 * (1.0 - of[of.len() - 1] / of[0])
    });
    Ok(format!(
        "{}\nFrom one to eight drives the process loses {none:.1} and {scheduled:.1} %.\n",
        table(&columns(&header), &rows)
    ))
}

/// Cycles an I/O of a component; none if it did nothing.
fn component(report: &Value, name: &str) -> Result<f64> {
    let work = report.pointer("/work").and_then(Value::as_array);
    let work = work.ok_or_else(|| Failure("a report has no work".to_owned()))?;
    for one in work {
        if word(one, "/component")? == name {
            return number(one, "/cycles_per_io");
        }
    }
    Ok(0.0)
}

/// The assumptions of the walk's table about devices and job: their names and their settings.
const ASSUMED: [(&str, &str); 7] = [
    ("as in the scenario: 64 tags, 12.7 ms", ""),
    (
        "128 tags, 25.4 ms",
        "--set device.hw_queue_depth=128 --set device.completion_nsec=25400000",
    ),
    (
        "512 tags, 58 ms",
        "--set device.hw_queue_depth=512 --set device.completion_nsec=58000000",
    ),
    (
        "times of commands from 0 to twice the mean",
        "--set device.jitter_percent=100",
    ),
    (
        "the same, 512 tags, 58 ms",
        "--set device.jitter_percent=100 --set device.hw_queue_depth=512 \
         --set device.completion_nsec=58000000",
    ),
    (
        "the same, 64 tags, fio waits for all 128",
        "--set device.jitter_percent=100 --set job.iodepth_batch_complete_min=128",
    ),
    (
        "as in the scenario, measured from 1.5 s on",
        "--set job.ramp_time=1500ms",
    ),
];
/// CPUs that walk, and I/Os that the scenario's jobs have in flight.
const WALKERS: f64 = 64.0;
const IN_FLIGHT: f64 = 128.0 * 128.0;

/// A run's data on the walk over hctxs.
struct Walk {
    /// Bytes a second.
    bytes: f64,
    us_a_call: f64,
    bytes_a_call: f64,
    /// Of a CPU in 10 s.
    calls: f64,
}

impl Walk {
    fn of(report: &Value) -> Result<Walk> {
        let functions = report.pointer("/functions").and_then(Value::as_array);
        let functions = functions.ok_or_else(|| Failure("a report has no functions".to_owned()))?;
        let named = |function: &&Value| function["function"] == "blk_mq_sched_restart";
        let walk = functions.iter().find(named);
        let walk = walk.ok_or_else(|| Failure("a report has no walk".to_owned()))?;
        let (bytes, ios) = (sum(report, "bw_bytes")?, sum(report, "total_ios")?);
        let rate = iops(report)?;
        // Functions are counted until the last I/O has completed, I/Os until the jobs' time is
        // over: the I/Os in flight then are added.
        let calls_an_io = number(walk, "/hits")? / (ios + IN_FLIGHT);
        Ok(Walk {
            bytes,
            us_a_call: number(walk, "/mean_ns")? / 1000.0,
            bytes_a_call: bytes / rate / calls_an_io,
            calls: calls_an_io * rate / WALKERS * 10.0,
        })
    }

    fn cells(&self) -> [String; 4] {
        let digits = if self.us_a_call < 1.0 { 2 } else { 0 };
        [
            format!("{:.0}", self.bytes / 1e6),
            format!("{:.digits$}", self.us_a_call),
            format!("{:.1}", self.bytes_a_call / 1024.0),
            grouped(self.calls),
        ]
    }
}

/// A figure of all jobs, reads and writes together.
fn sum(report: &Value, figure: &str) -> Result<f64> {
    let jobs = report.pointer("/jobs").and_then(Value::as_array);
    let jobs = jobs.ok_or_else(|| Failure("a report has no jobs".to_owned()))?;
    let of = |job: &Value| {
        let [read, write] =
            ["read", "write"].map(|direction| number(job, &format!("/{direction}/{figure}")));
        Ok::<f64, Failure>(read? + write?)
    };
    jobs.iter().map(of).sum()
}

fn walks(blksim: &Blksim, settings: &[String]) -> Result<Vec<Walk>> {
    let line = |set: &String| format!("run shared-restart-cost --functions --json {set}");
    let lines: Vec<String> = settings.iter().map(line).collect();
    blksim.all(&lines)?.iter().map(Walk::of).collect()
}

/// The walk by assumption, under R2 and under R4.
pub(super) fn walk(blksim: &Blksim) -> Result<String> {
    let set = |(_, set): &(&str, &str)| {
        ["R2", "R4"].map(|rule| format!("--set queue.restart_rule={rule} {set}"))
    };
    let walks = walks(blksim, &ASSUMED.iter().flat_map(set).collect::<Vec<_>>())?;
    let row = |((name, _), walks): (&(&str, &str), &[Walk])| {
        let [all, own] = [&walks[0], &walks[1]];
        let mut row = vec![(*name).to_owned()];
        row.extend(all.cells());
        row.extend(own.cells());
        row.push(format!("{:.2}", own.bytes / all.bytes));
        row
    };
    let rows: Vec<Vec<String>> = ASSUMED.iter().zip(walks.chunks(2)).map(row).collect();
    let header = [
        "assumed",
        "R2: MB/s",
        "us per call",
        "KiB per call",
        "calls per CPU in 10 s",
        "R4: MB/s",
        "us per call",
        "KiB per call",
        "calls",
        "factor",
    ];
    Ok(table(&columns(&header), &rows))
}

pub(super) fn walk_rules(blksim: &Blksim) -> Result<String> {
    let cases = [
        ("R1, which no counter gates", "--set queue.restart_rule=R1"),
        ("R2", "--set queue.restart_rule=R2"),
        (
            "R2', whose counter is of the map",
            "--set queue.restart_rule=R2p",
        ),
        ("R4", "--set queue.restart_rule=R4"),
        (
            "R2, random jobs",
            "--set queue.restart_rule=R2 --set job.rw=randrw",
        ),
        (
            "R4, random jobs",
            "--set queue.restart_rule=R4 --set job.rw=randrw",
        ),
    ];
    let settings = cases.map(|(_, set)| set.to_owned());
    let walks = walks(blksim, &settings)?;
    let row = |((name, _), walk): (&(&str, &str), &Walk)| {
        let mut row = vec![(*name).to_owned()];
        row.extend(walk.cells());
        row
    };
    let rows: Vec<Vec<String>> = cases.iter().zip(&walks).map(row).collect();
    let header = [
        "rule",
        "MB/s",
        "us per call",
        "KiB per call",
        "calls per CPU in 10 s",
    ];
    Ok(table(&columns(&header), &rows))
}

/// Schedulers of the thread tables.
const SCHEDULERS: &str = "none,mq-deadline,mq-deadline+v2-repaired,mq-deadline+v3";
const THREADS: &str = "1,2,4,8,12,16,20,24,28,32";

/// Throughput and kernel time by number of threads, and the pictures of it in docs/scaling.
/// `device`: its name in the table; in small letters its name in pictures.
pub(super) fn threads(blksim: &Blksim, scenario: &str, device: &str) -> Result<Made> {
    let name = &device.to_lowercase();
    let drawn = |schedulers: &str, picture: &str| {
        let folder = paths::target_dir().join("results").join(picture);
        blksim.text(&format!(
            "plot {scenario} --scheduler {schedulers} --threads {THREADS} --runtime 40ms \
             --ramp-time 5ms -o {}",
            folder.display()
        ))?;
        let file = format!("docs/scaling/{picture}.svg");
        Ok((file, read(&folder.join("scaling.svg"))?, folder))
    };
    let (file, picture, folder) = drawn(SCHEDULERS, name)?;
    let mut made = Made {
        body: by_threads(device, &read(&folder.join("runs.csv"))?)?,
        files: vec![(file, picture)],
    };
    if device == "null_blk" {
        // Without the curve that all others are small beside.
        let others = SCHEDULERS.replacen("none,", "", 1);
        let (file, picture, _) = drawn(&others, "null_blk-mq-deadline")?;
        made.files.push((file, picture));
    }
    Ok(made)
}

/// The plot of README.md: throughput and lock share with the published figures, and its command.
pub(super) fn published(blksim: &Blksim) -> Result<Made> {
    let command = "plot mq-deadline-scaling --threads 1,2,4,8,16,32 --scheduler \
                   mq-deadline,mq-deadline+v2-repaired --published";
    let folder = paths::target_dir().join("results/published");
    blksim.text(&format!("{command} -o {}", folder.display()))?;
    Ok(Made {
        body: fenced(&format!("blksim {command} -o plots")),
        files: vec![(
            "docs/scaling/published.svg".to_owned(),
            read(&folder.join("scaling.svg"))?,
        )],
    })
}

pub(super) fn read(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file);
    text.map_err(|e| Failure(format!("{}: cannot read: {e}", file.display())))
}

/// The table of `plot`'s runs.csv: a row each for throughput and kernel time of a scheduler.
fn by_threads(name: &str, csv: &str) -> Result<String> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |column: &str| {
        let place = head.iter().position(|name| *name == column);
        place.ok_or_else(|| Failure(format!("runs.csv has no column {column}")))
    };
    let columns_wanted = ["scheduler", "threads", "iops", "sys_cpu"];
    let places = columns_wanted.map(place);
    let [scheduler, threads, iops, system] = places;
    let (scheduler, threads, iops, system) = (scheduler?, threads?, iops?, system?);
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let counts: Vec<&str> = THREADS.split(',').collect();
    let mut table_rows = Vec::new();
    let schedulers: Vec<&str> = SCHEDULERS.split(',').collect();
    if rows.len() != counts.len() * schedulers.len() {
        return Err(Failure(format!("runs.csv has {} rows", rows.len())));
    }
    for (written, rows) in schedulers.iter().zip(rows.chunks(counts.len())) {
        let (kind, series) = written.split_once('+').unwrap_or((written, ""));
        let shown = match (kind, series) {
            ("mq-deadline", "") => "stock",
            (kind, "") => kind,
            (_, series) => series,
        };
        let mut rates = vec![shown.to_owned()];
        let mut times = vec![format!("{shown}, sys %")];
        for (count, row) in counts.iter().zip(rows) {
            if (row[scheduler], row[threads]) != (kind, *count) {
                let what = "runs.csv has its rows in another order";
                return Err(Failure(what.to_owned()));
            }
            rates.push(format!("{:.0}", parsed(row[iops])? / 1000.0));
            times.push(format!("{:.0}", parsed(row[system])?));
        }
        table_rows.extend([rates, times]);
    }
    let mut header = vec![name.to_owned()];
    header.extend(counts.iter().map(|count| (*count).to_owned()));
    Ok(table(&header, &table_rows))
}

fn parsed(text: &str) -> Result<f64> {
    let number = text.parse();
    number.map_err(|_| Failure(format!("runs.csv: `{text}` is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv() -> String {
        let mut text = "scheduler,threads,iops,sys_cpu\n".to_owned();
        for scheduler in SCHEDULERS.split(',') {
            let kind = scheduler.split('+').next().unwrap();
            for threads in THREADS.split(',') {
                text += &format!("{kind},{threads},{threads}600.4,12.6\n");
            }
        }
        text
    }

    #[test]
    fn a_sweep_has_two_rows_for_each_scheduler() {
        let text = by_threads("null_blk", &csv()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 8);
        assert_eq!(
            lines[0],
            "| null_blk | 1 | 2 | 4 | 8 | 12 | 16 | 20 | 24 | 28 | 32 |"
        );
        assert!(lines[2].starts_with("| none | 2 | 3 | 5 |"), "{text}");
        assert!(lines[5].starts_with("| stock, sys % | 13 |"), "{text}");
        assert!(lines[6].starts_with("| v2-repaired | 2 |"), "{text}");
    }

    #[test]
    fn rows_that_are_missing_or_moved_are_reported() {
        let moved = csv().replacen("none,2,", "none,3,", 1);
        assert!(by_threads("n", &moved).unwrap_err().0.contains("order"));
        let short = csv().lines().take(5).collect::<Vec<_>>().join("\n");
        assert!(by_threads("n", &short).unwrap_err().0.contains("4 rows"));
        assert!(
            by_threads("n", "a,b\n")
                .unwrap_err()
                .0
                .contains("scheduler")
        );
    }

    #[test]
    fn a_walk_is_the_time_of_the_function() {
        // 83616 I/Os and 16384 in flight; 1000 MB/s of 10,000 bytes each.
        let text = r#"{"functions": [
            {"function": "blk_mq_sched_restart", "hits": 51200, "mean_ns": 123456.0}],
            "jobs": [{"trim": {"iops": 0},
                "read": {"iops": 60000, "bw_bytes": 600e6, "total_ios": 50000},
                "write": {"iops": 40000, "bw_bytes": 400e6, "total_ios": 33616}}]}"#;
        let report: Value = serde_json::from_str(text).unwrap();
        let walk = Walk::of(&report).unwrap();
        assert_eq!(walk.cells(), ["1000", "123", "19.1", "8,000"]);
        assert!(Walk::of(&Value::Null).is_err());
    }

    #[test]
    fn a_component_that_did_nothing_has_no_cycles() {
        let text = r#"{"work": [{"component": "interrupt", "cycles_per_io": 931.4}]}"#;
        let report: Value = serde_json::from_str(text).unwrap();
        assert_eq!(component(&report, "interrupt").unwrap() as u64, 931);
        assert_eq!(component(&report, "tags").unwrap() as u64, 0);
        assert!(component(&Value::Null, "tags").is_err());
    }
}
