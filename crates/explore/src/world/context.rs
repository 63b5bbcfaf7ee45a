//! One thread of control: a task, a work item, or the softirq that ends requests.

use core::hash::{Hash, Hasher};

use super::Slot;
use blkmq::drive::Stack;
use blkmq::env::Cpu;
use blkmq::path::{BioWork, Next};
use blkmq::queue::{LockId, UNPLUG_TIMER};
use blkmq::request::{CpuId, HctxId, QueueId};
use blkmq::waiter::WaiterId;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Role {
    Task(u8),
    /// kblockd: the run_work of an hctx of a queue.
    RunWork(QueueId, HctxId),
    /// kblockd: requeue_work of a queue.
    RequeueWork(QueueId),
    /// Sends the target of a mapped queue the events of its paths.
    Manager,
    /// A scheduler's timer by its number.
    Timer(QueueId, u8),
    /// kblockd: timeout_work of a queue.
    Timeout(QueueId),
    /// Block softirq: ends requests.
    Completer(u8),
    /// Writes to queue/scheduler of a queue; `submitted` counts the writes.
    Writer(QueueId),
    /// A worker of a bio-based device.
    BioWork(BioWork),
    /// Suspends a mapped device and resumes it; `submitted` counts both.
    Suspender,
}

impl Role {
    pub(crate) fn is_work(self) -> bool {
        matches!(
            self,
            Role::RunWork(..) | Role::RequeueWork(_) | Role::Timeout(_)
        )
    }
}

/// The next step of a context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase {
    /// It may start, if there is anything to start.
    Idle,
    Ready,
    /// It steps when this lock is free.
    Wants(LockId),
    Tries(LockId),
    /// It gets the device's answer to the request that it offered.
    Asks(Slot),
    /// It continues when it is woken.
    Parked,
    /// It continues when no context is in an RCU section of this queue.
    Grace(QueueId),
    /// It exchanges the scheduler of this queue for that one of the further ones.
    Exchange(QueueId, u8),
    Budget,
    PutBudget,
    /// After the end of a request, the driver starts the queues that it stopped and runs those that
    /// got no budget.
    Follows,
}

impl Phase {
    pub(crate) fn wanted(self) -> Next {
        match self {
            Phase::Idle | Phase::Ready | Phase::Follows | Phase::Exchange(..) => Next::Step,
            Phase::Grace(_) => Next::Grace,
            Phase::Wants(lock) => Next::Lock(lock),
            Phase::Tries(lock) => Next::TryLock(lock),
            Phase::Asks(slot) => Next::Submit(slot.rq),
            Phase::Parked => Next::Park,
            Phase::Budget => Next::Budget,
            // The drivers here ignore the token.
            Phase::PutBudget => Next::PutBudget(0),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) role: Role,
    pub(crate) phase: Phase,
    pub(crate) stack: Stack,
    pub(crate) cpu: Cpu,
    /// A wake-up has come since the context prepared to wait.
    pub(crate) woken: bool,
    /// Bios that a task has submitted.
    pub(crate) submitted: u32,
    /// Bios in the open plug.
    pub(crate) plugged: u32,
    /// The driver has work after this path.
    pub(crate) followed: bool,
}

impl Context {
    /// `number` identifies the context as owner of locks and in wait queues.
    pub(crate) fn new(role: Role, cpu: u16, number: u32) -> Context {
        let mut cpu = Cpu::new(CpuId(cpu));
        cpu.owner = number;
        cpu.task = WaiterId(number);
        Context {
            role,
            phase: Phase::Idle,
            stack: Stack::default(),
            cpu,
            woken: false,
            submitted: 0,
            plugged: 0,
            followed: false,
        }
    }

    /// The task has begun its first bio.
    pub(crate) fn has_started(&self) -> bool {
        self.submitted > 0
    }

    /// A plug is open and gets no further bio.
    pub(crate) fn plug_to_flush(&self) -> bool {
        self.cpu.plug.active
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    pub(crate) fn name(&self) -> String {
        match self.role {
            Role::Task(index) => format!("task {index}"),
            Role::RunWork(QueueId(0), hctx) => format!("run work {}", hctx.0),
            Role::RunWork(queue, hctx) => format!("run work {} of queue {queue}", hctx.0),
            Role::RequeueWork(QueueId(0)) => "requeue work".to_owned(),
            Role::RequeueWork(queue) => format!("requeue work of queue {queue}"),
            Role::Manager => "manager".to_owned(),
            Role::Timer(QueueId(0), UNPLUG_TIMER) => "unplug timer".to_owned(),
            Role::Timer(QueueId(0), timer) => format!("timer {timer}"),
            Role::Timer(queue, timer) => format!("timer {timer} of queue {queue}"),
            Role::Timeout(queue) => format!("timeout work of queue {queue}"),
            Role::Completer(index) => format!("completer {index}"),
            Role::BioWork(BioWork::Held) => "kmpathd".to_owned(),
            Role::BioWork(BioWork::Deferred) => "kdmflush".to_owned(),
            Role::Suspender => "suspender".to_owned(),
            Role::Writer(QueueId(0)) => "writer".to_owned(),
            Role::Writer(queue) => format!("writer of queue {queue}"),
        }
    }
}

impl Clone for Context {
    fn clone(&self) -> Context {
        Context {
            role: self.role,
            phase: self.phase,
            stack: self.stack.clone(),
            cpu: self.cpu.clone(),
            woken: self.woken,
            submitted: self.submitted,
            plugged: self.plugged,
            followed: self.followed,
        }
    }

    fn clone_from(&mut self, source: &Context) {
        self.role = source.role;
        self.phase = source.phase;
        self.stack.clone_from(&source.stack);
        self.cpu.clone_from(&source.cpu);
        self.woken = source.woken;
        self.submitted = source.submitted;
        self.plugged = source.plugged;
        self.followed = source.followed;
    }
}

/// The role does not change; the owners of locks are hashed with the locks.
impl Hash for Context {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.phase.hash(state);
        self.cpu.id.hash(state);
        self.stack.hash(state);
        self.cpu.answer.hash(state);
        self.cpu.plug.hash(state);
        self.woken.hash(state);
        self.submitted.hash(state);
        self.plugged.hash(state);
        self.followed.hash(state);
    }
}
