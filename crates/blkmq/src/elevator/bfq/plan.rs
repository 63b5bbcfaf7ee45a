//! Planned merges: all processes of a queue change to another queue, each at its next request.
//!
//! A planned merge reserves a reference for each process. `cooperate.rs` and `stable_merge.rs` find
//! the queues to merge. Kernel: bfq_setup_merge(), bfq_merge_bfqqs() in block/bfq-iosched.c
//! (6.1.192, 6.12.117; 5.13).

use super::Bfq;
use super::ids::QId;
use super::merge_event::MergeEvent;
use super::process::ProcessId;

impl Bfq {
    /// The queue that the processes of `q` change to by an existing plan: the last one of its
    /// chain, or the next one along it (up to v5.13).
    pub(super) fn planned(&self, q: QId) -> Option<QId> {
        let mut tail = self.queues[q].new?;
        if self.rules.chain_to_tail {
            while let Some(new) = self.queues[tail].new {
                tail = new;
            }
        }
        Some(tail)
    }

    /// Moves a process from `q` to a queue of its chain, link by link.
    pub(super) fn move_process(&mut self, process: ProcessId, q: QId, to: QId) {
        let mut at = q;
        while at != to {
            at = self.merge_queues(process, at);
        }
        self.record(|| MergeEvent::Went(process));
    }

    /// Plans that all processes of `q` change to `other`, or to the queue that `other` redirects
    /// to: one reference is reserved for each (bfq_setup_merge()).
    pub(super) fn setup_merge(&mut self, q: QId, other: QId) -> Option<QId> {
        self.charge(8);
        if self.process_references(other) == 0 {
            return None;
        }
        let (mut tail, mut links) = (other, 0);
        while let Some(new) = self.queues[tail].new {
            if new == q {
                return None;
            }
            tail = new;
            assert!(
                self.queues[tail].references > 0,
                "{tail:?} is planned and is freed"
            );
            links += 1;
            assert!(links <= self.queues.len(), "planned merges in a circle");
        }
        let references = self.process_references(q);
        if references == 0 || self.process_references(tail) == 0 {
            return None;
        }
        let group = |q: QId| self.entities[self.entities.of(q)].group;
        if self.rules.chain_to_tail && group(tail) != group(q) {
            return None;
        }
        let actuator = |q: QId| self.queues[q].actuator;
        if self.rules.merges_per_actuator && actuator(tail) != actuator(q) {
            return None;
        }
        self.lose_plan(q, references);
        let pid = self.queues[tail].pid;
        trace_msg!(self, q, "scheduling merge with queue {pid}");
        self.queues[q].new = Some(tail);
        self.queues[tail].references += references;
        self.record(|| MergeEvent::Planned(q.0, other.0));
        Some(tail)
    }

    /// v5.13: a plan may replace another one, whose reserved references are never put.
    fn lose_plan(&mut self, q: QId, references: i32) {
        let (mut at, mut links) = (self.queues[q].new, 0);
        while let Some(of_chain) = at {
            links += 1;
            assert!(links <= self.queues.len(), "planned merges in a circle");
            self.queues[of_chain].lost_references += references;
            at = self.queues[of_chain].new;
        }
    }

    /// A process leaves `q` for the planned queue, which is returned (bfq_merge_bfqqs()).
    pub(super) fn merge_queues(&mut self, process: ProcessId, q: QId) -> QId {
        self.charge(12);
        let new = self.queues[q].new.expect("a merge is planned");
        assert!(
            self.queues[new].references > 0,
            "{new:?} is merged into and is freed"
        );
        let pid = i64::from(self.queues[new].pid).cast_unsigned();
        trace_msg!(self, q, "merging with queue {pid}");
        self.save_state(q);
        self.save_state(new);
        if core::mem::take(&mut self.queues[q].flags.io_bound) {
            self.queues[new].flags.io_bound = true;
        }
        self.inherit_waker(q, new);
        self.inherit_wr(q, new);
        let busy = self.wr_busy_queues;
        trace_msg!(self, new, "merge_bfqqs: wr_busy {busy}");
        let actuator = self.queues[q].actuator;
        self.set_slot(process, true, actuator, Some(new));
        let target = &mut self.queues[new];
        target.flags.coop = true;
        target.owner = None;
        target.pid = -1;
        self.queues[q].owner = None;
        self.reassign_last_created(q, Some(new));
        self.release(q);
        new
    }

    fn inherit_waker(&mut self, q: QId, new: QId) {
        let waker = self.queues[q].waker.filter(|&waker| waker != new);
        if let Some(waker) = waker
            && self.queues[new].waker.is_none()
            && self.rules.injects_wakers()
        {
            self.queues[new].tentative_waker = None;
            self.set_waker(new, waker);
        }
    }

    fn inherit_wr(&mut self, q: QId, new: QId) {
        let wr = self.queues[q].wr;
        if wr.coeff == 1 {
            return;
        }
        let target = &mut self.queues[new];
        if !target.is_wr() {
            // The service during weight raising is not copied.
            target.wr.coeff = wr.coeff;
            target.wr.cur_max_time = wr.cur_max_time;
            target.wr.last_start_finish = wr.last_start_finish;
            target.wr.start_at_switch_to_srt = wr.start_at_switch_to_srt;
            if target.flags.busy {
                self.wr_busy_queues += 1;
            }
            let e = self.entities.of(new);
            self.entities[e].prio_changed = true;
        }
        let queue = &mut self.queues[q];
        queue.wr.coeff = 1;
        if queue.flags.busy {
            self.wr_busy_queues -= 1;
        }
        let e = self.entities.of(q);
        self.entities[e].prio_changed = true;
    }
}
