//! Activation: an entity becomes active, is requeued, or leaves, with the changes that follow in
//! the groups above it.
//!
//! A change is propagated upward as long as it may change a group's choice. Not here: why a queue
//! becomes active or leaves (`busy.rs`), budgets (`budget.rs`). Kernel: block/bfq-wf2q.c (6.1.192,
//! 6.12.117); names of functions leave out `bfq_`.

use super::Bfq;
use super::entity::InTree;
use super::ids::{EntityId, QId};
use super::service_tree::later;
use crate::rules::PendingGroups;

impl Bfq {
    fn activate_entity(&mut self, e: EntityId, non_blocking_wait_rq: bool) {
        self.charge(6);
        let at = self.tree_of(e);
        let vtime = self.groups[at.0].trees[at.1].vtime;
        let finish = self.entities[e].finish;
        let backshifted = non_blocking_wait_rq && later(vtime, finish);
        let min_vstart = if backshifted { finish } else { vtime };
        if self.entities[e].tree == InTree::Idle {
            self.idle_extract(at, e);
            let start = if later(min_vstart, finish) {
                min_vstart
            } else {
                finish
            };
            self.entities[e].start = start;
        } else {
            self.entities[e].start = min_vstart;
            self.groups[at.0].trees[at.1].wsum += u64::from(self.entities[e].weight);
            self.get_entity(e);
            self.entities[e].on_st = true;
        }
        let group = self.entities.queue(e).is_none();
        if group && self.rules.pending_groups == PendingGroups::SinceActivation {
            let entity = &mut self.entities[e];
            if !core::mem::replace(&mut entity.pending, true) {
                self.pending_groups += 1;
            }
        }
        self.update_fin_time_enqueue(e, backshifted);
    }

    fn requeue_entity(&mut self, e: EntityId) {
        self.charge(4);
        let at = self.tree_of(e);
        if self.groups[at.0].in_service == Some(e) {
            let service = self.entities[e].service;
            self.calc_finish(e, service);
            self.entities[e].start = self.entities[e].finish;
            if self.entities[e].tree == InTree::Active {
                self.active_extract(at, e);
            }
        } else {
            self.active_extract(at, e);
        }
        self.update_fin_time_enqueue(e, false);
    }

    /// bfq_activate_requeue_entity(): with `requeue` the change always goes up to the root.
    fn activate_requeue(
        &mut self,
        e: EntityId,
        non_blocking: bool,
        requeue: bool,
        expiration: bool,
    ) {
        let mut at = Some(e);
        while let Some(e) = at {
            let group = self.entities[e].group;
            let in_service = self.groups[group.index()].in_service == Some(e);
            if in_service || self.entities[e].tree == InTree::Active {
                self.requeue_entity(e);
            } else {
                self.activate_entity(e, non_blocking);
            }
            if !self.update_next_in_service(group, Some(e), expiration) && !requeue {
                break;
            }
            at = self.entities.parent(e);
        }
    }

    /// False if the entity was not scheduled (__bfq_deactivate_entity()).
    pub(super) fn deactivate_one(&mut self, e: EntityId, into_idle_tree: bool) -> bool {
        self.charge(6);
        if !self.entities[e].on_st {
            return false;
        }
        let at = self.tree_of(e);
        let is_in_service = self.groups[at.0].in_service == Some(e);
        let service = self.entities[e].service;
        self.calc_finish(e, service);
        if is_in_service {
            self.groups[at.0].in_service = None;
        } else {
            self.entities[e].service = 0;
        }
        match self.entities[e].tree {
            InTree::Active => self.active_extract(at, e),
            InTree::Idle if !is_in_service => self.idle_extract(at, e),
            _ => {}
        }
        let finish = self.entities[e].finish;
        if !into_idle_tree || !later(finish, self.groups[at.0].trees[at.1].vtime) {
            self.forget_entity(at, e, is_in_service);
        } else {
            self.groups[at.0].trees[at.1].insert_idle(&mut self.entities, e);
            if let Some(q) = self.entities.queue(e) {
                self.idle_list.push(q);
            }
        }
        true
    }

    /// bfq_deactivate_bfqq().
    pub(super) fn deactivate(&mut self, q: QId, into_idle_tree: bool, expiration: bool) {
        let mut into_idle_tree = into_idle_tree;
        let mut at = Some(self.entities.of(q));
        while let Some(e) = at {
            let group = self.entities[e].group;
            // The deactivation may put the last reference of a queue.
            at = self.entities.parent(e);
            if !self.deactivate_one(e, into_idle_tree) {
                return;
            }
            if self.groups[group.index()].next_in_service == Some(e) {
                self.update_next_in_service(group, None, expiration);
            }
            let group = &self.groups[group.index()];
            if group.next_in_service.is_some() || group.in_service.is_some() {
                break;
            }
            into_idle_tree = true;
        }
        while let Some(e) = at {
            self.requeue_entity(e);
            let group = self.entities[e].group;
            if !self.update_next_in_service(group, Some(e), expiration) && !expiration {
                break;
            }
            at = self.entities.parent(e);
        }
    }

    /// bfq_activate_bfqq().
    pub(super) fn activate(&mut self, q: QId) {
        let non_blocking = self.queues[q].flags.non_blocking_wait_rq;
        self.activate_requeue(self.entities.of(q), non_blocking, false, false);
        self.queues[q].flags.non_blocking_wait_rq = false;
    }

    /// bfq_requeue_bfqq().
    pub(super) fn requeue(&mut self, q: QId, expiration: bool) {
        let requeue = self.in_service == Some(q);
        self.activate_requeue(self.entities.of(q), false, requeue, expiration);
    }
}
