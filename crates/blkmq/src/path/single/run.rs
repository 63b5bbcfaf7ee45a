//! The driver's function of a single-queue one, and its callers.
//!
//! Kernel: __blk_run_queue(), __generic_unplug_device(), blk_unplug_work(), blk_unplug_timeout(),
//! blk_peek_request() in block/blk-core.c, scsi_request_fn() in drivers/scsi/scsi_lib.c (2.6.32.2),
//! dm_request_fn() in drivers/md/dm.c (4.5).

use super::{SqQueue, queue_lock, sq};
use crate::call::{Call, RunBy, SingleEndHow};
use crate::elevator::{DispatchTime, LEVELS};
use crate::env::{Answer, Cpu, Effect, TraceAction};
use crate::path::map::is_busy;
use crate::queue::{EndRuns, LockKind};
use crate::request::{Place, RequestId};
use crate::rules::TargetLock;
use crate::step::{Cx, Next, Traced, labels};
use steps::steps;

pub use request_fn::State as SingleRun;

/// scsi_request_fn() or dm_request_fn(), from one of its callers.
#[steps(path)]
pub fn request_fn(cx: &mut Cx<'_>, by: RunBy) {
    match by {
        RunBy::Timer => {
            sub!(unplug_timeout());
            return;
        }
        RunBy::Unplug => {
            if !sub!(unplug_device()) {
                return;
            }
        }
        RunBy::Run => sub!(run_queue()),
        RunBy::Holder | RunBy::HolderUnplugs => sub!(locked()),
    }
    if starts(cx, by) {
        /// Still under it: the next request, looked at by the driver; may it have it? Trace D.
        at!(Peek);
        while let Some(rq) = peek(cx) {
            let rq: RequestId = rq;
            if cx.q.mapped.is_some() {
                let locks = cx.rules().device_mapper.target_lock == TargetLock::Whole;
                let target = cx.lock(LockKind::Target, 0);
                /// Still under it, of a mapped queue: is the target busy? Up to 4.6 under m->lock
                /// as well.
                ask!(Busy, if locks { target } else { Next::Step });
                if is_target_busy(cx) {
                    /// Still under it: the target was busy.
                    at!(Later);
                    break;
                }
                /// Still under the queue's lock: the device counts it, and leaves it to its thread.
                at!(Begin);
                map_later(cx, rq);
                at!(Peek);
                continue;
            }
            if cx.q.settings.driver_budget {
                // scsi_dev_queue_ready()
                /// Still under it: is there a budget for it?
                let Answer::Budget(token) = ask!(Ready, Next::Budget) else {
                    if with_driver(cx) == 0 {
                        sq(cx).plug(cx.cpu);
                    }
                    break;
                };
                cx.pool()[rq].budget = Some(token);
            }
            // The device is asked without the lock.
            sq(cx).start(rq, cx.cpu);
            sq(cx).unlock(cx.cpu);
            /// The device's answer.
            match ask!(Answer, Next::offer(rq, true)) {
                Answer::Ok => {}
                Answer::Error(status) => {
                    let (queue, how) = (cx.q.id, SingleEndHow::Refused(status));
                    /// A request that the driver refused for good has ended.
                    call!(Ended, Call::SingleEnd { queue, rq, how });
                }
                Answer::Resource | Answer::DevResource => {
                    /// Under the queue's lock: one that it refused for now goes back. Trace R.
                    lock!(PutBack, queue_lock(cx));
                    put_back(cx, rq);
                    break;
                }
                answer => unreachable!("{answer:?} is no answer of queue_rq"),
            }
            lock!(Peek, queue_lock(cx));
        }
        if by.runs() {
            sq(cx).single.state.held(cx.cpu.id).runs = false;
        }
    }
    match by.holds() {
        true => cx.q.elevator.settle(cx.q, cx.cpu),
        false => sq(cx).unlock(cx.cpu),
    }
}

/// blk_unplug_timeout().
#[steps]
fn unplug_timeout(cx: &mut Cx<'_>) {
    /// The unplug timer: leave it to kblockd. Trace UT.
    at!(Timer);
    trace_allocated(cx, TraceAction::UnplugTimer);
    sq(cx).kick_unplug(cx.cpu);
}

/// blk_run_queue().
#[steps]
fn run_queue(cx: &mut Cx<'_>) {
    /// blk_run_queue() is called.
    at!(Enter);
    lock!(Start, queue_lock(cx));
}

/// generic_unplug_device(): true if it may unplug, under the queue's lock.
#[steps]
fn unplug_device(cx: &mut Cx<'_>) -> bool {
    /// Is the queue plugged? Trace U.
    at!(Plugged);
    trace_allocated(cx, TraceAction::Unplug);
    if !sq(cx).single.plugged.test(cx.cpu) {
        return false;
    }
    lock!(Start, queue_lock(cx));
    true
}

/// __blk_run_queue(), __generic_unplug_device(): under a lock that the caller holds.
#[steps]
fn locked(cx: &mut Cx<'_>) {
    /// Under the queue's lock: take the plug off; is the driver's function to be called?
    at!(Start);
}

labels! {
    pub enum At in "single-run" of unplug_timeout run_queue unplug_device locked request_fn
}

fn trace_allocated(cx: &mut Cx<'_>, action: TraceAction) {
    let count = sq(cx).single.state.held(cx.cpu.id).limits.allocated();
    cx.trace_count(action, u64::from(count));
}

/// __blk_run_queue() and __generic_unplug_device(): is the driver's function called?
fn starts(cx: &mut Cx<'_>, by: RunBy) -> bool {
    let sq = sq(cx);
    if !by.runs() {
        let stopped = sq.single.stopped.peek();
        return !stopped && (sq.remove_plug(cx.cpu) || !sq.q.settings.rotational);
    }
    sq.remove_plug(cx.cpu);
    if sq.single.stopped.peek() || sq.is_empty(cx.cpu) {
        return false;
    }
    // QUEUE_FLAG_REENTER
    let within = core::mem::replace(&mut sq.single.state.held(cx.cpu.id).runs, true);
    if within {
        // The function is running, perhaps below this very frame: it stops at the plug, and
        // kblockd continues.
        sq.single.plugged.set(cx.cpu);
        sq.kick_unplug(cx.cpu);
    }
    !within
}

/// blk_peek_request(): the next request, if the driver may have it.
fn peek(cx: &mut Cx<'_>) -> Option<RequestId> {
    let sq = sq(cx);
    if sq.single.plugged.peek() {
        return None;
    }
    let rq = next_request(&sq, cx.cpu)?;
    let started = cx.pool()[rq].started;
    if !started {
        activate(&sq, rq, cx.cpu);
    }
    if with_driver(cx) >= sq.settings.depth {
        stop(&sq, cx.cpu);
        return None;
    }
    Some(rq)
}

/// The target's answer for a mapped queue (dm_request_fn()).
fn is_target_busy(cx: &mut Cx<'_>) -> bool {
    let (m, mapper) = (cx.q.own_mapped(), cx.rules().device_mapper);
    let busy = is_busy(m, cx.cpu);
    if busy {
        let old = mapper.requests.old_top;
        let old = old.expect("its kernel has such a queue");
        sq(cx).kick_later(old.busy_again.after(cx.q.settings.hz), cx.cpu);
    }
    if mapper.target_lock == TargetLock::Whole {
        m.lock.release(cx.cpu);
    }
    busy
}

/// dm_start_request(), queue_kthread_work().
fn map_later(cx: &mut Cx<'_>, rq: RequestId) {
    let (m, queue) = (cx.q.own_mapped(), cx.q.id);
    sq(cx).start(rq, cx.cpu);
    cx.mq.start_request(queue, rq, cx.cpu);
    m.pending.add(cx.cpu, 1);
    m.holders.add(cx.cpu, 1);
    cx.cpu.outbox.push(Effect::Map { queue, rq });
}

fn put_back(cx: &mut Cx<'_>, rq: RequestId) {
    let sq = sq(cx);
    sq.requeue(rq, cx.cpu);
    if with_driver(cx) == 0 {
        // No end of a request will run the queue.
        sq.plug(cx.cpu);
    } else {
        stop(&sq, cx.cpu);
    }
}

/// Requests that the driver has.
fn with_driver(cx: &Cx<'_>) -> u32 {
    sq(cx).single.state.held(cx.cpu.id).with_driver()
}

/// The driver takes no more for now: a driver whose ends do not run the queue stops it, and the
/// next end starts it again.
fn stop(sq: &SqQueue<'_>, cpu: &mut Cpu) {
    if sq.settings.end_runs == EndRuns::IfStopped {
        sq.single.stopped.mirror(cpu, true);
    }
}

/// __elv_next_request(): the head of the driver's list, or a request of the scheduler.
fn next_request(sq: &SqQueue<'_>, cpu: &mut Cpu) -> Option<RequestId> {
    let head = sq.single.state.held(cpu.id).driver_list.first();
    if head.is_some() {
        return head;
    }
    let rq = sq.q.elevator.call(sq.q, cpu, |policy, pool, now| {
        policy.dispatch(pool, DispatchTime::at(now), [0; LEVELS])
    })?;
    let mut pool = sq.q.pool.held(cpu.id);
    assert_eq!(pool[rq].place, Place::Path, "{rq:?} was not let go");
    pool[rq].place = Place::Dispatch;
    pool[rq].started = false;
    sq.single
        .state
        .held(cpu.id)
        .driver_list
        .push_back(&mut pool, rq);
    Some(rq)
}

/// The driver's first look at a request (blk_peek_request()). Trace D.
fn activate(sq: &SqQueue<'_>, rq: RequestId, cpu: &mut Cpu) {
    let tracing = cpu.tracing;
    let traced = sq.q.elevator.call(sq.q, cpu, |policy, pool, now| {
        policy.activated(pool, rq, now);
        pool[rq].started = true;
        Traced::rq(tracing, pool, rq)
    });
    let mut log = sq.q.elevator.log(sq.q, cpu);
    log.trace(TraceAction::Issue, traced, cpu);
    log.rest(cpu);
}
