//! Waiting on mq_freeze_wq: for a frozen queue to let somebody in again, or for its last user to
//! leave; and waking whoever waits there.
//!
//! A frame of its own, as whoever enters, freezes or leaves a queue calls it. Who uses the queue
//! is a number in the pool (`request/usage.rs`).
//! Kernel: __bio_queue_enter(), blk_queue_usage_counter_release() in block/blk-core.c,
//! blk_mq_freeze_queue_wait() in block/blk-mq.c (6.1.192, 6.12.117).

use super::plug::Unplug;
use super::{Call, Next, labels, lock};
use crate::env::{Cpu, Effect, Env, Lock, OUTBOX_LIMIT, Slab};
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::QueueId;

labels! {
    /// Labels of a wait for a freeze or a thaw.
    pub enum At in "freeze" {
        /// Has it come already?
        Enter,
        /// Under mq_freeze_wq's lock: stand in line.
        LineUp,
        /// Has it come, now that a wake-up cannot be missed?
        Look,
        /// Flush the plug, then sleep.
        Sleep,
        /// Woken: stand in line once more.
        Woken,
        /// Under the lock: leave it.
        Leave,
        /// Under the lock: wake all, as many a label as it may leave effects.
        Wake,
    }
}

/// What somebody does at mq_freeze_wq.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Freeze {
    /// Waits until the queue is not frozen.
    AwaitThaw,
    /// Waits until nobody uses it.
    AwaitLast,
    /// Wakes whoever waits for either.
    WakeAll,
}

/// A wait at mq_freeze_wq, or a wake-up there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FreezePath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    what: Freeze,
}

impl FreezePath {
    pub(super) fn new(queue: QueueId, what: Freeze) -> FreezePath {
        FreezePath {
            at: At::Enter,
            queue,
            what,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check<E: Env>(&self, _mq: &BlkMq<E>, _cpu: &Cpu) {
        let (at, wakes) = (self.at, self.what == Freeze::WakeAll);
        assert!(
            at == At::Enter || wakes == (at == At::Wake),
            "{at:?} of {:?}",
            self.what
        );
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check_over(&self) {
        assert_eq!(
            self.what == Freeze::WakeAll,
            self.at == At::Wake,
            "{:?}",
            self.at
        );
    }

    pub(super) fn step<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        match self.at {
            At::Enter if self.what == Freeze::WakeAll => self.want(At::Wake),
            At::Enter if self.has_come(q, cpu) => Next::Done,
            At::Enter | At::Woken => self.want(At::LineUp),
            At::LineUp => {
                let task = cpu.task;
                let mut line = q.freeze_wq.held(cpu);
                if !line.contains(&task) {
                    line.push(task);
                }
                drop(line);
                q.freeze_wq.release(cpu);
                self.to(At::Look)
            }
            At::Look => match self.has_come(q, cpu) {
                true => self.want(At::Leave),
                false => self.to(At::Sleep),
            },
            At::Sleep if !cpu.plug.is_empty() => {
                let (queue, why) = (cpu.plug.queue(), Unplug::Schedule);
                Next::call(cpu, Call::Unplug { queue, why })
            }
            At::Sleep => {
                self.at = At::Woken;
                Next::Park
            }
            At::Leave => {
                let task = cpu.task;
                q.freeze_wq.held(cpu).retain(|&waiter| waiter != task);
                q.freeze_wq.release(cpu);
                Next::Done
            }
            At::Wake => {
                let mut line = q.freeze_wq.held(cpu);
                let count = line.len().min(OUTBOX_LIMIT);
                let rest = line.split_off(count);
                let woken = core::mem::replace(&mut *line, rest);
                let more = !line.is_empty();
                drop(line);
                for waiter in woken {
                    cpu.outbox.push(Effect::Wake(waiter));
                }
                if more {
                    return Next::Step;
                }
                q.freeze_wq.release(cpu);
                Next::Done
            }
        }
    }

    fn has_come<E: Env>(self, q: &RequestQueue<E>, cpu: &Cpu) -> bool {
        let usage = q.pool.held(cpu.id).usage;
        match self.what {
            Freeze::AwaitThaw => !usage.is_frozen(),
            Freeze::AwaitLast => usage.users() == 0,
            Freeze::WakeAll => unreachable!("it waits for nothing"),
        }
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn want(&mut self, at: At) -> Next {
        self.at = at;
        lock(self.queue, LockKind::Freeze, 0)
    }
}

/// wake_up_all(&q->mq_freeze_wq), as a call of another path.
pub(super) fn wake_all(cpu: &mut Cpu, queue: QueueId) -> Next {
    let what = Freeze::WakeAll;
    Next::call(cpu, Call::Freeze { queue, what })
}
