//! B-WF2Q+ over the hierarchy of groups: who becomes active, who is next, what service costs.
//!
//! A change of one entity is carried up as far as its group's choice may change by it. Not here:
//! budgets (`budget.rs`). Kernel: block/bfq-wf2q.c (6.1.192, 6.12.117); in names of functions
//! `bfq_` is left out.

use super::entity::{EntityId, InTree};
use super::group::{CLASSES, GroupId, ROOT};
use super::queue::{BE, QId};
use super::service_tree::{delta, later};
use super::{Bfq, DIVISION};
use crate::rules::PendingGroups;

/// The group's parent in turn, up to the root.
pub(super) fn path(bfq: &Bfq, e: EntityId) -> impl Iterator<Item = EntityId> + '_ {
    core::iter::successors(Some(e), |&e| bfq.entities.parent(e))
}

impl Bfq {
    /// Place of its class among the service trees of its group (bfq_class_idx()).
    #[inline]
    fn class_of(&self, e: EntityId) -> usize {
        let class = self.entities.queue(e).map_or(BE, |q| self.queues[q].class);
        usize::from(class) - 1
    }

    /// Group and place of the tree that it belongs to (bfq_entity_service_tree()).
    #[inline]
    fn tree_of(&self, e: EntityId) -> (usize, usize) {
        (self.entities[e].group.index(), self.class_of(e))
    }

    pub(super) fn busy_queues_total(&self) -> u32 {
        let busy = self.busy_queues.iter();
        busy.fold(0, |sum, &class| sum.wrapping_add(class))
    }

    /// Chooses anew who of a group is next. True if the group's own place may change by it.
    fn update_next_in_service(
        &mut self,
        group: GroupId,
        new: Option<EntityId>,
        expiration: bool,
    ) -> bool {
        self.works(5);
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

    /// A group has the budget of whoever is next in it. True if it became less.
    fn update_parent_budget(&mut self, group: GroupId, next: EntityId) -> bool {
        let Some(parent) = group.entity() else {
            return false;
        };
        let budget = self.entities[next].budget;
        core::mem::replace(&mut self.entities[parent].budget, budget) > budget
    }

    /// bfq_lookup_next_entity().
    fn lookup_next(&mut self, group: GroupId, expiration: bool) -> Option<EntityId> {
        self.works(4);
        let g = group.index();
        let group = &mut self.groups[g];
        let mut class = 0;
        if group.idle_class_served + self.fixed.idle_class_timeout < self.tick {
            if group.trees[CLASSES - 1].has_active() {
                class = CLASSES - 1;
            }
            group.idle_class_served = self.tick;
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

    fn calc_finish(&mut self, e: EntityId, service: i32) {
        self.works(2 + DIVISION);
        let service = i64::from(service).cast_unsigned();
        let entity = &mut self.entities[e];
        let delta = delta(service, u64::from(entity.weight));
        let (start, weight) = (entity.start, entity.weight);
        let finish = start.wrapping_add(delta);
        entity.finish = finish;
        if let Some(q) = self.entities.queue(e) {
            say!(self, q, "calc_finish: serv {service}, w {weight}");
            say!(
                self,
                q,
                "calc_finish: start {start}, finish {finish}, delta {delta}"
            );
        }
    }

    fn idle_extract(&mut self, (g, class): (usize, usize), e: EntityId) {
        self.groups[g].trees[class].extract_idle(&mut self.entities, e);
        if let Some(q) = self.entities.queue(e) {
            unlist(&mut self.idle_list, q);
        }
    }

    fn active_insert(&mut self, (g, class): (usize, usize), e: EntityId) {
        self.works(3);
        self.groups[g].trees[class].insert_active(&mut self.entities, e);
        if let Some(q) = self.entities.queue(e) {
            self.active_lists[usize::from(self.queues[q].actuator)].push(q);
        }
        if g != ROOT.index() {
            self.groups[g].active_entities += 1;
        }
    }

    fn active_extract(&mut self, (g, class): (usize, usize), e: EntityId) {
        self.works(3);
        self.groups[g].trees[class].extract_active(&mut self.entities, e);
        if let Some(q) = self.entities.queue(e) {
            unlist(
                &mut self.active_lists[usize::from(self.queues[q].actuator)],
                q,
            );
        }
        if g != ROOT.index() {
            self.groups[g].active_entities -= 1;
        }
    }

    fn get_entity(&mut self, e: EntityId) {
        if let Some(q) = self.entities.queue(e) {
            let queue = &mut self.queues[q];
            queue.references += 1;
            let (address, references) = (queue.address, queue.references);
            say!(self, q, "get_entity: {address:016x} {references}");
        }
    }

    fn forget_entity(&mut self, at: (usize, usize), e: EntityId, is_in_service: bool) {
        let entity = &mut self.entities[e];
        entity.on_st = false;
        self.groups[at.0].trees[at.1].wsum -= u64::from(entity.weight);
        if let Some(q) = self.entities.queue(e)
            && !is_in_service
        {
            self.put(q);
        }
    }

    /// bfq_put_idle_entity().
    pub(super) fn put_idle_entity(&mut self, e: EntityId) {
        let at = self.tree_of(e);
        self.idle_extract(at, e);
        let is_in_service = self.groups[at.0].in_service == Some(e);
        self.forget_entity(at, e, is_in_service);
    }

    fn forget_idle(&mut self, at: (usize, usize)) {
        self.works(3);
        let tree = &mut self.groups[at.0].trees[at.1];
        let (first, last) = (tree.first_idle, tree.last_idle);
        if let Some(last) = last
            && !tree.has_active()
            && !later(self.entities[last].finish, tree.vtime)
        {
            tree.vtime = self.entities[last].finish;
        }
        if let Some(first) = first
            && !later(self.entities[first].finish, tree.vtime)
        {
            self.put_idle_entity(first);
        }
    }

    /// Applies a weight and, with `class_too`, a class that were stored. Answers the tree that it
    /// belongs to then (__bfq_entity_update_weight_prio()).
    pub(super) fn update_weight_prio(&mut self, e: EntityId, class_too: bool) -> (usize, usize) {
        self.works(8);
        let old = self.tree_of(e);
        if !self.entities[e].prio_changed {
            return old;
        }
        let q = self.entities.queue(e);
        let entity = &mut self.entities[e];
        let weight_before = entity.weight;
        self.groups[old.0].trees[old.1].wsum -= u64::from(weight_before);
        if entity.new_weight != entity.orig_weight {
            entity.new_weight = entity.new_weight.clamp(WEIGHT_MIN, WEIGHT_MAX);
            entity.orig_weight = entity.new_weight;
            if let Some(q) = q {
                self.queues[q].level = self.rules.level_of(entity.orig_weight);
            }
        }
        match q {
            Some(q) => {
                let queue = &mut self.queues[q];
                if class_too {
                    queue.class = queue.new_class;
                }
                if queue.class == queue.new_class {
                    self.entities[e].prio_changed = false;
                }
            }
            None => self.entities[e].prio_changed = false,
        }
        let new = self.tree_of(e);
        let coeff = q.map_or(1, |q| self.queues[q].raised.coeff);
        let weight = self.entities[e].orig_weight * coeff;
        if let Some(q) = q
            && weight != weight_before
        {
            self.weights_remove(q);
        }
        self.entities[e].weight = weight;
        if let Some(q) = q
            && weight != weight_before
            && coeff == 1
        {
            self.weights_add(q);
        }
        let tree = &mut self.groups[new.0].trees[new.1];
        tree.wsum += u64::from(weight);
        if new != old {
            self.entities[e].start = tree.vtime;
        }
        new
    }

    /// Service for a queue and all above it.
    pub(super) fn served(&mut self, q: QId, sectors: i32) {
        let tick = self.tick;
        let queue = &mut self.queues[q];
        if queue.service_from_backlogged == 0 {
            queue.first_io_time = tick;
        }
        let more = i64::from(sectors).cast_unsigned();
        if queue.is_raised() {
            queue.raised.service = queue.raised.service.wrapping_add(more);
        }
        queue.service_from_backlogged = queue.service_from_backlogged.wrapping_add(more);
        let mut at = Some(self.entities.of(q));
        while let Some(e) = at {
            self.works(3 + DIVISION);
            let tree_at = self.tree_of(e);
            self.entities[e].service = self.entities[e].service.wrapping_add(sectors);
            let tree = &mut self.groups[tree_at.0].trees[tree_at.1];
            tree.vtime = tree.vtime.wrapping_add(delta(more, tree.wsum));
            self.forget_idle(tree_at);
            at = self.entities.parent(e);
        }
        say!(self, q, "bfqq_served {sectors} secs");
    }

    fn update_fin_time_enqueue(&mut self, e: EntityId, backshifted: bool) {
        self.works(3);
        let at = self.update_weight_prio(e, true);
        let budget = self.entities[e].budget;
        self.calc_finish(e, budget);
        let vtime = self.groups[at.0].trees[at.1].vtime;
        let coeff = self
            .entities
            .queue(e)
            .map_or(1, |q| self.queues[q].raised.coeff);
        let entity = &mut self.entities[e];
        if backshifted && later(vtime, entity.finish) {
            let shift = vtime.wrapping_sub(entity.finish) / u64::from(coeff);
            entity.start = entity.start.wrapping_add(shift);
            entity.finish = entity.finish.wrapping_add(shift);
        }
        self.active_insert(at, e);
    }

    fn activate_entity(&mut self, e: EntityId, non_blocking_wait_rq: bool) {
        self.works(6);
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
        self.works(4);
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

    /// bfq_activate_requeue_entity(): `requeue` goes up to the root in any case.
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

    /// Takes one entity out. False if it was not scheduled (__bfq_deactivate_entity()).
    pub(super) fn deactivate_one(&mut self, e: EntityId, into_idle_tree: bool) -> bool {
        self.works(6);
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
            // The last reference of a queue may go.
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

    /// Somebody else than the one in service would be chosen.
    pub(super) fn next_may_preempt(&self) -> bool {
        let root = &self.groups[ROOT.index()];
        root.next_in_service != root.in_service
    }

    /// Who is served next, who is in service from here on (bfq_get_next_queue()).
    pub(super) fn get_next_queue(&mut self) -> Option<QId> {
        self.works(4);
        if self.busy_queues_total() == 0 {
            return None;
        }
        let mut group = ROOT;
        let e = loop {
            let g = group.index();
            let e = self.groups[g].next_in_service;
            let e = e.expect("a group with something active has somebody who is next");
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

    /// Nobody is in service. True if the queue that was is gone (__bfq_bfqd_reset_in_service()).
    pub(super) fn reset_in_service(&mut self) -> bool {
        self.works(4);
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

    /// bfq_del_bfqq_busy().
    pub(super) fn del_busy(&mut self, q: QId, expiration: bool) {
        self.works(4);
        say!(self, q, "del from busy");
        let queue = &mut self.queues[q];
        assert!(queue.flags.busy, "{q:?} leaves the busy ones and is none");
        queue.flags.busy = false;
        let (class, raised) = (queue.class, queue.is_raised());
        let idle = queue.dispatched == 0;
        // Its class may have changed meanwhile, which the kernel does not count: then one of these
        // is below zero, as an unsigned number.
        let busy = &mut self.busy_queues[usize::from(class) - 1];
        *busy = busy.wrapping_sub(1);
        if raised {
            self.raised_busy_queues -= 1;
        }
        self.deactivate(q, true, expiration);
        if idle {
            self.no_longer_pending(q);
        }
    }

    /// bfq_add_bfqq_busy().
    pub(super) fn add_busy(&mut self, q: QId) {
        self.works(5);
        say!(self, q, "add to busy");
        self.activate(q);
        let queue = &mut self.queues[q];
        queue.flags.busy = true;
        let (class, raised) = (queue.class, queue.is_raised());
        let idle = queue.dispatched == 0;
        let busy = &mut self.busy_queues[usize::from(class) - 1];
        *busy = busy.wrapping_add(1);
        if idle {
            if self.rules.pending_groups == PendingGroups::Exact {
                self.add_pending(q);
            }
            if !raised {
                self.weights_add(q);
            }
        }
        if raised {
            self.raised_busy_queues += 1;
        }
        let waker = self.queues[q]
            .waker
            .filter(|_| self.queues[q].in_woken_list);
        if let Some(waker) = waker
            && self.rules.injects_wakers()
        {
            let woken = &mut self.queues[waker].woken;
            unlist(woken, q);
            woken.push(q);
        }
    }

    /// It has neither requests queued nor with the driver any more: it and its groups stop to count
    /// among those that have (bfq_weights_tree_remove();
    /// bfq_del_bfqq_in_groups_with_pending_reqs()).
    pub(super) fn no_longer_pending(&mut self, q: QId) {
        self.works(3);
        match self.rules.pending_groups {
            PendingGroups::SinceActivation => {
                let mut at = self.entities.parent(self.entities.of(q));
                while let Some(e) = at {
                    let own = &self.groups[e.0 as usize];
                    if own.next_in_service.is_some() || own.in_service.is_some() {
                        break;
                    }
                    if core::mem::take(&mut self.entities[e].pending) {
                        self.pending_groups -= 1;
                    }
                    at = self.entities.parent(e);
                }
            }
            PendingGroups::Exact => self.del_pending(q),
        }
        self.weights_remove(q);
    }

    /// bfq_add_bfqq_in_groups_with_pending_reqs().
    pub(super) fn add_pending(&mut self, q: QId) {
        let e = self.entities.of(q);
        let entity = &mut self.entities[e];
        if !core::mem::replace(&mut entity.pending, true) {
            let group = &mut self.groups[entity.group.index()];
            group.pending_queues += 1;
            if group.pending_queues == 1 {
                self.pending_groups += 1;
            }
        }
    }

    /// bfq_del_bfqq_in_groups_with_pending_reqs().
    pub(super) fn del_pending(&mut self, q: QId) {
        let e = self.entities.of(q);
        let entity = &mut self.entities[e];
        if core::mem::take(&mut entity.pending) {
            let group = &mut self.groups[entity.group.index()];
            group.pending_queues -= 1;
            if group.pending_queues == 0 {
                self.pending_groups -= 1;
            }
        }
    }

    /// Counts a queue under its weight, with a reference (bfq_weights_tree_add()).
    pub(super) fn weights_add(&mut self, q: QId) {
        self.works(4);
        if self.queues[q].counted_weight.is_some() {
            return;
        }
        let weight = self.entities[self.entities.of(q)].weight;
        match self
            .weights
            .binary_search_by_key(&weight, |&(weight, _)| weight)
        {
            Ok(at) => self.weights[at].1 += 1,
            Err(at) => self.weights.insert(at, (weight, 1)),
        }
        self.queues[q].counted_weight = Some(weight);
        self.queues[q].references += 1;
    }

    /// __bfq_weights_tree_remove().
    pub(super) fn weights_remove(&mut self, q: QId) {
        self.works(4);
        let Some(weight) = self.queues[q].counted_weight.take() else {
            return;
        };
        let at = self
            .weights
            .binary_search_by_key(&weight, |&(weight, _)| weight);
        let at = at.expect("a counted weight is among the weights");
        self.weights[at].1 -= 1;
        if self.weights[at].1 == 0 {
            self.weights.remove(at);
        }
        self.put(q);
    }

    /// Queues differ in what they are to get, so idling may be needed to keep it so
    /// (bfq_asymmetric_scenario()).
    pub(super) fn is_asymmetric(&self, q: QId) -> bool {
        let own = self.queues[q].counted_weight;
        let smallest = own.is_some() && own == self.weights.first().map(|&(weight, _)| weight);
        let varied_weights = !smallest && self.weights.len() > 1;
        let classes = self.busy_queues.iter().filter(|&&busy| busy > 0).count();
        let groups = match self.rules.pending_groups {
            PendingGroups::SinceActivation => self.pending_groups > 0,
            PendingGroups::Exact => self.pending_groups > 1,
        };
        varied_weights || classes > 1 || groups
    }
}

/// BFQ_MIN_WEIGHT.
const WEIGHT_MIN: u32 = 1;
/// BFQ_MAX_WEIGHT.
const WEIGHT_MAX: u32 = 1000;

/// Takes a queue off a list of them.
pub(super) fn unlist(list: &mut Vec<QId>, q: QId) {
    let at = list.iter().rposition(|&other| other == q);
    list.remove(at.expect("a queue is on the list that it leaves"));
}
