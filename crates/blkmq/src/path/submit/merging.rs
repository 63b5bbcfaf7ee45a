//! Offering a bio to what is queued already: the plug, the scheduler, or this CPU's software queue.
//!
//! Kernel: blk_mq_attempt_bio_merge(), blk_attempt_plug_merge(), dd_bio_merge(),
//! blk_mq_sched_bio_merge() (6.1.192, 6.12.117).

use super::{At, SubmitPath};
use crate::elevator::{BioMerge, Scheduler};
use crate::env::{Cpu, Env, Lock, Slab, TraceAction};
use crate::merge::{self, BioTry, Merging, Side};
use crate::path::{Next, Traced, insert, trace_rq};
use crate::queue::{BlkMq, RequestQueue};
use crate::request::Place;
use crate::rules::SpareRequest;
use crate::tags::HctxType;

impl SubmitPath {
    /// blk_attempt_plug_merge(): only the request added last is tried.
    pub(super) fn plug_merge<E: Env>(&mut self, q: &RequestQueue<E>, cpu: &mut Cpu) -> bool {
        if !cpu.plug.active || cpu.plug.queue != self.queue {
            return false;
        }
        let Some(last) = cpu.plug.list.last() else {
            return false;
        };
        let mut pool = q.pool.held(cpu.id);
        let outcome = merge::try_bio_merge(&mut pool, last, self.bio, &q.settings.limits);
        let traced = Traced::bio(&pool, self.bio);
        drop(pool);
        let BioTry::Merged(side) = outcome else {
            return false;
        };
        self.trace_merge(cpu, side, traced);
        true
    }

    /// The bio needs no request any more. v6.1 took one that was allocated ahead before it knew.
    pub(super) fn merged<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        self.drop_spare(mq, cpu);
        match self.spare {
            Some(_) => self.to(At::Absorbed),
            None => self.next_part(),
        }
    }

    /// Notes what is to be freed, while the bio is still known to be there.
    pub(super) fn drop_spare<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) {
        let q = mq.queue(self.queue);
        if q.settings.rules.spare_request == SpareRequest::Freed {
            self.spare = self.take_spare(mq, cpu);
        }
        if let Some(rq) = self.spare {
            q.pool.held(cpu.id)[rq].place = Place::Path;
        }
    }

    /// Takes the next request that was allocated ahead, if the bio may have it: of a fitting type
    /// of hctx, and for a flush as the bio is or is not (blk_mq_get_cached_request).
    pub(super) fn take_spare<E: Env>(
        &self,
        mq: &BlkMq<E>,
        cpu: &mut Cpu,
    ) -> Option<crate::request::RequestId> {
        let rq = cpu.plug.cached.first()?;
        if cpu.plug.queue != self.queue {
            return None;
        }
        let mut pool = mq.queue(self.queue).pool.held(cpu.id);
        let bio = pool.bio(self.bio);
        let polled = bio.flags.polled && mq.set_of(self.queue).counts.poll > 0;
        let wanted = HctxType::of(bio.op, polled);
        let has = mq.set_of(self.queue).kind_of(pool[rq].hctx);
        let fits = wanted == has || (wanted, has) == (HctxType::Read, HctxType::Default);
        if !fits || pool[rq].flags.is_flush() != bio.flags.is_flush() {
            return None;
        }
        cpu.plug.cached.remove(&mut pool, rq);
        Some(rq)
    }

    fn trace_merge(&self, cpu: &mut Cpu, side: Side, traced: Traced) {
        match side {
            Side::Back => trace_rq(cpu, self.queue, TraceAction::BackMerge, traced),
            Side::Front => trace_rq(cpu, self.queue, TraceAction::FrontMerge, traced),
            Side::Discard => {}
        }
    }

    pub(super) fn elevator_merge<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        let merging = Merging {
            limits: &q.settings.limits,
            nomerges: q.settings.nomerges,
        };
        let mut pool = q.pool.held(cpu.id);
        let merge = q.elevator.held(cpu).merge_bio(&mut pool, self.bio, merging);
        let traced = Traced::bio(&pool, self.bio);
        let BioMerge::Into { side, absorbed, .. } = merge else {
            drop(pool);
            insert::note_work(q, cpu);
            q.elevator.release(cpu);
            return self.to(At::Alloc);
        };
        let gone = absorbed.map(|rq| {
            pool[rq].place = Place::Path;
            Traced::rq(&pool, rq)
        });
        drop(pool);
        self.trace_merge(cpu, side, traced);
        if let Some(gone) = gone {
            trace_rq(cpu, self.queue, TraceAction::BackMerge, gone);
        }
        insert::note_work(q, cpu);
        self.absorbed = absorbed;
        self.drop_spare(mq, cpu);
        q.elevator.release(cpu);
        self.to(At::Absorbed)
    }

    /// Which of a software queue's lists the bio's operation uses.
    pub(super) fn list_kind<E: Env>(&self, mq: &BlkMq<E>) -> usize {
        let q = mq.queue(self.queue);
        let pool = q
            .with_pool(|pool| HctxType::of(pool.bio(self.bio).op, pool.bio(self.bio).flags.polled));
        let counts = mq.set_of(self.queue).counts;
        let own = [counts.default, counts.read, counts.poll][pool as usize];
        if own == 0 { 0 } else { pool as usize }
    }

    pub(super) fn ctx_merge<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        let kind = self.list_kind(mq);
        let q = mq.queue(self.queue);
        let ctx = &q.ctxs[usize::from(cpu.id.0)];
        let mut pool = q.pool.held(cpu.id);
        let lists = ctx.lists.held(cpu);
        let limits = &q.settings.limits;
        let merged = merge::try_bio_merge_list(&mut pool, &lists[kind], self.bio, limits);
        let traced = Traced::bio(&pool, self.bio);
        drop(lists);
        drop(pool);
        let next = match merged {
            Some((_, side)) => {
                self.trace_merge(cpu, side, traced);
                self.merged(mq, cpu)
            }
            None => self.to(At::Alloc),
        };
        ctx.lists.release(cpu);
        next
    }
}
