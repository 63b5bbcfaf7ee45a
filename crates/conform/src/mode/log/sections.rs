//! The beginning of sections without a record: of a task that exits, and of a completion, which
//! takes the scheduler's lock later than its C shows.

use std::collections::BTreeMap;

use blkmq::elevator::LogMarks;

use crate::event::{Event, Events, Kind};

/// Longest time between two lines of a section, ns.
const BETWEEN_LINES: u64 = 100_000;

/// A task exits before the first line of the section that logs it. One exit may have several such
/// lines.
pub(super) fn add_exits(trace: &mut Events, marks: &LogMarks) {
    let mut exits: Vec<usize> = Vec::new();
    for (at, event) in trace.list.iter().enumerate() {
        let Kind::Line(line) = event.kind else {
            continue;
        };
        if !trace.lines[line as usize].contains(marks.exit) {
            continue;
        }
        let first = first_of(&trace.list, at);
        if exits.last() != Some(&first) {
            exits.push(first);
        }
    }
    for at in exits.into_iter().rev() {
        let mut exit = trace.list[at].clone();
        exit.kind = Kind::Exit;
        trace.list.insert(at, exit);
    }
}

/// The scheduler's finish hook begins at the line that follows a C on its CPU: by then other CPUs
/// may have held its lock.
pub(super) fn add_finishes(trace: &mut Events, marks: &LogMarks) {
    let mut completed: BTreeMap<u16, u32> = BTreeMap::new();
    let mut all = Vec::with_capacity(trace.list.len());
    for event in trace.list.drain(..) {
        let before = completed.remove(&event.cpu);
        match event.kind {
            Kind::Complete { failed: false } => {
                completed.insert(event.cpu, event.pid);
            }
            Kind::Line(line)
                if before == Some(event.pid)
                    && !trace.lines[line as usize].starts_with(marks.dispatch) =>
            {
                let at = (event.time, event.cpu, event.pid);
                all.push(Event::bare(event.place, at, Kind::Finish { rq: 0 }));
            }
            _ => {}
        }
        all.push(event);
    }
    trace.list = all;
}

/// The first line that the same task wrote without a break.
fn first_of(list: &[Event], at: usize) -> usize {
    let mut first = at;
    for before in (0..at).rev() {
        let (event, next) = (&list[before], &list[first]);
        if event.cpu != next.cpu {
            continue;
        }
        let goes_on = matches!(event.kind, Kind::Line(_))
            && event.pid == next.pid
            && next.time.0 - event.time.0 < BETWEEN_LINES;
        if !goes_on {
            break;
        }
        first = before;
    }
    first
}
