//! Replay: the arrivals of a capture, which `machine/replay.rs` plays into a simulated queue.
//!
//! Not here: parsing, and the comparison with the kernel (`scenario/src/replay.rs`).

use blkmq::request::{IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::{Duration, SimTime};
use trace::processes::Group;

mod services;

pub use services::{Services, Taken, service_kind};

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
    /// Its captured think time after as many completions of its process as it had seen in the
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
    /// Captured times. `queued` is the time of the arrival.
    pub captured: Times,
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
    /// Completions of the process before, as captured.
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
    pub steps: Vec<Step>,
    pub submits: u32,
}

/// All arrivals of one device of a capture.
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
    /// Service times of the device.
    pub services: Services,
    /// The most requests in flight.
    pub device_depth: u32,
    /// The device was sent flushes: it has a volatile write cache.
    pub write_cache: bool,
    /// It was sent FUA writes.
    pub fua: bool,
    /// CPUs that submitted: the highest number and one.
    pub cpus: u16,
    /// Parts of the capture that are not replayed, and other notes: counted, a sentence each.
    pub notes: Vec<String>,
}
