//! Passes over the scheduler: take requests from it and dispatch them, as long as a request is
//! issued.
//!
//! The scheduler chooses the requests (`elevator/`). Kernel: blk_mq_do_dispatch_sched() in
//! block/blk-mq-sched.c (6.1.192, 6.12.117).

use super::list::{Dispatched, dispatch_rq_list};
use super::run_queues::SqHctx;
use super::tag::get_driver_tag;
use crate::elevator::dispatch_request;
use crate::env::{Answer, NotState};
use crate::list::QueueList;
use crate::request::{HctxId, RequestId};
use crate::rules::{Fix, Pull};
use crate::step::{Cx, Next, labels};
use crate::time::{Duration, SimTime};
use steps::steps;

/// BLK_MQ_BUDGET_DELAY.
pub(super) const BUDGET_DELAY: Duration = Duration::from_millis(3);
/// Longest time of passes without a break (HZ ticks).
const SLICE: Duration = Duration::from_secs(1);

/// blk_mq_do_dispatch_sched(): passes, __blk_mq_do_dispatch_sched(), as long as one issues a
/// request, unless other tasks need the CPU. Names of its variables are the kernel's. True for
/// -EAGAIN.
#[steps(inline)]
pub(super) fn do_dispatch_sched(cx: &mut Cx<'_>, hctx: HctxId) -> bool {
    let mut began: NotState<SimTime> = NotState(SimTime::NEVER);
    loop {
        /// How many requests may this pass take?
        at!(Busy);
        began.0 = began.0.min(cx.cpu.now());
        let busy = cx.hctx(hctx).dispatch_busy.read(cx.cpu) != 0;
        let one = busy || cx.rules().restart.pull == Pull::One;
        let max_dispatch: u32 = if one { 1 } else { cx.q.settings.nr_requests };
        let mut rq_list: QueueList = QueueList::new();
        let mut multi_hctxs: bool = false;
        let mut busy: bool = false;
        let mut run_queue: bool = false;
        let mut budget_token: Option<u32> = None;
        'pull: loop {
            let mut place: u16 = 0;
            /// Has the scheduler work?
            at!(HasWork);
            while !cx.q.elevator.has_work(hctx, place, cx.cpu) {
                place += 1;
                if place >= cx.q.elevator.work_places(hctx, cx.rules()) {
                    break 'pull;
                }
                /// Has another part of the scheduler work?
                at!(HasSide);
            }
            // Before v5.8 (ab3cee3762e5) the dispatch list is not checked after the first look.
            if cx.rules().restart.pull != Pull::One || place > 0 {
                /// Did something land on the dispatch list meanwhile?
                at!(PeekDispatch);
                if cx.hctx(hctx).dispatch_pending.test(cx.cpu) {
                    busy = true;
                    break;
                }
            }
            if cx.q.settings.driver_budget {
                /// Was there a budget?
                let Answer::Budget(token) = ask!(Budget, Next::Budget) else {
                    break;
                };
                budget_token = Some(token);
            }
            /// The scheduler's dispatch_request: its section, where that has no name of its own.
            let picked = sub!(Pick, dispatch_request(hctx));
            let Some(rq) = picked else {
                run_queue = true;
                break;
            };
            let rq: RequestId = rq;
            let wants_tag = {
                let mut pool = cx.pool();
                pool[rq].budget = budget_token.take();
                multi_hctxs |= pool[rq].hctx != hctx;
                rq_list.push_back(&mut pool, rq);
                pool[rq].tag.is_none() && cx.rules().restart.pull == Pull::Batch
            };
            if wants_tag {
                /// Take a driver tag for it.
                at!(Tag);
                // A request without one stays in the list: blk_mq_dispatch_rq_list() waits for one.
                if !sub!(Tag, get_driver_tag(rq, cx.pool()[rq].hctx)) {
                    break;
                }
            }
            if rq_list.len() as u32 == max_dispatch {
                break;
            }
        }
        // The budget of a call that returned no request is released before anything else.
        let waits = run_queue && rq_list.is_empty();
        if waits && (reruns(cx) || budget_token.is_some()) {
            sub!(delay_run_hw_queues(budget_token.take()));
        }
        // blk_mq_dispatch_hctx_list(): the requests of the lowest hctx among those pulled.
        let mut dispatched: bool = false;
        while !rq_list.is_empty() {
            let (mut of, mut list) = (hctx, rq_list);
            if multi_hctxs {
                (of, list) = lowest_hctx(cx, &mut rq_list);
            } else {
                rq_list = QueueList::new();
            }
            multi_hctxs = !rq_list.is_empty();
            let Dispatched { whole, .. } =
                sub!(dispatch_rq_list(of, list, false, budget_token.take()));
            dispatched |= whole;
        }
        if busy || !dispatched {
            return busy;
        }
        if cx.cpu.need_resched || cx.cpu.now().since(began.0) >= SLICE {
            cx.kick(hctx, Duration::ZERO);
            return false;
        }
    }
}

/// blk_mq_delay_run_hw_queues(): the current CPU's hctx and those with leftovers, except those
/// whose run is pending already. One hctx per label. `unused`: a budget to release.
#[steps]
fn delay_run_hw_queues(cx: &mut Cx<'_>, unused: Option<u32>) {
    let back = unused.map_or(Next::Step, Next::PutBudget);
    let mut current: SqHctx = SqHctx::NONE;
    if cx.rules().fixes.has(Fix::DelayRun) && reruns(cx) && SqHctx::is_asked(cx.q) {
        /// The scheduler has work and returns none: is the hctx of this CPU run for all, or is it
        /// stopped?
        ask!(Current, back);
        current = SqHctx::look(cx);
        /// The same: run again later, that hctx and others that have leftovers.
        at!(DelayRuns);
    } else {
        ask!(DelayRuns, back);
    }
    let mut other: HctxId = HctxId(0);
    while reruns(cx) {
        if cx.rules().fixes.has(Fix::DelayRun) && current.runs(cx.q, other, cx.cpu) {
            cx.kick_unless_pending(other, BUDGET_DELAY);
        }
        if usize::from(other.0) + 1 == cx.q.hctxs.len() {
            return;
        }
        other.0 += 1;
        at!(DelayRuns);
    }
}

labels! {
    pub enum At in "pass" of do_dispatch_sched delay_run_hw_queues
}

/// Hctxs are run later if the scheduler has work and returns none: not before v5.8 (ab3cee3762e5).
fn reruns(cx: &Cx<'_>) -> bool {
    cx.rules().restart.pull == Pull::Batch
}

/// Takes the requests of the lowest hctx.
fn lowest_hctx(cx: &Cx<'_>, rq_list: &mut QueueList) -> (HctxId, QueueList) {
    let mut pool = cx.pool();
    let lowest = rq_list.iter(&pool).map(|rq| pool[rq].hctx).min();
    let lowest = lowest.expect("the list is not empty");
    let mut same = QueueList::new();
    let mut next = rq_list.first();
    while let Some(rq) = next {
        next = rq_list.next(&pool, rq);
        if pool[rq].hctx == lowest {
            rq_list.remove(&mut pool, rq);
            same.push_back(&mut pool, rq);
        }
    }
    (lowest, same)
}
