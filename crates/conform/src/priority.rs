//! Priorities for mode records: blktrace has none.
//!
//! Best first: the insertion probes of `ftrace.txt`, the I/O script, what `priorities.txt` of a
//! simulated run says of a task, nothing.

use std::collections::{BTreeMap, VecDeque};

use blkmq::request::{Direction, IoPrio};
use trace::capture::CaptureDir;
use trace::ftrace::IoPriority;
use trace::io_txt::{Call, IoKind};

use super::Error;
use super::event::{self, Event, Events, Kind};
use super::script::Script;

/// Start, length and direction: what names an I/O in both places.
type Range = (u64, u32, Direction);

fn range(event: &Event) -> Range {
    (event.sector.0, event.sectors.0, event.op.direction())
}

/// Fills in the priorities of a device's events as far as the capture tells them.
pub(super) fn fill(
    dir: &CaptureDir,
    device: &str,
    script: &Script,
    events: &mut Events,
) -> Result<(), Error> {
    if let Some(file) = dir.files.get("priorities.txt") {
        of_tasks(&trace::priorities::open(file)?, events);
    }
    from_script(script, events);
    if dir.files.contains_key("ftrace.txt") {
        from_probes(dir, device, events)?;
    }
    Ok(())
}

/// All I/O of a task has the task's priority.
fn of_tasks(priorities: &BTreeMap<u32, IoPriority>, events: &mut Events) {
    for event in &mut events.list {
        let of_bio = matches!(event.kind, Kind::Queue | Kind::Get | Kind::BioMerge { .. });
        if of_bio && let Some(&raw) = priorities.get(&event.pid) {
            event.ioprio = Some(event::ioprio(raw));
        }
    }
}

/// Insertions in the order of their probes: a request of some range is inserted once at a time.
fn from_probes(dir: &CaptureDir, device: &str, events: &mut Events) -> Result<(), Error> {
    let number = event::number_of(dir, device)?;
    let mut traces = event::of_ftrace(dir)?;
    let Some(probed) = traces.devices.remove(&number) else {
        return Ok(());
    };
    let mut known: BTreeMap<Range, VecDeque<IoPrio>> = BTreeMap::new();
    for event in &probed.list {
        if let (Kind::Arrive { .. }, Some(ioprio)) = (event.kind, event.ioprio) {
            // The probe knows the operation only by its number: both directions are kept.
            for direction in [Direction::Read, Direction::Write] {
                let range = (event.sector.0, event.sectors.0, direction);
                known.entry(range).or_default().push_back(ioprio);
            }
        }
    }
    for event in &mut events.list {
        if matches!(event.kind, Kind::Insert | Kind::RequestMerge)
            && let Some(queue) = known.get_mut(&range(event))
            && let Some(ioprio) = queue.pop_front()
        {
            event.ioprio = Some(ioprio);
        }
    }
    Ok(())
}

/// Bios of each process in the order of its script; a bio's request has its priority.
fn from_script(script: &Script, events: &mut Events) {
    let tasks = script.tasks(&events.names);
    let mut known: Vec<BTreeMap<Range, VecDeque<IoPrio>>> = Vec::new();
    for process in &script.processes {
        let mut ranges: BTreeMap<Range, VecDeque<IoPrio>> = BTreeMap::new();
        for call in process.expand() {
            let Call::Queue(io) = call else { continue };
            let direction = match io.kind {
                IoKind::Read => Direction::Read,
                IoKind::Write | IoKind::WriteDsync | IoKind::Flush => Direction::Write,
            };
            let raw: IoPriority = io.priority.unwrap_or(process.priority);
            let range = (io.sector, io.sectors, direction);
            ranges
                .entry(range)
                .or_default()
                .push_back(event::ioprio(raw));
        }
        known.push(ranges);
    }
    let mut latest: BTreeMap<u32, (Range, IoPrio)> = BTreeMap::new();
    for event in &mut events.list {
        let range = range(event);
        match event.kind {
            Kind::Queue => {
                let process = tasks.get(&event.pid).copied();
                let queue = process.and_then(|number| known[number].get_mut(&range));
                if let Some(ioprio) = queue.and_then(VecDeque::pop_front) {
                    event.ioprio = Some(ioprio);
                    latest.insert(event.pid, (range, ioprio));
                }
            }
            Kind::Get | Kind::BioMerge { .. } => {
                let known = latest.get(&event.pid).filter(|(of, _)| *of == range);
                event.ioprio = known.map(|&(_, ioprio)| ioprio).or(event.ioprio);
            }
            _ => {}
        }
    }
}
