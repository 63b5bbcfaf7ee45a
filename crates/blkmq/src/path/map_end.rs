//! The second completion: the end of a clone and the request of the mapped queue.
//!
//! Takes the place of `complete.rs` for requests of a mapped queue that its driver, here
//! device-mapper, has completed; it calls that path where the request ends. The clone is freed
//! first. Kernel: dm_softirq_done(), dm_done(), dm_end_request(), dm_requeue_original_request() in
//! drivers/md/dm-rq.c, multipath_end_io() in dm-mpath.c (6.1.192; dm.c of 4.5).

use super::map::{delay, free_bios, leave, rules};
use super::single::SqQueue;
use super::wait::wake_up;
use crate::call::{Call, RunHow, SingleEndHow, WaitQueue};
use crate::dm::Ending;
use crate::elevator::queue_lock;
use crate::queue::{LockKind, RequestQueue};
use crate::request::{QueueId, RequestId, Status};
use crate::rules::{EndRun, InFlight, IoData, StoppedLook};
use crate::step::{Cx, Next, labels};
use crate::time::Duration;
use steps::steps;

pub use softirq_done::State as MapEnd;

/// dm_softirq_done(): second completion of a request of a mapped queue.
#[steps(path)]
pub fn softirq_done(cx: &mut Cx<'_>, rq: RequestId) {
    /// Was there a clone, and did it succeed? Then the selector counts it no longer.
    at!(Enter);
    let tio = cx.q.own_mapped().state.held(cx.cpu.id).tios[rq.0 as usize];
    // It was killed before a path was chosen.
    let mut ending: Ending = Ending::Done(tio.status);
    let mut runs: bool = false;
    if let Some(to) = tio.mapped {
        if tio.status == Status::Ok {
            cx.q.own_mapped().accounts[to.path.index()].write(cx.cpu);
            ending = end_io(cx, rq);
        } else {
            /// Under m->lock: its path fails; is it tried again?
            lock!(Fail, cx.lock(LockKind::Target, 0));
            ending = end_io(cx, rq);
            fail(cx, rq);
        }
        // free_rq_clone()
        /// The clone's bios are gone: free it.
        at!(Free);
        // dm_end_request(); a request that was killed unmapped runs nothing.
        runs = matches!(ending, Ending::Done(_)) && rules(cx.q).end_run == EndRun::Hctxs;
        let (queue, rq) = drop_clone(cx, rq);
        /// There is no clone any more.
        call!(Freed, Call::Free { queue, rq });
        if rules(cx.q).io_data == IoData::Mempool {
            /// The target's data of the I/O are freed, too (4.5).
            at!(NoData);
        }
    }
    /// The request has ended, or is on the requeue list.
    call!(Ended, done(cx, rq, ending));
    // rq_completed()
    if rules(cx.q).in_flight == InFlight::Counted {
        cx.q.own_mapped().pending.add(cx.cpu, -1);
        /// The device does not count it any more (4.20). Does it count anything?
        at!(Fewer);
        if cx.q.own_mapped().pending.read(cx.cpu) == 0 {
            /// The waiters for that were woken. What does the end run (4.5)?
            at!(Woken, wake_up(cx.cpu, cx.q.id, WaitQueue::InFlight));
        }
        // 4.5, and later of a single-queue one: kblockd runs the queue if requests wait in it.
        if runs && cx.q.single.is_some() {
            /// A queue of the single-queue kind, unless it is stopped; under its lock (4.12).
            at!(RunLater, queue_lock_of_look(cx));
            run_later(cx);
            at!(NotPending);
        } else if runs {
            let (queue, how) = (cx.q.id, RunHow::Background);
            /// The queue was run.
            call!(NotPending, Call::RunQueues { queue, how });
        } else {
            at!(NotPending);
        }
    }
    cx.q.own_mapped().holders.add(cx.cpu, -1);
    /// dm_put().
    at!(Put);
}

labels! {
    pub enum At in "map-end" of softirq_done
}

impl MapEnd {
    pub(super) fn about_to_end(&self) -> Option<RequestId> {
        (self.label == At::Enter.label()).then_some(self.rq)
    }
}

/// multipath_end_io().
fn end_io(cx: &Cx<'_>, rq: RequestId) -> Ending {
    let m = cx.q.own_mapped();
    let mut state = m.state.held(cx.cpu.id);
    let tio = state.tios[rq.0 as usize];
    let mapped = tio.mapped.expect("a clone has a path");
    let clone = tio.clone.expect("it was issued");
    let lower = cx.mq.queue(m.queue_of(mapped.path));
    let started = lower.pool.held(cx.cpu.id)[clone].io_start_time;
    state.target.end(mapped, tio.status, started, cx.cpu.now())
}

/// The accesses of that under m->lock, which is released.
fn fail(cx: &mut Cx<'_>, rq: RequestId) {
    let m = cx.q.own_mapped();
    let path = m.state.held(cx.cpu.id).tios[rq.0 as usize].mapped;
    let path = path.expect("a clone has a path").path;
    m.fields.write(cx.cpu);
    m.accounts[path.index()].write(cx.cpu);
    leave(cx.q.id, &mut m.state.held(cx.cpu.id).target, cx.cpu);
    m.lock.release(cx.cpu);
}

/// The clone, with its path, is dropped, and its bios are freed. Returns it with its queue.
fn drop_clone(cx: &Cx<'_>, rq: RequestId) -> (QueueId, RequestId) {
    let m = cx.q.own_mapped();
    let tio = &mut m.state.held(cx.cpu.id).tios[rq.0 as usize];
    let clone = tio.clone.take().expect("it was issued");
    let mapped = tio.mapped.take().expect("a clone has a path");
    let queue = m.queue_of(mapped.path);
    free_bios(&mut cx.mq.queue(queue).pool.held(cx.cpu.id), clone);
    (queue, clone)
}

/// dm_done(): the request ends, or is tried again.
fn done(cx: &Cx<'_>, rq: RequestId, ending: Ending) -> Call {
    let queue = cx.q.id;
    if cx.q.single.is_some() {
        let how = match ending {
            Ending::Done(status) => SingleEndHow::Completed(status),
            Ending::Requeue | Ending::DelayRequeue => SingleEndHow::Requeued,
        };
        return Call::SingleEnd { queue, rq, how };
    }
    let after = match ending {
        Ending::Done(status) => return Call::End { queue, rq, status },
        Ending::Requeue => Duration::ZERO,
        Ending::DelayRequeue => delay(cx.q),
    };
    Call::GiveBack { queue, rq, after }
}

/// How the end of a request of a single-queue one checks whether that is stopped.
fn stopped_look(q: &RequestQueue) -> StoppedLook {
    let old = rules(q).old_top.expect("its kernel has such a queue");
    old.stopped_look
}

fn run_later(cx: &mut Cx<'_>) {
    let own = SqQueue::of(cx.mq, cx.q.id);
    own.run_later(cx.cpu);
    if stopped_look(cx.q) == StoppedLook::Locked {
        own.unlock(cx.cpu);
    }
}

fn queue_lock_of_look(cx: &Cx<'_>) -> Next {
    match stopped_look(cx.q) {
        StoppedLook::Bare => Next::Step,
        StoppedLook::Locked => Next::Lock(queue_lock(cx.q.id)),
    }
}
