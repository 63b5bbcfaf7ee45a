//! One CPU: three levels that interrupt each other, each a stack of frames, and its accounts.

use crate::plan::DeviceId;
use std::collections::VecDeque;

use crate::recorder::{SwitchCounts, TaskUsage, Usage, WorkItems};
use blkmq::drive::Stack;
use blkmq::env::Cpu;
use blkmq::path::{Frame, Next, RunQueuesPath};
use blkmq::queue::{BlkMq, LockId, LockKind};
use blkmq::request::{CpuId, QueueId, RequestId, Status};
use blkmq::time::SimTime;

use super::handed::Handed;
use super::ksoftirqd::Ksoftirqd;
use super::task::Ready;
use super::task::TaskId;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    Task,
    Softirq,
    Hardirq,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    User,
    System,
    Softirq,
    Irq,
}

/// Relation of a level to the lock it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    None,
    /// The next step of its path, after the effects of its last label.
    Wants(Next),
    /// It asks for the lock when its time comes.
    Ask(LockId),
    /// It tries the lock when its time comes.
    Try(LockId),
    /// Its next label must not come before its time.
    Due,
    /// It spins, or will from its own time on.
    Spin(LockId),
    /// It got the lock while it was interrupted.
    Got(LockId),
}

/// Most locks that one level holds.
pub(super) const HELD_MAX: usize = 4;

/// Locks that one level holds, with the time of each grant.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Held {
    count: usize,
    locks: [HeldLock; HELD_MAX],
}

/// A lock, its dense number, and when it was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldLock {
    pub(super) lock: LockId,
    pub(super) slot: u32,
    pub(super) since: SimTime,
}

impl Default for Held {
    fn default() -> Held {
        // Fills the unused places.
        let none = HeldLock {
            lock: LockId::new(QueueId(0), LockKind::Queue, 0),
            slot: 0,
            since: SimTime::ZERO,
        };
        Held {
            locks: [none; HELD_MAX],
            count: 0,
        }
    }
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(super) fn add(&mut self, held: HeldLock) {
        self.locks[self.count] = held;
        self.count += 1;
    }

    /// Removes one lock that the level has released. Panics if there is none.
    #[inline]
    pub(super) fn take_free(&mut self, mq: &BlkMq) -> HeldLock {
        self.count -= 1;
        if self.count == 0 {
            return self.locks[0];
        }
        self.take_one_of(mq)
    }

    #[cold]
    fn take_one_of(&mut self, mq: &BlkMq) -> HeldLock {
        let held = self.locks[..=self.count].iter();
        let index = held.rev().position(|held| mq.is_free(held.lock));
        let index = self.count - index.expect("a lock was released");
        let free = self.locks[index];
        self.locks[index] = self.locks[self.count];
        free
    }
}

/// One level of a CPU. The frames of the task level belong to the task.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct LevelState {
    pub(super) stack: Stack,
    pub(super) wait: Wait,
    pub(super) held: Held,
}

impl Default for LevelState {
    fn default() -> LevelState {
        LevelState {
            stack: Stack::default(),
            wait: Wait::None,
            held: Held::default(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Irq {
    Device(DeviceId, u32),
    /// A timer of the scheduler of this queue.
    Timer(QueueId, u8),
    /// A device's timer, whose function runs queues.
    Runs(RunQueuesPath),
}

/// Progress of the handler of a hard interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IrqStage {
    /// Not in a handler.
    None,
    /// It looks for completions of this device's vector.
    Look(DeviceId, u32),
    /// A timer of the scheduler of this queue.
    Timer(QueueId, u8),
    /// It runs queues for a device's timer.
    Runs(RunQueuesPath),
    /// It ends the batch, if there is one, and leaves.
    Leave,
}

/// A completion for the block softirq.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) queue: QueueId,
    pub(super) rq: RequestId,
    pub(super) status: Status,
    /// An interrupt was sent to the CPU for it.
    pub(super) announced: bool,
}

impl Ended {
    /// No interrupt was sent yet.
    pub(super) fn new(queue: QueueId, rq: RequestId, status: Status) -> Ended {
        Ended {
            queue,
            rq,
            status,
            announced: false,
        }
    }
}

/// A CPU.
///
/// In the order in which it is used: what every burst touches lies on few cache lines of the
/// computer that simulates.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct CpuState {
    pub(super) idle_since: Option<SimTime>,
    mode_ps: [u64; 4],
    /// Locks held with interrupts off.
    pub(super) irq_off: u32,
    /// Moves whenever a pending `Step` event becomes void.
    pub(super) generation: u32,
    pub(super) level: Level,
    /// An interrupt may wait to be taken.
    pub(super) interrupted: bool,
    /// A `Step` event is pending.
    pub(super) scheduled: bool,
    /// The sibling did real work when this CPU was last run.
    pub(super) shared: bool,
    in_softirq: bool,
    /// The other thread of its core.
    pub(super) sibling: Option<CpuId>,
    pub(super) ipi: bool,
    /// Tasks that wait for the CPU, the next one first.
    pub(super) runqueue: VecDeque<Ready>,
    pub(super) spin_ps: u64,
    pub(super) task_spin_ps: u64,
    pub(super) current: Option<TaskId>,
    irq: IrqStage,
    /// The CPU as paths see it; its time is never before the machine's when it runs.
    pub(super) env: Cpu,
    pub(super) levels: [LevelState; 3],
    pub(super) irqs: VecDeque<Irq>,
    pub(super) softirq_list: Handed<Ended>,
    /// Timers of schedulers for the softirq: queue and number.
    pub(super) softirq_timers: VecDeque<(QueueId, u8)>,
    /// Completions of the interrupt's batch, with their queues, last added first.
    pub(super) batch: Vec<(QueueId, RequestId)>,
    pub(super) slice_end: SimTime,
    idle_ps: u64,
    pub(super) switches: SwitchCounts,
    pub(super) items: WorkItems,
    pub(super) ksoftirqd: Ksoftirqd,
    /// The tick that runs a softirq which waits for a worker; never if none waits.
    pub(super) softirq_tick: SimTime,
    /// `mode_ps` when the running task came here, and its spinning since.
    task_from: TaskUsage,
}

impl CpuState {
    pub(super) fn new(id: CpuId, sibling: Option<CpuId>, room: usize) -> CpuState {
        CpuState {
            env: Cpu::new(id),
            level: Level::Task,
            interrupted: false,
            generation: 0,
            scheduled: false,
            levels: core::array::from_fn(|_| LevelState::default()),
            in_softirq: false,
            sibling,
            irq: IrqStage::None,
            irqs: VecDeque::with_capacity(room),
            ipi: false,
            softirq_list: Handed::with_capacity(room),
            softirq_timers: VecDeque::new(),
            batch: Vec::with_capacity(room),
            shared: false,
            irq_off: 0,
            current: None,
            runqueue: VecDeque::with_capacity(room),
            slice_end: SimTime::ZERO,
            idle_since: Some(SimTime::ZERO),
            mode_ps: [0; 4],
            spin_ps: 0,
            idle_ps: 0,
            switches: SwitchCounts::default(),
            items: WorkItems::default(),
            ksoftirqd: Ksoftirqd::Sleeps,
            softirq_tick: SimTime::NEVER,
            task_from: TaskUsage::default(),
            task_spin_ps: 0,
        }
    }

    /// No frame of the running level is active.
    pub(super) fn between_frames(&self) -> bool {
        let level = &self.levels[self.level as usize];
        level.stack.is_empty() && level.wait == Wait::None
    }

    /// No path has begun, and neither an interrupt nor `limit` keeps the task from its next step.
    pub(super) fn goes_on_between_frames(&self, limit: SimTime) -> bool {
        self.levels[Level::Task as usize].stack.is_empty()
            && !self.interrupted
            && self.ksoftirqd == Ksoftirqd::Sleeps
            && self.at() < limit
    }

    /// The current work of a hard interrupt's handler.
    pub(super) fn irq(&self) -> IrqStage {
        self.irq
    }

    /// The running level passes a whole plug to the driver (queue_rqs).
    pub(super) fn offers_whole_plug(&mut self) -> bool {
        let top = self.level_state().stack.last();
        matches!(top, Some(Frame::Plug(path)) if path.offers_whole())
    }

    pub(super) fn set_irq(&mut self, stage: IrqStage) {
        self.irq = stage;
        self.find_level();
    }

    /// The softirq runs, maybe below an interrupt.
    pub(super) fn in_softirq(&self) -> bool {
        self.in_softirq
    }

    /// The softirq begins or ends.
    pub(super) fn set_softirq(&mut self, runs: bool) {
        self.in_softirq = runs;
        self.find_level();
    }

    pub(super) fn softirq_raised(&self) -> bool {
        !self.softirq_list.is_empty() && self.softirq_list.is_due(self.at())
            || !self.softirq_timers.is_empty()
    }

    fn find_level(&mut self) {
        self.level = if self.irq != IrqStage::None {
            Level::Hardirq
        } else if self.in_softirq {
            Level::Softirq
        } else {
            Level::Task
        };
    }

    pub(super) fn level_state(&mut self) -> &mut LevelState {
        &mut self.levels[self.level as usize]
    }

    /// The next task in the run queue that was woken by `now`.
    pub(super) fn first_ready(&self) -> Option<TaskId> {
        let first = self.runqueue.front()?;
        let now = self.at();
        if first.at <= now {
            return Some(first.task);
        }
        let ready = self.runqueue.iter().find(|ready| ready.at <= now);
        ready.map(|ready| ready.task)
    }

    pub(super) fn take_ready(&mut self) -> Option<TaskId> {
        let first = self.runqueue.front()?;
        let now = self.at();
        let ready = if first.at <= now {
            self.runqueue.pop_front()
        } else {
            let index = self.runqueue.iter().position(|ready| ready.at <= now)?;
            self.runqueue.remove(index)
        };
        ready.map(|ready| ready.task)
    }

    pub(super) fn at(&self) -> SimTime {
        self.env.now()
    }

    /// Goes on from `now`, if that is later.
    pub(super) fn catch_up(&mut self, now: SimTime) {
        self.env.at_ps = self.env.at_ps.max(now.0 * 1000);
    }

    /// Spends time in the mode of the running level.
    pub(super) fn spend(&mut self, ps: u64, mode: Mode) {
        self.env.at_ps += ps;
        self.mode_ps[mode as usize] += ps;
    }

    /// Accounts time that has already passed on the clock.
    pub(super) fn count(&mut self, ps: u64, mode: Mode) {
        self.mode_ps[mode as usize] += ps;
    }

    /// Accounts spinning up to `now`, picoseconds, if the running level spins.
    pub(super) fn count_spin(&mut self, now: u64) {
        let level = self.level;
        if !matches!(self.levels[level as usize].wait, Wait::Spin(_)) {
            return;
        }
        let spun = now.saturating_sub(self.env.at_ps);
        self.spun(spun);
        self.env.at_ps += spun;
    }

    pub(super) fn spun(&mut self, ps: u64) {
        self.spin_ps += ps;
        if self.level == Level::Task {
            self.task_spin_ps += ps;
        }
    }

    /// Time by mode since measuring began.
    pub(super) fn usage(&self) -> Usage {
        let [user, system, softirq, irq] = self.mode_ps;
        Usage {
            user,
            system,
            softirq,
            irq,
            spin: self.spin_ps,
            idle: self.idle_ps,
            switches: self.switches,
            items: self.items,
        }
    }

    pub(super) fn reset_usage(&mut self) {
        self.mode_ps = [0; 4];
        (self.spin_ps, self.idle_ps) = (0, 0);
        self.switches = SwitchCounts::default();
        self.items = WorkItems::default();
        self.task_from = TaskUsage::default();
        self.task_spin_ps = 0;
    }

    /// Time of the running task since it came here.
    pub(super) fn task_usage(&self) -> TaskUsage {
        TaskUsage {
            user_ps: self.mode_ps[Mode::User as usize] - self.task_from.user_ps,
            system_ps: self.mode_ps[Mode::System as usize] - self.task_from.system_ps
                + self.task_spin_ps,
            switches: 0,
        }
    }

    /// A task begins to run here.
    pub(super) fn begin_task_usage(&mut self) {
        self.task_from = TaskUsage {
            user_ps: self.mode_ps[Mode::User as usize],
            system_ps: self.mode_ps[Mode::System as usize],
            switches: 0,
        };
        self.task_spin_ps = 0;
    }

    /// The mode that kernel work of the running level is accounted as.
    pub(super) fn kernel_mode(&self) -> Mode {
        match self.level {
            Level::Task => Mode::System,
            Level::Softirq => Mode::Softirq,
            Level::Hardirq => Mode::Irq,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    pub(super) fn go_idle(&mut self) {
        debug_assert!(self.idle_since.is_none(), "idle twice");
        self.idle_since = Some(self.at());
    }

    /// Accounts idle time up to `now`, if the CPU is idle.
    pub(super) fn account_idle(&mut self, now: SimTime) {
        if let Some(since) = self.idle_since.as_mut() {
            self.idle_ps += now.since(*since).0 * 1000;
            *since = now.max(*since);
        }
    }

    /// The hardware leaves an idle state.
    pub(super) fn wake_up(&mut self, ps: u64) {
        self.env.at_ps += ps;
        self.idle_ps += ps;
    }

    /// Leaves idle at `now`.
    pub(super) fn leave_idle(&mut self, now: SimTime) {
        self.account_idle(now);
        self.idle_since = None;
        self.catch_up(now);
    }
}
