//! One bio, from submit_bio() until it is merged, plugged, inserted or issued.
//!
//! Kernel: blk_mq_submit_bio(), blk_mq_get_tag(), blk_add_rq_to_plug() (6.1.192, 6.12.117).
//! Read next: `submit/entry.rs` (the queue is entered, the bio split), `submit/merging.rs`,
//! `submit/tagwait.rs` (a task that finds no tag), then `plug.rs`, `insert.rs`.

mod check;
mod entry;
mod merging;
mod tagwait;

use super::bio_end::ended;
use super::plug::PLUG_FLUSH_SECTORS;
use super::sbitmap::sbitmap_queue_wake_up;
use super::sbitmap::{TagMap, sbitmap_queue_get_batch};
use super::tag::{Search, identity_map, search_identity, shares_tags};
use super::wait::wake_all;
use crate::call::{Call, Inserts, ThenRun, Unplug};
use crate::env::{Answer, Cpu, TraceAction};
use crate::names::{Label, labels};
use crate::plug::Plug;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{BioId, HctxId, Op, Place, Plugged, QueueId, RequestId, Status};
use crate::rules::{BioPlug, DirectIssue, Fix, FlushData, NoMerges, PlugOrder, Stamp};
use crate::step::{Cx, Next, Steps as _, Traced, trace, trace_rq};
use crate::time::SimTime;
use crate::{elevator, merge};
use entry::Split;
pub(super) use entry::{longest_part, strip_flush};

labels! {
    pub enum At in "submit" {
        /// Trace Q, split, try the plug.
        Enter,
        /// The scheduler's bio_merge: its section, where that has no name of its own.
        ElevatorMerge,
        /// Free requests that were absorbed, or are not needed any more.
        Absorbed,
        /// Has this CPU's software queue any requests?
        CtxPending,
        /// Under ctx->lock: try to merge.
        CtxMerge,
        /// Take a cached request, or search for tags. The set-up of the request touches nothing
        /// shared: it belongs to the label that got the request.
        Alloc,
        /// Under the scheduler's lock: limit_depth() of one that takes it.
        LimitDepth,
        /// __blk_mq_alloc_requests(): take a tag.
        Tag,
        /// __blk_mq_alloc_requests_batch(): take tags for all that the plug announced.
        TagBatch,
        /// None is free, and the bio may not wait: it ends.
        WouldBlock,
        /// All are taken: run the hctx, so that requests may complete.
        WaitRun,
        /// Try again.
        WaitRetry,
        /// Count the entry before it is added.
        WaitCount,
        /// Under the wait queue's lock: add the entry.
        WaitAdd,
        /// Try again, now that a wake-up cannot be missed.
        WaitLast,
        /// Flush the plug, then sleep.
        WaitSleep,
        /// sbitmap_finish_wait() of a task that was woken, or has found a tag: is its entry still
        /// in the wait queue?
        WaitFinish,
        /// Under the wait queue's lock: remove the entry.
        WaitLeave,
        /// Count the entry out.
        WaitUncount,
        /// On a CPU of another hctx now: wake another waiter of the old one.
        WaitPassOn,
        /// The flush machine was called.
        AfterFlush,
        /// The full plug is flushed: add to it.
        Plug,
        /// Is the hctx busy?
        Busy,
        /// The end of a plug for only this bio; the remainder of a split bio, or the end.
        Rest,
    }
}

/// How a passthrough request is inserted into the dispatch list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Execute {
    pub at_head: bool,
    /// The run is left to kblockd (`async` of blk_mq_sched_insert_request() before v6.3).
    pub in_background: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SubmitPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    bio: BioId,
    /// Rest of a split bio: follows `bio`.
    remainder: Option<BioId>,
    traced: bool,
    /// It holds a reference on the queue, until its request does.
    entered: bool,
    /// The plug belongs to this bio, and ends with its submission.
    bio_plug: bool,
    hctx: HctxId,
    search: Search,
    /// The result of limit_depth() under the scheduler's lock: valid for the whole allocation.
    depth: Option<Depth>,
    batch: bool,
    ws: u32,
    waiting: bool,
    /// The hctx for whose tags it waited before it moved to another CPU.
    left: HctxId,
    put: Option<sbitmap_queue_wake_up::State>,
    rq: Option<RequestId>,
    merge: Option<elevator::bio_merge::State>,
    /// The bio was merged into a request; a cached request that it does not need must be freed.
    merged: bool,
    absorbed: Option<RequestId>,
    cached_rq: Option<RequestId>,
    /// A passthrough request and its insertion.
    passthrough: Option<Execute>,
}

impl SubmitPath {
    /// submit_bio() of a bio in the pool of `queue`.
    pub fn new(queue: QueueId, bio: BioId) -> SubmitPath {
        SubmitPath {
            at: At::Enter,
            queue,
            bio,
            remainder: None,
            traced: false,
            entered: false,
            bio_plug: false,
            hctx: HctxId(0),
            search: Search::No,
            depth: None,
            batch: false,
            ws: 0,
            waiting: false,
            left: HctxId(0),
            put: None,
            rq: None,
            merge: None,
            merged: false,
            absorbed: None,
            cached_rq: None,
            passthrough: None,
        }
    }

    /// blk_execute_rq_nowait() of a request for this bio, its allocation included.
    pub fn execute(queue: QueueId, bio: BioId, how: Execute) -> SubmitPath {
        SubmitPath {
            passthrough: Some(how),
            ..SubmitPath::new(queue, bio)
        }
    }

    pub fn bio(&self) -> BioId {
        self.bio
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Enter => self.enter(cx),
            At::ElevatorMerge => {
                let step = self.merge.as_mut().expect("it searches").step(cx);
                self.merge_step(step)
            }
            At::Absorbed => {
                if self.merged {
                    self.release_cached_rq(cx);
                }
                let gone = self.absorbed.take().or_else(|| self.cached_rq.take());
                if self.cached_rq.is_none() {
                    self.at = At::Rest;
                }
                match gone {
                    Some(gone) => cx.free(gone),
                    None => self.next_part(cx),
                }
            }
            At::CtxPending => {
                let kind = self.list_kind(cx.mq);
                match cx.q.ctxs[usize::from(cx.cpu.id.0)].pending[kind].test(cx.cpu) {
                    true => {
                        self.at = At::CtxMerge;
                        cx.lock(LockKind::Ctx, u32::from(cx.cpu.id.0))
                    }
                    false => self.to(At::Alloc),
                }
            }
            At::CtxMerge => self.ctx_merge(cx),
            At::Alloc => self.alloc(cx),
            At::LimitDepth => self.limit_depth(cx),
            At::Tag
            | At::TagBatch
            | At::WouldBlock
            | At::WaitRun
            | At::WaitRetry
            | At::WaitCount
            | At::WaitAdd
            | At::WaitLast
            | At::WaitSleep
            | At::WaitFinish
            | At::WaitLeave
            | At::WaitUncount
            | At::WaitPassOn => self.tag_wait(cx),
            At::AfterFlush => match core::mem::take(&mut cx.cpu.answer) {
                Answer::GoOn => self.route(cx),
                _ => {
                    self.rq = None;
                    self.next_part(cx)
                }
            },
            At::Plug => self.plug(cx),
            At::Busy => {
                let busy = cx.hctx(self.hctx).dispatch_busy.read(cx.cpu) != 0;
                let rq = self.rq.take().expect("it was allocated");
                let waits = busy && (cx.q.hctxs.len() == 1 || !is_sync(cx.q, rq, cx.cpu));
                self.at = At::Rest;
                if waits {
                    self.insert(cx, rq)
                } else {
                    self.issue(cx.cpu, rq)
                }
            }
            At::Rest => self.next_part(cx),
        }
    }

    pub(super) fn label(&self) -> Label {
        self.merge
            .and_then(|merge| merge.label())
            .unwrap_or(self.at.label())
    }

    pub(super) fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    /// The remainder of a split bio, or the end of the path.
    pub(super) fn next_part(&mut self, cx: &mut Cx<'_>) -> Next {
        // A bio without a request drops its reference on the queue itself.
        if core::mem::take(&mut self.entered) && cx.pool().exit_queue() {
            self.at = At::Rest;
            return wake_all(cx.cpu, self.queue);
        }
        if core::mem::take(&mut self.bio_plug) {
            cx.cpu.plug = Plug::default();
        }
        let Some(remainder) = self.remainder.take() else {
            return Next::Done;
        };
        *self = SubmitPath {
            traced: true,
            ..SubmitPath::new(self.queue, remainder)
        };
        Next::Step
    }

    fn enter(&mut self, cx: &mut Cx<'_>) -> Next {
        if self.passthrough.is_some() {
            // It is not traced, split or merged before it has a tag.
            if let Some(next) = self.enter_queue(cx) {
                return next;
            }
            let op = cx.pool().bio(self.bio).op;
            self.hctx = cx.set().hctx_for(cx.cpu.id, op, false);
            return self.to(At::Alloc);
        }
        if !self.traced {
            if let Some(next) = self.strip_flush(cx) {
                return next;
            }
            let traced = Traced::bio(cx.cpu.tracing, &cx.pool(), self.bio);
            // bio_issue_init() reads the time, whatever happens to the bio.
            let now = cx.cpu.now();
            cx.cpu.plug.time(cx.rules().stamp, now);
            trace_rq(cx.cpu, self.queue, TraceAction::Queue, traced);
            self.traced = true;
        }
        if let Some(next) = self.enter_queue(cx) {
            return next;
        }
        let split = self.split(cx);
        if split == Some(Split::WouldBlock) {
            self.drop_cached_rq(cx);
            self.would_block(cx);
            return self.to(At::Absorbed);
        }
        let pool = cx.pool();
        let bio = pool.bio(self.bio);
        self.hctx = cx.set().hctx_for(cx.cpu.id, bio.op, bio.flags.polled);
        if split.is_some() {
            return self.to(At::Alloc);
        }
        let tries = cx.q.settings.nomerges != NoMerges::Never;
        if !tries || !merge::bio_is_mergeable(bio) {
            drop(pool);
            return self.to(At::Alloc);
        }
        drop(pool);
        if self.plug_merge(cx) {
            return self.merged(cx);
        }
        if cx.q.has_elevator() {
            return self.ask_elevator(cx);
        }
        self.to(if cx.q.settings.should_merge {
            At::CtxPending
        } else {
            At::Alloc
        })
    }

    /// A cached request of the same kind, or a search for tags.
    fn alloc(&mut self, cx: &mut Cx<'_>) -> Next {
        if let Some(rq) = self.take_cached_rq(cx) {
            // Perhaps of another CPU's hctx, on which the task was when it was allocated.
            let mut pool = cx.pool();
            self.hctx = pool[rq].hctx;
            // The request has a reference already.
            pool.exit_queue();
            drop(pool);
            self.rq = Some(rq);
            return self.start(cx);
        }
        let wanted = self.wanted(cx.q);
        let lock = wanted.and_then(|wanted| cx.q.elevator.limit_depth_lock(cx.q, wanted));
        if let Some(lock) = lock {
            self.at = At::LimitDepth;
            return Next::Lock(lock);
        }
        self.look_for_tags(cx);
        match self.at {
            // It begins with a lock.
            At::TagBatch => self.search(cx),
            _ => Next::Step,
        }
    }

    /// One that needs the scheduler's lock.
    fn limit_depth(&mut self, cx: &mut Cx<'_>) -> Next {
        let wanted = self.wanted(cx.q).expect("it is to be asked");
        let depth = cx.q.elevator.limit_depth_locked(cx.q, wanted, cx.cpu);
        self.depth = Some(Depth(depth));
        self.look_for_tags(cx);
        Next::Step
    }

    fn look_for_tags(&mut self, cx: &mut Cx<'_>) {
        let shallow = self.shallow(cx.q);
        let map = identity_map(cx.mq, cx.q, self.hctx);
        // Reset by the first allocation, whatever its result.
        let ahead = match cx.cpu.plug.active {
            true => u32::from(core::mem::replace(&mut cx.cpu.plug.nr_ios, 1)),
            false => 1,
        };
        let shared = shares_tags(cx.mq, cx.q);
        // blk_mq_get_tags() takes none at once where queues share a set.
        let apart = !cx.set().queue_shared();
        self.batch = ahead > 1 && shallow.is_none() && apart;
        if !self.batch {
            self.search = match shared {
                true => Search::No,
                false => {
                    let hint = Some(map.hint_before(cx.cpu));
                    Search::Identity(search_identity::State::new(self.hctx, hint, shallow, false))
                }
            };
            self.at = At::Tag;
            return;
        }
        let (tags, hint) = (
            TagMap::of_requests(cx.q, self.hctx),
            map.hint_before(cx.cpu),
        );
        self.search = Search::Batch(sbitmap_queue_get_batch::State::new(tags, hint, ahead));
        self.at = At::TagBatch;
    }

    /// The request becomes the bio's.
    pub(super) fn start(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.expect("it was allocated");
        self.entered = false;
        self.depth = None;
        let mut pool = cx.pool();
        cx.q.touch_elevator(&pool);
        pool.bio_to_request(rq, self.bio);
        let r = &mut pool[rq];
        let flags = r.flags;
        let around = cx.rules().flush_data == FlushData::DispatchList && flags.is_flush();
        r.use_sched = cx.q.has_elevator() && !around;
        // A cached request has its time already (v6.1).
        let stamp = cx.rules().stamp;
        if stamp == Stamp::OfPlug || r.start_time == SimTime::ZERO {
            let now = cx.cpu.now();
            r.start_time = cx.cpu.plug.time(stamp, now);
        }
        r.place = Place::Path;
        if let Some(how) = self.passthrough {
            r.passthrough = true;
            let past = cx.rules().fixes.has(Fix::PassthroughAround);
            r.use_sched &= !past;
            drop(pool);
            return self.execute_now(cx.cpu, rq, how, past);
        }
        if r.use_sched && cx.q.elevator.hooks().prepare {
            cx.q.elevator.prepare(r);
        }
        drop(pool);
        cx.trace_rq(TraceAction::GetRq, rq);
        if flags.is_flush() {
            self.at = At::AfterFlush;
            return cx.call(Call::Flush {
                queue: self.queue,
                rq,
            });
        }
        self.route(cx)
    }

    fn route(&mut self, cx: &mut Cx<'_>) -> Next {
        if !cx.cpu.plug.active && cx.rules().bio_plug == BioPlug::EachBio {
            // Until now it would have been empty, and announced nothing.
            cx.cpu.plug.start(1);
            self.bio_plug = true;
        }
        if cx.cpu.plug.active {
            if self.must_flush(cx.mq, cx.cpu) {
                self.at = At::Plug;
                let queue = cx.cpu.plug.queue();
                return cx.call(Call::Unplug {
                    queue,
                    why: Unplug::Full,
                });
            }
            return self.plug(cx);
        }
        if cx.q.has_elevator() {
            let rq = self.rq.take().expect("it was allocated");
            self.at = At::Rest;
            return self.insert(cx, rq);
        }
        match cx.rules().direct_issue {
            DirectIssue::UnlessBusy => self.to(At::Busy),
            old => self.issue_of_several(cx, old),
        }
    }

    /// blk_mq_make_request() and blk_sq_make_request() without a plug.
    fn issue_of_several(&mut self, cx: &mut Cx<'_>, old: DirectIssue) -> Next {
        let rq = self.rq.take().expect("it was allocated");
        self.at = At::Rest;
        let sync = is_sync(cx.q, rq, cx.cpu);
        if sync && cx.q.hctxs.len() > 1 {
            return self.issue(cx.cpu, rq);
        }
        let run = match sync && old == DirectIssue::OfSeveral {
            true => ThenRun::Here,
            false => ThenRun::Background,
        };
        cx.call(Call::Insert(Inserts::new(self.queue, rq, false, run)))
    }

    fn insert(&self, cx: &mut Cx<'_>, rq: RequestId) -> Next {
        let run = if cx.q.settings.inline_runs {
            ThenRun::Here
        } else {
            ThenRun::Background
        };
        let path = Inserts::new(self.queue, rq, false, run);
        cx.call(Call::Insert(path))
    }

    fn issue(&self, cpu: &mut Cpu, rq: RequestId) -> Next {
        Next::call(
            cpu,
            Call::Issue {
                queue: self.queue,
                rq,
            },
        )
    }

    /// blk_add_rq_to_plug(), and blk_finish_plug() of a plug for only this bio.
    fn plug(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.take().expect("it was allocated");
        let entry = Plugged {
            queue: self.queue,
            rq,
        };
        match cx.cpu.plug.list.first() {
            None => cx.trace_count(TraceAction::Plug, 0),
            Some(peeked) => cx.cpu.plug.multiple_queues |= peeked.queue != self.queue,
        }
        let mut pool = cx.pool();
        let request = &mut pool[rq];
        request.place = Place::Plug;
        cx.cpu.plug.has_elevator |= request.internal_tag.is_some();
        drop(pool);
        let held = self.held_before(cx);
        let order = cx.rules().plug_order;
        let mut pool = cx.pool();
        if order == PlugOrder::Lifo {
            cx.cpu.plug.list.push_front(&mut pool, entry);
        }
        drop(pool);
        if order == PlugOrder::Fifo {
            cx.cpu.plug.list.push_back(cx.mq, cx.cpu.id, entry);
        }
        if self.bio_plug {
            let (queue, why) = (self.queue, Unplug::Finish);
            self.at = At::Rest;
            return cx.call(Call::Unplug { queue, why });
        }
        if let Some(held) = held {
            self.at = At::Rest;
            return self.issue(cx.cpu, held);
        }
        self.next_part(cx)
    }

    /// The request in the plug that is issued for the new one: a plug of a queue of several hctxs
    /// holds one at most (up to 4.18). Deviation(D28): of several queues' requests it holds all.
    fn held_before(&self, cx: &mut Cx<'_>) -> Option<RequestId> {
        let rules = &cx.rules();
        let old = rules.direct_issue != DirectIssue::UnlessBusy;
        let merges = cx.q.settings.nomerges != NoMerges::Never;
        let alone = cx.cpu.plug.list.len() == 1 && cx.cpu.plug.queue() == self.queue;
        if !(old && merges && alone && cx.q.hctxs.len() > 1 && !cx.q.has_elevator()) {
            return None;
        }
        let held = cx.cpu.plug.list.pop_front(cx.mq, cx.cpu.id)?.rq;
        cx.pool()[held].place = Place::Path;
        Some(held)
    }

    /// Whether the plug is flushed before it takes one more request.
    fn must_flush(&self, mq: &BlkMq, cpu: &Cpu) -> bool {
        let Some(peeked) = cpu.plug.list.first() else {
            return false;
        };
        let sized = mq.queue(self.queue).settings.nomerges != NoMerges::Never;
        let sectors = || {
            mq.queue(peeked.queue).pool.held(cpu.id)[peeked.rq]
                .sectors
                .0
        };
        cpu.plug.is_full() || sized && sectors() >= PLUG_FLUSH_SECTORS
    }

    /// A NOWAIT bio that found no tag.
    pub(super) fn would_block(&mut self, cx: &mut Cx<'_>) -> Next {
        self.depth = None;
        let mut pool = cx.pool();
        let mut traced = Traced::bio(cx.cpu.tracing, &pool, self.bio);
        if let Some(traced) = &mut traced {
            traced.status = Status::Again;
        }
        let whole = pool.end_piece(self.bio, Status::Again);
        drop(pool);
        trace(cx.cpu, self.queue, TraceAction::Complete, traced, false);
        self.at = At::Rest;
        ended(cx.q, whole, cx.cpu)
    }
}

/// A result of limit_depth(): the depth, if there is a limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Depth(Option<u32>);

/// op_is_sync().
fn is_sync(q: &RequestQueue, rq: RequestId, cpu: &Cpu) -> bool {
    let pool = q.pool.held(cpu.id);
    let rq = &pool[rq];
    rq.op == Op::Read || rq.flags.sync || rq.flags.is_flush()
}
