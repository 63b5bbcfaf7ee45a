//! A search for a merge under the scheduler's lock; by some rules only if the lock is free.
//!
//! Kernel: dd_bio_merge() in block/mq-deadline.c and its counterparts in other schedulers (6.1.192,
//! 6.12.117).

use super::{Locked, Scheduler, lock, merging};
use crate::elevator::Merged;
use crate::elevator::scheduler::{BioMerge, CalledOn};
use crate::env::{Answer, TraceAction};
use crate::merge::Side;
use crate::request::{BioId, Place};
use crate::rules::MergeLookup;
use crate::step::{Cx, Next, Traced, labels};
use steps::steps;

/// dd_bio_merge() of a scheduler with one lock. The caller names the label of its section.
#[steps]
pub(crate) fn bio_merge(cx: &mut Cx<'_>, bio: BioId) -> Merged {
    if cx.rules().series.merge_lookup == MergeLookup::IfLockIsFree {
        /// Was the scheduler's lock free?
        let Answer::Locked = ask!(Try, Next::TryLock(cx.q.elevator.lock(cx.q))) else {
            return Merged::No;
        };
        at!(_);
    } else {
        lock!(_, lock(cx));
    }
    cx.q.elevator.merge(cx, bio)
}

labels! {
    pub enum At in "elevator-merge" of bio_merge
}

/// This CPU, and the hctx that it would submit the bio to.
fn called_on(cx: &Cx<'_>, bio: BioId) -> CalledOn {
    if cx.q.single.is_some() {
        return CalledOn::by(cx.cpu.id);
    }
    let pool = cx.pool();
    let (op, polled) = (pool.bio(bio).op, pool.bio(bio).flags.polled);
    CalledOn {
        cpu: cx.cpu.id,
        hctx: cx.set().hctx_for(cx.cpu.id, op, polled),
        kworker: 0,
    }
}

impl<P: Scheduler + 'static> Locked<P> {
    /// Under the lock, up to the release.
    pub(super) fn merge_section(&self, cx: &mut Cx<'_>, bio: BioId) -> Merged {
        let on = called_on(cx, bio);
        let (q, cpu) = (cx.q, &mut *cx.cpu);
        let now = self.now_of_task(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        let mut policy = self.policy.held(cpu);
        policy.called_on(on);
        let merge = policy.merge_bio(&mut pool, bio, now, merging(q));
        let runs = policy.take_run();
        drop(policy);
        let traced = Traced::bio(cpu.tracing, &pool, bio);
        let BioMerge::Into { side, absorbed, .. } = merge else {
            drop(pool);
            self.emit_log(q, cpu);
            self.end_section(q, cpu);
            if runs {
                cx.kick_all();
            }
            self.policy.release(cx.cpu);
            return Merged::No;
        };
        let gone = absorbed.map(|rq| {
            pool[rq].place = Place::Path;
            Traced::rq(cpu.tracing, &pool, rq)
        });
        drop(pool);
        let mut log = self.messages(q, cpu);
        match side {
            Side::Back => log.trace(TraceAction::BackMerge, traced, cpu),
            Side::Front => log.trace(TraceAction::FrontMerge, traced, cpu),
            Side::Discard => {}
        }
        if let Some(gone) = gone {
            log.swallow(gone, cpu);
        }
        log.rest(cpu);
        self.end_section(q, cpu);
        if runs {
            cx.kick_all();
        }
        self.policy.release(cx.cpu);
        Merged::Into { absorbed }
    }
}
