//! Empty flushes of one device, which have no range to be found by.
//!
//! The kernel serves all that wait with one flush request of its own (FN in blkparse's letters),
//! so its issue is the issue of each of them. Not here: writes with preflush or FUA, which have
//! data and are matched like any other. Kernel: block/blk-flush.c (v6.12).

use super::io::Origin;
use super::live::{Live, Stage};
use crate::blktrace::{Categories, Event};

/// Flushes without data that are not complete, oldest first.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    pub(super) waiting: Vec<Live>,
}

/// The flush operation itself rather than a bio or request with a flush flag.
fn is_operation(event: &Event) -> bool {
    event.categories.any(Categories::FLUSH) && !event.categories.any(Categories::WRITE)
}

impl Flushes {
    pub(super) fn queue(&mut self, event: &Event) {
        let mut live = Live::new(event, Stage::Queued, Origin::Queue);
        live.q = event.time;
        self.waiting.push(live);
    }

    /// The task's own flush, else the oldest, gets its request.
    pub(super) fn get_request(&mut self, event: &Event) {
        let queued = |live: &&mut Live| live.stage == Stage::Queued;
        let own = self
            .waiting
            .iter()
            .rposition(|live| live.stage == Stage::Queued && live.pid == event.pid);
        let live = match own {
            Some(at) => Some(&mut self.waiting[at]),
            None => self.waiting.iter_mut().find(queued),
        };
        if let Some(live) = live {
            live.stage = Stage::Waiting;
            live.g = event.time;
        }
    }

    /// Inserted without the flush machinery: a device that takes flushes as they come.
    pub(super) fn insert(&mut self, event: &Event) {
        if is_operation(event) {
            return;
        }
        if let Some(live) = self
            .waiting
            .iter_mut()
            .find(|live| live.stage == Stage::Waiting)
        {
            live.i = event.time;
        }
    }

    /// The flush operation serves all that wait, another request only the oldest.
    pub(super) fn issue(&mut self, event: &Event) {
        let all = is_operation(event);
        for live in self
            .waiting
            .iter_mut()
            .filter(|live| live.stage == Stage::Waiting)
        {
            live.stage = Stage::Issued;
            live.d = event.time;
            if !all {
                break;
            }
        }
    }

    /// The oldest flush at that sector, the issued ones first. Nothing if there is none, as for the
    /// empty completion after the data of a device-mapper request.
    pub(super) fn complete(&mut self, event: &Event) -> Option<Live> {
        if is_operation(event) || !event.categories.any(Categories::WRITE) {
            return None;
        }
        let fits = |live: &Live| live.sector == event.sector;
        let issued = self
            .waiting
            .iter()
            .position(|live| live.stage == Stage::Issued && fits(live));
        let at = issued.or_else(|| self.waiting.iter().position(fits))?;
        let mut live = self.waiting.remove(at);
        live.error = event.error;
        Some(live)
    }
}
