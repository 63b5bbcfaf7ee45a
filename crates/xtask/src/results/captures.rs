//! Tables about the captures of real kernels in traces/.

use std::fs;

use serde_json::Value;

use super::markdown::{columns, table};
use super::runs::{Blksim, each, number, word};
use crate::paths;
use crate::step::{Failure, Result};

/// A capture with the figures of all modes, where they apply.
struct Judged {
    name: String,
    /// Kernel: `6.1`.
    kernel: String,
    cells: [String; 4],
}

/// Result of conform for a capture in one mode: a report, or a refusal.
enum Said {
    Report(Value),
    Refused(String),
}

const MODES: [&str; 3] = ["calls", "records", "log"];

/// Captures of one CPU, by the beginnings of their names.
fn is_of_one_cpu(name: &str) -> bool {
    ["bf", "dd", "no"].iter().any(|head| name.starts_with(head))
}

/// Names of all folders, in order.
fn folders() -> Result<Vec<String>> {
    let dir = paths::root().join("traces");
    let entries = fs::read_dir(&dir);
    let entries = entries.map_err(|e| Failure(format!("traces: cannot read: {e}")))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("meta.txt").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    match names.is_empty() {
        true => Err(Failure("traces/ holds no capture".to_owned())),
        false => Ok(names),
    }
}

/// Captured devices of a folder, if it has a stacked one: each of them has its row.
fn devices(name: &str) -> Vec<String> {
    let files = paths::files_under(&paths::root().join("traces").join(name));
    let names = files.iter().filter_map(|file| file.file_name()?.to_str());
    let devices = names.filter_map(|name| Some(name.split_once(".blktrace.")?.0.to_owned()));
    let mut devices: Vec<String> = devices.collect();
    devices.sort();
    devices.dedup();
    match devices.iter().any(|device| device.starts_with("dm-")) {
        true => devices,
        false => Vec::new(),
    }
}

fn conform(blksim: &Blksim, name: &str, mode: &str, device: Option<&str>) -> Result<Said> {
    let device = device.map_or(String::new(), |device| format!(" --trace-device {device}"));
    let line = format!("conform traces/{name} --mode {mode} --json{device}");
    let printed = blksim.printed(&line)?;
    if printed.stdout.is_empty() {
        let what = printed.stderr.trim_end().trim_start_matches("error: ");
        return Ok(Said::Refused(what.to_owned()));
    }
    let json = serde_json::from_str(&printed.stdout);
    let json = json.map_err(|e| Failure(format!("`blksim {line}`: no JSON: {e}")))?;
    Ok(Said::Report(json))
}

/// `693/699, 4 not decidable`.
fn cell(said: &Said) -> Result<String> {
    let report = match said {
        Said::Refused(why) if why.contains("makes no dispatch calls") => return Ok("-".to_owned()),
        Said::Refused(why) if why.contains("no ftrace.txt") => return Ok("no probes".to_owned()),
        Said::Refused(why) if why.contains("no dispatch calls") => {
            return Ok("no calls".to_owned());
        }
        Said::Refused(why) => return Err(Failure(why.clone())),
        Said::Report(report) => report,
    };
    let [predicted, total, unjudged] =
        ["/predicted", "/total", "/unjudged"].map(|path| number(report, path));
    let (predicted, total, unjudged) = (predicted?, total?, unjudged?);
    Ok(match unjudged as u64 {
        0 => format!("{predicted}/{total}"),
        all if all as f64 >= total => "not decidable: clones".to_owned(),
        some => format!("{predicted}/{total}, {some} not decidable"),
    })
}

/// `3671/3671`, lines; a scheduler without a log has none.
fn log_cell(said: &Said) -> Result<String> {
    let report = match said {
        Said::Refused(why) if why.contains("writes no log") => return Ok("-".to_owned()),
        Said::Refused(why) if why.contains("makes no dispatch calls") => return Ok("-".to_owned()),
        Said::Refused(why) if why.contains("no message") => return Ok("no log".to_owned()),
        Said::Refused(why) => return Err(Failure(why.clone())),
        Said::Report(report) => report,
    };
    let [predicted, total, alone] =
        ["/log/predicted", "/log/total", "/log/alone"].map(|path| number(report, path));
    let (predicted, total, alone) = (predicted?, total?, alone?);
    Ok(match alone as u64 {
        0 => format!("{predicted}/{total}"),
        alone => format!("{predicted}/{total}, {alone} more"),
    })
}

/// `5/5`, the events of a scheduler's timer, and then its failed attempts to get a token; a capture
/// without such events has none.
fn events_cell(said: &Said) -> Result<String> {
    let report = match said {
        Said::Report(report) if !report["told"].is_null() => report,
        _ => return Ok("-".to_owned()),
    };
    let of = |name: &str| number(&report["told"], &format!("/{name}"));
    let mut cell = format!("{}/{}", of("predicted")?, of("total")?);
    if of("alone")? > 0.0 {
        cell += &format!(", {} more", of("alone")?);
    }
    if of("throttled")? > 0.0 {
        let (alike, all) = (of("throttled_alike")?, of("throttled")?);
        cell += &format!("; {alike}/{all} without a token");
    }
    if of("throttled_undecided")? > 0.0 {
        cell += &format!(", {} not decidable", of("throttled_undecided")?);
    }
    if of("throttled_alone")? > 0.0 {
        cell += &format!(", {} more", of("throttled_alone")?);
    }
    Ok(cell)
}

/// All captures of a kind with their figures, but those that are refused.
fn judged(blksim: &Blksim, one_cpu: bool) -> Result<Vec<Judged>> {
    let mut wanted = Vec::new();
    for name in folders()? {
        if is_of_one_cpu(&name) != one_cpu {
            continue;
        }
        match &devices(&name)[..] {
            [] => wanted.push((name, None)),
            all => wanted.extend(
                all.iter()
                    .map(|device| (name.clone(), Some(device.clone()))),
            ),
        }
    }
    let all = each(&wanted, |(name, device)| {
        let [calls, records, log] =
            MODES.map(|mode| conform(blksim, name, mode, device.as_deref()));
        Ok([calls?, records?, log?])
    })?;
    let mut judged = Vec::new();
    for ((name, device), [calls, records, log]) in wanted.iter().zip(all) {
        let Said::Report(report) = &records else {
            continue;
        };
        let kernel = word(report, "/rules")?.trim_start_matches('v').to_owned();
        judged.push(Judged {
            name: match device {
                None => name.clone(),
                Some(device) => format!("{name}, {device}"),
            },
            kernel,
            cells: [
                cell(&calls)?,
                cell(&records)?,
                events_cell(&calls)?,
                log_cell(&log)?,
            ],
        });
    }
    Ok(judged)
}

/// Captures of one CPU: each dispatch is decided by its records.
pub(super) fn one_cpu(blksim: &Blksim) -> Result<String> {
    Ok(rows(judged(blksim, true)?))
}

pub(super) fn more_cpus(blksim: &Blksim) -> Result<String> {
    Ok(rows(judged(blksim, false)?))
}

fn rows(all: Vec<Judged>) -> String {
    let row = |one: Judged| {
        let [calls, records, events, log] = one.cells;
        vec![one.name, one.kernel, calls, records, events, log]
    };
    let rows: Vec<Vec<String>> = all.into_iter().map(row).collect();
    let header = [
        "Capture",
        "Kernel",
        "Calls",
        "Records",
        "Events",
        "Log lines",
    ];
    table(&columns(&header), &rows)
}

/// Captures of multipath targets: each path that the target chose, the end of the clone there, and
/// how many choices distinguish its selector from another one.
pub(super) fn choices(blksim: &Blksim) -> Result<String> {
    let mut names = folders()?;
    names.retain(|name| !devices(name).is_empty());
    let all = each(&names, |name| {
        conform(blksim, name, "records", Some("dm-0"))
    })?;
    let mut rows = Vec::new();
    for (name, said) in names.iter().zip(all) {
        let report = match said {
            Said::Report(report) => report,
            Said::Refused(why) => return Err(Failure(why)),
        };
        rows.push(choices_row(name, &report)?);
    }
    let header = ["Capture", "Paths", "Clones", "Choices that differ"];
    Ok(table(&columns(&header), &rows))
}

fn choices_row(name: &str, report: &Value) -> Result<Vec<String>> {
    let cell = |of: &str| {
        let field = |field: &str| number(report, &format!("/{of}/{field}"));
        Ok(format!("{}/{}", field("predicted")?, field("total")?))
    };
    let others = report.pointer("/choices/distinguishing/each");
    let others = others.and_then(Value::as_array);
    let others = others.ok_or_else(|| Failure(format!("{name}: nothing distinguishes it")))?;
    let mut cells = Vec::new();
    for other in others {
        let (name, total) = (word(other, "/name")?, number(other, "/total")?);
        if total > 0.0 {
            cells.push(format!(
                "from {name} {}/{total}",
                number(other, "/predicted")?
            ));
        }
    }
    let cells = cells.join(", ");
    Ok(vec![
        name.to_owned(),
        cell("choices")?,
        cell("clones")?,
        cells,
    ])
}

/// Two captures of v6.1 under the rules of v6.12: a weak test would let them pass.
pub(super) fn other_rules(blksim: &Blksim) -> Result<String> {
    let mut cells = Vec::new();
    for name in ["m2-randread-mq-deadline", "m4-sq4-mq-deadline"] {
        let line = format!("conform traces/{name} --mode records --rules v6.12 --json");
        let cell = cell(&Said::Report(blksim.json(&line)?))?;
        cells.push(format!("{name} {cell}"));
    }
    let cells = cells.join("; ");
    Ok(format!(
        "Records under `--rules v6.12`, though the kernel was v6.1: {cells}.\n"
    ))
}

/// Captures that conform does not judge, with its reason.
pub(super) fn refused(blksim: &Blksim) -> Result<String> {
    let refused = refusals(blksim, &folders()?)?;
    Ok(refused
        .iter()
        .map(|(name, why)| format!("* {name}: {why}\n"))
        .collect())
}

/// Those of the captures that conform does not judge, each with its reason.
fn refusals(blksim: &Blksim, names: &[String]) -> Result<Vec<(String, String)>> {
    let all = each(names, |name| conform(blksim, name, "records", None))?;
    let refused = names.iter().zip(all).filter_map(|(name, said)| match said {
        Said::Refused(why) => Some((name.clone(), why)),
        Said::Report(_) => None,
    });
    Ok(refused.collect())
}

/// True of the reason that a scheduler is not modelled: such a capture cannot be replayed either.
fn is_not_modelled(why: &str) -> bool {
    why.contains(": scheduler ") && why.contains(" is not modelled")
}

/// Replays of single devices under the captured scheduler on the captured device: mean Q2C.
pub(super) fn replayed(blksim: &Blksim) -> Result<String> {
    let mut names = folders()?;
    names.retain(|name| is_of_one_cpu(name) || ON_MORE_CPUS.contains(&name.as_str()));
    let refused = refusals(blksim, &names)?;
    names.retain(|name| {
        let mut reasons = refused.iter().filter(|(refused, _)| refused == name);
        !reasons.any(|(_, why)| is_not_modelled(why))
    });
    let all = each(&names, |name| {
        blksim.json(&format!("replay traces/{name} --json"))
    })?;
    let mut rows = Vec::new();
    for (name, report) in names.iter().zip(&all) {
        let captured = number(report, "/columns/0/q2c/mean_ns")?;
        let simulated = number(report, "/columns/1/q2c/mean_ns")?;
        let percent = 100.0 * (simulated / captured - 1.0);
        let us = |ns: f64| format!("{:.1}", ns / 1000.0);
        rows.push(vec![
            name.clone(),
            us(captured),
            us(simulated),
            format!("{percent:+.2} %"),
        ]);
    }
    let header = ["Capture", "Captured, us", "Simulated, us", "Difference"];
    Ok(table(&columns(&header), &rows))
}

/// Two of several CPUs, to show how far those are off.
const ON_MORE_CPUS: [&str; 2] = ["m2-prio-mq-deadline", "m2-randread-none"];

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Said {
        Said::Report(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn cells_show_what_was_judged() {
        let said = report(r#"{"predicted": 9, "total": 9, "unjudged": 0}"#);
        assert_eq!(cell(&said).unwrap(), "9/9");
        let said = report(r#"{"predicted": 693, "total": 699, "unjudged": 4}"#);
        assert_eq!(cell(&said).unwrap(), "693/699, 4 not decidable");
        let said = report(r#"{"predicted": 0, "total": 300, "unjudged": 300}"#);
        assert_eq!(cell(&said).unwrap(), "not decidable: clones");
        for (why, cells) in [
            ("t: no ftrace.txt in this capture", "no probes"),
            ("t: scheduler none makes no dispatch calls; x", "-"),
            (
                "t: ftrace.txt has no dispatch calls (probe dd) of sda",
                "no calls",
            ),
        ] {
            assert_eq!(cell(&Said::Refused(why.to_owned())).unwrap(), cells);
        }
        let failure = cell(&Said::Refused("t: damaged".to_owned())).unwrap_err();
        assert_eq!(failure.0, "t: damaged");
        assert!(cell(&report("{}")).is_err());
    }

    #[test]
    fn choices_have_a_row() {
        let each = r#"[{"name": "queue-length", "predicted": 7, "total": 7},
            {"name": "service-time", "predicted": 0, "total": 0}]"#;
        let json = format!(
            r#"{{"choices": {{"predicted": 8, "total": 9, "distinguishing": {{"each": {each}}}}},
                "clones": {{"predicted": 9, "total": 9}}}}"#
        );
        let row = choices_row("mp-x", &serde_json::from_str(&json).unwrap());
        let expected = ["mp-x", "8/9", "9/9", "from queue-length 7/7"];
        assert_eq!(row.unwrap(), expected);
        let failure = choices_row("mp-x", &Value::Null).unwrap_err();
        assert!(failure.0.contains("mp-x"), "{failure}");
    }

    #[test]
    fn events_of_a_scheduler_have_a_cell() {
        let cells = |rest: &str| {
            report(&format!(
                r#"{{"told": {{"predicted": 3, "total": 4, "alone": 0, "throttled": 0, {rest}}}}}"#
            ))
        };
        let none = r#""throttled_alike": 0, "throttled_undecided": 0, "throttled_alone": 0"#;
        assert_eq!(events_cell(&cells(none)).unwrap(), "3/4");
        let all = report(
            r#"{"told": {"predicted": 5, "total": 5, "alone": 1, "throttled": 38,
            "throttled_alike": 36, "throttled_undecided": 1, "throttled_alone": 2}}"#,
        );
        let cell = "5/5, 1 more; 36/38 without a token, 1 not decidable, 2 more";
        assert_eq!(events_cell(&all).unwrap(), cell);
        for none in [report(r#"{"told": null}"#), report("{}")] {
            assert_eq!(events_cell(&none).unwrap(), "-");
        }
        assert_eq!(
            events_cell(&Said::Refused("no ftrace.txt".to_owned())).unwrap(),
            "-"
        );
        assert!(events_cell(&report(r#"{"told": {}}"#)).is_err());
    }

    #[test]
    fn a_scheduler_that_is_not_modelled_is_distinguished_from_other_reasons() {
        let why =
            "nullb0: scheduler cfq is not modelled yet; none, mq-deadline, kyber, bfq, noop are";
        assert!(is_not_modelled(why));
        for why in [
            "nullb0: the cache of this kernel is not modelled",
            "sda: scheduler none makes no dispatch calls; x",
            "nullb0: no Q in this capture",
        ] {
            assert!(!is_not_modelled(why), "{why}");
        }
    }

    #[test]
    fn a_stacked_device_and_its_paths_are_distinguished() {
        assert_eq!(
            devices("mp-service-time-mq-deadline"),
            ["dm-0", "sda", "sdb"]
        );
        assert_eq!(devices("m4-shared3-mq-deadline"), [""; 0]);
        let folders = folders().unwrap();
        assert!(folders.iter().any(|name| name == "dd01-defaults"));
    }
}
