//! Figures of Kyber: its targets under a flood of writes.

use serde_json::Value;

use super::markdown::{columns, grouped, table};
use super::runs::{Blksim, number, word};
use crate::step::{Failure, Result};

/// Runs of the scenario: their names and their settings.
const LATENCY: [(&str, &str); 6] = [
    ("none", "--scheduler none"),
    ("mq-deadline", "--scheduler mq-deadline"),
    ("kyber", ""),
    (
        "kyber, reads within 1 ms",
        "--set queue.read_lat_nsec=1000000",
    ),
    (
        "kyber, reads within 0.2 ms",
        "--set queue.read_lat_nsec=200000",
    ),
    (
        "kyber, writes within 4 ms, too",
        "--set queue.write_lat_nsec=4000000",
    ),
];

/// Reads against a flood of writes.
pub(super) fn latency(blksim: &Blksim) -> Result<String> {
    let lines: Vec<String> = LATENCY
        .iter()
        .map(|(_, set)| format!("run kyber-latency --json {set}"))
        .collect();
    let mut rows = Vec::new();
    for ((name, _), report) in LATENCY.iter().zip(blksim.all(&lines)?) {
        let ms = |path: &str| Ok(format!("{:.2}", number(&report, path)? / 1e6));
        rows.push(vec![
            (*name).to_owned(),
            grouped(number(&report, "/jobs/0/read/iops")?),
            ms("/jobs/0/read/clat_ns/percentile/90.000000")?,
            ms("/jobs/0/read/clat_ns/percentile/99.000000")?,
            grouped(number(&report, "/jobs/1/write/iops")?),
            ms("/jobs/1/write/clat_ns/percentile/99.000000")?,
            depth(&report)?,
            within(&report, "READ", "I/O")?,
            within(&report, "WRITE", "total")?,
        ]);
    }
    let header = [
        "scheduler",
        "reads/s",
        "90 %, ms",
        "99 %, ms",
        "writes/s",
        "99 %, ms",
        "tokens of writes",
        "reads: I/O, 90 %, within target",
        "writes: total, 99 %, within target",
    ];
    Ok(table(&columns(&header), &rows))
}

/// The entry of a group of requests, if the scheduler has tokens.
fn group<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    let mut groups = report.pointer("/tokens")?.as_array()?.iter();
    groups.find(|group| group["group"] == name)
}

/// Tokens of writes in the measured time: fewest and most.
fn depth(report: &Value) -> Result<String> {
    let Some(writes) = group(report, "WRITE") else {
        return Ok("-".to_owned());
    };
    let (least, most) = (number(writes, "/least")?, number(writes, "/most")?);
    Ok(match least < most {
        true => format!("{least} to {most}"),
        false => least.to_string(),
    })
}

/// How often a latency of a group was within its target, as the scheduler sees it.
fn within(report: &Value, name: &str, latency: &str) -> Result<String> {
    let Some(of_group) = group(report, name) else {
        return Ok("-".to_owned());
    };
    let latencies = of_group.pointer("/latencies").and_then(Value::as_array);
    let latencies = latencies.ok_or_else(|| Failure("tokens without latencies".to_owned()))?;
    for one in latencies {
        if word(one, "/latency")? == latency {
            let (met, of) = (number(one, "/within")?, number(one, "/calculated")?);
            return Ok(format!("{met} of {of} times"));
        }
    }
    Ok("never calculated".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn groups_are_found_and_a_scheduler_without_tokens_has_none() {
        let report = json!({"tokens": [{
            "group": "WRITE", "least": 8, "most": 16,
            "latencies": [{"latency": "total", "within": 3, "calculated": 4}],
        }]});
        assert_eq!(depth(&report).unwrap(), "8 to 16");
        assert_eq!(within(&report, "WRITE", "total").unwrap(), "3 of 4 times");
        assert_eq!(within(&report, "WRITE", "I/O").unwrap(), "never calculated");
        let none = json!({});
        assert_eq!(depth(&none).unwrap(), "-");
        assert_eq!(within(&none, "READ", "I/O").unwrap(), "-");
    }
}
