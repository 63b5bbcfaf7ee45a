//! Shares: the part of the device that a group gets, and what it is charged for.
//!
//! Kernel: cfq_group_slice(), cfq_group_served(), iops_mode() in block/cfq-iosched.c (2.6.33 to
//! 4.20). The order of groups: `group.rs`.

use super::{GroupId, SHIFT};
use crate::elevator::cfq::queue::Class;
use crate::elevator::cfq::{Cfq, QId};
use crate::rules::{SliceClock, SliceGroups, SliceTrees};

impl Cfq {
    /// The distance to the last group at which a new group enters the tree, in units of vdisktime:
    /// meant to be 200 ms, but never scaled.
    pub(in crate::elevator::cfq) fn group_delay(&self) -> u64 {
        let delay = match self.counts_requests() {
            true => i64::from(self.settings.hz) / 5,
            false => self.settings.second() / 5,
        };
        delay.cast_unsigned()
    }

    /// Groups are charged for requests (iops_mode()).
    pub(in crate::elevator::cfq) fn counts_requests(&self) -> bool {
        self.rules.charges_requests && self.tuned.slice_idle == 0 && self.seems_to_queue()
    }

    /// A group's part of the target latency (cfq_group_slice()).
    pub(in crate::elevator::cfq) fn group_slice(&self, group: GroupId) -> i64 {
        let target = self.tuned.target_latency.cast_unsigned();
        let group = &self.groups[group];
        let slice = match self.rules.groups {
            SliceGroups::Hierarchy => (target * group.fraction) >> SHIFT,
            SliceGroups::None | SliceGroups::Flat => {
                target * group.weight / self.groups.total_weight
            }
        };
        slice.cast_signed()
    }

    /// The part of its slice that a queue has used (cfq_cfqq_slice_usage()).
    fn slice_used_up(&self, q: QId) -> i64 {
        let queue = &self.queues[q];
        match queue.slice_start.filter(|&start| start != self.now) {
            // Before or at the first completion: the seek is charged to the queue, too.
            None => (self.now - queue.dispatch_start).max(self.tick_span()),
            Some(start) => (self.now - start).min(queue.allocated_slice),
        }
    }

    pub(in crate::elevator::cfq) fn tick_span(&self) -> i64 {
        match self.settings.clock {
            SliceClock::Ticks => 1,
            SliceClock::Nanoseconds => self.settings.second() / i64::from(self.settings.hz),
        }
    }

    /// A queue expires: its group is charged, and the rest of the workload slice is saved
    /// (cfq_group_served()).
    pub(in crate::elevator::cfq) fn serve_group(&mut self, q: QId) {
        if self.rules.trees == SliceTrees::One {
            return;
        }
        let queue = &self.queues[q];
        let of = &self.groups[queue.group];
        let others = of.busy_async() + of.busy(Class::Idle);
        let only_async = of.queues == others;
        let used = self.slice_used_up(q);
        let charge = match queue.flags.sync {
            _ if self.counts_requests() => i64::from(queue.slice_dispatch),
            false if only_async => queue.allocated_slice,
            _ => used,
        };
        let group = queue.group;
        self.trace_used(q, used);
        self.groups
            .charge(group, self.rules.groups, charge.cast_unsigned());
        let left = (self.serving.expires - self.now).max(0);
        let rest = &mut self.groups[group].rest;
        rest.slice = left;
        if left > 0 {
            rest.class = self.serving.class;
            rest.work = self.serving.work;
        }
        let (vt, min_vt) = (self.groups[group].vdisktime, self.groups.min_vdisktime);
        self.trace_group_msg(group, format_args!("served: vt={vt} min_vt={min_vt}"));
        self.trace_charged(q, used, charge);
    }

    /// A queue leaves the trees of its group; with the last queue the group leaves its tree.
    pub(in crate::elevator::cfq) fn leave_group(&mut self, group: GroupId) {
        if self.groups[group].queues == 1 {
            self.trace_group_msg(group, format_args!("del_from_rr group"));
        }
        self.groups.remove_queue(group, self.rules.groups);
    }
}
