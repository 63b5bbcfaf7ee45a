//! Merges of bios and requests with queued ones, and the effect on their queue.
//!
//! Each look-up for a merge also searches for a queue to cooperate with, so that queues are merged
//! too. Kernel: bfq_bio_merge(), bfq_allow_bio_merge(), bfq_request_merged(), bfq_requests_merged()
//! in block/bfq-iosched.c (6.1.192, 6.12.117).

use super::Bfq;
use super::arrive::queue_of;
use super::ids::GroupId;
use crate::elevator::merging::{self, MergeHooks};
use crate::elevator::scheduler::{BioMerge, is_sync};
use crate::merge::{MergeIndex, Merging, Side, front_side};
use crate::request::{BioId, Place, RequestId, RequestPool};
use crate::rules::QueueLimits;

impl Bfq {
    /// bfq_bio_merge().
    pub(super) fn offer_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        merging: Merging<'_>,
    ) -> BioMerge {
        self.charge(4);
        let asked = pool.bio(bio);
        let (process, sync) = (asked.io_context, is_sync(asked.op, asked.flags));
        let actuator = self.actuator_of(asked.sector, asked.sectors);
        if self.processes.len() > process.0 as usize {
            self.update_group(pool, process, GroupId(asked.group));
        }
        self.bio_queue = self.slot(process, sync, actuator);
        self.bio_traced = false;
        let merged = merging::try_merge(self, pool, bio, merging);
        self.bio_queue = None;
        self.bio_traced = true;
        merged
    }

    /// Later messages come after the record of the bio's merge.
    fn bio_is_traced(&mut self) {
        if !core::mem::replace(&mut self.bio_traced, true) {
            self.log.traced();
        }
    }
}

impl MergeHooks for Bfq {
    fn index(&mut self) -> &mut MergeIndex {
        &mut self.index
    }

    /// bfq_allow_bio_merge().
    fn allow_merge(&mut self, pool: &RequestPool, rq: RequestId, bio: BioId) -> bool {
        self.charge(3);
        let (request, bio) = (&pool[rq], pool.bio(bio));
        if is_sync(bio.op, bio.flags) && !is_sync(request.op, request.flags) {
            return false;
        }
        let Some(mut q) = self.bio_queue else {
            return false;
        };
        if let Some(new) = self.setup_cooperator(pool, q, bio.sector, bio.io_context) {
            self.move_process(bio.io_context, q, new);
            q = new;
            self.bio_queue = Some(q);
        }
        queue_of(request) == Some(q)
    }

    /// bfq_request_merge(): a front merge, within the bio's own queue.
    fn request_merge(
        &mut self,
        pool: &RequestPool,
        bio: BioId,
        limits: &QueueLimits,
    ) -> Option<(RequestId, Side)> {
        let q = self.bio_queue?;
        let asked = pool.bio(bio);
        let end = asked.sector.end(asked.sectors);
        let rq = self.queues[q].sort.find(pool, end)?;
        let side = front_side(&pool[rq], asked, limits)?;
        self.allow_merge(pool, rq, bio).then_some((rq, side))
    }

    fn former_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        let q = queue_of(&pool[rq])?;
        self.queues[q].sort.prev(pool, rq)
    }

    fn next_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        let q = queue_of(&pool[rq])?;
        self.queues[q].sort.next(pool, rq)
    }

    /// bfq_request_merged().
    fn grown_at_front(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.charge(4);
        self.bio_is_traced();
        let q = queue_of(&pool[rq]).expect("a queued request has a queue");
        let prev = self.queues[q].sort.prev(pool, rq);
        let passed = prev.is_some_and(|prev| pool[rq].sector < pool[prev].sector);
        let sector = pool[rq].sector;
        if !passed {
            self.queues[q].sort.starts_at(pool, rq, sector);
            return;
        }
        self.queues[q].sort.remove(pool, rq);
        self.queues[q].sort.insert(pool, rq, sector);
        let before = self.queues[q].next_rq;
        let next = self.choose(pool, before, Some(rq), self.last_position);
        self.queues[q].next_rq = next;
        if before != next {
            self.updated_next(pool, q);
            if !self.nonrot_with_queueing {
                self.position_update(pool, q);
            }
        }
    }

    /// bfq_requests_merged().
    fn requests_merged(&mut self, pool: &mut RequestPool, rq: RequestId, next: RequestId) {
        self.charge(4);
        self.bio_is_traced();
        let q = queue_of(&pool[rq]);
        // A request that is merged before it has a queue gets one here, which is put at once (up to
        // v5.16).
        let of_next = self.init_rq(pool, next);
        let queued = pool[next].place == Place::Elevator;
        if let Some(q) = q {
            if queued && of_next == Some(q) && pool[next].fifo_time < pool[rq].fifo_time {
                // The request takes the fifo position of the older one, which is about to be freed.
                let fifo = &mut self.queues[q].fifo;
                fifo.remove(pool, rq);
                fifo.insert_before(pool, next, rq);
                pool[rq].fifo_time = pool[next].fifo_time;
            }
            if self.queues[q].next_rq == Some(next) {
                self.queues[q].next_rq = Some(rq);
            }
        }
        if queued {
            let of_next = of_next.expect("a queued request has a queue");
            self.remove(pool, next, of_next);
        }
        self.log.traced();
    }
}
