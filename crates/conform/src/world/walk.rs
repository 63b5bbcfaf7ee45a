//! Running an actor: the driver of the paths, which stops where the capture has an event.

use core::ops::ControlFlow::{self, Break, Continue};
use std::collections::VecDeque;

use blkmq::drive::{Context, Driver, Flow, Kick, Machine, Offer, attempt, carry_out};
use blkmq::elevator::SchedulerKind;
use blkmq::env::{Answer, Bit, Cpu, TraceAction, TracePoint};
use blkmq::path::label::{Complete, Pass, Run};
use blkmq::path::{Frame, Label, Next};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{BioId, HctxId, QueueId, Status};
use blkmq::time::{Duration, Jiffies, SimTime};
use blkmq::waiter::WaiterId;

use super::{Hint, Outside, Stop};
use crate::scheduler_event::SchedulerEvent;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::world) enum Mark {
    None,
    /// Asks the scheduler, under its lock.
    Pick,
    /// Looks whether the scheduler has anything.
    HasWork,
    /// Looks whether there are leftovers.
    HasLeftovers,
    /// The finish_request hook of the scheduler.
    Finish,
    /// Takes a budget before the scheduler is asked.
    PickBudget,
}

/// How far an actor goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// To the next trace point, decision or offer.
    UntilTracePoint,
    /// The same, but only through runs: other steps show in events of their own.
    Run,
    /// To the next line of a scheduler's log, or the next trace point, decision or offer.
    UntilMessage,
    /// To the scheduler's finish hook, which the capture shows.
    BeforeFinish,
    /// Through insertions too, and to the beginning of a run.
    BeforeRun,
}

/// Properties of each label for the driver.
#[derive(Debug)]
pub(crate) struct Labels(Vec<Mark>);

impl Labels {
    pub(crate) fn new() -> Labels {
        let mut marks = vec![Mark::None; Label::COUNT];
        let mut mark = |label: Label, is| marks[usize::from(label.0)] = is;
        mark(Pass::Pick.label(), Mark::Pick);
        for info in SchedulerKind::ALL.iter().filter_map(|kind| kind.info()) {
            for &label in info.picks {
                mark(label, Mark::Pick);
            }
        }
        let works = [Pass::HasWork.label(), Pass::HasSide.label()];
        for label in works
            .into_iter()
            .chain([Run::HasElevator.label(), Run::HasSide.label()])
        {
            mark(label, Mark::HasWork);
        }
        let looks = [Run::HasDispatch.label(), Run::PeekDispatch.label()];
        for label in looks.into_iter().chain([Pass::PeekDispatch.label()]) {
            mark(label, Mark::HasLeftovers);
        }
        mark(Pass::Budget.label(), Mark::PickBudget);
        mark(Complete::Finish.label(), Mark::Finish);
        Labels(marks)
    }

    fn of(&self, frame: Option<&Frame>) -> Mark {
        frame.map_or(Mark::None, |frame| self.0[usize::from(frame.label().0)])
    }
}

/// Looks at values that are set to those the kernel saw; a word with its value.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) enum Lever {
    Work,
    Leftovers(QueueId, HctxId, bool),
}

pub(in crate::world) struct Walk<'a> {
    pub(in crate::world) mq: &'a BlkMq,
    pub(in crate::world) outside: &'a mut Outside,
    pub(in crate::world) labels: &'a Labels,
    pub(in crate::world) goal: Goal,
    pub(in crate::world) hint: Hint,
    pub(in crate::world) decides: bool,
    pub(in crate::world) shown: &'a mut VecDeque<TracePoint>,
    pub(in crate::world) wants: &'a mut Next,
    /// Decisions of the scheduler are recorded.
    pub(in crate::world) calls: bool,
    /// It stops before each of them.
    pub(in crate::world) waits: bool,
    pub(in crate::world) lever: Option<Lever>,
    pub(in crate::world) now: SimTime,
    pub(in crate::world) cpu: u16,
    /// The scheduler has just decided.
    pub(in crate::world) decided: bool,
    /// Lines of logs until now.
    pub(in crate::world) said: usize,
}

impl Walk<'_> {
    fn stop<T>(&mut self, stop: Stop, wants: Next) -> ControlFlow<Stop, T> {
        *self.wants = wants;
        Break(stop)
    }

    /// Where the capture shows the value that a look without a lock must have found, it finds that:
    /// the value was another a moment before or after.
    fn pull(&mut self, mark: Mark, frame: Frame, cpu: &mut Cpu) {
        let dry = self.outside.picks == 0;
        if self.hint == Hint::Free && !dry {
            return;
        }
        let queue = frame.queue();
        let q = self.mq.queue(queue);
        match (mark, frame) {
            (Mark::HasWork, _) => {
                cpu.replayed_has_work = Some(self.hint == Hint::Asks(queue) && !dry);
                self.lever = Some(Lever::Work);
            }
            (Mark::HasLeftovers, Frame::Run(run))
                if matches!(self.hint, Hint::Asks(of) if of == queue)
                    || self.hint == Hint::Nothing =>
            {
                let pending = &q.hctx(run.hctx()).dispatch_pending;
                if pending.peek() {
                    write(pending, false, cpu);
                    self.lever = Some(Lever::Leftovers(queue, run.hctx(), true));
                }
            }
            _ => {}
        }
    }
}

fn write(bit: &Bit, value: bool, cpu: &mut Cpu) {
    cpu.begin_label();
    match value {
        true => bit.set(cpu),
        false => bit.clear(cpu),
    }
    cpu.begin_label();
}

impl Driver for Walk<'_> {
    type Stop = Stop;

    fn turn(&mut self, at: Context<'_>) -> Flow<Self> {
        if at.cpu.locks_held() > 0 {
            return Continue(());
        }
        if !self.shown.is_empty() {
            return self.stop(Stop::AtTracePoint, Next::Step);
        }
        if self.decided || self.goal == Goal::UntilMessage && self.outside.lines_said() > self.said
        {
            return self.stop(Stop::AwaitsEvent, Next::Step);
        }
        let Some(frame) = at.stack.last().copied() else {
            return Continue(());
        };
        let mark = self.labels.of(Some(&frame));
        let later = match self.goal {
            Goal::Run if mark == Mark::HasWork && self.hint == Hint::Asks(frame.queue()) => true,
            Goal::Run => !matches!(frame, Frame::Run(_) | Frame::Flush(_)),
            Goal::BeforeFinish => mark == Mark::Finish,
            Goal::BeforeRun => matches!(frame, Frame::Run(_)),
            Goal::UntilTracePoint | Goal::UntilMessage => false,
        };
        if later {
            return self.stop(Stop::AwaitsEvent, Next::Step);
        }
        self.pull(mark, frame, at.cpu);
        Continue(())
    }

    fn ends(&mut self, _cpu: &mut Cpu) -> Stop {
        Stop::Idle
    }

    fn after(&mut self, _label: Label, cpu: &mut Cpu) {
        match self.lever.take() {
            Some(Lever::Work) => cpu.replayed_has_work = None,
            Some(Lever::Leftovers(queue, hctx, value)) => {
                write(
                    &self.mq.queue(queue).hctx(hctx).dispatch_pending,
                    value,
                    cpu,
                );
            }
            None => {}
        }
    }

    fn left(&mut self, next: Next, cpu: &mut Cpu) -> Flow<Self> {
        let messages = core::mem::take(&mut cpu.messages);
        for point in cpu.trace.drain(..) {
            match point.action {
                TraceAction::Message(said) => {
                    let text = said.text(&messages).to_owned();
                    let prefix = self.outside.unlocked[point.queue.index()];
                    if prefix.is_some_and(|prefix| text.starts_with(prefix)) {
                        let actor = cpu.owner as usize;
                        self.outside.said_unlocked.push((point.queue, actor, text));
                    } else {
                        self.outside.said.push((point.queue, self.now, text));
                    }
                }
                TraceAction::Probe(probe) => {
                    let reported = SchedulerEvent::of_model(probe);
                    let reported = reported.map(|reported| (point.queue, self.now, reported));
                    self.outside.reported.extend(reported);
                }
                _ => self.shown.push_back(point),
            }
        }
        carry_out(self, cpu);
        if !self.shown.is_empty() && cpu.locks_held() == 0 {
            return self.stop(Stop::AtTracePoint, next);
        }
        Continue(())
    }

    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        let picks = self.labels.of(at.stack.last()) == Mark::Pick;
        if picks && self.waits {
            if !core::mem::take(&mut self.decides) {
                return self.stop(Stop::BeforeDecision, Next::Lock(lock));
            }
            self.decided = true;
        }
        if picks && !self.calls {
            self.outside.picks = self.outside.picks.saturating_sub(1);
        }
        let runs = matches!(at.stack.last(), Some(Frame::Run(_) | Frame::Flush(_)));
        // A way to a token, under the scheduler's lock, is part of the decision.
        if self.goal == Goal::Run && !runs && at.cpu.locks_held() == 0 {
            return self.stop(Stop::AwaitsEvent, Next::Lock(lock));
        }
        assert!(self.mq.is_free(lock), "a stopped actor holds no lock");
        self.mq.acquire(lock, at.cpu);
        Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        attempt(self.mq, lock, at.cpu);
        Continue(())
    }

    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        let known = (offer.queue, offer.rq);
        if let Some(index) = self.outside.ahead.iter().position(|&rq| rq == known) {
            self.outside.ahead.remove(index);
            at.cpu.answer = Answer::Ok;
            return Continue(());
        }
        self.stop(Stop::BeforeQueueRq(offer.rq), Next::Step)
    }

    fn budget(&mut self, queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        let index = queue.index();
        let most = self.outside.budgets_max[index];
        let mut free = most.is_none_or(|most| self.outside.budgets[index] < most);
        if self.calls && self.hint == Hint::Asks(queue) {
            free = true;
        }
        cpu.answer = match free {
            true => {
                self.outside.budgets[index] += 1;
                Answer::Budget(0)
            }
            false => Answer::NoBudget,
        };
        Continue(())
    }

    fn put_budget(&mut self, queue: QueueId, _token: u32, _cpu: &mut Cpu) -> Flow<Self> {
        self.outside.put_budget(queue);
        Continue(())
    }

    fn commit(&mut self, _queue: QueueId, _hctx: HctxId, _cpu: &mut Cpu) -> Flow<Self> {
        Continue(())
    }

    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        self.stop(Stop::WaitsForTag, Next::Step)
    }
}

impl Machine for Walk<'_> {
    fn kick(&mut self, kick: Kick) {
        let (queue, hctx) = (kick.queue.index(), usize::from(kick.hctx.0));
        let outside = &mut *self.outside;
        let (pending, due) = (
            &mut outside.run_work[queue][hctx],
            &mut outside.run_due[queue][hctx],
        );
        if self.calls || kick.delay == Duration::ZERO {
            *pending = true;
            *due = None;
        } else if !(*pending || kick.unless_pending && due.is_some()) {
            *due = Some(delay_over(self.now, kick.delay, outside.hz));
        }
    }

    fn kick_requeue(&mut self, queue: QueueId) {
        self.outside.requeue_work[queue.index()] = true;
    }

    fn bio_end(&mut self, queue: QueueId, bio: BioId, _status: Status) {
        self.mq.queue(queue).with_pool(|pool| pool.free_bio(bio));
    }

    fn time_out(&mut self, queue: QueueId, after: Duration) {
        let timers = &mut self.outside.timers;
        timers.time_out(self.mq, queue, after, self.cpu);
    }

    /// A waiter continues with its own event.
    fn wake(&mut self, _waiter: WaiterId) {}

    fn arm(&mut self, queue: QueueId, timer: u8, after: Duration) {
        let timers = &mut self.outside.timers;
        timers.arm(self.mq, (queue, timer), after, self.cpu);
    }

    fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.outside.timers.cancel(queue, timer);
    }
}

/// The end of a delay from `now`: one tick, and one more because a timer must not be early by any
/// part of the tick it was set in.
fn delay_over(now: SimTime, delay: Duration, hz: u32) -> Jiffies {
    let ticks = Jiffies::from_millis(delay.0 / 1_000_000, hz);
    now.jiffies(hz) + ticks + Jiffies(1)
}
