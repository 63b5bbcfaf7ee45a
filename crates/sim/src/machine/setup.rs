//! Building a machine from a plan, and the phases of its jobs.

use blkmq::elevator::SchedulerKind;
use blkmq::env::Solo;
use blkmq::queue::{BlkMq, QueueConfig, QueueSettings, RequestQueue};
use blkmq::request::CpuId;
use blkmq::tags::{HctxCounts, TagSetConfig};
use blkmq::time::SimTime;

use super::arbiter::{Arbiter, OWNERS};
use super::change::Writer;
use super::cpu::{CpuState, LevelState};
use super::fio::FioTask;
use super::lines::OuterLines;
use super::numbers::Numbers;
use super::progress::Progress;
use super::task::{Program, State, Task, TaskId};
use super::timer::Timers;
use super::work::{IoWorker, KernelWork, Kworker};
use super::{Attached, Core, Event, Of, Simulator, class};
use crate::cost::{CostModel, Spent};
use crate::device::{Device, DeviceSetup, make};
use crate::event_queue::EventQueue;
use crate::plan::{DeviceId, DiskPlan, Engine, Plan};
use crate::profile::{Distance, MachineProfile};
use crate::recorder::Recorder;
use crate::recorder::{TaskUsage, Usage};
use crate::rng::Rng;

impl Simulator {
    /// A machine about to run `plan`.
    pub fn new(plan: &Plan, profile: &MachineProfile) -> Result<Simulator, String> {
        let cpus = plan.machine.cpus;
        let costs = CostModel::new(profile, cpus)?;
        let mut hints = Rng::stream(plan.seed, "sbitmap/hints");
        let sets = sets(plan, profile);
        let mq: BlkMq<Solo> = BlkMq::with_sets(&sets, &mut || hints.next_u64() as u32);
        let numbers = Numbers::new(plan);
        let attached = |(queue, of): (&RequestQueue<Solo>, &DiskPlan)| {
            let vectors: Vec<CpuId> = queue.hctxs.iter().map(vector_cpu).collect();
            let device = numbers.device_of(queue.id);
            let below = numbers.below(device);
            Attached {
                device: make(&DeviceSetup::of(plan, device, of, &vectors, &below)),
                now: SimTime::ZERO,
                charges: of.facts().charges,
                stacked: !below.is_empty(),
            }
        };
        let devices = mq.queues.iter().zip(plan.queues()).map(attached).collect();
        let requests = plan.queues().map(|disk| disk.capacity.requests);
        let room = requests.sum::<u32>() as usize + 16;
        let mut states: Vec<CpuState> = (0..cpus)
            .map(|cpu| CpuState::new(CpuId(cpu), room.min(4096)))
            .collect();
        for (cpu, state) in states.iter_mut().enumerate() {
            state.env.random = Rng::stream(plan.seed, &format!("cpu{cpu}")).next_u64() | 1;
            state.env.meter.tariff = costs.tariff(CpuId(cpu as u16));
        }
        for queue in &mq.queues {
            queue.with_pool(|pool| pool.lines.set_prices(costs.lines(), costs.overlap()));
        }
        let siblings = (0..cpus)
            .map(|cpu| sibling(profile, CpuId(cpu), cpus))
            .collect();
        let (tasks, workers) = tasks(plan, cpus);
        let arbiter = Arbiter::new(mq.lock_count(), usize::from(cpus) * OWNERS as usize);
        let hctxs: Vec<usize> = mq.queues.iter().map(|queue| queue.hctxs.len()).collect();
        Ok(Simulator {
            core: Core {
                now: SimTime::ZERO,
                events: EventQueue::with_capacity(room + 4 * usize::from(cpus) + 64),
                arbiter,
                costs,
                spent: Spent::default(),
                follower: None,
            },
            cpus: states,
            siblings,
            running_tasks: 0,
            tasks,
            work: KernelWork::new(&hctxs, workers),
            timers: Timers::new(&mq),
            devices,
            spare_actions: Vec::new(),
            spare_levels: Vec::with_capacity(usize::from(cpus)),
            outer: OuterLines::new(plan, &hctxs),
            recorder: Recorder::new(plan),
            plan: plan.clone(),
            mq,
            numbers,
            phase: 0,
            progress: Progress::new(plan),
            event_count: 0,
            turns: 0,
            begun: false,
            stopping: false,
            hints,
            replay: None,
        })
    }

    /// Puts a device of the caller's in the place of one of the plan's, which it gets to wrap or to
    /// drop: for models of one's own, and for defects on purpose. Only before the run.
    ///
    /// # Panics
    /// If there is no such device, or the run has begun.
    pub fn replace_device(
        &mut self,
        device: DeviceId,
        with: impl FnOnce(Box<dyn Device>) -> Box<dyn Device>,
    ) {
        assert!(!self.begun, "devices are not exchanged while they work");
        let old = self.devices.remove(device.index());
        let device_of_caller = with(old.device);
        let attached = Attached {
            device: device_of_caller,
            ..old
        };
        self.devices.insert(device.index(), attached);
    }

    /// Records every trace point from now on.
    pub fn trace(&mut self) {
        for cpu in &mut self.cpus {
            cpu.env.tracing = true;
            cpu.env.trace.reserve(64);
        }
    }

    /// Records what probes on the functions of schedulers would see, too. To be called after
    /// [`Self::trace`].
    pub fn probe(&mut self) {
        for cpu in &mut self.cpus {
            cpu.env.probing = true;
        }
    }

    /// Starts the threads of the current phase.
    pub(super) fn start_phase(&mut self) {
        let now = self.core.now;
        let mut measure_from = SimTime::ZERO;
        for index in 0..self.tasks.len() {
            let task = TaskId(index as u32);
            let Program::Fio(fio) = &mut self.tasks[index].program else {
                continue;
            };
            if fio.plan.phase != self.phase {
                continue;
            }
            let start = now + fio.plan.startdelay;
            fio.started = start;
            fio.count_from = start + fio.plan.ramp_time;
            fio.end_at = fio.count_from + fio.plan.runtime;
            measure_from = measure_from.max(fio.count_from);
            self.recorder.thread_started(fio.thread, fio.count_from);
            let generation = self.tasks[index].generation;
            self.core.events.push(
                start,
                class::CPU,
                Event::Resume(Of::new(task.0, generation)),
            );
            self.running_tasks += 1;
        }
        if self.phase == 0 {
            self.start_replay();
            self.start_changes();
            self.core
                .events
                .push(measure_from.max(now), class::TIMER, Event::Measure);
        }
    }

    /// Goes on to the next phase (stonewall). False if there is none.
    pub(super) fn next_phase(&mut self) -> bool {
        while self.phase + 1 < self.plan.phases && self.running_tasks == 0 {
            self.phase += 1;
            self.start_phase();
        }
        self.running_tasks > 0
    }

    /// The ramp is over: what was counted so far does not matter.
    pub(super) fn begin_measuring(&mut self) {
        let now = self.core.now;
        for cpu in &mut self.cpus {
            cpu.account_idle(now);
            cpu.reset_usage();
        }
        for task in &mut self.tasks {
            task.usage = TaskUsage::default();
        }
        self.core.arbiter.reset_stats();
        self.core.spent.clear();
        self.recorder.begin(now);
        self.window_opens();
    }

    /// Time by mode of each CPU since measuring began.
    pub(super) fn cpus_usage(&self) -> Vec<Usage> {
        self.cpus.iter().map(CpuState::usage).collect()
    }

    /// Time of each fio thread since measuring began, by its index in the plan.
    pub(super) fn threads_usage(&self) -> Vec<TaskUsage> {
        let mut usage = vec![TaskUsage::default(); self.plan.threads.len()];
        for task in &self.tasks {
            if let Program::Fio(fio) = &task.program {
                usage[fio.thread].add(task.usage);
            }
        }
        for cpu in &self.cpus {
            let Some(task) = cpu.current else { continue };
            if let Program::Fio(fio) = &self.tasks[task.index()].program {
                usage[fio.thread].add(cpu.task_usage());
            }
        }
        usage
    }
}

/// CPU of an hctx's interrupt vector: the first that maps to it.
fn vector_cpu(hctx: &blkmq::queue::HwQueue<Solo>) -> CpuId {
    hctx.cpumask.first().copied().unwrap_or_default()
}

fn sibling(profile: &MachineProfile, cpu: CpuId, cpus: u16) -> Option<CpuId> {
    (0..cpus)
        .map(CpuId)
        .find(|&other| profile.distance(cpu, other) == Distance::Sibling)
}

/// Tag sets and the queues on each, in the order of the plan's disks.
fn sets(plan: &Plan, profile: &MachineProfile) -> Vec<Vec<QueueConfig>> {
    let mut sets: Vec<Vec<QueueConfig>> = Vec::new();
    for disk in plan.queues() {
        assert!(
            disk.set.index() <= sets.len(),
            "disks of one tag set stand next to each other"
        );
        if disk.set.index() == sets.len() {
            sets.push(Vec::new());
        }
        sets[disk.set.index()].push(queue_config(plan, disk, profile));
    }
    sets
}

/// Settings of a disk's queue that follow from the plan.
pub fn queue_config(plan: &Plan, disk: &DiskPlan, profile: &MachineProfile) -> QueueConfig {
    let DiskPlan { queue, device, .. } = disk;
    let rules = queue.rules;
    let on_set = plan.queues().filter(|other| other.set == disk.set);
    let waiters: u32 = on_set.map(|other| other.capacity.waiters).sum();
    let scheduler = queue.scheduler.kind();
    let scheduled = scheduler != SchedulerKind::None;
    let ops = disk.facts().ops;
    let settings = QueueSettings {
        rules,
        limits: queue.limits,
        scheduler,
        nr_requests: queue.nr_requests,
        nr_requests_first: queue.nr_requests_first,
        nomerges: queue.nomerges,
        rq_affinity: queue.rq_affinity,
        hz: plan.machine.hz,
        driver_queue_rqs: ops.queue_rqs,
        queue_rqs_in_order: ops.queue_rqs_in_order,
        driver_commit_rqs: ops.commit_rqs,
        driver_budget: device.budget > 0,
        blocking: ops.blocking,
        should_merge: true,
        inline_runs: queue.inline_runs,
        slots_per_map: if scheduled {
            queue.nr_requests
        } else {
            device.queue_depth
        },
    };
    QueueConfig {
        settings,
        tags: TagSetConfig {
            queue_depth: device.queue_depth,
            counts: HctxCounts {
                default: device.default_queues,
                read: device.read_queues,
                poll: device.poll_queues,
            },
            hctx_shared: device.hctx_shared,
            vectors: ops.vectors,
            waiters: waiters as usize + 64,
            wait_queues: 8,
        },
        topology: profile.cpu_topology(plan.machine.cpus),
        elevator: queue.scheduler.clone(),
        further: queue.further.clone(),
        bios: disk.capacity.bios as usize + 64,
    }
}

/// Threads, their io_uring workers, one kblockd worker a CPU, and who changes schedulers.
fn tasks(plan: &Plan, cpus: u16) -> (Vec<Task>, Vec<TaskId>) {
    let asleep = |program: Program, allowed: Vec<CpuId>, worker: bool| Task {
        program,
        state: State::Sleeping,
        context: Some(LevelState::default()),
        plug: blkmq::path::Plug::default(),
        cpu: allowed[0],
        allowed,
        generation: 0,
        woken: SimTime::NEVER,
        worker,
        exits: None,
        usage: TaskUsage::default(),
    };
    let mut tasks = Vec::new();
    for (index, thread) in plan.threads.iter().enumerate() {
        let fio = FioTask::new(index, thread);
        let allowed: Vec<CpuId> = thread.cpus.iter().map(|&cpu| CpuId(cpu)).collect();
        let mut task = asleep(Program::Fio(Box::new(fio)), allowed, false);
        // Threads start spread over the CPUs they may use.
        task.cpu = task.allowed[index % task.allowed.len()];
        tasks.push(task);
    }
    for index in 0..plan.threads.len() {
        if plan.threads[index].engine != Engine::IoUring {
            continue;
        }
        let worker = IoWorker::new(TaskId(index as u32), plan.threads[index].iodepth as usize);
        let allowed = tasks[index].allowed.clone();
        let mut task = asleep(Program::IoWorker(Box::new(worker)), allowed, false);
        task.cpu = tasks[index].cpu;
        let id = TaskId(tasks.len() as u32);
        if let Program::Fio(fio) = &mut tasks[index].program {
            fio.worker = Some(id);
        }
        tasks.push(task);
    }
    let mut workers = Vec::new();
    for cpu in 0..cpus {
        workers.push(TaskId(tasks.len() as u32));
        tasks.push(asleep(
            Program::Kworker(Kworker::default()),
            vec![CpuId(cpu)],
            true,
        ));
    }
    if !plan.changes.is_empty() {
        let allowed = (0..cpus).map(CpuId).collect();
        tasks.push(asleep(Program::Writer(Writer::default()), allowed, false));
    }
    (tasks, workers)
}
