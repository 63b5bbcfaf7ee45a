//! Who takes the steps of the paths: a task, an interrupt of a CPU, a runner for a task that is in
//! the middle of something else, and some that nobody sees.
//!
//! Actors are numbers; the order of the methods is that of the numbers. Not here: what an actor may
//! do before it stops (`world/walk.rs`).

use blkmq::request::{HctxId, QueueId};

use super::{Follow, State};
use crate::event::Kind;
use crate::world::{Goal, Hint};

impl Follow<'_> {
    /// Who completes requests on a CPU.
    pub(super) fn irq(&self, cpu: u16) -> usize {
        self.stream.tasks + usize::from(cpu)
    }

    pub(crate) fn scratch(&self) -> usize {
        self.stream.tasks + self.stream.cpus
    }

    /// Who runs hardware queues for a task that is in the middle of something else.
    pub(super) fn runner(&self, task: usize) -> usize {
        self.scratch() + 1 + task
    }

    /// Who runs hardware queues unseen.
    pub(super) fn worker(&self) -> usize {
        2 * self.stream.tasks + self.stream.cpus + 1
    }

    /// Who holds what was decided ahead.
    pub(super) fn ahead(&self) -> core::ops::Range<usize> {
        let first = self.worker() + 1;
        first..first + 2 * self.stream.cpus
    }

    /// Who runs functions of timers.
    pub(super) fn timers(&self) -> usize {
        self.ahead().end
    }

    /// Who hands over requests for a task: itself, or its runner while that has something to do.
    pub(crate) fn acting(&self, state: &State, task: usize) -> usize {
        let runner = self.runner(task);
        match state.world.actors[runner].is_lost() {
            true => task,
            false => runner,
        }
    }

    /// The runner begins a run of this hctx.
    pub(crate) fn begin_aside(&self, state: &mut State, task: usize, queue: QueueId, hctx: HctxId) {
        let runner = self.runner(task);
        let cpu = &state.world.actors[task].cpu;
        let (cpu, now, hint) = (cpu.id.0, cpu.now(), state.world.actors[task].hint);
        state.world.place(runner, cpu, now, hint);
        Self::begin_run(state, runner, queue, hctx);
    }

    /// What a task does behind event `index`.
    pub(crate) fn hint(&self, index: usize) -> Hint {
        if !self.calls {
            return Hint::Free;
        }
        match self.stream.next[index] {
            Some(next) if matches!(self.stream.events[next].kind, Kind::Ask { .. }) => {
                Hint::Asks(self.stream.queue[next])
            }
            _ => Hint::Else,
        }
    }

    /// Puts the task of an event where the event is.
    pub(crate) fn at(&self, state: &mut State, index: usize) -> usize {
        let event = &self.stream.events[index];
        let task = self.stream.task[index];
        let time = self.time(state, self.stream.queue[index], event);
        // Until the event itself is shown the task was on its way to it.
        let hint = match (self.calls, event.kind) {
            (false, _) => Hint::Free,
            (true, Kind::Ask { .. }) => Hint::Asks(self.stream.queue[index]),
            (true, _) => Hint::Else,
        };
        state.world.place(task, event.cpu, time, hint);
        let runner = self.runner(task);
        state.world.place(runner, event.cpu, time, hint);
        for actor in [task, runner] {
            state.world.actors[actor].cpu.ktime = state.plugged[task];
        }
        let hands_over = matches!(
            event.kind,
            Kind::Ask { .. } | Kind::Answer { .. } | Kind::Issue | Kind::Requeue
        );
        if !hands_over && !state.world.actors[runner].is_lost() {
            Self::run_out(state, runner);
        }
        task
    }

    /// Behind an event: runs go on to where the next event stands.
    pub(crate) fn go_on(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let task = self.stream.task[index];
        let time = self.time(state, self.stream.queue[index], event);
        let acting = self.acting(state, task);
        state.world.place(acting, event.cpu, time, self.hint(index));
        state.world.go(acting, Goal::Run);
    }
}
