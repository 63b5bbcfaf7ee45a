//! mq-deadline's part in merging: front merges by tree, neighbours, and changes of position.
//!
//! Not here: the search for a merge (`elevator/merging.rs`), and its limits (`merge.rs` of the
//! crate). Kernel: block/mq-deadline.c dd_request_merge(), dd_request_merged(),
//! dd_merged_requests() (v6.1, v6.12).

use super::{MqDeadline, level_of};
use crate::elevator::merging::MergeHooks;
use crate::merge::{MergeIndex, Side, front_side};
use crate::request::{BioId, Place, RequestId, RequestPool};
use crate::rules::QueueLimits;

impl MergeHooks for MqDeadline {
    fn index(&mut self) -> &mut MergeIndex {
        &mut self.index
    }

    /// The request that starts where the bio ends, among those of the bio's level. Of several
    /// the first on the way down the tree is the only candidate.
    fn request_merge(
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
        let sort = &mut level.sort[bio.op.direction() as usize];
        let found = sort.find(pool, end);
        self.visits.0 += sort.take_touched();
        let rq = found?;
        Some((rq, front_side(&pool[rq], bio, limits)?))
    }

    fn former_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        let (level, dir) = (level_of(pool[rq].ioprio), pool[rq].op.direction() as usize);
        self.levels[level].sort[dir].prev(pool, rq)
    }

    fn next_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        let (level, dir) = (level_of(pool[rq].ioprio), pool[rq].op.direction() as usize);
        self.levels[level].sort[dir].next(pool, rq)
    }

    /// Its place in the tree has changed, but not that in the fifo. v6.1: the next pointer stays,
    /// even if it points at this request.
    fn grown_at_front(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let (level, dir) = (level_of(pool[rq].ioprio), pool[rq].op.direction() as usize);
        let (tree, sector) = (&mut self.levels[level].sort[dir], pool[rq].sector);
        tree.remove(pool, rq);
        tree.insert(pool, rq, sector);
        self.visits.0 += tree.take_touched();
    }

    /// The earlier deadline and its place in the fifo survive.
    fn requests_merged(&mut self, pool: &mut RequestPool, rq: RequestId, next: RequestId) {
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
    }
}
