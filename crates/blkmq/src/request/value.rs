//! A pool as a value: copied, compared and hashed by the explorer.
//!
//! Not compared: the CPU that touched an entry, times that are only measured, and data of the
//! former user in a free slot. Copying into an existing pool allocates nothing.

use super::{Place, Request, RequestPool, Slot};
use core::hash::{Hash, Hasher};

impl Clone for RequestPool {
    fn clone(&self) -> RequestPool {
        RequestPool {
            bios: self.bios.clone(),
            free_bios: self.free_bios.clone(),
            slots: self.slots.clone(),
            toucher: self.toucher,
            lines: self.lines.clone(),
            usage: self.usage,
        }
    }

    fn clone_from(&mut self, source: &RequestPool) {
        self.bios.clone_from(&source.bios);
        self.free_bios.clone_from(&source.free_bios);
        self.slots.clone_from(&source.slots);
        self.toucher = source.toucher;
        self.usage = source.usage;
    }
}

impl PartialEq for RequestPool {
    fn eq(&self, other: &RequestPool) -> bool {
        self.slots == other.slots
            && self.bios == other.bios
            && self.free_bios == other.free_bios
            && self.usage == other.usage
    }
}

impl Eq for RequestPool {}

impl PartialEq for Slot {
    fn eq(&self, other: &Slot) -> bool {
        // A free slot is on no list and in no tree.
        let free = self.request.place == Place::Free;
        self.request.key() == other.request.key()
            && (free
                || self.queue == other.queue
                    && self.hash == other.hash
                    && self.sort == other.sort
                    && self.rq_next == other.rq_next)
    }
}

impl Hash for RequestPool {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for slot in &self.slots {
            slot.request.key().hash(state);
            if slot.request.place != Place::Free {
                slot.queue.hash(state);
                slot.hash.hash(state);
                slot.sort.hash(state);
                slot.rq_next.hash(state);
            }
        }
        self.bios.hash(state);
        self.free_bios.hash(state);
        // The number of users follows from the rest.
        self.usage.is_frozen().hash(state);
    }
}

impl Request {
    /// All fields that a decision can depend on; none of a free slot, which is reset before its
    /// next use.
    fn key(&self) -> Option<impl Eq + Hash + use<>> {
        if self.place == Place::Free {
            return None;
        }
        let address = (
            self.op,
            self.flags,
            self.sector,
            self.sectors,
            self.segments,
            self.ioprio,
            self.io_context,
        );
        let identity = (
            (self.tag, self.uncounted),
            self.internal_tag,
            self.ctx,
            self.hctx,
            self.budget,
            self.place,
        );
        let marks = (
            self.use_sched,
            self.started,
            self.dontprep,
            self.flush_seq,
            self.softbarrier,
            self.passthrough,
            self.flush_step,
            self.in_flight,
            self.polled,
        );
        let scheduler = (self.elv_priv, self.fifo_time, self.hashed);
        let bios = (self.bio_first, self.bio_last, self.status);
        Some((address, identity, marks, scheduler, bios))
    }
}
