//! A driver that has taken a request requeues it: it will be offered again.
//!
//! The driver calls this inside queue_rq and then answers BLK_STS_OK, so that the caller of
//! queue_rq counts the request as taken. Not here: the reinsertion (`requeue.rs`). Kernel:
//! blk_mq_requeue_request() (6.1.192, 6.12.117).

use crate::call::{Call, Hook};
use crate::env::Effect;
use crate::path::list::{put_driver_tag, requeue_bookkeeping};
use crate::queue::LockKind;
use crate::request::{HctxId, Place, QueueId, RequestId};
use crate::rules::RequeueOrder;
use crate::step::{Cx, Traced, labels, trace_returned};
use crate::time::Duration;
use steps::steps;

pub use requeue_request::State as RequeueRequest;

/// blk_mq_requeue_request(), with the list kicked `after` a time. Does not change the CPU's answer.
/// `dontprep` (RQF_DONTPREP): the driver has stored its own data in the request, so that it must
/// not be merged; it will go to the dispatch list. Any budget was released already. `hooks`: with
/// the scheduler's hook.
#[steps(path)]
pub fn requeue_request(
    cx: &mut Cx<'_>,
    rq: RequestId,
    dontprep: bool,
    after: Duration,
    hooks: bool,
) {
    /// Has it a driver tag besides its identity?
    at!(Start);
    // Before the tag and the trace, not after them as in the kernel: a policy sees neither.
    if hooks && cx.pool()[rq].use_sched && cx.q.elevator.hooks().requeued {
        let (queue, hook) = (cx.q.id, Hook::Requeued(rq));
        call!(Start, Call::Hook { queue, hook });
    }
    let hctx: HctxId = cx.pool()[rq].hctx;
    // The device does not have it any more, whatever a concurrent completion reads.
    requeue_bookkeeping(&mut cx.pool(), rq);
    cx.pool()[rq].budget = None;
    /// Free that tag.
    sub!(PutTag, put_driver_tag(hctx, rq));
    let traced = Traced::rq(cx.cpu.tracing, &cx.pool(), rq);
    trace_returned(cx.cpu, cx.q.id, traced);
    /// Under requeue_lock: add it to the list.
    lock!(Add, cx.lock(LockKind::Requeue, 0));
    add(cx, rq, dontprep, after);
}

labels! {
    pub enum At in "requeue-request" of requeue_request
}

impl RequeueRequest {
    /// By a driver that has taken the request.
    pub fn taken(queue: QueueId, rq: RequestId, dontprep: bool) -> RequeueRequest {
        RequeueRequest::new(queue, rq, dontprep, Duration::ZERO, true)
    }

    /// __blk_mq_requeue_request() without the scheduler's hook: the driver has refused the request,
    /// for a checker that follows a kernel and has not seen the run that offered it.
    pub fn refused(queue: QueueId, rq: RequestId) -> RequeueRequest {
        RequeueRequest::new(queue, rq, false, Duration::ZERO, false)
    }

    /// With blk_mq_delay_kick_requeue_list().
    pub(in crate::path) fn later(queue: QueueId, rq: RequestId, after: Duration) -> RequeueRequest {
        RequeueRequest::new(queue, rq, false, after, true)
    }
}

/// Under requeue_lock. Releases it.
fn add(cx: &mut Cx<'_>, rq: RequestId, dontprep: bool, after: Duration) {
    let stacked = cx.rules().requeue_order == RequeueOrder::Stack;
    let mut pool = cx.pool();
    let mut lists = cx.q.requeue.held(cx.cpu);
    let r = &mut pool[rq];
    r.place = Place::Requeue;
    r.dontprep |= dontprep;
    r.softbarrier = stacked;
    if stacked {
        lists.requeue.push_front(&mut pool, rq);
    } else {
        lists.requeue.push_back(&mut pool, rq);
    }
    drop(lists);
    drop(pool);
    let queue = cx.q.id;
    cx.cpu.outbox.push(match after {
        Duration::ZERO => Effect::KickRequeue { queue },
        after => Effect::KickRequeueLater { queue, after },
    });
    cx.q.requeue.release(cx.cpu);
}
