//! Times that records do not show: when a dispatch call took the lock, and when a process exited.
//!
//! A scheduler that keeps accounts by time or by process depends on them. Its log has both; where a
//! capture has none they are assumed, and each assumption is named in the verdict. Best first: the
//! option, the keys of `meta.txt`, the usual value of the machine of our captures.

use std::collections::BTreeMap;

use blkmq::time::{Duration, SimTime};
use trace::capture::CaptureDir;

use super::event::{Event, Events, Kind, works_for};
use super::judge::Judge;
use super::setup::Setup;
use super::{Mode, Options};

/// From a call's lock to the return that a probe shows, or to the D.
const DECIDED_BEFORE: Duration = Duration(30_000);
/// From the cause of a run by kblockd to its first call.
const DECIDED_AFTER: Duration = Duration(60_000);
/// exit_aio() waits for an RCU grace period.
const EXITS_AFTER: Duration = Duration::from_millis(22);
/// Processes that a verdict lists.
const LISTED_MOST: usize = 16;

/// The time of a call's decision, relative to a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    /// Its answer shows so much later.
    pub(super) before: Duration,
    /// For a decision without a record: this long after its cause.
    pub(super) after: Duration,
}

impl Decided {
    pub(super) fn of(dir: &CaptureDir, options: &Options) -> Decided {
        let recorded = &dir.meta.moments;
        let usual = |time| match dir.meta.times_of_labels {
            true => Duration(0),
            false => time,
        };
        let before = options.decided_before.or(recorded.decided_before);
        let later = options.decided_after.or(recorded.decided_after);
        Decided {
            before: before.unwrap_or(usual(DECIDED_BEFORE)),
            after: later.unwrap_or(usual(DECIDED_AFTER)),
        }
    }
}

/// Notes which of these times are assumed in a mode that follows no log.
pub(super) fn take(
    dir: &CaptureDir,
    options: &Options,
    (setup, mode): (&Setup, Mode),
    judge: &mut Judge,
) {
    if !setup.reads_clock() {
        return;
    }
    let recorded = &dir.meta.moments;
    let device = &setup.device;
    let us = |time: Duration| time.0 / 1000;
    if options.decided_before.or(recorded.decided_before).is_none() {
        let shows = match mode {
            Mode::Records => "the D of its request",
            Mode::Calls | Mode::Log => "its return",
        };
        judge.takes(vec![format!(
            "{device}: a dispatch call decides {} us before {shows}; --decided-before, or \
             decided_before_us in meta.txt, says otherwise",
            us(setup.decided.before)
        )]);
    }
    let unseen = mode == Mode::Records;
    if unseen && options.decided_after.or(recorded.decided_after).is_none() {
        judge.takes(vec![format!(
            "{device}: a dispatch call that no D shows decides {} us after its cause; \
             --decided-after, or decided_after_us in meta.txt, says otherwise",
            us(setup.decided.after)
        )]);
    }
}

/// Processes exit: as given, or this long after the end of their last I/O.
pub(super) fn add_exits(
    dir: &CaptureDir,
    options: &Options,
    setup: &Setup,
    events: &mut Events,
    judge: &mut Judge,
) {
    let Some(first) = events.list.first().map(|event| event.time) else {
        return;
    };
    if !setup.sees_exits() {
        return;
    }
    let recorded = &dir.meta.moments;
    let after = options.exits_after.or(recorded.exits_after);
    let ends = ends(&events.list);
    for pid in recorded.exits.keys().filter(|pid| !ends.contains_key(pid)) {
        judge.note(&format!("meta.txt: exit_{pid}: no process of this number"));
    }
    let of_kernel = |pid: &u32| *pid == 0 || is_kernel_thread(events, *pid);
    let mut taken = Vec::new();
    let mut exits = Vec::new();
    let last = events.list.last().map_or(first, |event| event.time);
    for (&pid, &(end, cpu)) in ends.iter().filter(|(pid, _)| !of_kernel(pid)) {
        let at = match recorded.exits.get(&pid) {
            Some(&at) => first + at,
            None => end + after.unwrap_or(EXITS_AFTER),
        };
        // No later event depends on it.
        if at > last {
            continue;
        }
        if after.is_none() && !recorded.exits.contains_key(&pid) {
            let name = events.names.get(&pid).map_or("", String::as_str);
            taken.push(format!("{name} {pid} at {}", SimTime(at.since(first).0)));
        }
        exits.push((at, cpu, pid));
    }
    for (at, cpu, pid) in exits {
        let later = events.list.partition_point(|event| event.time <= at);
        let place = events.list[later.saturating_sub(1)].place;
        let exit = Event::bare(place, (at, cpu, pid), Kind::Exit);
        events.list.insert(later, exit);
    }
    if taken.is_empty() {
        return;
    }
    let more = taken.len().saturating_sub(LISTED_MOST);
    taken.truncate(LISTED_MOST);
    if more > 0 {
        taken.push(format!("{more} more"));
    }
    judge.takes(vec![format!(
        "{}: processes exit {} ms after the end of their last I/O: {}; --exits-after, or \
         exit_PID=SECONDS in meta.txt, says otherwise",
        setup.device,
        EXITS_AFTER.0 / 1_000_000,
        taken.join(", ")
    )]);
}

/// A task of the kernel, which outlives a capture.
fn is_kernel_thread(events: &Events, pid: u32) -> bool {
    let name = events.names.get(&pid).map_or("", String::as_str);
    // A worker of io_uring has no I/O context of its own: the exit of its task counts.
    works_for(name).is_some()
        || name.starts_with("kworker/")
        || name.starts_with("jbd2/")
        || name.starts_with("swapper/")
}

/// For each process that submits: when its last I/O ended, and the CPU that it was on.
fn ends(list: &[Event]) -> BTreeMap<u32, (SimTime, u16)> {
    let mut owners: BTreeMap<u64, u32> = BTreeMap::new();
    let mut ends: BTreeMap<u32, (SimTime, u16)> = BTreeMap::new();
    for event in list {
        match event.kind {
            Kind::Queue => {
                owners.insert(event.sector.0, event.pid);
                ends.insert(event.pid, (event.time, event.cpu));
            }
            Kind::Complete { .. } => {
                let start = event.sector.0;
                let end = start.saturating_add(u64::from(event.sectors.0.max(1)));
                for (_, pid) in owners.range(start..end) {
                    if let Some((time, _)) = ends.get_mut(pid) {
                        *time = event.time;
                    }
                }
            }
            _ => {}
        }
    }
    ends
}
