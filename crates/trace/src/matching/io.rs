//! The life of one bio, as a block trace shows it.
//!
//! Not a request: a request with five bios gives five of these.

use blkmq::time::SimTime;

use crate::blktrace::{Categories, Device, Location, Rwbs};

/// How a life begins in the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Origin {
    /// With Q: a bio was submitted to this device.
    Queue,
    /// With A, perhaps followed by Q: it came from another device (request-based device-mapper
    /// sends requests down without Q; a partition gives A and then Q).
    Remap {
        from: Device,
        /// Sector there.
        sector: u64,
    },
    /// With D: the trace does not show its origin.
    Issue,
}

/// How a bio got into the request that carried it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Join {
    /// It got a request of its own (G), or none was seen.
    Own,
    /// M: added at the end of a request.
    Back,
    /// F: added at the front of a request.
    Front,
}

/// One bio from Q to C. All times as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    pub device: Device,
    /// First 512-byte sector of the bio.
    pub sector: u64,
    /// Length of the bio in bytes; 0 for an empty flush.
    pub bytes: u32,
    /// Category bits of the first event.
    pub categories: Categories,
    /// Task of the first event: with Q the submitter.
    pub pid: u32,
    /// CPU of the first event.
    pub cpu: u32,
    pub queued: Option<SimTime>,
    /// G, for a bio with a request of its own. Of several parts the first.
    pub got_request: Option<SimTime>,
    /// M or F, for a bio that joined a request.
    pub merged: Option<SimTime>,
    /// I of the request after the bio was in it; of several the last.
    pub inserted: Option<SimTime>,
    /// D that led to completion, so the last. Of several parts the first of these.
    pub issued: Option<SimTime>,
    /// C. Of several parts the last. Nothing if the trace has none.
    pub completed: Option<SimTime>,
    /// Errno of the completion as a positive number; 0 for success.
    pub error: u16,
    pub origin: Origin,
    /// How the bio got into its request. Of several parts: the first.
    pub join: Join,
    /// Its request was later swallowed by a neighbour.
    pub absorbed: bool,
    /// Pieces it was cut into by X; 1 for a bio that stayed whole.
    pub parts: u32,
    /// R: how often its request was issued and requeued.
    pub requeues: u32,
    pub location: Location,
}

impl Io {
    /// Letters blkparse prints for the first event.
    pub fn rwbs(&self) -> Rwbs {
        Rwbs::new(self.categories, self.bytes)
    }

    /// True if data goes to the device, or space is discarded.
    pub fn is_write(&self) -> bool {
        self.categories.any(Categories::WRITE)
    }

    /// First sector after its range.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.bytes >> 9))
    }
}
