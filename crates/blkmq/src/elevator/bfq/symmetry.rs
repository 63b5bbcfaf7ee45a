//! Symmetry: do all busy queues and groups get the same share? If not, idling may be needed to keep
//! the shares.
//!
//! Counts weights, classes, and groups with requests queued or with the driver.
//! Kernel: bfq_asymmetric_scenario(), bfq_weights_tree_add() in block/bfq-iosched.c,
//! bfq_add_bfqq_in_groups_with_pending_reqs() in block/bfq-wf2q.c (6.1.192, 6.12.117).

use super::Bfq;
use super::ids::QId;
use crate::rules::PendingGroups;

impl Bfq {
    /// The queue has no request queued or with the driver any more: it and its groups no longer
    /// count among those with pending requests (bfq_weights_tree_remove();
    /// bfq_del_bfqq_in_groups_with_pending_reqs()).
    pub(super) fn no_longer_pending(&mut self, q: QId) {
        self.charge(3);
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
        self.charge(4);
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
        self.charge(4);
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

    /// Queues have different shares, so idling may be needed to keep them
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
