//! One bio, from submit_bio() until it is merged, plugged, inserted or issued.
//!
//! Kernel: blk_mq_submit_bio(), blk_add_rq_to_plug() (6.1.192, 6.12.117). Read next:
//! `submit/entry.rs` (the bio is split), `submit/merging.rs`, `submit/tagwait.rs` (a task that
//! finds no tag), then `plug.rs`, `insert.rs`.

mod entry;
#[macro_use]
mod merging;
#[macro_use]
mod tagwait;

use super::bio_end::ended;
use super::plug::PLUG_FLUSH_SECTORS;
use super::wait::wake_all;
use crate::call::{Call, Event, Inserts, ThenRun, Unplug};
use crate::env::{Answer, TraceAction};
use crate::plug::Plug;
use crate::request::{BioId, Op, Place, Plugged, RequestId, Status};
use crate::rules::{BioPlug, DirectIssue, Fix, FlushData, NoMerges, PlugOrder, PlugTrace, Stamp};
use crate::step::{Cx, Next, Steps as _, Traced, labels, trace, trace_rq};
use crate::time::SimTime;
use entry::{Split, split};
use merging::{attempt_bio_merge, drop_cached_rq, find_cached_rq, take_cached_rq};
use steps::steps;
use tagwait::alloc_requests;

pub(super) use entry::{longest_part, strip_flush};

pub use execute_rq_nowait::State as ExecutePath;
pub use submit_bio::State as SubmitPath;

/// How a passthrough request is inserted into the dispatch list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Execute {
    pub at_head: bool,
    /// The run is left to kblockd (`async` of blk_mq_sched_insert_request() before v6.3).
    pub in_background: bool,
}

/// submit_bio() of a bio in the pool of the queue.
#[steps(path)]
pub fn submit_bio(cx: &mut Cx<'_>, mut bio: BioId) {
    /// Trace Q, split, try the plug.
    at!(Enter);
    if let Some(ended) = strip_flush(cx, bio) {
        if ended != Next::Step {
            at!(Rest, ended);
        }
        return;
    }
    let traced = Traced::bio(cx.cpu.tracing, &cx.pool(), bio);
    // bio_issue_init() reads the time, whatever happens to the bio.
    let now = cx.cpu.now();
    cx.cpu.plug.time(cx.rules().stamp, now);
    trace_rq(cx.cpu, cx.q.id, TraceAction::Queue, traced);
    while let Some(rest) = sub!(mq_submit_bio(bio)) {
        bio = rest;
        at!(Enter);
    }
}

/// blk_mq_submit_bio(). Returns the rest of a bio that was split.
#[steps(keep(bio), inline)]
fn mq_submit_bio(cx: &mut Cx<'_>, mut bio: BioId) -> Option<BioId> {
    if !sub!(queue_enter(bio)) {
        return None;
    }
    let mut remainder: Option<BioId> = None;
    match split(cx, bio) {
        Split::No => {
            if sub!(attempt_bio_merge(bio)) {
                sub!(queue_exit());
                return None;
            }
        }
        Split::First(part) => {
            remainder = Some(bio);
            bio = part;
        }
        Split::WouldBlock => {
            let cached: Option<RequestId> = drop_cached_rq(cx, bio);
            at!(Absorbed, would_block(cx, bio));
            if let Some(rq) = cached {
                let queue = cx.q.id;
                call!(Rest, Call::Free { queue, rq });
            }
            sub!(queue_exit());
            return None;
        }
    }
    let Some(rq) = sub!(get_request(bio, false)) else {
        return remainder;
    };
    let rq: RequestId = rq;
    init_request(cx, rq, bio, false);
    cx.trace_rq(TraceAction::GetRq, rq);
    if cx.pool()[rq].flags.is_flush() {
        let queue = cx.q.id;
        /// The flush machine was called.
        let answer = ask!(AfterFlush, cx.call(Call::Flush { queue, rq }));
        if answer != Answer::GoOn {
            return remainder;
        }
    }
    // A plug of its own would have been empty until now, and announced nothing.
    let of_bio: bool = !cx.cpu.plug.active && cx.rules().bio_plug == BioPlug::EachBio;
    if of_bio {
        cx.cpu.plug.start(1);
    }
    if cx.cpu.plug.active {
        if must_flush(cx) {
            let (queue, why) = (cx.cpu.plug.queue(), Unplug::Full);
            /// The full plug is flushed: add to it.
            call!(Plug, Call::Unplug { queue, why });
        }
        let issued = add_rq_to_plug(cx, rq);
        let (queue, why) = (cx.q.id, Unplug::Finish);
        if of_bio {
            call!(Rest, Call::Unplug { queue, why });
            cx.cpu.plug = Plug::default();
        } else if let Some(rq) = issued {
            call!(Rest, issue(cx, rq));
        }
        return remainder;
    }
    let mut busy: bool = false;
    if !cx.q.has_elevator() && cx.rules().direct_issue == DirectIssue::UnlessBusy {
        /// Is the hctx busy?
        at!(Busy);
        let hctx = cx.pool()[rq].hctx;
        busy = cx.hctx(hctx).dispatch_busy.read(cx.cpu) != 0;
    }
    call!(Rest, insert_or_issue(cx, rq, busy));
    remainder
}

/// blk_execute_rq_nowait() of a request for this bio, its allocation included: it is not traced,
/// split or merged.
#[steps(path)]
pub fn execute_rq_nowait(cx: &mut Cx<'_>, bio: BioId, how: Execute) {
    at!(Enter);
    if !sub!(queue_enter(bio)) {
        return;
    }
    let Some(rq) = sub!(get_request(bio, true)) else {
        return;
    };
    init_request(cx, rq, bio, true);
    let run = match how.in_background {
        true => ThenRun::Background,
        false => ThenRun::Here,
    };
    let insertion = match cx.rules().fixes.has(Fix::PassthroughAround) {
        true => Inserts::bypass(cx.q.id, rq, how.at_head, run),
        // Before v5.6 mq-deadline had it on its list of head insertions.
        false => Inserts::new(cx.q.id, rq, true, run),
    };
    call!(Rest, Call::Insert(insertion));
}

/// bio_queue_enter(): waits for a frozen queue. False: the bio may not wait, and has ended.
#[steps(inline)]
fn queue_enter(cx: &mut Cx<'_>, bio: BioId) -> bool {
    while !cx.pool().enter_queue() {
        // A request in the plug's cache has a reference, so that a freeze waits for it: nobody who
        // takes it waits for the thaw (blk_mq_alloc_cached_request() for a passthrough request).
        if find_cached_rq(cx, bio).is_some() {
            cx.pool().get_queue(1);
            return true;
        }
        if cx.pool().bio(bio).flags.nowait {
            at!(Rest, would_block(cx, bio));
            return false;
        }
        let (queue, event) = (cx.q.id, Event::Thaw);
        call!(Enter, Call::Wait { queue, event });
    }
    true
}

/// blk_queue_exit() of a bio without a request.
#[steps]
fn queue_exit(cx: &mut Cx<'_>) {
    if cx.pool().exit_queue() {
        /// The end of a plug for only this bio; the remainder of a split bio, or the end.
        at!(Rest, wake_all(cx.cpu, cx.q.id));
    }
}

/// A cached request, or a new one. None: the bio may not wait for a tag, and has ended.
#[steps(inline)]
fn get_request(cx: &mut Cx<'_>, bio: BioId, passthrough: bool) -> Option<RequestId> {
    /// Take a cached request, or search for tags. The set-up of the request touches nothing
    /// shared: it belongs to the label that got the request.
    at!(Alloc);
    // It is perhaps of another CPU's hctx, on which the task was when it was allocated.
    if let Some(rq) = take_cached_rq(cx, bio) {
        // The request has a reference already.
        cx.pool().exit_queue();
        return Some(rq);
    }
    let rq = sub!(alloc_requests(bio, passthrough));
    if rq.is_some() {
        return rq;
    }
    at!(Rest, would_block(cx, bio));
    sub!(queue_exit());
    None
}

labels! {
    pub enum At in "submit" of
        submit_bio attempt_bio_merge free_cached_rq get_request alloc_requests get_tag finish_wait
        mq_submit_bio queue_exit
}

impl SubmitPath {
    /// The bio, or its part that is submitted now.
    pub fn bio(&self) -> BioId {
        let part = self.find::<mq_submit_bio::State>();
        part.map_or(self.bio, |part| part.bio)
    }
}

/// blk_mq_bio_to_request(), and what blk_mq_rq_ctx_init() sets.
fn init_request(cx: &mut Cx<'_>, rq: RequestId, bio: BioId, passthrough: bool) {
    let mut pool = cx.pool();
    cx.q.touch_elevator(&pool);
    pool.bio_to_request(rq, bio);
    let r = &mut pool[rq];
    let around = passthrough && cx.rules().fixes.has(Fix::PassthroughAround);
    let dispatches = cx.rules().flush_data == FlushData::DispatchList && r.flags.is_flush();
    r.use_sched = cx.q.has_elevator() && !dispatches && !around;
    // A cached request has its time already (v6.1).
    let stamp = cx.rules().stamp;
    if stamp != Stamp::Each || r.start_time == SimTime::ZERO {
        let now = cx.cpu.now();
        r.start_time = cx.cpu.plug.time(stamp, now);
    }
    r.place = Place::Path;
    r.passthrough |= passthrough;
    if r.use_sched && !passthrough && cx.q.elevator.hooks().prepare {
        cx.q.elevator.prepare(r);
    }
}

/// The end of blk_mq_submit_bio() without a plug; of blk_mq_make_request() and
/// blk_sq_make_request() up to 4.18.
fn insert_or_issue(cx: &Cx<'_>, rq: RequestId, busy: bool) -> Call {
    let queue = cx.q.id;
    let several = cx.q.hctxs.len() > 1;
    let request = &cx.pool()[rq];
    // op_is_sync()
    let sync = request.op == Op::Read || request.flags.sync || request.flags.is_flush();
    let old = cx.rules().direct_issue;
    let (inserts, here) = match old {
        DirectIssue::OfSeveral => (!(several && sync), sync),
        DirectIssue::OfSeveralElseKblockd => (!(several && sync), false),
        DirectIssue::UnlessBusy if cx.q.has_elevator() => (true, cx.q.settings.inline_runs),
        DirectIssue::UnlessBusy => (busy && !(several && sync), cx.q.settings.inline_runs),
    };
    if !inserts {
        return issue(cx, rq);
    }
    let run = if here {
        ThenRun::Here
    } else {
        ThenRun::Background
    };
    Call::Insert(Inserts::new(queue, rq, false, run))
}

/// blk_mq_try_issue_directly(): with a scheduler the request is inserted and run (4.12).
fn issue(cx: &Cx<'_>, rq: RequestId) -> Call {
    let queue = cx.q.id;
    match cx.q.has_elevator() {
        true => Call::Insert(Inserts::new(queue, rq, false, ThenRun::Here)),
        false => Call::Issue { queue, rq },
    }
}

/// blk_add_rq_to_plug(). Returns a request that is issued for the new one: a plug of a queue of
/// several hctxs holds one at most (up to 4.18).
fn add_rq_to_plug(cx: &mut Cx<'_>, rq: RequestId) -> Option<RequestId> {
    let queue = cx.q.id;
    let traced = cx.rules().plug_trace == PlugTrace::Always || cx.q.hctxs.len() == 1;
    match cx.cpu.plug.list.first() {
        None if traced => cx.trace_count(TraceAction::Plug, 0),
        None => {}
        Some(peeked) => cx.cpu.plug.multiple_queues |= peeked.queue != queue,
    }
    let mut pool = cx.pool();
    let request = &mut pool[rq];
    request.place = Place::Plug;
    cx.cpu.plug.has_elevator |= request.internal_tag.is_some();
    drop(pool);
    let issued = held_before(cx);
    let entry = Plugged { queue, rq };
    match cx.rules().plug_order {
        PlugOrder::Lifo => cx.cpu.plug.list.push_front(&mut cx.pool(), entry),
        PlugOrder::Fifo | PlugOrder::Sorted => {
            cx.cpu.plug.list.push_back(cx.mq, cx.cpu.id, entry);
        }
    }
    issued
}

/// The request of this queue that the plug holds already (same_queue_rq).
fn held_before(cx: &mut Cx<'_>) -> Option<RequestId> {
    let old = cx.rules().direct_issue != DirectIssue::UnlessBusy;
    let merges = cx.q.settings.nomerges != NoMerges::Never;
    if !(old && merges && cx.q.hctxs.len() > 1) {
        return None;
    }
    let list = &mut cx.cpu.plug.list;
    let held = list.iter(cx.mq).find(|entry| entry.queue == cx.q.id)?;
    list.remove(cx.mq, cx.cpu.id, held);
    cx.pool()[held.rq].place = Place::Path;
    Some(held.rq)
}

/// Whether the plug is flushed before it takes one more request.
fn must_flush(cx: &Cx<'_>) -> bool {
    let plug = &cx.cpu.plug;
    let Some(peeked) = plug.list.first() else {
        return false;
    };
    if cx.rules().plug_order == PlugOrder::Sorted {
        return must_flush_old(cx);
    }
    let sized = cx.q.settings.nomerges != NoMerges::Never;
    let pool = cx.mq.queue(peeked.queue).pool.held(cx.cpu.id);
    let large = sized && pool[peeked.rq].sectors.0 >= PLUG_FLUSH_SECTORS;
    large || plug.is_full(cx.rules().plug_max, plug.list.len())
}

/// The same of blk_sq_make_request() and blk_mq_make_request(): the requests of the queue count,
/// and the newest one's bytes.
fn must_flush_old(cx: &Cx<'_>) -> bool {
    let list = &cx.cpu.plug.list;
    let Some(last) = list.last().filter(|_| cx.q.hctxs.len() == 1) else {
        return false;
    };
    let of_queue = list.iter(cx.mq).filter(|entry| entry.queue == cx.q.id);
    let pool = cx.mq.queue(last.queue).pool.held(cx.cpu.id);
    let large = cx.rules().plug_bytes && pool[last.rq].sectors.0 >= PLUG_FLUSH_SECTORS;
    drop(pool);
    large || cx.cpu.plug.is_full(cx.rules().plug_max, of_queue.count())
}

/// bio_wouldblock_error().
fn would_block(cx: &mut Cx<'_>, bio: BioId) -> Next {
    let mut pool = cx.pool();
    let mut traced = Traced::bio(cx.cpu.tracing, &pool, bio);
    if let Some(traced) = &mut traced {
        traced.status = Status::Again;
    }
    let whole = pool.end_piece(bio, Status::Again);
    drop(pool);
    trace(cx.cpu, cx.q.id, TraceAction::Complete, traced, false);
    ended(cx.q, whole, cx.cpu)
}

#[cfg(test)]
mod tests;
