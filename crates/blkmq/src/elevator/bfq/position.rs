//! Positions: the queues of a group by the sector of their next request, to find those that work on
//! one region.
//!
//! Where two neighbours are close the shape of the tree decides, so it is the kernel's.
//! Kernel: bfq_pos_tree_add_move(), bfq_rq_pos_tree_lookup(), bfqq_find_close() in
//! block/bfq-iosched.c (6.1.192, 6.12.117).

use core::cmp::Ordering;

use super::Bfq;
use super::queue::{IDLE, QId};
use crate::list::NIL;
use crate::rbtree::{LEFT, RIGHT, neighbour};
use crate::request::{RequestPool, Sector};

/// So far apart are requests of one region (BFQQ_CLOSE_THR), sectors.
const CLOSE: u64 = 8 * 1024;

/// Where a look-up ended: a queue there, or the last one met and the side to hang one.
#[derive(Clone, Copy, Debug)]
struct Looked {
    found: Option<QId>,
    last: u32,
    side: usize,
}

/// bfq_rq_close_to_sector().
#[inline]
pub(super) fn is_close(a: Sector, b: Sector) -> bool {
    a.0.abs_diff(b.0) <= CLOSE
}

impl Bfq {
    fn position_of(&self, pool: &RequestPool, q: u32) -> Sector {
        let next = self.queues[QId(q)].next_rq;
        pool[next.expect("a queue with a position has a next request")].sector
    }

    fn position_lookup(&mut self, pool: &RequestPool, group: usize, sector: Sector) -> Looked {
        let mut looked = Looked {
            found: None,
            last: NIL,
            side: LEFT,
        };
        let mut at = self.groups[group].positions.root();
        while at != NIL {
            self.groups[group].positions.count_visit();
            looked.last = at;
            match sector.cmp(&self.position_of(pool, at)) {
                Ordering::Greater => looked.side = RIGHT,
                Ordering::Less => looked.side = LEFT,
                Ordering::Equal => {
                    looked.found = Some(QId(at));
                    break;
                }
            }
            at = self.queues[QId(at)].pos.child[looked.side];
        }
        let pid = looked.found.map_or(0, |q| self.queues[q].pid);
        say_device!(self, "rq_pos_tree_lookup {}: returning {pid}", sector.0);
        looked
    }

    /// Too long in service to be merged (bfq_too_late_for_merging()).
    pub(super) fn too_late(&self, q: QId) -> bool {
        let queue = &self.queues[q];
        let limit = queue.first_io_time + self.fixed.merge_time_limit;
        queue.service_from_backlogged > 0 && limit < self.tick
    }

    /// Files a queue under its next request (bfq_pos_tree_add_move()).
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
            let tree = &mut self.groups[group].positions;
            tree.link(&mut self.queues, q.0, (looked.last, looked.side));
        }
    }

    pub(super) fn position_remove(&mut self, q: QId) {
        if self.queues[q].pos.is_linked() {
            let group = self.entities[self.entities.of(q)].group.index();
            self.groups[group].positions.erase(&mut self.queues, q.0);
        }
    }

    /// A queue whose next request is close to this sector (bfqq_find_close()).
    pub(super) fn find_close(
        &mut self,
        pool: &RequestPool,
        group: usize,
        sector: Sector,
    ) -> Option<QId> {
        if self.groups[group].positions.is_empty() {
            return None;
        }
        let looked = self.position_lookup(pool, group, sector);
        if looked.found.is_some() {
            return looked.found;
        }
        let last = self.position_of(pool, looked.last);
        if is_close(last, sector) {
            return Some(QId(looked.last));
        }
        let side = if last < sector { RIGHT } else { LEFT };
        let other = neighbour(&self.queues, looked.last, side)?;
        is_close(self.position_of(pool, other), sector).then_some(QId(other))
    }
}
