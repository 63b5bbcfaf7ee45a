//! Insertion of one request into the scheduler, a software queue or a dispatch list.
//!
//! Plug, requeue and direct issue use these critical sections. Kernel: blk_mq_insert_request()
//! (v6.12), blk_mq_sched_insert_request() (v6.1), blk_mq_insert_requests(). Insertion into a
//! scheduler: `elevator/`.

use crate::call::{Call, Inserts, ThenRun};
use crate::elevator::insert_requests;
use crate::env::TraceAction;
use crate::list::QueueList;
use crate::queue::{LockKind, RequestQueue};
use crate::request::{CpuId, HctxId, Op, Place, Request, RequestId};
use crate::rules::{Fix, FlushData, StoppedIssue};
use crate::step::{Cx, Traced, labels, trace_rq};
use crate::tags::{HctxType, TagSet};
use steps::steps;

pub use insert_request::State as InsertPath;

/// blk_mq_insert_request(); with `bypass` blk_mq_request_bypass_insert(), to that end of the
/// dispatch list which `head` says.
#[steps(path, keep(rq))]
pub fn insert_request(cx: &mut Cx<'_>, rq: RequestId, head: bool, bypass: bool, run: ThenRun) {
    /// Where does it go?
    at!(Route);
    cx.q.touch_elevator(&cx.pool());
    // Once inserted, the request may end before the queue is run.
    let hctx: HctxId = cx.pool()[rq].hctx;
    if bypass || goes_around(cx, rq) {
        let head: bool = head || !bypass;
        /// Under hctx->lock.
        lock!(Dispatch, cx.lock(LockKind::Dispatch, u32::from(hctx.0)));
        insert_dispatch(cx, rq, head);
        at!(Run);
    } else if cx.q.has_elevator() {
        let mut list = QueueList::new();
        list.push_back(&mut cx.pool(), rq);
        /// The scheduler's insert_requests: its section, where that has no name of its own.
        if sub!(Elevator, insert_requests(list, head)) {
            at!(Run);
        }
    } else {
        let ctx = cx.pool()[rq].ctx;
        /// Under ctx->lock.
        lock!(Ctx, cx.lock(LockKind::Ctx, u32::from(ctx.0)));
        let mut list = QueueList::new();
        list.push_back(&mut cx.pool(), rq);
        insert_ctx(cx, &mut list, head);
        at!(Run);
    }
    if run != ThenRun::No {
        let in_background = run == ThenRun::Background;
        /// Run the queue, if asked.
        call!(Run, Call::run(cx.q.id, hctx, in_background));
    }
}

labels! {
    pub enum At in "insert" of insert_request
}

/// v6.1 keeps every request of a flush sequence out of the scheduler, v6.12 only the flush itself.
fn goes_around(cx: &Cx<'_>, rq: RequestId) -> bool {
    let rq = &cx.pool()[rq];
    let of_flush = match cx.rules().flush_data {
        FlushData::DispatchList => rq.flush_seq,
        FlushData::Scheduler => rq.op == Op::Flush,
    };
    of_flush || rq.passthrough && cx.rules().fixes.has(Fix::PassthroughAround)
}

impl Inserts {
    /// Direct issue found the queue stopped or quiesced: the request is inserted, and counts as
    /// issued.
    pub(super) fn insert_stopped(q: &RequestQueue, rq: RequestId) -> Inserts {
        let run = match q.settings.rules.stopped_issue {
            StoppedIssue::Insert | StoppedIssue::Unseen => ThenRun::No,
            StoppedIssue::InsertAndRun => ThenRun::Here,
        };
        Inserts::new(q.id, rq, false, run)
    }
}

impl InsertPath {
    pub(super) fn inserts(&self) -> RequestId {
        self.rq
    }
}

/// Under ctx->lock: appends the list (or puts it at the head), marks the ctx and releases.
pub(super) fn insert_ctx(cx: &mut Cx<'_>, list: &mut QueueList, head: bool) {
    let mut pool = cx.pool();
    let Some(first) = list.first() else {
        unreachable!("an empty list is not inserted");
    };
    let (ctx_id, hctx_id, kind) = ctx_of(cx.set(), &pool[first]);
    let mut next = Some(first);
    while let Some(rq) = next {
        pool[rq].place = Place::Ctx;
        let traced = Traced::rq(cx.cpu.tracing, &pool, rq);
        next = list.next(&pool, rq);
        trace_rq(cx.cpu, cx.q.id, TraceAction::Insert, traced);
    }
    let ctx = &cx.q.ctxs[usize::from(ctx_id.0)];
    let mut lists = ctx.lists.held(cx.cpu);
    if head {
        lists[kind].splice_front(&mut pool, list);
    } else {
        lists[kind].splice_back(&mut pool, list);
    }
    drop(lists);
    drop(pool);
    let (word, mask) = cx.hctx(hctx_id).ctx_word(ctx.index_hw[kind]);
    word.fetch_or(cx.cpu, mask);
    ctx.pending[kind].set(cx.cpu);
    ctx.lists.release(cx.cpu);
}

/// Software queue, hctx and type of a waiting request.
fn ctx_of(set: &TagSet, rq: &Request) -> (CpuId, HctxId, usize) {
    let wanted = HctxType::of(rq.op, rq.polled) as usize;
    // A type without queues of its own shares the lists of the default one.
    let counts = set.counts;
    let own = [counts.default, counts.read, counts.poll][wanted];
    let kind = if own == 0 { 0 } else { wanted };
    (rq.ctx, rq.hctx, kind)
}

/// Under hctx->lock: puts the request on the dispatch list and releases. No trace, since it was not
/// inserted into a scheduler or software queue.
pub(super) fn insert_dispatch(cx: &mut Cx<'_>, rq: RequestId, head: bool) {
    let mut pool = cx.pool();
    pool[rq].place = Place::Dispatch;
    let hctx = cx.hctx(pool[rq].hctx);
    let mut list = hctx.dispatch.held(cx.cpu);
    if head {
        list.push_front(&mut pool, rq);
    } else {
        list.push_back(&mut pool, rq);
    }
    drop(list);
    drop(pool);
    hctx.dispatch_pending.set(cx.cpu);
    hctx.dispatch.release(cx.cpu);
}
