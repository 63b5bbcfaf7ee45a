//! Q2C and D2C of the captures, by `blksim analyze` and by btt: count, mean and maximum agree.
//!
//! btt is Debian's package `blktrace`; without it the check is skipped, except where CI=true.
//! `blksim` prints JSON: `{"q2c": {"count", "mean_ns", "max_ns"}, "d2c": {...}}`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::build::Build;
use crate::paths;
use crate::step::{self, Failure, Outcome, Result, Run};

const METRICS: &[&str] = &["Q2C", "D2C"];

/// btt prints nine decimals of a second, so half a nanosecond is lost; ours may have been cut.
const MEAN_TOLERANCE_NS: f64 = 1.0;

/// Deltas of one kind over a whole capture.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Delta {
    count: u64,
    mean_ns: f64,
    max_ns: u64,
}

/// By metric; a metric without a delta is not there.
type Deltas = BTreeMap<String, Delta>;

/// Compare every device of every binary capture under `traces/`.
pub(crate) fn run() -> Result {
    if let Some(reason) = missing() {
        return step::missing_tool(&reason);
    }
    let blksim = Build::Release.blksim()?;
    print!("{}", compared(&blksim)?);
    Ok(Outcome::Passed)
}

/// A line on the agreement, for docs/results/captures.md. Nothing if a tool is missing.
pub(crate) fn agreement(blksim: &Path) -> Result<Option<String>> {
    match missing() {
        None => compared(blksim).map(Some),
        Some(_) => Ok(None),
    }
}

/// The first tool that is not there, with its package.
fn missing() -> Option<String> {
    let tools = [
        ("btt", "blktrace"),
        ("blkparse", "blktrace"),
        ("xz", "xz-utils"),
    ];
    let absent = |(program, package)| {
        (!paths::has_program(program))
            .then(|| format!("{program} is missing: apt-get install {package}"))
    };
    tools.into_iter().find_map(absent)
}

/// Compares all of them and returns a summary; a difference is a failure.
fn compared(blksim: &Path) -> Result<String> {
    let captures = captures();
    if captures.is_empty() {
        return Err(Failure("traces/ holds no binary capture".to_owned()));
    }
    let scratch = paths::target_dir().join("btt");
    let (mut compared, mut wrong) = (0, Vec::new());
    for ((folder, device), files) in &captures {
        let theirs = by_btt(&scratch, device, files)?;
        let ours = by_blksim(blksim, files)?;
        compared += theirs.values().map(|delta| delta.count).sum::<u64>();
        for difference in differences(&ours, &theirs) {
            wrong.push(format!("{folder}, {device}: {difference}"));
        }
    }
    if !wrong.is_empty() || compared == 0 {
        return Err(Failure(format!(
            "analyze and btt differ:\n{}",
            wrong.join("\n")
        )));
    }
    Ok(format!(
        "Q2C and D2C (count, mean, maximum) of {} captured devices, {compared} deltas by btt: \
         equal.\n",
        captures.len()
    ))
}

/// Per-CPU files of each captured device, by folder and device.
fn captures() -> BTreeMap<(String, String), Vec<PathBuf>> {
    let root = paths::root();
    let mut captures: BTreeMap<(String, String), Vec<PathBuf>> = BTreeMap::new();
    for path in paths::files_under(&root.join("traces")) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some((device, cpu)) = name.split_once(".blktrace.") else {
            continue;
        };
        if cpu.starts_with(|c: char| c.is_ascii_digit()) {
            let folder = path.parent().unwrap_or(&root).strip_prefix(&root);
            let folder = folder
                .map(|folder| folder.display().to_string())
                .unwrap_or_default();
            captures
                .entry((folder, device.to_owned()))
                .or_default()
                .push(path);
        }
    }
    captures
}

/// btt wants one plain file, which blkparse makes of the per-CPU ones.
fn by_btt(scratch: &Path, device: &str, files: &[PathBuf]) -> Result<Deltas> {
    let io = |error: std::io::Error| Failure(format!("{}: {error}", scratch.display()));
    if scratch.exists() {
        fs::remove_dir_all(scratch).map_err(io)?;
    }
    fs::create_dir_all(scratch).map_err(io)?;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let plain = scratch.join(name.trim_end_matches(".xz").trim_end_matches(".gz"));
        let bytes = match file.extension().and_then(|kind| kind.to_str()) {
            Some("xz") => Run::new("xz", &["-dc"]).arg(file).stdout()?,
            Some("gz") => Run::new("gzip", &["-dc"]).arg(file).stdout()?,
            _ => fs::read(file).map_err(io)?,
        };
        fs::write(plain, bytes).map_err(io)?;
    }
    let merge = ["-q", "-O", "-i", device, "-d", "merged.bin"];
    Run::new("blkparse", &merge).current_dir(scratch).stdout()?;
    let table = Run::new("btt", &["-i", "merged.bin"])
        .current_dir(scratch)
        .stdout()?;
    Ok(deltas_of_btt(&String::from_utf8_lossy(&table)))
}

/// The lines `Q2C  min avg max count` of the first table; times are in seconds.
fn deltas_of_btt(table: &str) -> Deltas {
    let mut deltas = Deltas::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [metric, _, mean, max, count] = words[..] else {
            continue;
        };
        let (Some(mean), Some(max), Ok(count)) = (ns(mean), ns(max), count.parse()) else {
            continue;
        };
        if METRICS.contains(&metric) {
            let delta = Delta {
                count,
                mean_ns: mean as f64,
                max_ns: max,
            };
            deltas.entry(metric.to_owned()).or_insert(delta);
        }
    }
    deltas
}

/// Seconds with nine decimals as nanoseconds, without the detour through a float.
fn ns(seconds: &str) -> Option<u64> {
    let (whole, part) = seconds.split_once('.')?;
    let part = (part.len() == 9).then_some(part)?;
    Some(whole.parse::<u64>().ok()? * 1_000_000_000 + part.parse::<u64>().ok()?)
}

fn by_blksim(blksim: &Path, files: &[PathBuf]) -> Result<Deltas> {
    let mut run = Run::new(blksim, &["analyze", "--json"]);
    for file in files {
        run = run.arg(file);
    }
    let line = run.line();
    let json = run.stdout()?;
    deltas_of_json(&json).map_err(|error| Failure(format!("`{line}`: {error}")))
}

fn deltas_of_json(json: &[u8]) -> std::result::Result<Deltas, String> {
    let report: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let mut deltas = Deltas::new();
    for metric in METRICS {
        let of = |name| format!("/{}/{name}", metric.to_lowercase());
        let whole = |name| report.pointer(&of(name)).and_then(Value::as_u64);
        let mean = report.pointer(&of("mean_ns")).and_then(Value::as_f64);
        match (whole("count"), mean, whole("max_ns")) {
            (Some(0), ..) => {}
            (Some(count), Some(mean_ns), Some(max_ns)) => {
                let delta = Delta {
                    count,
                    mean_ns,
                    max_ns,
                };
                deltas.insert((*metric).to_owned(), delta);
            }
            _ => return Err(format!("the report has no numbers for {metric}")),
        }
    }
    Ok(deltas)
}

fn differences(ours: &Deltas, theirs: &Deltas) -> Vec<String> {
    let mut found = Vec::new();
    for metric in METRICS {
        let (ours, theirs) = (ours.get(*metric), theirs.get(*metric));
        let agree = match (ours, theirs) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                let mean = (a.mean_ns - b.mean_ns).abs() <= MEAN_TOLERANCE_NS;
                a.count == b.count && mean && a.max_ns == b.max_ns
            }
            _ => false,
        };
        if !agree {
            found.push(format!("{metric}: ours {ours:?}, btt's {theirs:?}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{deltas_of_btt, deltas_of_json, differences};

    const TABLE: &str = "
            ALL           MIN           AVG           MAX           N
--------------- ------------- ------------- ------------- -----------

Q2Q               0.000011650   0.000024587   0.000718742         128
D2C               0.002003380   0.002003679   0.002004072         129
Q2C               1.002031970   1.127889060   1.256006724         129

# Total System
D2C               0.000000001   0.000000001   0.000000001           1
";

    fn json(q2c_mean: &str, d2c_max: &str) -> String {
        format!(
            r#"{{"q2c": {{"count": 129, "mean_ns": {q2c_mean}, "max_ns": 1256006724}},
                "d2c": {{"count": 129, "mean_ns": 2003679, "max_ns": {d2c_max}}}}}"#
        )
    }

    #[test]
    fn equal_statistics_agree() {
        let theirs = deltas_of_btt(TABLE);
        assert_eq!(theirs.len(), 2);
        let ours = deltas_of_json(json("1127889060.4", "2004072").as_bytes()).expect("JSON");
        assert_eq!(differences(&ours, &theirs), [""; 0]);
    }

    #[test]
    fn each_difference_is_found() {
        let theirs = deltas_of_btt(TABLE);
        for (mean, max) in [("1127889063", "2004072"), ("1127889060", "2004073")] {
            let ours = deltas_of_json(json(mean, max).as_bytes()).expect("JSON");
            assert_eq!(differences(&ours, &theirs).len(), 1, "{mean} {max}");
        }
        let less = json("1127889060", "2004072").replace("129", "128");
        let ours = deltas_of_json(less.as_bytes()).expect("JSON");
        assert_eq!(differences(&ours, &theirs).len(), 2);
        let ours = deltas_of_json(json("1", "1").replace("129", "0").as_bytes()).expect("JSON");
        assert_eq!(
            differences(&ours, &theirs).len(),
            2,
            "nothing matched is no agreement"
        );
        assert!(deltas_of_json(b"{}").is_err());
    }
}
