//! Merges of bios and requests with queued ones, within the submitter's own queue.
//!
//! Kernel: cfq_merge(), cfq_allow_merge(), cfq_merged_request(), cfq_merged_requests() in
//! block/cfq-iosched.c (2.6.32 to 4.20).

use super::Cfq;
use super::arrive::{own_queue, queue_of};
use crate::elevator::merging::{self, MergeHooks};
use crate::elevator::scheduler::{BioMerge, is_sync};
use crate::merge::{MergeIndex, Merging, Side, front_side};
use crate::request::{BioId, Place, RequestId, RequestPool};
use crate::rules::{NextFrom, QueueLimits};

impl Cfq {
    /// Offers a bio for a merge (elv_merge()).
    pub(super) fn offer_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        merging: Merging<'_>,
    ) -> BioMerge {
        let asked = pool.bio(bio);
        self.bio_queue = self
            .ties
            .slot(asked.io_context, is_sync(asked.op, asked.flags));
        // The record of a merge comes before the messages that follow from it.
        self.log.traced();
        let merged = merging::try_merge(self, pool, bio, merging);
        self.bio_queue = None;
        merged
    }
}

impl MergeHooks for Cfq {
    fn index(&mut self) -> &mut MergeIndex {
        &mut self.index
    }

    /// cfq_allow_merge(): never merges a synchronous bio into an asynchronous request, and only
    /// within the queue that the bio would get.
    fn allow_merge(&mut self, pool: &RequestPool, rq: RequestId, bio: BioId) -> bool {
        let (request, bio) = (&pool[rq], pool.bio(bio));
        if is_sync(bio.op, bio.flags) && !is_sync(request.op, request.flags) {
            return false;
        }
        self.bio_queue.is_some() && queue_of(request) == self.bio_queue
    }

    /// cfq_allow_rq_merge().
    fn allow_request_merge(&mut self, pool: &RequestPool, rq: RequestId, next: RequestId) -> bool {
        queue_of(&pool[rq]) == queue_of(&pool[next])
    }

    /// cfq_merge(): a front merge.
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
        self.queues[own_queue(&pool[rq])].sort.prev(pool, rq)
    }

    fn next_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        self.queues[own_queue(&pool[rq])].sort.next(pool, rq)
    }

    /// cfq_merged_request(): sorts the request by its new start.
    fn grown_at_front(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let q = own_queue(&pool[rq]);
        let sync = is_sync(pool[rq].op, pool[rq].flags);
        self.queues[q].sort.remove(pool, rq);
        self.queues[q].queued[usize::from(sync)] -= 1;
        self.add_sorted(pool, rq);
    }

    /// cfq_merged_requests(). A request that was not queued yet needs no removal.
    fn requests_merged(&mut self, pool: &mut RequestPool, rq: RequestId, next: RequestId) {
        if pool[next].place != Place::Elevator {
            return;
        }
        let (q, of_next) = (own_queue(&pool[rq]), own_queue(&pool[next]));
        if q == of_next && pool[next].fifo_time < pool[rq].fifo_time {
            let fifo = &mut self.queues[q].fifo;
            fifo.remove(pool, rq);
            fifo.insert_before(pool, next, rq);
            pool[rq].fifo_time = pool[next].fifo_time;
        }
        let takes_turn = self.rules.next_from == NextFrom::Leaving;
        if takes_turn && self.queues[q].next_rq == Some(next) {
            self.queues[q].next_rq = Some(rq);
        }
        self.remove(pool, next);
        let queue = &self.queues[of_next];
        if queue.flags.on_rr && queue.is_empty() && self.active != Some(of_next) {
            self.del_busy(of_next);
        }
    }
}
