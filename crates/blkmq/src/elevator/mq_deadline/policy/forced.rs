//! Forced decisions: those of a recorded kernel that the model would not have made.
//!
//! Not part of the algorithm. A comparison with a recorded kernel continues from the kernel's
//! choice, so that one difference is reported once.

use super::{Direction, MqDeadline, Place, Sector, level_of};
use crate::request::{RequestId, RequestPool, Sectors};

impl MqDeadline {
    /// Dispatches `rq` regardless of the rules, and leaves the state as if they had selected it: as
    /// the next request of the current batch where it could be that, else as the first of a new
    /// one. Panics unless `rq` is queued here.
    pub(super) fn force_dispatch_locked(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
    ) -> RequestId {
        let at_head = self
            .at_head
            .iter_mut()
            .find(|list| list.iter(pool).any(|queued| queued == rq));
        if let Some(list) = at_head {
            list.remove(pool, rq);
            return self.start_from_head(pool, rq);
        }
        let level = level_of(pool[rq].ioprio);
        let dir = pool[rq].op.direction();
        let goes_on = dir == self.last_dir
            && self.batching < self.settings.fifo_batch
            && self.next_in_sector_order(pool, level, dir) == Some(rq);
        if !goes_on {
            if dir == Direction::Write {
                self.starved = 0;
            } else if !self.levels[level].fifo[Direction::Write as usize].is_empty() {
                self.starved = self.starved.wrapping_add(1);
            }
            self.last_dir = dir;
            self.batching = 0;
        }
        self.batching += 1;
        self.remember_position(pool, level, rq);
        self.remove(pool, level, rq);
        self.start(pool, rq)
    }
}

impl MqDeadline {
    /// Removes `rq` as if it had never been dispatched: no batch or position begins. Panics unless
    /// `rq` is queued here.
    pub(super) fn force_remove_locked(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let at_head = self
            .at_head
            .iter_mut()
            .find(|list| list.iter(pool).any(|queued| queued == rq));
        if let Some(list) = at_head {
            list.remove(pool, rq);
        } else {
            let level = level_of(pool[rq].ioprio);
            self.remove(pool, level, rq);
        }
        pool[rq].place = Place::Path;
    }

    /// Gives a queued request the range that it has in the kernel after merges that this model
    /// would not have made, or made otherwise. It keeps its deadline and its place in the fifo.
    /// Panics unless `rq` is queued here.
    pub(super) fn force_resize_locked(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        let at_head = self
            .at_head
            .iter()
            .any(|list| list.iter(pool).any(|queued| queued == rq));
        let (level, dir) = (level_of(pool[rq].ioprio), pool[rq].op.direction() as usize);
        if !at_head {
            self.levels[level].sort[dir].remove(pool, rq);
        }
        pool[rq].sector = sector;
        pool[rq].sectors = sectors;
        if !at_head {
            self.levels[level].sort[dir].insert(pool, rq, sector);
            self.visits.0 += self.levels[level].sort[dir].take_touched();
            if pool[rq].is_mergeable() {
                self.index.rehash(pool, rq);
            }
        }
    }
}
