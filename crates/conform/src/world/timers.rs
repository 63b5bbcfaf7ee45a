//! Timers of schedulers: armed by what the paths leave, expired between two events of the capture.
//!
//! No record shows one: it is due by the records' clock. Not here: how it expires
//! (`follow/timers.rs`), and what its function does (`elevator/hook.rs` of blkmq).
//! Kernel: kernel/time/timer.c, hrtimer.c.

use blkmq::elevator::TimerContext;
use blkmq::env::Solo;
use blkmq::queue::BlkMq;
use blkmq::request::QueueId;
use blkmq::time::{Duration, SimTime};

/// A timer that is armed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    pub(crate) queue: QueueId,
    pub(crate) timer: u8,
    /// By the records' clock.
    due: SimTime,
    /// Whose CPU armed it: there its function runs.
    pub(crate) cpu: u16,
}

/// Timers of all schedulers, and the clock of the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    now: SimTime,
    armed: Vec<Armed>,
}

impl Timers {
    /// A label on this CPU has armed one, whatever was asked of it before.
    pub(crate) fn arm(
        &mut self,
        mq: &BlkMq<Solo>,
        (queue, timer): (QueueId, u8),
        after: Duration,
        cpu: u16,
    ) {
        let settings = &mq.queue(queue).settings;
        let facts = settings.scheduler.facts();
        let facts = facts.expect("a scheduler has armed it");
        let due = match facts.timers[usize::from(timer)].context {
            TimerContext::Hardirq => self.now + after,
            // Where ticks lie a capture does not tell.
            TimerContext::Softirq => self.now.tick_after(after, settings.hz),
        };
        // What is armed for now expires behind this label, whatever comes next.
        let due = due.max(self.now + Duration(1));
        self.cancel(queue, timer);
        self.armed.push(Armed {
            queue,
            timer,
            due,
            cpu,
        });
    }

    /// A label has cancelled it.
    pub(crate) fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.armed
            .retain(|armed| (armed.queue, armed.timer) != (queue, timer));
    }

    /// The next one that is due at this time; the clock goes there, or to this time.
    pub(crate) fn next_until(&mut self, time: SimTime) -> Option<Armed> {
        let all = self.armed.iter().filter(|armed| armed.due <= time);
        let first = all.min_by_key(|armed| armed.due).copied();
        self.now = first.map_or(time, |armed| armed.due);
        let Armed { queue, timer, .. } = first?;
        self.cancel(queue, timer);
        first
    }
}
