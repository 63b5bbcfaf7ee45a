//! Finds the files of a capture: a directory, a list, or one file.
//!
//! A name gives the device and the CPU of a file, never its compression. Of the content only the
//! first record is read, for the number of a device, and the counts of blktrace.log and meta.txt.
//! Read first: blktrace(8), section on output files.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::bytes::Bytes;
use super::devices::Asked;
use super::event::Device;
use super::reader::DeviceChoice;
use super::record;
use super::stream::Shape;
use crate::packed::bare_name;
use crate::text::Lines;
use crate::{Error, Result};

/// CPUs without a file that a warning names.
const NAMED: usize = 8;

/// The files to read, in blkparse's order: device by device, CPU by CPU.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) files: Vec<(PathBuf, Shape)>,
    /// For each device: CPUs that should have a file and have none.
    pub(super) missing: Vec<Missing>,
    /// Number of the device that was asked for by name, if files beside a dump have it.
    pub(super) number: Option<Device>,
    /// The file blktrace.log and the number of dropped events that it reports.
    pub(super) dropped: Vec<(PathBuf, u64)>,
}

/// CPUs of a device without a file.
#[derive(Debug)]
pub(super) struct Missing {
    pub(super) cpus: u64,
    /// The file that shows it.
    pub(super) shown: PathBuf,
    /// Which CPUs, and why they should have a file.
    pub(super) sentence: String,
}

impl Missing {
    /// Nothing for no CPU. `have` is what they have instead of a file with events.
    fn new(device: &str, cpus: &[u32], have: &str, shown: &Path, why: &str) -> Option<Missing> {
        let named = cpus.iter().take(NAMED).map(u32::to_string);
        let named = named.collect::<Vec<_>>().join(", ");
        let cpu = match cpus.len() {
            0 => return None,
            1 => format!("CPU {named} has {have}"),
            2..=NAMED => format!("CPUs {named} have {have}"),
            more => format!("CPUs {named} and {} more have {have}", more - NAMED),
        };
        Some(Missing {
            cpus: cpus.len() as u64,
            shown: shown.to_path_buf(),
            sentence: format!("{device}: {cpu}{why}"),
        })
    }
}

/// Device name and CPU of `<device>.blktrace.<cpu>`, with an optional `.gz`, `.xz`, `.zst` or
/// `.bz2` after it.
pub fn parse_name(path: &Path) -> Option<(&str, u32)> {
    let name = bare_name(path.file_name()?.to_str()?);
    let (device, cpu) = name.rsplit_once(".blktrace.")?;
    let digits = !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit());
    if device.is_empty() || !digits {
        return None;
    }
    Some((device, cpu.parse().ok()?))
}

/// Finds the files that `paths` name.
pub(super) fn select(paths: &[&Path], choice: &DeviceChoice) -> Result<Selection> {
    let mut selection = Selection::default();
    let mut devices: BTreeMap<String, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    let mut dumps = Vec::new();
    for path in paths {
        for found in expand(path)? {
            let Some((device, cpu)) = parse_name(&found) else {
                dumps.push((found, Shape::Dump));
                continue;
            };
            if let Some(other) = devices
                .entry(device.to_owned())
                .or_default()
                .insert(cpu, found.clone())
            {
                let what = format!("CPU {cpu} a second time, after {}", other.display());
                return Err(Error::input(&found, what));
            }
        }
    }
    let Some(&path) = paths.first() else {
        return Err(Error::input(Path::new(""), "no input was named"));
    };
    keep_wanted(path, &mut devices, choice)?;
    for (device, cpus) in devices {
        let log = Log::beside(cpus.values().next(), &device);
        selection
            .missing
            .extend(missing(&device, &cpus, log.as_ref()));
        selection.files.extend(
            cpus.into_iter()
                .map(|(cpu, file)| (file, Shape::PerCpu(cpu))),
        );
        selection.dropped.extend(
            log.filter(|log| log.dropped > 0)
                .map(|log| (log.path, log.dropped)),
        );
    }
    if let DeviceChoice::Named(name) = choice {
        selection.number = dumps
            .iter()
            .find_map(|(dump, _)| number_beside(dump, &Asked::new(name)));
    }
    selection.files.extend(dumps);
    if selection.files.len() > usize::from(u16::MAX) / 2 {
        return Err(Error::input(path, "more than 32767 files"));
    }
    Ok(selection)
}

fn expand(path: &Path) -> Result<Vec<PathBuf>> {
    if path == Path::new("-") {
        return Ok(vec![path.to_path_buf()]);
    }
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => return Ok(vec![path.to_path_buf()]),
        Ok(_) => {
            let files = per_cpu_files(path, |_| true)?;
            if files.is_empty() {
                return Err(Error::input(
                    path,
                    "no file named <device>.blktrace.<cpu> in it",
                ));
            }
            return Ok(files);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::input(path, format!("cannot read: {error}"))),
    }
    // blkparse takes the name without the ending.
    let base = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
        .to_string();
    let files = per_cpu_files(folder_of(path), |device| device == base).unwrap_or_default();
    if files.is_empty() {
        return Err(Error::input(path, "cannot read: no such file or directory"));
    }
    Ok(files)
}

fn per_cpu_files(dir: &Path, device: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let io = |source| Error::io(dir, 0, source);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if parse_name(&path).is_some_and(|(name, _)| device(name)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn keep_wanted(
    path: &Path,
    devices: &mut BTreeMap<String, BTreeMap<u32, PathBuf>>,
    choice: &DeviceChoice,
) -> Result<()> {
    let names: Vec<&str> = devices.keys().map(String::as_str).collect();
    let names = names.join(", ");
    match choice {
        DeviceChoice::Only if devices.len() > 1 => Err(Error::input(
            path,
            format!("several devices, name one of them: {names}"),
        )),
        DeviceChoice::Named(_) if devices.is_empty() => Ok(()),
        DeviceChoice::Named(name) => {
            let asked = Asked::new(name);
            devices.retain(|device, cpus| {
                let first = || cpus.values().find_map(|file| first_device(file));
                *device == asked.name || asked.number.is_some_and(|n| first() == Some(n))
            });
            if devices.is_empty() {
                let what = format!("no device {name}, there are: {names}");
                return Err(Error::input(path, what));
            }
            Ok(())
        }
        DeviceChoice::Only | DeviceChoice::All => Ok(()),
    }
}

/// Device of a file's first record.
pub(crate) fn first_device(file: &Path) -> Option<Device> {
    record::device(&mut Bytes::open(file).ok()?)
}

/// Number of a device by name, from files `<device>.blktrace.<cpu>` beside a dump or a text.
fn number_beside(dump: &Path, asked: &Asked) -> Option<Device> {
    let files = per_cpu_files(folder_of(dump), |device| device == asked.name).ok()?;
    files.iter().find_map(|file| first_device(file))
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// CPUs of a device without a file, though blktrace.log counts events of them or, where there is no
/// such file, meta.txt has so many CPUs. Without both: those below the highest.
fn missing(device: &str, cpus: &BTreeMap<u32, PathBuf>, log: Option<&Log>) -> Vec<Missing> {
    let Some((highest, last)) = cpus.last_key_value() else {
        return Vec::new();
    };
    let folder = folder_of(last);
    let there = |cpu: &u32| {
        cpus.contains_key(cpu)
            || per_cpu_files(folder, |name| name == device).is_ok_and(|files| {
                files
                    .iter()
                    .any(|file| parse_name(file).is_some_and(|(_, n)| n == *cpu))
            })
    };
    if let Some(log) = log.filter(|log| !log.events.is_empty()) {
        let traced = log.events.iter().filter(|(_, events)| **events > 0);
        // An empty file lacks them as well; a damaged one is reported where it is read.
        let empty = |cpu: &u32| {
            let file = cpus.get(cpu)?;
            // An empty file has 32 bytes as xz, and fewer in the other forms.
            let small = std::fs::metadata(file).ok()?.len() <= 64;
            Some(small && matches!(super::is_empty(file), Ok(true)))
        };
        let (mut none, mut nothing) = ((Vec::new(), 0), (Vec::new(), 0));
        for (cpu, events) in traced {
            let (list, sum) = match (there(cpu), empty(cpu)) {
                (false, _) => &mut none,
                (true, Some(true)) => &mut nothing,
                _ => continue,
            };
            list.push(*cpu);
            *sum += events;
        }
        let path = &log.path;
        let said = [(none, "no file"), (nothing, "an empty file")].into_iter();
        let said = said.filter_map(|((cpus, events), have)| {
            let them = if cpus.len() > 1 { "them" } else { "it" };
            let why = format!("; {} counts {events} events of {them}", path.display());
            Missing::new(device, &cpus, have, path, &why)
        });
        return said.collect();
    }
    let meta = [
        "meta.txt",
        "meta.txt.xz",
        "meta.txt.gz",
        "meta.txt.zst",
        "meta.txt.bz2",
    ]
    .map(|name| folder.join(name));
    let counted = meta
        .into_iter()
        .find_map(|file| Some((cpus_of(&file)?, file)))
        .filter(|(count, _)| count > highest);
    let (count, shown, why) = match counted {
        Some((count, meta)) => {
            let why = format!("; {} has {count} CPUs", meta.display());
            (count, meta, why)
        }
        None => (0, last.clone(), format!(", though CPU {highest} has one")),
    };
    let all = 0..count.max(highest.saturating_add(1)).min(65_536);
    let absent: Vec<u32> = all.filter(|cpu| !there(cpu)).collect();
    let missing = Missing::new(device, &absent, "no file", &shown, &why);
    missing.into_iter().collect()
}

/// `cpus=N` of meta.txt.
fn cpus_of(meta: &Path) -> Option<u32> {
    let mut lines = Lines::open(meta).ok()?;
    while lines.advance().ok()? {
        if let Some(count) = lines.line().strip_prefix("cpus=") {
            return count.trim().parse().ok();
        }
    }
    None
}

/// The section of a device of what blktrace printed, saved beside the files.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// Events by CPU.
    events: BTreeMap<u32, u64>,
    dropped: u64,
}

impl Log {
    fn beside(file: Option<&PathBuf>, device: &str) -> Option<Log> {
        let path = folder_of(file?).join("blktrace.log");
        let text = std::fs::read_to_string(&path).ok()?;
        Some(Log::read(path, &text, device))
    }

    fn read(path: PathBuf, text: &str, device: &str) -> Log {
        let mut log = Log {
            path,
            events: BTreeMap::new(),
            dropped: 0,
        };
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            let name = line
                .strip_prefix("=== ")
                .and_then(|rest| rest.strip_suffix(" ==="));
            if let Some(name) = name {
                inside = name == device;
            } else if inside && line.starts_with("Total:") {
                let count = line.split_once("(dropped ");
                let count = count.and_then(|(_, rest)| rest.split_once(')'));
                log.dropped = count.and_then(|(n, _)| n.trim().parse().ok()).unwrap_or(0);
                inside = false;
            } else if inside && let Some((cpu, rest)) = line.split_once(':') {
                let cpu: Option<u32> = cpu
                    .strip_prefix("CPU")
                    .and_then(|cpu| cpu.trim().parse().ok());
                let events: Option<u64> =
                    rest.split_whitespace().next().and_then(|n| n.parse().ok());
                log.events.extend(cpu.zip(events));
            }
        }
        log
    }
}

#[cfg(test)]
mod tests;
