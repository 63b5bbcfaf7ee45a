//! Workload: which group, class and workload type are served, and how long.
//!
//! Kernel: cfq_choose_cfqg(), choose_service_tree() in block/cfq-iosched.c (2.6.33, 2.6.35),
//! choose_wl_class_and_type() (4.20).

use super::group::{TREE_IDLE, TREES, tree_of};
use super::ids::GroupId;
use super::queue::{Class, Work};
use super::service_tree::TREE_ONE;
use super::{Cfq, QId};
use crate::rules::{SliceIdling, SliceTrees};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Serving {
    pub(super) group: Option<GroupId>,
    pub(super) class: Class,
    pub(super) work: Work,
    pub(super) expires: i64,
    /// A completed request requires idling at the end of the sync-noidle tree
    /// (noidle_tree_requires_idle).
    pub(super) noidle_requires_idle: bool,
}

impl Cfq {
    /// Chooses the next group and workload (cfq_choose_cfqg()). 2.6.32 has nothing to choose.
    pub(super) fn choose_group(&mut self) {
        if self.rules.trees == SliceTrees::One {
            return;
        }
        let next = self.groups.next();
        self.serving.group = next;
        let Some(group) = next else {
            return;
        };
        let rest = self.groups[group].rest;
        if rest.slice > 0 {
            self.serving.expires = self.now + rest.slice;
            self.serving.work = rest.work;
            self.serving.class = rest.class;
        } else {
            self.serving.expires = self.now - 1;
        }
        self.choose_workload(group);
    }

    fn choose_workload(&mut self, group: GroupId) {
        let of = &self.groups[group];
        let before = self.serving.class;
        let class = if of.busy(Class::RealTime) > 0 {
            Class::RealTime
        } else if of.busy(Class::BestEffort) > 0 {
            Class::BestEffort
        } else {
            self.serving.class = Class::Idle;
            self.serving.expires = self.now + self.tick_span();
            return;
        };
        self.serving.class = class;
        let late = self.rules.idling == SliceIdling::ByTreeAndGroup;
        let same = !late || before == class;
        let tree = tree_of(class, self.serving.work);
        let waiting = !of.trees[tree].nodes.is_empty();
        if same && waiting && self.now <= self.serving.expires {
            return;
        }
        self.serving.work = self.choose_work(group, class);
        let slice = self.workload_slice(group, class);
        if self.rules.log.tells_work() {
            trace_device_msg!(self, "workload slice:{slice}");
        }
        self.serving.expires = self.now + slice;
        self.serving.noidle_requires_idle = false;
    }

    /// The workload type whose first queue has the lowest key (cfq_choose_wl()).
    fn choose_work(&mut self, group: GroupId, class: Class) -> Work {
        let mut best: Option<(i64, Work)> = None;
        for work in Work::ALL {
            let first = self.first_of(group, tree_of(class, work));
            let key = first.map(|first| self.queues[first].key);
            if let Some(key) = key
                && best.is_none_or(|(lowest, _)| key < lowest)
            {
                best = Some((key, work));
            }
        }
        best.map_or(Work::SyncNoIdle, |(_, work)| work)
    }

    /// The part of the group's slice for this type, in proportion to its number of queues.
    fn workload_slice(&self, group: GroupId, class: Class) -> i64 {
        let of = &self.groups[group];
        let work = self.serving.work;
        let count = of.trees[tree_of(class, work)].nodes.len() as i64;
        let all = of.average(class).max(of.busy(class));
        let part = self.times(self.group_slice(group), count) / u64::from(all);
        let mut slice = part.cast_signed();
        if work == Work::Async {
            // In proportion of all asynchronous queues of the device to all busy ones.
            let whole = self.times(self.tuned.target_latency, of.busy_async().into());
            slice = slice.min((whole / u64::from(self.busy_queues)).cast_signed());
            let [own, sync] = self.tuned.slice;
            slice = (self.times(slice, own) / sync.cast_unsigned()).cast_signed();
        } else {
            slice = slice.max(2 * self.tuned.slice_idle);
        }
        slice.max(2 * self.tick_span())
    }

    /// The first queue of the current workload (cfq_get_next_queue()).
    pub(super) fn next_queue(&mut self) -> Option<QId> {
        if self.rules.trees == SliceTrees::One {
            return self.first_of(GroupId::default(), TREE_ONE);
        }
        if self.queued == 0 {
            return None;
        }
        let group = self.serving.group?;
        let tree = tree_of(self.serving.class, self.serving.work);
        self.first_of(group, tree)
    }

    /// The queue whose requests are all dispatched next (cfq_get_next_queue_forced()).
    pub(super) fn next_forced(&mut self) -> Option<QId> {
        if self.rules.trees == SliceTrees::One {
            return self.first_of(GroupId::default(), TREE_ONE);
        }
        if self.queued == 0 {
            return None;
        }
        let group = self.groups.next()?;
        const { assert!(TREE_IDLE + 1 == TREES, "IDLE comes last") };
        (0..TREES).find_map(|tree| self.first_of(group, tree))
    }
}
