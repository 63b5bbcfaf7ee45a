//! Service trees: the order in which queues are served, and its keys.
//!
//! Kernel: cfq_service_tree_add(), cfq_add_cfqq_rr(), cfq_del_cfqq_rr() in block/cfq-iosched.c
//! (2.6.32 to 4.20).

use super::group::tree_of;
use super::ids::{GroupId, ROOT};
use super::queue::{Class, Queue, Served, Work};
use super::{Cfq, QId};
use crate::list::NIL;
use crate::rbtree::{LEFT, RIGHT, RbNodes};
use crate::request::RequestPool;
use crate::rules::{SliceGroups, SliceTrees};

/// The only tree of 2.6.32.
pub(super) const TREE_ONE: usize = 0;

/// In the only tree: class RT before others, IDLE last, then by key. With several trees: by key.
fn goes_before(queue: &Queue, other: &Queue, key: i64, trees: SliceTrees) -> bool {
    if trees == SliceTrees::One && queue.class != other.class {
        return queue.class < other.class;
    }
    key < other.key
}

impl Cfq {
    pub(super) fn tree_for(&self, q: QId) -> usize {
        let queue = &self.queues[q];
        match self.rules.trees {
            SliceTrees::One => TREE_ONE,
            SliceTrees::ByWorkload => tree_of(queue.class, queue.work()),
        }
    }

    /// First queue of a tree (cfq_rb_first()).
    pub(super) fn first_of(&mut self, group: GroupId, tree: usize) -> Option<QId> {
        let nodes = self.groups[group].trees[tree].nodes;
        nodes.first(&Served(&mut self.queues)).map(QId)
    }

    fn last_of(&mut self, group: GroupId, tree: usize) -> Option<QId> {
        let nodes = self.groups[group].trees[tree].nodes;
        nodes.last(&Served(&mut self.queues)).map(QId)
    }

    /// Slices that other queues get first (cfq_slice_offset()).
    fn slice_offset(&self, q: QId) -> i64 {
        let queue = &self.queues[q];
        let shorter = self.prio_slice(true, 0) - self.prio_slice(queue.flags.sync, queue.level);
        match self.rules.trees {
            // An unsigned number of 32 bits, whatever the setting.
            SliceTrees::One => {
                let others = self.busy_queues.wrapping_sub(1);
                i64::from(others.wrapping_mul(shorter as u32))
            }
            SliceTrees::ByWorkload => (i64::from(self.groups[queue.group].queues) - 1) * shorter,
        }
    }

    fn key_for(&mut self, q: QId, tree: usize, front: bool) -> i64 {
        let group = self.queues[q].group;
        let idle = self.queues[q].class == Class::Idle;
        if idle {
            let last = self.last_of(group, tree).filter(|&last| last != q);
            let last = last.filter(|_| self.rules.idle_class_follows);
            let from = last.map_or(self.now, |last| self.queues[last].key);
            return from + self.settings.second() / 5;
        }
        if front {
            let first = self.first_of(group, tree);
            let from = first.map_or(self.now, |first| self.queues[first].key);
            return from - self.settings.second();
        }
        let resid = core::mem::take(&mut self.queues[q].slice_resid);
        self.slice_offset(q) + self.now - resid
    }

    /// Inserts a queue, or moves it if it is in a tree; to the front if it must be served next
    /// (cfq_service_tree_add()).
    pub(super) fn service_tree_add(&mut self, q: QId, front: bool) {
        let moved = self.isolate(q);
        let tree = self.tree_for(q);
        let key = self.key_for(q, tree, front);
        let group = self.queues[q].group;
        let filed = self.queues[q].tree;
        if let Some(at) = filed {
            if key == self.queues[q].key && at == (group, tree as u8) {
                return;
            }
            self.service_tree_remove(q);
        }
        self.link(q, group, tree, key);
        if self.rules.trees == SliceTrees::One {
            return;
        }
        let counted = (front || filed.is_some()) && !moved;
        if !counted {
            let behind = self.group_delay();
            self.groups.add_queue(group, self.rules.groups, behind);
        }
    }

    fn link(&mut self, q: QId, group: GroupId, tree: usize, key: i64) {
        let mut nodes = self.groups[group].trees[tree].nodes;
        let (mut parent, mut side, mut at) = (NIL, LEFT, nodes.root());
        while at != NIL {
            nodes.count_touch();
            parent = at;
            let other = &self.queues[QId(at)];
            side = match goes_before(&self.queues[q], other, key, self.rules.trees) {
                true => LEFT,
                false => RIGHT,
            };
            at = Served(&mut self.queues).node(at).child[side];
        }
        let queue = &mut self.queues[q];
        queue.key = key;
        queue.tree = Some((group, tree as u8));
        nodes.link(&mut Served(&mut self.queues), q.0, (parent, side));
        self.groups[group].trees[tree].nodes = nodes;
    }

    fn service_tree_remove(&mut self, q: QId) {
        let Some((group, tree)) = self.queues[q].tree.take() else {
            return;
        };
        let nodes = &mut self.groups[group].trees[usize::from(tree)].nodes;
        nodes.erase(&mut Served(&mut self.queues), q.0);
    }

    /// Without isolation a queue that the device does not idle for is served with the root's
    /// queues; it returns to its group when idling is on again (2.6.33 to 2.6.37). True: the queue
    /// has changed its group.
    fn isolate(&mut self, q: QId) -> bool {
        if self.rules.groups != SliceGroups::Flat || self.settings.group_isolation {
            return false;
        }
        let queue = &self.queues[q];
        let to = match (queue.work(), queue.home) {
            (Work::SyncNoIdle, _) if queue.group != ROOT => ROOT,
            (Work::Sync, Some(home)) => home,
            _ => return false,
        };
        let from = queue.group;
        if to == ROOT {
            trace_msg!(self, q, "moving to root group");
        }
        if self.queues[q].tree.is_some() {
            self.leave_group(from);
        }
        let queue = &mut self.queues[q];
        queue.home = (to == ROOT).then_some(from);
        queue.group = to;
        if to != ROOT {
            trace_msg!(self, q, "moved to origin group");
        }
        true
    }

    /// Moves a busy queue (cfq_resort_rr_list()).
    pub(super) fn resort(&mut self, pool: &RequestPool, q: QId) {
        if self.queues[q].flags.on_rr {
            self.service_tree_add(q, false);
            self.position_add(pool, q);
        }
    }

    /// The queue gets its first request (cfq_add_cfqq_rr()).
    pub(super) fn add_busy(&mut self, pool: &RequestPool, q: QId) {
        trace_msg!(self, q, "add_to_rr");
        assert!(!self.queues[q].flags.on_rr, "{q:?} is busy already");
        self.queues[q].flags.on_rr = true;
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(self.queues[q].flags.sync);
        self.resort(pool, q);
    }

    /// The queue is empty (cfq_del_cfqq_rr()).
    pub(super) fn del_busy(&mut self, q: QId) {
        trace_msg!(self, q, "del_from_rr");
        assert!(self.queues[q].flags.on_rr, "{q:?} is not busy");
        self.queues[q].flags.on_rr = false;
        self.service_tree_remove(q);
        self.position_remove(q);
        if self.rules.trees == SliceTrees::ByWorkload {
            let group = self.queues[q].group;
            self.leave_group(group);
        }
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(self.queues[q].flags.sync);
    }
}
