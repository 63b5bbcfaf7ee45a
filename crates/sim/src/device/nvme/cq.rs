//! A completion queue: entries in the order of completion, and when they cause an interrupt.
//!
//! Deviation(D8): entries written while an interrupt is pending or its handler runs raise none; the
//! handler finds them. A drive may raise another one, which then finds nothing. Kernel:
//! nvme_poll_cq() in drivers/nvme/host/pci.c; coalescing: NVMe feature 08h.

use blkmq::request::RequestId;
use blkmq::time::{Duration, SimTime};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct CompletionQueue {
    // Settings.
    coalesce_count: u32,
    coalesce_time: Duration,

    // State.
    entries: VecDeque<RequestId>,
    /// From the interrupt until its handler found the queue empty.
    pending: bool,
    /// Entries written since the last interrupt, none pending.
    gathered: u32,
    /// When the first of them has waited long enough; `NEVER` without any.
    deadline: SimTime,
    /// A timer is under way, maybe for an earlier deadline.
    timer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Nothing,
    Interrupt,
    /// A look at the deadline after this time.
    Wait(Duration),
}

impl CompletionQueue {
    /// An empty queue for this many tags.
    pub(super) fn new(tags: u32, coalesce_count: u32, coalesce_time: Duration) -> CompletionQueue {
        CompletionQueue {
            coalesce_count,
            coalesce_time,
            entries: VecDeque::with_capacity(tags as usize),
            pending: false,
            gathered: 0,
            deadline: SimTime::NEVER,
            timer: false,
        }
    }

    /// The drive writes an entry.
    pub(super) fn push(&mut self, rq: RequestId) {
        self.entries.push_back(rq);
    }

    /// Effect of the entry just written, on a queue with an interrupt vector.
    pub(super) fn written(&mut self, now: SimTime) -> Step {
        if self.pending {
            return Step::Nothing;
        }
        self.gathered += 1;
        if self.gathered >= self.coalesce_count {
            return self.raise();
        }
        if self.gathered > 1 {
            return Step::Nothing;
        }
        self.deadline = now + self.coalesce_time;
        self.wait(now)
    }

    pub(super) fn waited(&mut self, now: SimTime) -> Step {
        self.timer = false;
        if self.deadline == SimTime::NEVER {
            Step::Nothing
        } else if self.deadline <= now {
            self.raise()
        } else {
            self.wait(now)
        }
    }

    /// The driver takes the oldest entry; if there is none, the handler ends.
    pub(super) fn take(&mut self) -> Option<RequestId> {
        let oldest = self.entries.pop_front();
        if oldest.is_none() {
            self.pending = false;
        }
        oldest
    }

    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    fn raise(&mut self) -> Step {
        assert!(!self.pending, "one interrupt at a time");
        self.pending = true;
        self.gathered = 0;
        self.deadline = SimTime::NEVER;
        Step::Interrupt
    }

    fn wait(&mut self, now: SimTime) -> Step {
        if self.timer {
            return Step::Nothing;
        }
        self.timer = true;
        Step::Wait(self.deadline.since(now))
    }
}
