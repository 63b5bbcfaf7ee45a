//! Effects that a label leaves to the machine, without an answer for the path.

use crate::call::BioWork;
use crate::dm::PathId;
use crate::dm::multipath::Uevent;
use crate::env::{Cpu, Effect};
use crate::request::{BioId, HctxId, QueueId, RequestId, Status};
use crate::time::Duration;
use crate::waiter::WaiterId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kick {
    pub queue: QueueId,
    pub hctx: HctxId,
    /// Zero: at once.
    pub delay: Duration,
    /// Does not change a pending work item; otherwise it is scheduled again.
    pub unless_pending: bool,
}

/// The machine around the paths: carries out each effect.
pub trait Machine {
    /// blk_mq_delay_run_hw_queue(), blk_mq_delay_run_hw_queues().
    fn kick(&mut self, kick: Kick);
    /// blk_mq_kick_requeue_list().
    ///
    /// # Panics
    /// In a machine whose drivers give no request back: this is the default.
    fn kick_requeue(&mut self, queue: QueueId) {
        unreachable!("queue {queue}: no request comes back")
    }
    /// A bio has ended; its slot is still its own until the machine frees it.
    fn bio_end(&mut self, queue: QueueId, bio: BioId, status: Status);
    /// Wakes a task that waits for a tag.
    ///
    /// # Panics
    /// In a machine in which no task waits: this is the default.
    fn wake(&mut self, waiter: WaiterId) {
        unreachable!("{waiter:?} never waited")
    }
    /// Wakes a task that goes to sleep after this time.
    ///
    /// # Panics
    /// In a machine without timed sleeps: this is the default.
    fn wake_later(&mut self, waiter: WaiterId, after: Duration) {
        unreachable!(
            "{waiter:?} sleeps for {} ns: this machine has no clock",
            after.0
        )
    }
    /// Arms the timeout timer of a queue and replaces its earlier expiry: when it expires, the
    /// machine calls [`BlkMq::timer_expires`](crate::queue::BlkMq::timer_expires) and runs a
    /// [`TimeoutPath`](crate::path::TimeoutPath).
    ///
    /// # Panics
    /// In a machine whose queues share no tags: this is the default.
    fn time_out(&mut self, queue: QueueId, after: Duration) {
        unreachable!("queue {queue}, {} ns: its tags are its own", after.0)
    }
    /// A timer of the queue's scheduler is armed and replaces an earlier expiry. When it expires,
    /// its hook runs as a frame of its own, in the context that the scheduler's info names.
    ///
    /// # Panics
    /// In a machine whose schedulers have no timer: this is the default.
    fn arm(&mut self, queue: QueueId, timer: u8, after: Duration) {
        let after = after.0;
        unreachable!("timer {timer} of queue {queue}, {after} ns: this machine has no clock for it")
    }
    /// Cancels it.
    ///
    /// # Panics
    /// As `arm`.
    fn cancel(&mut self, queue: QueueId, timer: u8) {
        unreachable!("timer {timer} of queue {queue}: this machine has no clock for it")
    }
    /// blk_mq_complete_request() of a request of a mapped queue: its end is
    /// [`BlkMq::ends`](crate::queue::BlkMq::ends), here or in a softirq.
    ///
    /// # Panics
    /// In a machine without mapped queues: this is the default, as for what follows.
    fn complete(&mut self, queue: QueueId, rq: RequestId) {
        unreachable!("{rq:?} of queue {queue}: this machine has no mapped queue")
    }
    /// queue_kthread_work() of a request of a mapped queue of the single-queue kind.
    ///
    /// # Panics
    /// As `complete`.
    fn map(&mut self, queue: QueueId, rq: RequestId) {
        unreachable!("{rq:?} of queue {queue}: this machine has no thread that maps it")
    }
    /// kthread_flush_worker() of that thread: wakes the task after the work queued before.
    ///
    /// # Panics
    /// As `complete`.
    fn flush_mapper(&mut self, queue: QueueId, waiter: WaiterId) {
        unreachable!("{waiter:?}, of queue {queue}: this machine has no thread that maps")
    }
    /// blk_mq_delay_kick_requeue_list().
    ///
    /// # Panics
    /// As `complete`.
    fn kick_requeue_later(&mut self, queue: QueueId, after: Duration) {
        unreachable!("queue {queue}, {} ns: no mapped queue", after.0)
    }
    /// blk_mq_run_hw_queues(async = true).
    ///
    /// # Panics
    /// As `complete`.
    fn run_queue(&mut self, queue: QueueId) {
        unreachable!("queue {queue}: this machine has no mapped queue")
    }
    /// Queues the activation of a path, a work item of the target.
    ///
    /// # Panics
    /// As `complete`.
    fn activate(&mut self, queue: QueueId, path: PathId, after: Duration) {
        unreachable!("{path:?} of queue {queue}, {} ns: no mapped queue", after.0)
    }
    /// Queues a work item of a bio-based device.
    ///
    /// # Panics
    /// As `complete`.
    fn bio_work(&mut self, queue: QueueId, what: BioWork) {
        unreachable!("{what:?} of queue {queue}: no bio-based device")
    }
    /// Sets or cancels the timer of held requests, which calls the target when it expires.
    ///
    /// # Panics
    /// As `complete`.
    fn path_timer(&mut self, queue: QueueId, after: Option<Duration>) {
        unreachable!("queue {queue}, {after:?}: no mapped queue")
    }
    /// dm_path_uevent(). Default: ignored.
    fn uevent(&mut self, _queue: QueueId, _event: Uevent) {}
}

/// Carries out the effects of a label, in order.
pub fn carry_out(machine: &mut impl Machine, cpu: &mut Cpu) {
    let mut index = 0;
    while let Some(effect) = cpu.outbox.take(index) {
        index += 1;
        one(machine, effect);
    }
}

#[inline]
pub fn one(machine: &mut impl Machine, effect: Effect) {
    match effect {
        Effect::Kick { queue, hctx, delay } => machine.kick(Kick {
            queue,
            hctx,
            delay,
            unless_pending: false,
        }),
        Effect::KickUnlessPending { queue, hctx, delay } => machine.kick(Kick {
            queue,
            hctx,
            delay,
            unless_pending: true,
        }),
        Effect::KickRequeue { queue } => machine.kick_requeue(queue),
        Effect::BioEnd { queue, bio, status } => machine.bio_end(queue, bio, status),
        Effect::Wake(waiter) => machine.wake(waiter),
        Effect::WakeLater { waiter, after } => machine.wake_later(waiter, after),
        Effect::Timeout { queue, after } => machine.time_out(queue, after),
        Effect::Arm {
            queue,
            timer,
            after,
        } => machine.arm(queue, timer, after),
        Effect::Cancel { queue, timer } => machine.cancel(queue, timer),
        Effect::Complete { queue, rq } => machine.complete(queue, rq),
        Effect::Map { queue, rq } => machine.map(queue, rq),
        Effect::FlushMapper { queue, waiter } => machine.flush_mapper(queue, waiter),
        Effect::KickRequeueLater { queue, after } => machine.kick_requeue_later(queue, after),
        Effect::RunQueue { queue } => machine.run_queue(queue),
        Effect::Activate { queue, path, after } => machine.activate(queue, path, after),
        Effect::BioWork { queue, what } => machine.bio_work(queue, what),
        Effect::PathTimer { queue, after } => machine.path_timer(queue, after),
        Effect::Uevent { queue, event } => machine.uevent(queue, event),
    }
}
