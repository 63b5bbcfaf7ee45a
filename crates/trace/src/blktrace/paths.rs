//! Finds the files of a capture: a directory, a list, or one file.
//!
//! Looks at names only. A name gives the device and the CPU of a file, never its compression.
//! Read first: blktrace(8), section on output files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::reader::DeviceChoice;
use super::stream::Shape;
use crate::{Error, Result};

/// The files to read, in blkparse's order: device by device, CPU by CPU.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) files: Vec<(PathBuf, Shape)>,
    /// Device and CPU of each number below the highest that has no file, and the file after it.
    pub(super) missing: Vec<usize>,
    /// The file blktrace.log and the number of dropped events that it reports.
    pub(super) dropped: Vec<(PathBuf, u64)>,
}

/// Device name and CPU of `<device>.blktrace.<cpu>`, with an optional `.gz` or `.xz` after it.
pub(super) fn parse_name(path: &Path) -> Option<(String, u32)> {
    let name = path.file_name()?.to_str()?;
    let name = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".xz"))
        .unwrap_or(name);
    let (device, cpu) = name.rsplit_once(".blktrace.")?;
    let digits = !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit());
    if device.is_empty() || !digits {
        return None;
    }
    Some((device.to_string(), cpu.parse().ok()?))
}

/// Finds the files that `paths` name.
pub(super) fn select(paths: &[PathBuf], choice: &DeviceChoice) -> Result<Selection> {
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
                .entry(device)
                .or_default()
                .insert(cpu, found.clone())
            {
                let what = format!("CPU {cpu} a second time, after {}", other.display());
                return Err(Error::input(&found, what));
            }
        }
    }
    let Some(path) = paths.first() else {
        return Err(Error::input(Path::new(""), "no input was named"));
    };
    keep_wanted(path, &mut devices, choice)?;
    for (device, cpus) in devices {
        let mut expected = 0_u32;
        for (cpu, file) in cpus {
            for _ in expected..cpu.min(expected.saturating_add(65_536)) {
                selection.missing.push(selection.files.len());
            }
            expected = cpu.saturating_add(1);
            selection.files.push((file, Shape::PerCpu));
        }
        selection.dropped.extend(dropped(&selection, &device));
    }
    selection.files.extend(dumps);
    if selection.files.len() > usize::from(u16::MAX) / 2 {
        return Err(Error::input(path, "more than 32767 files"));
    }
    Ok(selection)
}

fn expand(path: &Path) -> Result<Vec<PathBuf>> {
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
        Err(_) => {}
    }
    // blkparse takes the name without the ending.
    let base = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
        .to_string();
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let files = per_cpu_files(parent, |device| device == base).unwrap_or_default();
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
        if parse_name(&path).is_some_and(|(name, _)| device(&name)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn keep_wanted<T>(
    path: &Path,
    devices: &mut BTreeMap<String, T>,
    choice: &DeviceChoice,
) -> Result<()> {
    let names: Vec<&str> = devices.keys().map(String::as_str).collect();
    let names = names.join(", ");
    match choice {
        DeviceChoice::Only if devices.len() > 1 => Err(Error::input(
            path,
            format!("several devices, name one of them: {names}"),
        )),
        DeviceChoice::Named(name) if !devices.is_empty() && !devices.contains_key(name) => Err(
            Error::input(path, format!("no device {name}, there are: {names}")),
        ),
        DeviceChoice::Named(name) => {
            devices.retain(|device, _| device == name);
            Ok(())
        }
        DeviceChoice::Only | DeviceChoice::All => Ok(()),
    }
}

/// The number of drops that blktrace printed, if its output was saved next to the files.
fn dropped(selection: &Selection, device: &str) -> Option<(PathBuf, u64)> {
    let (file, _) = selection.files.last()?;
    let log = file.parent()?.join("blktrace.log");
    let text = std::fs::read_to_string(&log).ok()?;
    let count = dropped_in(&text, device);
    (count > 0).then_some((log, count))
}

fn dropped_in(text: &str, device: &str) -> u64 {
    let mut inside = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix("=== ")
            .and_then(|rest| rest.strip_suffix(" ==="))
        {
            inside = name == device;
        } else if inside && line.starts_with("Total:") {
            let count = line
                .split_once("(dropped ")
                .and_then(|(_, rest)| rest.split_once(')'));
            return count
                .and_then(|(count, _)| count.trim().parse().ok())
                .unwrap_or(0);
        }
    }
    0
}

#[cfg(test)]
mod tests;
