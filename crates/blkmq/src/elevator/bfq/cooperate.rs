//! Cooperation: queues that work on one region, or were created together, become one.
//!
//! Kernel: bfq_setup_cooperator(), bfq_setup_merge(), bfq_merge_bfqqs(),
//! bfq_do_or_sched_stable_merge() in block/bfq-iosched.c (6.1.192, 6.12.117; 5.13).

use super::position::is_close;
use super::process::ProcessId;
use super::queue::{IDLE, QId};
use super::raising::COEFF;
use super::{Bfq, far_past};
use crate::request::{RequestPool, Sector};
use crate::rules::{ResumeAfter, StableMerge};

/// What becomes of a queue that has just been created.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    /// Nothing: the last one was created neither just before it nor long ago.
    Alone,
    /// It is the last one created.
    Last,
    /// To be merged into the last one later.
    Later(QId),
    /// Merged into the last one at once.
    Merged(QId),
}

impl Bfq {
    /// The queue that requests of `q` are to go to from here on, if there is one: `sector` is that
    /// of the bio or request at hand (bfq_setup_cooperator()).
    pub(super) fn setup_cooperator(
        &mut self,
        pool: &RequestPool,
        q: QId,
        sector: Sector,
        process: ProcessId,
    ) -> Option<QId> {
        self.works(4);
        let planned = self.planned(q);
        if self.rules.chain_to_tail && planned.is_some() {
            return planned;
        }
        if !self.nonrot_with_queueing && self.stable_merge_is_due(q, process) {
            return self.setup_stable_merge(q, process, Bfq::idling_boosts);
        }
        if self.nonrot_with_queueing || self.too_late(q) {
            return None;
        }
        if planned.is_some() {
            return planned;
        }
        if self.busy_queues_total() == 1 {
            return None;
        }
        let group = self.entities[self.entities.of(q)].group;
        if let Some(s) = self.in_service.filter(|&s| s != q)
            && is_close(sector, Sector(self.in_serv_last_pos))
            && self.entities[self.entities.of(s)].group == group
            && self.may_cooperate(q, s)
            && let Some(new) = self.setup_merge(q, s)
        {
            return Some(new);
        }
        let close = self.find_close(pool, group.index(), sector);
        let close = close.filter(|&close| close != q && self.may_cooperate(q, close))?;
        self.setup_merge(q, close)
    }

    /// Where the processes of `q` are to go by a plan that is there: to the last queue of its
    /// chain, or one link along it (up to v5.13).
    pub(super) fn planned(&self, q: QId) -> Option<QId> {
        let mut tail = self.queues[q].new?;
        if self.rules.chain_to_tail {
            while let Some(new) = self.queues[tail].new {
                tail = new;
            }
        }
        Some(tail)
    }

    /// A process goes from `q` to a queue of its chain, link by link.
    pub(super) fn move_process(&mut self, process: ProcessId, q: QId, to: QId) {
        let mut at = q;
        while at != to {
            at = self.merge_queues(process, at);
        }
    }

    fn stable_merge_is_due(&mut self, q: QId, process: ProcessId) -> bool {
        let (tick, queue) = (self.tick, &self.queues[q]);
        let late = self.fixed.stable_merge_late;
        let since_creation = match self.rules.stable_merge {
            StableMerge::Never => return false,
            StableMerge::WithinBurst => true,
            StableMerge::SinceActivation => queue.creation_time + late < tick,
        };
        let since_split = match self.rules.stable_merge {
            StableMerge::WithinBurst => queue.split_time + late > tick,
            _ => queue.split_time + late < tick,
        };
        let actuator = queue.actuator;
        queue.flags.sync
            && !queue.flags.just_created
            && since_split
            && since_creation
            && self.saved(process, actuator).stable_candidate.is_some()
    }

    /// bfq_setup_stable_merge(). `boosts`: whether waiting for `q` costs no throughput, which is
    /// asked behind the put of the candidate.
    pub(super) fn setup_stable_merge(
        &mut self,
        q: QId,
        process: ProcessId,
        boosts: fn(&Bfq, QId) -> bool,
    ) -> Option<QId> {
        let actuator = self.queues[q].actuator;
        let candidate = self.saved(process, actuator).stable_candidate.take()?;
        let references = self
            .process_references(q)
            .min(self.process_references(candidate));
        let put_first = self.rules.resume_after == ResumeAfter::Counting;
        if put_first {
            self.put_stable(candidate);
        }
        let mut new = None;
        if !boosts(self, q) && references > 0 {
            new = self.setup_merge(q, candidate);
            if new.is_some() || self.rules.stable_merge == StableMerge::WithinBurst {
                self.saved(process, actuator).stably_merged = true;
                if let Some(new) = new
                    && let Some(owner) = self.queues[new].owner
                {
                    let of_new = self.queues[new].actuator;
                    self.saved(owner, of_new).stably_merged = true;
                }
            }
        }
        if !put_first {
            self.put_stable(candidate);
        }
        new
    }

    /// bfq_may_be_close_cooperator().
    fn may_cooperate(&self, q: QId, other: QId) -> bool {
        if self.too_late(other) {
            return false;
        }
        let (a, b) = (&self.queues[q], &self.queues[other]);
        a.class != IDLE
            && a.class == b.class
            && !a.is_seeky()
            && !b.is_seeky()
            && a.flags.sync
            && b.flags.sync
    }

    /// Plans that all processes of `q` go to `other`, or where that one's go: one reference is
    /// reserved for each (bfq_setup_merge()).
    pub(super) fn setup_merge(&mut self, q: QId, other: QId) -> Option<QId> {
        self.works(8);
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
        say!(self, q, "scheduling merge with queue {pid}");
        self.queues[q].new = Some(tail);
        self.queues[tail].references += references;
        Some(tail)
    }

    /// v5.13: a plan may replace another one. What the old one has reserved is never given back.
    fn lose_plan(&mut self, q: QId, references: i32) {
        let (mut at, mut links) = (self.queues[q].new, 0);
        while let Some(of_chain) = at {
            links += 1;
            assert!(links <= self.queues.len(), "planned merges in a circle");
            self.queues[of_chain].lost_references += references;
            at = self.queues[of_chain].new;
        }
    }

    /// State of a queue that merges goes to its owner (bfq_bfqq_save_state()).
    fn save_state(&mut self, q: QId) {
        let Some(owner) = self.queues[q].owner else {
            return;
        };
        let weight = self.entities[self.entities.of(q)].orig_weight;
        let (tick, raise_time) = (self.tick, self.raise_time());
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
            // It merges before it could be raised: as if that had begun now.
            saved.raised.coeff = COEFF;
            saved.raised.start_at_switch_to_srt = far_past(tick);
            saved.raised.cur_max_time = raise_time;
            saved.raised.last_start_finish = tick;
        } else {
            saved.raised = queue.raised;
        }
    }

    /// The queue that was created last, where it is remembered.
    pub(super) fn last_created(&mut self, q: QId) -> &mut Option<QId> {
        let e = self.entities.of(q);
        match self.entities.parent(e) {
            Some(parent) => &mut self.entities[parent].last_created,
            None => &mut self.last_created,
        }
    }

    /// bfq_reassign_last_bfqq().
    pub(super) fn reassign_last_created(&mut self, q: QId, to: Option<QId>) {
        let last = self.last_created(q);
        if *last == Some(q) {
            *last = to;
        } else if self.last_created == Some(q) {
            self.last_created = to;
        }
    }

    /// A process leaves `q` for the queue that is planned (bfq_merge_bfqqs()). Answers that one.
    pub(super) fn merge_queues(&mut self, process: ProcessId, q: QId) -> QId {
        self.works(12);
        let new = self.queues[q].new.expect("a merge is planned");
        assert!(
            self.queues[new].references > 0,
            "{new:?} is merged into and is freed"
        );
        let pid = i64::from(self.queues[new].pid).cast_unsigned();
        say!(self, q, "merging with queue {pid}");
        self.save_state(q);
        self.save_state(new);
        if core::mem::take(&mut self.queues[q].flags.io_bound) {
            self.queues[new].flags.io_bound = true;
        }
        self.inherit_waker(q, new);
        self.inherit_raising(q, new);
        let busy = self.raised_busy_queues;
        say!(self, new, "merge_bfqqs: wr_busy {busy}");
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

    fn inherit_raising(&mut self, q: QId, new: QId) {
        let raised = self.queues[q].raised;
        if raised.coeff == 1 {
            return;
        }
        let target = &mut self.queues[new];
        if !target.is_raised() {
            // Service while raised is not handed on.
            target.raised.coeff = raised.coeff;
            target.raised.cur_max_time = raised.cur_max_time;
            target.raised.last_start_finish = raised.last_start_finish;
            target.raised.start_at_switch_to_srt = raised.start_at_switch_to_srt;
            if target.flags.busy {
                self.raised_busy_queues += 1;
            }
            let e = self.entities.of(new);
            self.entities[e].prio_changed = true;
        }
        let queue = &mut self.queues[q];
        queue.raised.coeff = 1;
        if queue.flags.busy {
            self.raised_busy_queues -= 1;
        }
        let e = self.entities.of(q);
        self.entities[e].prio_changed = true;
    }

    /// A queue has just been created for a process: merged at once, later, or not
    /// (bfq_do_or_sched_stable_merge()). Answers the queue that the process gets.
    pub(super) fn stable_merge(&mut self, q: QId, process: ProcessId) -> QId {
        self.works(6);
        let fate = self.fate(q);
        self.fulfil(fate, q, process)
    }

    /// What becomes of a queue that has just been created.
    fn fate(&mut self, q: QId) -> Fate {
        let limit = match self.rules.stable_merge {
            StableMerge::Never => return Fate::Alone,
            StableMerge::WithinBurst => self.fixed.burst_interval,
            StableMerge::SinceActivation => self.fixed.stable_merge_activation,
        };
        let last = *self.last_created(q);
        let group = |q: QId| self.entities[self.entities.of(q)].group;
        let own = &self.queues[q];
        let target = last.filter(|&last| {
            let queue = &self.queues[last];
            queue.creation_time + limit >= own.creation_time
                && group(last) == group(q)
                && (queue.class, queue.level) == (own.class, own.level)
                && queue.actuator == own.actuator
        });
        let Some(target) = target else {
            return Fate::Last;
        };
        let since = self.queues[target].creation_time + self.fixed.burst_interval;
        if since < own.creation_time {
            return Fate::Alone;
        }
        match self.nonrot_with_queueing {
            true => Fate::Merged(target),
            false => Fate::Later(target),
        }
    }

    pub(super) fn fulfil(&mut self, fate: Fate, q: QId, process: ProcessId) -> QId {
        let actuator = self.queues[q].actuator;
        let target = match fate {
            Fate::Alone => return q,
            Fate::Last => {
                *self.last_created(q) = Some(q);
                return q;
            }
            Fate::Later(target) => {
                let queue = &mut self.queues[target];
                queue.references += 1;
                queue.stable_references += 1;
                let before = self
                    .saved(process, actuator)
                    .stable_candidate
                    .replace(target);
                // One that is planned already keeps its reference for ever, as in the kernel.
                match before {
                    Some(replaced) if self.rules.puts_candidate => self.put_stable(replaced),
                    Some(replaced) => self.queues[replaced].lost_candidates += 1,
                    None => {}
                }
                return q;
            }
            Fate::Merged(target) => target,
        };
        let Some(new) = self.setup_merge(q, target) else {
            return q;
        };
        if let Some(owner) = self.queues[new].owner {
            self.saved(owner, actuator).stably_merged = true;
        }
        self.saved(process, actuator).stably_merged = true;
        self.queues[q].owner = Some(process);
        self.merge_queues(process, q)
    }
}
