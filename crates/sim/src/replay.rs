//! Replay: the arrivals of a capture, which `machine/replay.rs` plays into a simulated queue.
//!
//! Not here: how they are read and compared with what the kernel did (`scenario/src/replay.rs`).

use blkmq::request::{IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::{Duration, SimTime};
use trace::processes::Group;

mod services;

pub use services::{Services, Taken, service_kind};

/// Which event of the capture an arrival is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Q: a bio was submitted.
    Queue,
    /// D: the driver got a request. Plugs and the merges of the capture are history then.
    Issue,
}

/// When the next arrival comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At its captured time, whatever the simulated queue does.
    Open,
    /// Its captured think time after as many completions of its process as it had seen in the
    /// capture.
    Closed,
}

/// A captured I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub op: Op,
    pub flags: OpFlags,
    /// First sector.
    pub sector: Sector,
    /// Length; 0 for an empty flush.
    pub sectors: Sectors,
    /// Priority: best effort 4, unless the capture tells another.
    pub ioprio: IoPrio,
    /// Writeback of the root group, whatever group the task is in.
    pub of_root: bool,
    pub pid: u32,
    /// CPU that it submitted on.
    pub cpu: u16,
    /// What the capture says of it. `queued` is the time of the arrival.
    pub captured: Times,
}

impl Arrival {
    /// Somebody waits for it: a read, or a write that says so.
    pub(crate) fn waits(&self) -> bool {
        self.op == Op::Read || self.flags.sync
    }
}

/// When an I/O was where; `NEVER` if it was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    pub queued: SimTime,
    /// D that led to completion.
    pub issued: SimTime,
    pub completed: SimTime,
}

impl Times {
    /// Nothing happened yet.
    pub const NEVER: Times = Times {
        queued: SimTime::NEVER,
        issued: SimTime::NEVER,
        completed: SimTime::NEVER,
    };
}

/// What a process does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Submits the arrival of this index.
    Submit(u32),
    Plug,
    Unplug,
}

/// A step of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub kind: StepKind,
    pub at: SimTime,
    /// Time before it that the process had the CPU, if it had a plug: since its last event.
    pub busy: Duration,
    /// Completions of the process before, as captured.
    pub after: u32,
    /// Time since the last of them; since time zero if there is none.
    pub think: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Its task's id.
    pub pid: u32,
    /// Its task's name; empty if the capture does not tell.
    pub name: String,
    /// Its control group: place in [`Arrivals::groups`].
    pub group: u16,
    /// What it does, in order.
    pub steps: Vec<Step>,
    /// Arrivals among the steps.
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
    /// How long the device took.
    pub services: Services,
    /// The most requests that the device had at once.
    pub device_depth: u32,
    /// CPUs that submitted: the highest number and one.
    pub cpus: u16,
    /// What of the capture is not replayed, and other things to know: counted, a sentence each.
    pub notes: Vec<String>,
}
