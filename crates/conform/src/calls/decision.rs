//! The return of a call: the scheduler decides, now or as planned, and its answer is compared with
//! the kernel's.
//!
//! A decision reads two things that other CPUs change without the lock: the tick, and the number of
//! completed requests of each level. `search.rs` looks for the plan that explains an answer;
//! `report.rs` prints a wrong one.

use blkmq::elevator::LEVELS;
use blkmq::request::{QueueId, RequestId};
use blkmq::time::Jiffies;

use super::Calls;
use crate::event::Kind;
use crate::follow::{Follow, State};
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
    pub(super) fn answer(&mut self, state: &mut State, index: usize) -> bool {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, at } = event.kind else {
            unreachable!("an answer");
        };
        let queue = self.stream.queue[index];
        if self.stream.other_end[index].is_none() {
            self.ask(state, index, None);
        }
        let agrees = match self.plans.get(&index).copied() {
            Some(Plan::Before { .. }) => self.early.get(&index).copied().unwrap_or(false),
            Some(Plan::Forced) => {
                self.force(state, index);
                true
            }
            Some(Plan::Then(read)) => self.decide(state, index, read),
            None => self.decide(state, index, Read::at(at)),
        };
        if let Some(address) = rq {
            state.kernels[queue.index()].choose(address, event.sector);
        }
        if agrees {
            self.follow.go_on(state, index);
            self.follow.resync(state, queue, event);
        }
        agrees
    }

    /// The scheduler decides for the task of an answer. True if it does as the kernel's.
    pub(super) fn decide(&self, state: &mut State, index: usize, read: Read) -> bool {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.follow.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop != Stop::Pick {
            return false;
        }
        let time = self.follow.decides_at(state, index, read.locked);
        state
            .world
            .place(task, event.cpu, time, self.follow.hint(index));
        state.world.actors[task].cpu.ktime = state.plugged[self.stream.task[index]];
        self.count(state, queue, read.uncounted, -1);
        let before = Follow::held_by_run(state, task);
        state.world.decide(task, Goal::Run);
        let chosen = Follow::owned(state, task).filter(|rq| !before.contains(rq));
        self.count(state, queue, read.uncounted, 1);
        self.is_kernels(state, index, chosen)
    }

    fn count(&self, state: &mut State, queue: QueueId, counts: [u32; LEVELS], by: i32) {
        let task = self.stream.tasks + self.stream.cpus;
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

    /// True if the kernel's answer is this one: nothing, or this direction, start and length. At
    /// the end of a truncated trace the D with the length may be missing.
    fn is_kernels(&self, state: &State, index: usize, chosen: Option<RequestId>) -> bool {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, .. } = event.kind else {
            return false;
        };
        let (Some(_), Some(chosen)) = (rq, chosen) else {
            return rq.is_none() && chosen.is_none();
        };
        let issue = self.stream.issue[index].map(|issue| &self.stream.events[issue]);
        let q = state.world.mq.queue(self.stream.queue[index]);
        q.with_pool(|pool| {
            let model = &pool[chosen];
            let issued = match issue {
                Some(issue) => {
                    model.op.direction() == issue.op.direction() && model.sectors == issue.sectors
                }
                None => index > self.stream.last_issued,
            };
            issued && model.sector == event.sector
        })
    }

    /// The kernel's choice becomes the model's, and the run that asked is over.
    pub(super) fn force(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, .. } = event.kind else {
            return;
        };
        let queue = self.stream.queue[index];
        let task = self.follow.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop == Stop::Pick {
            Follow::leave_run(state, task);
        }
        state.differs[queue.index()] = true;
        if rq.is_some()
            && let Some(chosen) = Follow::queued_at(state, queue, event)
        {
            self.follow.force_dispatch(state, queue, chosen);
        }
    }
}
