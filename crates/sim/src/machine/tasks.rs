//! Tasks and the CPU scheduler: one run queue per CPU, served in turn; workers first.
//!
//! Knows no queue, except that an ending task leaves its scheduler. The work of a task: its
//! program.
//!
//! Deviation(D4): a fair scheduler reduced to round robin with a fixed slice; a waking worker of
//! kblockd goes before tasks, any other task after them. Kernel: kernel/sched/fair.c,
//! kernel/workqueue.c.

use core::ops::{Index, IndexMut};

mod idle;

use blkmq::elevator::Hook;
use blkmq::path::{Frame, HookFrame};
use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};

use super::cpu::{Level, LevelState, Mode};
use super::cpus::Cpus;
use super::event::{Event, Of, class};
use idle::IdleCpus;

use super::task::{Program, Ready, State, Task, TaskId, io_context_of, pid_of};
use crate::cost::Step;
use crate::profile::Distance;
use crate::recorder::{SpanKind, TaskUsage};

/// Time slice of a task while others are in its run queue.
pub(super) const SLICE: Duration = Duration::from_millis(3);

/// All tasks. The index is the task's number.
#[derive(Debug)]
pub(super) struct Tasks {
    all: Vec<Task>,
    /// CPUs without a task.
    idle: IdleCpus,
    /// Idle levels, which replace a task's while it is off its CPU. At most one for each CPU.
    spare_levels: Vec<LevelState>,
    /// Threads and captured processes that were started and have not ended.
    pub(super) running: usize,
}

impl Index<TaskId> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, task: TaskId) -> &Task {
        &self.all[task.index()]
    }
}

impl IndexMut<TaskId> for Tasks {
    #[inline]
    fn index_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.all[task.index()]
    }
}

impl Tasks {
    /// All asleep, on `cpus` CPUs.
    pub(super) fn new(all: Vec<Task>, cpus: u16) -> Tasks {
        Tasks {
            all,
            idle: IdleCpus::all(cpus),
            spare_levels: Vec::with_capacity(usize::from(cpus)),
            running: 0,
        }
    }

    /// Adds one, asleep. Returns its number.
    pub(super) fn add(&mut self, task: Task) -> TaskId {
        let id = TaskId(self.all.len() as u32);
        self.all.push(task);
        id
    }

    pub(super) fn count(&self) -> u32 {
        self.all.len() as u32
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        (0..).map(TaskId).zip(&self.all)
    }

    /// A sleeping task sleeps until `at`, unless it is woken before.
    pub(super) fn sleep_until(&self, cpus: &mut Cpus, task: TaskId, at: SimTime) {
        let whom = Of::new(task.0, self[task].generation);
        cpus.core.events.push(at, class::CPU, Event::Resume(whom));
    }

    /// The end of a pause of this task that an earlier wake-up has ended.
    pub(super) fn is_void(&self, task: TaskId, generation: u32) -> bool {
        self[task].generation != generation
    }

    pub(super) fn pause_over(&mut self, cpus: &mut Cpus, task: TaskId, generation: u32) {
        if !self.is_void(task, generation) {
            let cpu = self[task].cpu;
            self.wake(cpus, task, cpu, SimTime::ZERO);
        }
    }

    /// Makes a sleeping task runnable. `waker` is the CPU that does it, at its own time, but not
    /// before `from`.
    pub(super) fn wake(&mut self, cpus: &mut Cpus, task: TaskId, waker: CpuId, from: SimTime) {
        let at = cpus.at(waker).max(from);
        let t = &mut self[task];
        match t.state {
            State::Dead => return,
            State::Runnable => {
                t.woken = t.woken.min(at);
                return;
            }
            State::Sleeping => t.state = State::Runnable,
        }
        t.generation = t.generation.wrapping_add(1);
        let target = self.choose_cpu(cpus, task);
        let worker = self[task].worker;
        self[task].cpu = target;
        self.idle.set(target, false);
        let queue = &mut cpus[target].runqueue;
        let ready = Ready { task, at };
        if worker {
            queue.push_front(ready);
        } else {
            queue.push_back(ready);
        }
        if target == waker && !cpus[waker].is_idle() {
            return;
        }
        if cpus[target].is_idle() {
            let remote = target != waker;
            let latency = if remote {
                cpus.core.costs.delay(Step::IpiLatency)
            } else {
                Duration::ZERO
            };
            cpus.core
                .events
                .push(at + latency, class::CPU, Event::Ipi(Of::cpu(target, 0)));
        }
    }

    /// The same for a worker that is to run on the CPU that wakes it, unless it is awake.
    pub(super) fn wake_on(&mut self, cpus: &mut Cpus, task: TaskId, waker: CpuId, from: SimTime) {
        if self[task].state == State::Sleeping {
            self[task].cpu = waker;
        }
        self.wake(cpus, task, waker, from);
    }

    /// The CPU it ran on if that is idle, or the one on which it was before
    /// (select_idle_sibling()); else an idle one that shares its last-level cache: of an idle core
    /// if there is one, else the sibling of the CPU it ran on, the next after it first; else one
    /// farther away, which would pull a waiting task when it goes idle (sched_balance_newidle());
    /// else the one it ran on. Kernel: kernel/sched/fair.c (6.12.117).
    fn choose_cpu(&mut self, cpus: &Cpus, task: TaskId) -> CpuId {
        // idle_cpu(): the idle task is current, also while an interrupt runs on top of it.
        let idle = &self.idle;
        let free = |cpu: CpuId| idle.has(cpu);
        debug_assert!(
            (0..cpus.len() as u16).map(CpuId).all(|cpu| {
                let state = &cpus[cpu];
                free(cpu) == (state.current.is_none() && state.runqueue.is_empty())
            }),
            "the set has the idle CPUs"
        );
        let t = &mut self.all[task.index()];
        let before = t.cpu;
        let bound = t.worker || matches!(t.program, Program::BioWorker(_));
        if bound || free(before) || t.allowed.len() == 1 {
            return before;
        }
        let costs = &cpus.core.costs;
        let recent = core::mem::replace(&mut t.recent, before);
        let shares_cache = |cpu: CpuId| costs.distance(before, cpu) <= Distance::Die;
        let allowed = |cpu: &CpuId| t.allowed.binary_search(cpu).is_ok();
        let may = |cpu: CpuId| free(cpu) && allowed(&cpu);
        if recent != before && shares_cache(recent) && may(recent) {
            return recent;
        }
        let alone = |cpu: CpuId| cpus[cpu].sibling.is_none_or(free);
        if let Some(sibling) = cpus[before].sibling.filter(|&cpu| may(cpu)) {
            // has_idle_cores, of all CPUs of the cache, also those that the task may not use.
            let near = costs.cpus_within(before, Distance::Die);
            if !near.flat_map(|cpus| idle.within(cpus)).any(alone) {
                return sibling;
            }
        }
        for far in [Distance::Die, Distance::Socket, Distance::Machine] {
            let near = costs.cpus_within(before, far);
            let after = near.clone().map(|of| of.start.max(before.0 + 1)..of.end);
            let others = near.map(|of| of.start..of.end.min(before.0));
            let near = after.chain(others).flat_map(|cpus| idle.within(cpus));
            let mut near = near.filter(allowed);
            if let Some(first) = near.next() {
                let mut all = core::iter::once(first).chain(near);
                return all.find(|&cpu| alone(cpu)).unwrap_or(first);
            }
        }
        before
    }

    /// Puts the next runnable task on the CPU. False if there is none.
    pub(super) fn switch_in(&mut self, cpus: &mut Cpus, cpu: CpuId) -> bool {
        let Some(task) = cpus[cpu].take_ready() else {
            return false;
        };
        let t = &mut self.all[task.index()];
        t.usage.switches += 1;
        t.cpu = cpu;
        let to = t.kind();
        let context = t
            .context
            .take()
            .expect("a task that is off the CPU has its frames");
        let c = &mut cpus[cpu];
        let idle = core::mem::replace(&mut c.levels[Level::Task as usize], context);
        self.spare_levels.push(idle);
        c.env.plug = t.plug;
        c.env.task = blkmq::waiter::WaiterId(task.0);
        c.env.kworker = if t.worker {
            pid_of(task).cast_signed()
        } else {
            0
        };
        c.current = Some(task);
        c.begin_task_usage();
        cpus.charge_as(cpu, Step::ContextSwitch, Mode::System);
        let c = &mut cpus[cpu];
        c.slice_end = c.at() + SLICE;
        cpus.span_begins(cpu, SpanKind::Task(task.0));
        cpus.count_switch(cpu, to);
        true
    }

    /// Takes the running task off the CPU.
    pub(super) fn switch_out(&mut self, cpus: &mut Cpus, cpu: CpuId) -> TaskId {
        let c = &mut cpus[cpu];
        let task = c.current.take().expect("a task is running");
        self.idle.set(cpu, c.runqueue.is_empty());
        cpus.span_ends(cpu, SpanKind::Task(task.0));
        let c = &mut cpus[cpu];
        let level = &mut c.levels[Level::Task as usize];
        let context = core::mem::replace(level, self.spare_levels.pop().unwrap_or_default());
        assert!(
            context.held.is_empty(),
            "a task left its CPU with a spin lock"
        );
        let t = &mut self[task];
        t.plug = core::mem::take(&mut c.env.plug);
        c.env.kworker = 0;
        t.usage.add(c.task_usage());
        t.context = Some(context);
        task
    }

    /// The running task goes to sleep, unless a wake-up came meanwhile.
    pub(super) fn sleep_current(&mut self, cpus: &mut Cpus, cpu: CpuId) {
        let task = cpus[cpu].current.expect("a task is running");
        let woken = core::mem::replace(&mut self[task].woken, SimTime::NEVER);
        if woken <= cpus[cpu].at() {
            return;
        }
        cpus.leave_to_idle(cpu);
        let task = self.switch_out(cpus, cpu);
        self[task].state = State::Sleeping;
        if woken < SimTime::NEVER {
            self.wake(cpus, task, cpu, woken);
        }
    }

    /// The running task pauses until `until`.
    pub(super) fn pause_current(&mut self, cpus: &mut Cpus, cpu: CpuId, until: SimTime) {
        let task = cpus[cpu].current.expect("a task is running");
        self[task].woken = SimTime::NEVER;
        let generation = self[task].generation;
        self.sleep_current(cpus, cpu);
        let until = until.max(cpus[cpu].at());
        cpus.core.events.push(
            until.max(cpus.core.now),
            class::CPU,
            Event::Resume(Of::new(task.0, generation)),
        );
    }

    /// The running task ends.
    pub(super) fn exit_current(&mut self, cpus: &mut Cpus, mq: &BlkMq, cpu: CpuId) {
        if self.begin_exit(cpus, mq, cpu) {
            return;
        }
        cpus.leave_to_idle(cpu);
        let task = self.switch_out(cpus, cpu);
        self[task].state = State::Dead;
        let program = &self[task].program;
        if matches!(program, Program::Fio(_) | Program::Replay(_)) {
            self.running -= 1;
        }
    }

    /// exit_io_context(): the next scheduler that keeps state for the task is called. False if none
    /// is left.
    fn begin_exit(&mut self, cpus: &mut Cpus, mq: &BlkMq, cpu: CpuId) -> bool {
        let task = cpus[cpu].current.expect("the running task is over");
        let from = self[task].exits.unwrap_or(0);
        let wants = |queue: &&RequestQueue| {
            let info = queue.settings.scheduler.info();
            info.is_some_and(|info| info.hooks.exits)
        };
        let mut queues = mq.queues.iter().skip(usize::from(from));
        let Some(queue) = queues.find(wants).map(|queue| queue.id) else {
            return false;
        };
        let context = self[task].context_of.unwrap_or(task);
        let shared = |(other, of): (TaskId, &Task)| {
            other != task && of.state != State::Dead && of.context_of.unwrap_or(other) == context
        };
        if self.iter().any(shared) {
            return false;
        }
        self[task].exits = Some(queue.0 + 1);
        let path = HookFrame::new(queue, Hook::Exits(io_context_of(context)));
        cpus.push(cpu, Frame::Hook(path));
        true
    }

    /// Another task should run: its slice is over, or a worker waits.
    pub(super) fn should_yield(&self, cpus: &Cpus, cpu: CpuId) -> bool {
        let c = &cpus[cpu];
        let Some(first) = c.first_ready() else {
            return false;
        };
        if !c.levels[Level::Task as usize].held.is_empty() {
            // spin_lock() disables preemption.
            return false;
        }
        let running_worker = c.current.is_some_and(|task| self[task].worker);
        c.at() >= c.slice_end || (self[first].worker && !running_worker)
    }

    /// Moves the running task to the end of the run queue.
    pub(super) fn yield_current(&mut self, cpus: &mut Cpus, cpu: CpuId) {
        let task = self.switch_out(cpus, cpu);
        self.idle.set(cpu, false);
        let c = &mut cpus[cpu];
        let at = c.at();
        c.runqueue.push_back(Ready { task, at });
    }

    pub(super) fn reset_usage(&mut self) {
        for task in &mut self.all {
            task.usage = TaskUsage::default();
        }
    }

    /// Time of each fio thread since measuring began, by its index in the plan.
    pub(super) fn threads_usage(&self, cpus: &Cpus, threads: usize) -> Vec<TaskUsage> {
        let mut usage = vec![TaskUsage::default(); threads];
        for task in &self.all {
            if let Program::Fio(Some(fio)) = &task.program {
                usage[fio.thread].add(task.usage);
            }
        }
        for cpu in cpus.iter() {
            let Some(task) = cpu.current else { continue };
            if let Program::Fio(Some(fio)) = &self[task].program {
                usage[fio.thread].add(cpu.task_usage());
            }
        }
        usage
    }

    /// Tasks run, and all of them poll.
    pub(super) fn only_poll(&self) -> bool {
        let mut runs = self.all.iter().filter(|task| task.state == State::Runnable);
        let mut any = false;
        runs.all(|task| {
            any = true;
            matches!(&task.program, Program::Fio(Some(fio)) if fio.polls())
        }) && any
    }

    /// Name of a task, by its number in a timeline.
    pub(super) fn name(&self, task: TaskId) -> String {
        let (cpu, TaskId(number)) = (self[task].cpu.0, task);
        match &self[task].program {
            Program::Fio(Some(fio)) => format!("{} {}", fio.command(), fio.thread),
            Program::Fio(None) => format!("fio task {number}"),
            Program::Kworker(_) => format!("kworker/{cpu}:1H"),
            Program::IoWorker(_) => format!("iou-wrk {number}"),
            Program::Replay(_) => format!("process {number}"),
            Program::Writer(_) => format!("writer {number}"),
            Program::Dmsetup(_) => format!("dmsetup {number}"),
            Program::Mapper(_) => format!("kdmwork {number}"),
            Program::BioWorker(_) => format!("kworker/{cpu}:{number}"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
