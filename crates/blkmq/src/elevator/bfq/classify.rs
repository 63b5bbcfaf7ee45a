//! Properties of a queue that arrivals and completions show: think time, seeks, whether I/O limits
//! it, and its waker.
//!
//! Kernel: bfq_update_io_thinktime(), bfq_update_has_short_ttime(), bfq_update_io_seektime(),
//! bfq_update_io_intensity(), bfq_check_waker() in block/bfq-iosched.c (6.1.192, 6.12.117).

use super::budget::STREAK;
use super::idling::LARGE;
use super::ids::QId;
use super::log::Name;
use super::queue::{IDLE, unlist};
use super::{Bfq, DIVISION};
use crate::request::{Request, RequestId, RequestPool};
use crate::rules::{IoBound, Raising, ThinkTime, WakerCheck};

/// A distance that is a seek (BFQQ_SEEK_THR), sectors.
const SEEK: u64 = 800;
/// Number of weighted samples before think times count (bfq_sample_valid()).
const SAMPLES_VALID: u64 = 80;
/// The most time since the end of the waker's request, ns.
const WAKES_WITHIN: u64 = 4_000_000;
/// The same in v5.11, ns.
const WAKES_WITHIN_V5_11: u64 = 200_000;
/// Number of detections in a row that make a waker.
const WAKER_DETECTIONS: u32 = 3;
/// Window of IO_bound, ns.
const IO_WINDOW: u64 = 200_000_000;

impl Bfq {
    /// The request is a seek away from the last one (BFQ_RQ_SEEKY).
    pub(super) fn is_far(&self, last: u64, rq: &Request) -> bool {
        let distance = if last == 0 {
            0
        } else {
            rq.sector.0.abs_diff(last)
        };
        distance > SEEK && (self.rotational || rq.sectors.0 < LARGE)
    }

    /// bfq_update_io_thinktime().
    pub(super) fn update_think_time(&mut self, q: QId) {
        self.charge(2 + 3 * DIVISION);
        let queue = &self.queues[q];
        let idle = queue.dispatched == 0 && !queue.flags.busy;
        if self.rules.think_time == ThinkTime::WhenIdle && !idle {
            return;
        }
        let now = self.read_clock();
        let most = 2 * self.settings.slice_idle_ns;
        let ttime = &mut self.queues[q].ttime;
        let elapsed = now.wrapping_sub(ttime.last_end_request).min(most);
        ttime.samples = (7 * ttime.samples + 256) / 8;
        ttime.total = (7 * ttime.total + 256 * elapsed) / 8;
        ttime.mean = (ttime.total + 128) / ttime.samples;
    }

    /// bfq_update_has_short_ttime().
    pub(super) fn update_short_think_time(&mut self, q: QId) {
        self.charge(4);
        let slice = self.settings.slice_idle_ns;
        let queue = &self.queues[q];
        if !queue.flags.sync || queue.class == IDLE || slice == 0 {
            return;
        }
        if queue.split_time + self.fixed.wr_min_idle_time >= self.jiffies() {
            return;
        }
        let limit = match self.rules.think_time {
            ThinkTime::EachInsertion => slice,
            ThinkTime::WhenIdle => slice >> 1,
        };
        let long = queue.ttime.samples > SAMPLES_VALID && queue.ttime.mean > limit;
        let changed = long == queue.flags.has_short_ttime;
        let stamp = queue.decrease_time + self.fixed.inject_reset_short;
        let reset = changed && queue.last_serv_time_ns == 0 && (stamp <= self.jiffies() || long);
        self.queues[q].flags.has_short_ttime = !long;
        if reset {
            self.reset_inject_limit(q);
        }
    }

    /// bfq_update_io_seektime().
    pub(super) fn update_seeks(&mut self, pool: &RequestPool, q: QId, rq: RequestId) {
        self.charge(3);
        let far = self.is_far(self.queues[q].last_request_pos, &pool[rq]);
        let queue = &mut self.queues[q];
        queue.seek_history = queue.seek_history << 1 | u32::from(far);
        let totally = queue.is_totally_seeky();
        if totally && queue.is_wr() && self.is_soft_rt(q) {
            match self.rules.raising {
                Raising::AnyWeight => self.end_wr(q),
                Raising::DefaultWeight => self.wr_period_over(q),
            }
        }
    }

    /// bfq_update_io_intensity(), before the request is queued.
    pub(super) fn update_io_bound(&mut self, q: QId, now: u64) {
        self.charge(5);
        if self.rules.io_bound == IoBound::Streak {
            return;
        }
        let queue = &mut self.queues[q];
        let window = now.wrapping_sub(queue.io_start_ns);
        if queue.is_empty() && queue.dispatched == 0 {
            let idle = now.wrapping_sub(queue.ttime.last_end_request);
            queue.idle_total_ns = queue.idle_total_ns.wrapping_add(idle);
        }
        if queue.flags.just_created {
            return;
        }
        queue.flags.io_bound = queue.idle_total_ns.wrapping_mul(5) <= window;
        if window > IO_WINDOW {
            queue.io_start_ns = now.wrapping_sub(window >> 1);
            queue.idle_total_ns >>= 1;
        }
    }

    /// v5.11: counts quick arrivals in a row at an idle queue.
    pub(super) fn count_streak(&mut self, q: QId, arrived_in_time: bool) {
        if self.rules.io_bound == IoBound::Streak && !self.queues[q].flags.io_bound {
            let queue = &mut self.queues[q];
            if arrived_in_time {
                queue.requests_within_timer += 1;
                queue.flags.io_bound = queue.requests_within_timer >= STREAK;
            } else {
                queue.requests_within_timer = 0;
            }
        }
    }

    /// Checks whether the queue whose request just ended is the waker of this one
    /// (bfq_check_waker()).
    pub(super) fn check_waker(&mut self, q: QId, now: u64) {
        self.charge(4);
        let queue = &self.queues[q];
        let check = self.rules.waker_check;
        let old = check == WakerCheck::AtOnce;
        let within = if old {
            WAKES_WITHIN_V5_11
        } else {
            WAKES_WITHIN
        };
        let Some(last) = self.last_completed.filter(|&last| last != q) else {
            return;
        };
        if queue.flags.has_short_ttime || now.wrapping_sub(self.last_completion_ns) >= within {
            return;
        }
        let name = Name::of(&self.queues[last]);
        if old {
            self.check_waker_twice(q, last);
            return;
        }
        let in_time = check == WakerCheck::ConfirmedInTime;
        if !in_time && self.queues[q].waker == Some(last) {
            return;
        }
        let age = 128 * self.settings.slice_idle_ns;
        let queue = &mut self.queues[q];
        let stale = in_time && now > queue.waker_detection_started_ns + age;
        if queue.tentative_waker != Some(last) || stale {
            queue.tentative_waker = Some(last);
            queue.waker_detections = 1;
            queue.waker_detection_started_ns = now;
            if in_time {
                trace_msg!(self, q, "set tentative waker {name}");
            }
        } else {
            queue.waker_detections += 1;
        }
        if self.queues[q].waker_detections == WAKER_DETECTIONS {
            self.queues[q].tentative_waker = None;
            if in_time {
                trace_msg!(self, q, "set waker {name}");
            }
            self.leave_woken_list(q);
            self.set_waker(q, last);
        }
    }

    /// v5.11: the first detection makes a tentative waker, the second in a row confirms it. Nothing
    /// depends on it in that kernel: the test for its injection never comes true.
    fn check_waker_twice(&mut self, q: QId, last: QId) {
        if self.queues[q].waker == Some(last) {
            return;
        }
        self.leave_woken_list(q);
        self.set_waker(q, last);
    }

    /// Makes `waker` the queue's waker, and the queue the first of those that it wakes.
    pub(super) fn set_waker(&mut self, q: QId, waker: QId) {
        self.queues[q].waker = Some(waker);
        self.queues[q].in_woken_list = true;
        self.queues[waker].woken.push(q);
    }

    pub(super) fn leave_woken_list(&mut self, q: QId) {
        if core::mem::take(&mut self.queues[q].in_woken_list) {
            let waker = self.queues[q].waker.expect("a woken queue has a waker");
            unlist(&mut self.queues[waker].woken, q);
        }
    }
}
