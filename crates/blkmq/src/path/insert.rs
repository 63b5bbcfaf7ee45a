//! Insertion of requests into the scheduler, a software queue or a dispatch list.
//!
//! The critical sections stand here once; plug, requeue and direct issue use them.
//! Kernel: blk_mq_insert_request() (v6.12), blk_mq_sched_insert_request() (v6.1),
//! dd_insert_requests(), blk_mq_insert_requests().

use super::run::call_run;
use super::{Call, Next, Traced, jiffies, labels, lock, trace_rq};
use crate::elevator::{InsertAt, Insertion, Scheduler};
use crate::env::{Bit, Cpu, Env, Lock, Slab, TraceAction, Word};
use crate::list::QueueList;
use crate::merge::Merging;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{CpuId, HctxId, Op, Place, QueueId, RequestId};
use crate::rules::{Fix, FlushData, Insertion as Route, MergedFree};
use crate::tags::{HctxType, TagSet};

labels! {
    /// Labels of an insertion.
    pub enum At in "insert" {
        /// Where does it go?
        Route,
        /// Under the scheduler's lock.
        Elevator,
        /// Still under it: free what was absorbed (v6.1).
        AbsorbedLocked,
        /// Free what was absorbed.
        Absorbed,
        /// Under ctx->lock.
        Ctx,
        /// Under hctx->lock.
        Dispatch,
        /// Run the queue, if asked.
        Run,
    }
}

/// What to do once the request is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ThenRun {
    /// Nothing: the caller runs the queue.
    No,
    /// blk_mq_run_hw_queue(async = false).
    Here,
    /// blk_mq_run_hw_queue(async = true).
    Background,
}

/// Insertion of one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InsertPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    rq: RequestId,
    /// Its hctx: once inserted, the request may be another's by the time the queue is run.
    hctx: HctxId,
    head: bool,
    bypass: Option<bool>,
    run: ThenRun,
    absorbed: QueueList,
}

impl InsertPath {
    /// blk_mq_insert_request().
    pub(super) fn new(queue: QueueId, rq: RequestId, head: bool, run: ThenRun) -> InsertPath {
        InsertPath {
            at: At::Route,
            queue,
            rq,
            hctx: HctxId(0),
            head,
            bypass: None,
            run,
            absorbed: QueueList::new(),
        }
    }

    /// blk_mq_request_bypass_insert(): to the head or tail of the dispatch list.
    pub(super) fn bypass(queue: QueueId, rq: RequestId, head: bool, run: ThenRun) -> InsertPath {
        InsertPath {
            bypass: Some(head),
            ..InsertPath::new(queue, rq, head, run)
        }
    }

    pub(super) fn inserts(&self) -> RequestId {
        self.rq
    }

    pub(super) fn step<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        match self.at {
            At::Route => self.route(q, cpu),
            At::Elevator => {
                let rq = self.rq;
                let at = insert_at(self.head);
                let mut list = QueueList::new();
                list.push_back(&mut q.pool.held(cpu.id), rq);
                match insert_elevator(q, &mut list, at, &mut self.absorbed, cpu) {
                    Inserted::All if self.absorbed.is_empty() => self.to(At::Run),
                    Inserted::All => self.to(At::Absorbed),
                    Inserted::UpToMerge => self.to(At::AbsorbedLocked),
                }
            }
            At::AbsorbedLocked => match self.absorbed.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => free_absorbed(cpu, self.queue, gone),
                None => {
                    leave_elevator(q, cpu);
                    self.to(At::Run)
                }
            },
            At::Absorbed => match self.absorbed.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => free_absorbed(cpu, self.queue, gone),
                None => self.then_run(cpu),
            },
            At::Ctx => {
                let mut list = QueueList::new();
                list.push_back(&mut q.pool.held(cpu.id), self.rq);
                insert_ctx(mq, q, &mut list, self.head, cpu);
                self.to(At::Run)
            }
            At::Dispatch => {
                let head = self.bypass.unwrap_or(true);
                insert_dispatch(q, self.rq, head, cpu);
                self.to(At::Run)
            }
            At::Run => self.then_run(cpu),
        }
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

    fn route<E: Env>(&mut self, q: &RequestQueue<E>, cpu: &mut Cpu) -> Next {
        let pool = q.pool.held(cpu.id);
        let rq = &pool[self.rq];
        let (ctx, hctx) = (rq.ctx, rq.hctx);
        self.hctx = hctx;
        // v6.1 keeps every request of a flush sequence out of the scheduler, v6.12 only the
        // flush itself.
        let around = match q.settings.rules.flush_data {
            FlushData::DispatchList => rq.flush_seq,
            FlushData::Scheduler => rq.op == Op::Flush,
        };
        let passes = rq.passthrough && q.settings.rules.fixes.has(Fix::PassthroughAround);
        if self.bypass.is_some() || passes || around {
            self.at = At::Dispatch;
            return lock(self.queue, LockKind::Dispatch, u32::from(hctx.0));
        }
        if q.has_elevator() {
            if q.settings.rules.series.insertion != Route::UnderLock {
                drop(pool);
                let mut list = QueueList::new();
                list.push_back(&mut q.pool.held(cpu.id), self.rq);
                self.at = At::Run;
                return call_dd_insert(cpu, self.queue, list, self.head);
            }
            self.at = At::Elevator;
            return lock(self.queue, LockKind::Elevator, 0);
        }
        self.at = At::Ctx;
        lock(self.queue, LockKind::Ctx, u32::from(ctx.0))
    }
}

/// A request that was absorbed is freed without being ended: its bios live on elsewhere.
pub(super) fn free_absorbed(cpu: &mut Cpu, queue: QueueId, rq: RequestId) -> Next {
    Next::call(cpu, Call::Free { queue, rq })
}

/// Insertion of a list by the January 2024 series.
pub(super) fn call_dd_insert(cpu: &mut Cpu, queue: QueueId, list: QueueList, head: bool) -> Next {
    Next::call(cpu, Call::DdInsert { queue, list, head })
}

/// Where a list goes by BLK_MQ_INSERT_AT_HEAD.
pub(super) fn insert_at(head: bool) -> InsertAt {
    if head {
        InsertAt::Head
    } else {
        InsertAt::Sorted
    }
}

/// What an insertion into the scheduler did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inserted {
    /// The list is in.
    All,
    /// A request was absorbed and is to be freed under the lock, which is kept (v6.1).
    UpToMerge,
}

/// Under the scheduler's lock: inserts the list in order and releases. Absorbed requests go to
/// `absorbed`.
pub(super) fn insert_elevator<E: Env>(
    q: &RequestQueue<E>,
    list: &mut QueueList,
    at: InsertAt,
    absorbed: &mut QueueList,
    cpu: &mut Cpu,
) -> Inserted {
    let inserted = insert_list(q, list, at, absorbed, cpu);
    if inserted == Inserted::All {
        q.elevator.release(cpu);
    }
    inserted
}

/// The same without the release.
pub(super) fn insert_list<E: Env>(
    q: &RequestQueue<E>,
    list: &mut QueueList,
    at: InsertAt,
    absorbed: &mut QueueList,
    cpu: &mut Cpu,
) -> Inserted {
    let now = jiffies(q, cpu);
    loop {
        let mut pool = q.pool.held(cpu.id);
        let Some(rq) = list.pop_front(&mut pool) else {
            break;
        };
        let merging = Merging {
            limits: &q.settings.limits,
            nomerges: q.settings.nomerges,
        };
        let mut elevator = q.elevator.held(cpu);
        let insertion = elevator.insert(&mut pool, rq, at, now, merging);
        drop(elevator);
        match insertion {
            Insertion::Inserted => {
                let traced = Traced::rq(&pool, rq);
                drop(pool);
                trace_rq(cpu, q.id, TraceAction::Insert, traced);
            }
            Insertion::Absorbed(mut gone) => {
                while let Some(rq) = gone.pop_back(&mut pool) {
                    let traced = Traced::rq(&pool, rq);
                    pool[rq].place = Place::Path;
                    absorbed.push_back(&mut pool, rq);
                    trace_rq(cpu, q.id, TraceAction::BackMerge, traced);
                }
                if q.settings.rules.merged_free == MergedFree::UnderLock {
                    return Inserted::UpToMerge;
                }
            }
        }
    }
    note_work(q, cpu);
    Inserted::All
}

/// The same to the end of the list, whatever the rules say of absorbed requests: the series keeps
/// them until the lock is dropped.
pub(super) fn insert_whole<E: Env>(
    q: &RequestQueue<E>,
    list: &mut QueueList,
    at: InsertAt,
    absorbed: &mut QueueList,
    cpu: &mut Cpu,
) {
    while insert_list(q, list, at, absorbed, cpu) == Inserted::UpToMerge {}
}

/// Drops the scheduler's lock.
pub(super) fn leave_elevator<E: Env>(q: &RequestQueue<E>, cpu: &mut Cpu) {
    note_work(q, cpu);
    q.elevator.release(cpu);
}

/// Keeps the word that has_work reads equal to the scheduler's lists. Under the scheduler's lock.
pub(super) fn note_work<E: Env>(q: &RequestQueue<E>, cpu: &mut Cpu) {
    let mut elevator = q.elevator.held(cpu);
    let (work, visits) = (elevator.has_work(), elevator.take_visits());
    drop(elevator);
    cpu.meter.container_ops(visits);
    if work != q.elevator_work.peek() {
        q.elevator_work.mirror(cpu, work);
    }
}

/// Under ctx->lock: appends the list (or puts it at the head), marks the ctx and releases.
pub(super) fn insert_ctx<E: Env>(
    mq: &BlkMq<E>,
    q: &RequestQueue<E>,
    list: &mut QueueList,
    head: bool,
    cpu: &mut Cpu,
) {
    let mut pool = q.pool.held(cpu.id);
    let Some(first) = list.first() else {
        unreachable!("an empty list is not inserted");
    };
    let (ctx_id, hctx_id, kind) = ctx_of(mq.set_of(q.id), &pool[first]);
    let mut next = Some(first);
    while let Some(rq) = next {
        pool[rq].place = Place::Ctx;
        let traced = Traced::rq(&pool, rq);
        next = list.next(&pool, rq);
        trace_rq(cpu, q.id, TraceAction::Insert, traced);
    }
    let ctx = &q.ctxs[usize::from(ctx_id.0)];
    let mut lists = ctx.lists.held(cpu);
    if head {
        lists[kind].splice_front(&mut pool, list);
    } else {
        lists[kind].splice_back(&mut pool, list);
    }
    drop(lists);
    drop(pool);
    let bit = ctx.index_hw[kind];
    let hctx = q.hctx(hctx_id);
    hctx.ctx_map[(bit / 64) as usize].fetch_or(cpu, 1 << (bit % 64));
    ctx.pending[kind].set(cpu);
    ctx.lists.release(cpu);
}

/// Software queue, hctx and type that a request waits in.
fn ctx_of<E: Env>(set: &TagSet<E>, rq: &crate::request::Request) -> (CpuId, HctxId, usize) {
    let wanted = HctxType::of(rq.op, rq.polled) as usize;
    // A type without queues of its own shares the lists of the default one.
    let counts = set.counts;
    let own = [counts.default, counts.read, counts.poll][wanted];
    let kind = if own == 0 { 0 } else { wanted };
    (rq.ctx, rq.hctx, kind)
}

/// Under hctx->lock: puts the request on the dispatch list and releases. No trace: nothing on
/// this list was inserted anywhere.
pub(super) fn insert_dispatch<E: Env>(
    q: &RequestQueue<E>,
    rq: RequestId,
    head: bool,
    cpu: &mut Cpu,
) {
    let mut pool = q.pool.held(cpu.id);
    pool[rq].place = Place::Dispatch;
    let hctx = q.hctx(pool[rq].hctx);
    let mut list = hctx.dispatch.held(cpu);
    if head {
        list.push_front(&mut pool, rq);
    } else {
        list.push_back(&mut pool, rq);
    }
    drop(list);
    drop(pool);
    hctx.dispatch_pending.set(cpu);
    hctx.dispatch.release(cpu);
}
