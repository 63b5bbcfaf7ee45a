//! The actors that take the steps of the paths: tasks, and others by their role.
//!
//! `world/walk.rs` has the stops of an actor.

use blkmq::request::{HctxId, QueueId};

use super::{Hypotheses, Hypothesis};
use crate::event::Kind;
use crate::world::{Goal, Hint};

/// The work of an actor that is no task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Completes requests on this CPU.
    Interrupt(u16),
    /// Does what the kernel did and the paths would not.
    Forced,
    /// Runs hardware queues for this task, which is busy.
    Runner(usize),
    /// Runs of kblockd that left no trace record.
    Unseen,
    /// Holds requests whose decision shows later: two for each CPU.
    Ahead(usize),
    Timers,
}

impl Hypotheses<'_> {
    /// The number of an actor: tasks have their own, and roles follow in order.
    pub(crate) fn actor(&self, role: Role) -> usize {
        let (tasks, cpus) = (self.stream.tasks, self.stream.cpus);
        match role {
            Role::Interrupt(cpu) => tasks + usize::from(cpu),
            Role::Forced => tasks + cpus,
            Role::Runner(task) => tasks + cpus + 1 + task,
            Role::Unseen => 2 * tasks + cpus + 1,
            Role::Ahead(number) => 2 * tasks + cpus + 2 + number,
            Role::Timers => 2 * tasks + 3 * cpus + 2,
        }
    }

    pub(super) fn ahead(&self) -> core::ops::Range<usize> {
        self.actor(Role::Ahead(0))..self.actor(Role::Timers)
    }

    /// The actor that dispatches for a task: itself, or its runner while it is busy.
    pub(crate) fn acting(&self, state: &Hypothesis, task: usize) -> usize {
        let runner = self.actor(Role::Runner(task));
        match state.world.actors[runner].is_lost() {
            true => task,
            false => runner,
        }
    }

    /// The runner begins a run of this hctx.
    pub(crate) fn begin_aside(
        &self,
        state: &mut Hypothesis,
        task: usize,
        queue: QueueId,
        hctx: HctxId,
    ) {
        let runner = self.actor(Role::Runner(task));
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
    pub(crate) fn at(&self, state: &mut Hypothesis, index: usize) -> usize {
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
        let runner = self.actor(Role::Runner(task));
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
    pub(crate) fn go_on(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let task = self.stream.task[index];
        let time = self.time(state, self.stream.queue[index], event);
        let acting = self.acting(state, task);
        state.world.place(acting, event.cpu, time, self.hint(index));
        state.world.go(acting, Goal::Run);
    }
}
