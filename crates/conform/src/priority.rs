//! Priorities and operations for mode records: blktrace has no priorities, and gives two operations
//! the names of others.
//!
//! Best first: the insertion probes of `ftrace.txt`, the I/O script, the task's line in
//! `priorities.txt` of a simulated run, nothing.

use std::collections::{BTreeMap, VecDeque};

use blkmq::request::{Direction, IoPrio, Op};
use trace::capture::CaptureDir;
use trace::ftrace::IoPriority;
use trace::io_txt::{Call, IoKind};
use trace::priorities;

use super::Error;
use super::event::{self, Event, Events, Kind};
use super::script::Script;

/// Start, length and direction: they identify an I/O in both places.
type Range = (u64, u32, Direction);

fn range(event: &Event) -> Range {
    (event.sector.0, event.sectors.0, event.op.direction())
}

/// Fills in the priorities of a device's events as far as the capture has them.
pub(super) fn fill(
    dir: &CaptureDir,
    device: &str,
    script: &Script,
    events: &mut Events,
) -> Result<(), Error> {
    if let Some(file) = dir.files.get("priorities.txt") {
        of_tasks(&priorities::open(file)?, events);
    }
    from_script(script, events);
    if dir.files.contains_key("ftrace.txt") {
        from_probes(dir, device, events)?;
    }
    Ok(())
}

/// All I/O of a task has the task's priority.
fn of_tasks(tasks: &BTreeMap<u32, priorities::Task>, events: &mut Events) {
    for event in &mut events.list {
        let of_bio = matches!(event.kind, Kind::Queue | Kind::Get | Kind::BioMerge { .. });
        if of_bio && let Some(task) = tasks.get(&event.pid) {
            event.ioprio = Some(event::ioprio(task.priority));
        }
    }
}

fn from_probes(dir: &CaptureDir, device: &str, events: &mut Events) -> Result<(), Error> {
    let number = event::number_of(dir, device)?;
    let mut traces = event::of_ftrace(dir)?;
    if let Some(probed) = traces.devices.remove(&number) {
        take_priorities(&probed.list, events);
        take_operations(&probed.list, &mut events.list);
    }
    Ok(())
}

/// Insertions in the order of their probes: a request of some range is inserted once at a time.
fn take_priorities(probed: &[Event], events: &mut Events) {
    let mut known: BTreeMap<Range, VecDeque<IoPrio>> = BTreeMap::new();
    for event in probed {
        if let (Kind::Arrive { .. }, Some(ioprio)) = (event.kind, event.ioprio) {
            known.entry(range(event)).or_default().push_back(ioprio);
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
}

/// A write of blktrace may be write zeroes, and a discard an erase. Probes of insertions give the
/// operation at the I; where a scheduler has none, the return of its calls gives it at the D. It
/// holds from the Q on.
fn take_operations(probed: &[Event], events: &mut [Event]) {
    let arrives = |event: &Event| matches!(event.kind, Kind::Arrive { .. });
    let inserted = probed.iter().any(arrives);
    let reports = |event: &&Event| match inserted {
        true => arrives(event),
        false => matches!(event.kind, Kind::Answer { rq: Some(_), .. }) && event.sectors.0 > 0,
    };
    let mut known: BTreeMap<Range, VecDeque<Op>> = BTreeMap::new();
    for event in probed.iter().filter(reports) {
        known.entry(range(event)).or_default().push_back(event.op);
    }
    for index in 0..events.len() {
        let reported = match events[index].kind {
            Kind::Insert | Kind::RequestMerge => inserted,
            Kind::Issue => !inserted,
            _ => false,
        };
        let range = range(&events[index]);
        let op = known.get_mut(&range).filter(|_| reported);
        if let Some(op) = op.and_then(VecDeque::pop_front)
            && op != events[index].op
            && op.direction() == events[index].op.direction()
        {
            be_since_queued(&mut events[..=index], op);
        }
    }
}

/// The request of the last event has this operation, and so has its bio.
fn be_since_queued(events: &mut [Event], op: Op) {
    let Some((last, before)) = events.split_last_mut() else {
        return;
    };
    let (is, start) = (last.op, last.sector.0);
    last.op = op;
    for event in before.iter_mut().rev() {
        let end = event.sector.0.saturating_add(u64::from(event.sectors.0));
        let part = event.op == is && (event.sector.0..end).contains(&start);
        let shows = matches!(
            event.kind,
            Kind::Queue | Kind::Split { .. } | Kind::Get | Kind::Insert
        );
        if part && shows {
            event.op = op;
        }
        if part && event.kind == Kind::Queue {
            return;
        }
    }
}

/// Bios of each process in the order of its script; a bio's request has its priority.
fn from_script(script: &Script, events: &mut Events) {
    let tasks = trace::processes::tasks(&script.processes, &events.names);
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

#[cfg(test)]
mod tests;
