//! Groups: the order in which they are served, and what they are charged.
//!
//! Groups are never freed, so their references are not counted. Kernel:
//! cfq_group_service_tree_add(), cfq_group_served(), cfq_get_next_cfqg() in block/cfq-iosched.c
//! (2.6.33 to 4.20).

mod share;

use core::ops::{Index, IndexMut};

use super::ids::{GroupId, ROOT};
use super::learn::ThinkTime;
use super::queue::{Class, Work};
use crate::elevator::submitters::SubmitterGroup;
use crate::list::NIL;
use crate::rbtree::{LEFT, RIGHT, RbNode, RbNodes, RbTree};
use crate::rules::SliceGroups;

/// CFQ_SERVICE_SHIFT.
const SHIFT: u32 = 12;
/// Default weight of a group (BLKIO_WEIGHT_DEFAULT); the root has twice that.
const WEIGHT_DEFAULT: u64 = 500;

/// A service tree (struct cfq_rb_root).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: RbTree,
    pub(super) think: ThinkTime,
}

/// Trees of a group: RT and best effort with three workload types each, and IDLE.
pub(super) const TREES: usize = 7;
/// The tree of class IDLE.
pub(super) const TREE_IDLE: usize = 6;

/// The tree of queues of this class and type, in the order in which the kernel visits them.
pub(super) fn tree_of(class: Class, work: Work) -> usize {
    match class {
        Class::BestEffort => work as usize,
        Class::RealTime => 3 + work as usize,
        Class::Idle => TREE_IDLE,
    }
}

/// The rest of a group's workload slice for its next turn (saved_wl_slice).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Rest {
    pub(super) slice: i64,
    pub(super) class: Class,
    pub(super) work: Work,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Group {
    parent: GroupId,
    pub(super) weight: u64,
    /// The weight of its own queues against its children (4.20).
    leaf_weight: u64,
    /// The sum of active weights below the group, its own and its children's.
    children_weight: u64,
    active: u32,
    /// The group's fraction of the device, fixed point (4.20).
    fraction: u64,
    /// The last calculated fraction, for counters.
    fraction_shown: u64,
    node: RbNode,
    pub(super) vdisktime: u64,
    /// Queues on its trees (nr_cfqq).
    pub(super) queues: u32,
    /// Averages of the number of busy queues, RT and best effort.
    averages: [u32; 2],
    pub(super) trees: [Tree; TREES],
    pub(super) rest: Rest,
    /// Requests with the driver (4.20).
    pub(super) dispatched: u32,
    pub(super) think: ThinkTime,
}

impl Group {
    fn new(at: usize, of: &SubmitterGroup, rules: SliceGroups) -> Group {
        let least = match rules {
            SliceGroups::Hierarchy => 10,
            SliceGroups::None | SliceGroups::Flat => 100,
        };
        let weight = match at {
            0 => 2 * WEIGHT_DEFAULT,
            _ => u64::from(of.weight).max(least),
        };
        let leaf_weight = match at {
            0 => 2 * WEIGHT_DEFAULT,
            _ => WEIGHT_DEFAULT,
        };
        Group {
            parent: GroupId(of.parent),
            weight,
            leaf_weight,
            ..Group::default()
        }
    }

    /// The group's fraction of the device when it was on the tree of groups last (4.20).
    pub(super) fn fraction_shown(&self) -> u64 {
        self.fraction_shown
    }

    /// The group is on the tree of groups.
    pub(super) fn is_waiting(&self) -> bool {
        self.node.is_linked()
    }

    /// The number of busy queues of a class (cfq_group_busy_queues_wl()).
    pub(super) fn busy(&self, class: Class) -> u32 {
        let count = |work| self.trees[tree_of(class, work)].nodes.len() as u32;
        match class {
            Class::Idle => count(Work::Async),
            _ => Work::ALL.into_iter().map(count).sum(),
        }
    }

    /// The number of busy asynchronous queues, without class IDLE (cfqg_busy_async_queues()).
    pub(super) fn busy_async(&self) -> u32 {
        let count = |class| self.trees[tree_of(class, Work::Async)].nodes.len() as u32;
        count(Class::RealTime) + count(Class::BestEffort)
    }

    fn average_of(class: Class) -> usize {
        usize::from(class == Class::RealTime)
    }

    /// The last calculated average of busy queues of that class.
    pub(super) fn average(&self, class: Class) -> u32 {
        self.averages[Group::average_of(class)]
    }

    /// Updates the average: growth counts for more (cfq_group_get_avg_queues()).
    pub(super) fn update_average(&mut self, class: Class) -> u32 {
        let class = match class {
            Class::RealTime => Class::RealTime,
            _ => Class::BestEffort,
        };
        let busy = self.busy(class);
        let average = &mut self.averages[Group::average_of(class)];
        let (least, most) = (busy.min(*average), busy.max(*average));
        *average = (3 * most + least + 2) / 4;
        *average
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Groups {
    pub(super) list: Vec<Group>,
    /// Groups with queues, by vdisktime.
    waiting: RbTree,
    min_vdisktime: u64,
    /// Sum of the weights of these groups (2.6.33).
    total_weight: u64,
}

impl Groups {
    pub(super) fn new(of: &[SubmitterGroup], rules: SliceGroups) -> Groups {
        let all = of.iter().enumerate();
        Groups {
            list: all.map(|(at, of)| Group::new(at, of, rules)).collect(),
            ..Groups::default()
        }
    }

    /// The group to be served next (cfq_get_next_cfqg()).
    pub(super) fn next(&mut self) -> Option<GroupId> {
        let first = GroupId(self.waiting.first(self)? as u16);
        let vdisktime = self[first].vdisktime;
        if after(vdisktime, self.min_vdisktime) {
            self.min_vdisktime = vdisktime;
        }
        Some(first)
    }

    fn key(&self, group: GroupId) -> i64 {
        self[group]
            .vdisktime
            .wrapping_sub(self.min_vdisktime)
            .cast_signed()
    }

    fn file(&mut self, group: GroupId) {
        let key = self.key(group);
        let (mut parent, mut side, mut at) = (NIL, LEFT, self.waiting.root());
        while at != NIL {
            parent = at;
            side = match key < self.key(GroupId(at as u16)) {
                true => LEFT,
                false => RIGHT,
            };
            at = self.node(at).child[side];
        }
        let mut waiting = self.waiting;
        waiting.link(self, u32::from(group.0), (parent, side));
        self.waiting = waiting;
    }

    fn unfile(&mut self, group: GroupId) {
        let mut waiting = self.waiting;
        waiting.erase(self, u32::from(group.0));
        self.waiting = waiting;
    }

    /// The group becomes active: calculates its share of each level above
    /// (cfq_group_service_tree_add()).
    fn activate(&mut self, group: GroupId) {
        self.file(group);
        let mut at = group;
        let leaf_weight = self[at].leaf_weight;
        let own = &mut self[at];
        let mut propagates = own.active == 0;
        own.active += 1;
        own.children_weight += leaf_weight;
        let mut fraction = (1 << SHIFT) * leaf_weight / own.children_weight;
        while at != ROOT {
            let (weight, parent) = (self[at].weight, self[at].parent);
            let above = &mut self[parent];
            if propagates {
                propagates = above.active == 0;
                above.active += 1;
                above.children_weight += weight;
            }
            fraction = fraction * weight / above.children_weight;
            at = parent;
        }
        self[group].fraction = fraction.max(1);
        self[group].fraction_shown = fraction.max(1);
    }

    /// cfq_group_service_tree_del().
    fn deactivate(&mut self, group: GroupId) {
        let mut at = group;
        let own = &mut self[at];
        own.active -= 1;
        own.children_weight -= own.leaf_weight;
        while self[at].active == 0 {
            self[at].fraction = 0;
            if at == ROOT {
                break;
            }
            let (weight, parent) = (self[at].weight, self[at].parent);
            let above = &mut self[parent];
            above.active -= 1;
            above.children_weight -= weight;
            at = parent;
        }
        self.unfile(group);
    }

    /// A queue of the group enters a tree (cfq_group_service_tree_add(),
    /// cfq_group_notify_queue_add()). A new group enters
    /// at the given distance to the last one.
    pub(super) fn add_queue(&mut self, group: GroupId, rules: SliceGroups, behind: u64) {
        self[group].queues += 1;
        if self[group].is_waiting() {
            return;
        }
        let last = self.waiting.last(self).map(|last| GroupId(last as u16));
        self[group].vdisktime = match last {
            Some(last) => self[last].vdisktime.wrapping_add(behind),
            None => self.min_vdisktime,
        };
        match rules {
            SliceGroups::Hierarchy => self.activate(group),
            SliceGroups::None | SliceGroups::Flat => {
                self.file(group);
                self.total_weight += self[group].weight;
            }
        }
    }

    /// A queue of the group leaves its tree (cfq_group_service_tree_del(),
    /// cfq_group_notify_queue_del()).
    fn remove_queue(&mut self, group: GroupId, rules: SliceGroups) {
        self[group].queues -= 1;
        if self[group].queues > 0 {
            return;
        }
        match rules {
            SliceGroups::Hierarchy => self.deactivate(group),
            SliceGroups::None | SliceGroups::Flat => {
                self.total_weight -= self[group].weight;
                self.unfile(group);
            }
        }
        self[group].rest.slice = 0;
    }

    /// Charges service to the group's vdisktime (cfq_group_served()).
    pub(super) fn charge(&mut self, group: GroupId, rules: SliceGroups, charge: u64) {
        match rules {
            SliceGroups::Hierarchy => {
                let fraction = self[group].fraction;
                self.deactivate(group);
                let scaled = (charge << (2 * SHIFT)) / fraction;
                let vdisktime = &mut self[group].vdisktime;
                *vdisktime = vdisktime.wrapping_add(scaled);
                self.activate(group);
            }
            SliceGroups::None | SliceGroups::Flat => {
                self.unfile(group);
                let scaled = (charge << SHIFT) * WEIGHT_DEFAULT / self[group].weight;
                let vdisktime = &mut self[group].vdisktime;
                *vdisktime = vdisktime.wrapping_add(scaled);
                self.file(group);
            }
        }
    }

    /// `ancestor` is this group or above it.
    pub(super) fn is_below(&self, group: GroupId, ancestor: GroupId) -> bool {
        let mut at = group;
        while at != ancestor {
            if at == ROOT {
                return false;
            }
            at = self[at].parent;
        }
        true
    }

    /// Steps in trees since the last call.
    pub(super) fn take_touched(&mut self) -> u32 {
        let trees = self.list.iter_mut().flat_map(|group| &mut group.trees);
        let trees = trees.map(|tree| tree.nodes.take_touched()).sum::<u32>();
        trees + self.waiting.take_touched()
    }

    /// Panics unless the tree of groups is consistent.
    pub(super) fn check(&self) {
        self.waiting.check(self);
        let waiting = self.list.iter().filter(|group| group.is_waiting());
        assert_eq!(waiting.count(), self.waiting.len(), "groups that wait");
    }
}

/// Later in virtual time, which wraps around.
fn after(one: u64, other: u64) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

impl Index<GroupId> for Groups {
    type Output = Group;
    #[inline]
    fn index(&self, group: GroupId) -> &Group {
        &self.list[group.index()]
    }
}

impl IndexMut<GroupId> for Groups {
    #[inline]
    fn index_mut(&mut self, group: GroupId) -> &mut Group {
        &mut self.list[group.index()]
    }
}

impl RbNodes for Groups {
    #[inline]
    fn node(&self, at: u32) -> &RbNode {
        &self.list[at as usize].node
    }

    #[inline]
    fn node_mut(&mut self, at: u32) -> &mut RbNode {
        &mut self.list[at as usize].node
    }
}
