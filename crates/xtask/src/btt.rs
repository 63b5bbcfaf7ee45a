//! btt's tables of the captures, by `blksim analyze --json` and by btt: every figure agrees; and
//! their text, by `blksim dump` and by blkparse (`btt/text.rs`).
//!
//! btt is Debian's package `blktrace`; without it the check is skipped, except where CI=true. Left
//! out are the median of seeks, for which btt prints the root of its tree, and which of several
//! modes of seeks comes first, which depends on the shape of that tree.

mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::build::Build;
use crate::paths;
use crate::step::{self, Failure, Outcome, Result, Run};

/// Figures by table and row: `All Devices/Q2C`, `Plug Information/(252,0)`.
type Figures = BTreeMap<String, Vec<Figure>>;

/// A number as btt printed it: with so many digits after the point.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    value: f64,
    decimals: i32,
}

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
    let (mut compared, mut lines, mut wrong) = (0, text::Lines::default(), Vec::new());
    for (folder, files) in &captures {
        let theirs = by_btt(&scratch, files)?;
        let ours = by_blksim(blksim, files)?;
        compared += theirs.values().map(Vec::len).sum::<usize>();
        let mut found = differences(&ours, &theirs);
        let mut devices: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for file in files {
            let device = device_of(file).unwrap_or_default().to_owned();
            devices.entry(device).or_default().push(file.clone());
        }
        for (device, files) in &devices {
            found.extend(text::compare(blksim, &scratch, device, files, &mut lines)?);
        }
        for difference in found {
            wrong.push(format!("{folder}: {difference}"));
        }
    }
    if !wrong.is_empty() || compared == 0 {
        return Err(Failure(format!(
            "analyze and btt, or dump and blkparse differ:\n{}",
            wrong.join("\n")
        )));
    }
    Ok(format!(
        "Latencies, overhead, merging, seeks, plugs and active periods of {} captures, {compared} \
         figures by btt: equal.\n\
         Text of the same devices by dump and by blkparse (default with summary, -s, -f, -F, -a, \
         -A, -t, -w, --hash-by-name): {} lines equal; {} lines of -t for which blkparse has no \
         defined time.\n",
        captures.len(),
        lines.equal,
        lines.without_time
    ))
}

/// Per-CPU files of all devices of each capture, by folder.
fn captures() -> BTreeMap<String, Vec<PathBuf>> {
    let root = paths::root();
    let mut captures: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in paths::files_under(&root.join("traces")) {
        if device_of(&path).is_some() {
            let folder = path.parent().unwrap_or(&root).strip_prefix(&root);
            let folder = folder.unwrap_or(&root).display().to_string();
            captures.entry(folder).or_default().push(path);
        }
    }
    captures
}

/// `sda` of `sda.blktrace.0.xz`.
fn device_of(path: &Path) -> Option<&str> {
    let (device, cpu) = path.file_name()?.to_str()?.split_once(".blktrace.")?;
    cpu.starts_with(|c: char| c.is_ascii_digit())
        .then_some(device)
}

/// btt wants one plain file, which blkparse makes of the per-CPU ones.
fn by_btt(scratch: &Path, files: &[PathBuf]) -> Result<Figures> {
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
    let mut devices: Vec<&str> = files.iter().filter_map(|file| device_of(file)).collect();
    devices.dedup();
    // blkparse stops at the first CPU without a file, as one that traced nothing leaves none.
    for device in &devices {
        let first = scratch.join(format!("{device}.blktrace.0"));
        if !first.exists() {
            fs::write(first, []).map_err(io)?;
        }
    }
    let inputs = devices.into_iter().flat_map(|device| ["-i", device]);
    let merge: Vec<&str> = ["-q", "-O", "-d", "merged.bin"]
        .into_iter()
        .chain(inputs)
        .collect();
    Run::new("blkparse", &merge).current_dir(scratch).stdout()?;
    let table = Run::new("btt", &["-i", "merged.bin"])
        .current_dir(scratch)
        .stdout()?;
    Ok(printed(&String::from_utf8_lossy(&table)))
}

/// Tables for which each row is a device, and the columns that are compared.
const TABLES: [(&str, &[usize]); 7] = [
    ("Device Overhead", &[0, 1, 2, 3, 4]),
    ("Device Merge Information", &[0, 1, 2, 3, 4, 5, 6]),
    ("Device Q2Q Seek Information", &[0, 1, 4]),
    ("Device D2D Seek Information", &[0, 1, 4]),
    ("Plug Information", &[0, 1, 2]),
    ("Active Requests At Q Information", &[0]),
    ("I/O Active Period Information", &[0, 1, 2, 3]),
];

/// The tables that btt printed.
fn printed(text: &str) -> Figures {
    let (mut figures, mut table) = (Figures::new(), "");
    for line in text.lines() {
        let title = line.strip_prefix("==================== ");
        if let Some(title) = title.and_then(|title| title.strip_suffix(" ====================")) {
            table = title;
            continue;
        }
        if table == "All Devices" {
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers: Vec<Figure> = words
                .iter()
                .skip(1)
                .filter_map(|word| number(word))
                .collect();
            if numbers.len() == 4 {
                figures.insert(format!("{table}/{}", words[0]), numbers);
            }
        }
        let columns = TABLES.iter().find(|(name, _)| *name == table);
        let (Some((_, columns)), Some((row, rest))) = (columns, line.split_once('|')) else {
            continue;
        };
        let row: String = row.chars().filter(|c| !c.is_whitespace()).collect();
        let words = rest.split(|c: char| c.is_whitespace() || "|(%)".contains(c));
        let numbers: Vec<Figure> = words.filter_map(number).collect();
        // Requests an unplug have a table of their own under the same title.
        let kind = match (table, numbers.len()) {
            ("Plug Information", 2) => "Requests an Unplug",
            _ => table,
        };
        let device = row.starts_with('(') || row == "Overall" || row == "TotalSys";
        if device && !numbers.is_empty() {
            let picked = columns
                .iter()
                .filter_map(|column| numbers.get(*column).copied());
            figures.insert(format!("{kind}/{row}"), picked.collect());
        }
    }
    figures
}

fn number(word: &str) -> Option<Figure> {
    let value = word.parse().ok()?;
    let decimals = word
        .split_once('.')
        .map_or(0, |(_, part)| part.len() as i32);
    Some(Figure { value, decimals })
}

fn by_blksim(blksim: &Path, files: &[PathBuf]) -> Result<BTreeMap<String, Vec<f64>>> {
    let mut run = Run::new(blksim, &["analyze", "--json"]);
    for file in files {
        run = run.arg(file);
    }
    let line = run.line();
    let json = run.stdout()?;
    let report: Value =
        serde_json::from_slice(&json).map_err(|error| Failure(format!("`{line}`: {error}")))?;
    Ok(reported(&report))
}

/// A number of a report; not a number if it has none there.
fn get(of: &Value, at: &str) -> f64 {
    of.pointer(at).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// The same figures, as btt calculates them from what we counted.
fn reported(report: &Value) -> BTreeMap<String, Vec<f64>> {
    let mut figures = BTreeMap::new();
    for (name, of) in report["btt"].as_object().into_iter().flatten() {
        let spans = ["/min_ns", "/mean_ns", "/max_ns"].map(|at| get(of, at) / 1e9);
        let row = spans.into_iter().chain([get(of, "/count")]).collect();
        let name = name.to_uppercase().replace("DM", "dm");
        figures.insert(format!("All Devices/{name}"), row);
    }
    let system = "I/O Active Period Information/TotalSys";
    figures.insert(system.to_owned(), active(report));
    for of in report["devices"].as_array().into_iter().flatten() {
        let number = of["device"].as_str().unwrap_or_default();
        for (table, row) in of_device(of, number) {
            figures.insert(format!("{table}/({number})"), row);
        }
    }
    if figures
        .keys()
        .any(|name| name.starts_with("Device Overhead"))
    {
        figures.insert("Device Overhead/Overall".to_owned(), overhead(report));
    }
    figures
}

fn overhead(of: &Value) -> Vec<f64> {
    let parts = ["q2g", "g2i", "q2m", "i2d", "d2c"].into_iter();
    parts
        .map(|part| get(of, &format!("/btt_overhead_percent/{part}")))
        .collect()
}

fn active(of: &Value) -> Vec<f64> {
    let periods = get(of, "/active/periods");
    let [total, whole] = ["/active/total_ns", "/active/last_ns"].map(|at| get(of, at) / 1e9);
    match periods {
        0.0 => vec![0.0; 4],
        // btt's mean of one period is 0.
        1.0 => vec![1.0, 0.0, 0.0, 100.0],
        _ => {
            let apart = (whole - total) / (periods - 1.0);
            vec![periods, total / periods, apart, 100.0 * total / whole]
        }
    }
}

/// Tables that have a row of this device, and the row.
fn of_device(of: &Value, number: &str) -> Vec<(&'static str, Vec<f64>)> {
    let mut rows = vec![("I/O Active Period Information", active(of))];
    let (queued, issued) = (get(of, "/q"), get(of, "/d"));
    // btt has no fewer Qs than Ds once it has printed their ratio.
    let mut most = queued;
    if of.pointer("/btt/q2c").is_some() {
        rows.push(("Device Overhead", overhead(of)));
    }
    if queued > 0.0 && issued > 0.0 {
        most = queued.max(issued);
        let [least, greatest, total] =
            ["min", "max", "total"].map(|name| get(of, &format!("/completed_sectors/{name}")));
        let mean = (total / issued).floor();
        let row = vec![most, issued, most / issued, least, mean, greatest, total];
        rows.push(("Device Merge Information", row));
    }
    let tables = [
        ("Device Q2Q Seek Information", "q2q"),
        ("Device D2D Seek Information", "d2d"),
    ];
    for (table, kind) in tables {
        let names = ["count", "mean_sectors", "mode_count"];
        let row = names.map(|name| get(of, &format!("/seeks/{kind}/{name}")));
        if row[0] > 0.0 {
            rows.push((table, row.to_vec()));
        }
    }
    let plugs = |name: &str| get(of, &format!("/plugs/{name}"));
    let (unplugs, timed) = (plugs("unplugs"), plugs("timer_unplugs"));
    if unplugs + timed > 0.0 {
        let row = vec![unplugs, timed, plugs("plugged_percent")];
        rows.push(("Plug Information", row));
    }
    let each = |requests: f64, unplugs: f64| requests / unplugs.max(1.0);
    let requests = [
        each(plugs("requests"), unplugs),
        each(plugs("timer_requests"), timed),
    ];
    rows.push(("Requests an Unplug", requests.to_vec()));
    if queued > 0.0
        && !["9,", "253,", "254,"]
            .iter()
            .any(|major| number.starts_with(major))
    {
        let waiting = get(of, "/waiting_at_q_mean") * queued / most;
        rows.push(("Active Requests At Q Information", vec![waiting]));
    }
    rows
}

/// What btt printed and what we say, where they differ by more than the last digit of btt's.
fn differences(ours: &BTreeMap<String, Vec<f64>>, theirs: &Figures) -> Vec<String> {
    let near = |(our, their): (&f64, &Figure)| {
        (our - their.value).abs()
            <= 1.01 * 10_f64.powi(-their.decimals) * f64::from(their.decimals.min(1))
    };
    let mut found = Vec::new();
    let missing = ours.keys().filter(|name| !theirs.contains_key(*name));
    found.extend(missing.map(|name| format!("{name}: btt has no such row")));
    for (name, theirs) in theirs {
        let agree = ours
            .get(name)
            .is_some_and(|ours| ours.len() == theirs.len() && ours.iter().zip(theirs).all(near));
        if !agree {
            let theirs: Vec<f64> = theirs.iter().map(|figure| figure.value).collect();
            found.push(format!(
                "{name}: ours {:?}, btt's {theirs:?}",
                ours.get(name)
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
==================== All Devices ====================

            ALL           MIN           AVG           MAX           N
--------------- ------------- ------------- ------------- -----------

Q2C               1.002031970   1.127889060   1.256006724         129

==================== Plug Information ====================

       DEV |    # Plugs # Timer Us  | % Time Q Plugged
---------- | ---------- ----------  | ----------------
 (252,  0) |        322(         0) |   6.248486952%

       DEV |    IOs/Unp   IOs/Unp(to)
---------- | ----------   ----------
 (252,  0) |        3.1          0.0
";

    #[test]
    fn each_difference_is_found() {
        let theirs = printed(TABLE);
        let exact = |figures: &Vec<Figure>| figures.iter().map(|of| of.value).collect();
        let ours: BTreeMap<String, Vec<f64>> = theirs
            .iter()
            .map(|(name, figures)| (name.clone(), exact(figures)))
            .collect();
        assert_eq!(ours.len(), 3);
        assert_eq!(differences(&ours, &theirs), [""; 0]);
        for (name, figures) in &ours {
            for (at, by) in figures
                .iter()
                .enumerate()
                .map(|(at, value)| (at, value.max(1.0) / 9.0))
            {
                let mut wrong = ours.clone();
                wrong.get_mut(name).expect("it is there")[at] += by;
                assert_eq!(differences(&wrong, &theirs).len(), 1, "{name} {at}");
            }
        }
        assert_eq!(differences(&BTreeMap::new(), &theirs).len(), 3);
    }
}
