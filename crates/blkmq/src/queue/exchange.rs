//! The exchange of the scheduler of a queue without users.
//!
//! `path/switch.rs` makes sure that it has none. Capacity for all schedulers that a queue may have
//! (slots, numbers of locks) is allocated with the queue. Kernel: blk_mq_exit_sched(),
//! blk_mq_init_sched() in block/blk-mq-sched.c (6.1.192, 6.12.117).

use super::tokens::token_maps;
use super::{BlkMq, QueueSettings, RequestQueue, shape_of};
use crate::elevator::{Elevator, SchedulerKind, SchedulerSettings};
use crate::request::{HctxId, QueueId};
use crate::rules::AsyncDepth;
use crate::sbitmap::{Sbitmap, shift_for};
use crate::tags::TagSet;

/// Most requests of a queue by default (BLKDEV_DEFAULT_RQ).
const DEFAULT_RQ: u32 = 128;
/// Most scheduler tags (MAX_SCHED_RQ).
const MAX_SCHED_RQ: u32 = 2048;

/// queue/nr_requests after a change to this scheduler, on a set of this depth
/// (blk_mq_init_sched()).
pub fn nr_requests_for(scheduler: SchedulerKind, queue_depth: u32) -> u32 {
    match scheduler {
        SchedulerKind::None => queue_depth,
        _ => 2 * queue_depth.min(DEFAULT_RQ),
    }
}

/// Scheduler tags of a queue with these settings: one map per hctx, or one in all, or none.
pub(super) fn sched_tags(
    (settings, chosen): (&QueueSettings, &SchedulerSettings),
    set: &TagSet,
    (cpus, waiters): (usize, usize),
    hint: &mut dyn FnMut() -> u32,
) -> Vec<Sbitmap> {
    // A map that all hctxs share has room for every value of nr_requests; others are allocated
    // again when it grows.
    let made_for = match set.hctx_shared {
        true => settings.nr_requests.max(MAX_SCHED_RQ),
        false => settings.nr_requests.max(settings.nr_requests_first),
    };
    let rule = settings.rules.shallow_depth;
    let info = settings.scheduler.info();
    let hook = settings.rules.depth_hook;
    let seen = hook.seen(settings.nr_requests_first, settings.nr_requests);
    let shift = shift_for(made_for);
    let shallow = info.and_then(|f| f.min_shallow_depth.of(&settings.rules, shift, seen));
    // blk_mq_set_min_shallow_depth() with queue/async_depth (v7.0), which BFQ does not use.
    let of_queue = match (settings.rules.async_depth, shallow) {
        (AsyncDepth::OfQueue, Some(2..)) => chosen.async_depth(),
        _ => None,
    };
    let shallow = of_queue.or(shallow);
    let mut one = || {
        let mut map = Sbitmap::new(made_for, cpus, rule, shallow, waiters, &mut *hint);
        map.follow(&settings.rules);
        map.shrink(settings.nr_requests, shallow);
        map
    };
    let count = match settings.scheduler {
        SchedulerKind::None => 0,
        _ => set.driver.len(),
    };
    (0..count).map(|_| one()).collect()
}

impl BlkMq {
    /// elevator_switch() of a queue without users: creates scheduler tags and scheduler again, as
    /// number `to` of the queue's further ones, with its defaults. `hint` draws first allocation
    /// hints.
    ///
    /// # Panics
    /// If the queue is not frozen, not quiesced, or has users or requests.
    pub fn exchange(&mut self, queue: QueueId, to: usize, hint: &mut dyn FnMut() -> u32) {
        let set = &self.sets[self.queues[queue.index()].set.index()];
        let q = &mut self.queues[queue.index()];
        q.check_unused();
        let chosen = q.further[to].clone();
        let settings = &mut q.settings;
        settings.scheduler = chosen.kind();
        settings.rotational_when_chosen = settings.rotational;
        settings.nr_requests = nr_requests_for(chosen.kind(), set.queue_depth);
        settings.nr_requests_first = settings.nr_requests;
        let cpus = q.ctxs.len();
        q.sched = sched_tags((settings, &chosen), set, (cpus, q.waiters), hint);
        q.tokens = token_maps(settings, cpus, q.hctxs.len(), hint);
        let shape = shape_of(cpus, &q.hctxs);
        q.elevator = Elevator::new(&chosen, settings, &shape);
        q.elevator_locks = self.locks.of_elevator(queue, chosen.kind());
    }
}

impl RequestQueue {
    /// The queue has no user and will get none, and the old scheduler is empty.
    fn check_unused(&self) {
        let usage = self.with_pool(|pool| pool.usage);
        assert!(usage.is_frozen(), "the queue is not frozen");
        assert_eq!(usage.users(), 0, "somebody uses the queue");
        assert!(self.quiesced.peek(), "the queue is not quiesced");
        assert!(self.elevator.is_free(), "somebody has the scheduler's lock");
        let mut hctxs = (0..self.hctxs.len() as u16).map(HctxId);
        let work = hctxs.any(|hctx| self.elevator.has_queued(hctx));
        assert!(!work, "the scheduler has requests");
        for map in &self.sched {
            assert_eq!(map.busy_count(), 0, "scheduler tags are taken");
        }
        for tokens in &self.tokens {
            assert_eq!(
                tokens.map.busy_count(),
                0,
                "{}s are taken",
                tokens.info.name
            );
        }
    }

    /// All schedulers that it may have, the first one first.
    pub(super) fn schedulers(&self) -> Vec<(SchedulerKind, Elevator)> {
        let shape = shape_of(self.ctxs.len(), &self.hctxs);
        let of = |settings: &SchedulerSettings| {
            let elevator = Elevator::new(settings, &self.settings, &shape);
            (settings.kind(), elevator)
        };
        let mut all: Vec<(SchedulerKind, Elevator)> = Vec::new();
        for settings in core::iter::once(&self.first).chain(&self.further) {
            if all.iter().all(|(kind, _)| *kind != settings.kind()) {
                all.push(of(settings));
            }
        }
        all
    }
}
