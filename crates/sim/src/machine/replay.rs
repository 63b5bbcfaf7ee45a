//! A captured process: submits its bios when the capture did, or when their turn comes.
//!
//! Has no cost of its own: what the process did between two bios is in the captured times. Not
//! here: where the arrivals come from, which is `replay.rs`.

use core::any::Any;
use std::sync::Arc;

use blkmq::env::Slab;
use blkmq::path::{Frame, Plug, PlugPath, SubmitPath, Unplug};
use blkmq::request::{Bio, CpuId, Op, QueueId, RequestId};
use blkmq::time::{Duration, SimTime};

use super::Simulator;
use super::cpu::Mode;
use super::task::{Program, State, Task, TaskId, Turn, io_context_of};
use crate::cost::Step as Cost;
use crate::device::{CapturedCounts, CapturedDevice, DeviceSetup, fault};
use crate::plan::{DeviceId, Plan};
use crate::profile::MachineProfile;
use crate::replay::{Arrivals, Pace, Step, StepKind, Times};

/// How long a process waits when all bios of the plan are alive.
const NO_BIO: Duration = Duration::from_millis(1);

/// The least that a process keeps its CPU before it looks for interrupts.
const BUSY_STEP: Duration = Duration(200);

/// What a replay needs beside the tasks.
#[derive(Debug)]
pub(super) struct Replay {
    // Settings.
    arrivals: Arc<Arrivals>,
    pace: Pace,

    // State.
    /// By arrival.
    times: Vec<Times>,
    /// Task of each stream.
    tasks: Vec<TaskId>,
    /// Stream of each arrival.
    stream_of: Vec<u32>,
    /// Completion times by stream, in order; as large as they get.
    done: Vec<Vec<SimTime>>,
    /// Bios submitted and not ended.
    alive: usize,
    /// Empty flushes that the flush machine has not served yet.
    flushes: Vec<u32>,
}

/// A captured process.
#[derive(Clone, Debug)]
pub(super) struct ReplayTask {
    stream: usize,
    /// Next step.
    next: usize,
    /// When the last step was done, here and in the capture.
    last: SimTime,
    last_captured: SimTime,
    submitted: u32,
    /// Completions that it sleeps for; 0: it does not.
    waiting_for: u32,
    /// The plug is being flushed.
    unplugging: bool,
}

impl ReplayTask {
    pub(super) fn in_flight(&self, done: usize) -> u32 {
        self.submitted - done as u32
    }
}

impl Simulator {
    /// A machine about to replay `arrivals`. `captured`: the device is that of the capture, behind
    /// the driver of the plan.
    pub fn replaying(
        plan: &Plan,
        profile: &MachineProfile,
        arrivals: &Arc<Arrivals>,
        pace: Pace,
        captured: bool,
    ) -> Result<Simulator, String> {
        if plan.queues().count() > 1 {
            return Err("a replay has one device".to_string());
        }
        let mut simulator = Simulator::new(plan, profile)?;
        if captured {
            let disk = &plan.disks[0];
            if fault::is_wanted(&disk.device.fault) {
                return Err("a captured device has no faults to inject".to_string());
            }
            let setup = DeviceSetup::of(plan, DeviceId(0), disk, &[], &[]);
            let device = CapturedDevice::new(arrivals, &setup);
            simulator.devices[0].device = Box::new(device);
            // Captured times of arrivals and completions contain the way out of idle and into the
            // interrupt.
            simulator.cpus.core.costs.set_free(Cost::IdleExit);
            simulator.cpus.core.costs.set_free(Cost::Irq);
        }
        let mut replay = Replay {
            times: vec![Times::NEVER; arrivals.ios.len()],
            tasks: Vec::new(),
            stream_of: vec![0; arrivals.ios.len()],
            done: Vec::new(),
            alive: 0,
            flushes: Vec::new(),
            arrivals: Arc::clone(arrivals),
            pace,
        };
        for (index, stream) in arrivals.streams.iter().enumerate() {
            let first = stream.steps.iter().find_map(|step| match step.kind {
                StepKind::Submit(io) => Some(arrivals.ios[io as usize].cpu),
                StepKind::Plug | StepKind::Unplug => None,
            });
            let cpu = CpuId(first.unwrap_or(0) % plan.machine.cpus);
            let task = simulator.tasks.add(replay_task(index, cpu));
            replay.tasks.push(task);
            replay
                .done
                .push(Vec::with_capacity(stream.submits as usize));
            for step in &stream.steps {
                if let StepKind::Submit(io) = step.kind {
                    replay.stream_of[io as usize] = index as u32;
                }
            }
        }
        simulator.replay = Some(Box::new(replay));
        Ok(simulator)
    }

    /// Times of every arrival so far, by its index; empty if nothing is replayed.
    pub fn replayed(&self) -> &[Times] {
        self.replay
            .as_ref()
            .map_or(&[], |replay| replay.times.as_slice())
    }

    /// How the captured device found its times, if it is the device.
    pub fn captured_counts(&self) -> Option<CapturedCounts> {
        let device: &dyn Any = &*self.devices[0].device;
        let captured = device.downcast_ref::<CapturedDevice>();
        captured.map(CapturedDevice::counts)
    }

    /// Wakes every captured process for its first step.
    pub(super) fn start_replay(&mut self) {
        let Some(replay) = &self.replay else { return };
        for (stream, &task) in replay.arrivals.streams.iter().zip(&replay.tasks) {
            let at = stream.steps.first().map_or(SimTime::ZERO, |step| step.at);
            self.tasks.sleep_until(&mut self.cpus, task, at);
            self.tasks.running += 1;
        }
    }

    /// Who waits for how many I/Os, for stall reports.
    pub(super) fn replay_waits(&self, process: &ReplayTask) -> Option<(String, u32)> {
        let replay = self.replay.as_ref()?;
        let count = process.in_flight(replay.done[process.stream].len());
        (count > 0).then(|| (self.replay_name(process), count))
    }

    /// Name of a captured process.
    pub(super) fn replay_name(&self, process: &ReplayTask) -> String {
        let replay = self
            .replay
            .as_ref()
            .expect("a captured process is replayed");
        let stream = &replay.arrivals.streams[process.stream];
        format!("{} (pid {})", stream.name, stream.pid)
    }

    /// One step of a captured process.
    pub(super) fn replay_turn(&mut self, id: CpuId, task: TaskId, p: &mut ReplayTask) -> Turn {
        p.waiting_for = 0;
        if p.unplugging {
            p.unplugging = false;
            self.cpus[id].env.plug = Plug::default();
        }
        let replay = self
            .replay
            .as_deref()
            .expect("only a replay has captured processes");
        let done = &replay.done[p.stream];
        let Some(&step) = replay.arrivals.streams[p.stream].steps.get(p.next) else {
            if done.len() as u32 == p.submitted {
                return Turn::Exit;
            }
            return self.replay_sleep(id, p, p.submitted);
        };
        let at = self.cpus.at(id);
        let due = match due(replay, p, &step) {
            Due::At(due) => due,
            Due::Completions(count) => return self.replay_sleep(id, p, count),
        };
        if due > at {
            if !self.cpus[id].env.plug.active {
                return Turn::Pause(due);
            }
            let from = SimTime(due.0.saturating_sub(step.busy.0));
            if from > at {
                return Turn::Pause(from);
            }
            self.replay_busy(id, at, due);
            return Turn::Again;
        }
        match step.kind {
            StepKind::Plug => {
                if !self.cpus[id].env.plug.active {
                    self.cpus[id].env.plug.start(1);
                }
            }
            StepKind::Unplug => self.replay_unplug(id, p),
            StepKind::Submit(index) => {
                if let Some(turn) = self.replay_submit(id, task, p, index) {
                    return turn;
                }
            }
        }
        p.next += 1;
        p.last = at;
        p.last_captured = step.at;
        Turn::Again
    }

    /// Keeps the CPU until `due`, or the next event: between two bios of a plug a task runs, for
    /// its sleep would flush the plug, and others wait for the CPU.
    fn replay_busy(&mut self, id: CpuId, at: SimTime, due: SimTime) {
        let next = self
            .cpus
            .core
            .events
            .peek_time()
            .unwrap_or(due)
            .max(at + BUSY_STEP);
        let until = due.min(next);
        self.cpus[id].spend(until.since(at).0 * 1000, Mode::System);
    }

    /// Sleeps until so many of its I/Os have completed; a sleeping task's plug is flushed.
    fn replay_sleep(&mut self, id: CpuId, p: &mut ReplayTask, count: u32) -> Turn {
        let plug = self.cpus[id].env.plug;
        if plug.active && !plug.is_empty() {
            let path = PlugPath::unplug(plug.queue, Unplug::Schedule);
            self.cpus.push(id, Frame::Plug(path));
            return Turn::Again;
        }
        p.waiting_for = count;
        Turn::Sleep
    }

    fn replay_unplug(&mut self, id: CpuId, p: &mut ReplayTask) {
        let plug = self.cpus[id].env.plug;
        if plug.active && !plug.is_empty() {
            let path = PlugPath::unplug(plug.queue, Unplug::Finish);
            self.cpus.push(id, Frame::Plug(path));
        }
        p.unplugging = true;
    }

    /// Submits an arrival; a turn instead if that has to wait.
    fn replay_submit(
        &mut self,
        id: CpuId,
        task: TaskId,
        p: &mut ReplayTask,
        index: u32,
    ) -> Option<Turn> {
        let at = self.cpus.at(id);
        let replay = self
            .replay
            .as_deref_mut()
            .expect("only a replay has captured processes");
        let arrival = replay.arrivals.ios[index as usize];
        let cpu = CpuId(arrival.cpu % self.plan.machine.cpus);
        if cpu != id && !self.cpus[id].env.plug.active {
            let t = &mut self.tasks[task];
            t.allowed[0] = cpu;
            t.cpu = cpu;
            return Some(Turn::Pause(at));
        }
        let limits = &self.plan.disks[0].queue.limits;
        if replay.alive + parts(limits, arrival.op, arrival.sectors.0) > self.bio_limit() {
            return Some(Turn::Pause(at + NO_BIO));
        }
        let replay = self.replay.as_deref_mut().expect("checked above");
        replay.alive += parts(
            &self.plan.disks[0].queue.limits,
            arrival.op,
            arrival.sectors.0,
        );
        replay.times[index as usize].queued = at;
        if arrival.sectors.0 == 0 {
            replay.flushes.push(index);
        }
        p.submitted += 1;
        let mut bio = Bio::default();
        bio.op = arrival.op;
        bio.flags = arrival.flags;
        bio.sector = arrival.sector;
        bio.sectors = arrival.sectors;
        if arrival.op == Op::Discard {
            bio.segments = 1;
        } else {
            bio.scatter();
        }
        bio.ioprio = arrival.ioprio;
        bio.io_context = io_context_of(task);
        bio.owner = index;
        let bio = self.layer.mq.queue(QueueId(0)).pool.held(id).add_bio(bio);
        let bio = bio.expect("as many bios as the limit says");
        let path = SubmitPath::new(QueueId(0), bio);
        self.cpus.push(id, Frame::Submit(path));
        None
    }

    fn bio_limit(&self) -> usize {
        self.plan.disks[0].capacity.bios as usize
    }

    /// The driver got a request: so it got its bios.
    pub(super) fn replay_issued(&mut self, id: CpuId, rq: RequestId, at: SimTime) {
        let Some(replay) = self.replay.as_deref_mut() else {
            return;
        };
        let pool = self.layer.mq.queue(QueueId(0)).pool.held(id);
        if pool[rq].op == Op::Flush {
            // One flush serves all that wait.
            for index in replay.flushes.drain(..) {
                replay.times[index as usize].issued = at;
            }
        }
        for bio in pool.bios_of(rq) {
            let bio = pool.bio(bio);
            let arrival = replay.arrivals.ios[bio.owner as usize];
            let times = &mut replay.times[bio.owner as usize];
            // Of several pieces the first; of several attempts the last.
            let whole = bio.sectors == arrival.sectors;
            if whole || times.issued == SimTime::NEVER {
                times.issued = at;
            }
        }
    }

    /// A request is about to be ended (C): its bios end one after the other, but have one C.
    pub(super) fn replay_completed(&mut self, id: CpuId, rq: RequestId) {
        let at = self.cpus.at(id);
        let Some(replay) = self.replay.as_deref_mut() else {
            return;
        };
        let pool = self.layer.mq.queue(QueueId(0)).pool.held(id);
        // A flush sequence ends its bio when it is over.
        if !pool[rq].flush_seq {
            for bio in pool.bios_of(rq) {
                replay.times[pool.bio(bio).owner as usize].completed = at;
            }
        }
    }

    /// The block layer has ended an arrival.
    pub(super) fn replay_done(&mut self, id: CpuId, index: u32) {
        let at = self.cpus.at(id);
        let replay = self
            .replay
            .as_deref_mut()
            .expect("only a replay has arrivals");
        let arrival = replay.arrivals.ios[index as usize];
        let times = &mut replay.times[index as usize];
        if times.completed == SimTime::NEVER {
            times.completed = at;
        }
        replay.alive -= parts(
            &self.plan.disks[0].queue.limits,
            arrival.op,
            arrival.sectors.0,
        );
        let stream = replay.stream_of[index as usize] as usize;
        replay.done[stream].push(at);
        let (done, task) = (replay.done[stream].len() as u32, replay.tasks[stream]);
        self.cpus.charge(id, Cost::AioComplete);
        let t = &mut self.tasks[task];
        let Program::Replay(p) = &mut t.program else {
            // It runs, and looks for itself before it sleeps.
            return;
        };
        if p.waiting_for > 0 && done >= p.waiting_for && t.state == State::Sleeping {
            p.waiting_for = 0;
            self.cpus.charge_as(id, Cost::Wake, Mode::System);
            self.tasks.wake(&mut self.cpus, task, id, SimTime::ZERO);
        }
    }
}

/// When a step is due.
enum Due {
    At(SimTime),
    /// Not before so many completions of the process.
    Completions(u32),
}

fn due(replay: &Replay, p: &ReplayTask, step: &Step) -> Due {
    match (replay.pace, step.kind) {
        (Pace::Open, _) => Due::At(step.at),
        (Pace::Closed, StepKind::Unplug) => Due::At(p.last + step.at.since(p.last_captured)),
        (Pace::Closed, StepKind::Submit(_) | StepKind::Plug) => {
            let Some(last) = step.after.checked_sub(1) else {
                return Due::At(step.at);
            };
            match replay.done[p.stream].get(last as usize) {
                Some(&done) => Due::At(done + step.think),
                None => Due::Completions(step.after),
            }
        }
    }
}

/// Bios that an I/O can become.
fn parts(limits: &blkmq::rules::QueueLimits, op: Op, sectors: u32) -> usize {
    limits.parts_max(op, sectors) as usize
}

fn replay_task(stream: usize, cpu: CpuId) -> Task {
    let program = ReplayTask {
        stream,
        next: 0,
        last: SimTime::ZERO,
        last_captured: SimTime::ZERO,
        submitted: 0,
        waiting_for: 0,
        unplugging: false,
    };
    Task::asleep(Program::Replay(Box::new(program)), vec![cpu])
}
