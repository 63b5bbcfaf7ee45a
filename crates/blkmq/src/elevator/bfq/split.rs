//! Split: a process leaves a shared queue that has become seeky, and gets its saved state back.
//!
//! Kernel: bfq_split_bfqq(), bfq_bfqq_resume_state(), bfq_waker_bfqq(),
//! bfq_get_bfqq_handle_split() in block/bfq-iosched.c (6.1.192, 6.12.117).

use super::ids::QId;
use super::merge_event::MergeEvent;
use super::{Arrived, Bfq};
use crate::rules::{ResumeAfter, WakerCheck};

impl Bfq {
    /// Gives the process a queue of its own if this one must be split. Returns the queue, and
    /// whether it was kept; none if there is nothing to split.
    pub(super) fn split(&mut self, of: Arrived, q: QId) -> Option<(QId, bool)> {
        let stably = self.saved(of.process, of.actuator).stably_merged;
        let flags = self.queues[q].flags;
        if !flags.coop || !flags.split_coop || stably {
            return None;
        }
        let waker = match self.rules.waker_check {
            WakerCheck::ConfirmedInTime => self.safe_waker(q),
            _ => self.queues[q].waker,
        };
        if flags.in_large_burst {
            self.saved(of.process, of.actuator).in_large_burst = true;
        }
        let kept = self.leave_shared(of, q);
        let early = self.rules.resume_after == ResumeAfter::Split;
        if kept {
            self.record(|| MergeEvent::Kept(of.process));
            if early {
                self.resume_state(q, of, true);
            }
            return Some((q, true));
        }
        let new = self.respawn(of);
        self.record(|| MergeEvent::Left(of.process));
        if early {
            self.resume_state(new, of, false);
        }
        if self.rules.injects_wakers() {
            self.queues[new].tentative_waker = None;
            self.queues[new].waker = None;
            if let Some(waker) = waker {
                self.set_waker(new, waker);
            }
        }
        Some((new, false))
    }

    /// A waker that will still exist afterwards (bfq_waker_bfqq()).
    fn safe_waker(&self, q: QId) -> Option<QId> {
        let waker = self.queues[q].waker?;
        let mut at = self.queues[q].new;
        while let Some(new) = at {
            if new == waker {
                return (self.process_references(waker) != 1).then_some(waker);
            }
            at = self.queues[new].new;
        }
        (self.process_references(waker) != 0).then_some(waker)
    }

    /// bfq_split_bfqq(): true if no other process has the queue, so that it is kept.
    fn leave_shared(&mut self, of: Arrived, q: QId) -> bool {
        trace_msg!(self, q, "splitting queue");
        let alone = self.process_references(q) == 1;
        if alone && (self.queues[q].new.is_none() || !self.rules.chain_to_tail) {
            let queue = &mut self.queues[q];
            queue.pid = of.pid;
            queue.flags.coop = false;
            queue.flags.split_coop = false;
            return true;
        }
        let actuator = self.queues[q].actuator;
        self.set_slot(of.process, true, actuator, None);
        self.put_cooperators(q);
        self.release(q);
        false
    }

    /// A new queue that replaces the one left. The queue of another actuator was left in that
    /// actuator's slot, so the process still has it (docs/findings/0003).
    fn respawn(&mut self, of: Arrived) -> QId {
        if let Some(still) = self.slot(of.process, of.sync, of.actuator) {
            return still;
        }
        let q = self.get_queue(of, true);
        self.set_slot(of.process, of.sync, of.actuator, Some(q));
        if of.sync {
            let large = self.large_burst;
            let saved = self.saved(of.process, of.actuator);
            let listed = saved.was_in_burst_list;
            if listed && large || saved.in_large_burst {
                self.queues[q].flags.in_large_burst = true;
            } else {
                self.queues[q].flags.in_large_burst = false;
                if listed {
                    self.join_burst_list(q);
                }
            }
            self.queues[q].split_time = self.jiffies();
        }
        q
    }
}
