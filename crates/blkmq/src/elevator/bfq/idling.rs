//! Idling: when the device waits for the next request of the queue in service, and which queue is
//! served meanwhile (injection).
//!
//! Kernel: bfq_better_to_idle(), bfq_arm_slice_timer(), bfq_choose_bfqq_for_injection(),
//! bfq_update_inject_limit(), bfq_update_hw_tag() in block/bfq-iosched.c (6.1.192, 6.12.117).

use super::Bfq;
use super::budget::Expiry;
use super::ids::QId;
use super::queue::IDLE;
use crate::elevator::hook::TimerAsk;
use crate::request::RequestPool;
use crate::rules::InjectionScan;
use crate::time::Duration;

pub(super) const TIMER: u8 = 0;
/// Shortest idling (BFQ_MIN_TT), ns.
pub(super) const MIN_TT: u64 = 2_000_000;
/// Shortest idling for a queue under weight raising, ns.
const WR_IDLE: u64 = 20_000_000;
/// A request of so many sectors is large for a device without seeks (BFQQ_SECT_THR_NONROT).
pub(super) const LARGE: u32 = 64;
/// Number of requests at once that shows a device with queueing (BFQ_HW_QUEUE_THRESHOLD).
const HW_THRESHOLD: i32 = 3;
/// BFQ_HW_QUEUE_SAMPLES.
const HW_SAMPLES: u32 = 32;

/// Whether the device queues commands (hw_tag).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum HwTag {
    /// Not measured yet; counts as yes.
    #[default]
    Unknown,
    No,
    Yes,
}

impl Bfq {
    /// Idling costs no throughput, and harms no other queue (idling_boosts_thr_without_issues()).
    pub(super) fn idling_boosts(&self, q: QId) -> bool {
        if self.process_references(q) == 0 {
            return false;
        }
        let queue = &self.queues[q];
        let no_queueing = self.hw_tag == HwTag::No;
        let sequential = !queue.is_seeky() && queue.flags.io_bound && queue.flags.has_short_ttime;
        let boosts =
            self.rotational && no_queueing || (self.rotational || no_queueing) && sequential;
        boosts && self.wr_busy_queues == 0
    }

    /// Without idling the queue would not get its share (idling_needed_for_service_guarantees()).
    pub(super) fn idling_needed(&self, q: QId) -> bool {
        if self.process_references(q) == 0 {
            return false;
        }
        let busy = self.busy_queues_total();
        let queue = &self.queues[q];
        let others = self.wr_busy_queues < busy.cast_signed()
            || self.in_driver_total >= queue.dispatched + 4;
        queue.is_wr() && others || self.is_asymmetric(q) || self.rules.only_busy_idles && busy == 1
    }

    /// bfq_better_to_idle().
    pub(super) fn better_to_idle(&self, q: QId) -> bool {
        if self.process_references(q) == 0 {
            return false;
        }
        if self.settings.strict_guarantees {
            return true;
        }
        let queue = &self.queues[q];
        if self.settings.slice_idle_ns == 0 || !queue.flags.sync || queue.class == IDLE {
            return false;
        }
        self.idling_boosts(q) || self.idling_needed(q)
    }

    /// The queue is empty, and the device must idle for it (bfq_bfqq_must_idle()).
    pub(super) fn must_idle(&self, q: QId) -> bool {
        self.queues[q].is_empty() && self.better_to_idle(q)
    }

    /// Starts to idle for the queue in service (bfq_arm_slice_timer()).
    pub(super) fn arm_idle_timer(&mut self, q: QId) {
        self.charge(5);
        self.queues[q].flags.wait_request = true;
        let queue = &self.queues[q];
        let mut slice = self.settings.slice_idle_ns;
        if queue.is_wr() {
            slice = slice.max(WR_IDLE);
        } else if queue.is_seeky() && !self.is_asymmetric(q) {
            slice = slice.min(MIN_TT);
        }
        self.last_idling_start_ns = self.read_clock();
        self.last_idling_start = self.jiffies();
        self.timer_armed = true;
        self.timer = Some(TimerAsk::Arm {
            timer: TIMER,
            after: Duration(slice),
        });
    }

    pub(super) fn cancel_idle_timer(&mut self) {
        if core::mem::take(&mut self.timer_armed) {
            self.timer = Some(TimerAsk::Cancel { timer: TIMER });
        }
    }

    /// A request has come for the queue that the device idles for.
    pub(super) fn stop_waiting(&mut self, q: QId) {
        self.queues[q].flags.wait_request = false;
        self.cancel_idle_timer();
    }

    /// The idle timer expired without a request (bfq_idle_slice_timer_body()).
    pub(super) fn idled_in_vain(&mut self, pool: &RequestPool) {
        self.charge(4);
        self.timer_armed = false;
        // The kernel reads in_service_queue before it takes the lock.
        let Some(q) = self.in_service else { return };
        self.queues[q].flags.wait_request = false;
        if self.is_timed_out(q) {
            self.expire(pool, q, true, Expiry::BudgetTimeout);
        } else if self.queues[q].queued == [0, 0] {
            self.expire(pool, q, true, Expiry::TooIdle);
        }
        self.schedule_dispatch();
    }

    /// A queue to be served while the one in service is empty (bfq_choose_bfqq_for_injection()).
    pub(super) fn choose_injection(&mut self, pool: &RequestPool, q: QId) -> Option<QId> {
        let own = &self.queues[q];
        let mut limit = own.inject_limit.cast_signed();
        let always = !own.is_wr() || !own.flags.has_short_ttime;
        // The kernel adds slice_idle, in ns, to ticks.
        let after = self
            .last_idling_start
            .saturating_add(self.settings.slice_idle_ns as i64);
        if limit == 0
            && own.last_serv_time_ns == 0
            && own.flags.wait_request
            && after <= self.jiffies()
        {
            limit = 1;
        }
        if self.in_driver_total >= limit {
            return None;
        }
        for list in 0..self.active_lists.len() {
            for at in (0..self.active_lists[list].len()).rev() {
                let other = self.active_lists[list][at];
                let queue = &self.queues[other];
                let suits = !queue.is_empty() && (always || queue.is_wr());
                if !suits || !self.next_fits(pool, other) {
                    continue;
                }
                let next = queue.next_rq.expect("it is not empty");
                let large = !self.rotational && pool[next].sectors.0 >= LARGE;
                match self.rules.injection_scan {
                    InjectionScan::PassesLarge if large && self.in_driver_total >= 1 => continue,
                    InjectionScan::PassesLarge => {}
                    InjectionScan::LowersLimit => {
                        limit = if large {
                            limit.min(1)
                        } else {
                            self.queues[q].inject_limit.cast_signed()
                        };
                        if self.in_driver_total >= limit {
                            continue;
                        }
                    }
                }
                self.rqs_injected = true;
                return Some(other);
            }
        }
        None
    }

    /// bfq_reset_inject_limit().
    pub(super) fn reset_inject_limit(&mut self, q: QId) {
        let tick = self.jiffies();
        self.waited_rq = None;
        let queue = &mut self.queues[q];
        queue.last_serv_time_ns = 0;
        queue.inject_limit = u32::from(!queue.flags.has_short_ttime);
        queue.decrease_time = tick;
    }

    /// The first request after idling has completed: how long was no request of its queue served?
    /// (bfq_update_inject_limit())
    pub(super) fn update_inject_limit(&mut self, q: QId) {
        self.charge(8);
        let total = self.read_clock().wrapping_sub(self.last_empty_occupied_ns);
        let (injected, in_driver) = (self.rqs_injected, self.in_driver_total);
        let (tick, max_in_driver) = (self.jiffies(), self.max_in_driver);
        let queue = &mut self.queues[q];
        let old_limit = queue.inject_limit;
        if queue.last_serv_time_ns > 0 && injected {
            let threshold = (queue.last_serv_time_ns * 3) >> 1;
            if total >= threshold && old_limit > 0 {
                queue.inject_limit -= 1;
                queue.decrease_time = tick;
            } else if total < threshold && i64::from(old_limit) <= i64::from(max_in_driver) {
                queue.inject_limit += 1;
            }
        }
        if queue.last_serv_time_ns == 0 && in_driver == 1 || total < queue.last_serv_time_ns {
            if queue.last_serv_time_ns == 0 {
                queue.inject_limit = old_limit.max(1);
            }
            queue.last_serv_time_ns = total;
        } else if !injected && in_driver == 1 {
            queue.last_serv_time_ns = total;
        }
        self.waited_rq = None;
        self.rqs_injected = false;
    }

    /// At a completion: does the device hold several requests at once? (bfq_update_hw_tag())
    pub(super) fn update_hw_tag(&mut self) {
        self.charge(4);
        self.max_in_driver = self.max_in_driver.max(self.in_driver_total);
        if self.hw_tag == HwTag::Yes
            || self.in_driver_total + self.queued.cast_signed() <= HW_THRESHOLD
        {
            return;
        }
        if let Some(q) = self.in_service {
            let queue = &self.queues[q];
            let own = queue.dispatched + (queue.queued[0] + queue.queued[1]).cast_signed();
            let few = own < HW_THRESHOLD && self.in_driver_total < HW_THRESHOLD;
            if queue.flags.has_short_ttime && few {
                return;
            }
        }
        self.hw_tag_samples += 1;
        if self.hw_tag_samples <= HW_SAMPLES {
            return;
        }
        let queues = self.max_in_driver > HW_THRESHOLD;
        self.hw_tag = if queues { HwTag::Yes } else { HwTag::No };
        self.max_in_driver = 0;
        self.hw_tag_samples = 0;
        self.nonrot_with_queueing = !self.rotational && queues;
    }
}
