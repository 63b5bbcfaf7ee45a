//! One file as a checked stream of events: damage, gaps, time and notes are dealt with here.
//!
//! Not the merge of several files (`reader`), not the reordering inside a dump (`reorder`).
//! Decides which damage is an error, which a counted warning, and which neither.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blkmq::time::SimTime;

use super::bytes::Bytes;
use super::devices::Devices;
use super::event::{Action, Categories, Device, Event, Location};
use super::paths::Missing;
use super::reader::Options;
use super::record::{self, Header, Magic, Order, SIZE_V1, SIZE_V2};
use super::warnings::{Warning, Warnings, strict_error};
use crate::{Error, Result};

/// Longest step back in time that interrupts between taking the time and the buffer explain.
const BACKWARDS_NS: u64 = 1_000_000;
/// CPUs of a dump whose event numbers are followed; more than that is a damaged file.
const CPUS: usize = 1 << 16;

/// Whether a file is the trace of one CPU or a dump of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// `<device>.blktrace.<cpu>`: this CPU, one device, times in order.
    PerCpu(u32),
    /// `blkparse -d` or `blktrace -o -`: any CPU, times in order only roughly.
    Dump,
}

/// State shared by all files of one reader.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) files: Vec<PathBuf>,
    pub(super) warnings: Warnings,
    pub(super) names: BTreeMap<u32, String>,
    /// Time of the first wall clock note and its nanoseconds since 1970.
    pub(super) wall_clock: Option<(SimTime, u64)>,
    /// Process and wall clock notes.
    pub(super) notes: u64,
    /// Events skipped because their device was not asked for.
    pub(super) skipped: u64,
    /// Which devices of dumps and texts are read.
    pub(super) devices: Devices,
}

impl Shared {
    /// Counts a warning, or refuses under `strict`.
    pub(super) fn warn(&mut self, warning: Warning, times: u64, location: Location) -> Result<()> {
        self.warnings.add(warning, times, location);
        if self.options.strict {
            let file = &self.files[location.file()];
            return Err(strict_error(warning, file, location.offset()));
        }
        Ok(())
    }

    /// Warnings of what blktrace.log and meta.txt say is not in the files.
    pub(super) fn warn_of_absent(
        &mut self,
        missing: Vec<Missing>,
        dropped: Vec<(PathBuf, u64)>,
    ) -> Result<()> {
        for Missing {
            cpus,
            shown,
            sentence,
        } in missing
        {
            if self.options.strict {
                let what = format!("{sentence}; an error because of strict");
                return Err(Error::input(&shown, what));
            }
            let location = self.begin_of(shown);
            self.warnings.add_missing(cpus, sentence, location);
        }
        for (log, count) in dropped {
            let location = self.begin_of(log);
            self.warn(Warning::Dropped, count, location)?;
        }
        Ok(())
    }

    /// The beginning of a file, which need not be one that is read.
    fn begin_of(&mut self, path: PathBuf) -> Location {
        let known = self.files.iter().position(|file| *file == path);
        let file = known.unwrap_or(self.files.len());
        if known.is_none() {
            self.files.push(path);
        }
        Location::new(file as u16, 0)
    }

    /// At the end of a file: an error if it has devices that nobody chose.
    pub(super) fn refuse_devices(&self, file: &Path) -> Result<()> {
        match self.devices.refusal() {
            Some(what) => Err(Error::input(file, what)),
            None => Ok(()),
        }
    }

    /// Verdict on a step from `last` to `event.time` within one file.
    #[inline]
    pub(super) fn check_time(&mut self, last: u64, event: &Event) -> Result<()> {
        if event.time.0 >= last {
            Ok(())
        } else {
            self.went_back(last - event.time.0, event)
        }
    }

    #[cold]
    fn went_back(&mut self, back_ns: u64, event: &Event) -> Result<()> {
        if back_ns < BACKWARDS_NS {
            return self.warn(Warning::TimeBackwards, 1, event.location);
        }
        let file = &self.files[event.location.file()];
        Err(Error::binary(
            file,
            event.location.offset(),
            format!(
                "time goes back by {back_ns} ns to {}, expected less than {BACKWARDS_NS} ns",
                event.time
            ),
        ))
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    bytes: Bytes,
    shape: Shape,
    file: u16,
    order: Order,
    /// Bytes of the current record, header and payload, still in the window.
    record: usize,
    /// Payload of the current record without its cgroup id, as a range from the record's start.
    pdu: (usize, usize),
    cgroup: Option<u64>,
    good_records: u64,
    last_time: u64,
    /// Last event number: of the only CPU, or of each (device, CPU) of a dump.
    last_sequence: u32,
    /// With the event's time.
    last_sequences: BTreeMap<(Device, u32), (u32, u64)>,
    /// The only device, or that of a dump's last event.
    device: Option<Device>,
    event: Event,
    ended: bool,
}

impl Stream {
    pub(super) fn new(bytes: Bytes, file: u16, shape: Shape) -> Stream {
        Stream {
            bytes,
            shape,
            file,
            order: Order::Little,
            record: 0,
            pdu: (0, 0),
            cgroup: None,
            good_records: 0,
            last_time: 0,
            last_sequence: 0,
            last_sequences: BTreeMap::new(),
            device: None,
            event: Event::new(SimTime::ZERO, Action::Unknown),
            ended: false,
        }
    }

    /// Bytes decoded so far.
    pub(super) fn offset(&self) -> u64 {
        self.bytes.offset() + self.record as u64
    }

    /// Records that were good, notes included.
    pub(super) fn good_records(&self) -> u64 {
        self.good_records
    }

    /// Payload of the current event without the cgroup id.
    pub(super) fn pdu(&self) -> &[u8] {
        &self.bytes.have()[self.pdu.0..self.pdu.1]
    }

    /// cgroup id of the current event.
    pub(super) fn cgroup(&self) -> Option<u64> {
        self.cgroup
    }

    #[inline]
    pub(super) fn event(&self) -> &Event {
        &self.event
    }

    /// Moves to the next event or message; nothing is there after the end. Notes are taken into
    /// `shared` on the way.
    #[inline]
    pub(super) fn next(&mut self, shared: &mut Shared) -> Result<bool> {
        if self.next_plain() {
            Ok(true)
        } else {
            self.next_any(shared)
        }
    }

    /// The common case in one go: a whole v1 record without payload that continues the file in
    /// every respect. Otherwise nothing has changed but the unfinished `event`.
    #[inline]
    fn next_plain(&mut self) -> bool {
        // Nothing is assumed about a file's first event, nor about dumps.
        let Shape::PerCpu(cpu) = self.shape else {
            return false;
        };
        if self.device.is_none() {
            return false;
        }
        let Some(first) = self.bytes.have()[self.record..].first_chunk() else {
            return false;
        };
        let offset = self.bytes.offset() + self.record as u64;
        self.event.location = Location::new(self.file, offset);
        if !record::decode_plain(self.order, first, &mut self.event) {
            return false;
        }
        let event = &self.event;
        let goes_on = event.time.0 >= self.last_time
            && event.sequence == self.last_sequence.wrapping_add(1)
            && event.cpu == cpu
            && Some(event.device) == self.device;
        if !goes_on {
            return false;
        }
        self.bytes.skip(self.record);
        self.record = SIZE_V1;
        self.pdu = (SIZE_V1, SIZE_V1);
        self.cgroup = None;
        self.good_records += 1;
        self.last_time = event.time.0;
        self.last_sequence = event.sequence;
        true
    }

    fn next_any(&mut self, shared: &mut Shared) -> Result<bool> {
        while !self.ended {
            let Some(mut header) = self.next_record(shared)? else {
                break;
            };
            if header.is_note() && self.take_note(&header, shared) {
                continue;
            }
            record::apply_pdu(&mut header.event, self.pdu());
            self.check(&header.event, shared)?;
            if self.wanted(&header.event, shared)? {
                self.event = header.event;
                return Ok(true);
            }
        }
        self.record = 0;
        self.pdu = (0, 0);
        shared.refuse_devices(self.bytes.path())?;
        Ok(false)
    }

    /// Reads one whole record; its payload is in the window until the next call.
    #[inline]
    fn next_record(&mut self, shared: &mut Shared) -> Result<Option<Header>> {
        self.bytes.skip(self.record);
        self.record = 0;
        if let Err(error) = self.bytes.want(SIZE_V1) {
            return self.unreadable(error, shared);
        }
        let Some(first) = self.bytes.have().first_chunk::<SIZE_V1>() else {
            return self.tail(shared);
        };
        let location = Location::new(self.file, self.bytes.offset());
        if self.good_records == 0 {
            match record::probe(*first.first_chunk().expect("48 bytes have 4")) {
                Magic::Known(order) => self.order = order,
                other => return self.no_magic(other, shared),
            }
        }
        let magic = record::word(self.order, first, 0);
        let (header, size) = if magic == record::MAGIC_V1 {
            (record::decode_v1(self.order, first, location), SIZE_V1)
        } else if magic == record::MAGIC_V2 {
            if let Err(error) = self.bytes.want(SIZE_V2) {
                return self.unreadable(error, shared);
            }
            let Some(whole) = self.bytes.have().first_chunk::<SIZE_V2>() else {
                return self.tail(shared);
            };
            (record::decode_v2(self.order, whole, location), SIZE_V2)
        } else {
            let probe = record::probe(*first.first_chunk().expect("48 bytes have 4"));
            return self.no_magic(probe, shared);
        };
        self.finish_record(header, size, shared)
    }

    #[inline]
    fn finish_record(
        &mut self,
        header: Header,
        size: usize,
        shared: &mut Shared,
    ) -> Result<Option<Header>> {
        if let Some(problem) = header.length_problem() {
            return self.damaged(&problem, shared);
        }
        let record = size + header.pdu_len;
        if let Err(error) = self.bytes.want(record) {
            return self.unreadable(error, shared);
        }
        let have = self.bytes.have();
        if have.len() < record {
            return self.tail(shared);
        }
        let mut pdu = size;
        self.cgroup = None;
        if header.event.categories.any(Categories::CGROUP) {
            self.cgroup = Some(record::double(self.order, have, size));
            pdu += record::CGROUP_SIZE;
        }
        self.pdu = (pdu, record);
        self.record = record;
        self.good_records += 1;
        Ok(Some(header))
    }

    /// Takes process and wall clock notes; returns true if the record was one.
    #[cold]
    fn take_note(&mut self, header: &Header, shared: &mut Shared) -> bool {
        let pdu = &self.bytes.have()[self.pdu.0..self.pdu.1];
        match header.code {
            0 => {
                let name = pdu.split(|&byte| byte == 0).next().unwrap_or_default();
                // The kernel does not send changed names again: the first one stays.
                let name = || String::from_utf8_lossy(name).into_owned();
                shared.names.entry(header.event.pid).or_insert_with(name);
            }
            1 => {
                let part = |at| u64::from(record::word(self.order, pdu, at));
                let since_1970_ns = part(0) * 1_000_000_000 + part(4);
                shared
                    .wall_clock
                    .get_or_insert((header.event.time, since_1970_ns));
            }
            _ => return false,
        }
        shared.notes += 1;
        true
    }

    /// Continuity of time and of event numbers.
    #[inline]
    fn check(&mut self, event: &Event, shared: &mut Shared) -> Result<()> {
        if let Shape::PerCpu(cpu) = self.shape {
            if event.cpu != cpu {
                let what = format!("CPU {}, expected {cpu} as in the file's name", event.cpu);
                let offset = event.location.offset();
                return Err(Error::binary(self.bytes.path(), offset, what));
            }
            shared.check_time(self.last_time, event)?;
            self.last_time = event.time.0;
        }
        // A message's number is not set.
        if event.action == Action::Message {
            return Ok(());
        }
        let last = match self.shape {
            Shape::PerCpu(_) => std::mem::replace(&mut self.last_sequence, event.sequence),
            Shape::Dump => {
                let key = (event.device, event.cpu);
                if self.last_sequences.len() >= CPUS && !self.last_sequences.contains_key(&key) {
                    return Ok(());
                }
                let now = (event.sequence, event.time.0);
                let (last, time) = self.last_sequences.insert(key, now).unwrap_or_default();
                shared.check_time(time, event)?;
                last
            }
        };
        // Number 1 after others: the trace was started again.
        if event.sequence != last.wrapping_add(1) && event.sequence != 1 {
            let missing = u64::from(event.sequence.saturating_sub(last))
                .saturating_sub(1)
                .max(1);
            shared.warn(Warning::SequenceGap, missing, event.location)?;
        }
        Ok(())
    }

    /// Whether the event is of a device that was asked for.
    #[inline]
    fn wanted(&mut self, event: &Event, shared: &mut Shared) -> Result<bool> {
        if self.device == Some(event.device) {
            return Ok(true);
        }
        self.other_device(event, shared)
    }

    #[cold]
    fn other_device(&mut self, event: &Event, shared: &mut Shared) -> Result<bool> {
        let wrong = |what| Error::binary(self.bytes.path(), event.location.offset(), what);
        if self.shape == Shape::Dump {
            let wanted = shared.devices.wanted(event.device).map_err(wrong)?;
            self.device = wanted.then_some(event.device);
            shared.skipped += u64::from(!wanted);
            return Ok(wanted);
        }
        let first = *self.device.get_or_insert(event.device);
        if first == event.device {
            return Ok(true);
        }
        let device = event.device;
        Err(wrong(format!(
            "device {device} in a trace of device {first}"
        )))
    }

    /// Fewer bytes than a record at the end of the file.
    #[cold]
    fn tail(&mut self, shared: &mut Shared) -> Result<Option<Header>> {
        let have = self.bytes.have();
        if let Some(first) = have.first_chunk() {
            let probe = record::probe(*first);
            if !matches!(probe, Magic::Known(_)) {
                return self.no_magic(probe, shared);
            }
        }
        self.ended = true;
        if !have.is_empty() {
            let location = Location::new(self.file, self.bytes.offset());
            shared.warn(Warning::TruncatedRecord, 1, location)?;
        }
        Ok(None)
    }

    #[cold]
    fn no_magic(&mut self, probe: Magic, shared: &mut Shared) -> Result<Option<Header>> {
        let raw = record::word(self.order, self.bytes.have(), 0);
        let what = match probe {
            Magic::Version(version) => {
                format!("block trace record of unknown version {version}, expected 7 or 8")
            }
            Magic::Known(_) => format!("record magic {raw:#010x} in the other byte order"),
            Magic::None => format!("no record magic: {raw:#010x}, expected 0x65617407"),
        };
        self.damaged(&what, shared)
    }

    /// Damage in the middle: the end of this file if the caller salvages, else an error.
    #[cold]
    fn damaged(&mut self, what: &str, shared: &mut Shared) -> Result<Option<Header>> {
        self.ended = true;
        let offset = self.bytes.offset();
        if shared.options.salvage && self.good_records > 0 {
            shared.warn(Warning::Salvaged, 1, Location::new(self.file, offset))?;
            return Ok(None);
        }
        let good = self.good_records;
        Err(Error::binary(
            self.bytes.path(),
            offset,
            format!("{what}; {good} good records before"),
        ))
    }

    /// The same for a read or decompression that fails.
    #[cold]
    fn unreadable(&mut self, error: Error, shared: &mut Shared) -> Result<Option<Header>> {
        self.ended = true;
        if shared.options.salvage && self.good_records > 0 {
            let location = Location::new(self.file, self.bytes.offset());
            shared.warn(Warning::Salvaged, 1, location)?;
            return Ok(None);
        }
        Err(error)
    }
}
