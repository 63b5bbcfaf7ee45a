//! A clone of a request of a mapped queue: its allocation, and its direct issue to the driver.
//!
//! Two calls from queue_rq of the mapped queue (`map.rs`), with other work between them. Neither
//! waits, or leaves anything on a list of this queue that could go to the driver: the caller keeps
//! a clone that the driver refuses, so that the request above stays where it can still merge. A
//! queue that is stopped or quiesced takes the clone into its own lists. Not here: the choice of
//! the queue, and the clone's end (`clone_end.rs`). Kernel: blk_mq_alloc_request(),
//! blk_insert_cloned_request(), blk_mq_request_issue_directly() (6.1.192).

use super::driver::is_stopped;
use super::list::{busy_after, requeue_bookkeeping};
use super::tag::{self, get_driver_tag, try_get_tag};
use super::wait::wake_all;
use crate::call::{Call, Inserts};
use crate::elevator::Wanted;
use crate::env::{Answer, TraceAction};
use crate::request::{HctxId, IoContextId, Op, OpFlags, RequestId};
use crate::step::{Cx, Next, labels};
use steps::steps;

pub use alloc_request::State as AllocateClone;
pub use insert_cloned_request::State as IssueClone;

/// blk_mq_alloc_request(BLK_MQ_REQ_NOWAIT) of one for this request above. The answer in the CPU:
/// `Answer::Clone`, or `Resource`.
#[steps(path)]
pub fn alloc_request(cx: &mut Cx<'_>, above: RequestId) {
    /// Which hctx?
    at!(Enter);
    let mut clone: Option<RequestId> = None;
    if cx.pool().enter_queue() {
        clone = sub!(alloc_requests(above));
        if clone.is_none() && cx.pool().exit_queue() {
            /// Returns the answer to the caller.
            at!(Tell, wake_all(cx.cpu, cx.q.id));
        } else {
            at!(Tell);
        }
    } else {
        at!(Tell);
    }
    cx.cpu.answer = clone.map_or(Answer::Resource, Answer::Clone);
}

/// __blk_mq_alloc_requests().
#[steps]
fn alloc_requests(cx: &mut Cx<'_>, above: RequestId) -> Option<RequestId> {
    let (op, ..) = whose(cx, above);
    let hctx: HctxId = cx.set().hctx_for(cx.cpu.id, op, false);
    let mut shallow: Option<u32> = None;
    if let Some(asks) = wanted(cx, above) {
        if let Some(lock) = cx.q.elevator.limit_depth_lock(cx.q, asks) {
            /// Under the lock of a scheduler whose limit_depth() takes it.
            lock!(LimitDepth, Next::Lock(lock));
            let asks = wanted(cx, above).expect("it was asked");
            shallow = cx.q.elevator.limit_depth_locked(cx.q, asks, cx.cpu);
        } else {
            shallow = cx.q.elevator.limit_depth(cx.q, asks, cx.cpu);
        }
    }
    /// Take a tag, if there is one.
    at!(Tag);
    let rq = sub!(Tag, try_get_tag(hctx, None, shallow, false));
    if let Some(rq) = rq {
        rq_ctx_init(cx, rq, above);
    }
    rq
}

/// blk_insert_cloned_request() of one that was allocated in `hctx`. The answer in the CPU: `Ok`,
/// the driver's error, or `Resource`: the caller keeps the clone.
#[steps(path)]
pub fn insert_cloned_request(cx: &mut Cx<'_>, rq: RequestId, hctx: HctxId) {
    let answer: Answer = sub!(request_issue_directly(rq, hctx));
    cx.cpu.answer = answer;
}

/// blk_mq_request_issue_directly() of a last request: the queue above has a list of its own.
#[steps]
fn request_issue_directly(cx: &mut Cx<'_>, rq: RequestId, hctx: HctxId) -> Answer {
    let mut answer: Answer = Answer::Ok;
    /// Is the hctx stopped?
    at!(Stopped);
    if is_stopped(cx.q, cx.hctx(hctx), cx.cpu) {
        call!(Tell, Call::Insert(Inserts::insert_stopped(cx.q, rq)));
        return answer;
    }
    /// Is the queue quiesced?
    at!(Quiesced);
    if cx.q.quiesced.test(cx.cpu) {
        call!(Tell, Call::Insert(Inserts::insert_stopped(cx.q, rq)));
        return answer;
    }
    answer = Answer::Resource;
    if cx.q.settings.driver_budget {
        /// get_budget has answered.
        let Answer::Budget(token) = ask!(Budget, Next::Budget) else {
            at!(Tell);
            return answer;
        };
        cx.pool()[rq].budget = Some(token);
    }
    if tag::wants_driver_tag(&cx.pool()[rq]) {
        /// Take a driver tag besides the scheduler's.
        at!(DriverTag);
        if !sub!(DriverTag, get_driver_tag(rq, hctx)) {
            let budget = cx.pool()[rq].budget.take();
            at!(Tell, budget.map_or(Next::Step, Next::PutBudget));
            return answer;
        }
    }
    /// The driver has answered.
    answer = ask!(Answer, Next::offer(rq, true));
    if answer == Answer::DevResource {
        answer = Answer::Resource;
    }
    if let Some(busy) = busy_after(cx, hctx, answer == Answer::Resource) {
        let busy: i32 = busy;
        /// Write the moving average.
        at!(BusyWrite);
        cx.hctx(hctx).dispatch_busy.write(cx.cpu, busy);
    }
    // If it was accepted, it may have ended already.
    if answer != Answer::Ok {
        let mut pool = cx.pool();
        pool[rq].budget = None;
        requeue_bookkeeping(&mut pool, rq);
        drop(pool);
        if answer == Answer::Resource {
            cx.trace_rq(TraceAction::Requeue, rq);
        }
    }
    at!(Tell);
    answer
}

labels! {
    pub enum At in "clone-rq" of alloc_request alloc_requests request_issue_directly
}

/// The properties of the request above.
fn whose(cx: &Cx<'_>, above: RequestId) -> (Op, OpFlags, IoContextId) {
    let clones = cx.q.clones.as_ref().expect("it has clones");
    let pool = cx.mq.queue(clones.above).pool.held(cx.cpu.id);
    let above = &pool[above];
    (above.op, above.flags, above.io_context)
}

/// The limit_depth() arguments of a scheduler of this queue, though the clone bypasses it.
fn wanted(cx: &Cx<'_>, above: RequestId) -> Option<Wanted> {
    let whose = cx.q.has_elevator().then(|| whose(cx, above))?;
    tag::wanted(cx.q, whose)
}

/// blk_mq_rq_ctx_init(). RQF_ELVPRIV, RQF_USE_SCHED: also of a request that bypasses the scheduler.
fn rq_ctx_init(cx: &mut Cx<'_>, rq: RequestId, above: RequestId) {
    let (now, scheduled) = (cx.cpu.now(), wanted(cx, above).is_some());
    let mut pool = cx.pool();
    pool[rq].start_time = now;
    pool[rq].use_sched = scheduled;
    if scheduled && cx.q.elevator.hooks().prepare {
        cx.q.elevator.prepare(&mut pool[rq]);
    }
}
