//! The driver's function of a single-queue one, and its callers.
//!
//! Kernel: __blk_run_queue(), __generic_unplug_device(), blk_unplug_work(), blk_unplug_timeout(),
//! blk_peek_request() in block/blk-core.c, scsi_request_fn() in drivers/scsi/scsi_lib.c (2.6.32.2),
//! dm_request_fn() in drivers/md/dm.c (4.5).

use super::SqQueue;
use crate::call::{Call, RunBy, SingleEndHow};
use crate::elevator::{DispatchTime, LEVELS, queue_lock};
use crate::env::{Answer, Cpu, Effect, TraceAction};
use crate::names::labels;
use crate::path::map::is_busy;
use crate::queue::{BlkMq, EndRuns, LockKind};
use crate::request::{Place, QueueId, RequestId};
use crate::rules::TargetLock;
use crate::step::{Cx, Next, Traced, lock};

labels! {
    pub enum At in "single-run" {
        /// The unplug timer: leave it to kblockd. Trace UT.
        Timer,
        /// blk_run_queue() is called.
        Enter,
        /// Is the queue plugged? Trace U.
        Plugged,
        /// Under the queue's lock: take the plug off; is the driver's function to be called?
        Start,
        /// Still under it: the next request, looked at by the driver; may it have it? Trace D.
        Peek,
        /// Still under it: is there a budget for it?
        Ready,
        /// Still under it, of a mapped queue: is the target busy? Up to 4.6 under m->lock as well.
        Busy,
        /// Still under the queue's lock: the device counts it, and leaves it to its thread.
        Begin,
        /// Still under it: the target was busy.
        Later,
        /// The device's answer.
        Answer,
        /// A request that the driver refused for good has ended.
        Ended,
        /// Under the queue's lock: one that it refused for now goes back. Trace R.
        PutBack,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SingleRun {
    pub(in crate::path) at: At,
    pub(in crate::path) queue: QueueId,
    by: RunBy,
    /// It has set QUEUE_FLAG_REENTER.
    guards: bool,
    /// The request that it offers to the device.
    rq: Option<RequestId>,
}

impl SingleRun {
    pub fn new(queue: QueueId, by: RunBy) -> SingleRun {
        SingleRun {
            at: match by {
                RunBy::Timer => At::Timer,
                RunBy::Run => At::Enter,
                RunBy::Unplug => At::Plugged,
                RunBy::Holder | RunBy::HolderUnplugs => At::Start,
            },
            queue,
            by,
            guards: false,
            rq: None,
        }
    }

    pub(in crate::path) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let sq = &SqQueue::of(cx.mq, self.queue);
        match self.at {
            At::Timer => {
                let count = sq.single.state.held(cx.cpu.id).limits.allocated();
                let count = u64::from(count);
                cx.trace_count(TraceAction::UnplugTimer, count);
                sq.kick_unplug(cx.cpu);
                Next::Done
            }
            At::Enter => self.lock(At::Start),
            At::Plugged => {
                let count = sq.single.state.held(cx.cpu.id).limits.allocated();
                cx.trace_count(TraceAction::Unplug, u64::from(count));
                match sq.single.plugged.test(cx.cpu) {
                    true => self.lock(At::Start),
                    false => Next::Done,
                }
            }
            At::Start => self.start(sq, cx.cpu),
            At::Peek => self.peek(sq, cx.cpu),
            At::Ready => self.ready(sq, cx.cpu),
            At::Busy => {
                let busy = is_busy(sq.q.own_mapped(), cx.cpu);
                self.unless_busy(sq, busy, cx.cpu)
            }
            At::Begin => self.begin(cx, sq),
            At::Later => self.ends(sq, cx.cpu),
            At::Answer => self.answer(cx.cpu),
            At::Ended => self.lock(At::Peek),
            At::PutBack => {
                let rq = self.rq.take().expect("it was offered");
                sq.requeue(rq, cx.cpu);
                if sq.single.state.held(cx.cpu.id).with_driver() == 0 {
                    // No end of a request will run the queue.
                    sq.plug(cx.cpu);
                } else {
                    stop(sq, cx.cpu);
                }
                self.ends(sq, cx.cpu)
            }
        }
    }

    fn lock(&mut self, at: At) -> Next {
        self.at = at;
        Next::Lock(queue_lock(self.queue))
    }

    fn start(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        if !self.by.runs() {
            let stopped = sq.single.stopped.peek();
            let fires = !stopped && (sq.remove_plug(cpu) || !sq.q.settings.rotational);
            return match fires {
                true => self.peeks(),
                false => self.ends(sq, cpu),
            };
        }
        sq.remove_plug(cpu);
        if sq.single.stopped.peek() || sq.is_empty(cpu) {
            return self.ends(sq, cpu);
        }
        let within = core::mem::replace(&mut sq.single.state.held(cpu.id).runs, true);
        if within {
            // The function is running, perhaps below this very frame: it stops at the plug, and
            // kblockd continues.
            sq.single.plugged.set(cpu);
            sq.kick_unplug(cpu);
            return self.ends(sq, cpu);
        }
        self.guards = true;
        self.peeks()
    }

    fn peeks(&mut self) -> Next {
        self.at = At::Peek;
        Next::Step
    }

    /// One turn of the driver's loop.
    fn peek(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        if sq.single.plugged.peek() {
            return self.ends(sq, cpu);
        }
        let Some(rq) = next_request(sq, cpu) else {
            return self.ends(sq, cpu);
        };
        let started = sq.q.pool.held(cpu.id)[rq].started;
        if !started {
            activate(sq, rq, cpu);
        }
        let state = sq.single.state.held(cpu.id);
        if state.with_driver() >= sq.settings.depth {
            drop(state);
            stop(sq, cpu);
            return self.ends(sq, cpu);
        }
        drop(state);
        self.rq = Some(rq);
        if sq.q.mapped.is_some() {
            self.at = At::Busy;
            return match sq.q.settings.rules.device_mapper.target_lock {
                TargetLock::Whole => lock(self.queue, LockKind::Target, 0),
                TargetLock::Changes => Next::Step,
            };
        }
        if sq.q.settings.driver_budget {
            self.at = At::Ready;
            return Next::Budget;
        }
        self.issue(sq, cpu)
    }

    /// scsi_dev_queue_ready().
    fn ready(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let rq = self.rq.expect("it is to be offered");
        if let Answer::Budget(token) = core::mem::take(&mut cpu.answer) {
            sq.q.pool.held(cpu.id)[rq].budget = Some(token);
            return self.issue(sq, cpu);
        }
        self.rq = None;
        if sq.single.state.held(cpu.id).with_driver() == 0 {
            sq.plug(cpu);
        }
        self.ends(sq, cpu)
    }

    /// The target's answer for a mapped queue (dm_request_fn()).
    fn unless_busy(&mut self, sq: &SqQueue<'_>, busy: bool, cpu: &mut Cpu) -> Next {
        let m = sq.q.own_mapped();
        let mapper = sq.q.settings.rules.device_mapper;
        self.at = At::Begin;
        if busy {
            self.rq = None;
            self.at = At::Later;
            let old = mapper
                .requests
                .old_top
                .expect("its kernel has such a queue");
            sq.kick_later(old.busy_again.after(sq.q.settings.hz), cpu);
        }
        if mapper.target_lock == TargetLock::Whole {
            m.lock.release(cpu);
        }
        Next::Step
    }

    /// dm_start_request(), queue_kthread_work().
    fn begin(&mut self, cx: &mut Cx<'_>, sq: &SqQueue<'_>) -> Next {
        let m = sq.q.mapped.as_ref().expect("the queue is mapped");
        let rq = self.rq.take().expect("it was peeked at");
        sq.start(rq, cx.cpu);
        cx.mq.start_request(self.queue, rq, cx.cpu);
        m.pending.add(cx.cpu, 1);
        m.holders.add(cx.cpu, 1);
        let queue = self.queue;
        cx.cpu.outbox.push(Effect::Map { queue, rq });
        self.peeks()
    }

    /// blk_start_request(), and the device is asked without the lock.
    fn issue(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let rq = self.rq.expect("it is to be offered");
        sq.start(rq, cpu);
        sq.unlock(cpu);
        self.at = At::Answer;
        Next::offer(rq, true)
    }

    fn answer(&mut self, cpu: &mut Cpu) -> Next {
        let answer = core::mem::take(&mut cpu.answer);
        match answer {
            Answer::Ok => {
                self.rq = None;
                self.lock(At::Peek)
            }
            Answer::Error(status) => {
                let rq = self.rq.take().expect("it was offered");
                self.at = At::Ended;
                let queue = self.queue;
                let how = SingleEndHow::Refused(status);
                Next::call(cpu, Call::SingleEnd { queue, rq, how })
            }
            Answer::Resource | Answer::DevResource => self.lock(At::PutBack),
            answer => unreachable!("{answer:?} is no answer of queue_rq"),
        }
    }

    /// The driver's function returns.
    fn ends(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        if core::mem::take(&mut self.guards) {
            sq.single.state.held(cpu.id).runs = false;
        }
        match self.by.holds() {
            true => sq.q.elevator.settle(sq.q, cpu),
            false => sq.unlock(cpu),
        }
        Next::Done
    }

    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let offers = matches!(
            self.at,
            At::Ready | At::Busy | At::Begin | At::Answer | At::PutBack
        );
        assert_eq!(self.rq.is_some(), offers, "{:?}: a request", self.at);
        let single = mq.queue(self.queue).single.as_ref();
        let single = single.expect("a queue of the single-queue kind");
        let runs = single.state.held(cpu.id).runs;
        assert!(
            runs || !self.guards,
            "{:?} guards what does not run",
            self.at
        );
    }

    pub(in crate::path) fn check_over(&self) {
        assert_eq!(self.rq, None, "a request that goes nowhere");
        assert!(!self.guards, "the queue would never run again");
    }
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
