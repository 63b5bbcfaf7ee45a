//! Saved state: what a process keeps of its queue when it leaves it for a shared one, and what its
//! new queue gets after a split.
//!
//! Kernel: bfq_bfqq_save_state(), bfq_bfqq_resume_state() in block/bfq-iosched.c (6.1.192,
//! 6.12.117).

use super::arrive::Arrived;
use super::ids::QId;
use super::queue::{ThinkTimes, WeightRaising};
use super::wr::COEFF;
use super::{Bfq, far_past};
use crate::rules::Raising;

/// State of a queue that is merged, for a later split (`saved_...` of struct bfq_io_cq,
/// bfq_iocq_bfqq_data).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Saved {
    pub(super) has_short_ttime: bool,
    pub(super) io_bound: bool,
    pub(super) io_start_ns: u64,
    pub(super) idle_total_ns: u64,
    pub(super) in_large_burst: bool,
    pub(super) was_in_burst_list: bool,
    pub(super) weight: u32,
    pub(super) wr: WeightRaising,
    pub(super) ttime: ThinkTimes,
    pub(super) last_serv_time_ns: u64,
    pub(super) inject_limit: u32,
    pub(super) decrease_time: i64,
    /// The queue that its queue will be merged into later (stable_merge_bfqq).
    pub(super) stable_candidate: Option<QId>,
    /// A stable merge was done.
    pub(super) stably_merged: bool,
}

impl Bfq {
    /// Saves the state of a merging queue with its owner (bfq_bfqq_save_state()).
    pub(super) fn save_state(&mut self, q: QId) {
        let Some(owner) = self.queues[q].owner else {
            return;
        };
        let weight = self.entities[self.entities.of(q)].orig_weight;
        let (tick, wr_max_time) = (self.jiffies(), self.wr_max_time());
        let low_latency = self.settings.low_latency;
        let queue = &self.queues[q];
        let process = &mut self.processes[owner.0 as usize];
        let saved = &mut process.saved[usize::from(queue.actuator)];
        saved.last_serv_time_ns = queue.last_serv_time_ns;
        saved.inject_limit = queue.inject_limit;
        saved.decrease_time = queue.decrease_time;
        saved.weight = weight;
        saved.ttime = queue.ttime;
        saved.has_short_ttime = queue.flags.has_short_ttime;
        saved.io_bound = queue.flags.io_bound;
        saved.io_start_ns = queue.io_start_ns;
        saved.idle_total_ns = queue.idle_total_ns;
        saved.in_large_burst = queue.flags.in_large_burst;
        saved.was_in_burst_list = queue.in_burst_list;
        if queue.flags.just_created && !queue.flags.in_large_burst && low_latency {
            // The queue is merged before weight raising could start: the state counts as if it had
            // started now.
            saved.wr.coeff = COEFF;
            saved.wr.start_at_switch_to_srt = far_past(tick);
            saved.wr.cur_max_time = wr_max_time;
            saved.wr.last_start_finish = tick;
        } else {
            saved.wr = queue.wr;
        }
    }

    /// bfq_bfqq_resume_state().
    pub(super) fn resume_state(&mut self, q: QId, of: Arrived, existed: bool) {
        let actuator = self.queues[q].actuator;
        let saved = self.saved(of.process, actuator).clone();
        let (low_latency, all) = (
            self.settings.low_latency,
            self.rules.raising == Raising::DefaultWeight,
        );
        let busy = existed && self.queues[q].flags.busy;
        let queue = &mut self.queues[q];
        queue.flags.has_short_ttime = saved.has_short_ttime;
        queue.flags.io_bound = saved.io_bound;
        queue.ttime = saved.ttime;
        let served = queue.wr.service;
        let own_coeff = queue.wr.coeff;
        // Without low_latency the kernel takes the queue for one that was not raised.
        let mut coeff_before = if self.rules.counts_raised {
            own_coeff
        } else {
            1
        };
        queue.wr = saved.wr;
        if all {
            queue.last_serv_time_ns = saved.last_serv_time_ns;
            queue.inject_limit = saved.inject_limit;
            queue.decrease_time = saved.decrease_time;
            queue.io_start_ns = saved.io_start_ns;
            queue.idle_total_ns = saved.idle_total_ns;
        } else {
            queue.wr.service = served;
        }
        if low_latency || !all {
            coeff_before = own_coeff;
        } else {
            queue.wr.coeff = own_coeff;
        }
        let e = self.entities.of(q);
        self.entities[e].new_weight = saved.weight;
        self.resume_wr(q);
        self.entities[e].prio_changed = true;
        if busy {
            match (coeff_before > 1, self.queues[q].is_wr()) {
                (false, true) => self.wr_busy_queues += 1,
                (true, false) => self.wr_busy_queues -= 1,
                _ => {}
            }
        }
    }

    /// Weight raising continues unless its period has ended meanwhile.
    fn resume_wr(&mut self, q: QId) {
        let queue = &self.queues[q];
        let wr = queue.wr;
        let in_burst = queue.flags.in_large_burst;
        let over = wr.last_start_finish + wr.cur_max_time < self.jiffies();
        if wr.coeff <= 1 || !in_burst && !over {
            return;
        }
        let interactive_goes_on = wr.start_at_switch_to_srt + self.wr_max_time() >= self.jiffies();
        if self.is_soft_rt(q) && !in_burst && interactive_goes_on {
            self.back_to_interactive(q);
        } else {
            self.queues[q].wr.coeff = 1;
            trace_msg!(self, q, "resume state: switching off wr");
        }
    }
}
