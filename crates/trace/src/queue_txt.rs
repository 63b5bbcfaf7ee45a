//! `queue.txt`: sysfs attributes of a capture's block devices.
//!
//! One section a device (`== nullb0 size 134217728`), then `queue/NAME=VALUE`,
//! `queue/iosched/NAME=VALUE` and `mq/N: tags=T cpus=LIST`. Values stay text; numbers are parsed by
//! name. Kernel: block/blk-sysfs.c, block/blk-mq-sysfs.c.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::text::Lines;
use crate::{Error, Result};

/// All devices of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueTxt {
    /// In the order of the file.
    pub devices: Vec<DeviceQueue>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceQueue {
    /// File it was read from, for errors.
    pub file: PathBuf,
    /// Line of its section.
    pub line: u64,
    /// Name below /sys/block, e.g. `nullb0`.
    pub name: String,
    /// Size, 512-byte sectors.
    pub sectors: u64,
    /// Files of queue/, e.g. `nr_requests`.
    pub attributes: BTreeMap<String, String>,
    /// Files of queue/iosched/, e.g. `fifo_batch`; empty without a scheduler.
    pub iosched: BTreeMap<String, String>,
    /// Hardware queues, by index.
    pub hctxs: Vec<HctxState>,
    /// Line of each attribute, by its name below the device's folder.
    pub lines: BTreeMap<String, u64>,
}

/// One hardware queue: a folder of mq/.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HctxState {
    pub index: u32,
    /// Driver tags (nr_tags).
    pub tags: u32,
    /// CPUs whose requests it takes (cpu_list). A poll queue lists the same CPUs again.
    pub cpus: Vec<u16>,
}

impl DeviceQueue {
    /// Name of the scheduler: the one in brackets.
    pub fn scheduler(&self) -> Result<&str> {
        let list = self.attribute("scheduler")?;
        list.split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .map(|(name, _)| name)
            .ok_or_else(|| self.error("queue/scheduler", format!("`{list}` marks none with []")))
    }

    /// Text of a file of queue/.
    pub fn attribute(&self, name: &str) -> Result<&str> {
        self.attributes
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| self.error(&format!("queue/{name}"), "not in this section"))
    }

    /// A file of queue/ as a number.
    pub fn number(&self, name: &str) -> Result<i64> {
        let text = self.attribute(name)?;
        text.parse().map_err(|_| {
            self.error(
                &format!("queue/{name}"),
                format!("`{text}` is not a number"),
            )
        })
    }

    /// A file of queue/iosched/ as a number, of which the kernel has signed and unsigned ones of 64
    /// bits; nothing if this kernel or scheduler has no such file.
    pub fn tunable(&self, name: &str) -> Result<Option<i128>> {
        let Some(text) = self.iosched.get(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            self.error(
                &format!("queue/iosched/{name}"),
                format!("`{text}` is not a number"),
            )
        })
    }

    /// An error about a file below the device's folder, with its line, or that of the section.
    pub fn error(&self, field: &str, what: impl Into<String>) -> Error {
        Error::text(
            &self.file,
            self.lines.get(field).copied().unwrap_or(self.line),
            field,
            format!("{}: {}", self.name, what.into()),
        )
    }
}

impl QueueTxt {
    /// Opens and reads a file, plain or compressed.
    pub fn open(file: &Path) -> Result<QueueTxt> {
        QueueTxt::read(Lines::open(file)?)
    }

    pub fn read(mut lines: Lines) -> Result<QueueTxt> {
        let mut devices: Vec<DeviceQueue> = Vec::new();
        while lines.advance()? {
            let line = lines.line();
            if line.trim().is_empty() {
                continue;
            }
            if let Some(head) = line.strip_prefix("== ") {
                let device = section(&lines, head)?;
                if devices.iter().any(|d| d.name == device.name) {
                    return Err(lines.error("section", format!("{} again", device.name)));
                }
                devices.push(device);
            } else if let Some(device) = devices.last_mut() {
                entry(&lines, device)?;
            } else {
                return Err(lines.error("section", "expected `== DEVICE size SECTORS` first"));
            }
        }
        if devices.is_empty() {
            return Err(lines.error("section", "no device in this file"));
        }
        for device in &mut devices {
            check_hctxs(device)?;
        }
        Ok(QueueTxt { devices })
    }

    /// The section of a device, by name.
    pub fn device(&self, name: &str) -> Option<&DeviceQueue> {
        self.devices.iter().find(|device| device.name == name)
    }
}

fn section(lines: &Lines, head: &str) -> Result<DeviceQueue> {
    let words: Vec<&str> = head.split_whitespace().collect();
    let &[name, "size", sectors] = words.as_slice() else {
        return Err(lines.error("section", "expected `== DEVICE size SECTORS`"));
    };
    let sectors = sectors
        .parse()
        .map_err(|_| lines.error("size", format!("`{sectors}` is not a number of sectors")))?;
    Ok(DeviceQueue {
        file: lines.file().to_path_buf(),
        line: lines.number(),
        name: name.to_string(),
        sectors,
        attributes: BTreeMap::new(),
        iosched: BTreeMap::new(),
        hctxs: Vec::new(),
        lines: BTreeMap::new(),
    })
}

fn entry(lines: &Lines, device: &mut DeviceQueue) -> Result<()> {
    let line = lines.line();
    if let Some(rest) = line.strip_prefix("mq/") {
        device.hctxs.push(hctx(lines, rest)?);
        return Ok(());
    }
    let (key, value) = line.split_once('=').ok_or_else(|| {
        lines.error(
            "line",
            "expected queue/NAME=VALUE or mq/N: tags=T cpus=LIST",
        )
    })?;
    let (map, name) = if let Some(name) = key.strip_prefix("queue/iosched/") {
        (&mut device.iosched, name)
    } else if let Some(name) = key.strip_prefix("queue/") {
        (&mut device.attributes, name)
    } else {
        return Err(lines.error(key, "neither below queue/ nor below mq/"));
    };
    device.lines.insert(key.to_string(), lines.number());
    if map
        .insert(name.to_string(), value.trim().to_string())
        .is_some()
    {
        return Err(lines.error(key, "given twice for this device"));
    }
    Ok(())
}

/// `0: tags=4 cpus=0, 1`
fn hctx(lines: &Lines, rest: &str) -> Result<HctxState> {
    let shape = || lines.error("mq", "expected `mq/N: tags=T cpus=A, B`");
    let (index, rest) = rest.split_once(": tags=").ok_or_else(shape)?;
    let (tags, cpus) = rest.split_once(" cpus=").ok_or_else(shape)?;
    let index = index.parse().map_err(|_| shape())?;
    let tags = tags.trim().parse().map_err(|_| shape())?;
    let cpus = cpus
        .split(',')
        .map(str::trim)
        .filter(|cpu| !cpu.is_empty())
        .map(|cpu| {
            cpu.parse()
                .map_err(|_| lines.error("cpus", format!("`{cpu}` is not a CPU number")))
        })
        .collect::<Result<_>>()?;
    Ok(HctxState { index, tags, cpus })
}

/// The shell sorts mq/10 before mq/2; indices must be complete all the same.
fn check_hctxs(device: &mut DeviceQueue) -> Result<()> {
    device.hctxs.sort_by_key(|hctx| hctx.index);
    for (want, hctx) in device.hctxs.iter().enumerate() {
        if hctx.index as usize != want {
            return Err(device.error("mq", format!("mq/{want} is missing or given twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
