//! A dispatch call with the additions of the January 2024 series: one CPU at a time, and insertion
//! of the side lists' requests.
//!
//! Kernel: dd_dispatch_request() in block/mq-deadline.c with RFC v2 patch 2 (the gate) and v3 patch
//! 4 (the side lists).

use super::shared::{DISPATCHING, Series, SideLists};
use crate::elevator::InsertAt;
use crate::elevator::locked;
use crate::list::QueueList;
use crate::request::{HctxId, Place, RequestId};
use crate::rules::{DispatchGate, Insertion};
use crate::step::{Cx, Next, labels};
use crate::time::Jiffies;
use steps::steps;

/// dd_dispatch_request() with the series. The caller names the label that picks: every scheduler
/// has it.
#[steps]
pub(crate) fn dispatch_request(cx: &mut Cx<'_>, _hctx: HctxId) -> Option<RequestId> {
    // Before the lock.
    let entered: Jiffies = cx.jiffies();
    if cx.rules().series.dispatch != DispatchGate::Open {
        /// Does another CPU dispatch?
        ask!(Gate, Next::InTime);
        if Series::of(cx).run_state.load(cx.cpu) & DISPATCHING != 0 {
            return None;
        }
        /// Enter dispatch, unless another CPU was faster.
        ask!(ShutGate, Next::InTime);
        if Series::of(cx).run_state.test_and_set(cx.cpu, DISPATCHING) {
            return None;
        }
    }
    // Requests of the side lists, then those that their insertion absorbed.
    let mut kept: QueueList = QueueList::new();
    if cx.rules().series.insertion == Insertion::SideLists {
        /// Under the scheduler's lock: ask for that of the side lists.
        lock!(Drain, locked::lock(cx));
        /// Under both: take them.
        lock!(TakeSide, Series::of(cx).insert_lock(cx.q));
        let to_head: u32 = take_side(cx, &mut kept);
        /// Under the scheduler's lock: insert what they had.
        at!(InsertSide);
        insert_side(cx, &mut kept, to_head);
        at!(_);
    } else {
        lock!(_, locked::lock(cx));
    }
    // Its policies have no state of hctxs.
    let rq: Option<RequestId> = cx.q.elevator.pick(cx, HctxId(0), entered, None);
    match cx.rules().series.dispatch {
        DispatchGate::Open => cx.q.elevator.unlock(cx.cpu),
        // A label of its own: others see the gate open when the picking is over, not when it
        // begins.
        DispatchGate::OneAtATime => {
            /// Still under the lock, after the pick: let others dispatch, and unlock.
            ask!(Leave, Next::InTime);
            Series::of(cx).run_state.fetch_and(cx.cpu, !DISPATCHING);
            cx.q.elevator.unlock(cx.cpu);
        }
        DispatchGate::ClearedAfterUnlock => {
            cx.q.elevator.unlock(cx.cpu);
            /// Let others dispatch, after the unlock.
            ask!(OpenGate, Next::InTime);
            Series::of(cx).run_state.fetch_and(cx.cpu, !DISPATCHING);
        }
    }
    if !kept.is_empty() {
        /// Free what insertion from the side lists absorbed.
        at!(Absorbed);
        while let Some(gone) = kept.pop_front(&mut cx.pool()) {
            ask!(Absorbed, cx.free(gone));
        }
    }
    rq
}

labels! {
    pub enum At in "series-dispatch" of dispatch_request
}

/// Under insert_lock, which it releases: takes the requests of the side lists, those for the head
/// first. Returns the number of these.
fn take_side(cx: &mut Cx<'_>, kept: &mut QueueList) -> u32 {
    let series = Series::of(cx);
    let SideLists {
        at_head,
        mut at_tail,
    } = core::mem::take(&mut *series.inserted.held(cx.cpu));
    *kept = at_head;
    kept.splice_back(&mut cx.pool(), &mut at_tail);
    cx.set_places(*kept, Place::Path);
    series.inserted_pending.mirror(cx.cpu, false);
    series.inserted.release(cx.cpu);
    at_head.len() as u32
}

/// Under the scheduler's lock: inserts them in the order of the posting. Keeps what was absorbed.
fn insert_side(cx: &mut Cx<'_>, kept: &mut QueueList, to_head: u32) {
    let mut found = core::mem::take(kept);
    let mut at_head = QueueList::new();
    for _ in 0..to_head {
        let pool = &mut cx.pool();
        let rq = found.pop_front(pool).expect("it was counted");
        at_head.push_back(pool, rq);
    }
    for (mut side, at) in [(at_head, InsertAt::Head), (found, InsertAt::Sorted)] {
        locked::insert_whole(cx, &mut side, at, kept);
    }
}
