//! One stream of events for both modes, whichever of the two traces it was read from.
//!
//! Only what a comparison needs survives. Not here: what belongs to which request (`ledger.rs`).
//! Formats: `trace::blktrace`, `trace::ftrace`.

mod owners;

use std::collections::BTreeMap;
use std::fmt;

use blkmq::elevator::{Probes, SchedulerKind};
use blkmq::request::{IoClass, IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::{Jiffies, SimTime};
use trace::blktrace::{self, Action, Categories, DeviceChoice, Reader};
use trace::capture::CaptureDir;
use trace::ftrace::{self, DeviceNumber, IoPriority, Probe, Record};

use super::Error;
use super::told::Told;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Q: a bio enters.
    Queue,
    /// G: a bio has a request of its own.
    Get,
    /// M or F: a bio joined a request, at its front or at its end.
    BioMerge { front: bool },
    /// M: a whole request joined another one.
    RequestMerge,
    /// X: the front part of a bio was cut off; the rest begins at this sector (low 32 bits).
    Split { rest: u64 },
    /// P: first request in an empty plug.
    Plug,
    /// U or UT: a plug lets go of so many requests.
    Unplug { count: u32, sleeps: bool },
    /// I: in the scheduler, or in a software queue.
    Insert,
    /// D: with the driver.
    Issue,
    /// R: taken back from the driver.
    Requeue,
    /// C: completed, as far as the length goes.
    Complete { failed: bool },
    /// Probe: a request reaches the scheduler's insertion; I or M follows.
    Arrive { rq: u64, at: Jiffies },
    /// Probe: dd_dispatch_request() is entered.
    Ask { at: Jiffies, hctx: Option<u16> },
    /// Probe: dd_dispatch_request() returns.
    Answer { rq: Option<u64>, at: Jiffies },
    /// Probe: dd_finish_request().
    Finish { rq: u64 },
    /// Trace event of a scheduler with tokens.
    Told(Told),
    /// A line of the scheduler's log: its number in [`Events::lines`].
    Line(u32),
    /// A task exits: the scheduler lets go of what it keeps for it.
    Exit,
}

/// Where an event stands in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of `ftrace.txt`, first 1.
    Line(u64),
    /// Which event of a device's blktrace, in order of time, first 1.
    Event(u64),
}

impl Place {
    /// Line or number.
    pub(super) const fn number(self) -> u64 {
        match self {
            Place::Line(number) | Place::Event(number) => number,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "ftrace.txt:{line}"),
            Place::Event(number) => write!(f, "event {number} of its blktrace"),
        }
    }
}

/// Sectors of the longest request: the kernel counts its bytes in 32 bits.
pub(super) const LONGEST: u32 = u32::MAX >> 9;

/// Ticks beyond this are no count since the start of a machine.
const TICKS_MOST: u64 = 1 << 60;

/// One event of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) place: Place,
    pub(super) time: SimTime,
    pub(super) cpu: u16,
    pub(super) pid: u32,
    pub(super) kind: Kind,
    pub(super) op: Op,
    pub(super) flags: OpFlags,
    pub(super) sector: Sector,
    pub(super) sectors: Sectors,
    /// Priority, where the event tells.
    pub(super) ioprio: Option<IoPrio>,
}

impl Event {
    /// Numbers with which nothing can be reckoned.
    pub(super) fn check(&self) -> Result<(), String> {
        let (sector, sectors) = (self.sector.0, self.sectors.0);
        if sectors > LONGEST {
            return Err(format!("{sectors} sectors, more than a request can have"));
        }
        if sector.checked_add(u64::from(sectors)).is_none() {
            return Err(format!(
                "{sectors} sectors from {sector} on end beyond any device"
            ));
        }
        let (Kind::Arrive { at, .. } | Kind::Ask { at, .. } | Kind::Answer { at, .. }) = self.kind
        else {
            return Ok(());
        };
        if at.0 > TICKS_MOST {
            return Err(format!("tick {} is out of reach", at.0));
        }
        Ok(())
    }

    /// An error that names this event.
    pub(super) fn contradiction(&self, capture: &str, device: &str, what: String) -> Error {
        Error::Contradiction {
            capture: capture.to_owned(),
            device: device.to_owned(),
            place: self.place,
            time: self.time,
            what,
        }
    }
}

/// A whole trace of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    pub(super) list: Vec<Event>,
    /// Names of tasks, where the trace tells.
    pub(super) names: BTreeMap<u32, String>,
    /// Texts of the scheduler's log, where they were asked for.
    pub(super) lines: Vec<String>,
}

/// Opens the binary trace of `device`.
fn reader_of(dir: &CaptureDir, device: &str) -> Result<Reader, Error> {
    let files: Vec<_> = dir
        .devices
        .iter()
        .filter(|traced| traced.name == device)
        .flat_map(|traced| traced.blktrace.values().cloned())
        .collect();
    if files.is_empty() {
        let what = format!("no {device}.blktrace.N here; mode records needs them");
        return Err(Error::Trace(trace::Error::input(&dir.path, what)));
    }
    let options = blktrace::Options {
        device: DeviceChoice::Named(device.to_owned()),
        ..blktrace::Options::default()
    };
    Ok(Reader::open(&files, options)?)
}

/// Reads the binary trace of `device`.
pub(super) fn of_blktrace(dir: &CaptureDir, device: &str) -> Result<Events, Error> {
    of_trace(dir, device, false)
}

/// The same with the messages that a scheduler wrote into it.
pub(super) fn of_blktrace_with_log(dir: &CaptureDir, device: &str) -> Result<Events, Error> {
    of_trace(dir, device, true)
}

/// A scheduler wrote messages into the trace of `device`.
pub(super) fn has_log(dir: &CaptureDir, device: &str) -> Result<bool, Error> {
    let Ok(mut reader) = reader_of(dir, device) else {
        return Ok(false);
    };
    while let Some(event) = reader.next()? {
        if event.action == Action::Message {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is damaged in the binary trace of `device`.
pub(super) fn damage(dir: &CaptureDir, device: &str) -> Result<Vec<blktrace::Row>, Error> {
    let Ok(mut reader) = reader_of(dir, device) else {
        return Ok(Vec::new());
    };
    while reader.next()?.is_some() {}
    Ok(reader.warnings().rows(reader.files()))
}

/// Events that ftrace.txt says it has lost.
pub(super) fn lost_by_ftrace(dir: &CaptureDir) -> Result<u64, Error> {
    let mut ftrace = dir.ftrace()?;
    ftrace.by_ref().try_for_each(|record| record.map(drop))?;
    Ok(ftrace.lost_count())
}

/// A bio for `device` was cut behind so many sectors.
pub(super) fn is_cut_at(dir: &CaptureDir, device: &str, sectors: u32) -> Result<bool, Error> {
    let Ok(mut reader) = reader_of(dir, device) else {
        return Ok(false);
    };
    while let Some(event) = reader.next()? {
        let of_limit = event.action == Action::Split && !event.categories.any(Categories::DISCARD);
        if of_limit && (event.extra as u32).wrapping_sub(event.sector as u32) == sectors {
            return Ok(true);
        }
    }
    Ok(false)
}

fn of_trace(dir: &CaptureDir, device: &str, log: bool) -> Result<Events, Error> {
    let mut reader = reader_of(dir, device)?;
    let mut events = Events::default();
    let mut number = 0;
    while let Some(event) = reader.next()? {
        number += 1;
        if log && event.action == Action::Message {
            let text = String::from_utf8_lossy(reader.pdu()).into_owned();
            let kind = Kind::Line(events.lines.len() as u32);
            events.list.push(bare(number, &event, kind));
            events.lines.push(text);
            continue;
        }
        if let Some(name) = reader.process_name(event.pid) {
            let name = || name.to_owned();
            events.names.entry(event.pid).or_insert_with(name);
        }
        events.list.extend(from_record(number, &event));
    }
    Ok(events)
}

/// An event that is about no request.
fn bare(number: u64, event: &blktrace::Event, kind: Kind) -> Event {
    Event {
        place: Place::Event(number),
        time: event.time,
        cpu: event.cpu as u16,
        pid: event.pid,
        kind,
        op: Op::Read,
        flags: OpFlags::default(),
        sector: Sector(0),
        sectors: Sectors(0),
        ioprio: None,
    }
}

fn from_record(number: u64, event: &blktrace::Event) -> Option<Event> {
    let of_request = event.categories.any(Categories::FS);
    let kind = match event.action {
        Action::Queue => Kind::Queue,
        Action::GetRequest => Kind::Get,
        Action::BackMerge if of_request => Kind::RequestMerge,
        Action::BackMerge => Kind::BioMerge { front: false },
        Action::FrontMerge => Kind::BioMerge { front: true },
        Action::Split => Kind::Split { rest: event.extra },
        Action::Plug => Kind::Plug,
        Action::Unplug | Action::UnplugTimer => Kind::Unplug {
            count: event.extra as u32,
            sleeps: event.action == Action::UnplugTimer,
        },
        Action::Insert => Kind::Insert,
        Action::Issue => Kind::Issue,
        Action::Requeue => Kind::Requeue,
        Action::Complete => Kind::Complete {
            failed: event.error != 0,
        },
        _ => return None,
    };
    if event.categories.any(Categories::PC) {
        return None;
    }
    let set = |bit| event.categories.any(bit);
    let op = if set(Categories::DISCARD) {
        Op::Discard
    } else if set(Categories::WRITE) {
        Op::Write
    } else if set(Categories::FLUSH) && of_request {
        Op::Flush
    } else {
        Op::Read
    };
    Some(Event {
        place: Place::Event(number),
        time: event.time,
        cpu: event.cpu as u16,
        pid: event.pid,
        kind,
        op,
        flags: OpFlags {
            sync: set(Categories::SYNC),
            meta: set(Categories::META),
            rahead: set(Categories::AHEAD),
            preflush: set(Categories::FLUSH) && op != Op::Flush,
            fua: set(Categories::FUA),
            ..OpFlags::default()
        },
        sector: Sector(event.sector),
        sectors: Sectors(event.bytes >> 9),
        ioprio: None,
    })
}

/// ftrace does not tell whether a plug is let go of because its task sleeps. The binary trace does:
/// the letters of each task come in one order, if neither has lost one.
pub(super) fn tell_sleeps(
    dir: &CaptureDir,
    device: &str,
    events: &mut Events,
) -> Result<(), Error> {
    let mut reader = reader_of(dir, device)?;
    let mut told: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    while let Some(event) = reader.next()? {
        if matches!(event.action, Action::Unplug | Action::UnplugTimer) {
            let sleeps = event.action == Action::UnplugTimer;
            told.entry(event.pid).or_default().push(sleeps);
        }
    }
    let mut unplugs: BTreeMap<u32, Vec<&mut bool>> = BTreeMap::new();
    for event in &mut events.list {
        if let Kind::Unplug { sleeps, .. } = &mut event.kind {
            unplugs.entry(event.pid).or_default().push(sleeps);
        }
    }
    for (pid, unplugs) in unplugs {
        let told = told.get(&pid).filter(|told| told.len() == unplugs.len());
        for (sleeps, &told) in unplugs.into_iter().zip(told.into_iter().flatten()) {
            *sleeps = told;
        }
    }
    Ok(())
}

/// What the text trace tells.
#[derive(Debug, Default)]
pub(super) struct Traces {
    /// The events of each device, and probes with the device they belong to.
    pub(super) devices: BTreeMap<DeviceNumber, Events>,
    /// Names of events that nothing here reads, and how many there are.
    pub(super) unread: BTreeMap<String, usize>,
    /// Events of secure erases.
    pub(super) erases: usize,
}

/// Reads the text trace.
pub(super) fn of_ftrace(dir: &CaptureDir) -> Result<Traces, Error> {
    let records = dir.ftrace()?.collect::<Result<Vec<Record>, _>>()?;
    let owners = owners::of_probes(&records, &schedulers_of(dir)?);
    let mut traces = Traces::default();
    for (record, owner) in records.iter().zip(owners) {
        if matches!(record.event, ftrace::Event::Other(_)) {
            *traces.unread.entry(record.name.clone()).or_default() += 1;
        }
        let erases = shape(&record.event).is_some_and(|(_, _, rwbs, ..)| rwbs.starts_with("DE"));
        traces.erases += usize::from(erases);
        let Some((device, event)) = from_line(record, owner) else {
            continue;
        };
        let events = traces.devices.entry(device).or_default();
        if event.kind == Kind::Queue {
            let name = || record.task.clone();
            events.names.entry(event.pid).or_insert_with(name);
        }
        events.list.push(event);
    }
    Ok(traces)
}

/// Probes of the scheduler of each device, of those that have one that is known.
fn schedulers_of(dir: &CaptureDir) -> Result<Vec<(DeviceNumber, &'static Probes)>, Error> {
    let mut all = Vec::new();
    for device in &dir.devices {
        let Ok(queue) = dir.queue(Some(&device.name)) else {
            continue;
        };
        let kind = queue.scheduler().ok().and_then(SchedulerKind::by_name);
        if let Some(facts) = kind.and_then(SchedulerKind::facts)
            && !is_idle(dir, &device.name)?
        {
            all.push((number_of(dir, &device.name)?, &facts.probes));
        }
    }
    Ok(all)
}

/// Device, kind, rwbs, sector and sectors of a block event.
fn shape(event: &ftrace::Event) -> Option<(DeviceNumber, Kind, &str, u64, u32)> {
    use ftrace::Event as E;
    Some(match event {
        E::BioQueue(b) => (b.device, Kind::Queue, &b.rwbs, b.sector, b.sectors),
        E::GetRequest(b) => (b.device, Kind::Get, &b.rwbs, b.sector, b.sectors),
        E::BioBackMerge(b) => {
            let kind = Kind::BioMerge { front: false };
            (b.device, kind, &b.rwbs, b.sector, b.sectors)
        }
        E::BioFrontMerge(b) => {
            let kind = Kind::BioMerge { front: true };
            (b.device, kind, &b.rwbs, b.sector, b.sectors)
        }
        E::RequestMerge(r) => (r.device, Kind::RequestMerge, &r.rwbs, r.sector, r.sectors),
        E::RequestInsert(r) => (r.device, Kind::Insert, &r.rwbs, r.sector, r.sectors),
        E::RequestIssue(r) => (r.device, Kind::Issue, &r.rwbs, r.sector, r.sectors),
        E::RequestRequeue(d) => (d.device, Kind::Requeue, &d.rwbs, d.sector, d.sectors),
        E::RequestComplete(d) => {
            let failed = d.error != 0;
            (
                d.device,
                Kind::Complete { failed },
                &d.rwbs,
                d.sector,
                d.sectors,
            )
        }
        E::Split {
            device,
            rwbs,
            sector,
            new_sector,
            ..
        } => {
            let length = new_sector.saturating_sub(*sector) as u32;
            (
                *device,
                Kind::Split { rest: *new_sector },
                rwbs,
                *sector,
                length,
            )
        }
        _ => return None,
    })
}

fn from_line(record: &Record, owner: Option<DeviceNumber>) -> Option<(DeviceNumber, Event)> {
    let mut event = Event {
        place: Place::Line(record.line),
        time: record.at,
        cpu: record.cpu,
        pid: record.pid,
        kind: Kind::Queue,
        op: Op::Read,
        flags: OpFlags::default(),
        sector: Sector(0),
        sectors: Sectors(0),
        ioprio: None,
    };
    if let Some((device, kind, rwbs, sector, sectors)) = shape(&record.event) {
        event.kind = kind;
        (event.op, event.flags) = op_of_rwbs(rwbs, sectors);
        event.sector = Sector(sector);
        event.sectors = Sectors(sectors);
        return Some((device, event));
    }
    if let Some((device, told)) = Told::of_kernel(&record.event) {
        event.kind = Kind::Told(told);
        return Some((device, event));
    }
    match &record.event {
        ftrace::Event::Probe(probe) => {
            fill_from_probe(&mut event, probe);
            Some((owner?, event))
        }
        // Plug events name no device.
        ftrace::Event::Plug(_) => {
            event.kind = Kind::Plug;
            Some((owner?, event))
        }
        ftrace::Event::Unplug { count, .. } => {
            event.kind = Kind::Unplug {
                count: *count,
                sleeps: false,
            };
            Some((owner?, event))
        }
        _ => None,
    }
}

fn fill_from_probe(event: &mut Event, probe: &Probe) {
    match *probe {
        Probe::Insert(rq) => {
            let at = Jiffies(rq.jiffies);
            event.kind = Kind::Arrive { rq: rq.rq, at };
            event.op = op_of_flags(rq.cmd_flags);
            event.sector = Sector(rq.sector);
            event.sectors = Sectors(rq.bytes >> 9);
            event.ioprio = Some(ioprio(rq.priority));
        }
        Probe::DispatchEntry { jiffies, hctx } => {
            let at = Jiffies(jiffies);
            event.kind = Kind::Ask { at, hctx };
        }
        Probe::DeadlineReturn { chosen, jiffies } => {
            let at = Jiffies(jiffies);
            event.kind = Kind::Answer {
                rq: chosen.map(|(rq, ..)| rq),
                at,
            };
            event.sector = Sector(chosen.map_or(0, |(_, sector, _)| sector));
        }
        Probe::Finish { rq, .. } => event.kind = Kind::Finish { rq },
        Probe::DispatchReturn { request, jiffies } => {
            let at = Jiffies(jiffies);
            event.kind = Kind::Answer {
                rq: request.map(|request| request.rq),
                at,
            };
            event.op = request.map_or(Op::Read, |request| op_of_flags(request.cmd_flags));
            event.sector = Sector(request.map_or(0, |request| request.sector));
            event.sectors = Sectors(request.map_or(0, |request| request.bytes >> 9));
        }
    }
}

/// Operation and switches from the kernel's letters (blk_fill_rwbs()), of a request of so many
/// sectors.
fn op_of_rwbs(rwbs: &str, sectors: u32) -> (Op, OpFlags) {
    let mut letters = rwbs.chars().peekable();
    let mut flags = OpFlags::default();
    // A first F is a preflush, unless it is the flush operation itself (FN, FF).
    let first = letters.peek() == Some(&'F');
    if first {
        letters.next();
    }
    let op = match (letters.next(), letters.peek()) {
        (Some('W'), _) => Op::Write,
        (Some('D'), Some('E')) => SECURE_ERASE,
        (Some('D'), _) => Op::Discard,
        (Some('R'), _) => Op::Read,
        // Of those without a letter of their own the one that has a length.
        (Some('N'), _) if sectors > 0 => Op::WriteZeroes,
        _ if first => Op::Flush,
        _ => Op::Read,
    };
    flags.preflush = first && op != Op::Flush;
    for letter in letters {
        match letter {
            'F' => flags.fua = true,
            'A' => flags.rahead = true,
            'S' => flags.sync = true,
            'M' => flags.meta = true,
            _ => {}
        }
    }
    (op, flags)
}

/// As schedulers see it, an erase is an operation without a kind of its own, as write zeroes is:
/// kyber has both in one domain. It is told, as two of them may merge in the kernel.
const SECURE_ERASE: Op = Op::WriteZeroes;

/// Operation from cmd_flags: REQ_OP_MASK.
fn op_of_flags(cmd_flags: u32) -> Op {
    match cmd_flags & 0xff {
        0 => Op::Read,
        2 => Op::Flush,
        3 => Op::Discard,
        5 => SECURE_ERASE,
        9 => Op::WriteZeroes,
        number if number % 2 == 1 => Op::Write,
        _ => Op::Read,
    }
}

/// A priority as the block layer's model knows it: hints do not count.
pub(super) fn ioprio(raw: IoPriority) -> IoPrio {
    let class = match raw.class {
        1 => IoClass::RealTime,
        2 => IoClass::BestEffort,
        3 => IoClass::Idle,
        _ => IoClass::None,
    };
    IoPrio {
        class,
        level: raw.level,
    }
}

/// The first record of a device's trace.
pub(super) fn first_record(dir: &CaptureDir, device: &str) -> Result<blktrace::Event, Error> {
    let mut reader = reader_of(dir, device)?;
    reader.next()?.ok_or_else(|| {
        let what = format!("the trace of {device} has no events");
        Error::Trace(trace::Error::input(&dir.path, what))
    })
}

/// Nothing happened on a device that was traced: no records, or no files for them.
pub(super) fn is_idle(dir: &CaptureDir, device: &str) -> Result<bool, Error> {
    let named = dir.devices.iter().filter(|traced| traced.name == device);
    for file in named.flat_map(|traced| traced.blktrace.values()) {
        if !blktrace::is_empty(file)? {
            return Ok(reader_of(dir, device)?.next()?.is_none());
        }
    }
    Ok(true)
}

/// Device number of a device, from its first record.
pub(super) fn number_of(dir: &CaptureDir, device: &str) -> Result<DeviceNumber, Error> {
    let device = first_record(dir, device)?.device;
    Ok(DeviceNumber {
        major: device.major(),
        minor: device.minor(),
    })
}

#[cfg(test)]
mod tests;
