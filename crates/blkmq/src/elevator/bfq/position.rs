//! Positions: the queues of a group by the sector of their next request, to find queues that work
//! on the same region.
//!
//! The search: `elevator/pos_tree.rs`.
//! Kernel: bfq_pos_tree_add_move(), bfq_rq_pos_tree_lookup(), bfqq_find_close() in
//! block/bfq-iosched.c (6.1.192, 6.12.117).

use super::Bfq;
use super::ids::QId;
use super::queue::IDLE;
use crate::elevator::pos_tree::{Looked, closest, look_up};
use crate::request::{RequestPool, Sector};

/// The largest distance of requests in one region (BFQQ_CLOSE_THR), sectors.
const CLOSE: u64 = 8 * 1024;

/// bfq_rq_close_to_sector().
#[inline]
pub(super) fn is_close(a: Sector, b: Sector) -> bool {
    a.0.abs_diff(b.0) <= CLOSE
}

impl Bfq {
    fn position_lookup(&mut self, pool: &RequestPool, group: usize, sector: Sector) -> Looked {
        let tree = &mut self.groups[group].pos_tree;
        let looked = look_up(tree, &self.queues, pool, sector);
        let pid = looked.found.map_or(0, |q| self.queues[QId(q)].pid);
        trace_device_msg!(self, "rq_pos_tree_lookup {}: returning {pid}", sector.0);
        looked
    }

    /// The queue was in service for too long to be merged (bfq_too_late_for_merging()).
    pub(super) fn too_late(&self, q: QId) -> bool {
        let queue = &self.queues[q];
        let limit = queue.first_io_time + self.fixed.merge_time_limit;
        queue.service_from_backlogged > 0 && limit < self.jiffies()
    }

    /// Sorts a queue by its next request (bfq_pos_tree_add_move()).
    pub(super) fn position_update(&mut self, pool: &RequestPool, q: QId) {
        self.position_remove(q);
        if self.too_late(q) || self.queues[q].class == IDLE {
            return;
        }
        let Some(next) = self.queues[q].next_rq else {
            return;
        };
        let group = self.entities[self.entities.of(q)].group.index();
        let looked = self.position_lookup(pool, group, pool[next].sector);
        if looked.found.is_none() {
            let tree = &mut self.groups[group].pos_tree;
            tree.link(&mut self.queues, q.0, (looked.last, looked.side));
        }
    }

    pub(super) fn position_remove(&mut self, q: QId) {
        if self.queues[q].pos.is_linked() {
            let group = self.entities[self.entities.of(q)].group.index();
            self.groups[group].pos_tree.erase(&mut self.queues, q.0);
        }
    }

    /// A queue whose next request is close to this sector (bfqq_find_close()).
    pub(super) fn find_close(
        &mut self,
        pool: &RequestPool,
        group: usize,
        sector: Sector,
    ) -> Option<QId> {
        if self.groups[group].pos_tree.is_empty() {
            return None;
        }
        let looked = self.position_lookup(pool, group, sector);
        let close = |other| is_close(other, sector);
        closest(&self.queues, pool, sector, looked, close).map(QId)
    }
}
