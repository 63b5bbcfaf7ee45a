//! Stable merges: queues that were created together are merged, at once or later, and are not
//! split.
//!
//! Each group stores the queue created last. Kernel: bfq_do_or_sched_stable_merge(),
//! bfq_setup_stable_merge() in block/bfq-iosched.c (6.1.192, 6.12.117; 5.13).

use super::Bfq;
use super::ids::QId;
use super::merge_event::MergeEvent;
use super::process::ProcessId;
use crate::rules::{StableMerge, StablePut};

/// The decision about a queue that was just created.
#[derive(Clone, Copy, Debug)]
pub(super) enum CreationMerge {
    /// No merge: the last queue was created neither just before nor long ago.
    Alone,
    /// The queue becomes the last one created.
    Last,
    /// The queue will be merged into the last one later.
    Later(QId),
    /// The queue is merged into the last one at once.
    Merged(QId),
}

impl Bfq {
    /// Decides whether a new queue of a process is merged at once, later, or not
    /// (bfq_do_or_sched_stable_merge()). Returns the queue that the process gets.
    pub(super) fn stable_merge(&mut self, q: QId, process: ProcessId) -> QId {
        self.charge(6);
        let creation = self.creation(q);
        self.fulfil(creation, q, process)
    }

    /// Decides about a queue that was just created.
    fn creation(&mut self, q: QId) -> CreationMerge {
        let limit = match self.rules.stable_merge {
            StableMerge::Never => return CreationMerge::Alone,
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
            return CreationMerge::Last;
        };
        let since = self.queues[target].creation_time + self.fixed.burst_interval;
        if since < own.creation_time {
            return CreationMerge::Alone;
        }
        match self.nonrot_with_queueing {
            true => CreationMerge::Merged(target),
            false => CreationMerge::Later(target),
        }
    }

    pub(super) fn fulfil(&mut self, creation: CreationMerge, q: QId, process: ProcessId) -> QId {
        self.record_creation(creation);
        let actuator = self.queues[q].actuator;
        let target = match creation {
            CreationMerge::Alone => return q,
            CreationMerge::Last => {
                *self.last_created(q) = Some(q);
                return q;
            }
            CreationMerge::Later(target) => {
                let queue = &mut self.queues[target];
                queue.references += 1;
                queue.stable_references += 1;
                let before = self
                    .saved(process, actuator)
                    .stable_candidate
                    .replace(target);
                // A replaced candidate keeps its reference for ever, as in the kernel.
                match before {
                    Some(replaced) if self.rules.puts_candidate => self.put_stable(replaced),
                    Some(replaced) => self.queues[replaced].lost_candidates += 1,
                    None => {}
                }
                return q;
            }
            CreationMerge::Merged(target) => target,
        };
        let Some(new) = self.setup_merge(q, target) else {
            return q;
        };
        if let Some(owner) = self.queues[new].owner {
            self.saved(owner, actuator).stably_merged = true;
        }
        self.saved(process, actuator).stably_merged = true;
        self.explain_merge(q, new);
        self.queues[q].owner = Some(process);
        self.merge_queues(process, q)
    }

    pub(super) fn stable_merge_is_due(&mut self, q: QId, process: ProcessId) -> bool {
        let (tick, queue) = (self.jiffies(), &self.queues[q]);
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

    /// bfq_setup_stable_merge(). `boosts`: whether idling for `q` costs no throughput, which is
    /// evaluated after the put of the candidate.
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
        let put_first = self.rules.stable_put == StablePut::BeforeMerge;
        if put_first {
            self.put_stable(candidate);
        }
        let mut new = None;
        let stays = boosts(self, q) || self.rules.keeps_sequential && !self.queues[q].is_seeky();
        if !stays && references > 0 {
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
        if let Some(new) = new {
            self.explain_merge(q, new);
        }
        self.record(|| match new {
            Some(_) => MergeEvent::PlannedForGood,
            None => MergeEvent::GaveUp(process),
        });
        new
    }

    /// Where the queue created last is stored.
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
}
