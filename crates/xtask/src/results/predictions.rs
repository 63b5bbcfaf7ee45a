//! Predictions: results of schedulers for published jobs, written down before any comparison; and
//! BFQ's gain where published figures leave engine and depth open.

use serde_json::Value;

use super::markdown::{columns, grouped, table};
use super::runs::{Blksim, iops, number, word};
use crate::step::{Failure, Result};

/// The jobs of Axboe, 19 January 2024.
const JOBS: [(&str, &str); 2] = [
    ("null_blk", "mq-deadline-scaling"),
    ("NVMe", "nvme-scaling"),
];
const THREADS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Throughput of those jobs under a scheduler.
pub(super) fn threads(blksim: &Blksim, scheduler: &str) -> Result<String> {
    let mut lines = Vec::new();
    for (_, scenario) in JOBS {
        for numjobs in THREADS {
            lines.push(format!(
                "run {scenario} --json --scheduler {scheduler} --set job.numjobs={numjobs}"
            ));
        }
    }
    let reports = blksim.all(&lines)?;
    let mut rows = Vec::new();
    for ((name, _), reports) in JOBS.iter().zip(reports.chunks(THREADS.len())) {
        for report in reports {
            let (share, longest) = waited_for(report)?;
            rows.push(vec![
                (*name).to_owned(),
                number(report, "/jobs/0/threads")?.to_string(),
                grouped(iops(report)? / 1000.0),
                format!("{:.1}", number(report, "/jobs/0/sys_cpu")?),
                format!("{:.1}", 100.0 * share),
                longest.to_owned(),
            ]);
        }
    }
    let header = [
        "device",
        "threads",
        "thousands of IOPS",
        "sys %",
        "lock %",
        "most contended lock",
    ];
    Ok(table(&columns(&header), &rows))
}

/// Share of time that waits for locks took, and the lock that was most contended lock.
fn waited_for(report: &Value) -> Result<(f64, &str)> {
    let locks = report.pointer("/locks").and_then(Value::as_array);
    let locks = locks.ok_or_else(|| Failure("a report has no locks".to_owned()))?;
    let (mut share, mut longest) = (0.0, (0.0, "-"));
    for lock in locks {
        let of_lock = number(lock, "/wait_share")?;
        share += of_lock;
        if of_lock > longest.0 {
            longest = (of_lock, word(lock, "/name")?);
        }
    }
    Ok((share, longest.1))
}

/// Processes of the next table, on all ten CPUs of the machine.
const PROCESSES: [u32; 8] = [1, 2, 3, 4, 5, 7, 10, 15];
const SCHEDULERS: [&str; 2] = ["kyber", "bfq"];

/// Shares of processes at one drive under Kyber and BFQ.
pub(super) fn processes(blksim: &Blksim) -> Result<String> {
    let line = |scheduler: &str, processes: u32| {
        format!(
            "run nvme-one-process --json --scheduler {scheduler} --set job.numjobs={processes} \
             --set job.cpus_allowed=0-9 --set job.cpus_allowed_policy=shared"
        )
    };
    let lines = SCHEDULERS.map(|scheduler| PROCESSES.map(|count| line(scheduler, count)));
    let reports = blksim.all(lines.as_flattened())?;
    let mut rows = Vec::new();
    for (scheduler, reports) in SCHEDULERS.iter().zip(reports.chunks(PROCESSES.len())) {
        let mut row = vec![(*scheduler).to_owned()];
        for report in reports {
            row.push(grouped(iops(report)? / 1000.0));
        }
        rows.push(row);
    }
    let counts = PROCESSES.map(|count| count.to_string());
    let mut header = vec!["thousands of IOPS, processes"];
    header.extend(counts.iter().map(String::as_str));
    Ok(table(&columns(&header), &rows))
}

/// Engines and depths that may have given the figure of Valente, March 2021.
const BURSTS: [(&str, u32); 7] = [
    ("psync", 1),
    ("libaio", 1),
    ("libaio", 4),
    ("libaio", 16),
    ("io_uring", 1),
    ("io_uring", 4),
    ("io_uring", 16),
];

/// The gain of stable merging for ten random readers, by engine and depth.
pub(super) fn burst(blksim: &Blksim) -> Result<String> {
    let mut lines = Vec::new();
    for (engine, depth) in BURSTS {
        for merge in ["never", "within-burst"] {
            lines.push(format!(
                "run bfq-burst --json --set queue.stable_merge={merge} --set job.ioengine={engine} \
                 --set job.iodepth={depth}"
            ));
        }
    }
    let reports = blksim.all(&lines)?;
    let mut rows = Vec::new();
    for ((engine, depth), pair) in BURSTS.iter().zip(reports.chunks(2)) {
        let (before, after) = (iops(&pair[0])?, iops(&pair[1])?);
        rows.push(vec![
            (*engine).to_owned(),
            depth.to_string(),
            grouped(before / 1000.0),
            grouped(after / 1000.0),
            format!("{:.2}", after / before),
        ]);
    }
    let header = [
        "ioengine",
        "iodepth",
        "thousands of IOPS without stable merging",
        "with it",
        "ratio",
    ];
    Ok(table(&columns(&header), &rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shares_of_all_locks_count_and_the_longest_is_named() {
        let report = json!({"locks": [
            {"name": "a", "wait_share": 0.25},
            {"name": "b", "wait_share": 0.5},
        ]});
        assert_eq!(waited_for(&report).unwrap(), (0.75, "b"));
        assert_eq!(waited_for(&json!({"locks": []})).unwrap(), (0.0, "-"));
        waited_for(&json!({})).expect_err("no locks");
    }
}
