//! A trace as events of blktrace: the block events of ftrace, `trace-cmd report` or `perf script`.
//!
//! Other events are left out. Plug events name no device: that of the task's latest event is taken.

use std::collections::BTreeMap;

use super::super::event::{Action, Categories, Device, Event};
use super::super::lines::Out;
use super::super::warnings::Warning;
use super::{Bad, Parsed, Parser};
use crate::ftrace::{BlockBio, BlockDone, BlockRequest, DeviceNumber, Event as Traced};
use crate::ftrace::{Record, lost_events, overwritten, parse};

/// Tasks whose device is remembered.
const TASKS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct TraceText {
    /// Device of the latest event of each task, for its plug events.
    devices: BTreeMap<u32, Device>,
}

impl TraceText {
    pub(crate) fn begins(lines: &[&str]) -> bool {
        let first = lines.iter().find(|line| !is_remark(line));
        lines
            .first()
            .is_some_and(|line| line.starts_with("# tracer:"))
            || first.is_some_and(|line| parse(line, 1).is_ok())
    }
}

/// A comment, or the first line of `trace-cmd report`.
fn is_remark(line: &str) -> bool {
    line.starts_with('#') || line.starts_with("cpus=")
}

impl Parser for TraceText {
    fn line(&mut self, line: &str, out: &mut Out<'_>) -> Parsed<()> {
        let lost = overwritten(line).or_else(|| lost_events(line)).unwrap_or(0);
        out.warn(Warning::Dropped, lost);
        if is_remark(line) || lost > 0 {
            return Ok(());
        }
        let record = parse(line, 0).map_err(|(field, what)| Bad { field, what })?;
        let Some(event) = self.event(&record)? else {
            return Ok(());
        };
        if record.pid != 0 {
            out.process(record.pid, &record.task);
        }
        out.event(event);
        Ok(())
    }

    fn lacks(&self) -> String {
        "a trace of ftrace has no hardware queues, and does not distinguish U from UT".to_owned()
    }
}

impl TraceText {
    fn event(&mut self, record: &Record) -> Parsed<Option<Event>> {
        let event = match &record.event {
            Traced::BioQueue(bio) => of_bio(record, Action::Queue, bio)?,
            Traced::GetRequest(bio) => of_bio(record, Action::GetRequest, bio)?,
            Traced::BioBackMerge(bio) => of_bio(record, Action::BackMerge, bio)?,
            Traced::BioFrontMerge(bio) => of_bio(record, Action::FrontMerge, bio)?,
            Traced::RequestMerge(rq) => of_request(record, Action::BackMerge, rq)?,
            Traced::RequestInsert(rq) => of_request(record, Action::Insert, rq)?,
            Traced::RequestIssue(rq) => of_request(record, Action::Issue, rq)?,
            Traced::RequestComplete(done) => of_done(record, Action::Complete, done, true)?,
            Traced::RequestRequeue(done) => of_done(record, Action::Requeue, done, true)?,
            Traced::BioComplete(done) => of_done(record, Action::Complete, done, false)?,
            Traced::Plug(_) => return Ok(self.plug(record, Action::Plug, 0)),
            Traced::Unplug { count, .. } => {
                return Ok(self.plug(record, Action::Unplug, u64::from(*count)));
            }
            Traced::Split {
                device,
                rwbs,
                sector,
                new_sector,
                ..
            } => {
                // The front part ends there; the number can be cut to 32 bits.
                let bytes = bytes_of((*new_sector as u32).wrapping_sub(*sector as u32))?;
                Event {
                    extra: *new_sector,
                    ..event(record, Action::Split, *device, rwbs, *sector, bytes)?
                }
            }
            Traced::BioRemap(moved) | Traced::RequestRemap { moved, .. } => {
                let (sector, bytes) = (moved.sector, bytes_of(moved.sectors)?);
                Event {
                    from: number(moved.old_device)?,
                    extra: moved.old_sector,
                    ..event(
                        record,
                        Action::Remap,
                        moved.device,
                        &moved.rwbs,
                        sector,
                        bytes,
                    )?
                }
            }
            _ => return Ok(None),
        };
        if self.devices.len() >= TASKS {
            self.devices.clear();
        }
        self.devices.insert(record.pid, event.device);
        Ok(Some(event))
    }

    fn plug(&self, record: &Record, action: Action, depth: u64) -> Option<Event> {
        Some(Event {
            device: *self.devices.get(&record.pid)?,
            cpu: u32::from(record.cpu),
            pid: record.pid,
            extra: depth,
            categories: Categories::READ.of_action(action),
            ..Event::new(record.at, action)
        })
    }
}

fn of_bio(record: &Record, action: Action, bio: &BlockBio) -> Parsed<Event> {
    let bytes = bytes_of(bio.sectors)?;
    event(record, action, bio.device, &bio.rwbs, bio.sector, bytes)
}

/// A request's event; of a passthrough request if it has a command.
fn of_request(record: &Record, action: Action, rq: &BlockRequest) -> Parsed<Event> {
    let event = event(record, action, rq.device, &rq.rwbs, rq.sector, rq.bytes)?;
    Ok(marked(event, !rq.command.is_empty()))
}

fn of_done(record: &Record, action: Action, done: &BlockDone, request: bool) -> Parsed<Event> {
    let bytes = bytes_of(done.sectors)?;
    let error = u16::try_from(done.error.unsigned_abs()).unwrap_or(u16::MAX);
    let event = Event {
        error,
        ..event(record, action, done.device, &done.rwbs, done.sector, bytes)?
    };
    Ok(match request {
        true => marked(event, !done.command.is_empty()),
        false => event,
    })
}

fn marked(event: Event, passthrough: bool) -> Event {
    let bits = Categories(event.categories.0 & !Categories::FS.0);
    let mark = match passthrough {
        true => Categories::PC,
        false => Categories::FS,
    };
    Event {
        categories: bits.with(mark),
        ..event
    }
}

fn event(
    record: &Record,
    action: Action,
    device: DeviceNumber,
    rwbs: &str,
    sector: u64,
    bytes: u32,
) -> Parsed<Event> {
    let bits = Categories::from_rwbs(rwbs);
    let bits = bits.ok_or_else(|| Bad::new("rwbs", rwbs, "letters such as R, WS or FF"))?;
    Ok(Event {
        sector,
        bytes,
        categories: bits.of_action(action),
        device: number(device)?,
        cpu: u32::from(record.cpu),
        pid: record.pid,
        ..Event::new(record.at, action)
    })
}

fn number(device: DeviceNumber) -> Parsed<Device> {
    let DeviceNumber { major, minor } = device;
    let fits = major < 1 << 12 && minor < 1 << 20;
    fits.then(|| Device::new(major, minor))
        .ok_or_else(|| Bad::new("dev", &device.to_string(), "a device number"))
}

fn bytes_of(sectors: u32) -> Parsed<u32> {
    let bytes = sectors.checked_mul(512);
    bytes.ok_or_else(|| Bad::new("nr_sector", &sectors.to_string(), "at most 8388607"))
}
