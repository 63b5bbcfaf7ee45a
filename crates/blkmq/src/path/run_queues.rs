//! A run of all hardware queues of a request queue, one after another.
//!
//! Where the scheduler orders the whole queue, the hctx of this CPU is run for all, besides those
//! with leftovers. Each run checks whether its hctx is stopped; here only the one that is run for
//! all is checked. Kernel: blk_mq_run_hw_queues(), blk_mq_delay_run_hw_queues(),
//! blk_mq_get_sq_hctx() in block/blk-mq.c (6.1.192, 6.12.117).

use super::driver::is_stopped;
use crate::call::{Call, RunHow};
use crate::env::{Cpu, Effect};
use crate::names::labels;
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, Op, QueueId};
use crate::rules::RunAll;
use crate::step::{Cx, Next, call_run};

labels! {
    pub enum At in "run-queues" {
        /// Is the hctx of this CPU run for all, or is it stopped?
        Current,
        /// Is the next hctx to be run? Then run it.
        Hctx,
    }
}

/// blk_mq_get_sq_hctx(): the hctx that is run for all. Small, since each frame has room for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SqHctx(HctxId);

impl Default for SqHctx {
    fn default() -> SqHctx {
        SqHctx::NONE
    }
}

impl SqHctx {
    /// No such hctx: all are run.
    pub(super) const NONE: SqHctx = SqHctx(HctxId(u16::MAX));

    /// The queue runs one hctx for all, if this CPU's is not stopped.
    pub(super) fn is_asked(q: &RequestQueue) -> bool {
        let rule = q.settings.rules.restart.run_all;
        rule == RunAll::OfThisCpu && q.settings.sq_sched() && q.hctxs.len() > 1
    }

    /// Checks the hctx of this CPU. An access to shared memory of its own.
    pub(super) fn look(cx: &mut Cx<'_>) -> SqHctx {
        let current = cx.set().hctx_for(cx.cpu.id, Op::Write, false);
        match is_stopped(cx.q, cx.hctx(current), cx.cpu) {
            true => SqHctx::NONE,
            false => SqHctx(current),
        }
    }

    /// Whether this hctx is among those that are run. An access to shared memory, if it is another.
    pub(super) fn runs(self, q: &RequestQueue, hctx: HctxId, cpu: &mut Cpu) -> bool {
        self == SqHctx::NONE || self.0 == hctx || q.hctx(hctx).dispatch_pending.test(cpu)
    }
}

/// A run of all hctxs of one queue, or of several, one queue after another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RunQueuesPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    /// The number of queues after this one that are run, too.
    more: u16,
    how: RunHow,
    started: bool,
    current: SqHctx,
    hctx: HctxId,
}

impl RunQueuesPath {
    /// blk_mq_run_hw_queues() or, [`RunHow::Later`], blk_mq_delay_run_hw_queues().
    pub fn new(queue: QueueId, how: RunHow) -> RunQueuesPath {
        RunQueuesPath {
            at: At::Current,
            queue,
            more: 0,
            how,
            started: false,
            current: SqHctx::NONE,
            hctx: HctxId(0),
        }
    }

    /// blk_mq_start_stopped_hw_queues() after the bits are cleared: each hctx, regardless of the
    /// scheduler.
    pub fn started(queue: QueueId) -> RunQueuesPath {
        RunQueuesPath {
            started: true,
            ..RunQueuesPath::new(queue, RunHow::Background)
        }
    }

    /// The same of this one and the `more` after it: queues of one device.
    #[must_use]
    pub fn with_more(self, more: u16) -> RunQueuesPath {
        RunQueuesPath { more, ..self }
    }

    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let (at, hctx) = (self.at, usize::from(self.hctx.0));
        let count = mq.queue(self.queue).hctxs.len();
        assert!(hctx <= count, "{at:?} of hctx {hctx} of {count}");
        assert!(hctx == 0 || at == At::Hctx, "{at:?} at another hctx");
        if self.current != SqHctx::NONE {
            assert_eq!(at, At::Hctx, "one does for all");
            let current = usize::from(self.current.0.0);
            assert!(current < count, "hctx {current} of {count}");
        }
    }

    pub(super) fn check_over(&self) {
        assert_eq!(self.more, 0, "queues are left");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Current => {
                self.at = At::Hctx;
                if !self.started && SqHctx::is_asked(cx.q) {
                    self.current = SqHctx::look(cx);
                    return Next::Step;
                }
                self.next(cx)
            }
            At::Hctx => self.next(cx),
        }
    }

    fn next(&mut self, cx: &mut Cx<'_>) -> Next {
        let hctx = self.hctx;
        if usize::from(hctx.0) == cx.q.hctxs.len() {
            return self.next_queue();
        }
        self.hctx.0 += 1;
        if !self.current.runs(cx.q, hctx, cx.cpu) {
            return Next::Step;
        }
        let queue = self.queue;
        match self.how {
            RunHow::Here => call_run(cx.cpu, queue, hctx, false),
            RunHow::Background => call_run(cx.cpu, queue, hctx, true),
            RunHow::Later(delay) => {
                cx.cpu
                    .outbox
                    .push(Effect::KickUnlessPending { queue, hctx, delay });
                Next::Step
            }
        }
    }

    fn next_queue(&mut self) -> Next {
        if self.more == 0 {
            return Next::Done;
        }
        *self = RunQueuesPath {
            at: At::Current,
            queue: QueueId(self.queue.0 + 1),
            more: self.more - 1,
            current: SqHctx::NONE,
            hctx: HctxId(0),
            ..*self
        };
        Next::Step
    }
}

/// A run of all hctxs as a call of another path.
pub(super) fn call_run_queues(cpu: &mut Cpu, queue: QueueId, how: RunHow) -> Next {
    Next::call(cpu, Call::RunQueues { queue, how })
}
