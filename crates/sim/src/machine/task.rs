//! One task: its program, and its frames while it does not run.
//!
//! Scheduling: `tasks.rs`. Programs: `fio.rs`, `work.rs`, `mapper.rs`, `bio_workers.rs`,
//! `replay.rs`, `change.rs`.

use blkmq::path::Plug;
use blkmq::request::{CpuId, IoContextId};
use blkmq::time::SimTime;

use super::change::Writer;
use super::cpu::LevelState;
use super::dmsetup::Dmsetup;
use super::fio::FioTask;
use super::replay::ReplayTask;
use super::work::{IoWorker, Kworker};
use crate::plan::ThreadPlan;
use crate::recorder::{SwitchTo, TaskUsage};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct TaskId(pub(super) u32);

impl TaskId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) task: TaskId,
    /// When it was woken: its CPU may not be there yet.
    pub(super) at: SimTime,
}

/// Process id of the first task, in traces and as schedulers know it.
pub const FIRST_PID: u32 = 1000;

/// A task's process id.
pub(super) fn pid_of(task: TaskId) -> u32 {
    FIRST_PID + task.0
}

/// The task whose I/O context a thread of the plan has, the first tasks being the threads: its own,
/// or the first clone of its job.
pub(super) fn context_task(thread: usize, plan: &ThreadPlan) -> TaskId {
    let first = thread - usize::from(plan.clone);
    TaskId(if plan.shares_context { first } else { thread } as u32)
}

/// A task's I/O context, unless it has that of another one.
pub(super) fn io_context_of(task: TaskId) -> IoContextId {
    IoContextId(task.0 + 1)
}

/// The program that a task runs between frames.
#[derive(Clone, Debug)]
pub(super) enum Program {
    /// A thread of a fio job; absent while it takes its turn.
    Fio(Option<Box<FioTask>>),
    Kworker(Kworker),
    /// io_uring's worker for submissions that would block.
    IoWorker(Box<IoWorker>),
    Replay(Box<ReplayTask>),
    Writer(Writer),
    /// Suspends mapped devices.
    Dmsetup(Box<Dmsetup>),
    /// Maps requests of a mapped device, the one with this number.
    Mapper(usize),
    /// Executes a work item of a bio-based device, the one with this number.
    BioWorker(usize),
}

/// Whether a task can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// On a CPU or in its run queue.
    Runnable,
    /// Waits for a wake-up.
    Sleeping,
    Dead,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) program: Program,
    pub(super) state: State,
    /// Frames, while it is not on a CPU.
    pub(super) context: Option<LevelState>,
    pub(super) plug: Plug,
    /// CPU it runs or ran on last.
    pub(super) cpu: CpuId,
    /// CPU it had run on when it last found it busy, at first that of the forking task
    /// (recent_used_cpu).
    pub(super) recent: CpuId,
    /// CPUs it may run on.
    pub(super) allowed: Vec<CpuId>,
    /// Moves when a pending `Resume` becomes void.
    pub(super) generation: u32,
    /// When a wake-up came while it was on its way to sleep; `NEVER`: none came.
    pub(super) woken: SimTime,
    /// Goes before others.
    pub(super) worker: bool,
    /// The task whose I/O context it has, if not its own.
    pub(super) context_of: Option<TaskId>,
    /// It has ended: the next queue whose scheduler is to release it.
    pub(super) exits: Option<u16>,
    pub(super) usage: TaskUsage,
}

/// The request of a program at the end of its step.
pub(super) enum Turn {
    /// It did something; continue with it.
    Again,
    /// It waits for a wake-up.
    Sleep,
    /// It pauses until then.
    Pause(SimTime),
    Exit,
}

impl Task {
    /// How a switch to it is counted.
    pub(super) fn kind(&self) -> SwitchTo {
        match &self.program {
            Program::Kworker(_) | Program::BioWorker(_) => SwitchTo::Kworker,
            Program::Mapper(_) => SwitchTo::Kdmwork,
            Program::Fio(_)
            | Program::IoWorker(_)
            | Program::Replay(_)
            | Program::Writer(_)
            | Program::Dmsetup(_) => SwitchTo::Task,
        }
    }

    /// Asleep, and last on the first of the CPUs that it may run on.
    pub(super) fn asleep(program: Program, allowed: Vec<CpuId>) -> Task {
        Task {
            worker: matches!(program, Program::Kworker(_)),
            program,
            state: State::Sleeping,
            context: Some(LevelState::default()),
            plug: Plug::default(),
            cpu: allowed[0],
            recent: allowed[0],
            allowed,
            generation: 0,
            woken: SimTime::NEVER,
            context_of: None,
            exits: None,
            usage: TaskUsage::default(),
        }
    }
}
