//! Driver tags: allocation for a waiting request, and free.
//!
//! Kernel: __blk_mq_alloc_driver_tag(), blk_mq_put_driver_tag() in block/blk-mq.c.

use super::may_queue::{self, hctx_may_queue, inc_active_requests};
use super::sbitmap::{Counted, GetAt as At, Put, TagMap, sbitmap_get};
use crate::elevator::{TagMapSize, Wanted};
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, IoContextId, Op, OpFlags, Place, Request, RequestId, Tag};
use crate::rules::{ActiveCount, FlushData};
use crate::sbitmap::Sbitmap;
use crate::step::Cx;
use steps::steps;

/// blk_mq_get_driver_tag(): false if none is free. A request that has its tag and does not count
/// yet is only counted.
#[steps(stages)]
pub(super) fn get_driver_tag(cx: &mut Cx<'_>, rq: RequestId, hctx: HctxId) -> bool {
    if cx.pool()[rq].tag.is_some() {
        may_queue::count(cx, hctx, 1);
        cx.pool()[rq].uncounted = false;
        return true;
    }
    // __blk_mq_alloc_driver_tag()
    if cx.set().queue_shared() && !sub!(hctx_may_queue(hctx, false)) {
        return false;
    }
    let hint: u32 = cx.set().driver_of(hctx).hint_before(cx.cpu);
    if cx.set().queue_shared() {
        at!(Search);
    }
    let Some(bit) = sub!(sbitmap_get(TagMap::Driver(hctx), hint, None)) else {
        return false;
    };
    let before = cx.pool()[rq].tag.replace(Tag(bit));
    debug_assert_eq!(before, None, "it has a driver tag");
    if cx.set().queue_shared() {
        sub!(inc_active_requests(hctx));
    }
    true
}

/// __blk_mq_get_tag(): a new request with its tag, the scheduler's, or the driver's without one,
/// from the first `shallow` of each word. `hint`: this CPU's, if it was read already. `again`: not
/// the first search of its allocation.
#[steps(stages)]
pub(super) fn try_get_tag(
    cx: &mut Cx<'_>,
    hctx: HctxId,
    hint: Option<u32>,
    shallow: Option<u32>,
    again: bool,
) -> Option<RequestId> {
    if shares_tags(cx.mq, cx.q) && !sub!(hctx_may_queue(hctx, again)) {
        return None;
    }
    let map = identity_map(cx.mq, cx.q, hctx);
    let from: u32 = hint.unwrap_or_else(|| map.hint_before(cx.cpu));
    if shares_tags(cx.mq, cx.q) {
        at!(Search);
    }
    let tags = TagMap::of_requests(cx.q, hctx);
    let bit: Option<u32> = sub!(sbitmap_get(tags, from, shallow));
    if bit.is_some() && shares_tags(cx.mq, cx.q) && counts_with_tag(cx.q) {
        sub!(inc_active_requests(hctx));
    }
    bit.map(|bit| adopt(cx, hctx, bit))
}

/// The limit_depth() arguments of a request with a bio; none if it will not enter the scheduler.
pub(super) fn wanted(
    q: &RequestQueue,
    (op, flags, io_context): (Op, OpFlags, IoContextId),
) -> Option<Wanted> {
    let around = match q.settings.rules.flush_data {
        FlushData::DispatchList => flags.is_flush(),
        FlushData::Scheduler => op == Op::Flush,
    };
    (q.has_elevator() && !around).then(|| Wanted {
        op,
        flags,
        io_context,
        map: TagMapSize {
            shift: q.sched[0].shift,
            nr_requests: q.settings.nr_requests,
        },
    })
}

/// blk_mq_rq_ctx_init() of the request of a tag that was found.
pub(super) fn adopt(cx: &mut Cx<'_>, hctx: HctxId, bit: u32) -> RequestId {
    let rq = cx.q.slot(identity_index(cx.mq, cx.q, hctx), bit);
    let mut pool = cx.pool();
    debug_assert_eq!(pool[rq].place, Place::Free, "{rq:?} of a tag that was free");
    pool.reset(rq);
    let r = &mut pool[rq];
    r.place = Place::Path;
    r.ctx = cx.cpu.id;
    r.hctx = hctx;
    if cx.q.has_elevator() {
        r.internal_tag = Some(Tag(bit));
    } else {
        r.tag = Some(Tag(bit));
        r.uncounted = shares_tags(cx.mq, cx.q) && !counts_with_tag(cx.q);
    }
    rq
}

/// It has no driver tag, or has one but does not count yet.
pub(super) fn wants_driver_tag(rq: &Request) -> bool {
    rq.tag.is_none() || rq.uncounted
}

fn counts_with_tag(q: &RequestQueue) -> bool {
    q.settings.rules.active_count == ActiveCount::WithTag
}

/// Begins the free of the driver tag of `rq`, which has one: the request counts no more as one with
/// a tag, then the tag is free.
pub(super) fn put_driver(rq: &mut Request) -> Put {
    let tag = rq.tag.take().expect("it has a driver tag");
    let counted = match core::mem::take(&mut rq.uncounted) {
        true => Counted::No,
        false => Counted::Before,
    };
    Put {
        bit: tag.0,
        owner: rq.ctx,
        counted,
    }
}

/// The same of a request that keeps its scheduler tag (__blk_mq_put_driver_tag()): v6.1 counts it
/// out when the tag is free.
pub(super) fn put_driver_alone(q: &RequestQueue, rq: &mut Request) -> Put {
    let mut put = put_driver(rq);
    if put.counted == Counted::Before && !counts_with_tag(q) {
        put.counted = Counted::After;
    }
    put
}

/// The tag is a driver tag, and other queues use the same map.
pub(super) fn shares_tags(mq: &BlkMq, q: &RequestQueue) -> bool {
    !q.has_elevator() && mq.set_of(q.id).queue_shared()
}

/// The map of tags that identify requests: the scheduler's, or the driver's without one.
pub(super) fn identity_map<'a>(mq: &'a BlkMq, q: &'a RequestQueue, hctx: HctxId) -> &'a Sbitmap {
    if q.has_elevator() {
        q.sched_of(hctx)
    } else {
        mq.set_of(q.id).driver_of(hctx)
    }
}

/// Index of that map among its kind.
pub(super) fn identity_index(mq: &BlkMq, q: &RequestQueue, hctx: HctxId) -> usize {
    if q.has_elevator() {
        q.sched_index(hctx)
    } else {
        mq.set_of(q.id).driver_index(hctx)
    }
}
