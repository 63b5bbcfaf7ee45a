//! Service: which queue is served, which of its requests is dispatched, and what its completion
//! changes.
//!
//! Kernel: bfq_select_queue(), bfq_choose_req(), bfq_remove_request(), __bfq_dispatch_request(),
//! bfq_completed_request() in block/bfq-iosched.c (6.1.192, 6.12.117).

use super::Bfq;
use super::arrive::{queue_of, set_queue_of};
use super::budget::{Expiry, widened};
use super::ids::QId;
use super::queue::IDLE;
use crate::elevator::choose_rq::{BackSeek, choose_rq};
use crate::elevator::messages::pointer;
use crate::elevator::scheduler::is_sync;
use crate::request::{Place, RequestId, RequestPool, Sector};
use crate::rules::{BfqWork, WakerCheck};

/// An actuator with fewer requests in the driver is underused (actuator_load_threshold).
const ACTUATOR_LOAD: i32 = 4;

impl Bfq {
    /// The better of two requests (bfq_choose_req()).
    pub(super) fn choose(
        &self,
        pool: &RequestPool,
        first: Option<RequestId>,
        second: Option<RequestId>,
        last: u64,
    ) -> Option<RequestId> {
        let back = BackSeek {
            max_kib: self.settings.back_seek_max,
            penalty: self.settings.back_seek_penalty,
        };
        choose_rq(pool, first, second, last, back)
    }

    /// The head of the FIFO, if its deadline has passed; checked once per slot (bfq_check_fifo()).
    fn check_fifo(&mut self, pool: &RequestPool, q: QId, last: RequestId) -> Option<RequestId> {
        self.charge(3);
        if core::mem::replace(&mut self.queues[q].flags.fifo_expire, true) {
            return None;
        }
        let rq = self.queues[q]
            .fifo
            .first()
            .expect("it holds the one that goes");
        if rq == last || self.read_clock() < pool[rq].fifo_time.0 {
            return None;
        }
        let name = pointer(rq.0);
        trace_msg!(self, q, "check_fifo: returned {name:016x}");
        Some(rq)
    }

    /// bfq_find_next_rq().
    fn find_next(&mut self, pool: &RequestPool, q: QId, last: RequestId) -> Option<RequestId> {
        self.charge(4);
        if let Some(rq) = self.check_fifo(pool, q, last) {
            return Some(rq);
        }
        let sort = &self.queues[q].sort;
        let prev = sort.prev(pool, last);
        let first = || sort.first(pool).filter(|&first| first != last);
        let next = sort.next(pool, last).or_else(first);
        self.choose(pool, next, prev, pool[last].sector.0)
    }

    /// Removes a request from its queue (bfq_remove_request()).
    pub(super) fn remove(&mut self, pool: &mut RequestPool, rq: RequestId, q: QId) {
        self.charge(6);
        if self.queues[q].next_rq == Some(rq) {
            self.queues[q].next_rq = self.find_next(pool, q, rq);
            self.updated_next(pool, q);
        }
        let sync = is_sync(pool[rq].op, pool[rq].flags);
        let queue = &mut self.queues[q];
        queue.fifo.remove(pool, rq);
        queue.queued[usize::from(sync)] -= 1;
        self.queued -= 1;
        queue.sort.remove(pool, rq);
        let visits = queue.sort.take_touched();
        self.charge(visits);
        self.index.remove(pool, rq);
        if self.queues[q].is_empty() {
            self.queues[q].next_rq = None;
            if self.queues[q].flags.busy && self.in_service != Some(q) {
                self.del_busy(q, false);
                let e = self.entities.of(q);
                self.entities[e].budget = 0;
                self.entities[e].service = 0;
            }
            self.position_remove(q);
        } else if !self.nonrot_with_queueing {
            self.position_update(pool, q);
        }
        self.queues[q].meta_pending -= u32::from(pool[rq].flags.meta);
    }

    /// bfq_select_queue().
    fn select(&mut self, pool: &RequestPool) -> Option<QId> {
        self.charge(6);
        let mut why = Expiry::BudgetTimeout;
        let mut at = self.in_service;
        if let Some(q) = at {
            trace_msg!(self, q, "select_queue: already in-service queue");
            if self.may_expire_for_timeout(q) && !self.must_idle(q) {
                self.expire(pool, q, false, why);
                at = self.set_in_service();
            }
        } else {
            at = self.set_in_service();
        }
        let chosen = loop {
            let Some(q) = at else { break None };
            if let Some(other) = self.of_underused_actuator(pool)
                && other != q
            {
                // No message, as in the kernel.
                return Some(other);
            }
            if let Some(next) = self.queues[q].next_rq {
                let charge = u64::from(self.charge_of(pool, next, q));
                if charge <= widened(self.budget_left(q)) {
                    if self.queues[q].flags.wait_request {
                        self.stop_waiting(q);
                    }
                    break Some(q);
                }
                why = Expiry::BudgetExhausted;
            } else {
                let queue = &self.queues[q];
                let waits = queue.flags.wait_request;
                if waits || queue.dispatched != 0 && self.better_to_idle(q) {
                    break self.inject(pool, q);
                }
                why = Expiry::NoMoreRequests;
            }
            self.expire(pool, q, false, why);
            at = self.set_in_service();
        };
        match chosen {
            Some(q) => trace_msg!(self, q, "select_queue: returned this queue"),
            None => trace_device_msg!(self, "select_queue: no queue returned"),
        }
        chosen
    }

    /// bfq_set_in_service_queue(), with the message of the caller.
    fn set_in_service(&mut self) -> Option<QId> {
        self.charge(6);
        let q = self.get_next_queue();
        if let Some(q) = q {
            self.queues[q].flags.fifo_expire = false;
            self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
            self.shift_soft_rt_start(q);
            self.set_budget_timeout(q);
            let budget = self.entities[self.entities.of(q)].budget;
            trace_msg!(self, q, "set_in_service_queue, cur-budget = {budget}");
        }
        self.in_service = q;
        if self.rules.only_busy_idles {
            self.in_serv_last_pos = 0;
        }
        if let Some(q) = q {
            trace_msg!(self, q, "select_queue: checking new queue");
        }
        q
    }

    /// A soft real-time queue does not lose the time that it waited for service.
    fn shift_soft_rt_start(&mut self, q: QId) {
        let (tick, soft_rt) = (self.jiffies(), self.is_soft_rt(q));
        let queue = &mut self.queues[q];
        let start = queue.wr.last_start_finish;
        if start < tick && queue.is_wr() && soft_rt && queue.budget_timeout < tick {
            queue.wr.last_start_finish = if queue.budget_timeout > start {
                start + tick - queue.budget_timeout
            } else {
                tick
            };
        }
    }

    /// bfq_set_budget_timeout().
    fn set_budget_timeout(&mut self, q: QId) {
        let entity = &self.entities[self.entities.of(q)];
        let coeff = match self.is_soft_rt(q) {
            true => 1,
            false => entity.weight / entity.orig_weight,
        };
        // The kernel multiplies unsigned ints, the type of bfq_timeout.
        let timeout = (self.settings.timeout_sync as u32).wrapping_mul(coeff);
        self.last_budget_start_ns = self.read_clock();
        self.queues[q].budget_timeout = self.jiffies() + i64::from(timeout);
    }

    /// The queue that is served while the device idles for `q`: another one of the same process,
    /// its waker, one that it wakes, or any that fits.
    fn inject(&mut self, pool: &RequestPool, q: QId) -> Option<QId> {
        self.charge(8);
        let queue = &self.queues[q];
        let owner = queue.owner;
        let async_queue = owner.and_then(|owner| self.slot(owner, false, queue.actuator));
        let waker = queue.waker.filter(|_| self.rules.injects_wakers());
        let woken = queue
            .woken
            .last()
            .copied()
            .filter(|_| self.rules.injects_wakers());
        let ready = |q: &QId| self.queues[*q].flags.busy && self.next_fits(pool, *q);
        let of_owner = |q: &QId| {
            let next = self.queues[*q].next_rq;
            next.map(|rq| pool[rq].io_context) == owner
        };
        let own = async_queue.filter(ready).filter(of_owner);
        let found = own.or(waker.filter(ready)).or(woken.filter(ready));
        if found.is_some() {
            return found;
        }
        let long = !queue.flags.has_short_ttime;
        let others = !queue.is_wr() || self.wr_busy_queues > 1 || long;
        if !self.idling_boosts(q) && others {
            self.choose_injection(pool, q)
        } else {
            None
        }
    }

    /// bfq_find_bfqq_for_underused_actuator().
    fn of_underused_actuator(&self, pool: &RequestPool) -> Option<QId> {
        if !self.rules.actuators {
            return None;
        }
        let loads = &self.in_driver;
        (0..loads.len()).find_map(|at| {
            let under = loads[at] < ACTUATOR_LOAD;
            let least = at + 1 == loads.len() || loads[at] < loads[at + 1];
            if !under || !least {
                return None;
            }
            let own = |q: &QId| usize::from(self.queues[*q].actuator) == at;
            self.in_service.filter(own).or_else(|| {
                let mut active = self.active_lists[at].iter().rev().copied();
                active.find(|&q| !self.queues[q].is_empty() && self.next_fits(pool, q))
            })
        })
    }

    /// bfq_dispatch_rq_from_bfqq().
    pub(super) fn dispatch_from(&mut self, pool: &mut RequestPool, q: QId) -> RequestId {
        self.charge(5);
        let rq = self.queues[q]
            .next_rq
            .expect("a queue that is served has a next request");
        let charge = self.charge_of(pool, rq, q);
        self.served(q, charge.cast_signed());
        self.shown = Some((q, charge));
        if self.in_service == Some(q) && core::mem::take(&mut self.wait_dispatch) {
            self.waited_rq = Some(rq);
        }
        self.touch(q);
        self.queues[q].dispatched += 1;
        self.update_rate(pool, q, rq);
        self.remove(pool, rq, q);
        if self.in_service == Some(q) {
            self.update_wr_data(q);
            if self.busy_queues_total() > 1 && self.queues[q].class == IDLE {
                self.expire(pool, q, false, Expiry::BudgetExhausted);
            }
        }
        rq
    }

    /// __bfq_dispatch_request().
    pub(super) fn dispatch_next(&mut self, pool: &mut RequestPool) -> Option<RequestId> {
        self.charge(4);
        if let Some(rq) = self.dispatch_list.pop_front(pool) {
            if let Some(q) = queue_of(&pool[rq]) {
                self.queues[q].dispatched += 1;
                self.enters_driver(q);
            }
            return Some(Bfq::start(pool, rq));
        }
        let busy = self.busy_queues_total();
        trace_device_msg!(self, "dispatch requests: {busy} busy queues");
        if busy == 0 || self.settings.strict_guarantees && self.in_driver_total > 0 {
            return None;
        }
        let q = self.select(pool)?;
        let actuator = self.queues[q].actuator;
        let rq = self.dispatch_from(pool, q);
        self.in_driver[usize::from(actuator)] += 1;
        self.in_driver_total += 1;
        Some(Bfq::start(pool, rq))
    }

    pub(super) fn enters_driver(&mut self, q: QId) {
        self.in_driver[usize::from(self.queues[q].actuator)] += 1;
        self.in_driver_total += 1;
    }

    pub(super) fn start(pool: &mut RequestPool, rq: RequestId) -> RequestId {
        pool[rq].started = true;
        pool[rq].place = Place::Path;
        rq
    }

    /// A request ends, in the driver or before it got there (bfq_finish_requeue_request()).
    pub(super) fn finish(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.charge(5);
        let Some(q) = queue_of(&pool[rq]) else {
            return;
        };
        if pool[rq].started {
            self.elevator_queued -= u32::from(self.rules.work == BfqWork::BusyQueuesAndInserted);
            if self.waited_rq == Some(rq) {
                self.update_inject_limit(q);
            }
            self.completed(pool, q);
        }
        self.touch(q);
        self.put_request(q);
        let process = &mut self.processes[pool[rq].io_context.0 as usize];
        process.requests -= 1;
        set_queue_of(&mut pool[rq], None);
    }

    /// bfq_completed_request().
    fn completed(&mut self, pool: &RequestPool, q: QId) {
        self.charge(10);
        self.update_hw_tag();
        self.in_driver[usize::from(self.queues[q].actuator)] -= 1;
        self.in_driver_total -= 1;
        let tick = self.jiffies();
        let queue = &mut self.queues[q];
        queue.dispatched -= 1;
        if queue.dispatched == 0 && !queue.flags.busy {
            queue.budget_timeout = tick;
            self.no_longer_pending(q);
        }
        let now = self.read_clock();
        self.queues[q].ttime.last_end_request = now;
        self.rate_at_completion(now);
        self.last_completion_ns = now;
        let coop = self.queues[q].flags.coop;
        match self.rules.waker_check {
            WakerCheck::Confirmed if coop => {}
            WakerCheck::ConfirmedInTime if coop => self.last_completed = None,
            _ => self.last_completed = Some(q),
        }
        let queue = &self.queues[q];
        let idle = queue.dispatched == 0 && queue.is_empty();
        let interactive = queue.wr.coeff == super::wr::COEFF;
        if queue.flags.softrt_update && idle && !interactive {
            self.queues[q].soft_rt_next_start = self.soft_rt_next_start(q);
        }
        if self.in_service == Some(q) {
            if self.must_idle(q) {
                if self.queues[q].dispatched == 0 {
                    self.arm_idle_timer(q);
                }
                return;
            }
            let queue = &self.queues[q];
            let (empty, in_flight) = (queue.is_empty(), queue.dispatched > 0);
            if self.may_expire_for_timeout(q) {
                self.expire(pool, q, false, Expiry::BudgetTimeout);
            } else if empty && (!in_flight || !self.better_to_idle(q)) {
                self.expire(pool, q, false, Expiry::NoMoreRequests);
            }
        }
        if self.in_driver_total == 0 {
            self.schedule_dispatch();
        }
    }

    /// Asks for a run of the hardware queues (bfq_schedule_dispatch()).
    pub(super) fn schedule_dispatch(&mut self) {
        if self.queued != 0 {
            trace_device_msg!(self, "schedule dispatch");
            self.runs = true;
        }
    }

    /// The actuator of a sector range (bfq_actuator_index()).
    pub(super) fn actuator_of(&self, sector: Sector, sectors: crate::request::Sectors) -> u8 {
        if self.ranges.len() <= 1 {
            return 0;
        }
        let end = sector.end(sectors).0 - 1;
        let own = |range: &&core::ops::Range<u64>| range.contains(&end);
        let at = self.ranges.iter().position(|range| own(&range));
        at.unwrap_or(0) as u8
    }
}
