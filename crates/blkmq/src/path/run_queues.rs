//! A run of all hardware queues of a request queue, one after another.
//!
//! Where the scheduler orders the whole queue, the hctx of this CPU is run for all, besides those
//! with leftovers. Each run checks whether its hctx is stopped; here only the one that is run for
//! all is checked. Kernel: blk_mq_run_hw_queues(), blk_mq_delay_run_hw_queues(),
//! blk_mq_get_sq_hctx() in block/blk-mq.c (4.5, 4.12, 6.1.192, 6.12.117).

use super::driver::is_stopped;
use super::run::has_pending;
use crate::call::RunHow;
use crate::env::Cpu;
use crate::queue::RequestQueue;
use crate::request::{HctxId, Op, QueueId};
use crate::rules::EmptyRun;
use crate::step::{Cx, Next, labels};
use steps::steps;

pub use run_hw_queues::State as RunQueuesPath;

/// blk_mq_run_hw_queues(), blk_mq_delay_run_hw_queues(), or after their bits are cleared
/// blk_mq_start_stopped_hw_queues(). The same of `more` queues after this one, those of one device.
#[steps(path, turns)]
pub fn run_hw_queues(cx: &mut Cx<'_>, how: RunHow, mut more: u16) {
    loop {
        /// Is the hctx of this CPU run for all, or is it stopped?
        at!(Current);
        let (mut current, mut hctx): (SqHctx, HctxId) = (SqHctx::NONE, HctxId(0));
        if how != RunHow::Started && SqHctx::is_asked(cx.q) {
            current = SqHctx::look(cx);
            /// Is the next hctx to be run? Then run it.
            at!(Hctx);
        }
        while usize::from(hctx.0) < cx.q.hctxs.len() {
            let mut runs: bool = current.runs(cx.q, hctx, cx.cpu);
            let looks = how != RunHow::Started && cx.rules().empty_run == EmptyRun::Unseen;
            if runs && looks {
                runs = sub!(has_pending(hctx));
            }
            let next = match runs {
                true => run(cx, hctx, how),
                false => Next::Step,
            };
            hctx.0 += 1;
            at!(Hctx, next);
        }
        if more == 0 {
            return;
        }
        more -= 1;
        cx.q = cx.mq.queue(QueueId(cx.q.id.0 + 1));
    }
}

labels! {
    pub enum At in "run-queues" of run_hw_queues
}

/// A run of one of them, or its kick.
fn run(cx: &mut Cx<'_>, hctx: HctxId, how: RunHow) -> Next {
    match how {
        RunHow::Here => cx.run(hctx, false),
        RunHow::Background | RunHow::Started => cx.run(hctx, true),
        RunHow::Later(delay) => {
            cx.kick_unless_pending(hctx, delay);
            Next::Step
        }
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
        q.settings.runs_one_for_all() && q.hctxs.len() > 1
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
