//! The return of a call: the scheduler decides, now or as planned, and its answer is compared with
//! the kernel's.
//!
//! A decision reads two things that other CPUs change without the lock: the tick, and the number of
//! completed requests of each level. `candidates.rs` looks for the plan that explains an answer;
//! `miss.rs` reports a wrong one.

use blkmq::elevator::LEVELS;
use blkmq::request::{QueueId, RequestId, Sector};

use super::issue::Found;
use super::plan::Read;
use super::{Hypotheses, Hypothesis, Role};
use crate::event::Kind;
use crate::stream::UNKNOWN;
use crate::world::{Goal, Stop};

impl Hypotheses<'_> {
    /// The scheduler answers, now or as planned.
    pub(crate) fn answer(&self, state: &mut Hypothesis, index: usize) -> Found {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, at } = event.kind else {
            unreachable!("an answer");
        };
        let queue = self.stream.queue[index];
        if self.stream.other_end[index].is_none() {
            self.ask(state, index, None);
        }
        let start = match (state.early.remove(&index), state.forced) {
            (Some(start), _) => Some(start),
            (None, true) => Some(self.force(state, index)),
            (None, false) => self.decide(state, index, state.reads.unwrap_or(Read::at(at))),
        };
        let Some(start) = start else {
            return Found::Queued;
        };
        if let Some(address) = rq {
            state.kernels[queue.index()].choose(address, start);
        }
        self.go_on(state, index);
        Found::ByTask
    }

    /// The scheduler decides for the task of an answer. If it does as the kernel's, the start of
    /// the request that it gives, 0 for none.
    pub(crate) fn decide(
        &self,
        state: &mut Hypothesis,
        index: usize,
        read: Read,
    ) -> Option<Sector> {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop != Stop::BeforeDecision {
            return None;
        }
        let time = self.decides_at(state, index, read.locked);
        state.world.place(task, event.cpu, time, self.hint(index));
        state.world.actors[task].cpu.ktime = state.plugged[self.stream.task[index]];
        self.count(state, queue, read.uncounted, -1);
        let before = Hypotheses::held_by_run(state, task);
        state.world.decide(task, Goal::Run);
        let chosen = Hypotheses::owned(state, task).filter(|rq| !before.contains(rq));
        self.count(state, queue, read.uncounted, 1);
        self.is_kernels(state, index, chosen)
    }

    fn count(&self, state: &mut Hypothesis, queue: QueueId, counts: [u32; LEVELS], by: i32) {
        let task = self.actor(Role::Forced);
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
        let agrees = match self.stream.chosen(index) {
            _ if address == UNKNOWN => self.given(state, index, is).is_none_or(is),
            Some(issue) => is(issue) && start == event.sector,
            None => index > self.stream.last_issued && start == event.sector,
        };
        agrees.then_some(start)
    }

    /// The D of the request that an answer gave. Where no probe shows that, one that fits, else
    /// the first that can be. None: the trace ends before.
    pub(crate) fn given(
        &self,
        state: &Hypothesis,
        index: usize,
        fits: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let Some(of) = self.stream.unprobed.get(&index) else {
            return self.stream.chosen(index);
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
    pub(crate) fn force(&self, state: &mut Hypothesis, index: usize) -> Sector {
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
        let task = self.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop == Stop::BeforeDecision {
            Hypotheses::leave_run(state, task);
        }
        state.differs[queue.index()] = true;
        if rq.is_some()
            && let Some(chosen) = Hypotheses::queued_at(state, queue, event)
        {
            self.force_dispatch(state, queue, chosen);
        }
        event.sector
    }
}
