//! The search for a merge of a bio: in the plug, the scheduler, or this CPU's software queue.
//!
//! Kernel: blk_mq_attempt_bio_merge(), blk_attempt_plug_merge(), blk_mq_sched_bio_merge() (6.1.192,
//! 6.12.117).

use super::{At, SubmitPath};
use crate::elevator::{self, Merged};
use crate::env::{Cpu, TraceAction};
use crate::merge::{self, BioTry, Side};
use crate::queue::BlkMq;
use crate::request::{Place, Plugged, RequestId};
use crate::rules::CachedRequest;
use crate::step::{Cx, Next, Sub, Traced, trace_rq};
use crate::tags::HctxType;

impl SubmitPath {
    /// blk_attempt_plug_merge(): one request is tried. The newest, or, if that is of another queue
    /// and the plug has held several, the first of this one's in its order.
    pub(super) fn plug_merge(&mut self, cx: &mut Cx<'_>) -> bool {
        let newest = cx.cpu.plug.newest(cx.rules().plug_order);
        let Some(newest) = newest.filter(|_| cx.cpu.plug.active) else {
            return false;
        };
        let found = match newest.queue == self.queue {
            true => Some(newest),
            false if !cx.cpu.plug.multiple_queues => None,
            false => {
                let mut entries = cx.cpu.plug.list.iter(cx.mq);
                entries.find(|entry| entry.queue == self.queue)
            }
        };
        let Some(Plugged { rq: last, .. }) = found else {
            return false;
        };
        let mut pool = cx.pool();
        let outcome = merge::try_bio_merge(&mut pool, last, self.bio, &cx.q.settings.limits);
        let traced = Traced::bio(cx.cpu.tracing, &pool, self.bio);
        drop(pool);
        let BioTry::Merged(side) = outcome else {
            return false;
        };
        self.trace_merge(cx.cpu, side, traced);
        true
    }

    /// The bio needs no request any more. v6.1 took a cached one before the search.
    pub(super) fn merged(&mut self, cx: &mut Cx<'_>) -> Next {
        self.drop_cached_rq(cx);
        match self.cached_rq {
            Some(_) => self.to(At::Absorbed),
            None => self.next_part(cx),
        }
    }

    /// Records the request to be freed, while the bio is still valid.
    pub(super) fn drop_cached_rq(&mut self, cx: &mut Cx<'_>) {
        if cx.rules().cached_request == CachedRequest::Freed {
            self.cached_rq = self.take_cached_rq(cx);
        }
        if let Some(rq) = self.cached_rq {
            cx.pool()[rq].place = Place::Path;
        }
    }

    /// Takes the next cached request, if it fits the bio: of a fitting type of hctx, and for a
    /// flush as the bio is or is not (blk_mq_get_cached_request).
    pub(super) fn take_cached_rq(&self, cx: &mut Cx<'_>) -> Option<RequestId> {
        let rq = self.find_cached_rq(cx.mq, cx.cpu)?;
        let mut pool = cx.pool();
        cx.cpu.plug.cached.remove(&mut pool, rq);
        Some(rq)
    }

    /// The same without taking it.
    pub(super) fn find_cached_rq(&self, mq: &BlkMq, cpu: &Cpu) -> Option<RequestId> {
        let rq = cpu.plug.cached.first()?;
        if cpu.plug.cached_queue != self.queue {
            return None;
        }
        let pool = mq.queue(self.queue).pool.held(cpu.id);
        let bio = pool.bio(self.bio);
        let polled = bio.flags.polled && mq.set_of(self.queue).counts.poll > 0;
        let wanted = HctxType::of(bio.op, polled);
        let has = mq.set_of(self.queue).kind_of(pool[rq].hctx);
        let fits = wanted == has || (wanted, has) == (HctxType::Read, HctxType::Default);
        (fits && pool[rq].flags.is_flush() == bio.flags.is_flush()).then_some(rq)
    }

    /// The scheduler is asked for a merge. The cached request that v6.1 takes for the bio before
    /// that, and frees if it merges, is looked up now: a merged bio may not be read any more.
    pub(super) fn ask_elevator(&mut self, cx: &mut Cx<'_>) -> Next {
        if cx.rules().cached_request == CachedRequest::Freed {
            self.cached_rq = self.find_cached_rq(cx.mq, cx.cpu);
        }
        self.at = At::ElevatorMerge;
        self.merge = Some(elevator::bio_merge::State::new(self.bio));
        self.step(cx)
    }

    fn trace_merge(&self, cpu: &mut Cpu, side: Side, traced: Option<Traced>) {
        match side {
            Side::Back => trace_rq(cpu, self.queue, TraceAction::BackMerge, traced),
            Side::Front => trace_rq(cpu, self.queue, TraceAction::FrontMerge, traced),
            Side::Discard => {}
        }
    }

    /// The result of the scheduler's search for a merge.
    pub(super) fn merge_step(&mut self, step: Sub<Merged>) -> Next {
        let merged = match step {
            Sub::Wait(next) => return next,
            Sub::Done(merged) => merged,
        };
        self.merge = None;
        match merged {
            Merged::No => {
                self.cached_rq = None;
                self.to(At::Alloc)
            }
            Merged::Into { absorbed } => {
                self.merged = true;
                self.absorbed = absorbed;
                self.to(At::Absorbed)
            }
        }
    }

    /// The bio is part of a request: its cached request is released.
    pub(super) fn release_cached_rq(&mut self, cx: &mut Cx<'_>) {
        self.merged = false;
        if let Some(rq) = self.cached_rq {
            let mut pool = cx.pool();
            cx.cpu.plug.cached.remove(&mut pool, rq);
            pool[rq].place = Place::Path;
        }
    }

    /// The list of a software queue for the bio's operation.
    pub(super) fn list_kind(&self, mq: &BlkMq) -> usize {
        let q = mq.queue(self.queue);
        let pool = q
            .with_pool(|pool| HctxType::of(pool.bio(self.bio).op, pool.bio(self.bio).flags.polled));
        let counts = mq.set_of(self.queue).counts;
        let own = [counts.default, counts.read, counts.poll][pool as usize];
        if own == 0 { 0 } else { pool as usize }
    }

    pub(super) fn ctx_merge(&mut self, cx: &mut Cx<'_>) -> Next {
        let kind = self.list_kind(cx.mq);
        let ctx = &cx.q.ctxs[usize::from(cx.cpu.id.0)];
        let mut pool = cx.pool();
        let tracing = cx.cpu.tracing;
        let lists = ctx.lists.held(cx.cpu);
        let limits = &cx.q.settings.limits;
        let merged = merge::try_bio_merge_list(&mut pool, &lists[kind], self.bio, limits);
        let traced = Traced::bio(tracing, &pool, self.bio);
        drop(lists);
        drop(pool);
        let next = match merged {
            Some((_, side)) => {
                self.trace_merge(cx.cpu, side, traced);
                self.merged(cx)
            }
            None => self.to(At::Alloc),
        };
        ctx.lists.release(cx.cpu);
        next
    }
}
