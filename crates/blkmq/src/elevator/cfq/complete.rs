//! Completions of requests, exits of processes, and the queue runs that follow.
//!
//! Kernel: cfq_completed_request(), cfq_put_request(), cfq_exit_cfqq(), cfq_schedule_dispatch() in
//! block/cfq-iosched.c (2.6.32 to 4.20).

use super::arrive::{is_write, own_queue, queue_of, set_queue_of};
use super::queue::Class;
use super::{Cfq, QId};
use crate::elevator::scheduler::is_sync;
use crate::request::{IoContextId, RequestId, RequestPool};
use crate::rules::{SliceClock, SliceIdling, SliceLog, SyncDelay};

impl Cfq {
    /// All bios of a request have ended (cfq_completed_request()).
    pub(super) fn complete(&mut self, pool: &RequestPool, rq: RequestId) {
        let request = &pool[rq];
        let q = own_queue(request);
        let sync = is_sync(request.op, request.flags);
        match self.rules.log {
            SliceLog::Process => trace_msg!(self, q, "complete"),
            _ => trace_msg!(
                self,
                q,
                "complete rqnoidle {}",
                u8::from(Cfq::sends_no_other(request))
            ),
        }
        self.update_hw_tag();
        self.in_driver[usize::from(sync)] -= 1;
        let queue = &mut self.queues[q];
        queue.dispatched -= 1;
        self.in_flight[usize::from(queue.flags.sync)] -= 1;
        self.groups[queue.group].dispatched -= 1;
        self.note_end(pool, rq, q, sync);
        if self.active == Some(q) {
            self.completed_of_active(pool, rq, q);
        }
        if self.in_driver == [0, 0] {
            self.kick();
        }
    }

    /// Records the time of the end of a request, for the queue and its process.
    fn note_end(&mut self, pool: &RequestPool, rq: RequestId, q: QId, sync: bool) {
        let (request, now) = (&pool[rq], self.now);
        let late = self.rules.idling == SliceIdling::ByTreeAndGroup;
        if sync {
            self.process(request.io_context).think.last_end = now;
            if late {
                let at = self.queues[q].tree;
                let (group, tree) = at.unwrap_or((self.queues[q].group, self.tree_for(q) as u8));
                self.groups[group].trees[usize::from(tree)].think.last_end = now;
            }
            let started = match self.settings.clock {
                SliceClock::Ticks => request.start_time.jiffies(self.settings.hz).0,
                SliceClock::Nanoseconds => request.start_time.0,
            };
            let slow = started.cast_signed() + self.tuned.fifo_expire[1] <= now;
            if self.rules.sync_delay == SyncDelay::LastEnd || slow {
                self.last_end_sync = now;
            }
        }
        if late {
            let group = self.queues[q].group;
            self.groups[group].think.last_end = now;
        }
    }

    fn completed_of_active(&mut self, pool: &RequestPool, rq: RequestId, q: QId) {
        let request = &pool[rq];
        let empty = self.queues[q].is_empty();
        if self.queues[q].flags.slice_new {
            self.begin_slice(q);
        }
        self.wait_till_busy(q);
        if self.slice_used(q) || self.queues[q].class == Class::Idle {
            self.expire_active(pool, true);
            return;
        }
        let sync = is_sync(request.op, request.flags);
        if !empty || !sync || self.close_cooperator(pool, q, true).is_some() {
            return;
        }
        let last = Cfq::sends_no_other(request);
        let waits = match self.rules.idling {
            SliceIdling::ByWindow => !last,
            SliceIdling::ByTree => self.tree_is_waited_for(q, last),
            SliceIdling::ByTreeAndGroup => true,
        };
        if waits {
            self.wait_for(q);
        }
    }

    /// Whether to idle at the end of the tree: for queues with an idle window always, for others if
    /// a request of the tree was followed by idling, or for the sake of the group.
    fn tree_is_waited_for(&mut self, q: QId, last: bool) -> bool {
        self.serving.noidle_requires_idle |= !last;
        self.serving.work == super::queue::Work::Sync
            || self.serving.noidle_requires_idle
            || self.groups[self.queues[q].group].queues == 1
    }

    /// A request is freed (cfq_put_request()).
    pub(super) fn put_request(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let Some(q) = queue_of(&pool[rq]) else {
            return;
        };
        set_queue_of(&mut pool[rq], None);
        let released = self.ties.release(q, is_write(&pool[rq]));
        self.hold_true(released);
        self.bury(pool);
    }

    /// The last task of an I/O context exits (cfq_exit_io_context()).
    pub(super) fn exit_process(&mut self, pool: &RequestPool, p: IoContextId) {
        self.process(p).lives = false;
        for sync in [false, true] {
            let slot = self.ties.slot(p, sync);
            if slot.is_some() && slot == self.active {
                self.expire_active(pool, false);
                self.kick();
            }
            let exited = self.ties.exit(p, sync);
            self.hold_true(exited);
            self.bury(pool);
        }
    }

    /// Frees queues after their last put (end of cfq_put_queue()).
    pub(super) fn bury(&mut self, pool: &RequestPool) {
        while let Some(q) = self.ties.take_freed() {
            trace_msg!(self, q, "put_queue");
            assert!(self.queues[q].is_empty(), "{q:?} is freed with requests");
            if self.active == Some(q) {
                self.expire(pool, q, false);
                self.kick();
            }
            assert!(!self.queues[q].flags.on_rr, "{q:?} is freed while busy");
        }
    }

    /// kblockd must run the queue if there is something to dispatch (cfq_schedule_dispatch()).
    pub(super) fn kick(&mut self) {
        if self.busy_queues > 0 {
            trace_device_msg!(self, "schedule dispatch");
            self.runs = true;
        }
    }
}
