//! requeue_work: requeued requests are inserted again, then the queues run.
//!
//! Kernel: blk_mq_requeue_work() (6.1.192, 6.12.117).

mod request;

pub use request::{At as RequestAt, RequeueRequest};
pub use requeue_work::State as RequeuePath;

use crate::call::{Call, Inserts, RunHow, ThenRun};
use crate::list::QueueList;
use crate::queue::LockKind;
use crate::request::{Place, RequestId};
use crate::step::{Cx, labels};
use steps::steps;

/// blk_mq_requeue_work().
#[steps(path)]
pub fn requeue_work(cx: &mut Cx<'_>) {
    /// Asks for the lock.
    at!(Start);
    /// Under requeue_lock: take both lists.
    lock!(Take, cx.lock(LockKind::Requeue, 0));
    let (mut requeue, mut flush): (QueueList, QueueList) = take_lists(cx);
    /// Insert the next request.
    at!(Insert);
    // Requests before flushes: v6.1 keeps flushes at the tail of one list, to the same effect.
    while let Some(rq) = pop(cx, &mut requeue).or_else(|| pop(cx, &mut flush)) {
        // RQF_SOFTBARRIER (v6.1) only marked "at head"; it is cleared now.
        cx.pool()[rq].softbarrier = false;
        let inserts = match cx.pool()[rq].dontprep {
            true => Inserts::bypass(cx.q.id, rq, false, ThenRun::No),
            false => Inserts::new(cx.q.id, rq, true, ThenRun::No),
        };
        call!(Insert, Call::Insert(inserts));
    }
    let (queue, how) = (cx.q.id, RunHow::Here);
    /// All hctxs were run.
    call!(Ran, Call::RunQueues { queue, how });
}

labels! {
    pub enum At in "requeue" of requeue_work
}

/// Under requeue_lock.
fn take_lists(cx: &mut Cx<'_>) -> (QueueList, QueueList) {
    let lists = core::mem::take(&mut *cx.q.requeue.held(cx.cpu));
    cx.set_places(lists.requeue, Place::Path);
    cx.set_places(lists.flush, Place::Path);
    cx.q.requeue.release(cx.cpu);
    (lists.requeue, lists.flush)
}

fn pop(cx: &Cx<'_>, list: &mut QueueList) -> Option<RequestId> {
    list.pop_front(&mut cx.pool())
}

#[cfg(test)]
mod tests;
