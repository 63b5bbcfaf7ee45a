//! One task: its program, and what it is in when it does not run.
//!
//! Who runs when: `tasks.rs`. Programs: `fio.rs`, `work.rs`, `mapper.rs`, `bio_workers.rs`,
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

/// A task that can run and does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) task: TaskId,
    /// Since when: its CPU may not be there yet.
    pub(super) at: SimTime,
}

/// Process id of the first task, in traces and as schedulers know it.
pub const FIRST_PID: u32 = 1000;

/// A task's process id.
pub(super) fn pid_of(task: TaskId) -> u32 {
    FIRST_PID + task.0
}

/// Whose I/O context a thread of the plan has, the first tasks being the threads: its own, or that
/// of the first clone of its job.
pub(super) fn context_task(thread: usize, plan: &ThreadPlan) -> TaskId {
    let first = thread - usize::from(plan.clone);
    TaskId(if plan.shares_context { first } else { thread } as u32)
}

/// A task's I/O context, unless it has that of another one.
pub(super) fn io_context_of(task: TaskId) -> IoContextId {
    IoContextId(task.0 + 1)
}

/// What a task does between frames.
#[derive(Clone, Debug)]
pub(super) enum Program {
    /// A thread of a fio job; not there while it takes its turn.
    Fio(Option<Box<FioTask>>),
    /// kblockd's worker of one CPU.
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
    /// CPU it had run on when it last found it busy, at first that of who forked (recent_used_cpu).
    pub(super) recent: CpuId,
    /// CPUs it may run on.
    pub(super) allowed: Vec<CpuId>,
    /// Moves when a pending `Resume` becomes void.
    pub(super) generation: u32,
    /// When a wake-up came while it was still on its way to sleep; `NEVER`: none did.
    pub(super) woken: SimTime,
    /// Goes before others.
    pub(super) worker: bool,
    /// Whose I/O context it has, if not its own.
    pub(super) context_of: Option<TaskId>,
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
    Exit,
}

impl Task {
    /// What a switch to it is counted as.
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
