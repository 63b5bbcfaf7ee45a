//! mq-deadline's part in merging: front merges by tree, neighbours, and what a merge moves.
//!
//! Not here: what may merge (`merge.rs` of the crate) and the search by end (`MergeIndex`).
//! Kernel: block/blk-merge.c blk_mq_sched_try_merge(), block/elevator.c
//! elv_attempt_insert_merge(), block/mq-deadline.c dd_request_merge(), dd_merged_requests().

use super::{MqDeadline, level_of};
use crate::elevator::BioMerge;
use crate::list::QueueList;
use crate::merge::{Candidate, Merging, Side, attach, may_join, merges_ranges, try_request_merge};
use crate::request::{BioId, Place, RequestId, RequestPool};
use crate::rules::{NoMerges, QueueLimits};

impl MqDeadline {
    /// Joins a bio to a queued request, and that to its neighbour if the gap is closed.
    pub(super) fn merge_bio_locked(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        merging: Merging<'_>,
    ) -> BioMerge {
        let candidate = match self.index.candidate(pool, bio, merging) {
            Candidate::Use(rq, side) => Some((rq, side)),
            Candidate::AskTree => self.front_candidate(pool, bio, merging.limits),
            Candidate::Stop => None,
        };
        let Some((rq, side)) = candidate else {
            return BioMerge::No;
        };
        if !attach(pool, rq, bio, side, merging.limits) {
            self.index.drop_unmergeable(pool, rq);
            return BioMerge::No;
        }
        match side {
            Side::Back => self.grown_behind(pool, rq, merging.limits),
            Side::Front => self.grown_before(pool, rq, merging.limits),
            // Neither hash nor neighbours are looked at, as in the kernel.
            Side::Discard => BioMerge::Into {
                rq,
                side,
                absorbed: None,
            },
        }
    }

    /// The request that starts where the bio ends, among those of the bio's level. Of several
    /// the first on the way down the tree is the only candidate.
    fn front_candidate(
        &mut self,
        pool: &RequestPool,
        bio: BioId,
        limits: &QueueLimits,
    ) -> Option<(RequestId, Side)> {
        if !self.settings.front_merges {
            return None;
        }
        let bio = pool.bio(bio);
        let level = &mut self.levels[level_of(bio.ioprio)];
        let end = bio.sector.end(bio.sectors);
        let rq = level.sort[bio.op.direction() as usize].find(pool, end)?;
        let side = if merges_ranges(pool[rq].op, limits) {
            Side::Discard
        } else {
            Side::Front
        };
        may_join(&pool[rq], bio).then_some((rq, side))
    }

    /// `rq` took a bio at its end: it may now reach its successor; otherwise its key in the hash
    /// has changed.
    fn grown_behind(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        limits: &QueueLimits,
    ) -> BioMerge {
        let dir = pool[rq].op.direction() as usize;
        let next = self.levels[level_of(pool[rq].ioprio)].sort[dir].next(pool, rq);
        let absorbed = next.filter(|&next| self.merge_neighbours(pool, rq, next, limits));
        if absorbed.is_none() {
            self.index.rehash(pool, rq);
            self.index.set_last_merge(rq);
        }
        BioMerge::Into {
            rq,
            side: Side::Back,
            absorbed,
        }
    }

    /// `rq` took a bio at its start: its predecessor may now reach it, and the earlier request
    /// survives; otherwise its place in the tree has changed, but not that in the fifo.
    fn grown_before(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        limits: &QueueLimits,
    ) -> BioMerge {
        let dir = pool[rq].op.direction() as usize;
        let level = level_of(pool[rq].ioprio);
        let prev = self.levels[level].sort[dir].prev(pool, rq);
        if let Some(prev) = prev.filter(|&prev| self.merge_neighbours(pool, prev, rq, limits)) {
            return BioMerge::Into {
                rq: prev,
                side: Side::Front,
                absorbed: Some(rq),
            };
        }
        // v6.1: the next pointer stays, even if it points at this request.
        let (tree, sector) = (&mut self.levels[level].sort[dir], pool[rq].sector);
        tree.remove(pool, rq);
        tree.insert(pool, rq, sector);
        self.index.set_last_merge(rq);
        BioMerge::Into {
            rq,
            side: Side::Front,
            absorbed: None,
        }
    }

    /// Merges two queued neighbours, if they touch and fit.
    fn merge_neighbours(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        next: RequestId,
        limits: &QueueLimits,
    ) -> bool {
        let merged = try_request_merge(pool, rq, next, limits);
        if merged {
            self.absorbed(pool, rq, next);
        }
        merged
    }

    /// Appends a request that is being inserted to a queued one that ends where it starts, that
    /// one perhaps to another one, and so on. Answers the emptied requests, last one first.
    pub(super) fn merge_request(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        merging: Merging<'_>,
    ) -> QueueList {
        let mut emptied = QueueList::new();
        if !pool[rq].is_mergeable() || merging.nomerges == NoMerges::Never {
            return emptied;
        }
        pool.visit_last_merge(self.index.last_merge());
        if let Some(last) = self.index.last_merge()
            && self.append_request(pool, last, rq, merging.limits)
        {
            emptied.push_front(pool, rq);
            return emptied;
        }
        if merging.nomerges == NoMerges::Simple {
            return emptied;
        }
        let mut moving = rq;
        while let Some(target) = self.index.find(pool, pool[moving].sector) {
            // Deviation(D5): the kernel goes on with discards of several ranges, too, but leaves
            // the absorbed one, which it frees, on fifo and tree (attempt_merge() tells the
            // scheduler of other requests only). We stop before that.
            let queued = pool[moving].place == Place::Elevator;
            if queued && merges_ranges(pool[moving].op, merging.limits) {
                break;
            }
            if !self.append_request(pool, target, moving, merging.limits) {
                break;
            }
            emptied.push_front(pool, moving);
            moving = target;
        }
        emptied
    }

    /// Appends `next`, queued or being inserted, to the queued `rq`.
    fn append_request(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        next: RequestId,
        limits: &QueueLimits,
    ) -> bool {
        if !try_request_merge(pool, rq, next, limits) {
            self.index.drop_unmergeable(pool, rq);
            return false;
        }
        if merges_ranges(pool[rq].op, limits) {
            // The scheduler is not told: no count of merges, and the hash keeps the old end.
            pool[next].place = Place::Path;
        } else {
            self.absorbed(pool, rq, next);
        }
        true
    }

    /// Mends the records after `rq` took all of `next`: the earlier deadline and its place in the
    /// fifo survive, `next` is forgotten.
    fn absorbed(&mut self, pool: &mut RequestPool, rq: RequestId, next: RequestId) {
        let level = level_of(pool[next].ioprio);
        let dir = pool[next].op.direction() as usize;
        let queue = &mut self.levels[level];
        queue.stats.merged = queue.stats.merged.wrapping_add(1);
        if pool[next].place == Place::Elevator {
            if pool[next].fifo_time < pool[rq].fifo_time {
                queue.fifo[dir].remove(pool, rq);
                queue.fifo[dir].insert_before(pool, next, rq);
                pool[rq].fifo_time = pool[next].fifo_time;
            }
            self.remove(pool, level, next);
        }
        pool[next].place = Place::Path;
        self.index.rehash(pool, rq);
        self.index.set_last_merge(rq);
    }
}
