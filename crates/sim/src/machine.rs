//! The simulated machine: CPUs that step the block layer's paths, an arbiter of locks, tasks,
//! kernel workers, interrupts and devices, all driven by one event queue.
//!
//! Read first: docs/internals/architecture.md. Not here: the block layer (crate `blkmq`), devices
//! (`device/`), prices (`cost.rs`, `profiles/`).

mod arbiter;
#[cfg(test)]
mod bench;
mod bio_workers;
mod bound;
mod buffered;
mod burst;
mod change;
mod cpu;
mod cpus;
mod devices;
mod dmsetup;
mod effects;
mod event;
mod fio;
mod flows;
mod handed;
mod irq;
mod ksoftirqd;
mod layer;
mod lines;
mod mapper;
mod mappings;
mod numbers;
#[cfg(test)]
#[path = "../tests/common/order.rs"]
mod order;
mod placement;
mod precision;
mod progress;
mod qspinlock;
mod replay;
mod rings;
mod servers;
mod setup;
mod stall;
mod steady;
mod step;
mod targets;
mod task;
mod tasks;
mod timer;
mod watch;
mod work;

pub use setup::queue_config;
pub use stall::{Below, Stall, StalledRequest, Why};
pub use task::FIRST_PID;

use blkmq::elevator::SubmitterGroup;
use blkmq::env::TracePoint;
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use crate::cost::Spent;
use crate::plan::{DeviceId, Plan};
use crate::recorder::Recorder;
use bio_workers::BioWorkers;
use cpu::Irq;
use cpus::Cpus;
use devices::Devices;
use event::{Event, Of, class};
use flows::Flows;
use layer::Layer;
use lines::OuterLines;
use mapper::Mappers;
use mappings::Mappings;
use progress::Progress;
use rings::Rings;
use servers::Servers;
use stall::View;
use steady::Steady;
use targets::{Happens, Targets};
use task::TaskId;
use tasks::Tasks;
use timer::Timers;
use work::KernelWork;

/// How far a CPU may run ahead of the others between two points of synchronisation.
///
/// Locks, device answers, interrupts and wake-ups happen in exact order of time. Other words are
/// accessed at most this much too early as other CPUs see it: every run is still an interleaving of
/// whole labels. See docs/decisions/0002.
const RUN_AHEAD: Duration = Duration(500);

#[derive(Debug)]
pub struct Simulator {
    layer: Layer,
    cpus: Cpus,
    tasks: Tasks,
    work: KernelWork,
    mappers: Mappers,
    bio_workers: BioWorkers,
    timers: Timers,
    targets: Targets,
    devices: Devices,
    outer: OuterLines,
    mappings: Mappings,
    /// Threads that take turns.
    rings: Rings,
    servers: Servers,
    flows: Flows,
    steady: Steady,
    recorder: Recorder,
    plan: Plan,
    phase: u16,
    progress: Progress,
    event_count: u64,
    /// Events and bursts so far.
    turns: u64,
    /// The first phase has started.
    begun: bool,
    /// Captured arrivals, if the run is a replay.
    replay: Option<Box<replay::Replay>>,
}

#[derive(Debug)]
pub enum Outcome {
    /// Every job ended and every request completed.
    Finished,
    /// Something waits for a wake-up that will not come.
    Stalled(Box<Stall>),
}

impl Simulator {
    /// Runs to the end. `watch` is called now and then with the time; false stops the run early.
    pub fn run(&mut self, mut watch: impl FnMut(SimTime) -> bool) -> Outcome {
        loop {
            if let Some(outcome) = self.run_some(1 << 18) {
                return outcome;
            }
            if !watch(self.cpus.core.now) {
                return Outcome::Finished;
            }
        }
    }

    /// Goes on for about `count` turns: events, and bursts of labels between them. `None`: go
    /// on. Trace points can be taken in between.
    pub fn run_some(&mut self, count: u32) -> Option<Outcome> {
        if !self.begun {
            self.begun = true;
            self.start_phase();
        }
        let until = self.turns + u64::from(count);
        while self.turns < until {
            let Some((time, event)) = self.cpus.core.events.pop() else {
                return Some(self.ended());
            };
            self.cpus.core.now = self.cpus.core.now.max(time);
            self.event_count += 1;
            self.turns += 1;
            self.handle(event);
            // The last thread may have ended while its last request is still being ended.
            if self.tasks.running == 0 && !self.next_phase() && !self.layer.anything_waits() {
                return Some(self.ended());
            }
            if self.cpus.core.now >= self.progress.look_at {
                let (cpus, tasks, layer) = (&self.cpus, &self.tasks, &self.layer);
                if let Some(why) = self.progress.look(cpus, tasks, layer, &self.devices) {
                    return Some(self.stalled(why));
                }
            }
        }
        let still = self.progress.stands_still(self.cpus.core.now, self.turns);
        still.then(|| self.stalled(Why::NoTime))
    }

    /// No event is pending: the run is over, unless something waits.
    fn ended(&self) -> Outcome {
        if self.tasks.running > 0 || self.layer.anything_waits() {
            return self.stalled(Why::NothingLeft);
        }
        Outcome::Finished
    }

    fn stalled(&self, why: Why) -> Outcome {
        let view = View {
            cpus: &self.cpus,
            tasks: &self.tasks,
            layer: &self.layer,
            devices: &self.devices,
            work: &self.work,
            mappers: &self.mappers,
            bio_workers: &self.bio_workers,
            replay: self.replay.as_deref(),
        };
        Outcome::Stalled(Box::new(view.explain(why, self.progress.ended)))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Step(of) => {
                if self.cpus[of.on()].generation == of.detail() {
                    self.cpus.catch_up(of.on());
                    self.go_on(of.on());
                }
            }
            Event::Grant(lock) => {
                if let Some(cpu) = self.cpus.grant_first(&self.layer.mq, lock as usize) {
                    self.go_on(cpu);
                }
            }
            Event::Timer(mark) => {
                let (device, mark) = effects::split_mark(mark);
                self.with_device(device, None, |device, now, out| {
                    device.timer(mark, now, out);
                });
            }
            Event::Interrupt(of) => {
                let cpu = &mut self.cpus[of.on()];
                cpu.irqs
                    .push_back(Irq::Device(DeviceId(of.part_of()), of.detail()));
                cpu.interrupted = true;
                self.notice(of.on());
            }
            Event::Ipi(of) => {
                let cpu = &mut self.cpus[of.on()];
                cpu.ipi = true;
                cpu.interrupted = true;
                self.notice(of.on());
            }
            Event::Measure => self.measure(),
            Event::Elevator(of) => {
                if let Some(cpu) = self.timers.due(&mut self.cpus, of) {
                    self.notice(cpu);
                }
            }
            Event::Timeout(of) => {
                let (cpus, layer) = (&self.cpus, &self.layer);
                // The timer would only find requests that no event will end, and be set again.
                if layer.has_in_flight(of.queue())
                    && progress::only_timeouts(cpus, layer, &self.devices)
                {
                    return;
                }
                self.work
                    .timed_out(&mut self.cpus, &mut self.tasks, &self.layer.mq, of);
            }
            Event::Work(of) => {
                self.work.due(&mut self.cpus, &mut self.tasks, of);
            }
            Event::Happens(of) => self.happens(of),
            Event::Ended => self.start_waiting(),
            Event::Look => self.look_at_precision(),
            Event::Second => self.steady.look(&mut self.cpus, &mut self.tasks),
            Event::Requeue(of) => {
                self.work.requeue_due(&mut self.cpus, &mut self.tasks, of);
            }
            Event::Call(of) => {
                let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
                self.servers.call_comes(cpus, tasks, of);
            }
            Event::Resume(of) => {
                let (task, generation) = (TaskId(of.whom()), of.detail());
                self.tasks.pause_over(&mut self.cpus, task, generation);
            }
        }
    }

    /// The measured time begins.
    fn measure(&mut self) {
        self.cpus.begin_measuring();
        self.tasks.reset_usage();
        self.recorder.begin(self.cpus.core.now);
        self.start_looking();
    }

    /// An event of a path or its target.
    fn happens(&mut self, of: Of) {
        match self.targets.due(of) {
            Some(Happens::Out(device, unit, out)) => self.devices.set_out(device, unit, out),
            Some(Happens::ToTarget(queue, what, id)) => {
                let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
                self.work.send_to_target(cpus, tasks, id, (queue, what));
            }
            Some(Happens::Timer(..) | Happens::Look(..)) | None => {}
        }
    }

    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Where CPU time went since measuring began.
    pub fn spent(&self) -> &Spent {
        &self.cpus.core.spent
    }

    /// The block layer, for reports and checks.
    pub fn block_layer(&self) -> &BlkMq {
        &self.layer.mq
    }

    /// Control groups, the root first.
    pub fn groups(&self) -> &[SubmitterGroup] {
        &self.plan.groups
    }

    /// Name of this queue's device, if there are several queues.
    pub fn disk_name(&self, queue: QueueId) -> Option<String> {
        self.layer.name(queue).map(str::to_owned)
    }

    /// Virtual time reached.
    pub fn now(&self) -> SimTime {
        self.cpus.core.now
    }

    /// Labels executed and events handled so far.
    pub fn work_done(&self) -> (u64, u64) {
        (self.cpus.core.spent.labels_executed(), self.event_count)
    }

    /// Brings per-CPU and per-lock accounts up to the present.
    pub fn settle(&mut self) {
        let now = self.cpus.core.now;
        let locks = self.cpus.core.arbiter.stats(&self.layer.mq);
        let cpus = self.cpus.usage();
        let threads = self
            .tasks
            .threads_usage(&self.cpus, self.plan.threads.len());
        let spent = self.cpus.core.spent.clone();
        self.recorder.finish(now, cpus, threads, locks, spent);
        for queue in &self.layer.mq.queues {
            self.layer
                .explain(queue.id, &mut self.recorder.explanations);
        }
        self.recorder.steady = self.steady.found();
        self.recorder.refused_messages = self.targets.refused();
        self.recorder.bio_work_runs = self.bio_workers.runs();
        self.cpus.settle_watch(&mut self.recorder);
    }

    /// Takes the trace points recorded since the last call: time, CPU, task, point.
    pub fn take_trace(&mut self) -> Vec<(SimTime, CpuId, u32, TracePoint)> {
        core::mem::take(&mut self.recorder.trace)
    }

    /// Takes the text of the messages among the trace points that [`Self::take_trace`] took just
    /// before ([`TraceMsg::text`](blkmq::env::TraceMsg::text)).
    pub fn take_messages(&mut self) -> String {
        assert!(self.recorder.trace.is_empty(), "trace points first");
        core::mem::take(&mut self.recorder.messages)
    }
}
