//! The driver's function of a single-queue one, and all that has it called.
//!
//! Kernel: __blk_run_queue(), __generic_unplug_device(), blk_unplug_work(), blk_unplug_timeout(),
//! blk_peek_request() in block/blk-core.c, scsi_request_fn() in drivers/scsi/scsi_lib.c (2.6.32.2),
//! dm_request_fn() in drivers/md/dm.c (4.5).

use super::{Own, SingleEnd};
use crate::elevator::{DispatchTime, LEVELS, queue_lock};
use crate::env::{Answer, Cpu, Effect, TraceAction};
use crate::path::map::is_busy;
use crate::path::{Call, Next, Traced, labels, lock, trace_count};
use crate::queue::{BlkMq, EndRuns, LockKind};
use crate::request::{Place, QueueId, RequestId};
use crate::rules::TargetLock;

labels! {
    /// Labels of a run of a single-queue one.
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

/// Who has the driver's function called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum By {
    /// A timer: nobody yet.
    Timer,
    /// __blk_run_queue() of whoever has the lock.
    Holder,
    /// __generic_unplug_device() of whoever has the lock.
    HolderUnplugs,
    /// blk_run_queue().
    Run,
    /// generic_unplug_device().
    Unplug,
}

impl By {
    /// The lock is the caller's, and stays with it.
    fn holds(self) -> bool {
        matches!(self, By::Holder | By::HolderUnplugs)
    }

    /// __blk_run_queue().
    fn runs(self) -> bool {
        matches!(self, By::Holder | By::Run)
    }
}

/// A run of a single-queue one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SingleRun {
    pub(in crate::path) at: At,
    pub(in crate::path) queue: QueueId,
    by: By,
    /// It is the one that QUEUE_FLAG_REENTER tells of.
    guards: bool,
    /// What it offers to the device.
    rq: Option<RequestId>,
}

impl SingleRun {
    fn new(queue: QueueId, by: By, at: At) -> SingleRun {
        SingleRun {
            at,
            queue,
            by,
            guards: false,
            rq: None,
        }
    }

    /// blk_run_queue(): also what kblockd does for a scheduler.
    pub fn run(queue: QueueId) -> SingleRun {
        SingleRun::new(queue, By::Run, At::Enter)
    }

    /// blk_unplug(): kblockd behind the timer, or a task.
    pub fn unplug(queue: QueueId) -> SingleRun {
        SingleRun::new(queue, By::Unplug, At::Plugged)
    }

    /// blk_unplug_timeout().
    pub fn timer(queue: QueueId) -> SingleRun {
        SingleRun::new(queue, By::Timer, At::Timer)
    }

    /// __blk_run_queue() under the queue's lock.
    pub(in crate::path) fn called(queue: QueueId) -> SingleRun {
        SingleRun::new(queue, By::Holder, At::Start)
    }

    /// __generic_unplug_device() under the queue's lock.
    pub(super) fn unplugs(queue: QueueId) -> SingleRun {
        SingleRun::new(queue, By::HolderUnplugs, At::Start)
    }

    pub(in crate::path) fn step(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let own = &Own::of(mq, self.queue);
        match self.at {
            At::Timer => {
                let count = own.single.state.held(cpu.id).limits.allocated();
                let count = u64::from(count);
                trace_count(cpu, self.queue, TraceAction::UnplugTimer, count);
                own.kick_unplug(cpu);
                Next::Done
            }
            At::Enter => self.lock(At::Start),
            At::Plugged => {
                let count = own.single.state.held(cpu.id).limits.allocated();
                trace_count(cpu, self.queue, TraceAction::Unplug, u64::from(count));
                match own.single.plugged.test(cpu) {
                    true => self.lock(At::Start),
                    false => Next::Done,
                }
            }
            At::Start => self.start(own, cpu),
            At::Peek => self.peek(own, cpu),
            At::Ready => self.ready(own, cpu),
            At::Busy => {
                let busy = is_busy(own.q.own_mapped(), cpu);
                self.unless_busy(own, busy, cpu)
            }
            At::Begin => self.begin(mq, own, cpu),
            At::Later => self.ends(own, cpu),
            At::Answer => self.answer(cpu),
            At::Ended => self.lock(At::Peek),
            At::PutBack => {
                let rq = self.rq.take().expect("it was offered");
                own.requeue(rq, cpu);
                if own.single.state.held(cpu.id).with_driver() == 0 {
                    // No end of a request will run the queue.
                    own.plug(cpu);
                } else {
                    stop(own, cpu);
                }
                self.ends(own, cpu)
            }
        }
    }

    fn lock(&mut self, at: At) -> Next {
        self.at = at;
        Next::Lock(queue_lock(self.queue))
    }

    fn start(&mut self, own: &Own<'_>, cpu: &mut Cpu) -> Next {
        if !self.by.runs() {
            let stopped = own.single.stopped.peek();
            let fires = !stopped && (own.remove_plug(cpu) || !own.q.settings.rotational);
            return match fires {
                true => self.peeks(),
                false => self.ends(own, cpu),
            };
        }
        own.remove_plug(cpu);
        if own.single.stopped.peek() || own.is_empty(cpu) {
            return self.ends(own, cpu);
        }
        let within = core::mem::replace(&mut own.single.state.held(cpu.id).runs, true);
        if within {
            // The function is under way, perhaps below this very frame: it stops at the plug, and
            // kblockd goes on.
            own.single.plugged.set(cpu);
            own.kick_unplug(cpu);
            return self.ends(own, cpu);
        }
        self.guards = true;
        self.peeks()
    }

    fn peeks(&mut self) -> Next {
        self.at = At::Peek;
        Next::Step
    }

    /// One turn of the driver's loop.
    fn peek(&mut self, own: &Own<'_>, cpu: &mut Cpu) -> Next {
        if own.single.plugged.peek() {
            return self.ends(own, cpu);
        }
        let Some(rq) = next_request(own, cpu) else {
            return self.ends(own, cpu);
        };
        let started = own.q.pool.held(cpu.id)[rq].started;
        if !started {
            activate(own, rq, cpu);
        }
        let state = own.single.state.held(cpu.id);
        if state.with_driver() >= own.settings.depth {
            drop(state);
            stop(own, cpu);
            return self.ends(own, cpu);
        }
        drop(state);
        self.rq = Some(rq);
        if own.q.mapped.is_some() {
            self.at = At::Busy;
            return match own.q.settings.rules.device_mapper.target_lock {
                TargetLock::Whole => lock(self.queue, LockKind::Target, 0),
                TargetLock::Changes => Next::Step,
            };
        }
        if own.q.settings.driver_budget {
            self.at = At::Ready;
            return Next::Budget;
        }
        self.issue(own, cpu)
    }

    /// scsi_dev_queue_ready().
    fn ready(&mut self, own: &Own<'_>, cpu: &mut Cpu) -> Next {
        let rq = self.rq.expect("it is to be offered");
        if let Answer::Budget(token) = core::mem::take(&mut cpu.answer) {
            own.q.pool.held(cpu.id)[rq].budget = Some(token);
            return self.issue(own, cpu);
        }
        self.rq = None;
        if own.single.state.held(cpu.id).with_driver() == 0 {
            own.plug(cpu);
        }
        self.ends(own, cpu)
    }

    /// What the target of a mapped queue has said (dm_request_fn()).
    fn unless_busy(&mut self, own: &Own<'_>, busy: bool, cpu: &mut Cpu) -> Next {
        let m = own.q.own_mapped();
        let mapper = own.q.settings.rules.device_mapper;
        self.at = At::Begin;
        if busy {
            self.rq = None;
            self.at = At::Later;
            let old = mapper
                .requests
                .old_top
                .expect("its kernel has such a queue");
            own.kick_later(old.busy_again.after(own.q.settings.hz), cpu);
        }
        if mapper.target_lock == TargetLock::Whole {
            m.lock.release(cpu);
        }
        Next::Step
    }

    /// dm_start_request(), queue_kthread_work().
    fn begin(&mut self, mq: &BlkMq, own: &Own<'_>, cpu: &mut Cpu) -> Next {
        let m = own.q.mapped.as_ref().expect("the queue is mapped");
        let rq = self.rq.take().expect("it was peeked at");
        own.start(rq, cpu);
        mq.start_request(self.queue, rq, cpu);
        m.pending.add(cpu, 1);
        m.holders.add(cpu, 1);
        let queue = self.queue;
        cpu.outbox.push(Effect::Map { queue, rq });
        self.peeks()
    }

    /// blk_start_request(), and the device is asked without the lock.
    fn issue(&mut self, own: &Own<'_>, cpu: &mut Cpu) -> Next {
        let rq = self.rq.expect("it is to be offered");
        own.start(rq, cpu);
        own.unlock(cpu);
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
                let end = SingleEnd::refused(queue, rq, status);
                Next::call(cpu, Call::SingleEnd(end))
            }
            Answer::Resource | Answer::DevResource => self.lock(At::PutBack),
            answer => unreachable!("{answer:?} is no answer of queue_rq"),
        }
    }

    /// The driver's function returns.
    fn ends(&mut self, own: &Own<'_>, cpu: &mut Cpu) -> Next {
        if core::mem::take(&mut self.guards) {
            own.single.state.held(cpu.id).runs = false;
        }
        match self.by.holds() {
            true => own.q.elevator.settle(own.q, cpu),
            false => own.unlock(cpu),
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

/// The driver takes no more for now: one whose ends do not run the queue stops it, and the next end
/// starts it again.
fn stop(own: &Own<'_>, cpu: &mut Cpu) {
    if own.settings.end_runs == EndRuns::IfStopped {
        own.single.stopped.mirror(cpu, true);
    }
}

/// __elv_next_request(): the head of the driver's list, or what the scheduler gives.
fn next_request(own: &Own<'_>, cpu: &mut Cpu) -> Option<RequestId> {
    let head = own.single.state.held(cpu.id).driver_list.first();
    if head.is_some() {
        return head;
    }
    let rq = own.q.elevator.call(own.q, cpu, |policy, pool, now| {
        policy.dispatch(pool, DispatchTime::at(now), [0; LEVELS])
    })?;
    let mut pool = own.q.pool.held(cpu.id);
    assert_eq!(pool[rq].place, Place::Path, "{rq:?} was not let go");
    pool[rq].place = Place::Dispatch;
    pool[rq].started = false;
    own.single
        .state
        .held(cpu.id)
        .driver_list
        .push_back(&mut pool, rq);
    Some(rq)
}

/// The driver's first look at a request (blk_peek_request()). Trace D.
fn activate(own: &Own<'_>, rq: RequestId, cpu: &mut Cpu) {
    let traced = own.q.elevator.call(own.q, cpu, |policy, pool, now| {
        policy.activated(pool, rq, now);
        pool[rq].started = true;
        Traced::rq(pool, rq)
    });
    let mut log = own.q.elevator.log(own.q, cpu);
    log.trace(TraceAction::Issue, traced, cpu);
    log.rest(cpu);
}
