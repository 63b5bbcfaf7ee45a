//! `Faulty`: a wrapper that injects faults into a device.
//!
//! Each kind of fault is drawn from its own stream, once for each command (busy and requeue: once
//! for each offer): a further kind changes no other. Not here: service times. Kernel: struct
//! blk_mq_ops in include/linux/blk-mq.h; blk_should_fake_timeout().

use super::{Action, Actions, Command, Device, Found, Reply, TurnedDown, Verdict};
use super::{DeviceSetup, DriverInfo, QueueLayout};
use crate::plan::{BusyKind, FaultPlan, Ratio};
use crate::rng::Rng;
use blkmq::request::{CpuId, HctxId, RequestId, Status};
use blkmq::time::{Duration, SimTime};

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub struct Faulty<D> {
    // Settings.
    plan: FaultPlan,
    io_timeout: Duration,
    layout: QueueLayout,
    /// Interrupt handlers end what they find in batches.
    batches: bool,

    // State.
    inner: D,
    busy: Draw,
    requeue: Draw,
    error: Draw,
    timeout: Draw,
    lost: Draw,
    slots: Vec<Slot>,
    /// For each hctx: commands whose completion will come.
    answering: Vec<u32>,
    /// Commands that the device never got: timed out or lost.
    swallowed: u32,
    accepted: u64,
    /// By unit: it is out of reach, and commands for it fail.
    out: Vec<bool>,
}

#[derive(Debug)]
struct Draw {
    ratio: Ratio,
    rng: Rng,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Answered,
    Error,
    /// Not answered; the timeout ends it.
    Timeout,
    /// Not answered.
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    /// No command, or it has ended.
    Idle,
    /// Refused at least once; its fate is drawn already.
    Refused(Fate),
    /// Accepted, of this unit.
    Accepted(Fate, HctxId, u16),
}

/// Distinguishes the wrapper's timers from those of the device.
const TIMEOUT_MARK: u64 = 1 << 63;

pub fn is_wanted(plan: &FaultPlan) -> bool {
    let refusals = [plan.busy, plan.requeue].into_iter();
    let mut ratios = refusals.chain([plan.error, plan.timeout, plan.lost_completion]);
    plan.outages || ratios.any(|ratio| ratio.numerator > 0)
}

impl<D: Device> Faulty<D> {
    pub fn new(inner: D, setup: &DeviceSetup<'_>) -> Faulty<D> {
        let plan = setup.plan.fault;
        let layout = QueueLayout::new(setup.plan);
        let draw = |ratio: Ratio, name: &str| Draw {
            ratio,
            rng: setup.random(name),
        };
        Faulty {
            plan,
            io_timeout: setup.io_timeout,
            layout,
            batches: DriverInfo::of(&setup.plan.kind, setup.rules).ops.batches,
            inner,
            busy: draw(plan.busy, "fault/busy"),
            requeue: draw(plan.requeue, "fault/requeue"),
            error: draw(plan.error, "fault/error"),
            timeout: draw(plan.timeout, "fault/timeout"),
            lost: draw(plan.lost_completion, "fault/lost_completion"),
            slots: vec![Slot::Idle; setup.requests as usize],
            answering: vec![0; layout.count()],
            swallowed: 0,
            accepted: 0,
            out: vec![false; usize::from(setup.units)],
        }
    }

    /// Draws the outcome of a command that is offered, for the first time or again.
    fn fate(&mut self, rq: RequestId) -> Fate {
        match self.slots[rq.0 as usize] {
            Slot::Refused(fate) => fate,
            Slot::Idle => {
                // Each stream is drawn, whatever the first result is.
                let error = self.error.hits();
                let timeout = self.timeout.hits();
                let lost = self.lost.hits();
                match (lost, timeout, error) {
                    (true, _, _) => Fate::Lost,
                    (false, true, _) => Fate::Timeout,
                    (false, false, true) => Fate::Error,
                    (false, false, false) => Fate::Answered,
                }
            }
            Slot::Accepted(..) => panic!("request {} was issued twice", rq.0),
        }
    }

    /// DEV_RESOURCE promises that a completion will run this hctx again. That does not happen if no
    /// command of the hctx will be answered, nor if completions are batched: a batch does not look
    /// at SCHED_RESTART.
    fn busy_kind(&self, hctx: HctxId) -> BusyKind {
        let batched = self.batches || self.layout.polled_index(hctx).is_some();
        if batched || self.answering[usize::from(hctx.0)] == 0 {
            BusyKind::Resource
        } else {
            self.plan.busy_kind
        }
    }

    fn offer(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        if self.accepted < self.plan.after_commands {
            return self.pass_on(command, Fate::Answered, now, out);
        }
        // Both streams are drawn, whatever the first result is.
        let (busy, requeue) = (self.busy.hits(), self.requeue.hits());
        if busy {
            let busy = self.busy_kind(command.hctx);
            return self.inner.turn_down(command, TurnedDown::Busy(busy));
        }
        if requeue {
            let reply = self.inner.turn_down(command, TurnedDown::GivenBack);
            if let Verdict::Requeued { .. } = reply.verdict {
                self.ring(command, now, out);
            }
            return reply;
        }
        let fate = self.fate(command.rq);
        let reply = self.pass_on(command, fate, now, out);
        if reply.verdict != Verdict::Accepted {
            self.slots[command.rq.0 as usize] = Slot::Refused(fate);
        }
        reply
    }

    fn pass_on(&mut self, command: &Command, fate: Fate, now: SimTime, out: &mut Actions) -> Reply {
        let swallow = matches!(fate, Fate::Timeout | Fate::Lost);
        let reply = if swallow {
            self.unanswered(command, now, out)
        } else {
            self.inner.queue_rq(command, now, out)
        };
        if reply.verdict != Verdict::Accepted {
            return reply;
        }
        self.accepted += 1;
        self.slots[command.rq.0 as usize] = Slot::Accepted(fate, command.hctx, command.unit);
        if swallow {
            self.swallowed += 1;
        } else {
            self.answering[usize::from(command.hctx.0)] += 1;
        }
        if fate == Fate::Timeout {
            out.push(Action::Timer {
                after: self.io_timeout,
                mark: TIMEOUT_MARK | u64::from(command.rq.0),
            });
        }
        reply
    }

    /// queue_rq of a command that the hardware accepts and never answers.
    ///
    /// Deviation(D7): it uses no hardware resource, but commands before it are published; a polled
    /// command of null_blk is not answered either, though the kernel has it on the poll list.
    fn unanswered(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        match self.inner.admit(command, out) {
            Ok(()) => {
                self.ring(command, now, out);
                Reply::ACCEPTED
            }
            Err(reply) => reply,
        }
    }

    /// queue_rq of a command whose device is out of reach: the driver accepts it and ends it with
    /// an error.
    fn unreachable(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        let reply = self.unanswered(command, now, out);
        if reply.verdict == Verdict::Accepted {
            let rq = command.rq;
            self.slots[rq.0 as usize] = Slot::Accepted(Fate::Answered, command.hctx, command.unit);
            self.answering[usize::from(command.hctx.0)] += 1;
            let status = Status::Transport;
            out.push(Action::Complete { rq, status });
        }
        reply
    }

    /// Commands that wait for a later `last` are published: the block layer takes this one for
    /// accepted.
    fn ring(&mut self, command: &Command, now: SimTime, out: &mut Actions) {
        if command.last {
            self.inner.commit_rqs(command.hctx, command.cpu, now, out);
        }
    }

    /// The timeout of the block layer expired for a command that was not answered.
    fn timed_out(&mut self, rq: RequestId, out: &mut Actions) {
        let slot = core::mem::replace(&mut self.slots[rq.0 as usize], Slot::Idle);
        assert!(
            matches!(slot, Slot::Accepted(Fate::Timeout, ..)),
            "the timeout of request {} came to {slot:?}",
            rq.0
        );
        self.swallowed -= 1;
        let status = Status::Timeout;
        out.push(Action::Complete { rq, status });
    }

    /// Records the completions that the device reported in its last call.
    fn settle_new(&mut self, out: &mut Actions, known: usize) {
        for action in &mut out[known..] {
            if let Action::End { rq, status } | Action::Complete { rq, status } = action {
                *status = self.settle(*rq, *status);
            }
        }
    }

    /// The device completes a command: the status it ends with.
    fn settle(&mut self, rq: RequestId, status: Status) -> Status {
        let slot = core::mem::replace(&mut self.slots[rq.0 as usize], Slot::Idle);
        let (fate, unit) = match slot {
            Slot::Accepted(fate, hctx, unit) => {
                self.answering[usize::from(hctx.0)] -= 1;
                (fate, unit)
            }
            Slot::Idle | Slot::Refused(_) => {
                panic!("request {} was reported while {slot:?}", rq.0)
            }
        };
        if self.out[usize::from(unit)] && status == Status::Ok {
            return Status::Transport;
        }
        match fate {
            Fate::Error if status == Status::Ok => Status::IoError,
            Fate::Answered | Fate::Error => status,
            Fate::Timeout | Fate::Lost => panic!("request {} was swallowed", rq.0),
        }
    }

    fn settle_found(&mut self, found: Option<Found>) -> Option<Found> {
        let mut found = found?;
        found.status = self.settle(found.rq, found.status);
        Some(found)
    }
}

impl Draw {
    fn hits(&mut self) -> bool {
        let ratio = self.ratio;
        ratio.numerator > 0
            && self
                .rng
                .chance(u64::from(ratio.numerator), u64::from(ratio.denominator))
    }
}

impl<D: Device> Device for Faulty<D> {
    fn get_budget(&mut self, unit: u16, now: SimTime, out: &mut Actions) -> Option<u32> {
        self.inner.get_budget(unit, now, out)
    }

    fn is_busy(&self, unit: u16) -> bool {
        self.inner.is_busy(unit)
    }

    fn put_budget(&mut self, token: u32) {
        self.inner.put_budget(token);
    }

    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        let known = out.len();
        let reply = match self.out[usize::from(command.unit)] {
            true => self.unreachable(command, now, out),
            false => self.offer(command, now, out),
        };
        self.settle_new(out, known);
        reply
    }

    fn commit_rqs(&mut self, hctx: HctxId, cpu: CpuId, now: SimTime, out: &mut Actions) {
        self.inner.commit_rqs(hctx, cpu, now, out);
    }

    fn timer(&mut self, mark: u64, now: SimTime, out: &mut Actions) {
        if mark & TIMEOUT_MARK != 0 {
            self.timed_out(RequestId(mark as u32), out);
            return;
        }
        let known = out.len();
        self.inner.timer(mark, now, out);
        self.settle_new(out, known);
    }

    fn interrupt(&mut self, vector: u32, now: SimTime, out: &mut Actions) -> Option<Found> {
        let found = self.inner.interrupt(vector, now, out);
        self.settle_found(found)
    }

    fn poll(&mut self, hctx: HctxId, now: SimTime, out: &mut Actions) -> Option<Found> {
        let found = self.inner.poll(hctx, now, out);
        self.settle_found(found)
    }

    fn due_after(&self, now: SimTime) -> Option<SimTime> {
        self.inner.due_after(now)
    }

    /// Unless it refuses all commands or none.
    fn fickle(&self) -> bool {
        let drawn = |ratio: Ratio| ratio.numerator > 0 && ratio.numerator < ratio.denominator;
        drawn(self.plan.busy) || drawn(self.plan.requeue) || self.inner.fickle()
    }

    fn set_out(&mut self, unit: u16, out: bool) {
        self.out[usize::from(unit)] = out;
    }

    fn ended(&mut self, rq: RequestId, now: SimTime, out: &mut Actions) {
        self.inner.ended(rq, now, out);
    }

    fn in_flight(&self) -> u32 {
        self.inner.in_flight() + self.swallowed
    }

    fn describe(&self) -> String {
        let lost = |slot: &&Slot| matches!(slot, Slot::Accepted(Fate::Lost, ..));
        format!(
            "{}; {} never answered, {} of them lost for good",
            self.inner.describe(),
            self.swallowed,
            self.slots.iter().filter(lost).count()
        )
    }
}
