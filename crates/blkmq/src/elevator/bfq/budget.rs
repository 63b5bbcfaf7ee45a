//! Budgets: how many sectors a queue is served in a slot, and what happens when the slot ends.
//!
//! Kernel: __bfq_bfqq_recalc_budget(), bfq_bfqq_is_slow(), bfq_bfqq_charge_time(),
//! bfq_bfqq_expire(), bfq_bfqq_update_budg_for_activation() in block/bfq-iosched.c (6.1.192,
//! 6.12.117).

use super::ids::QId;
use super::{Bfq, DIVISION};
use crate::request::{RequestId, RequestPool};
use crate::rules::IoBound;

/// Why the slot of a queue ends, numbered as in the log (enum bfqq_expiration).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Expiry {
    /// The device idled for the queue, and no request came.
    TooIdle,
    /// The time of its slot is over.
    BudgetTimeout,
    /// The budget is used up.
    BudgetExhausted,
    /// The queue is empty, and the device does not idle for it.
    NoMoreRequests,
    /// Another queue preempts it.
    Preempted,
}

/// bfq_default_max_budget, sectors.
pub(super) const BUDGET_MAX_DEFAULT: i32 = 16 * 1024;
/// Number of selections before a measured budget counts (bfq_stats_min_budgets).
const BUDGETS_MIN: i32 = 194;
/// bfq_async_charge_factor.
const ASYNC_CHARGE: u32 = 3;
/// The rate of a queue in service for less is not judged, us.
const SLOW_TEST_MIN_US: u64 = 1000;
/// A queue in service for longer is slow if it got less than half of the largest budget, us.
const SLOW_TEST_US: u64 = 20_000;
/// Number of quick arrivals in a row that make a queue IO_bound (v5.11).
pub(super) const STREAK: u32 = 120;

/// An int compared with an unsigned long, as in the kernel: a value below zero is huge.
#[inline]
pub(super) fn widened(int: i32) -> u64 {
    i64::from(int).cast_unsigned()
}

impl Bfq {
    #[inline]
    pub(super) fn budget_left(&self, q: QId) -> i32 {
        let entity = &self.entities[self.entities.of(q)];
        entity.budget.wrapping_sub(entity.service)
    }

    /// bfq_max_budget().
    fn budget_max(&self) -> i32 {
        if self.budgets_assigned < BUDGETS_MIN {
            BUDGET_MAX_DEFAULT
        } else {
            self.max_budget
        }
    }

    /// bfq_min_budget().
    pub(super) fn budget_min(&self) -> i32 {
        self.budget_max() / 32
    }

    /// The first budget of a new queue.
    pub(super) fn budget_first(&self) -> i32 {
        self.budget_max().wrapping_mul(2) / 3
    }

    /// The number of sectors that a request is charged for.
    #[inline]
    pub(super) fn charge_of(&self, pool: &RequestPool, rq: RequestId, q: QId) -> u32 {
        let queue = &self.queues[q];
        let sectors = pool[rq].sectors.0;
        if queue.flags.sync || queue.is_wr() || self.is_asymmetric(q) {
            sectors
        } else {
            sectors * ASYNC_CHARGE
        }
    }

    /// The queue's next request fits into the rest of its budget.
    pub(super) fn next_fits(&self, pool: &RequestPool, q: QId) -> bool {
        self.queues[q].next_rq.is_some_and(|rq| {
            u64::from(self.charge_of(pool, rq, q)) <= widened(self.budget_left(q))
        })
    }

    /// The next request is another one, or has grown, so the budget may change
    /// (bfq_updated_next_req()).
    pub(super) fn updated_next(&mut self, pool: &RequestPool, q: QId) {
        self.charge(4);
        let Some(next) = self.queues[q].next_rq else {
            return;
        };
        if self.in_service == Some(q) {
            return;
        }
        let e = self.entities.of(q);
        let charge = u64::from(self.charge_of(pool, next, q));
        let budget = widened(self.queues[q].max_budget)
            .max(charge)
            .max(widened(self.entities[e].service));
        if widened(self.entities[e].budget) != budget {
            self.entities[e].budget = budget as i32;
            trace_msg!(self, q, "updated next rq: new budget {budget}");
            self.requeue(q, false);
        }
    }

    /// Budget of a queue that becomes active. True if the queue keeps the rest of its budget, and
    /// so may preempt (bfq_bfqq_update_budg_for_activation()).
    pub(super) fn budget_for_activation(
        &mut self,
        pool: &RequestPool,
        q: QId,
        arrived_in_time: bool,
    ) -> bool {
        self.charge(4);
        let (e, left) = (self.entities.of(q), self.budget_left(q));
        self.entities[e].service = 0;
        if self.queues[q].flags.non_blocking_wait_rq && arrived_in_time && left > 0 {
            let budget = widened(left).min(widened(self.queues[q].max_budget));
            self.entities[e].budget = budget as i32;
            return true;
        }
        let next = self.queues[q].next_rq.expect("a request has come");
        let charge = u64::from(self.charge_of(pool, next, q));
        self.entities[e].budget = widened(self.queues[q].max_budget).max(charge) as i32;
        self.queues[q].flags.non_blocking_wait_rq = false;
        false
    }

    /// bfq_bfqq_is_slow(): whether the queue is slow, and its milliseconds in service.
    fn is_slow(&mut self, q: QId, compensate: bool) -> (bool, u64) {
        self.charge(3 + 2 * DIVISION);
        let queue = &self.queues[q];
        if !queue.flags.sync {
            return (false, 0);
        }
        let seeky = queue.is_seeky();
        let until = match compensate {
            true => self.last_idling_start_ns,
            false => self.read_clock(),
        };
        // The kept time of a plug may be before the start of the budget: the kernel's u32 is huge
        // then.
        let ns = until.wrapping_sub(self.last_budget_start_ns).cast_signed();
        let ns = if self.clock_kept { ns } else { ns.max(0) };
        let us = u64::from((ns / 1000) as u32);
        if us < SLOW_TEST_MIN_US {
            return (seeky, if self.rotational { 8 } else { 2 });
        }
        let slow = match us > SLOW_TEST_US {
            true => self.entities[self.entities.of(q)].service < self.max_budget / 2,
            false => seeky,
        };
        trace_msg!(self, q, "bfq_bfqq_is_slow: slow {}", u8::from(slow));
        (slow, us / 1000)
    }

    /// bfq_bfqq_charge_time().
    fn charge_time(&mut self, q: QId, ms: u64) {
        self.charge(3 + DIVISION);
        let timeout_ms = self.fixed.charge_timeout_ms;
        let bounded = ms.min(timeout_ms);
        let by_time = widened(self.max_budget).wrapping_mul(bounded) / timeout_ms;
        let entity = &mut self.entities.list[(self.entities.groups + q.0) as usize];
        let total = (by_time as i32).max(entity.service);
        entity.budget = entity.budget.max(total);
        let more = total.wrapping_sub(entity.service).max(0);
        self.served(q, more);
    }

    /// __bfq_bfqq_recalc_budget().
    fn recalc_budget(&mut self, pool: &RequestPool, q: QId, why: Expiry) {
        self.charge(8);
        let min = self.budget_min();
        let queue = &self.queues[q];
        let (sync, wr, dispatched) = (queue.flags.sync, queue.is_wr(), queue.dispatched);
        let mut budget = if wr { 2 * min } else { queue.max_budget };
        let e = self.entities.of(q);
        let (last, left) = (self.entities[e].budget, self.budget_left(q));
        trace_msg!(self, q, "recalc_budg: last budg {last}, budg left {left}");
        trace_msg!(
            self,
            q,
            "recalc_budg: last max_budg {budget}, min budg {min}"
        );
        let seeky = self.in_service.is_some_and(|q| self.queues[q].is_seeky());
        trace_msg!(
            self,
            q,
            "recalc_budg: sync {}, seeky {}",
            u8::from(sync),
            u8::from(seeky)
        );
        let max = self.max_budget;
        if sync && !wr {
            budget = match why {
                Expiry::TooIdle if dispatched > 0 => budget.wrapping_mul(2).min(max),
                Expiry::TooIdle if budget > 5 * min => budget - 4 * min,
                Expiry::TooIdle => min,
                Expiry::BudgetTimeout => budget.wrapping_mul(2).min(max),
                Expiry::BudgetExhausted => budget.wrapping_mul(4).min(max),
                Expiry::NoMoreRequests => self.entities[e].service.max(min),
                Expiry::Preempted => return,
            };
        } else if !sync {
            budget = max;
        }
        if self.budgets_assigned >= BUDGETS_MIN && self.settings.max_budget == 0 {
            budget = budget.min(max);
        }
        self.queues[q].max_budget = budget;
        let next = self.queues[q].next_rq;
        if let Some(next) = next {
            let charge = u64::from(self.charge_of(pool, next, q));
            self.entities[e].budget = widened(budget).max(charge) as i32;
        }
        let head = next.map_or(0, |rq| pool[rq].sectors.0);
        let new = self.entities[e].budget;
        trace_msg!(self, q, "head sect: {head}, new budget {new}");
    }

    /// Ends the slot of the queue in service (bfq_bfqq_expire()). With `compensate` its time ended
    /// when the device began to idle for it.
    pub(super) fn expire(&mut self, pool: &RequestPool, q: QId, compensate: bool, why: Expiry) {
        self.charge(10);
        let (slow, ms) = self.is_slow(q, compensate);
        let e = self.entities.of(q);
        if !self.queues[q].is_wr() {
            let much_left = self.budget_left(q) >= self.entities[e].budget / 3;
            if slow || why == Expiry::BudgetTimeout && much_left {
                self.charge_time(q, ms);
            }
        }
        self.forget_streak(q, why);
        let tick = self.jiffies();
        let queue = &mut self.queues[q];
        if self.settings.low_latency {
            if !queue.is_wr() {
                queue.wr.last_start_finish = tick;
            }
            if queue.is_empty() {
                self.soft_rt_at_expiry(q);
            }
        }
        let queue = &self.queues[q];
        let (number, dispatched) = (why as u8, queue.dispatched);
        let short = u8::from(queue.flags.has_short_ttime);
        let slow = u8::from(slow);
        trace_msg!(
            self,
            q,
            "expire ({number}, slow {slow}, num_disp {dispatched}, short_ttime {short})"
        );
        self.rqs_injected = false;
        self.wait_dispatch = false;
        self.waited_rq = None;
        self.recalc_budget(pool, q, why);
        if self.inner_expire(pool, q, why) {
            return;
        }
        let over = matches!(why, Expiry::BudgetTimeout | Expiry::BudgetExhausted);
        if !self.queues[q].flags.busy && !over {
            self.queues[q].flags.non_blocking_wait_rq = true;
        } else {
            self.entities[e].service = 0;
        }
        let mut at = self.entities.parent(e);
        while let Some(e) = at {
            self.entities[e].service = 0;
            at = self.entities.parent(e);
        }
    }

    /// The part of an expiration that process exit uses too: true if the queue was freed
    /// (__bfq_bfqq_expire()).
    pub(super) fn inner_expire(&mut self, pool: &RequestPool, q: QId, why: Expiry) -> bool {
        self.charge(5);
        let queue = &mut self.queues[q];
        if queue.flags.coop && queue.is_seeky() {
            queue.flags.split_coop = true;
        }
        let empty = queue.is_empty();
        let kept = why == Expiry::Preempted && self.idling_needed(q);
        if empty && !kept {
            if self.queues[q].dispatched == 0 {
                self.queues[q].budget_timeout = self.jiffies();
            }
            self.del_busy(q, true);
        } else {
            self.requeue(q, true);
            if !empty && !self.nonrot_with_queueing {
                self.position_update(pool, q);
            }
        }
        self.reset_in_service()
    }

    /// v5.11: a queue that goes idle after little service is not bound by I/O.
    fn forget_streak(&mut self, q: QId, why: Expiry) {
        if self.rules.io_bound == IoBound::Streak && why == Expiry::TooIdle {
            let entity = &self.entities[self.entities.of(q)];
            if entity.service <= entity.budget.wrapping_mul(2) / 10 {
                self.queues[q].flags.io_bound = false;
            }
        }
    }

    /// The time of the slot is over (bfq_bfqq_budget_timeout()).
    #[inline]
    pub(super) fn is_timed_out(&self, q: QId) -> bool {
        self.queues[q].budget_timeout <= self.jiffies()
    }

    /// bfq_may_expire_for_budg_timeout().
    pub(super) fn may_expire_for_timeout(&mut self, q: QId) -> bool {
        self.charge(3);
        let waits = self.queues[q].flags.wait_request;
        let much_left = self.budget_left(q) >= self.entities[self.entities.of(q)].budget / 3;
        let timed_out = self.is_timed_out(q);
        trace_msg!(
            self,
            q,
            "may_budget_timeout: wait_request {} left {} timeout {}",
            u8::from(waits),
            u8::from(much_left),
            u8::from(timed_out)
        );
        (!waits || much_left) && timed_out
    }
}
