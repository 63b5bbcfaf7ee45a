//! The return of a call: the scheduler decides, now or as planned, and its answer is compared with
//! the kernel's.
//!
//! A decision reads two things that other CPUs change without the lock: the tick, and the number of
//! completed requests of each level. `search.rs` looks for the plan that explains an answer;
//! `report.rs` prints a wrong one.

use blkmq::elevator::LEVELS;
use blkmq::request::{QueueId, RequestId, Sector};
use blkmq::time::Jiffies;

use super::Calls;
use crate::event::Kind;
use crate::hypothesis::{Hypotheses, Hypothesis, Role};
use crate::stream::UNKNOWN;
use crate::world::{Goal, Stop};

/// Values that a call read outside the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Read {
    /// The tick under the lock.
    pub(super) locked: Jiffies,
    /// Requests per level whose end was on its way and was not counted yet.
    pub(super) uncounted: [u32; LEVELS],
}

impl Read {
    /// This tick, with every end counted.
    pub(super) fn at(tick: Jiffies) -> Read {
        Read {
            locked: tick,
            uncounted: [0; LEVELS],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    Then(Read),
    /// Before the event of this number; of several there in the order of their turns.
    Before {
        event: usize,
        turn: u64,
        read: Read,
    },
    /// No rule led to it.
    Forced,
}

impl Calls<'_> {
    /// The scheduler answers, now or as planned. False if the kernel's answered otherwise.
    pub(super) fn answer(&mut self, state: &mut Hypothesis, index: usize) -> bool {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, at } = event.kind else {
            unreachable!("an answer");
        };
        let queue = self.stream.queue[index];
        if self.stream.other_end[index].is_none() {
            self.ask(state, index, None);
        }
        let start = match self.plans.get(&index).copied() {
            Some(Plan::Before { .. }) => self.early.get(&index).copied(),
            Some(Plan::Forced) => Some(self.force(state, index)),
            Some(Plan::Then(read)) => self.decide(state, index, read),
            None => self.decide(state, index, Read::at(at)),
        };
        let Some(start) = start else { return false };
        if let Some(address) = rq {
            state.kernels[queue.index()].choose(address, start);
        }
        self.hypotheses.go_on(state, index);
        self.hypotheses.resync(state, queue, event);
        true
    }

    /// The scheduler decides for the task of an answer. If it does as the kernel's, the start of
    /// the request that it gives, 0 for none.
    pub(super) fn decide(
        &self,
        state: &mut Hypothesis,
        index: usize,
        read: Read,
    ) -> Option<Sector> {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.hypotheses.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop != Stop::Pick {
            return None;
        }
        let time = self.hypotheses.decides_at(state, index, read.locked);
        state
            .world
            .place(task, event.cpu, time, self.hypotheses.hint(index));
        state.world.actors[task].cpu.ktime = state.plugged[self.stream.task[index]];
        self.count(state, queue, read.uncounted, -1);
        let before = Hypotheses::held_by_run(state, task);
        state.world.decide(task, Goal::Run);
        let chosen = Hypotheses::owned(state, task).filter(|rq| !before.contains(rq));
        self.count(state, queue, read.uncounted, 1);
        self.is_kernels(state, index, chosen)
    }

    fn count(&self, state: &mut Hypothesis, queue: QueueId, counts: [u32; LEVELS], by: i32) {
        let task = self.hypotheses.actor(Role::Forced);
        let world = &mut state.world;
        let Some(completed) = world.mq.queue(queue).elevator.completed() else {
            return;
        };
        for (level, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let cpu = &mut world.actors[task].cpu;
            cpu.begin_label();
            completed[level].add(cpu, by * count as i32);
        }
    }

    /// The start of this answer if it is the kernel's: nothing, or this direction, start and
    /// length. At the end of a truncated trace the D with the length may be missing.
    fn is_kernels(
        &self,
        state: &Hypothesis,
        index: usize,
        chosen: Option<RequestId>,
    ) -> Option<Sector> {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, .. } = event.kind else {
            return None;
        };
        let (Some(address), Some(chosen)) = (rq, chosen) else {
            return (rq.is_none() && chosen.is_none()).then_some(Sector(0));
        };
        let queue = self.stream.queue[index];
        let is = |d: usize| Hypotheses::is(state, queue, chosen, &self.stream.events[d]);
        let start = Hypotheses::start(state, queue, chosen);
        let agrees = match self.stream.issue[index] {
            _ if address == UNKNOWN => self.given(state, index, is).is_none_or(is),
            Some(issue) => is(issue) && start == event.sector,
            None => index > self.stream.last_issued && start == event.sector,
        };
        agrees.then_some(start)
    }

    /// The D of the request that an answer gave. Where no probe shows that, one that fits, else
    /// the first that can be. None: the trace ends before.
    pub(super) fn given(
        &self,
        state: &Hypothesis,
        index: usize,
        fits: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let Some(of) = self.stream.unprobed.get(&index) else {
            return self.stream.issue[index];
        };
        let queue = self.stream.queue[index];
        let waits = |&d: &usize| {
            let event = &self.stream.events[d];
            let issues = event.kind == Kind::Issue && self.stream.queue[d] == queue;
            issues && state.kernels[queue.index()].is_queued(event)
        };
        let own: Vec<usize> = of.own.iter().copied().filter(waits).collect();
        let mut later = (index..self.stream.events.len()).filter(waits);
        let of_others = (own.len() < of.calls).then(|| later.clone().find(|&d| fits(d)));
        let fitting = own
            .iter()
            .copied()
            .find(|&d| fits(d))
            .or(of_others.flatten());
        fitting.or(own.first().copied()).or_else(|| later.next())
    }

    /// The kernel's choice becomes the model's, and the run that asked is over. Returns its start,
    /// 0 for none.
    pub(super) fn force(&self, state: &mut Hypothesis, index: usize) -> Sector {
        let mut event = &self.stream.events[index];
        let Kind::Answer { rq, .. } = event.kind else {
            unreachable!("an answer");
        };
        if rq == Some(UNKNOWN)
            && let Some(issue) = self.given(state, index, |_| false)
        {
            event = &self.stream.events[issue];
        }
        let queue = self.stream.queue[index];
        let task = self.hypotheses.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop == Stop::Pick {
            Hypotheses::leave_run(state, task);
        }
        state.differs[queue.index()] = true;
        if rq.is_some()
            && let Some(chosen) = Hypotheses::queued_at(state, queue, event)
        {
            self.hypotheses.force_dispatch(state, queue, chosen);
        }
        event.sector
    }
}
