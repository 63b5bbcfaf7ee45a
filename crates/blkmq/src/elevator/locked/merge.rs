//! A search for a merge under the scheduler's lock; by some rules only if the lock is free.
//!
//! Kernel: dd_bio_merge() in block/mq-deadline.c and its counterparts in other schedulers (6.1.192,
//! 6.12.117).

use super::{Locked, Scheduler, merging};
use crate::elevator::scheduler::BioMerge;
use crate::elevator::{MergeAsked, Merged};
use crate::env::{Answer, Cpu, TraceAction};
use crate::merge::Side;
use crate::names::{Label, labels};
use crate::queue::RequestQueue;
use crate::request::{BioId, Place};
use crate::rules::MergeLookup;
use crate::step::{Next, Sub, Traced};

labels! {
    /// Labels that the caller has no name for.
    pub enum MergeAt in "elevator-merge" {
        /// Was the scheduler's lock free?
        Try,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct MergePath {
    tries: bool,
}

impl MergePath {
    pub(crate) fn label(self) -> Option<Label> {
        self.tries.then(|| MergeAt::Try.label())
    }
}

impl<P: Scheduler + 'static> Locked<P> {
    pub(crate) fn start_merge(
        &self,
        q: &RequestQueue,
        _asked: MergeAsked,
    ) -> (MergePath, Sub<Merged>) {
        let tries = q.settings.rules.series.merge_lookup == MergeLookup::IfLockIsFree;
        let lock = self.lock(q);
        let next = match tries {
            true => Next::TryLock(lock),
            false => Next::Lock(lock),
        };
        (MergePath { tries }, Sub::Wait(next))
    }

    pub(crate) fn merge(
        &self,
        path: &mut MergePath,
        q: &RequestQueue,
        bio: BioId,
        cpu: &mut Cpu,
    ) -> Sub<Merged> {
        if core::mem::take(&mut path.tries) {
            return match core::mem::take(&mut cpu.answer) {
                Answer::Locked => Sub::Wait(Next::Step),
                _ => Sub::Done(Merged::No),
            };
        }
        let merged = self.merge_section(q, bio, cpu);
        Sub::Done(merged)
    }

    /// Under the lock, up to the release.
    fn merge_section(&self, q: &RequestQueue, bio: BioId, cpu: &mut Cpu) -> Merged {
        let now = self.now_of_task(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        let merge = self
            .policy
            .held(cpu)
            .merge_bio(&mut pool, bio, now, merging(q));
        let traced = Traced::bio(cpu.tracing, &pool, bio);
        let BioMerge::Into { side, absorbed, .. } = merge else {
            drop(pool);
            self.emit_log(q, cpu);
            self.settle(q, cpu);
            self.policy.release(cpu);
            return Merged::No;
        };
        let gone = absorbed.map(|rq| {
            pool[rq].place = Place::Path;
            Traced::rq(cpu.tracing, &pool, rq)
        });
        drop(pool);
        let mut log = self.log(q, cpu);
        match side {
            Side::Back => log.trace(TraceAction::BackMerge, traced, cpu),
            Side::Front => log.trace(TraceAction::FrontMerge, traced, cpu),
            Side::Discard => {}
        }
        if let Some(gone) = gone {
            log.swallow(gone, cpu);
        }
        log.rest(cpu);
        self.settle(q, cpu);
        self.policy.release(cpu);
        Merged::Into { absorbed }
    }
}
