//! Tasks and the CPU scheduler: one run queue per CPU, served in turn; workers first.
//!
//! Deviation(D4): a fair scheduler reduced to round robin with a fixed slice; a waking worker of
//! kblockd goes before tasks, any other task behind them.
//! Kernel: kernel/sched/fair.c, kernel/workqueue.c.

use blkmq::elevator::Hook;
use blkmq::env::Solo;
use blkmq::path::{Frame, HookFrame, Plug};
use blkmq::queue::RequestQueue;
use blkmq::request::{CpuId, IoContextId};
use blkmq::time::{Duration, SimTime};

use super::change::Writer;
use super::cpu::{Level, LevelState, Mode};
use super::fio::FioTask;
use super::replay::ReplayTask;
use super::work::{IoWorker, Kworker};
use super::{Event, Of, Simulator, class};
use crate::cost::Step;
use crate::recorder::SpanKind;
use crate::recorder::TaskUsage;

/// Time slice of a task that others wait behind.
pub(super) const SLICE: Duration = Duration::from_millis(3);

/// A task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct TaskId(pub(super) u32);

impl TaskId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A task that can run and does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) task: TaskId,
    /// Since when: its CPU may not be there yet.
    pub(super) at: SimTime,
}

/// A task's I/O context: each has its own.
pub(super) fn io_context_of(task: TaskId) -> IoContextId {
    IoContextId(task.0 + 1)
}

/// What a task does between frames.
#[derive(Clone, Debug)]
pub(super) enum Program {
    /// A thread of a fio job.
    Fio(Box<FioTask>),
    /// kblockd's worker of one CPU.
    Kworker(Kworker),
    /// io_uring's worker for submissions that would block.
    IoWorker(Box<IoWorker>),
    /// A captured process.
    Replay(Box<ReplayTask>),
    /// Changes schedulers.
    Writer(Writer),
}

/// Whether a task can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// On a CPU or in its run queue.
    Runnable,
    /// Waits for a wake-up.
    Sleeping,
    /// Over.
    Dead,
}

/// A task, running or not.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) program: Program,
    pub(super) state: State,
    /// Frames, while it is not on a CPU.
    pub(super) context: Option<LevelState>,
    pub(super) plug: Plug,
    /// CPU it runs or ran on last.
    pub(super) cpu: CpuId,
    /// CPUs it may run on.
    pub(super) allowed: Vec<CpuId>,
    /// Moves when a pending `Resume` becomes void.
    pub(super) generation: u32,
    /// When a wake-up came while it was still on its way to sleep; `NEVER`: none did.
    pub(super) woken: SimTime,
    /// Goes before others.
    pub(super) worker: bool,
    /// It is over: the next queue whose scheduler is to hear of it.
    pub(super) exits: Option<u8>,
    pub(super) usage: TaskUsage,
}

/// What a program wants next.
pub(super) enum Turn {
    /// It did something; go on with it.
    Again,
    /// It waits for a wake-up.
    Sleep,
    /// It pauses until then.
    Pause(SimTime),
    /// It is over.
    Exit,
}

impl Simulator {
    /// Makes a sleeping task runnable. `waker` is the CPU that does it, at its own time, but not
    /// before `from`.
    pub(super) fn wake(&mut self, task: TaskId, waker: CpuId, from: SimTime) {
        let at = self.at(waker).max(from);
        let t = &mut self.tasks[task.index()];
        match t.state {
            State::Dead => return,
            State::Runnable => {
                t.woken = t.woken.min(at);
                return;
            }
            State::Sleeping => t.state = State::Runnable,
        }
        t.generation = t.generation.wrapping_add(1);
        let target = self.choose_cpu(task);
        let worker = self.tasks[task.index()].worker;
        self.tasks[task.index()].cpu = target;
        let queue = &mut self.cpu_mut(target).runqueue;
        let ready = Ready { task, at };
        if worker {
            queue.push_front(ready);
        } else {
            queue.push_back(ready);
        }
        if target == waker && !self.cpu(waker).is_idle() {
            return;
        }
        if self.cpu(target).is_idle() {
            let remote = target != waker;
            let latency = if remote {
                self.core.costs.delay(Step::IpiLatency)
            } else {
                Duration::ZERO
            };
            self.core
                .events
                .push(at + latency, class::CPU, Event::Ipi(Of::cpu(target, 0)));
        }
    }

    /// The CPU it ran on if that is idle, else an idle one near it, else the one it ran on.
    fn choose_cpu(&self, task: TaskId) -> CpuId {
        let t = &self.tasks[task.index()];
        // idle_cpu(): the idle task is current, also while an interrupt runs on top of it.
        let free = |cpu: CpuId| {
            let state = self.cpu(cpu);
            state.current.is_none() && state.runqueue.is_empty()
        };
        if t.worker || free(t.cpu) || t.allowed.len() == 1 {
            return t.cpu;
        }
        let idle = t.allowed.iter().copied().filter(|&cpu| free(cpu));
        idle.min_by_key(|&cpu| (self.core.costs.distance(t.cpu, cpu), cpu))
            .unwrap_or(t.cpu)
    }

    /// Puts the next runnable task on the CPU. False if there is none.
    pub(super) fn switch_in(&mut self, cpu: CpuId) -> bool {
        let Some(task) = self.cpu_mut(cpu).take_ready() else {
            return false;
        };
        let t = &mut self.tasks[task.index()];
        t.usage.switches += 1;
        t.cpu = cpu;
        let context = t
            .context
            .take()
            .expect("a task that is off the CPU has its frames");
        let c = &mut self.cpus[usize::from(cpu.0)];
        let idle = core::mem::replace(&mut c.levels[Level::Task as usize], context);
        self.spare_levels.push(idle);
        c.env.plug = t.plug;
        c.env.task = blkmq::tags::WaiterId(task.0);
        c.current = Some(task);
        c.switches += 1;
        c.begin_task_usage();
        self.charge_as(cpu, Step::ContextSwitch, Mode::System);
        let c = &mut self.cpus[usize::from(cpu.0)];
        c.slice_end = c.at() + SLICE;
        self.span_begins(cpu, SpanKind::Task(task.0));
        true
    }

    /// Takes the running task off the CPU.
    pub(super) fn switch_out(&mut self, cpu: CpuId) -> TaskId {
        let c = &mut self.cpus[usize::from(cpu.0)];
        let task = c.current.take().expect("a task is running");
        self.span_ends(cpu, SpanKind::Task(task.0));
        let c = &mut self.cpus[usize::from(cpu.0)];
        let level = &mut c.levels[Level::Task as usize];
        let context = core::mem::replace(level, self.spare_levels.pop().unwrap_or_default());
        assert!(
            context.held.is_empty(),
            "a task left its CPU with a spin lock"
        );
        let t = &mut self.tasks[task.index()];
        t.plug = core::mem::take(&mut c.env.plug);
        t.usage.add(c.task_usage());
        t.context = Some(context);
        task
    }

    /// The running task goes to sleep, unless a wake-up came meanwhile.
    pub(super) fn sleep_current(&mut self, cpu: CpuId) {
        let task = self.cpu(cpu).current.expect("a task is running");
        let woken = core::mem::replace(&mut self.tasks[task.index()].woken, SimTime::NEVER);
        if woken <= self.cpu(cpu).at() {
            return;
        }
        if self.cpu(cpu).first_ready().is_none() {
            // To the idle task: __schedule() runs once more when somebody is to run again.
            self.charge_as(cpu, Step::ContextSwitch, Mode::System);
        }
        let task = self.switch_out(cpu);
        self.tasks[task.index()].state = State::Sleeping;
        if woken < SimTime::NEVER {
            self.wake(task, cpu, woken);
        }
    }

    /// Before a CPU goes idle: tasks of its run queue were woken by CPUs that are ahead, and an
    /// interrupt will come for the first of them.
    pub(super) fn await_ready(&mut self, cpu: CpuId) {
        let woken = self.cpu(cpu).runqueue.iter().map(|ready| ready.at).min();
        if let Some(woken) = woken {
            let at = woken + self.core.costs.delay(Step::IpiLatency);
            self.core
                .events
                .push(at, class::CPU, Event::Ipi(Of::cpu(cpu, 0)));
        }
    }

    /// The running task pauses until `until`.
    pub(super) fn pause_current(&mut self, cpu: CpuId, until: SimTime) {
        let task = self.cpu(cpu).current.expect("a task is running");
        self.tasks[task.index()].woken = SimTime::NEVER;
        let generation = self.tasks[task.index()].generation;
        self.sleep_current(cpu);
        let until = until.max(self.cpu(cpu).at());
        self.core.events.push(
            until.max(self.core.now),
            class::CPU,
            Event::Resume(Of::new(task.0, generation)),
        );
    }

    /// The running task is over.
    pub(super) fn exit_current(&mut self, cpu: CpuId) {
        if self.tell_exit(cpu) {
            return;
        }
        let task = self.switch_out(cpu);
        self.tasks[task.index()].state = State::Dead;
        if matches!(
            self.tasks[task.index()].program,
            Program::Fio(_) | Program::Replay(_)
        ) {
            self.running_tasks -= 1;
        }
    }

    /// exit_io_context(): the next scheduler that wants to hear of it does. False if none is left.
    fn tell_exit(&mut self, cpu: CpuId) -> bool {
        let task = self.cpu(cpu).current.expect("the running task is over");
        let from = self.tasks[task.index()].exits.unwrap_or(0);
        let wants = |queue: &&RequestQueue<Solo>| {
            let facts = queue.settings.scheduler.facts();
            facts.is_some_and(|facts| facts.hooks.exits)
        };
        let mut queues = self.mq.queues.iter().skip(usize::from(from));
        let Some(queue) = queues.find(wants).map(|queue| queue.id) else {
            return false;
        };
        self.tasks[task.index()].exits = Some(queue.0 + 1);
        let path = HookFrame::new(queue, Hook::Exits(io_context_of(task)));
        let level = self.cpu_mut(cpu).level_state();
        level.stack.push(Frame::Hook(path));
        true
    }

    /// Another task should run: its slice is over, or a worker waits.
    pub(super) fn should_yield(&self, cpu: CpuId) -> bool {
        let c = self.cpu(cpu);
        let Some(first) = c.first_ready() else {
            return false;
        };
        let running_worker = c
            .current
            .is_some_and(|task| self.tasks[task.index()].worker);
        c.at() >= c.slice_end || (self.tasks[first.index()].worker && !running_worker)
    }

    /// Puts the running task behind the others.
    pub(super) fn yield_current(&mut self, cpu: CpuId) {
        let task = self.switch_out(cpu);
        let c = self.cpu_mut(cpu);
        let at = c.at();
        c.runqueue.push_back(Ready { task, at });
    }
}
