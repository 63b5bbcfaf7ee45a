//! Replay: the arrivals of a capture, which `machine/replay.rs` plays into a simulated queue.
//!
//! Not here: parsing, and the comparison with the kernel (`scenario/src/replay.rs`).

use std::collections::BTreeMap;

use blkmq::request::{IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::{Duration, SimTime};
use trace::processes::Group;

mod services;

pub use services::{Lookup, Services};

/// The event of the capture that is an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Q: a bio was submitted.
    Queue,
    /// D: the driver got a request. Plugs and merges of the capture are in the past then.
    Issue,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At its captured time, independent of the simulated queue.
    Open,
    /// Its captured think time after as many completions of its process as it waited for in the
    /// capture.
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub op: Op,
    pub flags: OpFlags,
    pub sector: Sector,
    /// Length; 0 for an empty flush.
    pub sectors: Sectors,
    /// Priority: best effort 4, unless the capture has another.
    pub ioprio: IoPrio,
    /// Writeback of the root group, in any group of its task.
    pub of_root: bool,
    pub pid: u32,
    pub cpu: u16,
    /// Place in [`Arrivals::disks`].
    pub disk: u16,
    /// Captured times. `queued` is the time of the arrival.
    pub captured: Times,
    /// Captured time of G; `NEVER` without a request of its own.
    pub got: SimTime,
}

impl Arrival {
    /// A task waits for it: a read, or a synchronous write.
    pub(crate) fn waits(&self) -> bool {
        self.op == Op::Read || self.flags.sync
    }
}

/// Times of the stages of an I/O; `NEVER` if it did not reach one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    pub queued: SimTime,
    /// D that led to completion.
    pub issued: SimTime,
    pub completed: SimTime,
}

impl Times {
    pub const NEVER: Times = Times {
        queued: SimTime::NEVER,
        issued: SimTime::NEVER,
        completed: SimTime::NEVER,
    };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    Submit(u32),
    Plug,
    Unplug,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub kind: StepKind,
    pub at: SimTime,
    /// CPU time of the process before it, if it had a plug: since its last event.
    pub busy: Duration,
    /// Completions of the process that it waited for.
    pub after: u32,
    /// Time since the last of them; since time zero if there is none.
    pub think: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    pub pid: u32,
    /// Its task's name; empty if the capture has none.
    pub name: String,
    /// Its control group: place in [`Arrivals::groups`].
    pub group: u16,
    /// The stream with whose I/Os it waits for completions: its own place, or that of the task that
    /// an io_uring worker submits for.
    pub ring: u32,
    pub steps: Vec<Step>,
    pub submits: u32,
}

/// What a capture shows of a device.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CapturedDisk {
    /// Service times.
    pub services: Services,
    /// The most requests with the driver at once, from D to C.
    pub depth: u32,
    /// The most requests allocated at once, from G to C.
    pub requests: u32,
    /// It was sent flushes: it has a volatile write cache.
    pub write_cache: bool,
    /// It was sent FUA writes.
    pub fua: bool,
}

/// All arrivals of a capture: of one device, or of those that have one tag set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrivals {
    pub point: Point,
    /// Recorded time of the instant that is zero here: a whole second, so that ticks fall where
    /// they fell.
    pub base: SimTime,
    /// In the order of arrival.
    pub ios: Vec<Arrival>,
    /// By process, in the order of their first step.
    pub streams: Vec<Stream>,
    /// Control groups with the weight of each, the root first.
    pub groups: Vec<Group>,
    pub disks: Vec<CapturedDisk>,
    /// CPUs that submitted: the highest number and one.
    pub cpus: u16,
    /// Parts of the capture that are not replayed, and other notes: counted, a sentence each.
    pub notes: Vec<String>,
}

/// How long requests waited for what is not the device.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HostDelays {
    /// After each completion, by number, until the hardware queue issued a request that had waited
    /// for it; zero where none did, or an earlier completion was the first since its last request.
    pub completing: Vec<Duration>,
    /// From each arrival to its issue, where there was no other I/O.
    pub submitting: Vec<Option<Duration>>,
}

/// One event of an I/O. Completions come before issues of their time, arrivals last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Ended,
    Issued,
    Queued,
}

#[derive(Default)]
struct HardwareQueue {
    in_flight: u32,
    waiting: u32,
    /// The first completion since the last request, if it was full.
    freed: Option<(usize, SimTime)>,
}

impl HostDelays {
    /// `queue_of`: the hardware queue of each I/O, or one number for those that share tags; `tags`:
    /// the requests that each can have with the device.
    pub fn of(times: &[Times], queue_of: impl Fn(usize) -> u32, tags: u32) -> HostDelays {
        let mut events: Vec<(SimTime, Seen, usize)> = Vec::new();
        for (index, t) in times.iter().enumerate() {
            let all = [
                (t.queued, Seen::Queued),
                (t.issued, Seen::Issued),
                (t.completed, Seen::Ended),
            ];
            let seen = all.into_iter().filter(|(at, _)| *at != SimTime::NEVER);
            events.extend(seen.map(|(at, seen)| (at, seen, index)));
        }
        events.sort_unstable();
        let mut delays = HostDelays {
            submitting: vec![None; times.len()],
            ..HostDelays::default()
        };
        let mut queues: BTreeMap<u32, HardwareQueue> = BTreeMap::new();
        let (mut last, mut busy) = (None, 0);
        for (at, seen, index) in events {
            let queue = queues.entry(queue_of(index)).or_default();
            // Bios of one request are issued and end together.
            let again = last.replace((at, seen, queue_of(index))) == last;
            busy -= u32::from(seen == Seen::Ended);
            match seen {
                Seen::Queued => {
                    let issued = Some(times[index].issued).filter(|at| *at != SimTime::NEVER);
                    let alone = issued.filter(|_| busy == 0);
                    delays.submitting[index] = alone.map(|issued| issued.since(at));
                    busy += u32::from(times[index].completed != SimTime::NEVER);
                    queue.waiting += 1;
                }
                Seen::Issued => {
                    queue.waiting = queue.waiting.saturating_sub(1);
                    queue.in_flight += u32::from(!again);
                    let freed = queue.freed.take();
                    if let Some((number, ended)) =
                        freed.filter(|(_, ended)| times[index].queued < *ended)
                    {
                        delays.completing[number] = at.since(ended);
                    }
                }
                Seen::Ended if !again => {
                    if queue.in_flight >= tags && queue.waiting > 0 {
                        queue.freed.get_or_insert((delays.completing.len(), at));
                    }
                    queue.in_flight = queue.in_flight.saturating_sub(1);
                    delays.completing.push(Duration::ZERO);
                }
                Seen::Ended => {}
            }
        }
        delays
    }
}

#[cfg(test)]
mod tests;
