//! Insertion of requests into the scheduler, a software queue or a dispatch list.
//!
//! Plug, requeue and direct issue use these critical sections. Kernel: blk_mq_insert_request()
//! (v6.12), blk_mq_sched_insert_request() (v6.1), blk_mq_insert_requests(). Insertion into a
//! scheduler: `elevator/`.

use crate::call::{Inserts, ThenRun};
use crate::elevator;
use crate::env::{Cpu, TraceAction};
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{CpuId, HctxId, Op, Place, QueueId, RequestId};
use crate::rules::{Fix, FlushData, StoppedIssue};
use crate::step::{Cx, Next, Sub, Traced, call_run, trace_rq};
use crate::tags::{HctxType, TagSet};

labels! {
    pub enum At in "insert" {
        /// Where does it go?
        Route,
        /// The scheduler's insert_requests: its section, where that has no name of its own.
        Elevator,
        /// Under ctx->lock.
        Ctx,
        /// Under hctx->lock.
        Dispatch,
        /// Run the queue, if asked.
        Run,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InsertPath {
    at: At,
    pub(super) queue: QueueId,
    rq: RequestId,
    /// Its hctx: once inserted, the request may end before the queue is run.
    hctx: HctxId,
    head: bool,
    bypass: Option<bool>,
    run: ThenRun,
    insertion: elevator::InsertPath,
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

impl From<Inserts> for InsertPath {
    fn from(inserts: Inserts) -> InsertPath {
        let Inserts {
            queue,
            rq,
            head,
            bypass,
            run,
        } = inserts;
        InsertPath {
            at: At::Route,
            queue,
            rq,
            hctx: HctxId(0),
            head,
            bypass,
            run,
            insertion: elevator::InsertPath::Idle,
        }
    }
}

impl InsertPath {
    pub(super) fn inserts(&self) -> RequestId {
        self.rq
    }

    /// The state of the scheduler's insertion.
    pub(super) fn insertion(&self) -> elevator::InsertPath {
        self.insertion
    }

    pub(super) fn label(&self) -> Label {
        self.insertion.label().unwrap_or(self.at.label())
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Route => self.route(cx),
            At::Elevator => match cx.q.elevator.insert(&mut self.insertion, cx.q, cx.cpu) {
                Sub::Wait(next) => next,
                Sub::Done(touched) => {
                    self.insertion = elevator::InsertPath::Idle;
                    match touched {
                        true => self.to(At::Run),
                        false => self.then_run(cx.cpu),
                    }
                }
            },
            At::Ctx => {
                let mut list = QueueList::new();
                list.push_back(&mut cx.pool(), self.rq);
                insert_ctx(cx, &mut list, self.head);
                self.to(At::Run)
            }
            At::Dispatch => {
                let head = self.bypass.unwrap_or(true);
                insert_dispatch(cx, self.rq, head);
                self.to(At::Run)
            }
            At::Run => self.then_run(cx.cpu),
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        assert_eq!(
            self.insertion != elevator::InsertPath::Idle,
            at == At::Elevator,
            "{at:?}: an insertion"
        );
        if matches!(at, At::Route | At::Ctx | At::Dispatch) {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            assert_eq!(pool[self.rq].place, Place::Path, "{at:?} of {:?}", self.rq);
        }
    }

    pub(super) fn check_over(&self) {
        assert_eq!(self.insertion, elevator::InsertPath::Idle, "it inserts");
    }

    fn then_run(&mut self, cpu: &mut Cpu) -> Next {
        self.at = At::Run;
        match core::mem::replace(&mut self.run, ThenRun::No) {
            ThenRun::No => Next::Done,
            ThenRun::Here => call_run(cpu, self.queue, self.hctx, false),
            ThenRun::Background => call_run(cpu, self.queue, self.hctx, true),
        }
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn route(&mut self, cx: &mut Cx<'_>) -> Next {
        let pool = cx.pool();
        cx.q.touch_elevator(&pool);
        let rq = &pool[self.rq];
        let (ctx, hctx) = (rq.ctx, rq.hctx);
        self.hctx = hctx;
        // v6.1 keeps every request of a flush sequence out of the scheduler, v6.12 only the
        // flush itself.
        let around = match cx.rules().flush_data {
            FlushData::DispatchList => rq.flush_seq,
            FlushData::Scheduler => rq.op == Op::Flush,
        };
        let passes = rq.passthrough && cx.rules().fixes.has(Fix::PassthroughAround);
        if self.bypass.is_some() || passes || around {
            self.at = At::Dispatch;
            return cx.lock(LockKind::Dispatch, u32::from(hctx.0));
        }
        drop(pool);
        if cx.q.has_elevator() {
            let mut list = QueueList::new();
            list.push_back(&mut cx.pool(), self.rq);
            self.at = At::Elevator;
            let (insertion, next) = cx.q.elevator.start_insert(cx.q, list, self.head);
            self.insertion = insertion;
            return next;
        }
        self.at = At::Ctx;
        cx.lock(LockKind::Ctx, u32::from(ctx.0))
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
        trace_rq(cx.cpu, cx.queue(), TraceAction::Insert, traced);
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
fn ctx_of(set: &TagSet, rq: &crate::request::Request) -> (CpuId, HctxId, usize) {
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
