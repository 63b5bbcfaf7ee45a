//! Driver tags: allocation for a waiting request, and free.
//!
//! Kernel: __blk_mq_alloc_driver_tag(), blk_mq_put_driver_tag() in block/blk-mq.c.

use super::OwnedTags;
use super::may_queue::{self, hctx_may_queue, inc_active_requests};
use super::run::wake;
use super::sbitmap::{GetAt as At, TagMap, sbitmap_get, sbitmap_queue_get_batch};
use super::token::dequeued;
use crate::elevator::{TagMapSize, Wanted};
use crate::env::Cpu;
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, IoContextId, Op, OpFlags, Place, QueueId, Request, RequestId, Tag};
use crate::rules::{ActiveCount, FlushData};
use crate::sbitmap::{Put, PutStep, Sbitmap, Woken};
use crate::step::{Cx, Next, Steps};
use crate::waiter::Waiter;
use steps::steps;

/// A search of a path that steps it itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Search {
    /// No search in progress.
    #[default]
    No,
    Identity(search_identity::State),
    Batch(sbitmap_queue_get_batch::State),
}

impl Search {
    pub(super) fn stage(&self) -> Option<&'static str> {
        match self {
            Search::No => None,
            Search::Identity(search) => search.stage(),
            Search::Batch(search) => search.stage(),
        }
    }

    /// A driver tag that was found in a set that queues share, not yet stored in a request.
    pub(super) fn owned_tag(&self, hctx: HctxId) -> Option<OwnedTags> {
        let Search::Identity(search) = self else {
            return None;
        };
        search.bit.map(|bit| OwnedTags {
            hctx,
            driver: Some(bit),
            sched: None,
        })
    }
}

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
        cx.pool()[rq].uncounted = false;
    }
    true
}

/// __blk_mq_get_tag(): the tag of a new request, the scheduler's, or the driver's without one, from
/// the first `shallow` of each word. `hint`: this CPU's, if it was read already. `again`: not the
/// first search of its allocation.
#[steps(stages)]
pub(super) fn search_identity(
    cx: &mut Cx<'_>,
    hctx: HctxId,
    hint: Option<u32>,
    shallow: Option<u32>,
    again: bool,
) -> Option<u32> {
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
    bit
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

/// Takes the slot of an identifying tag that was found.
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
    let counted = !core::mem::take(&mut rq.uncounted);
    Put::one(tag.0, rq.ctx).counted(counted)
}

/// The same of a request that keeps its scheduler tag (__blk_mq_put_driver_tag()): v6.1 counts it
/// out when the tag is free.
pub(super) fn put_driver_alone(q: &RequestQueue, rq: &mut Request) -> Put {
    let put = put_driver(rq);
    match q.settings.rules.active_count {
        ActiveCount::WithTag => put,
        ActiveCount::AtIssue => put.counted_after(),
    }
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

/// blk_mq_put_tag(), with the wake-up of waiters.
#[steps]
pub(super) fn put_tag(cx: &mut Cx<'_>, tags: TagMap, mut put: Put) {
    while let Some(next) = step_put(&mut put, cx.mq, cx.q.id, tags, cx.cpu) {
        at!(_, next);
    }
}

impl put_tag::State {
    /// The free of a tag that this path runs.
    pub(super) fn stage_in(path: &impl Steps) -> Option<&'static str> {
        let state = path.find::<put_tag::State>()?;
        Some(state.put.stage().name())
    }

    /// The tag that this path frees, while its bit is set.
    pub(super) fn freed_by(path: &impl Steps) -> Option<OwnedTags> {
        let state = path.find::<put_tag::State>()?;
        let bit = state.put.owned_bit();
        bit?;
        let none = OwnedTags {
            hctx: HctxId(0),
            driver: None,
            sched: None,
        };
        match state.tags {
            TagMap::Driver(hctx) => Some(OwnedTags {
                hctx,
                driver: bit,
                ..none
            }),
            TagMap::Sched(hctx) => Some(OwnedTags {
                hctx,
                sched: bit,
                ..none
            }),
            TagMap::Token(_) => None,
        }
    }
}

/// One step of a free. `None` when it is complete.
pub(super) fn step_put(
    put: &mut Put,
    mq: &BlkMq,
    queue: QueueId,
    map: TagMap,
    cpu: &mut Cpu,
) -> Option<Next> {
    let q = mq.queue(queue);
    let set = &mq.sets[q.set.index()];
    let tags = match map {
        TagMap::Driver(hctx) if set.queue_shared() && put.count_out() => {
            may_queue::count(&mut Cx::of(mq, queue, cpu), hctx, -1);
            return (!put.is_over()).then_some(Next::Step);
        }
        TagMap::Driver(hctx) => set.driver_of(hctx),
        TagMap::Sched(hctx) => q.sched_of(hctx),
        TagMap::Token(map) => &q.tokens[usize::from(map)].map,
    };
    let out = |cpu: &mut Cpu, waiter| match waiter {
        // A task that has found a tag runs, though it may still have an entry: it is passed over.
        Waiter::Task(task) => match mq.task_waits(task).test_and_clear(cpu) {
            true => Woken::Dequeued,
            false => Woken::AlreadyRunning,
        },
        Waiter::Hctx { queue, hctx, .. } => {
            let q = mq.queue(queue);
            if let TagMap::Token(map) = map {
                let waits = &q.tokens[usize::from(map)].waits;
                dequeued(&waits[usize::from(hctx.0)], cpu);
            } else {
                q.dirty_tags_line(hctx, cpu);
                q.hctx(hctx).dispatch_wait.clear(cpu);
            }
            wake(q, hctx, cpu)
        }
    };
    match put.step(tags, q.settings.rules.wake_scan, cpu, out) {
        PutStep::Step => Some(Next::Step),
        PutStep::Lock(ws_index) => Some(map.wait_lock(&Cx::of(mq, queue, cpu), ws_index)),
        PutStep::Done if set.queue_shared() && put.is_left_to_count() => Some(Next::Step),
        PutStep::Done => None,
    }
}
