//! Creation: a process gets a queue of its own, or one that its group shares.
//!
//! Asynchronous requests of one priority share a queue; a synchronous queue belongs to its process,
//! and may be merged right away (`stable_merge.rs`). Kernel: bfq_get_queue(), bfq_init_bfqq() in
//! block/bfq-iosched.c (6.1.192, 6.12.117).

use super::arrive::Arrived;
use super::ids::QId;
use super::{Bfq, far_past};
use crate::request::{IoClass, IoPrio};

/// IOPRIO_BE_NORM.
const LEVEL_NORMAL: usize = 4;

impl Bfq {
    /// The queue for a request: its group's, if it is asynchronous, otherwise a new one
    /// (bfq_get_queue()). `respawn`: the queue is not merged right away.
    pub(super) fn get_queue(&mut self, of: Arrived, respawn: bool) -> QId {
        self.charge(4);
        let ioprio = self.processes[of.process.0 as usize].ioprio;
        let shared = match of.sync {
            true => None,
            false => *self.async_slot(of, ioprio),
        };
        let q = match shared {
            Some(q) => q,
            None => {
                let q = self.allocate(of);
                if !of.sync {
                    let queue = &mut self.queues[q];
                    queue.references += 1;
                    let (address, references) = (queue.address, queue.references);
                    trace_msg!(
                        self,
                        q,
                        "get_queue, bfqq not in async: {address:016x}, {references}"
                    );
                    *self.async_slot(of, ioprio) = Some(q);
                }
                q
            }
        };
        self.queues[q].references += 1;
        if of.sync && !respawn {
            self.stable_merge(q, of.process)
        } else {
            q
        }
    }

    /// bfq_async_queue_prio().
    fn async_slot(&mut self, of: Arrived, ioprio: IoPrio) -> &mut Option<QId> {
        let group = &mut self.groups[of.group.index()];
        let queues = &mut group.async_queues[usize::from(of.actuator)];
        match ioprio.class {
            IoClass::RealTime => &mut queues.by_level[0][usize::from(ioprio.level)],
            IoClass::None => &mut queues.by_level[1][LEVEL_NORMAL],
            IoClass::BestEffort => &mut queues.by_level[1][usize::from(ioprio.level)],
            IoClass::Idle => &mut queues.idle,
        }
    }

    /// bfq_init_bfqq(), bfq_init_entity().
    fn allocate(&mut self, of: Arrived) -> QId {
        self.charge(20);
        let now = self.read_clock();
        let q = self.queues.allocate();
        let e = self.entities.of(q);
        if self.entities.list.len() <= e.0 as usize {
            self.entities
                .list
                .resize_with(e.0 as usize + 1, Default::default);
        }
        self.set_next_ioprio(q, of.process);
        let (tick, budget) = (self.jiffies(), self.budget_first());
        let stamp = if self.rules.stamp_at_creation {
            tick
        } else {
            super::ZERO
        };
        let queue = &mut self.queues[q];
        queue.actuator = of.actuator;
        queue.flags.sync = of.sync;
        queue.flags.has_short_ttime = of.sync;
        queue.flags.just_created = of.sync;
        queue.flags.io_bound = true;
        queue.ttime.last_end_request = now + 1;
        queue.creation_time = tick;
        queue.io_start_ns = now;
        queue.pid = of.pid;
        queue.max_budget = budget;
        queue.budget_timeout = far_past(tick);
        queue.wr.coeff = 1;
        queue.wr.last_start_finish = tick;
        queue.wr.start_at_switch_to_srt = far_past(tick);
        queue.split_time = far_past(tick);
        queue.soft_rt_next_start = tick;
        queue.seek_history = 1;
        queue.decrease_time = stamp;
        queue.first_io_time = super::ZERO;
        queue.last_idle_backlogged = super::ZERO;
        queue.class = queue.new_class;
        queue.level = queue.new_level;
        let entity = &mut self.entities[e];
        entity.weight = entity.new_weight;
        entity.orig_weight = entity.new_weight;
        entity.group = of.group;
        trace_msg!(self, q, "allocated");
        q
    }
}
