//! One stream of events for all modes, read from either of the two traces.
//!
//! Only the data for a comparison is kept: blktrace (`event/records.rs`) and ftrace
//! (`event/text.rs`) give the same events. Not here: the request of an event (`kernel.rs`), and
//! related events (`stream.rs`). Formats: `trace::blktrace`, `trace::ftrace`.

mod device;
mod operation;
mod owners;
mod records;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use blkmq::request::{IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::{Jiffies, SimTime};

use super::Error;
use super::kernel::range;
use super::scheduler_event::SchedulerEvent;
use super::ticks::Probe;

pub(super) use device::{damage, has_log, is_cloned, is_cut_at, is_idle, number_of, raw};
pub(super) use operation::ioprio;
pub(super) use records::{mark_refused, mark_sleeps, of_blktrace, of_blktrace_with_log};
pub(super) use text::{Traces, dropped_by_ftrace, of_ftrace};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Q: a bio enters.
    Queue,
    /// G: a bio has a request of its own.
    Get,
    /// M or F: a bio joined a request, at its front or at its end.
    BioMerge { front: bool },
    /// M: a whole request joined another one.
    RequestMerge,
    /// X: the front part of a bio was cut off; the rest begins at this sector (low 32 bits).
    Split { rest: u64 },
    /// P: first request in an empty plug.
    Plug,
    /// U or UT: a plug is flushed, with so many requests.
    Unplug { count: u32, sleeps: bool },
    /// I: in the scheduler, or in a software queue.
    Insert,
    /// D: with the driver.
    Issue,
    /// R: taken back from the driver.
    Requeue,
    /// C: completed, as far as the length goes.
    Complete { failed: bool },
    /// Probe: a request reaches the scheduler's insertion; I or M follows.
    Arrive { rq: u64, at: Jiffies },
    /// Probe: dd_dispatch_request() is entered.
    Ask { at: Jiffies, hctx: Option<u16> },
    /// Probe: dd_dispatch_request() returns.
    Answer { rq: Option<u64>, at: Jiffies },
    /// Probe: dd_finish_request().
    Finish { rq: u64 },
    /// Trace event of a scheduler with tokens.
    SchedulerEvent(SchedulerEvent),
    /// A line of the scheduler's log: its number in [`Events::lines`].
    Line(u32),
    /// A task exits: the scheduler frees its data for it.
    Exit,
}

/// Position of an event in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of `ftrace.txt`, first 1.
    Line(u64),
    /// Number of the event in a device's blktrace, in order of time, first 1.
    Event(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "ftrace.txt:{line}"),
            Place::Event(number) => write!(f, "event {number} of its blktrace"),
        }
    }
}

/// Sectors of the longest request: the kernel counts its bytes in 32 bits.
pub(super) const LONGEST: u32 = u32::MAX >> 9;

/// Ticks beyond this are no count since the start of a machine.
const TICKS_MOST: u64 = 1 << 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) place: Place,
    pub(super) time: SimTime,
    pub(super) cpu: u16,
    pub(super) pid: u32,
    pub(super) kind: Kind,
    pub(super) op: Op,
    pub(super) flags: OpFlags,
    pub(super) sector: Sector,
    pub(super) sectors: Sectors,
    /// Priority, if the event has one.
    pub(super) ioprio: Option<IoPrio>,
}

impl Event {
    pub(super) fn bare(place: Place, (time, cpu, pid): (SimTime, u16, u32), kind: Kind) -> Event {
        Event {
            place,
            time,
            cpu,
            pid,
            kind,
            op: Op::Read,
            flags: OpFlags::default(),
            sector: Sector(0),
            sectors: Sectors(0),
            ioprio: None,
        }
    }

    /// Numbers with which nothing can be reckoned.
    pub(super) fn check(&self) -> Result<(), String> {
        let (sector, sectors) = (self.sector.0, self.sectors.0);
        if sectors > LONGEST {
            return Err(format!("{sectors} sectors, more than a request can have"));
        }
        if sector.checked_add(u64::from(sectors)).is_none() {
            return Err(format!(
                "{sectors} sectors from {sector} on end beyond any device"
            ));
        }
        let (Kind::Arrive { at, .. } | Kind::Ask { at, .. } | Kind::Answer { at, .. }) = self.kind
        else {
            return Ok(());
        };
        if at.0 > TICKS_MOST {
            return Err(format!("tick {} is out of reach", at.0));
        }
        Ok(())
    }

    /// Its place in the order of all devices: ftrace has one for all of them, and blktrace a clock.
    pub(super) fn order(&self) -> u64 {
        match self.place {
            Place::Line(number) => number,
            Place::Event(_) => self.time.0,
        }
    }

    /// Its request as reports name it.
    pub(super) fn range(&self) -> String {
        range(self.op, self.sector, self.sectors)
    }

    /// An error that names this event.
    pub(super) fn contradiction(&self, capture: &str, device: &str, what: String) -> Error {
        Error::Contradiction {
            capture: capture.to_owned(),
            device: device.to_owned(),
            place: self.place,
            time: self.time,
            what,
        }
    }
}

/// A whole trace of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    pub(super) list: Vec<Event>,
    /// Names of tasks, if the trace has them.
    pub(super) names: BTreeMap<u32, String>,
    /// Texts of the scheduler's log, where they were asked for.
    pub(super) lines: Vec<String>,
    /// Ticks that probes read, where the log was asked for.
    pub(super) ticks: Vec<Probe>,
}

/// The task for which a task of io_uring with this name works, as a worker or to poll the
/// submission queue: it shares that task's I/O context. Kernel: io_uring/io-wq.c, sqpoll.c.
pub(super) fn works_for(name: &str) -> Option<u32> {
    let prefixes = ["iou-wrk-", "iou-sqp-"];
    let owner = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    owner?.parse().ok()
}
