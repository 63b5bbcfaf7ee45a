//! Level: the requests of one priority, by sector and by age, and the position of a batch among
//! them.
//!
//! Kernel: struct dd_per_prio, struct io_stats_per_prio in block/mq-deadline.c (6.1.192, 6.12.117).

use crate::list::QueueList;
use crate::request::{IoClass, IoPrio, RequestId, Sector};
use crate::sort::SortTree;
use core::hash::{Hash, Hasher};

pub const REAL_TIME: usize = 0;
/// Level of the classes BE and NONE.
pub const BEST_EFFORT: usize = 1;
pub const IDLE: usize = 2;

/// Requests of one priority level (struct dd_per_prio).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Level {
    /// By start sector, per direction.
    pub(super) sort: [SortTree; 2],
    /// By arrival, per direction. Holds the same requests as `sort`.
    pub(super) fifo: [QueueList; 2],
    /// The position of the sector order, per direction.
    pub(super) position: [Position; 2],
    pub(super) stats: Stats,
}

/// The position at which mq-deadline continues a batch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Position {
    /// The request after the last dispatched one, none at the end (v6.1, `next_rq`).
    Next(Option<RequestId>),
    /// The start of the last dispatched request (v6.12, `latest_pos`).
    Latest(Sector),
}

/// Counts of requests that entered a level and how they left it; all wrap (io_stats_per_prio).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub(super) inserted: u32,
    pub(super) merged: u32,
    pub(super) dispatched: u32,
}

/// `merged` and `dispatched` are only shown; no decision depends on them.
impl PartialEq for Stats {
    fn eq(&self, other: &Stats) -> bool {
        self.inserted == other.inserted
    }
}

impl Eq for Stats {}

impl Hash for Stats {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inserted.hash(state);
    }
}

pub fn level_of(ioprio: IoPrio) -> usize {
    match ioprio.class {
        IoClass::RealTime => REAL_TIME,
        IoClass::BestEffort | IoClass::None => BEST_EFFORT,
        IoClass::Idle => IDLE,
    }
}
