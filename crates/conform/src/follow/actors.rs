//! The actors that take the steps of the paths: tasks, interrupts of CPUs, a runner for a task that
//! is busy, and pseudo-CPUs for events without a record.
//!
//! Actors are numbers; the order of the methods is that of the numbers. `world/walk.rs` has the
//! stops of an actor.

use blkmq::request::{HctxId, QueueId};

use super::{Follow, State};
use crate::event::Kind;
use crate::world::{Goal, Hint};

impl Follow<'_> {
    /// Completes requests on a CPU.
    pub(super) fn irq(&self, cpu: u16) -> usize {
        self.stream.tasks + usize::from(cpu)
    }

    pub(crate) fn scratch(&self) -> usize {
        self.stream.tasks + self.stream.cpus
    }

    /// Runs hardware queues for a task that is busy.
    pub(super) fn runner(&self, task: usize) -> usize {
        self.scratch() + 1 + task
    }

    /// kblockd runs that left no trace record.
    pub(super) fn worker(&self) -> usize {
        2 * self.stream.tasks + self.stream.cpus + 1
    }

    /// Hold requests that were decided ahead.
    pub(super) fn ahead(&self) -> core::ops::Range<usize> {
        let first = self.worker() + 1;
        first..first + 2 * self.stream.cpus
    }

    pub(super) fn timers(&self) -> usize {
        self.ahead().end
    }

    /// The actor that dispatches for a task: itself, or its runner while it is busy.
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

    /// The next step of a task after event `index`.
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

    /// After an event: runs continue to the place of the next event.
    pub(crate) fn go_on(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let task = self.stream.task[index];
        let time = self.time(state, self.stream.queue[index], event);
        let acting = self.acting(state, task);
        state.world.place(acting, event.cpu, time, self.hint(index));
        state.world.go(acting, Goal::Run);
    }
}
