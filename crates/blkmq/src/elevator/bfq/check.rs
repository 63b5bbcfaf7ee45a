//! Invariants of all structures of BFQ together, and their text form.
//!
//! The references of each queue are counted from their holders: a get or a put too many fails at
//! once.

use super::Bfq;
use super::arrive::queue_of;
use super::entity::InTree;
use super::ids::{EntityId, GroupId, QId};
use crate::request::{Place, RequestPool};

impl Bfq {
    /// Panics unless queues, trees, lists, counts and references agree.
    pub(super) fn check_all(&self, pool: &RequestPool) {
        self.index.check(pool);
        self.dispatch_list.check(pool);
        for (at, group) in self.groups.iter().enumerate() {
            for tree in &group.trees {
                tree.check(&self.entities, GroupId(at as u16));
            }
            group.pos_tree.check(&self.queues);
        }
        let mut queued = 0;
        for (q, queue) in self.queues.iter() {
            self.check_queue(pool, q);
            queued += queue.queued[0] + queue.queued[1];
        }
        assert_eq!(queued, self.queued, "requests that are queued");
        if self.rules.counts_raised {
            self.check_raised();
        }
        let loads: i32 = self.in_driver.iter().sum();
        assert_eq!(loads, self.in_driver_total, "requests with the driver");
        self.check_weights();
        self.check_wsums();
    }

    /// Queues that count as raised and busy, and those that are.
    pub(super) fn raised(&self) -> (i32, i32) {
        let all = self.queues.iter();
        let raised = all.filter(|(_, queue)| queue.flags.busy && queue.is_wr());
        (self.wr_busy_queues, raised.count() as i32)
    }

    /// Panics unless the count of raised queues is right. In a kernel it is wrong once low_latency
    /// has been cleared: docs/findings/0006.
    pub(super) fn check_raised(&self) {
        let (counted, raised) = self.raised();
        assert_eq!(counted, raised, "raised queues that are busy");
    }

    fn check_queue(&self, pool: &RequestPool, q: QId) {
        let (queue, entity) = (&self.queues[q], &self.entities[self.entities.of(q)]);
        queue.sort.check(pool);
        queue.fifo.check(pool);
        assert_eq!(queue.sort.len(), queue.fifo.len(), "{q:?}: order and age");
        let queued = queue.queued[0] + queue.queued[1];
        assert_eq!(
            queue.sort.len() as u32,
            queued,
            "{q:?}: requests that are queued"
        );
        assert_eq!(
            queue.next_rq.is_some(),
            !queue.is_empty(),
            "{q:?}: next request"
        );
        for rq in queue.fifo.iter(pool) {
            assert_eq!(pool[rq].place, Place::Elevator, "place of {rq:?}");
            assert_eq!(queue_of(&pool[rq]), Some(q), "queue of {rq:?}");
        }
        if !queue.is_empty() {
            assert!(queue.flags.busy, "{q:?} has requests, so it is busy");
        }
        let listed = entity.tree != InTree::No || self.in_service == Some(q);
        assert_eq!(entity.on_st, listed, "{q:?}: on a tree, or in service");
        let of_it =
            |rq: &crate::request::Request| rq.place != Place::Free && queue_of(rq) == Some(q);
        let allocated = pool.iter().filter(|(_, rq)| of_it(rq)).count();
        assert_eq!(entity.allocated, allocated as i32, "{q:?}: requests of it");
        self.check_references(q);
    }

    /// A queue has one reference per process whose slot leads to it, directly or by planned merges.
    fn check_references(&self, q: QId) {
        let mut expected = self.queues[q].lost_references;
        let mut stable = 0;
        for process in &self.processes {
            for slot in process.queues.iter().flatten().flatten() {
                let chain = core::iter::successors(Some(*slot), |&at| self.queues[at].new);
                expected += i32::from(chain.take(self.queues.len() + 1).any(|at| at == q));
            }
            let candidates = process
                .saved
                .iter()
                .filter_map(|saved| saved.stable_candidate);
            stable += candidates.filter(|&candidate| candidate == q).count() as i32;
        }
        for group in &self.groups {
            let pinned = group
                .async_queues
                .iter()
                .flat_map(super::group::AsyncQueues::iter);
            expected += pinned.filter(|&pinned| pinned == q).count() as i32;
        }
        assert_eq!(
            self.process_references(q),
            expected,
            "{q:?}: references of processes"
        );
        // A replaced candidate keeps its reference, as in the kernel.
        assert_eq!(
            self.queues[q].stable_references,
            stable + self.queues[q].lost_candidates,
            "{q:?}: references of processes that are to merge"
        );
    }

    fn check_weights(&self) {
        for &(weight, count) in &self.weights {
            let counted = self.queues.iter();
            let counted = counted.filter(|(_, queue)| queue.counted_weight == Some(weight));
            assert_eq!(
                counted.count() as u32,
                count,
                "queues counted under weight {weight}"
            );
        }
    }

    fn check_wsums(&self) {
        let mut sums = vec![[0u64; 3]; self.groups.len()];
        for (at, entity) in self.entities.list.iter().enumerate() {
            if entity.on_st {
                let e = EntityId(at as u32);
                let class = self.entities.queue(e).map_or(2, |q| self.queues[q].class);
                sums[entity.group.index()][usize::from(class) - 1] += u64::from(entity.weight);
            }
        }
        for (group, sums) in self.groups.iter().zip(sums) {
            for (tree, sum) in group.trees.iter().zip(sums) {
                assert_eq!(tree.wsum, sum, "sum of weights in a tree");
            }
        }
    }

    /// All queues, one line each.
    pub(super) fn show_all(&self, pool: &RequestPool) -> String {
        let mut text = format!(
            "in driver {}, queued {}, busy {:?}, raised {}, max budget {}, peak rate {}\n",
            self.in_driver_total,
            self.queued,
            self.busy_queues,
            self.wr_busy_queues,
            self.max_budget,
            self.peak_rate
        );
        if !self.dispatch_list.is_empty() {
            let rqs = self.dispatch_list.iter(pool);
            let rqs = rqs.map(|rq| format!(" {}", pool[rq])).collect::<Vec<_>>();
            text += &format!("dispatch:{}\n", rqs.join(","));
        }
        for (q, queue) in self.queues.iter() {
            let e = self.entities.of(q);
            let entity = &self.entities[e];
            let mark = if self.in_service == Some(q) { "*" } else { " " };
            let rqs = queue.fifo.iter(pool);
            let rqs = rqs.map(|rq| format!(" {}", pool[rq])).collect::<Vec<_>>();
            text += &format!(
                "{mark}{} weight {}, start {}, finish {}, served {} of {}, in flight {}, \
                 refs {}:{}\n",
                super::log::Name::of(queue),
                entity.weight,
                entity.start,
                entity.finish,
                entity.service,
                entity.budget,
                queue.dispatched,
                queue.references,
                rqs.join(",")
            );
        }
        text
    }
}
