//! The single-queue request path: one queue, one lock and the driver's function (up to v4.20).
//!
//! * `submit.rs`: one bio from its submission to a merge, or as a request into the scheduler
//! * `run.rs`: the driver's function, its callers and the unplug
//! * `end.rs`: the end of a request, or its requeue
//!
//! Operations under the queue's lock that several of them use are here. The lock is the scheduler's
//! (`elevator::queue_lock`); a frame that is called under it returns with it.
//! `RequestQueue::single` has the kind of a queue; only [`BlkMq::submits`], [`BlkMq::ends`] and
//! their counterparts, which create the frames of either kind, read it. docs/decisions/0026.
//! Kernel: block/blk-core.c, elevator.c (2.6.32.2).

mod end;
mod run;
mod submit;

pub use end::SingleEnd;
pub use run::SingleRun;
pub use submit::SingleSubmit;

pub use end::At as EndAt;
pub use run::At as RunAt;
pub use submit::At as SubmitAt;

use super::{
    CloneEnd, CompletePath, Frame, HookFrame, MapBio, MapEnd, RequeuePath, RequeueRequest, RunPath,
    SubmitPath,
};
use crate::call::{BioFrom, Hook, RunBy, SingleEndHow, ThenUnplug};
use crate::elevator::{self, After};
use crate::env::{Cpu, Effect, TraceAction};
use crate::list::QueueList;
use crate::queue::{
    BlkMq, EndRuns, Kind, RequestQueue, Single, SingleSettings, UNPLUG_TIMER, unplug_delay,
};
use crate::request::{BioId, HctxId, Place, QueueId, RequestId, RequestPool, Status};
use crate::rules::{QueuePlug, SingleQueueRules};
use crate::step::{Cx, Next, Traced, trace_count, trace_rq};
use crate::time::Duration;

/// Frames of either kind of queue.
impl BlkMq {
    /// submit_bio() of a bio in the pool of `queue`; `then` only matters to the single-queue kind.
    pub fn submits(&self, queue: QueueId, bio: BioId, then: ThenUnplug) -> Frame {
        let q = self.queue(queue);
        if q.mapped
            .as_ref()
            .is_some_and(|mapped| mapped.bios.is_some())
        {
            return Frame::MapBio(MapBio::new(queue, bio, BioFrom::New));
        }
        match q.single {
            None => Frame::Submit(SubmitPath::new(queue, bio)),
            Some(_) => Frame::SingleSubmit(SingleSubmit::new(queue, bio, then)),
        }
    }

    /// The end of a request that its driver has completed.
    pub fn ends(&self, queue: QueueId, rq: RequestId, status: Status) -> Frame {
        let q = self.queue(queue);
        if q.mapped.is_some() {
            // The target has the status of the clone.
            return Frame::MapEnd(MapEnd::new(queue, rq));
        }
        if q.clones.is_some() {
            return Frame::CloneEnd(CloneEnd::new(queue, rq, status));
        }
        match q.single {
            None => Frame::Complete(CompletePath::end(queue, rq, status)),
            Some(_) => {
                let how = SingleEndHow::Completed(status);
                Frame::SingleEnd(SingleEnd::new(queue, rq, how))
            }
        }
    }

    /// The driver requeues a request that it has started.
    pub fn gives_back(&self, queue: QueueId, rq: RequestId, dontprep: bool) -> Frame {
        match self.queue(queue).single {
            None => Frame::RequeueRequest(RequeueRequest::taken(queue, rq, dontprep)),
            Some(_) => Frame::SingleEnd(SingleEnd::new(queue, rq, SingleEndHow::Requeued)),
        }
    }

    /// kblockd's run of an hctx, or of a single-queue one.
    pub fn works(&self, queue: QueueId, hctx: HctxId) -> Frame {
        match self.queue(queue).single {
            None => Frame::Run(RunPath::work(queue, hctx)),
            Some(_) => Frame::SingleRun(SingleRun::new(queue, RunBy::Run)),
        }
    }

    /// kblockd's other work item: requeue_work, or unplug_work of a single-queue one.
    pub fn requeues(&self, queue: QueueId) -> Frame {
        match self.queue(queue).single {
            None => Frame::Requeue(RequeuePath::new(queue)),
            Some(_) => Frame::SingleRun(SingleRun::new(queue, RunBy::Unplug)),
        }
    }

    /// A timer of the queue expires: one of its scheduler, or that of the plug.
    pub fn expires(&self, queue: QueueId, timer: u8) -> Frame {
        match timer {
            UNPLUG_TIMER => Frame::SingleRun(SingleRun::new(queue, RunBy::Timer)),
            timer => Frame::Hook(HookFrame::new(queue, Hook::Timer(timer))),
        }
    }

    /// The unplug of a task before it waits for I/O of a queue that other plugs may hold back
    /// (sync_page(), blk_run_address_space()): none with blk-mq.
    pub fn unplugs(&self, queue: QueueId) -> Option<Frame> {
        let single = self.queue(queue).single.is_some();
        single.then(|| Frame::SingleRun(SingleRun::new(queue, RunBy::Unplug)))
    }
}

/// A single-queue one with its parts that paths need.
#[derive(Clone, Copy)]
pub(super) struct SqQueue<'a> {
    pub(super) q: &'a RequestQueue,
    pub(super) single: &'a Single,
    pub(super) settings: SingleSettings,
    pub(super) rules: SingleQueueRules,
}

impl<'a> SqQueue<'a> {
    /// # Panics
    /// If it is a queue of blk-mq.
    pub(super) fn of(mq: &'a BlkMq, queue: QueueId) -> SqQueue<'a> {
        let q = mq.queue(queue);
        let rules = q.settings.rules.single_queue;
        SqQueue {
            q,
            single: q.single.as_ref().expect("a queue of the single-queue kind"),
            settings: q.settings.single.expect("as above"),
            rules: rules.unwrap_or(SingleQueueRules::V2_6_32),
        }
    }

    pub(super) fn kind(pool: &RequestPool, rq: RequestId) -> Kind {
        Kind::of(pool[rq].op, pool[rq].flags)
    }

    /// The path releases the lock: the scheduler's words are updated, and the label ends.
    pub(super) fn unlock(&self, cpu: &mut Cpu) {
        self.q.elevator.settle(self.q, cpu);
        self.q.elevator.unlock(cpu);
    }
}

/// The queue of a path.
fn sq<'a>(cx: &Cx<'a>) -> SqQueue<'a> {
    SqQueue::of(cx.mq, cx.q.id)
}

/// The lock of the queue of a path.
fn queue_lock(cx: &Cx<'_>) -> Next {
    Next::Lock(elevator::queue_lock(cx.q.id))
}

/// Under the queue's lock.
impl SqQueue<'_> {
    /// elv_queue_empty().
    pub(super) fn is_empty(&self, cpu: &mut Cpu) -> bool {
        if !self.single.state.held(cpu.id).driver_list.is_empty() {
            return false;
        }
        !self
            .q
            .elevator
            .call(self.q, cpu, |policy, _, _| policy.has_work())
    }

    /// queue_should_plug().
    pub(super) fn should_plug(&self, cpu: &Cpu) -> bool {
        let queuing = || self.single.state.held(cpu.id).queuing;
        self.rules.plug == QueuePlug::OfQueue && (self.q.settings.rotational || !queuing())
    }

    /// blk_plug_device(). Trace P.
    pub(super) fn plug(&self, cpu: &mut Cpu) {
        if self.single.stopped.peek() || self.single.plugged.test(cpu) {
            return;
        }
        self.single.plugged.set(cpu);
        cpu.outbox.push(Effect::Arm {
            queue: self.q.id,
            timer: UNPLUG_TIMER,
            after: unplug_delay(self.q.settings.hz),
        });
        trace_count(cpu, self.q.id, TraceAction::Plug, 0);
    }

    /// blk_remove_plug(): was there one?
    pub(super) fn remove_plug(&self, cpu: &mut Cpu) -> bool {
        if !self.single.plugged.test(cpu) {
            return false;
        }
        self.single.plugged.clear(cpu);
        cpu.outbox.push(Effect::Cancel {
            queue: self.q.id,
            timer: UNPLUG_TIMER,
        });
        true
    }

    /// blk_run_queue_async(): kblockd runs it, unless it is stopped.
    pub(super) fn run_later(&self, cpu: &mut Cpu) {
        if !self.single.stopped.test(cpu) {
            self.kick(cpu);
        }
    }

    /// kblockd_schedule_work() of a run, as schedulers ask for it.
    pub(super) fn kick(&self, cpu: &mut Cpu) {
        cpu.outbox.push(Effect::Kick {
            queue: self.q.id,
            hctx: HctxId(0),
            delay: Duration::ZERO,
        });
    }

    /// blk_delay_queue(): kblockd runs it after this delay, or at an earlier time that was set
    /// before.
    pub(super) fn kick_later(&self, delay: Duration, cpu: &mut Cpu) {
        cpu.outbox.push(Effect::KickUnlessPending {
            queue: self.q.id,
            hctx: HctxId(0),
            delay,
        });
    }

    /// The same of unplug_work.
    pub(super) fn kick_unplug(&self, cpu: &mut Cpu) {
        let queue = self.q.id;
        cpu.outbox.push(Effect::KickRequeue { queue });
    }

    /// Carries out the request of a hook.
    ///
    /// # Panics
    /// If it is about tokens, which schedulers of this path do not have.
    fn after(&self, after: After, cpu: &mut Cpu) {
        match after {
            After::Nothing => {}
            After::RunQueues => self.kick(cpu),
            After::RunHctxs => unreachable!("a single-queue path has no hctx to wake"),
            After::PutToken(token) => panic!("{token:?} of a single-queue scheduler"),
        }
    }

    /// blk_start_request(): the driver takes a request from the head of its list.
    pub(super) fn start(&self, rq: RequestId, cpu: &Cpu) {
        let mut pool = self.q.pool.held(cpu.id);
        let mut state = self.single.state.held(cpu.id);
        state.driver_list.remove(&mut pool, rq);
        pool[rq].place = Place::Path;
        state.starts(SqQueue::kind(&pool, rq));
    }

    /// Requests that the scheduler dispatches by itself go to the tail of the driver's list.
    pub(super) fn hand_over(&self, mut handed: QueueList, cpu: &mut Cpu) {
        if handed.is_empty() {
            return;
        }
        let mut pool = self.q.pool.held(cpu.id);
        let mut state = self.single.state.held(cpu.id);
        while let Some(rq) = handed.pop_front(&mut pool) {
            pool[rq].place = Place::Dispatch;
            // A request that the driver has not peeked at is not started (REQ_STARTED).
            pool[rq].started = false;
            state.driver_list.push_back(&mut pool, rq);
        }
    }

    /// The effect of the end of a request on a queue that its driver has stopped. True if the
    /// caller is to run it.
    fn end_runs(&self, cpu: &mut Cpu) -> bool {
        let runs = self.settings.end_runs;
        if runs != EndRuns::ByDriver {
            let was_stopped = self.single.stopped.peek();
            self.single.stopped.mirror(cpu, false);
            if runs == EndRuns::IfStopped && was_stopped {
                self.kick(cpu);
            }
        }
        runs == EndRuns::Always
    }

    /// blk_requeue_request(): back to the head of the driver's list. Trace R.
    pub(super) fn requeue(&self, rq: RequestId, cpu: &mut Cpu) {
        let traced = Traced::rq(cpu.tracing, &self.q.pool.held(cpu.id), rq);
        trace_rq(cpu, self.q.id, TraceAction::Requeue, traced);
        let after = self.q.elevator.call(self.q, cpu, |policy, pool, now| {
            let r = &mut pool[rq];
            r.in_flight = false;
            r.budget = None;
            r.place = Place::Path;
            policy.requeued(pool, rq, now)
        });
        self.after(after, cpu);
        let mut pool = self.q.pool.held(cpu.id);
        let mut state = self.single.state.held(cpu.id);
        state.leaves_driver(SqQueue::kind(&pool, rq));
        let r = &mut pool[rq];
        r.started = false;
        r.softbarrier = true;
        r.place = Place::Dispatch;
        state.driver_list.push_front(&mut pool, rq);
    }

    /// __blk_put_request() of a request whose bios have ended or are in another one: the
    /// scheduler's completed hook is called if the driver had it, and a task that waits for a
    /// request is woken.
    pub(super) fn put(&self, rq: RequestId, driven: bool, cpu: &mut Cpu) {
        let hooks = self.q.elevator.hooks();
        if driven {
            let kind = SqQueue::kind(&self.q.pool.held(cpu.id), rq);
            self.single.state.held(cpu.id).leaves_driver(kind);
        }
        if driven && hooks.completed {
            let after = self.q.elevator.call(self.q, cpu, |policy, pool, now| {
                policy.completed(pool, rq, now)
            });
            self.after(after, cpu);
        }
        if hooks.finished {
            let after = self.q.elevator.call(self.q, cpu, |policy, pool, now| {
                policy.finished(pool, rq, now)
            });
            self.after(after, cpu);
        }
        let mut pool = self.q.pool.held(cpu.id);
        let kind = SqQueue::kind(&pool, rq);
        assert!(pool[rq].bio_first.is_none(), "a request is freed with bios");
        pool[rq].place = Place::Free;
        drop(pool);
        let woken = self.single.state.held(cpu.id).limits.freed(kind, rq);
        if let Some(task) = woken {
            cpu.outbox.push(Effect::Wake(task));
        }
    }
}

#[cfg(test)]
mod tests;
