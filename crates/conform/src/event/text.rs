//! Events of ftrace: block events, events of schedulers, and probes.
//!
//! Block events name their device; `owners.rs` finds the device of a probe. Unlike blktrace this
//! trace has addresses of requests, ticks and priorities in probes.

use std::collections::BTreeMap;

use blkmq::elevator::{Probes, SchedulerKind};
use blkmq::request::{Op, Sector, Sectors};
use blkmq::time::Jiffies;
use trace::capture::CaptureDir;
use trace::ftrace::{self, DeviceNumber, Probe, Record};

use super::device::{is_idle, number_of};
use super::operation::{ioprio, op_of_flags, op_of_rwbs};
use super::{Event, Events, Kind, Place, owners};
use crate::Error;
use crate::scheduler_event::SchedulerEvent;

/// Content of the text trace.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// The events of each device, and probes with the device they belong to.
    pub(crate) devices: BTreeMap<DeviceNumber, Events>,
    /// Names of events that nothing here reads, and how many there are.
    pub(crate) unread: BTreeMap<String, usize>,
    /// Events of secure erases.
    pub(crate) erases: usize,
}

pub(crate) fn of_ftrace(dir: &CaptureDir) -> Result<Traces, Error> {
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

/// Events that ftrace.txt reports as lost.
pub(crate) fn dropped_by_ftrace(dir: &CaptureDir) -> Result<u64, Error> {
    let mut ftrace = dir.ftrace()?;
    ftrace.by_ref().try_for_each(|record| record.map(drop))?;
    Ok(ftrace.lost_count())
}

/// Probes of the scheduler of each device, of those that have one that is known.
fn schedulers_of(dir: &CaptureDir) -> Result<Vec<(DeviceNumber, &'static Probes)>, Error> {
    let mut all = Vec::new();
    for device in &dir.devices {
        let Ok(queue) = dir.queue(Some(&device.name)) else {
            continue;
        };
        let kind = queue.scheduler().ok().and_then(SchedulerKind::by_name);
        if let Some(info) = kind.and_then(SchedulerKind::info)
            && !is_idle(dir, &device.name)?
        {
            all.push((number_of(dir, &device.name)?, &info.probes));
        }
    }
    Ok(all)
}

/// Device, kind, rwbs, sector and sectors of a block event.
pub(super) fn shape(event: &ftrace::Event) -> Option<(DeviceNumber, Kind, &str, u64, u32)> {
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
    let moment = (record.at, record.cpu, record.pid);
    let mut event = Event::bare(Place::Line(record.line), moment, Kind::Queue);
    if let Some((device, kind, rwbs, sector, sectors)) = shape(&record.event) {
        event.kind = kind;
        (event.op, event.flags) = op_of_rwbs(rwbs, sectors);
        event.sector = Sector(sector);
        event.sectors = Sectors(sectors);
        return Some((device, event));
    }
    if let Some((device, reported)) = SchedulerEvent::of_kernel(&record.event) {
        event.kind = Kind::SchedulerEvent(reported);
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
