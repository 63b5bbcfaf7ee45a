//! The simulated machine: CPUs that step the block layer's paths, locks that arbitrate, tasks,
//! kernel workers, interrupts and devices, all driven by one event queue.
//!
//! Read first: docs/architecture.md. Not here: what the block layer does (crate `blkmq`), what a
//! device does (`device/`), what things cost (`cost.rs`, `profiles/`).

mod arbiter;
mod bound;
mod change;
mod cpu;
mod effects;
mod fio;
mod handed;
mod irq;
mod lines;
mod numbers;
#[cfg(test)]
mod order;
mod progress;
mod replay;
mod setup;
mod stall;
mod step;
mod stretch;
mod task;
mod timer;
mod watch;
mod work;

pub use setup::queue_config;
pub use stall::{Below, Stall, StalledRequest, Why};

use blkmq::drive::Follower;
use blkmq::env::{Solo, TracePoint};
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use crate::cost::{CostModel, Spent};
use crate::device::{Actions, Charges, Device};
use crate::event_queue::EventQueue;
use crate::plan::{DeviceId, Plan};
use crate::recorder::Recorder;
use crate::rng::Rng;
use arbiter::Arbiter;
use cpu::{CpuState, Irq, LevelState};
use lines::OuterLines;
use numbers::Numbers;
use progress::Progress;
use task::{Task, TaskId};
use timer::Timers;
use work::KernelWork;

/// How far a CPU may run ahead of the others between two points of synchronisation.
///
/// Locks, device answers, interrupts and wake-ups happen in exact order of time. Other words are
/// accessed at most this much too early as others see it: every run is still an interleaving of
/// whole labels. See docs/decisions/0002.
const RUN_AHEAD: Duration = Duration(500);

/// What happens at an instant. A tag and one number, so that an event is handed on in two registers
/// (docs/decisions/0006).
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A CPU goes on; void if its generation moved.
    Step(Of),
    /// The lock of this number is free for its first waiter.
    Grant(u64),
    /// A device's timer: its mark, and the device's number in bits that no mark uses.
    Timer(u64),
    /// A hard interrupt: device and CPU, and vector.
    Interrupt(Of),
    /// An interrupt from another CPU: softirq work or a task to run.
    Ipi(Of),
    /// The delay of the work item of a queue's hctx is over; void if its generation moved.
    Work(Of),
    /// A timer of a queue's scheduler expires; void if its generation moved.
    Elevator(Of),
    /// The ramp is over.
    Measure,
    /// A task's pause is over; void if its generation moved.
    Resume(Of),
}

/// Whom an event is for, and a generation or vector.
#[derive(Clone, Copy, Debug)]
struct Of(u64);

impl Of {
    fn new(whom: u32, detail: u32) -> Of {
        Of(u64::from(whom) << 32 | u64::from(detail))
    }

    fn cpu(cpu: CpuId, detail: u32) -> Of {
        Of::new(u32::from(cpu.0), detail)
    }

    /// A part of something by its number: a CPU that a device interrupts, an hctx of a queue.
    fn part(of: u8, part: u16, detail: u32) -> Of {
        Of::new(u32::from(of) << 16 | u32::from(part), detail)
    }

    /// Of what it is a part: see [`Of::part`].
    fn part_of(self) -> u8 {
        (self.0 >> 48) as u8
    }

    fn whom(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn detail(self) -> u32 {
        self.0 as u32
    }

    /// The CPU that it is for.
    fn on(self) -> CpuId {
        CpuId(self.whom() as u16)
    }
}

/// Classes of events of one instant, earlier first.
mod class {
    pub(super) const GRANT: u8 = 0;
    pub(super) const DEVICE: u8 = 1;
    pub(super) const INTERRUPT: u8 = 2;
    pub(super) const TIMER: u8 = 3;
    pub(super) const CPU: u8 = 4;
}

/// What every stretch of labels works with.
#[derive(Debug)]
struct Core {
    now: SimTime,
    events: EventQueue<Event>,
    arbiter: Arbiter,
    costs: CostModel,
    /// Where CPU time went.
    spent: Spent,
    /// Who looks on, if anybody does.
    follower: Option<Box<dyn Follower<Solo>>>,
}

/// A device under its queue.
#[derive(Debug)]
struct Attached {
    device: Box<dyn Device>,
    /// The latest time it was called at; CPUs that run ahead do not take it back.
    now: SimTime,
    /// What its driver's work costs.
    charges: Charges,
    /// What it gets is with the devices below it.
    stacked: bool,
}

/// A run under way.
#[derive(Debug)]
pub struct Simulator {
    core: Core,
    mq: BlkMq<Solo>,
    /// Which disk, queue and device belong together.
    numbers: Numbers,
    cpus: Vec<CpuState>,
    /// The other thread of each CPU's core.
    siblings: Vec<Option<CpuId>>,
    tasks: Vec<Task>,
    work: KernelWork,
    timers: Timers,
    /// By number.
    devices: Vec<Attached>,
    /// Buffers for devices' actions; calls nest.
    spare_actions: Vec<Actions>,
    /// Idle levels, put in place of a task's while the task is off its CPU. One a CPU at most.
    spare_levels: Vec<LevelState>,
    /// Cache lines beside the block layer.
    outer: OuterLines,
    recorder: Recorder,
    plan: Plan,
    running_tasks: usize,
    phase: u16,
    progress: Progress,
    event_count: u64,
    /// Events and stretches so far.
    turns: u64,
    /// The first phase was started.
    begun: bool,
    /// Threads end as if their time were over.
    stopping: bool,
    /// First allocation hints of tag maps.
    hints: Rng,
    /// Captured arrivals, when they are what runs.
    replay: Option<Box<replay::Replay>>,
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// Every job ended and every request completed.
    Finished,
    /// Something waits that nothing will wake.
    Stalled(Box<Stall>),
}

impl Simulator {
    /// Runs to the end. `watch` is called now and then with the time; false stops the run early.
    pub fn run(&mut self, mut watch: impl FnMut(SimTime) -> bool) -> Outcome {
        loop {
            if let Some(outcome) = self.run_some(1 << 18) {
                return outcome;
            }
            if !watch(self.core.now) {
                return Outcome::Finished;
            }
        }
    }

    /// Goes on for about `count` turns: events, and stretches of labels between them. `None`: go
    /// on. Trace points can be taken in between.
    pub fn run_some(&mut self, count: u32) -> Option<Outcome> {
        if !self.begun {
            self.begun = true;
            self.start_phase();
        }
        let until = self.turns + u64::from(count);
        while self.turns < until {
            let Some((time, event)) = self.core.events.pop() else {
                return Some(self.ended());
            };
            self.core.now = self.core.now.max(time);
            self.event_count += 1;
            self.turns += 1;
            self.handle(event);
            // The last thread may have ended while its last request is still being ended.
            if self.running_tasks == 0 && !self.next_phase() && !self.anything_waits() {
                return Some(self.ended());
            }
            if self.core.now >= self.progress.look_at
                && let Some(why) = self.look()
            {
                return Some(self.stalled(why));
            }
        }
        let still = self.progress.stands_still(self.core.now, self.turns);
        still.then(|| self.stalled(Why::NoTime))
    }

    fn ended(&self) -> Outcome {
        if self.running_tasks > 0 || self.anything_waits() {
            return self.stalled(Why::NothingLeft);
        }
        Outcome::Finished
    }

    fn stalled(&self, why: Why) -> Outcome {
        Outcome::Stalled(Box::new(self.explain(why)))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Step(of) => {
                if self.cpu(of.on()).generation == of.detail() {
                    self.run_cpu(of.on());
                }
            }
            Event::Grant(lock) => self.grant_first(lock as usize),
            Event::Timer(mark) => {
                let (device, mark) = effects::split_mark(mark);
                self.with_device(device, None, |device, now, out| {
                    device.timer(mark, now, out);
                });
            }
            Event::Interrupt(of) => {
                let cpu = self.cpu_mut(of.on());
                cpu.irqs
                    .push_back(Irq::Device(DeviceId(of.part_of()), of.detail()));
                cpu.interrupted = true;
                self.notice(of.on());
            }
            Event::Ipi(of) => {
                let cpu = self.cpu_mut(of.on());
                cpu.ipi = true;
                cpu.interrupted = true;
                self.notice(of.on());
            }
            Event::Measure => self.begin_measuring(),
            Event::Elevator(of) => {
                self.timer_due(QueueId(of.part_of()), of.whom() as u8, of.detail());
            }
            Event::Work(of) => self.work_due(QueueId(of.part_of()), of.whom() as u16, of.detail()),
            Event::Resume(of) => {
                let (task, generation) = (TaskId(of.whom()), of.detail());
                if self.tasks[task.index()].generation == generation {
                    let cpu = self.tasks[task.index()].cpu;
                    self.wake(task, cpu, SimTime::ZERO);
                }
            }
        }
    }

    fn cpu(&self, cpu: CpuId) -> &CpuState {
        &self.cpus[usize::from(cpu.0)]
    }

    fn cpu_mut(&mut self, cpu: CpuId) -> &mut CpuState {
        &mut self.cpus[usize::from(cpu.0)]
    }

    /// What was measured.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Where CPU time went since measuring began.
    pub fn spent(&self) -> &Spent {
        &self.core.spent
    }

    /// The block layer, for reports and checks.
    pub fn block_layer(&self) -> &BlkMq<Solo> {
        &self.mq
    }

    /// Virtual time reached.
    pub fn now(&self) -> SimTime {
        self.core.now
    }

    /// Labels executed and events handled so far.
    pub fn work_done(&self) -> (u64, u64) {
        (self.core.spent.labels_executed(), self.event_count)
    }

    /// Brings per-CPU and per-lock accounts up to the present.
    pub fn settle(&mut self) {
        let now = self.core.now;
        for cpu in &mut self.cpus {
            cpu.account_idle(now);
        }
        let locks = self.core.arbiter.stats(&self.mq);
        let (cpus, threads) = (self.cpus_usage(), self.threads_usage());
        let spent = self.core.spent.clone();
        self.recorder.finish(now, cpus, threads, locks, spent);
        self.settle_watch();
    }

    /// Takes the trace points recorded since the last call: time, CPU, task, point.
    pub fn take_trace(&mut self) -> Vec<(SimTime, CpuId, u32, TracePoint)> {
        core::mem::take(&mut self.recorder.trace)
    }
}
