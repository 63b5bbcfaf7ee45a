//! Busy queues: those that have requests, or that the device idles for.
//!
//! A queue that becomes busy may get weight raising, and may preempt the one in service. Kernel:
//! bfq_bfqq_handle_idle_busy_switch() in block/bfq-iosched.c, bfq_add_bfqq_busy(),
//! bfq_del_bfqq_busy() in block/bfq-wf2q.c (6.1.192, 6.12.117).

use super::Bfq;
use super::arrive::Arrived;
use super::budget::Expiry;
use super::ids::QId;
use super::queue::unlist;
use super::wr::Arrival;
use crate::request::RequestPool;
use crate::rules::{PendingGroups, Raising, StableMerge};

/// Weight of a queue whose process has no I/O priority.
const WEIGHT_DEFAULT: u32 = 40;

impl Bfq {
    /// An idle queue gets a request: true if the queue counts as interactive
    /// (bfq_bfqq_handle_idle_busy_switch()).
    pub(super) fn becomes_busy(
        &mut self,
        pool: &RequestPool,
        q: QId,
        of: Arrived,
        coeff_before: u32,
    ) -> bool {
        self.charge(16);
        let (now, tick) = (self.read_clock(), self.jiffies());
        let queue = &self.queues[q];
        let long_idle =
            queue.dispatched == 0 && queue.budget_timeout + self.fixed.wr_min_idle_time < tick;
        // The kernel's product has 32 bits.
        let thrice = (self.settings.slice_idle_ns as u32).wrapping_mul(3);
        let in_time = now <= queue.ttime.last_end_request + u64::from(thrice);
        let in_burst = queue.flags.in_large_burst;
        let any_weight = self.rules.raising == Raising::AnyWeight;
        let e = self.entities.of(q);
        let weight_suits = any_weight || self.entities[e].new_weight == WEIGHT_DEFAULT;
        let soft_rt = !queue.is_totally_seeky()
            && !in_burst
            && queue.soft_rt_next_start < tick
            && queue.dispatched == 0
            && weight_suits;
        let interactive = !in_burst && long_idle && weight_suits;
        let owned = queue.owner.is_some();
        let (wr, sync) = (queue.is_wr(), queue.flags.sync);
        let stably = self.rules.stable_merge == StableMerge::SinceActivation;
        let own = owned || stably && self.saved(of.process, of.actuator).stably_merged;
        let deserves = self.settings.low_latency && (wr || sync && own && (interactive || soft_rt));
        let wants_to_preempt = self.budget_for_activation(pool, q, in_time);
        self.count_streak(q, in_time);
        let queue = &self.queues[q];
        let very_long = queue.budget_timeout + self.fixed.burst_forgotten < tick;
        if !queue.flags.just_created && long_idle && very_long {
            self.leave_burst_list(q);
            self.queues[q].flags.in_large_burst = false;
        }
        self.queues[q].flags.just_created = false;
        if self.settings.low_latency {
            let queue = &mut self.queues[q];
            if queue.split_time > tick {
                queue.split_time = tick - self.fixed.wr_min_idle_time - 1;
            }
            if queue.split_time + self.fixed.wr_min_idle_time < tick {
                let arrival = Arrival {
                    deserves,
                    interactive,
                    in_burst,
                    soft_rt,
                };
                self.wr_on_arrival(q, coeff_before, arrival);
                if self.queues[q].wr.coeff != coeff_before {
                    self.entities[e].prio_changed = true;
                }
            }
        }
        let queue = &mut self.queues[q];
        queue.last_idle_backlogged = tick;
        queue.service_from_backlogged = 0;
        queue.flags.softrt_update = false;
        self.add_busy(q);
        self.maybe_preempt(pool, q, wants_to_preempt);
        interactive
    }

    /// Expires the queue in service if the queue that became busy may preempt it.
    fn maybe_preempt(&mut self, pool: &RequestPool, q: QId, wants_to: bool) {
        self.charge(6);
        let Some(s) = self.in_service else { return };
        let as_wr = self.queues[q].wr.coeff >= self.queues[s].wr.coeff;
        let not_waited = self.rules.only_busy_idles && !self.better_to_idle(s);
        let stronger = wants_to && as_wr || self.is_stronger(q, s) || not_waited;
        if stronger && self.next_may_preempt() {
            self.expire(pool, s, false, Expiry::Preempted);
        }
    }

    /// bfq_bfqq_higher_class_or_weight().
    fn is_stronger(&self, q: QId, s: QId) -> bool {
        if self.queues[q].class < self.queues[s].class {
            return true;
        }
        let (a, b) = (self.entities.of(q), self.entities.of(s));
        let (above_a, above_b) = (self.entities.parent(a), self.entities.parent(b));
        let (a, b) = match above_a == above_b {
            true => (a, b),
            false => (above_a.unwrap_or(a), above_b.unwrap_or(b)),
        };
        self.entities[a].weight > self.entities[b].weight
    }

    pub(super) fn busy_queues_total(&self) -> u32 {
        let busy = self.busy_queues.iter();
        busy.fold(0, |sum, &class| sum.wrapping_add(class))
    }

    /// bfq_add_bfqq_busy().
    pub(super) fn add_busy(&mut self, q: QId) {
        self.charge(5);
        trace_msg!(self, q, "add to busy");
        self.activate(q);
        let queue = &mut self.queues[q];
        queue.flags.busy = true;
        let (class, wr) = (queue.class, queue.is_wr());
        let idle = queue.dispatched == 0;
        let busy = &mut self.busy_queues[usize::from(class) - 1];
        *busy = busy.wrapping_add(1);
        if idle {
            if self.rules.pending_groups == PendingGroups::Exact {
                self.add_pending(q);
            }
            if !wr {
                self.weights_add(q);
            }
        }
        if wr {
            self.wr_busy_queues += 1;
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

    /// bfq_del_bfqq_busy().
    pub(super) fn del_busy(&mut self, q: QId, expiration: bool) {
        self.charge(4);
        trace_msg!(self, q, "del from busy");
        let queue = &mut self.queues[q];
        assert!(queue.flags.busy, "{q:?} leaves the busy ones and is none");
        queue.flags.busy = false;
        let (class, wr) = (queue.class, queue.is_wr());
        let idle = queue.dispatched == 0;
        // The class may have changed since the queue was counted, which the kernel ignores: then
        // one of these counts is below zero, as an unsigned number.
        let busy = &mut self.busy_queues[usize::from(class) - 1];
        *busy = busy.wrapping_sub(1);
        if wr {
            self.wr_busy_queues -= 1;
        }
        self.deactivate(q, true, expiration);
        if idle {
            self.no_longer_pending(q);
        }
    }
}
