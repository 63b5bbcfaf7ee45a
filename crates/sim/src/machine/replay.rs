//! A captured process: submits its bios at their captured times, or when their turn comes.
//!
//! It has no cost of its own: the process's work between two bios is in the captured times. Not
//! here: the source of the arrivals, which is `replay.rs`.

use core::any::Any;
use std::sync::Arc;

use blkmq::elevator::{Submitter, SubmitterGroup, Submitters};
use blkmq::path::{Frame, Plug, PlugPath, ThenUnplug, Unplug};
use blkmq::queue::BlkMq;
use blkmq::request::{Bio, CpuId, IoPrio, Op, QueueId, RequestId};
use blkmq::rules::QueueLimits;
use blkmq::time::{Duration, SimTime};
use trace::processes::Group;

use super::Simulator;
use super::cpu::Mode;
use super::cpus::Cpus;
use super::task::{Program, State, Task, TaskId, Turn, io_context_of};
use super::tasks::Tasks;
use crate::cost::Step as Cost;
use crate::device::{CapturedCounts, CapturedDevice, DeviceSetup, fault};
use crate::plan::{DEFAULT_PRIORITY, DeviceId, DiskPlan, Plan};
use crate::profile::MachineProfile;
use crate::replay::{Arrival, Arrivals, Pace, Step, StepKind, Times};

/// How long a process waits when all bios of the plan are alive.
const NO_BIO: Duration = Duration::from_millis(1);

/// The least that a process keeps its CPU before it looks for interrupts.
const BUSY_STEP: Duration = Duration(200);

/// State of a replay beyond its tasks.
#[derive(Debug)]
pub(super) struct Replay {
    // Settings.
    arrivals: Arc<Arrivals>,
    pace: Pace,
    disks: Vec<ReplayedDisk>,

    // State.
    /// By arrival.
    times: Vec<Times>,
    tasks: Vec<TaskId>,
    /// Tasks that wait for completions together, by their ring's stream.
    rings: Vec<Vec<TaskId>>,
    /// Stream of each arrival.
    stream_of: Vec<u32>,
    /// I/Os that have ended, by stream.
    ended: Vec<u32>,
    /// Completion times by ring, in order; as large as they get.
    done: Vec<Vec<SimTime>>,
}

/// A disk that bios are submitted to.
#[derive(Debug)]
struct ReplayedDisk {
    // Settings.
    limits: QueueLimits,
    /// Bios that can be alive.
    bios: usize,

    // State.
    /// Bios submitted and not ended.
    alive: usize,
    /// Empty flushes that the flush machine has not served yet.
    flushes: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct ReplayTask {
    stream: usize,
    ring: usize,
    next: usize,
    /// Time of the last step, here and in the capture.
    last: SimTime,
    last_captured: SimTime,
    submitted: u32,
    /// Completions that it sleeps for; 0: it does not.
    waiting_for: u32,
    /// The plug is being flushed.
    unplugging: bool,
    /// It has submitted I/O that a plug of the queue may hold back.
    holds: bool,
}

impl ReplayTask {
    pub(super) fn in_flight(&self, ended: u32) -> u32 {
        self.submitted - ended
    }
}

impl Simulator {
    /// A machine that will replay `arrivals`. `captured`: the devices are those of the capture,
    /// below the drivers of the plan.
    pub fn replaying(
        plan: &Plan,
        profile: &MachineProfile,
        arrivals: &Arc<Arrivals>,
        pace: Pace,
        captured: bool,
    ) -> Result<Simulator, String> {
        fits(plan, arrivals)?;
        let mut simulator = Simulator::new(plan, profile)?;
        if captured {
            for (number, (disk, of_capture)) in plan.disks.iter().zip(&arrivals.disks).enumerate() {
                if fault::is_wanted(&disk.device.fault) {
                    return Err("a captured device has no faults to inject".to_string());
                }
                let id = DeviceId(number as u16);
                let setup = DeviceSetup::of(plan, id, disk, &[]);
                let device = CapturedDevice::new(of_capture.services.clone(), &setup);
                simulator.devices.replace(id, |_| Box::new(device));
            }
            // Captured times of arrivals and completions contain the exit from idle and the entry
            // of the interrupt.
            simulator.cpus.core.costs.set_free(Cost::IdleExit);
            simulator.cpus.core.costs.set_free(Cost::Irq);
        }
        let mut replay = Replay::new(plan, arrivals, pace);
        for (index, stream) in arrivals.streams.iter().enumerate() {
            let first = stream.steps.iter().find_map(|step| match step.kind {
                StepKind::Submit(io) => Some(arrivals.ios[io as usize].cpu),
                StepKind::Plug | StepKind::Unplug => None,
            });
            let cpu = CpuId(first.unwrap_or(0) % plan.machine.cpus);
            let ring = stream.ring as usize;
            let task = simulator.tasks.add(replay_task((index, ring), cpu));
            replay.tasks.push(task);
            replay.rings[ring].push(task);
            replay
                .done
                .push(Vec::with_capacity(stream.submits as usize));
            for step in &stream.steps {
                if let StepKind::Submit(io) = step.kind {
                    replay.stream_of[io as usize] = index as u32;
                }
            }
        }
        let submitters = replay.submitters();
        simulator.layer.mq.know(&submitters);
        simulator.replay = Some(Box::new(replay));
        Ok(simulator)
    }

    /// Times of every arrival so far, by its index; empty if nothing is replayed.
    pub fn replayed(&self) -> &[Times] {
        self.replay
            .as_ref()
            .map_or(&[], |replay| replay.times.as_slice())
    }

    /// How the captured devices found their times, if they are captured.
    pub fn captured_counts(&self) -> Option<CapturedCounts> {
        let disks = self.replay.as_ref().map_or(0, |replay| replay.disks.len());
        (0..disks as u16).try_fold(CapturedCounts::default(), |all, number| {
            let device: &dyn Any = &*self.devices[DeviceId(number)].device;
            let of = device.downcast_ref::<CapturedDevice>()?.counts();
            Some(CapturedCounts {
                exact: all.exact + of.exact,
                near: all.near + of.near,
                mean: all.mean + of.mean,
            })
        })
    }
}

impl Replay {
    fn new(plan: &Plan, arrivals: &Arc<Arrivals>, pace: Pace) -> Replay {
        Replay {
            times: vec![Times::NEVER; arrivals.ios.len()],
            tasks: Vec::new(),
            stream_of: vec![0; arrivals.ios.len()],
            done: Vec::new(),
            disks: plan.disks.iter().map(ReplayedDisk::new).collect(),
            rings: vec![Vec::new(); arrivals.streams.len()],
            ended: vec![0; arrivals.streams.len()],
            arrivals: Arc::clone(arrivals),
            pace,
        }
    }

    /// Captured processes, as schedulers see them: the priority of each is that of its first I/O.
    fn submitters(&self) -> Submitters {
        let mut submitters = Submitters {
            tasks: Vec::new(),
            groups: self.arrivals.groups.iter().map(seen).collect(),
        };
        for (index, stream) in self.arrivals.streams.iter().enumerate() {
            let at = io_context_of(self.tasks[index]).0 as usize;
            if submitters.tasks.len() <= at {
                submitters.tasks.resize(at + 1, Submitter::default());
            }
            let mut of_stream = self.stream_of.iter().zip(&self.arrivals.ios);
            let first = of_stream.find(|(of, _)| **of == index as u32);
            submitters.tasks[at] = Submitter {
                pid: stream.pid.cast_signed(),
                ioprio: first.map_or(IoPrio::default(), |(_, io)| io.ioprio),
                nice: DEFAULT_PRIORITY,
            };
        }
        submitters
    }

    /// Wakes every captured process for its first step.
    pub(super) fn start(&self, cpus: &mut Cpus, tasks: &mut Tasks) {
        for (stream, &task) in self.arrivals.streams.iter().zip(&self.tasks) {
            let at = stream.steps.first().map_or(SimTime::ZERO, |step| step.at);
            tasks.sleep_until(cpus, task, at);
            tasks.running += 1;
        }
    }

    /// How many I/Os a process waits for, for stall reports.
    pub(super) fn waits(&self, process: &ReplayTask) -> Option<(String, u32)> {
        let count = process.in_flight(self.ended[process.stream]);
        (count > 0).then(|| (self.name(process), count))
    }

    pub(super) fn name(&self, process: &ReplayTask) -> String {
        let stream = &self.arrivals.streams[process.stream];
        format!("{} (pid {})", stream.name, stream.pid)
    }

    /// One step of a captured process.
    pub(super) fn turn(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        mq: &BlkMq,
        (id, task): (CpuId, TaskId),
        p: &mut ReplayTask,
    ) -> Turn {
        p.waiting_for = 0;
        if p.unplugging {
            p.unplugging = false;
            cpus[id].env.plug = Plug::default();
        }
        let done = &self.done[p.ring];
        let Some(&step) = self.arrivals.streams[p.stream].steps.get(p.next) else {
            let left = p.in_flight(self.ended[p.stream]);
            if left == 0 {
                return Turn::Exit;
            }
            let count = done.len() as u32 + left;
            return sleep(cpus, mq, id, p, count);
        };
        let at = cpus.at(id);
        let due = match due(self, p, &step) {
            Due::At(due) => due,
            Due::Completions(count) => return sleep(cpus, mq, id, p, count),
        };
        if due > at {
            if !cpus[id].env.plug.active {
                return Turn::Pause(due);
            }
            let from = SimTime(due.0.saturating_sub(step.busy.0));
            if from > at {
                return Turn::Pause(from);
            }
            busy(cpus, id, at, due);
            return Turn::Again;
        }
        match step.kind {
            StepKind::Plug => {
                if !cpus[id].env.plug.active {
                    cpus[id].env.plug.start(1);
                }
            }
            StepKind::Unplug => unplug(cpus, mq, id, p),
            StepKind::Submit(index) => {
                if let Some(turn) = self.submit(cpus, tasks, mq, (id, task), p, index) {
                    return turn;
                }
            }
        }
        p.next += 1;
        p.last = at;
        p.last_captured = step.at;
        Turn::Again
    }

    /// Submits an arrival; returns a turn instead if the arrival has to wait.
    fn submit(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        mq: &BlkMq,
        (id, task): (CpuId, TaskId),
        p: &mut ReplayTask,
        index: u32,
    ) -> Option<Turn> {
        let at = cpus.at(id);
        let arrival = self.arrivals.ios[index as usize];
        let cpu = CpuId(arrival.cpu % cpus.len() as u16);
        if cpu != id && !cpus[id].env.plug.active {
            let t = &mut tasks[task];
            t.allowed[0] = cpu;
            t.cpu = cpu;
            return Some(Turn::Pause(at));
        }
        let disk = &mut self.disks[usize::from(arrival.disk)];
        let parts = disk.parts(&arrival);
        if disk.alive + parts > disk.bios {
            return Some(Turn::Pause(at + NO_BIO));
        }
        disk.alive += parts;
        self.times[index as usize].queued = at;
        if arrival.sectors.0 == 0 {
            disk.flushes.push(index);
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
        bio.group = match arrival.of_root {
            true => 0,
            false => self.arrivals.streams[p.stream].group,
        };
        bio.io_context = io_context_of(task);
        bio.owner = index;
        let queue = QueueId(arrival.disk);
        let bio = mq.queue(queue).pool.held(id).add_bio(bio);
        let bio = bio.expect("as many bios as the limit says");
        let then = match (cpus[id].env.plug.active, arrival.waits()) {
            // Direct I/O unplugs the queue after its last bio.
            (false, true) => ThenUnplug::Task,
            _ => ThenUnplug::Nobody,
        };
        p.holds |= then == ThenUnplug::Nobody;
        cpus.submit(id, mq.submits(queue, bio, then));
        None
    }

    /// The driver got a request, and so its bios.
    pub(super) fn issued(
        &mut self,
        mq: &BlkMq,
        id: CpuId,
        (queue, rq): (QueueId, RequestId),
        at: SimTime,
    ) {
        let pool = mq.queue(queue).pool.held(id);
        if pool[rq].op == Op::Flush {
            // One flush serves all that wait.
            for index in self.disks[queue.index()].flushes.drain(..) {
                self.times[index as usize].issued = at;
            }
        }
        for bio in pool.bios_of(rq) {
            let bio = pool.bio(bio);
            let arrival = self.arrivals.ios[bio.owner as usize];
            let times = &mut self.times[bio.owner as usize];
            // The first of several pieces; the last of several attempts.
            let whole = bio.sectors == arrival.sectors;
            if whole || times.issued == SimTime::NEVER {
                times.issued = at;
            }
        }
    }

    /// A request is about to end (C): its bios end one after the other, but have one C.
    pub(super) fn completed(
        &mut self,
        mq: &BlkMq,
        id: CpuId,
        (queue, rq): (QueueId, RequestId),
        at: SimTime,
    ) {
        let pool = mq.queue(queue).pool.held(id);
        // A flush sequence ends its bio at its end.
        if !pool[rq].flush_seq {
            for bio in pool.bios_of(rq) {
                self.times[pool.bio(bio).owner as usize].completed = at;
            }
        }
    }

    /// The block layer has ended an arrival.
    pub(super) fn io_done(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, id: CpuId, index: u32) {
        let at = cpus.at(id);
        let arrival = self.arrivals.ios[index as usize];
        let times = &mut self.times[index as usize];
        if times.completed == SimTime::NEVER {
            times.completed = at;
        }
        let disk = &mut self.disks[usize::from(arrival.disk)];
        disk.alive -= disk.parts(&arrival);
        let stream = self.stream_of[index as usize] as usize;
        let ring = self.arrivals.streams[stream].ring as usize;
        self.done[ring].push(times.completed);
        let done = self.done[ring].len() as u32;
        self.ended[stream] += 1;
        cpus.charge(id, Cost::AioComplete);
        for &task in &self.rings[ring] {
            let t = &mut tasks[task];
            let Program::Replay(p) = &mut t.program else {
                // It runs, and checks before it sleeps.
                continue;
            };
            if p.waiting_for > 0 && done >= p.waiting_for && t.state == State::Sleeping {
                p.waiting_for = 0;
                cpus.charge_as(id, Cost::Wake, Mode::System);
                tasks.wake(cpus, task, id, SimTime::ZERO);
            }
        }
    }
}

/// Keeps the CPU until `due`, or the next event: between two bios of a plug a task runs, for a
/// sleep would flush the plug, and other tasks wait for the CPU.
fn busy(cpus: &mut Cpus, id: CpuId, at: SimTime, due: SimTime) {
    let next = cpus
        .core
        .events
        .peek_time()
        .unwrap_or(due)
        .max(at + BUSY_STEP);
    let until = due.min(next);
    cpus[id].spend(until.since(at).0 * 1000, Mode::System);
}

/// Sleeps until so many of its I/Os have completed; the task's plug is flushed, and a single-queue
/// one unplugged.
fn sleep(cpus: &mut Cpus, mq: &BlkMq, id: CpuId, p: &mut ReplayTask, count: u32) -> Turn {
    if lets_go(cpus, mq, id, p) {
        return Turn::Again;
    }
    let plug = cpus[id].env.plug;
    if plug.active && !plug.is_empty() {
        let path = PlugPath::new(plug.queue(), Unplug::Schedule);
        cpus.push(id, Frame::Plug(path));
        return Turn::Again;
    }
    p.waiting_for = count;
    Turn::Sleep
}

/// Unplugs the single-queue queues that it has submitted to. True: there was one.
fn lets_go(cpus: &mut Cpus, mq: &BlkMq, id: CpuId, p: &mut ReplayTask) -> bool {
    // A queue of the single-queue path has no other beside it: its tags are not shared.
    let frame = mq.unplugs(QueueId(0)).filter(|_| p.holds);
    p.holds = false;
    let some = frame.is_some();
    if let Some(frame) = frame {
        cpus.push(id, frame);
    }
    some
}

fn unplug(cpus: &mut Cpus, mq: &BlkMq, id: CpuId, p: &mut ReplayTask) {
    lets_go(cpus, mq, id, p);
    let plug = cpus[id].env.plug;
    if plug.active && !plug.is_empty() {
        let path = PlugPath::new(plug.queue(), Unplug::Finish);
        cpus.push(id, Frame::Plug(path));
    }
    p.unplugging = true;
}

/// When a step is due.
enum Due {
    At(SimTime),
    /// After so many completions of the process.
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
            match replay.done[p.ring].get(last as usize) {
                Some(&done) => Due::At(done + step.think),
                None => Due::Completions(step.after),
            }
        }
    }
}

/// Whether the plan can take the arrivals.
fn fits(plan: &Plan, arrivals: &Arrivals) -> Result<(), String> {
    if plan.queues().count() != arrivals.disks.len() {
        return Err(format!(
            "the plan has {} queues, the capture {} devices; expected one queue a device",
            plan.queues().count(),
            arrivals.disks.len()
        ));
    }
    let queue = &plan.disks[0].queue;
    let cached_single = queue.rules.single_queue.is_some() && queue.limits.write_cache;
    let flushes = |io: &Arrival| io.flags.is_flush();
    if cached_single && let Some(at) = arrivals.ios.iter().position(flushes) {
        return Err(format!(
            "I/O {} of the capture flushes a volatile write cache, which is not modelled on \
             the single-queue path; expected a device without one, or --rules of blk-mq",
            at + 1
        ));
    }
    Ok(())
}

impl ReplayedDisk {
    fn new(plan: &DiskPlan) -> ReplayedDisk {
        ReplayedDisk {
            limits: plan.queue.limits,
            bios: plan.capacity.bios as usize,
            alive: 0,
            flushes: Vec::new(),
        }
    }

    /// Bios that an I/O can be split into.
    fn parts(&self, io: &Arrival) -> usize {
        self.limits.parts_max(io.op, io.sectors.0) as usize
    }
}

fn replay_task((stream, ring): (usize, usize), cpu: CpuId) -> Task {
    let program = ReplayTask {
        stream,
        ring,
        next: 0,
        last: SimTime::ZERO,
        last_captured: SimTime::ZERO,
        submitted: 0,
        waiting_for: 0,
        unplugging: false,
        holds: false,
    };
    Task::asleep(Program::Replay(Box::new(program)), vec![cpu])
}

/// A captured group as schedulers see it.
fn seen(group: &Group) -> SubmitterGroup {
    SubmitterGroup {
        path: group.path.clone(),
        parent: group.parent,
        weight: group.weight,
    }
}
