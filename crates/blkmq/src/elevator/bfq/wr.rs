//! Weight raising: interactive and soft real-time queues have a multiple of their weight for a
//! while.
//!
//! Times are ticks. Kernel: bfq_wr_duration(), bfq_update_bfqq_wr_on_rq_arrival(),
//! bfq_update_wr_data(), bfq_bfqq_softrt_next_start() in block/bfq-iosched.c (6.1.192, 6.12.117).

use super::budget::widened;
use super::ids::QId;
use super::{Bfq, far_past};
use crate::rules::Raising;

/// bfq_wr_coeff.
pub(super) const COEFF: u32 = 30;
/// The factor of soft real-time queues (BFQ_SOFTRT_WEIGHT_FACTOR).
const COEFF_SOFT_RT: u32 = COEFF * 100;
/// The most sectors that an interactive queue is served under weight raising (max_service_from_wr).
const SERVICE_MAX: u64 = 120_000;
/// The most sectors per second of a soft real-time queue (bfq_wr_max_softrt_rate).
const SOFT_RT_RATE: u64 = 7000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) deserves: bool,
    pub(super) interactive: bool,
    pub(super) in_burst: bool,
    pub(super) soft_rt: bool,
}

impl Bfq {
    /// Duration of weight raising for an interactive queue (bfq_wr_duration()).
    pub(super) fn wr_max_time(&self) -> i64 {
        let time = (self.rate_dur_product / u64::from(self.peak_rate)).cast_signed();
        time.clamp(self.fixed.wr_time_min, self.fixed.wr_time_max)
    }

    /// The last weight raising was that of a soft real-time queue.
    #[inline]
    pub(super) fn is_soft_rt(&self, q: QId) -> bool {
        self.queues[q].wr.cur_max_time == self.fixed.wr_rt_max_time
    }

    /// switch_back_to_interactive_wr().
    pub(super) fn back_to_interactive(&mut self, q: QId) {
        let time = self.wr_max_time();
        let wr = &mut self.queues[q].wr;
        wr.coeff = COEFF;
        wr.cur_max_time = time;
        wr.last_start_finish = wr.start_at_switch_to_srt;
    }

    /// bfq_bfqq_end_wr().
    pub(super) fn end_wr(&mut self, q: QId) {
        let (soft_rt, tick) = (self.is_soft_rt(q), self.jiffies());
        let queue = &mut self.queues[q];
        if !soft_rt && self.rules.raising == Raising::DefaultWeight {
            queue.soft_rt_next_start = tick;
        }
        // The kernel decrements the count also for queues without weight raising: normally only
        // queues with it come here, but all do when low_latency is cleared.
        if queue.flags.busy && (queue.is_wr() || !self.rules.counts_raised) {
            self.wr_busy_queues -= 1;
        }
        queue.wr.coeff = 1;
        queue.wr.cur_max_time = 0;
        queue.wr.last_start_finish = tick;
        let e = self.entities.of(q);
        self.entities[e].prio_changed = true;
    }

    /// bfq_update_bfqq_wr_on_rq_arrival().
    pub(super) fn wr_on_arrival(&mut self, q: QId, coeff_before: u32, arrival: Arrival) {
        self.charge(6);
        let (time, tick) = (self.wr_max_time(), self.jiffies());
        let soft_rt_time = self.fixed.wr_rt_max_time;
        let budget_max = 2 * self.budget_min();
        let wr = &mut self.queues[q].wr;
        if coeff_before == 1 && arrival.deserves {
            if arrival.interactive {
                wr.service = 0;
                wr.coeff = COEFF;
                wr.cur_max_time = time;
            } else {
                wr.start_at_switch_to_srt = far_past(tick);
                wr.coeff = COEFF_SOFT_RT;
                wr.cur_max_time = soft_rt_time;
            }
            let e = self.entities.of(q);
            let entity = &mut self.entities[e];
            let least = widened(entity.budget).min(widened(budget_max));
            entity.budget = least as i32;
        } else if coeff_before > 1 {
            if arrival.interactive {
                wr.coeff = COEFF;
                wr.cur_max_time = time;
            } else if arrival.in_burst {
                wr.coeff = 1;
            } else if arrival.soft_rt {
                if wr.cur_max_time != soft_rt_time {
                    wr.start_at_switch_to_srt = wr.last_start_finish;
                    wr.cur_max_time = soft_rt_time;
                    wr.coeff = COEFF_SOFT_RT;
                }
                wr.last_start_finish = tick;
            }
        }
    }

    /// When the queue may count as soft real-time again (bfq_bfqq_softrt_next_start()).
    pub(super) fn soft_rt_next_start(&self, q: QId) -> i64 {
        let queue = &self.queues[q];
        let hz = u64::from(self.settings.hz);
        let served = (hz * queue.service_from_backlogged / SOFT_RT_RATE).cast_signed();
        let idle = (self.settings.slice_idle_ns / (1_000_000_000 / hz)).cast_signed();
        let by_rate = queue.last_idle_backlogged + served;
        queue
            .soft_rt_next_start
            .max(by_rate)
            .max(self.jiffies() + idle + 4)
    }

    /// An empty queue expires: with nothing in flight its next start is set now, otherwise at its
    /// last completion.
    pub(super) fn soft_rt_at_expiry(&mut self, q: QId) {
        if self.queues[q].dispatched > 0 {
            self.queues[q].flags.softrt_update = true;
            return;
        }
        let interactive = self.queues[q].wr.coeff == COEFF;
        if self.rules.raising == Raising::AnyWeight && interactive {
            return;
        }
        self.queues[q].soft_rt_next_start = self.soft_rt_next_start(q);
    }

    /// A request of the queue in service is dispatched: the period of weight raising may be over
    /// (bfq_update_wr_data()).
    pub(super) fn update_wr_data(&mut self, q: QId) {
        self.charge(4);
        let e = self.entities.of(q);
        if self.queues[q].is_wr() {
            let wr = self.queues[q].wr;
            let past = self
                .fixed
                .to_ms(self.jiffies().wrapping_sub(wr.last_start_finish))
                as u32;
            let time = self.fixed.to_ms(wr.cur_max_time);
            let (weight, orig) = (self.entities[e].weight, self.entities[e].orig_weight);
            let coeff = wr.coeff;
            trace_msg!(
                self,
                q,
                "raising period dur {past}/{time} msec, old coeff {coeff}, w {weight}({orig})"
            );
            if self.entities[e].prio_changed {
                trace_msg!(self, q, "WARN: pending prio change");
            }
            if self.queues[q].flags.in_large_burst {
                self.end_wr(q);
            } else if wr.last_start_finish + wr.cur_max_time < self.jiffies() {
                self.wr_period_over(q);
            }
            let (soft_rt, queue) = (self.is_soft_rt(q), &self.queues[q]);
            if queue.is_wr() && !soft_rt && queue.wr.service > SERVICE_MAX {
                self.end_wr(q);
            }
        }
        let entity = &self.entities[e];
        if (entity.weight > entity.orig_weight) != self.queues[q].is_wr() {
            self.update_weight_prio(e, false);
        }
    }

    /// Soft real-time weight raising continues as interactive if that period is not over.
    pub(super) fn wr_period_over(&mut self, q: QId) {
        let interactive_over =
            self.queues[q].wr.start_at_switch_to_srt + self.wr_max_time() < self.jiffies();
        if !self.is_soft_rt(q) || interactive_over {
            self.end_wr(q);
        } else {
            self.back_to_interactive(q);
            let e = self.entities.of(q);
            self.entities[e].prio_changed = true;
        }
    }

    /// An asynchronous request of a busy queue without weight raising in the last half second.
    pub(super) fn wr_async(&mut self, q: QId) {
        let time = self.wr_max_time();
        let wr = &mut self.queues[q].wr;
        wr.coeff = COEFF;
        wr.cur_max_time = time;
        self.wr_busy_queues += 1;
        let e = self.entities.of(q);
        self.entities[e].prio_changed = true;
    }

    /// low_latency is cleared (bfq_end_wr()).
    pub(super) fn end_wr_of_all(&mut self) {
        for actuator in 0..self.active_lists.len() {
            for at in (0..self.active_lists[actuator].len()).rev() {
                self.end_wr(self.active_lists[actuator][at]);
            }
        }
        for at in (0..self.idle_list.len()).rev() {
            self.end_wr(self.idle_list[at]);
        }
        for group in 0..self.groups.len() {
            for actuator in 0..self.groups[group].async_queues.len() {
                self.end_wr_of_async(group, actuator);
            }
        }
        // The kernel visits the root, which is among the groups, once more.
        for actuator in 0..self.groups[0].async_queues.len() {
            self.end_wr_of_async(0, actuator);
        }
        let (counted, raised) = self.raised();
        if counted != raised {
            self.explain(format_args!(
                "low_latency=0 counted down queues that were not raised: {counted} raised busy \
                 queues, {raised} are; until the count is 0 the device does not idle for throughput"
            ));
        }
    }

    /// bfq_end_wr_async_queues().
    fn end_wr_of_async(&mut self, group: usize, actuator: usize) {
        let queues: Vec<QId> = self.groups[group].async_queues[actuator].iter().collect();
        for q in queues {
            self.end_wr(q);
        }
    }
}
