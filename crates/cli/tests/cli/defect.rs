//! Block layers that are wrong on purpose: a follower that breaks something, around one that
//! records the steps. Their schedules must be rejected.

use blkmq::drive::{Follower, Ran};
use blkmq::elevator::Elevator;
use blkmq::elevator::cfq::merge::Account;
use blkmq::elevator::series::shared::{BUCKETS, DISPATCHING};
use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{CpuId, HctxId, QueueId};
use explore::run_recorder::Recording;

/// A defect. The run goes on with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// Restart: a mark that is cleared stays counted.
    StaysCounted,
    /// Restart: leftovers are offered without SCHED_RESTART.
    ForgottenRestart,
    /// Restart: a freed tag wakes nobody.
    ForgottenWake,
    /// Restart: the run that a re-check asks for is not made.
    ForgottenRun,
    /// Dispatch: a run that enters dispatch leaves the gate open.
    GateLeftOpen,
    /// Dispatch: a bucket that was filled looks empty to the inserter.
    LostFill,
    /// Dispatch: the mark of a filled bucket is not set.
    ForgottenMark,
    /// Dispatch: a run that was turned away asks for no run later.
    ForgottenDelay,
    /// CFQ: one put fewer wherever references of this account are put.
    Forgets(Account),
    /// BFQ: a process's queue has one reference too many, after so many labels.
    Keeps(u64),
}

/// A run that is written down, with a defect or without.
#[derive(Debug)]
pub(crate) struct Defect {
    pub(crate) recording: Recording,
    pub(crate) wrong: Option<Wrong>,
    /// A bit was set for the time of a label.
    hidden: bool,
    labels: u64,
}

/// Where the marks of the only hctx with requests are.
const HCTX: HctxId = HctxId(0);

impl Defect {
    pub(crate) fn new(recording: Recording, wrong: Option<Wrong>) -> Defect {
        Defect {
            recording,
            wrong,
            hidden: false,
            labels: 0,
        }
    }

    /// A count of references that is wrong from this label on.
    fn miscount(&mut self, mq: &BlkMq) {
        self.labels += 1;
        match (&mq.queue(QueueId(0)).elevator, self.wrong) {
            (Elevator::Cfq(cfq), Some(Wrong::Forgets(account))) if self.labels == 1 => {
                cfq.policy
                    .adjust(|cfq| cfq.ties.wrong = Some((account, -1)));
            }
            (Elevator::Bfq(bfq), Some(Wrong::Keeps(after))) if self.labels == after => {
                bfq.policy.adjust(|bfq| bfq.miscount(0, 1));
            }
            _ => {}
        }
    }

    /// The defect after this label.
    fn break_something(&self, mq: &BlkMq, was: &Frame, cpu: &mut Cpu) {
        let Some(wrong) = self.wrong else {
            return;
        };
        let q = mq.queue(was.queue());
        let Elevator::MqDeadline(dd) = &q.elevator else {
            return;
        };
        cpu.begin_label();
        match (wrong, was.label().name()) {
            (Wrong::StaysCounted, "complete.uncount") => {
                for q in mq.queues.iter().filter(|q| q.restarts.peek() < 1) {
                    cpu.begin_label();
                    q.restarts.add(cpu, 1);
                }
            }
            (Wrong::ForgottenRestart, "run.set-restart") => q.hctx(HCTX).restart.clear(cpu),
            (Wrong::GateLeftOpen, "series-dispatch.shut-gate") => {
                dd.series().run_state.fetch_and(cpu, !DISPATCHING);
            }
            (Wrong::LostFill, "series-insert.fill") => {
                dd.series().buckets[dd.series().bucket_of(cpu.id)]
                    .pending
                    .clear(cpu);
            }
            (Wrong::ForgottenMark, "series-insert.mark") => {
                dd.series().run_state.fetch_and(cpu, !BUCKETS);
            }
            _ => {}
        }
        cpu.begin_label();
    }

    /// Drops the label's request without a record of it.
    fn lose(&self, was: &Frame, cpu: &mut Cpu) {
        let loses = matches!(
            (self.wrong, was.label().name()),
            (
                Some(Wrong::ForgottenWake),
                "complete.put-driver" | "complete.put-sequence"
            ) | (Some(Wrong::ForgottenDelay), "pass.delay-runs")
        );
        let mut taken = 0;
        while loses && cpu.outbox.take(taken).is_some() {
            taken += 1;
        }
    }

    /// The re-check sees the reason for which it would skip a run: for the time of the label the
    /// bit that it reads is set.
    fn hide(&mut self, mq: &BlkMq, frame: &Frame) {
        let q = mq.queue(frame.queue());
        let bit = match frame.label().name() {
            "list.restart" => &q.hctx(HCTX).restart,
            "list.still-in-line" => &q.hctx(HCTX).dispatch_wait,
            _ => return,
        };
        let cpu = &mut Cpu::new(CpuId(0));
        if core::mem::take(&mut self.hidden) {
            bit.clear(cpu);
        } else if self.wrong == Some(Wrong::ForgottenRun) && !bit.peek() {
            bit.set(cpu);
            self.hidden = true;
        }
    }
}

impl Follower for Defect {
    fn before(&mut self, mq: &BlkMq, frame: &Frame) {
        self.recording.before(mq, frame);
        self.miscount(mq);
        self.hide(mq, frame);
    }

    fn after(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        self.break_something(mq, ran.was, cpu);
        if self.hidden {
            self.hide(mq, ran.was);
        }
        let was = ran.was;
        self.recording.after(mq, ran, cpu);
        self.lose(was, cpu);
    }

    fn granted(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        self.recording.granted(mq, context, lock);
    }

    fn contended(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        self.recording.contended(mq, context, lock);
    }

    fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        self.recording.item_queued(queue, delayed);
    }

    fn item_begins(&mut self, mq: &BlkMq, context: usize, queue: QueueId) {
        self.recording.item_begins(mq, context, queue);
    }
}
