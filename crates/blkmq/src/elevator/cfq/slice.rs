//! Slices: how long a queue is served, and what happens when its slice ends.
//!
//! Kernel: cfq_prio_slice(), cfq_set_prio_slice(), __cfq_set_active_queue(), __cfq_slice_expired()
//! in block/cfq-iosched.c (2.6.32 to 4.20).

use super::process::LEVEL_NORMAL;
use super::queue::Flags;
use super::{Cfq, QId};
use crate::request::RequestPool;
use crate::rules::{SliceClock, SliceIdling, SliceTrees, Split};

/// CFQ_SLICE_SCALE.
const SCALE: i64 = 5;

impl Cfq {
    /// Slice of a queue of this kind and level (cfq_prio_slice()).
    pub(super) fn prio_slice(&self, sync: bool, level: u8) -> i64 {
        let base = self.tuned.slice[usize::from(sync)];
        base + base / SCALE * (i64::from(LEVEL_NORMAL) - i64::from(level))
    }

    /// Slice of a queue, shortened if its group has too many queues to serve each once in time
    /// (cfq_scaled_cfqq_slice()).
    fn scaled_slice(&mut self, q: QId) -> i64 {
        let queue = &self.queues[q];
        let slice = self.prio_slice(queue.flags.sync, queue.level);
        if self.rules.trees == SliceTrees::One || !self.settings.low_latency {
            return slice;
        }
        let (group, class) = (queue.group, queue.class);
        let others = i64::from(self.groups[group].update_average(class));
        let sync = self.tuned.slice[1];
        let expected = self.times(sync, others);
        let whole = self.group_slice(group);
        if expected <= whole.cast_unsigned() {
            return slice;
        }
        let twice = self.times(2, self.tuned.slice_idle).cast_signed();
        let low = self.times(twice, slice) / sync.cast_unsigned();
        let scaled = self.times(slice, whole) / expected;
        slice.cast_unsigned().min(low).max(scaled).cast_signed()
    }

    /// A product of spans in the kernel's variables, which overflow silently: unsigned, ticks in 32
    /// bits and nanoseconds in 64.
    pub(super) fn times(&self, span: i64, by: i64) -> u64 {
        match self.rules.clock {
            SliceClock::Ticks => u64::from((span as u32).wrapping_mul(by as u32)),
            SliceClock::Nanoseconds => span.cast_unsigned().wrapping_mul(by.cast_unsigned()),
        }
    }

    /// The first request since the queue became active has completed: the slice begins now
    /// (cfq_set_prio_slice()).
    pub(super) fn begin_slice(&mut self, q: QId) {
        let slice = self.scaled_slice(q);
        let now = self.now;
        let queue = &mut self.queues[q];
        queue.slice_start = Some(now);
        queue.slice_end = now + slice;
        queue.allocated_slice = slice;
        queue.flags.slice_new = false;
        trace_msg!(self, q, "set_slice={slice}");
    }

    /// cfq_slice_used().
    #[inline]
    pub(super) fn slice_used(&self, q: QId) -> bool {
        let queue = &self.queues[q];
        !queue.flags.slice_new && self.now >= queue.slice_end
    }

    /// __cfq_set_active_queue().
    pub(super) fn activate(&mut self, q: Option<QId>) {
        if let Some(q) = q {
            self.trace_active(q);
            self.shows_turn(q);
            let now = self.now;
            let queue = &mut self.queues[q];
            queue.slice_start = None;
            queue.dispatch_start = now;
            queue.allocated_slice = 0;
            queue.slice_end = 0;
            queue.slice_dispatch = 0;
            queue.slice_sectors = 0;
            queue.flags = Flags {
                wait_request: false,
                must_dispatch: false,
                must_alloc_slice: false,
                fifo_expire: false,
                slice_new: true,
                ..queue.flags
            };
            self.cancel_timer();
        }
        self.active = q;
    }

    /// The active queue expires, if there is one.
    pub(super) fn expire_active(&mut self, pool: &RequestPool, timed_out: bool) {
        if let Some(q) = self.active {
            self.expire(pool, q, timed_out);
        }
    }

    /// __cfq_slice_expired(). `timed_out`: the rest of the slice, or its excess, counts next time.
    pub(super) fn expire(&mut self, pool: &RequestPool, q: QId, timed_out: bool) {
        trace_msg!(self, q, "slice expired t={}", u8::from(timed_out));
        if self.active == Some(q) {
            self.shows_end(q);
        }
        if self.queues[q].flags.wait_request {
            self.cancel_timer();
        }
        let queue = &mut self.queues[q];
        queue.flags.wait_request = false;
        queue.flags.wait_busy = false;
        self.mark_for_split(q);
        if timed_out {
            let late = self.rules.idling == SliceIdling::ByTreeAndGroup;
            let resid = match self.queues[q].flags.slice_new {
                false => Some(self.queues[q].slice_end - self.now),
                true if late => Some(self.scaled_slice(q)),
                true => None,
            };
            if let Some(resid) = resid {
                self.queues[q].slice_resid = resid;
                trace_msg!(self, q, "resid={resid}");
            }
        }
        self.serve_group(q);
        let queue = &self.queues[q];
        if queue.flags.on_rr && queue.is_empty() {
            self.del_busy(q);
        }
        self.resort(pool, q);
        if self.active == Some(q) {
            self.active = None;
        }
        self.active_process = None;
    }

    /// A shared seeky queue is no longer the work of one process.
    fn mark_for_split(&mut self, q: QId) {
        if self.rules.merge.split != Split::AtExpiry || !self.is_seeky(q, None) {
            return;
        }
        // The last put may be the reason of the expiration.
        if let Ok(tie) = self.ties.tie_mut(q)
            && tie.coop
        {
            tie.split_coop = true;
        }
    }
}
