//! What a label leaves for the machine to do, without an answer for the path.

use crate::env::{Cpu, Effect};
use crate::request::{BioId, HctxId, QueueId, Status};
use crate::tags::WaiterId;
use crate::time::Duration;

/// A run of a hardware queue that is left to kblockd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kick {
    /// Number of the queue in its `BlkMq`.
    pub queue: QueueId,
    /// Whose work item.
    pub hctx: HctxId,
    /// Zero: at once.
    pub delay: Duration,
    /// Leaves a work item alone that is pending already; otherwise it is scheduled anew.
    pub unless_pending: bool,
}

/// The machine around the paths: what it does with each effect.
pub trait Machine {
    /// blk_mq_delay_run_hw_queue(), blk_mq_delay_run_hw_queues().
    fn kick(&mut self, kick: Kick);
    /// blk_mq_kick_requeue_list().
    fn kick_requeue(&mut self, queue: QueueId);
    /// A bio has ended; its slot is still its own until the machine frees it.
    fn bio_end(&mut self, queue: QueueId, bio: BioId, status: Status);
    /// A task that waits for a tag is made runnable.
    fn wake(&mut self, waiter: WaiterId);
    /// The timeout timer of a queue is armed, whatever was asked of it before: when it expires, the
    /// machine says [`BlkMq::timer_expires`](crate::queue::BlkMq::timer_expires) and runs a
    /// [`TimeoutPath`](crate::path::TimeoutPath).
    fn time_out(&mut self, queue: QueueId, after: Duration);
    /// A timer of the queue's scheduler is armed, whatever was asked of it before. When it expires,
    /// its hook runs as a frame of its own, in the context that the scheduler's facts say.
    ///
    /// # Panics
    /// In a machine whose schedulers have no timer: this is the default.
    fn arm(&mut self, queue: QueueId, timer: u8, after: Duration) {
        let after = after.0;
        unreachable!("timer {timer} of queue {queue}, {after} ns: this machine has no clock for it")
    }
    /// It is not, any more.
    ///
    /// # Panics
    /// As `arm`.
    fn cancel(&mut self, queue: QueueId, timer: u8) {
        unreachable!("timer {timer} of queue {queue}: this machine has no clock for it")
    }
}

/// Has the machine do what a label left, in order.
pub fn carry_out(machine: &mut impl Machine, cpu: &mut Cpu) {
    let mut index = 0;
    while let Some(effect) = cpu.outbox.take(index) {
        index += 1;
        one(machine, effect);
    }
}

/// One effect.
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
        Effect::Timeout { queue, after } => machine.time_out(queue, after),
        Effect::Arm {
            queue,
            timer,
            after,
        } => machine.arm(queue, timer, after),
        Effect::Cancel { queue, timer } => machine.cancel(queue, timer),
    }
}
