//! Dispatch of a list of requests to the driver, until it is empty or a resource is missing.
//!
//! Kernel: blk_mq_dispatch_rq_list(), blk_mq_mark_tag_wait() in block/blk-mq.c (6.1.192, 6.12.117).
//! Read next: `run.rs`, which calls this.

use super::sbitmap::{TagMap, put_tag};
use super::tag::{self, get_driver_tag};
use crate::call::Call;
use crate::env::{Answer, TraceAction};
use crate::list::QueueList;
use crate::queue::LockKind;
use crate::request::{HctxId, Place, QueueId, Request, RequestId, RequestPool};
use crate::rules::{
    AfterRefusal, AskAfter, LastHint, PutBack, Recheck, RefusedRun, Restart, SoftwareQueues,
    TagWait, WaitEntry, WaitRetry,
};
use crate::step::{Cx, Next, labels};
use crate::time::Duration;
use crate::waiter::Waiter;
use steps::steps;

/// BLK_MQ_RESOURCE_DELAY.
const RESOURCE_DELAY: Duration = Duration::from_millis(3);

/// Why a list was not dispatched completely.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Stop {
    #[default]
    No,
    /// No budget, or BLK_STS_RESOURCE: a run is not promised.
    NeedsResource,
    /// BLK_STS_DEV_RESOURCE: a completion causes the next run.
    Waits,
    /// No driver tag: a completion causes the next run, or a freed tag if the hctx is in a wait
    /// queue.
    NoTag,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Dispatched {
    /// All were dispatched: the return value of blk_mq_dispatch_rq_list().
    pub(super) whole: bool,
    /// A request was issued, or ended by the driver; only recorded where the rules need it.
    pub(super) moved: bool,
}

/// blk_mq_dispatch_rq_list(). `needs_budget`: the requests hold none yet. `unused`: a budget that
/// the caller got for nothing, released first.
#[steps]
pub(super) fn dispatch_rq_list(
    cx: &mut Cx<'_>,
    hctx: HctxId,
    mut list: QueueList,
    needs_budget: bool,
    unused: Option<u32>,
) -> Dispatched {
    let mut queued: u32 = 0;
    let mut failed: bool = false;
    let mut moved: bool = false;
    let mut stop: Stop = Stop::No;
    /// Look at the head; with its tag it is offered.
    ask!(Head, unused.map_or(Next::Step, Next::PutBudget));
    while let Some(rq) = list.first() {
        let rq: RequestId = rq;
        // blk_mq_prep_dispatch_rq()
        if needs_budget && cx.q.settings.driver_budget {
            /// Was there a budget?
            let Answer::Budget(token) = ask!(Budget, Next::Budget) else {
                stop = Stop::NeedsResource;
                /// Free the driver tag of the head.
                sub!(PutTag, put_driver_tag(hctx, rq));
                break;
            };
            cx.pool()[rq].budget = Some(token);
        }
        if tag::wants_driver_tag(&cx.pool()[rq]) {
            /// Take a driver tag.
            at!(Tag);
            let got = sub!(Tag, get_driver_tag(rq, hctx));
            if !sub!(mark_tag_wait(hctx, rq, got)) {
                stop = Stop::NoTag;
                /// No driver tag for the head: release its budget first.
                at!(NoTag);
                if let Some(token) = cx.pool()[rq].budget.take() {
                    /// The budget is released: no more requests follow.
                    ask!(Commit, Next::PutBudget(token));
                }
                break;
            }
        }
        list.pop_front(&mut cx.pool());
        // v6.1: `last` also means that the next request gets no driver tag; one it gets, it keeps.
        let mut ahead: bool = !list.is_empty();
        if ahead && cx.rules().last_hint == LastHint::TagAhead {
            let next: RequestId = list.first().expect("one more");
            ahead = cx.pool()[next].tag.is_some();
            if !ahead {
                /// Take a tag for the request after the head (v6.1).
                at!(TagAhead);
                ahead = sub!(TagAhead, get_driver_tag(next, hctx));
            }
        }
        /// The driver's answer.
        match ask!(Answer, Next::offer(rq, !ahead)) {
            Answer::Ok => {
                queued += 1;
                moved = notes_moves(cx);
                // v6.1 counts every error of the list, v6.12 looks at the last answer.
                failed &= cx.rules().last_hint == LastHint::TagAhead;
            }
            Answer::Error(status) => {
                (failed, moved) = (true, notes_moves(cx));
                let queue = cx.q.id;
                call!(Head, Call::End { queue, rq, status });
            }
            refused => {
                stop = if refused == Answer::Resource {
                    Stop::NeedsResource
                } else {
                    Stop::Waits
                };
                list.push_front(&mut cx.pool(), rq);
                // queue_rq has released it.
                cx.pool()[rq].budget = None;
                if ahead && cx.rules().last_hint == LastHint::TagAhead {
                    let next = list.next(&cx.pool(), rq).expect("one more");
                    /// Free the tag taken ahead (v6.1).
                    sub!(PutAhead, put_driver_tag(hctx, next));
                }
                sub!(PutTag, put_driver_tag(hctx, rq));
                requeue_bookkeeping(&mut cx.pool(), rq);
                cx.trace_rq(TraceAction::Requeue, rq);
                break;
            }
        }
    }
    // blk_mq_commit_rqs()
    let is_partial = !list.is_empty() || failed;
    let commits = is_partial && queued > 0 && cx.q.settings.driver_commit_rqs;
    if commits && cx.rules().last_hint == LastHint::ListEmpty {
        cx.trace_count(TraceAction::Unplug, u64::from(queued));
    }
    if list.is_empty() {
        if commits {
            /// Read the moving average, after the driver's doorbell or after the rest was put back.
            ask!(BusyRead, Next::commit(hctx));
        }
    } else {
        if commits {
            /// Release the budgets of the rest, blk_mq_release_budgets().
            ask!(Rest, Next::commit(hctx));
        }
        while let Some(token) = take_budget(cx, list) {
            ask!(Rest, Next::PutBudget(token));
        }
        /// The rest goes to the dispatch list.
        lock!(PutBack, cx.lock(LockKind::Dispatch, u32::from(hctx.0)));
        put_back(cx, hctx, &mut list);
        // Pairs with the barrier after clearing SCHED_RESTART: it sees the list, or we the bit.
        cx.mb();
        /// blk_mq_sched_needs_restart(): will a completion run this hctx?
        at!(Restart);
        let mut promised: bool = cx.hctx(hctx).restart.test(cx.cpu);
        let asks = match cx.rules().restart.recheck {
            Recheck::LeftWaitQueue => promised && stop == Stop::NoTag,
            Recheck::Unpromised => !promised,
        };
        if asks && cx.set().waits_for_any() {
            /// Tags of several hctxs: will a freed tag?
            at!(StillInLine);
            promised = cx.hctx(hctx).dispatch_wait.test(cx.cpu);
        }
        let is_refused = stop == Stop::NeedsResource;
        let after = cx.rules().restart.after_refusal;
        if !promised || is_refused && after == AfterRefusal::AtOnce {
            call!(
                BusyRead,
                Call::Run {
                    queue: cx.q.id,
                    hctx,
                    in_background: true
                }
            );
        } else {
            let delays = match after {
                AfterRefusal::AtOnce => false,
                AfterRefusal::Driver => !asks_itself(cx),
                AfterRefusal::Delay => true,
            };
            if is_refused && delays {
                cx.kick(hctx, RESOURCE_DELAY);
            }
            at!(BusyRead);
        }
    }
    // blk_mq_update_dispatch_busy()
    if let Some(busy) = busy_after(cx, hctx, stop != Stop::No) {
        let busy: i32 = busy;
        /// Write the moving average.
        at!(BusyWrite);
        cx.hctx(hctx).dispatch_busy.write(cx.cpu, busy);
    }
    Dispatched {
        whole: stop == Stop::No,
        moved,
    }
}

/// blk_mq_mark_tag_wait() after a first try that `got` a tag or not: the free of a tag of a shared
/// map checks only the SCHED_RESTART of its own hctx, so this hctx has to wait for a tag in a wait
/// queue, once. Returns whether the request has a tag now.
///
/// Deviation(D11): whether an hctx is in a wait queue is one bit, without `dispatch_wait_lock`.
#[steps]
fn mark_tag_wait(cx: &mut Cx<'_>, hctx: HctxId, rq: RequestId, got: bool) -> bool {
    if got {
        if cx.set().waits_for_any() && cx.rules().restart.entry == WaitEntry::AnyAttempt {
            sub!(leave_wait_queue(hctx));
        }
        return true;
    }
    if !cx.set().waits_for_any() {
        // blk_mq_sched_mark_restart_hctx(): a completion of this hctx will see the bit.
        /// All tags are taken: is SCHED_RESTART set?
        at!(TagRestart);
        if !cx.hctx(hctx).restart.test(cx.cpu) {
            /// Set SCHED_RESTART.
            at!(TagSetRestart);
            cx.hctx(hctx).restart.set(cx.cpu);
        }
        // Pairs with the barrier between putting a tag and reading the bit.
        cx.mb();
        /// Try once more; under the wait queue's lock, or after it before v4.19.
        at!(TagRetry);
        return sub!(TagRetry, get_driver_tag(rq, hctx));
    }
    if cx.rules().restart.wait == TagWait::Nowhere {
        return false;
    }
    /// Tags of several hctxs: is this one in a wait queue already?
    at!(TagInLine);
    if cx.hctx(hctx).dispatch_wait.test(cx.cpu) {
        return false;
    }
    let ws_index: u32 = next_wait_queue(cx, hctx);
    /// Add the entry to the wait queue.
    lock!(TagLine, TagMap::Driver(hctx).wait_lock(cx, ws_index));
    let ws = &cx.set().driver_of(hctx).wait[ws_index as usize];
    if cx.hctx(hctx).dispatch_wait.test_and_set(cx.cpu) {
        // Another run of the hctx was first.
        ws.queue.release(cx.cpu);
        return false;
    }
    enter_wait_queue(cx, hctx, ws_index);
    if cx.rules().restart.retry == WaitRetry::Unlocked {
        ws.queue.release(cx.cpu);
    }
    // Pairs with the barrier between freeing a tag and looking for waiters.
    cx.mb();
    at!(TagRetry);
    let got: bool = sub!(TagRetry, get_driver_tag(rq, hctx));
    let leaves = got && cx.rules().restart.entry != WaitEntry::Kept;
    if cx.rules().restart.retry == WaitRetry::UnderLock {
        if leaves {
            remove_entry(cx, hctx, ws_index);
        }
        cx.set().driver_of(hctx).wait[ws_index as usize]
            .queue
            .release(cx.cpu);
    } else if leaves {
        sub!(leave_wait_queue(hctx));
        return true;
    }
    got
}

/// With a tag: an entry in a wait queue would take a wake-up from others.
#[steps]
fn leave_wait_queue(cx: &mut Cx<'_>, hctx: HctxId) {
    /// It has a tag: is its entry still in the wait queue?
    at!(TagStale);
    if cx.hctx(hctx).dispatch_wait.test(cx.cpu) {
        let ws_index: u32 = cx.hctx(hctx).dispatch_ws_index.get();
        /// Remove the entry, unless it was woken.
        lock!(TagLeave, TagMap::Driver(hctx).wait_lock(cx, ws_index));
        if cx.rules().restart.entry != WaitEntry::Kept {
            remove_entry(cx, hctx, ws_index);
        }
        cx.set().driver_of(hctx).wait[ws_index as usize]
            .queue
            .release(cx.cpu);
    }
}

/// blk_mq_put_driver_tag(): a request whose driver tag identifies it keeps it.
#[steps]
pub(super) fn put_driver_tag(cx: &mut Cx<'_>, hctx: HctxId, rq: RequestId) {
    let both = |r: &Request| r.internal_tag.is_some() && r.tag.is_some();
    if !both(&cx.pool()[rq]) {
        return;
    }
    at!(_);
    let put = tag::put_driver_alone(cx.q, &mut cx.pool()[rq]);
    sub!(put_tag(TagMap::Driver(hctx), put));
}

labels! {
    pub enum At in "list" of dispatch_rq_list mark_tag_wait leave_wait_queue
}

/// Under hctx->lock: the remaining requests go to the dispatch list.
fn put_back(cx: &mut Cx<'_>, hctx: HctxId, list: &mut QueueList) {
    cx.set_places(*list, Place::Dispatch);
    let (hctx, rules) = (cx.hctx(hctx), cx.rules().restart);
    let mut pool = cx.pool();
    let mut dispatch = hctx.dispatch.held(cx.cpu);
    match rules.put_back {
        PutBack::Head => dispatch.splice_front(&mut pool, list),
        PutBack::Tail => dispatch.splice_back(&mut pool, list),
    }
    drop(dispatch);
    drop(pool);
    hctx.dispatch_pending.set(cx.cpu);
    hctx.dispatch.release(cx.cpu);
}

/// Requests that are put back hold no budgets.
fn take_budget(cx: &Cx<'_>, list: QueueList) -> Option<u32> {
    if !cx.q.settings.driver_budget {
        return None;
    }
    let mut pool = cx.pool();
    let held = list.iter(&pool).find(|&rq| pool[rq].budget.is_some());
    held.and_then(|rq| pool[rq].budget.take())
}

/// The wait queue of the map that is the hctx's turn.
fn next_wait_queue(cx: &Cx<'_>, hctx: HctxId) -> u32 {
    let index = &cx.hctx(hctx).wait_index;
    let ws_index = index.get();
    index.put((ws_index + 1) % cx.set().driver_of(hctx).wait.len() as u32);
    ws_index
}

/// Under the wait queue's lock.
fn enter_wait_queue(cx: &mut Cx<'_>, hctx: HctxId, ws_index: u32) {
    let (map, rules) = (cx.set().driver_of(hctx), cx.rules().restart);
    map.ws_active.add(cx.cpu, 1);
    cx.hctx(hctx).dispatch_ws_index.put(ws_index);
    let waiter = entry(rules, cx.q.id, hctx);
    let neighbour = map.wait[ws_index as usize].edit(cx.cpu, |entries| match rules.wait {
        TagWait::WakeOne => {
            let last = entries.last().copied();
            entries.push(waiter);
            last
        }
        TagWait::Nowhere | TagWait::WakeAll => {
            let first = entries.first().copied();
            entries.insert(0, waiter);
            first
        }
    });
    if let Some(Waiter::Hctx { queue, hctx, .. }) = neighbour {
        // Its list links, next to its `tags`.
        cx.mq.queue(queue).dirty_tags_line(hctx, cx.cpu);
    }
}

/// Under the wait queue's lock: removes the hctx's entry, unless it was woken meanwhile.
fn remove_entry(cx: &mut Cx<'_>, hctx: HctxId, ws_index: u32) {
    let map = cx.set().driver_of(hctx);
    let waiter = entry(cx.rules().restart, cx.q.id, hctx);
    if map.wait[ws_index as usize].remove(cx.cpu, waiter) {
        cx.hctx(hctx).dispatch_wait.clear(cx.cpu);
        map.ws_active.add(cx.cpu, -1);
    }
}

/// The entry of an hctx in a wait queue.
fn entry(rules: Restart, queue: QueueId, hctx: HctxId) -> Waiter {
    let exclusive = rules.wait == TagWait::WakeOne;
    Waiter::Hctx {
        queue,
        hctx,
        exclusive,
    }
}

/// A mapped queue has its hctx run after it refused a request.
fn asks_itself(cx: &Cx<'_>) -> bool {
    let later = cx.rules().device_mapper.requests.refused_run == RefusedRun::Later;
    cx.q.mapped.is_some() && later
}

/// Whether the run needs to know that a request of the list was issued.
fn notes_moves(cx: &Cx<'_>) -> bool {
    cx.rules().restart.ask != AskAfter::NoneLeft
}

/// __blk_mq_requeue_request() without the tag: the driver does not have it any more.
pub(super) fn requeue_bookkeeping(pool: &mut RequestPool, rq: RequestId) {
    pool[rq].in_flight = false;
    pool[rq].place = Place::Path;
}

/// blk_mq_update_dispatch_busy(), weight 8, factor 4: the next `dispatch_busy` after an attempt
/// that had to stop or not. `None`: it is not written.
pub(super) fn busy_after(cx: &mut Cx<'_>, hctx: HctxId, stopped: bool) -> Option<i32> {
    if cx.rules().restart.software_queues != SoftwareQueues::OneByOneIfBusy {
        return None;
    }
    let value = cx.hctx(hctx).dispatch_busy.read(cx.cpu);
    let changes = value != 0 || stopped;
    changes.then(|| (7 * value + if stopped { 16 } else { 0 }) / 8)
}
