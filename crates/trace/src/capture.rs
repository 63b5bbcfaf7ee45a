//! A capture folder: which files are there, on which kernel and devices it was made.
//!
//! Opens and reads the small texts (`meta.txt`, `queue.txt`); the big ones (ftrace, blktrace) are
//! only found. A folder of bare blktrace files is no capture in this sense: see `blktrace.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::blktrace::{Asked, first_device, parse_name};
use crate::ftrace::Ftrace;
use crate::io_txt::IoScript;
use crate::meta::{Command, Meta};
use crate::packed::bare_name;
use crate::queue_txt::{DeviceQueue, QueueTxt};
use crate::{Error, Result};

/// A capture folder that was opened.
#[derive(Clone, Debug)]
pub struct CaptureDir {
    pub path: PathBuf,
    /// Files by the name that they have without `.xz`, `.gz`, `.zst` or
    /// `.bz2`.
    pub files: BTreeMap<String, PathBuf>,
    pub meta: Meta,
    /// `queue.txt`: the devices before the command ran.
    pub before: QueueTxt,
    /// `queue_after.txt`, where there is one.
    pub after: Option<QueueTxt>,
    /// Devices that were traced, in the order of `queue.txt`.
    pub devices: Vec<CapturedDevice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedDevice {
    /// Name, e.g. `nullb0`.
    pub name: String,
    /// Raw blktrace files by CPU. A CPU that traced nothing may have none.
    pub blktrace: BTreeMap<u16, PathBuf>,
}

impl CaptureDir {
    /// Finds the files of a folder and reads `meta.txt` and `queue.txt`.
    pub fn open(path: &Path) -> Result<CaptureDir> {
        if !path.is_dir() {
            let what = match path.exists() {
                true => {
                    "a file, which does not have the kernel, the driver and the settings; expected \
                     a folder with meta.txt, queue.txt and the traces, as docs/guides/record.sh \
                     records it"
                }
                false => "cannot read: no such file or directory",
            };
            return Err(Error::input(path, what));
        }
        let files = list(path)?;
        let need = |name: &str| {
            files.get(name).ok_or_else(|| {
                let what = format!(
                    "no {name} here (nor {name}.xz); it describes the capture, and \
                     docs/guides/record.sh writes it"
                );
                Error::input(path, what)
            })
        };
        let meta = Meta::open(need("meta.txt")?)?;
        let before = QueueTxt::open(need("queue.txt")?)?;
        let after = files
            .get("queue_after.txt")
            .map(|file| QueueTxt::open(file))
            .transpose()?;
        let mut devices: Vec<CapturedDevice> = before
            .devices
            .iter()
            .map(|d| CapturedDevice {
                name: d.name.clone(),
                blktrace: BTreeMap::new(),
            })
            .collect();
        for (name, file) in &files {
            let Some((device, cpu)) = parse_name(Path::new(name)) else {
                continue;
            };
            let Some(device) = devices.iter_mut().find(|d| d.name == device) else {
                return Err(Error::input(
                    file,
                    format!("queue.txt has no section for {device}"),
                ));
            };
            let cpu = u16::try_from(cpu);
            let cpu = cpu.map_err(|_| Error::input(file, "CPU number above 65535"))?;
            device.blktrace.insert(cpu, file.clone());
        }
        Ok(CaptureDir {
            path: path.to_path_buf(),
            files,
            meta,
            before,
            after,
            devices,
        })
    }

    /// A file by its uncompressed name; the error says what the file is needed for.
    pub fn file(&self, name: &str, purpose: &str) -> Result<&Path> {
        self.files.get(name).map(PathBuf::as_path).ok_or_else(|| {
            let have: Vec<&str> = self.files.keys().map(String::as_str).collect();
            let what = format!(
                "no {name} in this capture, needed for {purpose}; it has {}",
                have.join(", ")
            );
            Error::input(&self.path, what)
        })
    }

    /// A small uncompressed text file, if it exists and is readable: for hints only.
    pub fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.files.get(name)?).ok()
    }

    /// State of a device before the run: by name or number, or the only one.
    pub fn queue(&self, name: Option<&str>) -> Result<&DeviceQueue> {
        let names = || {
            let names: Vec<&str> = self.devices.iter().map(|d| d.name.as_str()).collect();
            names.join(", ")
        };
        match (name, self.before.devices.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Error::input(
                &self.path,
                format!("several devices, name one: {}", names()),
            )),
            (Some(name), _) => self.asked(name).ok_or_else(|| {
                let what = format!("no device {name}, there are: {}", names());
                Error::input(&self.path, what)
            }),
        }
    }

    /// A device by `sda`, `/dev/sda`, `8,0` or `8:0`. Its records have the number.
    fn asked(&self, text: &str) -> Option<&DeviceQueue> {
        let asked = Asked::new(text);
        let has_number = |device: &&CapturedDevice| {
            let mut files = device.blktrace.values();
            asked.number.is_some() && files.any(|file| first_device(file) == asked.number)
        };
        let by_number = self.devices.iter().find(has_number);
        let name = by_number.map_or(asked.name.as_str(), |device| &device.name);
        self.before.device(name)
    }

    pub fn ftrace(&self) -> Result<Ftrace> {
        Ftrace::open(self.file(
            "ftrace.txt",
            "the scheduler's own view (probes, priorities)",
        )?)
    }

    /// The I/O script that ran: the one that the command names, or `io.txt` if that is there.
    pub fn io_script(&self) -> Result<Option<IoScript>> {
        let (named, other) = match &self.meta.command {
            Command::IoScript { script, .. } => (Some(script.as_str()), Some(IO_SCRIPT)),
            Command::Other(_) => (None, Some(IO_SCRIPT)),
            Command::Fio { .. } => (None, None),
        };
        let here = |name: &str| self.files.get(name);
        match (named.and_then(here).or(other.and_then(here)), named) {
            (Some(file), _) => IoScript::open(file).map(Some),
            (None, Some(script)) => {
                IoScript::open(self.file(script, "the I/O that was submitted")?).map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

/// Name of the I/O script in the capture script.
const IO_SCRIPT: &str = "io.txt";

/// Files of a folder by uncompressed name; the same file in two forms is an error.
fn list(path: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    let entries = fs::read_dir(path).map_err(|e| Error::io(path, 0, e))?;
    for entry in entries {
        let file = entry.map_err(|e| Error::io(path, 0, e))?.path();
        if !file.is_file() {
            continue;
        }
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if let Some(other) = files.insert(bare_name(name).to_string(), file.clone()) {
            let what = format!("is next to {}; keep one of them", other.display());
            return Err(Error::input(&file, what));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
