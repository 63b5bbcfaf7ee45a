//! The search for a merge of a bio: in the plug, the scheduler, or this CPU's software queue; and
//! the cached requests of the plug.
//!
//! Kernel: blk_mq_attempt_bio_merge(), blk_attempt_plug_merge(), blk_mq_sched_bio_merge(),
//! blk_mq_get_cached_request() (6.1.192, 6.12.117).

use super::At;
use crate::call::Call;
use crate::elevator::{Merged, bio_merge};
use crate::env::TraceAction;
use crate::merge::{self, BioTry, Side};
use crate::queue::LockKind;
use crate::request::{BioId, Place, Plugged, RequestId};
use crate::rules::{CachedRequest, NoMerges, PlugMerge, PlugOrder};
use crate::step::{Cx, Traced, trace_rq};
use crate::tags::HctxType;
use steps::steps;

/// blk_mq_attempt_bio_merge(). True if the bio is part of a request: v6.1 frees the cached one that
/// it took for the bio before.
#[steps]
pub(super) fn attempt_bio_merge(cx: &mut Cx<'_>, bio: BioId) -> bool {
    let never = cx.q.settings.nomerges == NoMerges::Never;
    if never || !merge::bio_is_mergeable(cx.pool().bio(bio)) {
        return false;
    }
    if plug_merge(cx, bio) {
        let cached = drop_cached_rq(cx, bio);
        sub!(free_cached_rq(cached));
        return true;
    }
    if cx.q.has_elevator() {
        // Looked up now: a merged bio may not be read any more.
        let frees = cx.rules().cached_request == CachedRequest::Freed;
        let cached: Option<RequestId> = find_cached_rq(cx, bio).filter(|_| frees);
        /// The scheduler's bio_merge: its section, where that has no name of its own.
        let Merged::Into { absorbed } = sub!(ElevatorMerge, bio_merge(bio)) else {
            return false;
        };
        let absorbed: Option<RequestId> = absorbed;
        at!(Absorbed);
        if let Some(rq) = cached {
            let mut pool = cx.pool();
            cx.cpu.plug.cached.remove(&mut pool, rq);
            pool[rq].place = Place::Path;
        }
        if let Some(rq) = absorbed.filter(|_| cached.is_some()) {
            let queue = cx.q.id;
            call!(Absorbed, Call::Free { queue, rq });
        }
        if let Some(rq) = cached.or(absorbed) {
            let queue = cx.q.id;
            call!(Rest, Call::Free { queue, rq });
        }
        return true;
    }
    if !cx.q.settings.should_merge {
        return false;
    }
    /// Has this CPU's software queue any requests?
    at!(CtxPending);
    let kind = list_kind(cx, bio);
    if !cx.q.ctxs[usize::from(cx.cpu.id.0)].pending[kind].test(cx.cpu) {
        return false;
    }
    /// Under ctx->lock: try to merge.
    lock!(CtxMerge, cx.lock(LockKind::Ctx, u32::from(cx.cpu.id.0)));
    let merged: bool = ctx_merge(cx, bio);
    let cached = merged.then(|| drop_cached_rq(cx, bio)).flatten();
    cx.q.ctxs[usize::from(cx.cpu.id.0)].lists.release(cx.cpu);
    sub!(free_cached_rq(cached));
    merged
}

/// blk_mq_free_request() of a cached request that the bio does not need.
#[steps]
fn free_cached_rq(cx: &mut Cx<'_>, cached: Option<RequestId>) {
    if let Some(rq) = cached {
        let rq: RequestId = rq;
        /// Free requests that were absorbed, or are not needed any more.
        at!(Absorbed);
        let queue = cx.q.id;
        call!(Rest, Call::Free { queue, rq });
    }
}

/// blk_attempt_plug_merge(). One request is tried: the newest, or, if that is of another queue and
/// the plug has held several, the first of this one's in its order. Or all are, the newest first.
fn plug_merge(cx: &mut Cx<'_>, bio: BioId) -> bool {
    if cx.rules().plug_merge == PlugMerge::Any {
        let queue = cx.q.id;
        let count = cx.cpu.plug.list.len();
        let newest_first = cx.rules().plug_order == PlugOrder::Lifo;
        return (0..count).any(|back| {
            let at = if newest_first { back } else { count - 1 - back };
            let entry = cx.cpu.plug.list.iter(cx.mq).nth(at);
            entry.is_some_and(|entry| entry.queue == queue && merge_with(cx, entry.rq, bio))
        });
    }
    let newest = cx.cpu.plug.newest(cx.rules().plug_order);
    let Some(newest) = newest.filter(|_| cx.cpu.plug.active) else {
        return false;
    };
    let found = match newest.queue == cx.q.id {
        true => Some(newest),
        false if !cx.cpu.plug.multiple_queues => None,
        false => {
            let mut entries = cx.cpu.plug.list.iter(cx.mq);
            entries.find(|entry| entry.queue == cx.q.id)
        }
    };
    found.is_some_and(|Plugged { rq, .. }| merge_with(cx, rq, bio))
}

/// blk_attempt_bio_merge().
#[expect(
    clippy::inline_always,
    reason = "two callers, one of them a call a bio, measured"
)]
#[inline(always)]
fn merge_with(cx: &mut Cx<'_>, rq: RequestId, bio: BioId) -> bool {
    let mut pool = cx.pool();
    let outcome = merge::try_bio_merge(&mut pool, rq, bio, &cx.q.settings.limits);
    let traced = Traced::bio(cx.cpu.tracing, &pool, bio);
    drop(pool);
    let BioTry::Merged(side) = outcome else {
        return false;
    };
    trace_merge(cx, side, traced);
    true
}

/// blk_mq_sched_bio_merge() without scheduler, under ctx->lock.
fn ctx_merge(cx: &mut Cx<'_>, bio: BioId) -> bool {
    let kind = list_kind(cx, bio);
    let tracing = cx.cpu.tracing;
    let mut pool = cx.pool();
    let lists = cx.q.ctxs[usize::from(cx.cpu.id.0)].lists.held(cx.cpu);
    let limits = &cx.q.settings.limits;
    let merged = merge::try_bio_merge_list(&mut pool, &lists[kind], bio, limits);
    let traced = Traced::bio(tracing, &pool, bio);
    drop(lists);
    drop(pool);
    let Some((_, side)) = merged else {
        return false;
    };
    trace_merge(cx, side, traced);
    true
}

fn trace_merge(cx: &mut Cx<'_>, side: Side, traced: Option<Traced>) {
    match side {
        Side::Back => trace_rq(cx.cpu, cx.q.id, TraceAction::BackMerge, traced),
        Side::Front => trace_rq(cx.cpu, cx.q.id, TraceAction::FrontMerge, traced),
        Side::Discard => {}
    }
}

/// The list of a software queue for the bio's operation.
fn list_kind(cx: &Cx<'_>, bio: BioId) -> usize {
    let pool = cx.pool();
    let bio = pool.bio(bio);
    let kind = HctxType::of(bio.op, bio.flags.polled);
    let counts = cx.set().counts;
    let own = [counts.default, counts.read, counts.poll][kind as usize];
    if own == 0 { 0 } else { kind as usize }
}

/// The cached request that v6.1 took for a bio that needs none, to be freed.
pub(super) fn drop_cached_rq(cx: &mut Cx<'_>, bio: BioId) -> Option<RequestId> {
    if cx.rules().cached_request != CachedRequest::Freed {
        return None;
    }
    let rq = take_cached_rq(cx, bio)?;
    cx.pool()[rq].place = Place::Path;
    Some(rq)
}

/// blk_mq_get_cached_request(): the next cached request, if it fits the bio: of a fitting type
/// of hctx, and for a flush if the bio is one.
pub(super) fn take_cached_rq(cx: &mut Cx<'_>, bio: BioId) -> Option<RequestId> {
    let rq = find_cached_rq(cx, bio)?;
    cx.cpu.plug.cached.remove(&mut cx.pool(), rq);
    Some(rq)
}

/// The same without taking it.
pub(super) fn find_cached_rq(cx: &Cx<'_>, bio: BioId) -> Option<RequestId> {
    let rq = cx.cpu.plug.cached.first()?;
    if cx.cpu.plug.cached_queue != cx.q.id {
        return None;
    }
    let pool = cx.pool();
    let bio = pool.bio(bio);
    let polled = bio.flags.polled && cx.set().counts.poll > 0;
    let wanted = HctxType::of(bio.op, polled);
    let has = cx.set().kind_of(pool[rq].hctx);
    let fits = wanted == has || (wanted, has) == (HctxType::Read, HctxType::Default);
    (fits && pool[rq].flags.is_flush() == bio.flags.is_flush()).then_some(rq)
}
