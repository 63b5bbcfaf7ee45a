//! Events of blktrace: its binary records, and the lines that a scheduler wrote among them.
//!
//! A record has no address of its request, no priority, and of the operation only the categories.
//! Read next: `text.rs`, which has those from ftrace.

use std::collections::BTreeMap;

use blkmq::request::{Op, OpFlags, Sector, Sectors};
use trace::blktrace::{self, Action, Categories};
use trace::capture::CaptureDir;

use super::device::reader_of;
use super::{Event, Events, Kind, Place, works_for};
use crate::Error;

/// Reads the binary trace of `device`.
pub(crate) fn of_blktrace(dir: &CaptureDir, device: &str) -> Result<Events, Error> {
    of_trace(dir, device, false)
}

/// The same with the messages that a scheduler wrote into it.
pub(crate) fn of_blktrace_with_log(dir: &CaptureDir, device: &str) -> Result<Events, Error> {
    of_trace(dir, device, true)
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
            let place = Place::Event(number);
            let moment = (event.time, event.cpu as u16, event.pid);
            events.list.push(Event::bare(place, moment, kind));
            events.lines.push(text);
            continue;
        }
        if let Some(name) = reader.process_name(event.pid) {
            let name = || name.to_owned();
            events.names.entry(event.pid).or_insert_with(name);
        }
        events.list.extend(from_record(number, &event));
    }
    rename_workers(dir, &mut events.names)?;
    Ok(events)
}

/// A blktrace file has the first name of a task, which a worker of io_uring has from its owner.
fn rename_workers(dir: &CaptureDir, names: &mut BTreeMap<u32, String>) -> Result<(), Error> {
    let is_worker = |name: &str| works_for(name).is_some();
    if !names.values().any(|name| is_worker(name)) || !dir.files.contains_key("ftrace.txt") {
        return Ok(());
    }
    for record in dir.ftrace()? {
        let record = record?;
        if is_worker(&record.task)
            && let Some(name) = names.get_mut(&record.pid)
        {
            *name = record.task;
        }
    }
    Ok(())
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
    let moment = (event.time, event.cpu as u16, event.pid);
    Some(Event {
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
        ..Event::bare(Place::Event(number), moment, kind)
    })
}

/// ftrace does not record whether a plug is flushed because its task sleeps. The binary trace does:
/// the letters of each task come in one order, if neither has lost one.
pub(crate) fn mark_sleeps(
    dir: &CaptureDir,
    device: &str,
    events: &mut Events,
) -> Result<(), Error> {
    let mut reader = reader_of(dir, device)?;
    let mut found: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    while let Some(event) = reader.next()? {
        if matches!(event.action, Action::Unplug | Action::UnplugTimer) {
            let sleeps = event.action == Action::UnplugTimer;
            found.entry(event.pid).or_default().push(sleeps);
        }
    }
    let mut unplugs: BTreeMap<u32, Vec<&mut bool>> = BTreeMap::new();
    for event in &mut events.list {
        if let Kind::Unplug { sleeps, .. } = &mut event.kind {
            unplugs.entry(event.pid).or_default().push(sleeps);
        }
    }
    for (pid, unplugs) in unplugs {
        let found = found.get(&pid).filter(|found| found.len() == unplugs.len());
        for (sleeps, &found) in unplugs.into_iter().zip(found.into_iter().flatten()) {
            *sleeps = found;
        }
    }
    Ok(())
}

/// ftrace does not record that a bio which must not wait found no tag: its C is a bio's. The binary
/// trace has it after the Q of its task. Bios of one task and start come in one order in both.
pub(crate) fn mark_refused(
    dir: &CaptureDir,
    device: &str,
    events: &mut Events,
) -> Result<(), Error> {
    let mut reader = reader_of(dir, device)?;
    let mut found: BTreeMap<(u32, u64), Vec<bool>> = BTreeMap::new();
    let mut last: BTreeMap<u32, blktrace::Event> = BTreeMap::new();
    while let Some(event) = reader.next()? {
        if event.action == Action::Message {
            continue;
        }
        let before = last.insert(event.pid, event);
        match (event.action, before) {
            (Action::Queue, _) => {
                let bios = found.entry((event.pid, event.sector)).or_default();
                bios.push(false);
            }
            (Action::Complete, Some(queue)) if event.error != 0 => {
                let same = (queue.sector, queue.bytes) == (event.sector, event.bytes);
                let bios = found.get_mut(&(event.pid, event.sector));
                if let Some(bio) = bios.and_then(|bios| bios.last_mut())
                    && same
                    && queue.action == Action::Queue
                {
                    *bio = true;
                }
            }
            _ => {}
        }
    }
    found.retain(|_, bios| bios.contains(&true));
    if found.is_empty() {
        return Ok(());
    }
    let mut seen: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    let mut all = Vec::with_capacity(events.list.len());
    for event in events.list.drain(..) {
        let key = (event.pid, event.sector.0);
        let refused = event.kind == Kind::Queue && {
            let number = seen.entry(key).or_insert(0);
            *number += 1;
            found
                .get(&key)
                .is_some_and(|bios| bios.get(*number - 1) == Some(&true))
        };
        let end = refused.then(|| Event {
            kind: Kind::Complete { failed: true },
            ..event.clone()
        });
        all.push(event);
        all.extend(end);
    }
    events.list = all;
    Ok(())
}
