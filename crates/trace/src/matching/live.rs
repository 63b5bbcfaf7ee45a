//! An unfinished bio, or a part of one, and the request it leads.
//!
//! Plain data; `matcher` applies the events to it. A request has no record of its own: the bio it
//! was created for leads it and the bios that joined follow in a list.

use blkmq::time::SimTime;

use super::io::{Io, Join, Origin};
use super::table::NONE;
use crate::blktrace::{Categories, Device, Event, Location};

/// How far a bio has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// After A, before any event that shows its destination.
    Remapped,
    /// Q, no request yet.
    Queued,
    /// Leads a request that the driver does not have.
    Waiting,
    /// Leads a request that the driver has.
    Issued,
    /// In the request of another bio; not found by sector.
    Member,
    /// Cut by X: its parts live on their own; not found by sector.
    Parted,
}

/// See the head of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// Range of the bio or part.
    pub(super) sector: u64,
    pub(super) end: u64,
    /// Range of the request it leads; its own range before that.
    pub(super) start: u64,
    pub(super) stop: u64,
    pub(super) seen: SimTime,
    pub(super) q: SimTime,
    pub(super) g: SimTime,
    pub(super) m: SimTime,
    pub(super) i: SimTime,
    pub(super) d: SimTime,
    pub(super) origin: Origin,
    pub(super) location: Location,
    pub(super) bytes: u32,
    pub(super) categories: Categories,
    pub(super) pid: u32,
    pub(super) cpu: u32,
    /// First and last of those that joined, while this one leads.
    pub(super) first_member: u32,
    pub(super) last_member: u32,
    /// Next in the list this one is in.
    pub(super) next_member: u32,
    /// The bio this is a part of.
    pub(super) parent: u32,
    /// Parts that are not complete, and parts there were.
    pub(super) parts_left: u32,
    pub(super) parts: u32,
    pub(super) requeues: u32,
    pub(super) error: u16,
    pub(super) stage: Stage,
    pub(super) join: Join,
    pub(super) absorbed: bool,
}

impl Live {
    /// From the event a life begins with. No time but `seen` is set.
    #[inline]
    pub(super) fn new(event: &Event, stage: Stage, origin: Origin) -> Live {
        Live {
            sector: event.sector,
            end: event.end(),
            start: event.sector,
            stop: event.end(),
            seen: event.time,
            q: SimTime::NEVER,
            g: SimTime::NEVER,
            m: SimTime::NEVER,
            i: SimTime::NEVER,
            d: SimTime::NEVER,
            origin,
            location: event.location,
            bytes: event.bytes,
            categories: event.categories,
            pid: event.pid,
            cpu: event.cpu,
            first_member: NONE,
            last_member: NONE,
            next_member: NONE,
            parent: NONE,
            parts_left: 0,
            parts: 1,
            requeues: 0,
            error: 0,
            stage,
            join: Join::Own,
            absorbed: false,
        }
    }

    /// Same direction, and both discards or neither: shared by a request and its bios. Other flags
    /// change on the way (a preflush is taken off before the data is issued).
    #[inline]
    pub(super) fn same_kind(&self, event: &Event) -> bool {
        let kind = Categories::WRITE.with(Categories::DISCARD).0;
        (self.categories.0 ^ event.categories.0) & kind == 0
    }

    /// Not with the driver, and leading a request or about to.
    #[inline]
    pub(super) fn may_issue(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Queued | Stage::Remapped)
    }

    #[inline]
    pub(super) fn io(&self, device: Device, completed: Option<SimTime>) -> Io {
        let reached = |time: SimTime| (time != SimTime::NEVER).then_some(time);
        Io {
            device,
            sector: self.sector,
            bytes: self.bytes,
            categories: self.categories,
            pid: self.pid,
            cpu: self.cpu,
            queued: reached(self.q),
            got_request: reached(self.g),
            merged: reached(self.m),
            inserted: reached(self.i),
            issued: reached(self.d),
            completed,
            error: self.error,
            origin: self.origin,
            join: self.join,
            absorbed: self.absorbed,
            parts: self.parts,
            requeues: self.requeues,
            location: self.location,
        }
    }
}
