//! wait_event() at a wait queue of a request queue, and the wake-up of its waiters.
//!
//! A frame of its own, called by paths that enter, freeze or leave a queue, suspend a mapped device
//! or end its requests. The number of users of the queue is in the pool (`request/usage.rs`).
//! Kernel: __bio_queue_enter(), blk_queue_usage_counter_release() in block/blk-core.c,
//! blk_mq_freeze_queue_wait() in block/blk-mq.c (6.1.192, 6.12.117), dm_wait_for_completion() in
//! drivers/md/dm.c (4.20), multipath_wait_for_pg_init_completion() in dm-mpath.c (6.1.192).

use crate::call::{Call, Event, Unplug, Wait, WaitQueue};
use crate::env::{Cpu, Effect, OUTBOX_LIMIT};
use crate::names::labels;
use crate::queue::{BlkMq, LockKind, Mapped};
use crate::request::QueueId;
use crate::step::{Cx, Next, lock};

labels! {
    pub enum At in "wait" {
        /// Has it come already?
        Enter,
        /// Under the wait queue's lock: add the entry.
        LineUp,
        /// Has it come, now that a wake-up cannot be missed?
        Look,
        /// Flush the plug, then sleep.
        Sleep,
        /// Woken: add the entry once more.
        Woken,
        /// Under the lock: remove the entry.
        Leave,
        /// Under the lock: wake all, per label as many as it may leave effects.
        Wake,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WaitPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    what: Wait,
}

impl Event {
    /// The wait queue of the event.
    fn which(self) -> WaitQueue {
        match self {
            Event::Thaw | Event::LastLeft => WaitQueue::Freeze,
            Event::NothingInFlight => WaitQueue::InFlight,
            Event::NothingActivated => WaitQueue::Activation,
        }
    }
}

impl WaitPath {
    pub(super) fn new(queue: QueueId, what: Wait) -> WaitPath {
        WaitPath {
            at: At::Enter,
            queue,
            what,
        }
    }

    /// The event that it waits for, asleep or not.
    fn event(self) -> Option<Event> {
        match self.what {
            Wait::For(event) => Some(event),
            Wait::WakeAll(_) => None,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check(&self, _mq: &BlkMq, _cpu: &Cpu) {
        let (at, wakes) = (self.at, self.event().is_none());
        assert!(
            at == At::Enter || wakes == (at == At::Wake),
            "{at:?} of {:?}",
            self.what
        );
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check_over(&self) {
        let wakes = self.event().is_none();
        assert_eq!(wakes, self.at == At::Wake, "{:?}", self.at);
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let event = match self.what {
            Wait::For(event) => event,
            Wait::WakeAll(which) => return self.wake(cx, which),
        };
        let which = event.which();
        match self.at {
            At::Enter if has_come(cx, event) => Next::Done,
            At::Enter | At::Woken => self.want(At::LineUp, which),
            At::LineUp => {
                let (task, queue) = (cx.cpu.task, cx.q.wait_queue(which));
                let mut waiting = queue.held(cx.cpu);
                if !waiting.contains(&task) {
                    waiting.push(task);
                }
                drop(waiting);
                queue.release(cx.cpu);
                self.to(At::Look)
            }
            At::Look => match has_come(cx, event) {
                true => self.want(At::Leave, which),
                false => self.to(At::Sleep),
            },
            At::Sleep if !cx.cpu.plug.is_empty() => {
                let (queue, why) = (cx.cpu.plug.queue(), Unplug::Schedule);
                cx.call(Call::Unplug { queue, why })
            }
            At::Sleep => {
                self.at = At::Woken;
                Next::Park
            }
            At::Leave => {
                let (task, queue) = (cx.cpu.task, cx.q.wait_queue(which));
                queue.held(cx.cpu).retain(|&waiter| waiter != task);
                queue.release(cx.cpu);
                Next::Done
            }
            At::Wake => unreachable!("it waits"),
        }
    }

    fn wake(&mut self, cx: &mut Cx<'_>, which: WaitQueue) -> Next {
        if self.at == At::Enter {
            return self.want(At::Wake, which);
        }
        let queue = cx.q.wait_queue(which);
        let mut waiting = queue.held(cx.cpu);
        let count = waiting.len().min(OUTBOX_LIMIT);
        let rest = waiting.split_off(count);
        let woken = core::mem::replace(&mut *waiting, rest);
        let more = !waiting.is_empty();
        drop(waiting);
        for waiter in woken {
            cx.cpu.outbox.push(Effect::Wake(waiter));
        }
        if more {
            return Next::Step;
        }
        queue.release(cx.cpu);
        Next::Done
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn want(&mut self, at: At, which: WaitQueue) -> Next {
        self.at = at;
        lock(self.queue, LockKind::Wait, which as u32)
    }
}

fn has_come(cx: &mut Cx<'_>, event: Event) -> bool {
    match event {
        Event::Thaw => !cx.pool().usage.is_frozen(),
        Event::LastLeft => cx.pool().usage.users() == 0,
        Event::NothingInFlight => nothing_in_flight(cx.q.own_mapped(), cx.cpu),
        Event::NothingActivated => {
            let m = cx.q.own_mapped();
            m.fields.read_among(1, cx.cpu);
            !m.state.held(cx.cpu.id).target.is_activating()
        }
    }
}

/// The kernel's per-CPU counters are one number here, since none is added during the wait.
fn nothing_in_flight(m: &Mapped, cpu: &mut Cpu) -> bool {
    m.pending.read(cpu) == 0 && m.state.held(cpu.id).pending == 0
}

/// wake_up_all() of the waiters for a thaw or the last user, as a call of another path.
pub(super) fn wake_all(cpu: &mut Cpu, queue: QueueId) -> Next {
    wake_up(cpu, queue, WaitQueue::Freeze)
}

/// wake_up_all() of one of the wait queues, as a call of another path.
pub(super) fn wake_up(cpu: &mut Cpu, queue: QueueId, which: WaitQueue) -> Next {
    let what = Wait::WakeAll(which);
    Next::call(cpu, Call::Wait { queue, what })
}
