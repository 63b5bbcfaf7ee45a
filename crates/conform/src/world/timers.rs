//! Timers of schedulers, and timeout timers of queues: armed by the paths, expired between two
//! events of the capture.
//!
//! No record shows one: it is due by the records' clock. Not here: their expiry
//! (`hypothesis/timers.rs`), and their functions (`elevator/hook.rs` of blkmq).
//! Kernel: kernel/time/timer.c, hrtimer.c.

use blkmq::elevator::TimerContext;
use blkmq::queue::BlkMq;
use blkmq::request::QueueId;
use blkmq::time::{Duration, SimTime};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    pub(crate) queue: QueueId,
    /// Of the queue's scheduler; none: the queue's timeout timer.
    pub(crate) timer: Option<u8>,
    /// By the records' clock.
    pub(crate) due: SimTime,
    /// The CPU that armed it: there its function runs.
    pub(crate) cpu: u16,
}

/// All timers, and the clock of the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    now: SimTime,
    /// Between a tick and the functions of timers that are due at it.
    after_tick: Duration,
    armed: Vec<Armed>,
}

impl Timers {
    /// Functions of timers that are due at a tick run so much later: first comes the interrupt,
    /// then the completions meanwhile, then its soft part (run_timer_softirq()).
    pub(crate) fn run_after_tick(&mut self, time: Duration) {
        self.after_tick = time;
    }

    /// A label on this CPU has armed one, replacing an earlier time.
    pub(crate) fn arm(
        &mut self,
        mq: &BlkMq,
        (queue, timer): (QueueId, u8),
        after: Duration,
        cpu: u16,
    ) {
        let settings = &mq.queue(queue).settings;
        let info = settings.scheduler.info();
        let info = info.expect("a scheduler has armed it");
        let due = match info.timers[usize::from(timer)].context {
            TimerContext::Hardirq => self.now + after,
            TimerContext::Softirq => self.now.wheel_after(after, settings.hz) + self.after_tick,
        };
        self.set(queue, Some(timer), due, cpu);
    }

    /// The timeout timer of a queue, replacing an earlier time. A capture does not show whether its
    /// wheel is coarser than a tick.
    pub(crate) fn time_out(&mut self, mq: &BlkMq, queue: QueueId, after: Duration, cpu: u16) {
        let due = self.now.tick_after(after, mq.queue(queue).settings.hz);
        self.set(queue, None, due, cpu);
    }

    fn set(&mut self, queue: QueueId, timer: Option<u8>, due: SimTime, cpu: u16) {
        // A timer that is armed for now expires after this label.
        let due = due.max(self.now + Duration(1));
        self.forget(queue, timer);
        self.armed.push(Armed {
            queue,
            timer,
            due,
            cpu,
        });
    }

    /// A label has cancelled it.
    pub(crate) fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.forget(queue, Some(timer));
    }

    fn forget(&mut self, queue: QueueId, timer: Option<u8>) {
        self.armed
            .retain(|armed| (armed.queue, armed.timer) != (queue, timer));
    }

    /// The next one that is due at this time; the clock goes there, or to this time.
    /// Not one that is held back.
    pub(crate) fn next_until(
        &mut self,
        time: SimTime,
        held: impl Fn(&Armed) -> bool,
    ) -> Option<Armed> {
        let due = |armed: &&Armed| armed.due <= time && !held(armed);
        let all = self.armed.iter().filter(due);
        let first = all.min_by_key(|armed| armed.due).copied();
        self.now = first.map_or(time, |armed| armed.due);
        let Armed { queue, timer, .. } = first?;
        self.forget(queue, timer);
        first
    }

    /// It has not expired yet after all.
    pub(crate) fn put_back(&mut self, armed: Armed) {
        self.armed.push(armed);
    }

    /// A timer of a queue's scheduler that is armed: it runs now.
    pub(crate) fn take(&mut self, queue: QueueId) -> Option<Armed> {
        let of = |armed: &&Armed| armed.queue == queue && armed.timer.is_some();
        let first = self.armed.iter().find(of).copied()?;
        self.forget(queue, first.timer);
        Some(first)
    }
}
