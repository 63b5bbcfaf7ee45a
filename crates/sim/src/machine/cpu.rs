//! One CPU: three levels that interrupt each other, each a stack of frames, and its accounts.

use std::collections::VecDeque;

use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::LockId;
use blkmq::request::{CpuId, RequestId, Status};
use blkmq::time::SimTime;

use super::task::TaskId;

/// What interrupts what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// A task.
    Task,
    /// The block softirq.
    Softirq,
    /// A hard interrupt.
    Hardirq,
}

/// What a CPU's time is counted as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// User space.
    User,
    /// Kernel, for a task.
    System,
    /// Softirq.
    Softirq,
    /// Hard interrupt.
    Irq,
}

/// Time by mode, picoseconds.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Usage {
    /// User space.
    pub user: u64,
    /// Kernel, for a task, without waiting for locks.
    pub system: u64,
    /// Softirq.
    pub softirq: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Waiting for a lock, in any mode.
    pub spin: u64,
    /// Idle.
    pub idle: u64,
    /// Context switches.
    pub switches: u64,
}

/// Time of one task.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct TaskUsage {
    /// User space, picoseconds.
    pub user_ps: u64,
    /// Kernel on its behalf, waiting for locks included, picoseconds.
    pub system_ps: u64,
    /// Times it was switched in.
    pub switches: u64,
}

impl TaskUsage {
    pub(super) fn add(&mut self, other: TaskUsage) {
        self.user_ps += other.user_ps;
        self.system_ps += other.system_ps;
        self.switches += other.switches;
    }
}

/// Frames nest this deep at most: a task's submission, the plug, a run, an inline completion, the
/// end of a flush sequence and the insertion it causes.
pub(super) const DEPTH: usize = 8;

/// Frames of one level.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    frames: [Option<Frame>; DEPTH],
    len: usize,
}

impl Stack {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, frame: Frame) {
        assert!(self.len < DEPTH, "frames nest deeper than any kernel path does");
        self.frames[self.len] = Some(frame);
        self.len += 1;
    }

    pub(super) fn pop(&mut self) {
        self.len -= 1;
        self.frames[self.len] = None;
    }

    pub(super) fn top(&mut self) -> &mut Frame {
        self.frames[self.len - 1].as_mut().expect("the stack is not empty")
    }
}

/// How a level stands to the lock it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// It runs.
    None,
    /// It will ask when its time comes.
    Ask(LockId),
    /// It spins.
    Spin(LockId, SimTime),
    /// It got the lock while an interrupt was being handled.
    Got(LockId),
}

/// Locks that one level holds at most.
pub(super) const HELD_MAX: usize = 4;

/// One level of a CPU. The frames of the task level belong to the task.
#[derive(Clone, Debug)]
pub(super) struct LevelState {
    pub(super) stack: Stack,
    pub(super) wait: Wait,
    pub(super) held: [Option<(LockId, SimTime)>; HELD_MAX],
    pub(super) held_count: usize,
}

impl Default for LevelState {
    fn default() -> LevelState {
        LevelState {
            stack: Stack::default(),
            wait: Wait::None,
            held: [None; HELD_MAX],
            held_count: 0,
        }
    }
}

/// Handler of a hard interrupt under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IrqStage {
    /// Not in a handler.
    None,
    /// Looking for completions of this vector.
    Look(u32),
    /// Ending the batch.
    Batch,
    /// Leaving.
    Exit,
}

/// A CPU.
#[derive(Clone, Debug)]
pub(super) struct CpuState {
    pub(super) env: Cpu,
    /// Fraction of a nanosecond that its time is ahead of `at`.
    pub(super) carry_ps: u64,
    /// Its own time: never behind the machine's when it runs.
    pub(super) at: SimTime,
    /// Moves whenever a pending `Step` event becomes void.
    pub(super) generation: u32,
    /// A `Step` event is pending.
    pub(super) scheduled: bool,
    pub(super) levels: [LevelState; 3],
    pub(super) in_softirq: bool,
    pub(super) irq: IrqStage,
    /// Interrupts that wait to be taken.
    pub(super) irqs: VecDeque<u32>,
    /// An inter-processor interrupt waits to be taken.
    pub(super) ipi: bool,
    /// Completions for the block softirq, and whether it is raised.
    pub(super) softirq_list: VecDeque<(RequestId, Status)>,
    pub(super) softirq_raised: bool,
    /// Completions of the interrupt's batch, last added first.
    pub(super) batch: Vec<RequestId>,
    /// Locks held with interrupts off.
    pub(super) irq_off: u32,
    pub(super) current: Option<TaskId>,
    pub(super) runqueue: VecDeque<TaskId>,
    pub(super) slice_end: SimTime,
    pub(super) idle_since: Option<SimTime>,
    pub(super) usage: Usage,
    /// Time of the running task since it came here.
    pub(super) task_usage: TaskUsage,
}

impl CpuState {
    pub(super) fn new(id: CpuId, room: usize) -> CpuState {
        CpuState {
            env: Cpu::new(id),
            carry_ps: 0,
            at: SimTime::ZERO,
            generation: 0,
            scheduled: false,
            levels: core::array::from_fn(|_| LevelState::default()),
            in_softirq: false,
            irq: IrqStage::None,
            irqs: VecDeque::with_capacity(room),
            ipi: false,
            softirq_list: VecDeque::with_capacity(room),
            softirq_raised: false,
            batch: Vec::with_capacity(room),
            irq_off: 0,
            current: None,
            runqueue: VecDeque::with_capacity(room),
            slice_end: SimTime::ZERO,
            idle_since: Some(SimTime::ZERO),
            usage: Usage::default(),
            task_usage: TaskUsage::default(),
        }
    }

    /// The level that runs.
    pub(super) fn level(&self) -> Level {
        if self.irq != IrqStage::None {
            Level::Hardirq
        } else if self.in_softirq {
            Level::Softirq
        } else {
            Level::Task
        }
    }

    pub(super) fn level_state(&mut self) -> &mut LevelState {
        let level = self.level() as usize;
        &mut self.levels[level]
    }

    /// Spends time in the mode of the running level.
    pub(super) fn spend(&mut self, ps: u64, mode: Mode) {
        let total = self.carry_ps + ps;
        self.at.0 += total / 1000;
        self.carry_ps = total % 1000;
        match mode {
            Mode::User => {
                self.usage.user += ps;
                self.task_usage.user_ps += ps;
            }
            Mode::System => {
                self.usage.system += ps;
                self.task_usage.system_ps += ps;
            }
            Mode::Softirq => self.usage.softirq += ps,
            Mode::Irq => self.usage.irq += ps,
        }
    }

    /// The mode that kernel work of the running level counts as.
    pub(super) fn kernel_mode(&self) -> Mode {
        match self.level() {
            Level::Task => Mode::System,
            Level::Softirq => Mode::Softirq,
            Level::Hardirq => Mode::Irq,
        }
    }

    /// Nothing runs here.
    pub(super) fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    pub(super) fn go_idle(&mut self) {
        debug_assert!(self.idle_since.is_none(), "idle twice");
        self.idle_since = Some(self.at);
    }

    /// Counts idle time up to `now` and goes on being idle, if it is.
    pub(super) fn account_idle(&mut self, now: SimTime) {
        if let Some(since) = self.idle_since.as_mut() {
            self.usage.idle += now.since(*since).0 * 1000;
            *since = now.max(*since);
        }
    }

    /// Leaves idle at `now`.
    pub(super) fn leave_idle(&mut self, now: SimTime) {
        self.account_idle(now);
        self.idle_since = None;
        self.at = self.at.max(now);
    }
}
