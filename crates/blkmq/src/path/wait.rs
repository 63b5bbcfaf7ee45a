//! wait_event() at a wait queue of a request queue, and the wake-up of its waiters.
//!
//! A frame of its own, called by paths that enter, freeze or leave a queue, suspend a mapped device
//! or end its requests. The number of users of the queue is in the pool (`request/usage.rs`).
//! Kernel: __bio_queue_enter(), blk_queue_usage_counter_release() in block/blk-core.c,
//! blk_mq_freeze_queue_wait() in block/blk-mq.c (6.1.192, 6.12.117), dm_wait_for_completion() in
//! drivers/md/dm.c (4.20), multipath_wait_for_pg_init_completion() in dm-mpath.c (6.1.192).

use crate::call::{Call, Event, Unplug, WaitQueue};
use crate::env::{Cpu, Effect, OUTBOX_LIMIT};
use crate::queue::{LockKind, Mapped};
use crate::request::QueueId;
use crate::step::{Cx, Next, labels};
use steps::steps;

pub use wait_event::State as WaitPath;
pub use wake_up_all::State as WakeUpPath;

/// wait_event(); io_schedule() flushes the plug before it sleeps.
#[steps(path)]
pub fn wait_event(cx: &mut Cx<'_>, event: Event) {
    /// Has it come already?
    at!(Enter);
    if has_come(cx, event) {
        return;
    }
    loop {
        // prepare_to_wait_event()
        /// Under the wait queue's lock: add the entry.
        lock!(LineUp, cx.lock(LockKind::Wait, event.which() as u32));
        let (task, queue) = (cx.cpu.task, cx.q.wait_queue(event.which()));
        let mut waiting = queue.held(cx.cpu);
        if !waiting.contains(&task) {
            waiting.push(task);
        }
        drop(waiting);
        queue.release(cx.cpu);
        /// Has it come, now that a wake-up cannot be missed?
        at!(Look);
        if has_come(cx, event) {
            break;
        }
        /// Flush the plug, then sleep.
        at!(Sleep);
        while !cx.cpu.plug.is_empty() {
            let (queue, why) = (cx.cpu.plug.queue(), Unplug::Schedule);
            call!(Sleep, Call::Unplug { queue, why });
        }
        /// Woken: add the entry once more.
        at!(Woken, Next::Park);
    }
    // finish_wait()
    /// Under the lock: remove the entry.
    lock!(Leave, cx.lock(LockKind::Wait, event.which() as u32));
    let (task, queue) = (cx.cpu.task, cx.q.wait_queue(event.which()));
    queue.held(cx.cpu).retain(|&waiter| waiter != task);
    queue.release(cx.cpu);
}

/// wake_up_all().
#[steps(path)]
pub fn wake_up_all(cx: &mut Cx<'_>, which: WaitQueue) {
    at!(Enter);
    /// Under the lock: wake all, per label as many as it may leave effects.
    lock!(Wake, cx.lock(LockKind::Wait, which as u32));
    while wake_some(cx, which) {
        at!(Wake);
    }
    cx.q.wait_queue(which).release(cx.cpu);
}

labels! {
    pub enum At in "wait" of wait_event wake_up_all
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

/// As many as one label may leave effects. True if there are more.
fn wake_some(cx: &mut Cx<'_>, which: WaitQueue) -> bool {
    let mut waiting = cx.q.wait_queue(which).held(cx.cpu);
    let count = waiting.len().min(OUTBOX_LIMIT);
    let woken: Vec<_> = waiting.drain(..count).collect();
    let more = !waiting.is_empty();
    drop(waiting);
    for waiter in woken {
        cx.cpu.outbox.push(Effect::Wake(waiter));
    }
    more
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
    Next::call(cpu, Call::WakeUp { queue, which })
}

#[cfg(test)]
mod tests;
