//! The next entity of each group, and from these the queue that comes into service.
//!
//! Each group stores its choice, and chooses again when something below it changes. Kernel:
//! block/bfq-wf2q.c (6.1.192, 6.12.117).

use super::Bfq;
use super::group::CLASSES;
use super::ids::{EntityId, GroupId, QId, ROOT};
use super::service_tree::later;

impl Bfq {
    /// Chooses the next entity of a group. True if the group's own position may change by it.
    pub(super) fn update_next_in_service(
        &mut self,
        group: GroupId,
        new: Option<EntityId>,
        expiration: bool,
    ) -> bool {
        self.charge(5);
        let g = group.index();
        let before = self.groups[g].next_in_service;
        let chosen = new.filter(|&new| Some(new) != before);
        let chosen = chosen.filter(|&new| {
            let Some(next) = before else { return true };
            let class = self.class_of(new);
            let (new, old) = (&self.entities[new], &self.entities[next]);
            class == self.class_of(next)
                && !later(new.start, self.groups[g].trees[class].vtime)
                && later(old.finish, new.finish)
        });
        let next = chosen.or_else(|| self.lookup_next(group, expiration));
        let mut may_change = false;
        if let Some(next) = next {
            let smaller = self.update_parent_budget(group, next);
            may_change = before.is_none() || smaller;
        }
        self.groups[g].next_in_service = next;
        may_change
    }

    /// A group takes the budget of its next entity. True if the budget became smaller.
    fn update_parent_budget(&mut self, group: GroupId, next: EntityId) -> bool {
        let Some(parent) = group.entity() else {
            return false;
        };
        let budget = self.entities[next].budget;
        core::mem::replace(&mut self.entities[parent].budget, budget) > budget
    }

    /// bfq_lookup_next_entity().
    fn lookup_next(&mut self, group: GroupId, expiration: bool) -> Option<EntityId> {
        self.charge(4);
        let (g, jiffies) = (group.index(), self.jiffies());
        let group = &mut self.groups[g];
        let mut class = 0;
        if group.idle_class_served + self.fixed.idle_class_timeout < jiffies {
            if group.trees[CLASSES - 1].has_active() {
                class = CLASSES - 1;
            }
            group.idle_class_served = jiffies;
        }
        let in_service = group.in_service.is_some() && !expiration;
        (class..CLASSES).find_map(|class| self.lookup_in_tree((g, class), in_service))
    }

    /// __bfq_lookup_next_entity().
    fn lookup_in_tree(&mut self, at: (usize, usize), in_service: bool) -> Option<EntityId> {
        let tree = &self.groups[at.0].trees[at.1];
        if !tree.has_active() {
            return None;
        }
        let vtime = tree.jump(&self.entities);
        if !in_service && vtime > tree.vtime {
            self.groups[at.0].trees[at.1].vtime = vtime;
            self.forget_idle(at);
        }
        self.groups[at.0].trees[at.1].eligible(&self.entities, vtime)
    }

    /// Another entity than the one in service would be chosen.
    pub(super) fn next_may_preempt(&self) -> bool {
        let root = &self.groups[ROOT.index()];
        root.next_in_service != root.in_service
    }

    /// The next queue, which comes into service (bfq_get_next_queue()).
    pub(super) fn get_next_queue(&mut self) -> Option<QId> {
        self.charge(4);
        if self.busy_queues_total() == 0 {
            return None;
        }
        let mut group = ROOT;
        let e = loop {
            let g = group.index();
            let e = self.groups[g].next_in_service;
            let e = e.expect("a group with an active entity has a next one");
            self.groups[g].in_service = Some(e);
            let queue = self.entities.queue(e).is_some();
            if queue || self.groups[e.0 as usize].active_entities == 1 {
                self.active_extract(self.tree_of(e), e);
            }
            if queue {
                break e;
            }
            group = GroupId(e.0 as u16);
        };
        let mut at = Some(e);
        while let Some(e) = at {
            if !self.update_next_in_service(self.entities[e].group, None, false) {
                break;
            }
            at = self.entities.parent(e);
        }
        self.entities.queue(e)
    }

    /// Ends the service of a queue. True if that queue was freed (__bfq_bfqd_reset_in_service()).
    pub(super) fn reset_in_service(&mut self) -> bool {
        self.charge(4);
        let q = self.in_service.take().expect("a queue is in service");
        self.queues[q].flags.wait_request = false;
        self.cancel_idle_timer();
        let e = self.entities.of(q);
        let mut at = Some(e);
        while let Some(e) = at {
            let group = self.entities[e].group;
            self.groups[group.index()].in_service = None;
            at = self.entities.parent(e);
        }
        if self.entities[e].on_st {
            return false;
        }
        let last = self.queues[q].references == 1;
        self.put(q);
        last
    }
}
