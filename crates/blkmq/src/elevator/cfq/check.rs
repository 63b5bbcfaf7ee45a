//! Invariants of all structures of CFQ together, and their text form.
//!
//! The references of each queue are counted from their holders, unless the rules have lost some: a
//! get or a put too many fails at once.

use super::arrive::queue_of;
use super::ids::QId;
use super::merge::FALLBACK;
use super::queue::{Class, Served};
use super::{Cfq, Queue};
use crate::request::{Place, Request, RequestPool};
use crate::rules::{SliceTrees, Split};

impl Cfq {
    /// Panics unless queues, trees, lists, counts and references agree.
    pub(super) fn check_all(&self, pool: &RequestPool) {
        self.index.check(pool);
        self.handed.check(pool);
        self.groups.check();
        for tree in &self.pos_trees {
            tree.check(&self.queues);
        }
        let mut queues = self.queues.clone();
        for group in &self.groups.list {
            for tree in &group.trees {
                tree.nodes.check(&Served(&mut queues));
            }
        }
        let live = || {
            self.ties
                .queues()
                .map(|(q, _)| q)
                .filter(|&q| q != FALLBACK)
        };
        let sum = |of: fn(&Queue) -> u32| live().map(|q| of(&self.queues[q])).sum::<u32>();
        live().for_each(|q| self.check_queue(pool, q));
        assert_eq!(
            sum(|q| q.queued[0] + q.queued[1]),
            self.queued,
            "queued requests"
        );
        assert_eq!(
            sum(|q| u32::from(q.flags.on_rr)),
            self.busy_queues,
            "busy queues"
        );
        let away = self.in_flight[0] + self.in_flight[1];
        assert_eq!(sum(|q| q.dispatched), away, "requests handed over");
        let in_driver = self.in_driver[0] + self.in_driver[1];
        assert!(
            in_driver <= away,
            "{in_driver} of {away} requests with the driver"
        );
        let filed = self.groups.list.iter().flat_map(|group| &group.trees);
        let filed = filed.map(|tree| tree.nodes.len() as u32).sum::<u32>();
        assert_eq!(filed, self.busy_queues, "queues on service trees");
        if self.timer_pending {
            assert!(self.active.is_some(), "a wait for nobody");
        }
    }

    fn check_queue(&self, pool: &RequestPool, q: QId) {
        let queue = &self.queues[q];
        queue.sort.check(pool);
        queue.fifo.check(pool);
        assert_eq!(queue.sort.len(), queue.fifo.len(), "{q:?}: order and age");
        let queued = queue.queued[0] + queue.queued[1];
        assert_eq!(queue.sort.len() as u32, queued, "{q:?}: requests queued");
        assert_eq!(queue.next_rq.is_some(), !queue.is_empty(), "{q:?}: next");
        for rq in queue.fifo.iter(pool) {
            assert_eq!(pool[rq].place, Place::Elevator, "place of {rq:?}");
            assert_eq!(queue_of(&pool[rq]), Some(q), "queue of {rq:?}");
        }
        let stays = self.rules.trees == SliceTrees::ByWorkload && self.active == Some(q);
        let busy = queue.flags.on_rr;
        assert!(
            busy || queue.is_empty(),
            "{q:?} has requests, so it is busy"
        );
        assert!(
            !busy || !queue.is_empty() || stays,
            "{q:?} is busy for nothing"
        );
        assert_eq!(queue.tree.is_some(), busy, "{q:?}: tree of a busy queue");
        let meta = |rq| u32::from(pool[rq].flags.meta);
        let meta = queue.fifo.iter(pool).map(meta).sum::<u32>();
        assert_eq!(queue.meta_pending, meta, "{q:?}: metadata");
        let tie = self.ties.tie(q).expect("it is live");
        let of_it = |rq: &Request| rq.place != Place::Free && queue_of(rq) == Some(q);
        let allocated = pool.iter().filter(|(_, rq)| of_it(rq)).count();
        let counted = tie.allocated[0] + tie.allocated[1];
        assert_eq!(counted, allocated as i32, "{q:?}: requests of it");
        let references = tie.references - counted;
        assert!(
            references >= 0,
            "{q:?}: {references} references of processes"
        );
        if self.counts_exactly() {
            assert_eq!(
                references,
                self.expected(q),
                "{q:?}: references of processes"
            );
        }
    }

    /// By these rules reservations are exact, and none has been lost.
    fn counts_exactly(&self) -> bool {
        use crate::rules::Current::{Any, AnyServed};
        let merge = &self.rules.merge;
        let careless = merge.merges && matches!(merge.current, Any | AnyServed);
        let forgets = merge.split != Split::Never && !merge.split_drops_chain;
        !careless && !forgets && !self.reservations_lost
    }

    /// A queue has one reference per process whose slot leads to it, directly or by planned merges,
    /// and one of the table.
    fn expected(&self, q: QId) -> i32 {
        let mut expected = 0;
        for slot in self.ties.slots().iter().flatten().flatten() {
            let next = |&at: &QId| self.ties.tie(at).ok().and_then(|tie| tie.new);
            let chain = core::iter::successors(Some(*slot), next);
            let chain = chain.take(self.queues.0.len() + 1);
            expected += chain.filter(|&at| at == q).take(1).count() as i32;
        }
        let table = self.ties.table().iter().flatten();
        expected + table.filter(|&&held| held == q).count() as i32
    }

    /// All queues, one line each.
    pub(super) fn show_all(&self, pool: &RequestPool) -> String {
        let mut text = format!(
            "in driver {:?}, queued {}, busy {}, head {}, hw_tag {:?}\n",
            self.in_driver, self.queued, self.busy_queues, self.last_position, self.hw_tag,
        );
        for (q, tie) in self.ties.queues().filter(|&(q, _)| q != FALLBACK) {
            let queue = &self.queues[q];
            let mark = if self.active == Some(q) { "*" } else { " " };
            let sync = if queue.flags.sync { 'S' } else { 'A' };
            let class = match queue.class {
                Class::RealTime => "rt",
                Class::BestEffort => "be",
                Class::Idle => "idle",
            };
            let rqs = queue.fifo.iter(pool);
            let rqs = rqs.map(|rq| format!(" {}", pool[rq])).collect::<Vec<_>>();
            text += &format!(
                "{mark}{}{sync} {class}/{}{}, in flight {}, refs {}{}{}:{}\n",
                queue.pid,
                queue.level,
                self.group_of(queue),
                queue.dispatched,
                tie.references,
                tie.new.map_or(String::new(), |new| format!(
                    ", to {}",
                    self.queues[new].pid
                )),
                self.marks_of(queue, tie.coop, tie.split_coop),
                rqs.join(",")
            );
        }
        text
    }

    fn group_of(&self, queue: &Queue) -> String {
        match self.submitters.groups[queue.group.index()].path.as_str() {
            "" => String::new(),
            path => format!(" of {path}"),
        }
    }

    fn marks_of(&self, queue: &Queue, coop: bool, split_coop: bool) -> String {
        let flags = &queue.flags;
        let all = [
            (flags.idle_window, "window"),
            (flags.wait_request, "waits"),
            (flags.must_dispatch, "must"),
            (flags.slice_new, "new"),
            (flags.deep, "deep"),
            (flags.wait_busy, "wait-busy"),
            (coop, "coop"),
            (flags.coop_preempt, "coop-preempt"),
            (split_coop, "split"),
            (self.timer_pending && flags.wait_request, "timer"),
        ];
        let set = all.into_iter().filter(|&(set, _)| set);
        set.map(|(_, name)| format!(", {name}")).collect()
    }
}
