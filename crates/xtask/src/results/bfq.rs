//! Figures of BFQ: an application that starts next to greedy readers and writers.

use serde_json::Value;

use super::blocks::Made;
use super::cfq::picture;
use super::markdown::{columns, grouped, table};
use super::runs::{Blksim, number, word};
use crate::step::{Failure, Result};

/// Runs of the scenario: their names, their settings, and whether there are others while the
/// application starts.
const STARTUP: [(&str, &str, bool); 6] = [
    ("no other load", "--scheduler none --runtime 400ms", false),
    ("none", "--scheduler none", true),
    ("mq-deadline", "--scheduler mq-deadline", true),
    ("kyber", "--scheduler kyber", true),
    ("bfq", "", true),
    ("bfq, low_latency = 0", "--set queue.low_latency=0", true),
];

/// An application that starts beside readers and writers.
pub(super) fn startup(blksim: &Blksim) -> Result<Made> {
    let lines: Vec<String> = STARTUP
        .iter()
        .map(|(_, set, _)| format!("run bfq-startup --json {set}"))
        .collect();
    let mut rows = Vec::new();
    for (&(name, _, beside), report) in STARTUP.iter().zip(blksim.all(&lines)?) {
        let start = job(&report, "start")?;
        let ms = |path: &str| Ok(format!("{:.2}", number(start, path)? / 1e6));
        let rate = |name: &str, direction: &str| -> Result<String> {
            if !beside {
                return Ok("-".to_owned());
            }
            let path = format!("/{direction}/bw_bytes");
            Ok(grouped(number(job(&report, name)?, &path)? / 1e6))
        };
        rows.push(vec![
            name.to_owned(),
            number(start, "/job_runtime")?.to_string(),
            ms("/read/clat_ns/mean")?,
            ms("/read/clat_ns/percentile/99.000000")?,
            rate("reader", "read")?,
            rate("writer", "write")?,
        ]);
    }
    let header = [
        "scheduler",
        "started within, ms",
        "its reads: mean, ms",
        "99 %, ms",
        "readers, MB/s",
        "writers, MB/s",
    ];
    let service = picture(blksim, "plot bfq-startup", "scheduler", "bfq-startup")?;
    Ok(Made {
        body: table(&columns(&header), &rows),
        files: vec![service],
    })
}

/// The entry of a job.
fn job<'a>(report: &'a Value, name: &str) -> Result<&'a Value> {
    let jobs = report.pointer("/jobs").and_then(Value::as_array);
    for job in jobs.into_iter().flatten() {
        if word(job, "/jobname")? == name {
            return Ok(job);
        }
    }
    Err(Failure(format!("a report has no job {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn jobs_are_found_by_name() {
        let report = json!({"jobs": [{"jobname": "reader", "n": 1}, {"jobname": "start", "n": 2}]});
        assert_eq!(job(&report, "start").unwrap()["n"], 2);
        let failure = job(&report, "writer").unwrap_err();
        assert!(failure.0.contains("no job writer"), "{failure}");
        assert!(job(&Value::Null, "start").is_err());
    }
}
