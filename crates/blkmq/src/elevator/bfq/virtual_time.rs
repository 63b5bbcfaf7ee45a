//! Virtual time: the cost of service for an entity, and the tree of its class that it is in.
//!
//! A scheduled entity has a start and a finish; the virtual time of a tree advances with the
//! service of its entities. An entity leaves the idle tree when the time has passed its finish. Not
//! here: activation (`activation.rs`), the trees themselves (`service_tree.rs`). Kernel:
//! block/bfq-wf2q.c (6.1.192, 6.12.117).

use super::ids::{EntityId, QId, ROOT};
use super::queue::{BE, unlist};
use super::service_tree::{delta, later};
use super::{Bfq, DIVISION};

impl Bfq {
    /// Index of the entity's class among the service trees of its group (bfq_class_idx()).
    #[inline]
    pub(super) fn class_of(&self, e: EntityId) -> usize {
        let class = self.entities.queue(e).map_or(BE, |q| self.queues[q].class);
        usize::from(class) - 1
    }

    /// Group and index of the entity's tree (bfq_entity_service_tree()).
    #[inline]
    pub(super) fn tree_of(&self, e: EntityId) -> (usize, usize) {
        (self.entities[e].group.index(), self.class_of(e))
    }

    pub(super) fn calc_finish(&mut self, e: EntityId, service: i32) {
        self.charge(2 + DIVISION);
        let service = i64::from(service).cast_unsigned();
        let entity = &mut self.entities[e];
        let delta = delta(service, u64::from(entity.weight));
        let (start, weight) = (entity.start, entity.weight);
        let finish = start.wrapping_add(delta);
        entity.finish = finish;
        if let Some(q) = self.entities.queue(e) {
            trace_msg!(self, q, "calc_finish: serv {service}, w {weight}");
            trace_msg!(
                self,
                q,
                "calc_finish: start {start}, finish {finish}, delta {delta}"
            );
        }
    }

    pub(super) fn idle_extract(&mut self, (g, class): (usize, usize), e: EntityId) {
        self.groups[g].trees[class].extract_idle(&mut self.entities, e);
        if let Some(q) = self.entities.queue(e) {
            unlist(&mut self.idle_list, q);
        }
    }

    fn active_insert(&mut self, (g, class): (usize, usize), e: EntityId) {
        self.charge(3);
        self.groups[g].trees[class].insert_active(&mut self.entities, e);
        if let Some(q) = self.entities.queue(e) {
            self.active_lists[usize::from(self.queues[q].actuator)].push(q);
        }
        if g != ROOT.index() {
            self.groups[g].active_entities += 1;
        }
    }

    pub(super) fn active_extract(&mut self, (g, class): (usize, usize), e: EntityId) {
        self.charge(3);
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

    pub(super) fn get_entity(&mut self, e: EntityId) {
        if let Some(q) = self.entities.queue(e) {
            let queue = &mut self.queues[q];
            queue.references += 1;
            let (address, references) = (queue.address, queue.references);
            trace_msg!(self, q, "get_entity: {address:016x} {references}");
        }
    }

    pub(super) fn forget_entity(&mut self, at: (usize, usize), e: EntityId, is_in_service: bool) {
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

    pub(super) fn forget_idle(&mut self, at: (usize, usize)) {
        self.charge(3);
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

    /// Charges service to a queue and all groups above it.
    pub(super) fn served(&mut self, q: QId, sectors: i32) {
        let tick = self.jiffies();
        let queue = &mut self.queues[q];
        if queue.service_from_backlogged == 0 {
            queue.first_io_time = tick;
        }
        let more = i64::from(sectors).cast_unsigned();
        if queue.is_wr() {
            queue.wr.service = queue.wr.service.wrapping_add(more);
        }
        queue.service_from_backlogged = queue.service_from_backlogged.wrapping_add(more);
        let mut at = Some(self.entities.of(q));
        while let Some(e) = at {
            self.charge(3 + DIVISION);
            let tree_at = self.tree_of(e);
            self.entities[e].service = self.entities[e].service.wrapping_add(sectors);
            let tree = &mut self.groups[tree_at.0].trees[tree_at.1];
            tree.vtime = tree.vtime.wrapping_add(delta(more, tree.wsum));
            self.forget_idle(tree_at);
            at = self.entities.parent(e);
        }
        trace_msg!(self, q, "bfqq_served {sectors} secs");
    }

    pub(super) fn update_fin_time_enqueue(&mut self, e: EntityId, backshifted: bool) {
        self.charge(3);
        let at = self.update_weight_prio(e, true);
        let budget = self.entities[e].budget;
        self.calc_finish(e, budget);
        let vtime = self.groups[at.0].trees[at.1].vtime;
        let coeff = self
            .entities
            .queue(e)
            .map_or(1, |q| self.queues[q].wr.coeff);
        let entity = &mut self.entities[e];
        if backshifted && later(vtime, entity.finish) {
            let shift = vtime.wrapping_sub(entity.finish) / u64::from(coeff);
            entity.start = entity.start.wrapping_add(shift);
            entity.finish = entity.finish.wrapping_add(shift);
        }
        self.active_insert(at, e);
    }
}
