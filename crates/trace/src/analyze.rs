//! A whole capture in numbers: the data of `blksim analyze`.
//!
//! Reads, matches and counts in one pass; memory does not depend on the length of the capture, only
//! on the I/Os in flight. Reads no clock and prints nothing: the caller measures the time and
//! writes the report.

mod groups;
mod offsets;
mod over_time;

use std::collections::BTreeMap;
use std::path::Path;

use blkmq::time::SimTime;

use crate::Error;
use crate::blktrace::{Action, Device, Options, Reader, Row};
use crate::matching::{Btt, BttDevice, BttTable, Io, Latencies, Matcher, Periods};

pub use groups::{Group, Groups, direction};
pub use offsets::Offsets;
pub use over_time::{Bin, OverTime};

#[derive(Clone, PartialEq, Debug)]
pub struct Analysis {
    pub events: u64,
    /// Process and wall clock notes.
    pub notes: u64,
    /// Events of devices that were not asked for.
    pub skipped: u64,
    /// Bytes of records, after decompression.
    pub bytes: u64,
    /// Time of the first event, as recorded.
    pub genesis: SimTime,
    /// Time of the last event, as recorded.
    pub end: SimTime,
    /// Events by `action as usize`.
    pub actions: [u64; Action::COUNT],
    /// Damage that the capture can live with.
    pub warnings: Vec<Row>,
    /// For each format of text among the files: what it does not have.
    pub lacks: Vec<String>,
    pub completed: u64,
    pub unfinished: u64,
    /// Completed bios that were cut into parts.
    pub split: u64,
    /// The most bios in flight at once.
    pub in_flight_max: u64,
    /// Passthrough events, which are not matched.
    pub passthrough: u64,
    /// Latencies by the honest definitions.
    pub latencies: Latencies,
    /// Latencies as btt defines them.
    pub btt: BttTable,
    /// Active periods of all devices together, as btt defines them.
    pub periods: Periods,
    /// In the order of their first events.
    pub devices: Vec<DeviceAnalysis>,
    /// Completed bios by process, CPU, size and direction.
    pub groups: Groups,
    pub over_time: OverTime,
}

/// One device.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceAnalysis {
    /// As its files or the lines of a text call it; else its number.
    pub name: String,
    pub btt: BttDevice,
    pub latencies: Latencies,
    pub completed: u64,
    /// Of the completed bios: those that ended with an error.
    pub errors: u64,
    /// Of bios that ended without one.
    pub bytes: u64,
    /// Sectors over time.
    pub offsets: Offsets,
}

impl Analysis {
    /// Bios of all devices that ended with an error.
    pub fn errors(&self) -> u64 {
        self.devices.iter().map(|device| device.errors).sum()
    }

    pub fn count(&self, action: Action) -> u64 {
        self.actions[action as usize]
    }
}

/// A device that was seen.
#[derive(Debug)]
struct Seen {
    device: Device,
    name: String,
    latencies: Latencies,
    completed: u64,
    errors: u64,
    bytes: u64,
    offsets: Offsets,
}

/// What is counted of bios.
#[derive(Debug, Default)]
struct Bios {
    completed: u64,
    unfinished: u64,
    split: u64,
    groups: Groups,
    over_time: OverTime,
    devices: Vec<Seen>,
    numbers: BTreeMap<Device, usize>,
    last: usize,
}

impl Bios {
    /// A device; `name` gives its name at its first I/O.
    fn device(&mut self, device: Device, name: impl FnOnce() -> String) -> &mut Seen {
        let last = self.devices.get(self.last);
        if last.is_none_or(|seen| seen.device != device) {
            let next = self.devices.len();
            self.last = *self.numbers.entry(device).or_insert(next);
            if self.last == next {
                self.devices.push(Seen {
                    device,
                    name: name(),
                    latencies: Latencies::default(),
                    completed: 0,
                    errors: 0,
                    bytes: 0,
                    offsets: Offsets::default(),
                });
            }
        }
        &mut self.devices[self.last]
    }

    /// Counts a bio.
    fn add(&mut self, io: &Io, process: Option<&str>, genesis: SimTime, reader: &Reader) {
        let name = || reader.device_name(io.device, io.location.file());
        let device = self.device(io.device, name);
        if io.completed.is_none() {
            self.unfinished += 1;
            return;
        }
        device.latencies.add(io);
        device.completed += 1;
        match io.error {
            0 => device.bytes += u64::from(io.bytes),
            _ => device.errors += 1,
        }
        device.offsets.add(io, genesis);
        self.completed += 1;
        self.split += u64::from(io.parts > 1);
        self.groups.add(io, process);
        self.over_time.add(io, genesis);
    }
}

/// Reads a capture and counts. `each` gets every bio, the name of its process if the capture has
/// it, and the time of the first event: at its completion, those without one at the end. With
/// `strict` an event that the matching cannot explain is an error too.
pub fn analyze<P: AsRef<Path>, E: From<Error>>(
    paths: &[P],
    options: Options,
    mut each: impl FnMut(&Io, Option<&str>, SimTime) -> Result<(), E>,
) -> Result<Analysis, E> {
    let strict = options.strict;
    let mut reader = Reader::open(paths, options)?;
    let genesis = reader.genesis();
    let (mut btt, mut matcher) = (Btt::new(), Matcher::new());
    let (mut bios, mut actions) = (Bios::default(), [0; Action::COUNT]);
    let (mut events, mut end) = (0, SimTime::ZERO);
    while reader.advance()? {
        let event = reader.event();
        events += 1;
        end = end.max(event.time);
        actions[event.action as usize] += 1;
        let moved = btt.add(event);
        for io in matcher.add(event) {
            let process = reader.process_name(io.pid);
            each(io, process, genesis)?;
            bios.add(io, process, genesis, &reader);
        }
        if event.action == Action::Queue || moved {
            let in_flight = matcher.in_flight() as u64;
            let time = event.time.since(genesis).0;
            bios.over_time.see(time, in_flight, moved);
        }
    }
    for io in matcher.finish() {
        let process = reader.process_name(io.pid);
        each(&io, process, genesis)?;
        bios.add(&io, process, genesis, &reader);
    }
    let mut warnings = reader.warnings().clone();
    warnings.merge(&matcher.warnings());
    if strict {
        warnings.refuse(reader.files())?;
    }
    let table = btt.table();
    let mut latencies = Latencies::default();
    for device in &bios.devices {
        latencies.merge(&device.latencies);
    }
    let (by_btt, periods) = btt.finish();
    Ok(Analysis {
        events,
        notes: reader.notes(),
        skipped: reader.skipped(),
        bytes: reader.bytes(),
        genesis,
        end,
        actions,
        warnings: warnings.rows(reader.files()),
        lacks: reader.lacks().to_vec(),
        completed: bios.completed,
        unfinished: bios.unfinished,
        split: bios.split,
        in_flight_max: matcher.in_flight_max() as u64,
        passthrough: matcher.passthrough(),
        btt: table,
        periods,
        devices: joined(by_btt, &mut bios),
        latencies,
        groups: bios.groups,
        over_time: bios.over_time,
    })
}

/// What btt says of each device with what was counted of its bios.
fn joined(by_btt: Vec<BttDevice>, bios: &mut Bios) -> Vec<DeviceAnalysis> {
    let one = |btt: BttDevice| {
        let device = btt.device;
        let seen = bios.device(device, || device.to_string());
        DeviceAnalysis {
            name: std::mem::take(&mut seen.name),
            latencies: std::mem::take(&mut seen.latencies),
            completed: seen.completed,
            errors: seen.errors,
            bytes: seen.bytes,
            offsets: std::mem::take(&mut seen.offsets),
            btt,
        }
    };
    by_btt.into_iter().map(one).collect()
}
