//! Setup of a machine from a plan, and the phases of its jobs.

use blkmq::elevator::{SchedulerKind, Submitter, Submitters};
use blkmq::path::BioWork;
use blkmq::queue::{
    Above, BlkMq, EndRuns, MappedConfig, QueueConfig, QueueSettings, SingleSettings,
};
use blkmq::request::{CpuId, QueueId};
use blkmq::rules::Rules;
use blkmq::tags::{HctxCounts, TagSetConfig};
use blkmq::time::{Jiffies, SimTime};

use super::bio_workers::BioWorkers;
use super::change::{self, Writer};
use super::cpus::Cpus;
use super::devices::Devices;
use super::dmsetup::{self, Dmsetup};
use super::fio::{Crew, FioTask, Life};
use super::flows::Flows;
use super::layer::Layer;
use super::lines::{OuterLines, lines_of};
use super::mapper::Mappers;
use super::mappings::Mappings;
use super::placement::Placement;
use super::progress::Progress;
use super::rings::Rings;
use super::servers::Servers;
use super::steady::Steady;
use super::targets::Targets;
use super::task::{Program, Task, TaskId, context_task, pid_of};
use super::tasks::Tasks;
use super::timer::Timers;
use super::work::{IoWorker, KernelWork, Kworker};
use super::{Event, Simulator, class};
use crate::device::Device;
use crate::plan::{self, DEFAULT_PRIORITY, DeviceId, DiskId, DiskPlan, Plan, ThreadPlan};
use crate::profile::MachineProfile;
use crate::recorder::Recorder;
use crate::rng::Rng;

impl Simulator {
    pub fn new(plan: &Plan, profile: &MachineProfile) -> Result<Simulator, String> {
        let mut hints = Rng::stream(plan.seed, "sbitmap/hints");
        let sets = sets(plan, profile);
        let mq: BlkMq = BlkMq::with_sets(&sets, &mut || hints.next_u64() as u32);
        let cpus = Cpus::new(plan, profile, mq.lock_count())?;
        let layer = Layer::new(plan, mq, hints);
        let mq = &layer.mq;
        let devices = Devices::new(plan, &layer);
        let costs = &cpus.core.costs;
        for queue in &mq.queues {
            queue.with_pool(|pool| pool.lines.set_prices(costs.lines(), costs.overlap()));
        }
        let (mut tasks, workers) = tasks(plan, profile);
        let mappers = mappers(plan, &layer, &mut tasks);
        let bio_workers = bio_workers(&layer, plan.machine.cpus, &mut tasks);
        let hctxs: Vec<usize> = mq.queues.iter().map(|queue| queue.hctxs.len()).collect();
        Ok(Simulator {
            cpus,
            tasks: Tasks::new(tasks, plan.machine.cpus),
            work: KernelWork::new(&hctxs, workers),
            mappers,
            bio_workers,
            timers: Timers::new(mq),
            targets: Targets::new(plan, &layer.numbers),
            devices,
            outer: OuterLines::new(plan, &hctxs),
            mappings: Mappings::new(plan),
            rings: Rings::new(plan),
            servers: Servers::new(plan),
            flows: Flows::new(plan),
            steady: Steady::new(plan),
            recorder: Recorder::new(plan),
            plan: plan.clone(),
            layer,
            phase: 0,
            progress: Progress::new(plan),
            event_count: 0,
            turns: 0,
            begun: false,
            replay: None,
        })
    }

    /// Replaces a device of the plan by one of the caller's, which gets the old one to wrap or to
    /// drop: for own device models, and for intentional defects. Only before the run.
    ///
    /// # Panics
    /// If there is no such device, or the run has begun.
    pub fn replace_device(
        &mut self,
        device: DeviceId,
        with: impl FnOnce(Box<dyn Device>) -> Box<dyn Device>,
    ) {
        assert!(!self.begun, "devices are not exchanged while they work");
        self.devices.replace(device, with);
    }

    /// Records every trace point from now on, and, if the run has not begun, the messages of
    /// schedulers between them.
    pub fn trace(&mut self) {
        if !self.begun {
            self.layer.mq.listen();
        }
        for cpu in self.cpus.iter_mut() {
            cpu.env.tracing = true;
            cpu.env.trace.reserve(64);
        }
    }

    /// Records what probes on the functions of schedulers would see, too. To be called after
    /// [`Self::trace`].
    pub fn probe(&mut self) {
        for cpu in self.cpus.iter_mut() {
            cpu.env.probing = true;
        }
    }

    /// Starts the threads of the current phase.
    pub(super) fn start_phase(&mut self) {
        let now = self.cpus.core.now;
        let mut measure_from = SimTime::ZERO;
        for index in 0..self.plan.threads.len() as u32 {
            let thread = &self.plan.threads[index as usize];
            if thread.phase == self.phase && thread.control.waits_for.is_none() {
                measure_from = measure_from.max(self.start_thread(TaskId(index)));
            }
        }
        if self.phase == 0 {
            self.steady.start(&mut self.cpus);
            self.servers.start(&mut self.cpus);
            let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
            if let Some(replay) = &self.replay {
                replay.start(cpus, tasks);
            }
            change::start(cpus, tasks, &self.plan.changes);
            dmsetup::start(cpus, tasks);
            self.targets.start(cpus);
            self.cpus
                .core
                .events
                .push(measure_from.max(now), class::TIMER, Event::Measure);
        }
    }

    /// Starts a thread, unless others have ended it already. When its measured time begins.
    fn start_thread(&mut self, task: TaskId) -> SimTime {
        let now = self.cpus.core.now;
        let Program::Fio(Some(fio)) = &mut self.tasks[task].program else {
            unreachable!("fio threads are the first tasks, in the order of the plan")
        };
        let start = now + fio.plan.startdelay;
        if let Some(control) = &mut fio.control {
            if control.terminated {
                control.life = Life::Ended;
                return SimTime::ZERO;
            }
            control.starts(start);
        }
        fio.started = start;
        fio.count_from = start + fio.plan.ramp_time;
        fio.end_at = fio.count_from + fio.plan.runtime;
        let count_from = fio.count_from;
        self.recorder.thread_started(fio.thread, start, count_from);
        self.tasks.sleep_until(&mut self.cpus, task, start);
        self.tasks.running += 1;
        count_from
    }

    /// Starts the threads of the phases so far whose wait_for has ended.
    #[cold]
    pub(super) fn start_waiting(&mut self) {
        let waits = |thread: &ThreadPlan| thread.control.waits_for.is_some();
        // One that does not start ends the wait of others.
        loop {
            let threads = (0..).map(TaskId).zip(&self.plan.threads);
            let mut waiting = threads.filter(|(_, thread)| waits(thread));
            let ready = waiting.find(|&(task, thread)| {
                thread.phase <= self.phase
                    && self.life(task) == Life::Waits
                    && self.has_ended(thread.control.waits_for)
            });
            let Some((task, _)) = ready else { return };
            self.start_thread(task);
        }
    }

    fn life(&self, task: TaskId) -> Life {
        match &self.tasks[task].program {
            Program::Fio(Some(fio)) => fio.control.as_ref().map_or(Life::Runs, |c| c.life),
            _ => Life::Runs,
        }
    }

    /// All threads of the job with this number have ended.
    fn has_ended(&self, job: Option<u16>) -> bool {
        let threads = (0..).map(TaskId).zip(&self.plan.threads);
        let mut of_job = threads.filter(|(_, thread)| Some(thread.job) == job);
        of_job.all(|(task, _)| self.life(task) == Life::Ended)
    }

    /// Goes on to the next phase (stonewall). False if there is none.
    pub(super) fn next_phase(&mut self) -> bool {
        self.start_waiting();
        while self.phase + 1 < self.plan.phases && self.tasks.running == 0 {
            self.phase += 1;
            self.start_phase();
            self.start_waiting();
        }
        self.tasks.running > 0
    }
}

/// Tag sets and the queues on each, in the order of the plan's disks.
fn sets(plan: &Plan, profile: &MachineProfile) -> Vec<Vec<QueueConfig>> {
    let mut sets: Vec<Vec<QueueConfig>> = Vec::new();
    // Disks have the numbers of their queues; queues of paths follow after all of them.
    let above = plan.disks.iter().map(|_| None);
    let above = above.chain(plan.paths().into_iter().map(|(disk, _)| Some(disk)));
    for (number, (above, disk)) in (0..).zip(above.zip(plan.queues())) {
        assert!(
            disk.set.index() <= sets.len(),
            "disks of one tag set are adjacent"
        );
        if disk.set.index() == sets.len() {
            sets.push(Vec::new());
        }
        let mut config = queue_config(plan, disk, profile);
        config.above = above.map(|disk| {
            let queue = QueueId(disk.0);
            match plan.disks[disk.index()].maps_bios() {
                true => Above::Bios(queue),
                false => Above::Requests(queue),
            }
        });
        if above.is_none() {
            let queues = plan.queues_below(DiskId(number));
            config.mapped = mapped_config(plan, disk, profile, queues);
        }
        sets[disk.set.index()].push(config);
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
    let ops = disk.info().ops;
    let settings = QueueSettings {
        rules,
        limits: queue.limits,
        scheduler,
        nr_requests: queue.nr_requests,
        nr_requests_first: queue.nr_requests_first,
        nomerges: queue.nomerges,
        rq_affinity: queue.rq_affinity,
        hz: plan.machine.hz,
        io_timeout: Jiffies::from_millis(queue.io_timeout.0.div_ceil(1_000_000), plan.machine.hz),
        driver_queue_rqs: ops.queue_rqs,
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
        rotational: device.rotational,
        rotational_when_chosen: device.rotational_when_chosen,
        access_ranges: device.access_ranges.clone(),
        submitters: submitters(plan),
        log: false,
        single: single_settings(rules, disk),
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
            tasks: tasks_most(plan) + waiters as usize,
            wait_queues: 8,
        },
        topology: profile.cpu_topology(plan.machine.cpus),
        elevator: queue.scheduler.clone(),
        further: queue.further.clone(),
        bios: match disk.capacity.requests {
            0 => 0,
            _ => disk.capacity.bios as usize + 64,
        },
        mapped: None,
        above: None,
    }
}

/// Setup of the queues below a mapped disk.
fn mapped_config(
    plan: &Plan,
    disk: &DiskPlan,
    profile: &MachineProfile,
    below: Vec<QueueId>,
) -> Option<MappedConfig> {
    let mapped = disk.mapped()?;
    let node = |cpu| {
        profile.core(CpuId(cpu))
            / (profile.topology.cores_per_die * profile.topology.dies_per_socket)
    };
    Some(MappedConfig {
        table: mapped.table.clone(),
        below,
        nodes: (0..plan.machine.cpus).map(node).collect(),
        timeout_secs: mapped.timeout_secs,
    })
}

/// A thread for each mapped device of the single-queue kind (kdmwork), which may run on any CPU.
fn mappers(plan: &Plan, layer: &Layer, tasks: &mut Vec<Task>) -> Mappers {
    let mut mappers = Mappers::default();
    let own = |(_, disk): &(DiskId, &DiskPlan)| disk.queue.rules.single_queue.is_some();
    let disks = (0..).map(DiskId).zip(&plan.disks);
    let mapped = disks.filter(|(_, disk)| disk.mapped().is_some());
    for (number, (disk, of)) in mapped.filter(own).enumerate() {
        let allowed = (0..plan.machine.cpus).map(CpuId).collect();
        let task = TaskId(tasks.len() as u32);
        tasks.push(Task::asleep(Program::Mapper(number), allowed));
        let room = of.capacity.requests as usize;
        mappers.add(layer.numbers.queue_of(disk), task, room);
    }
    mappers
}

/// A worker for each work item of each bio-based device.
fn bio_workers(layer: &Layer, cpus: u16, tasks: &mut Vec<Task>) -> BioWorkers {
    let mut workers = BioWorkers::default();
    let mapped = layer.mq.queues.iter();
    let bio_based = mapped.filter(|q| q.mapped.as_ref().is_some_and(|m| m.bios.is_some()));
    let items = bio_based.flat_map(|q| BioWork::ALL.map(|what| (q.id, what)));
    for (number, (queue, what)) in items.enumerate() {
        let allowed = (0..cpus).map(CpuId).collect();
        workers.add(queue, what, TaskId(tasks.len() as u32));
        tasks.push(Task::asleep(Program::BioWorker(number), allowed));
    }
    workers
}

/// Properties of the driver of a single-queue one.
fn single_settings(rules: Rules, disk: &DiskPlan) -> Option<SingleSettings> {
    rules.single_queue?;
    let device = &disk.device;
    if disk.mapped().is_some() {
        // The paths have limits, the mapped device has none.
        return Some(SingleSettings {
            depth: u32::MAX,
            end_runs: EndRuns::ByDriver,
        });
    }
    let (tags, budget) = (device.queue_depth, device.budget);
    // A driver that checks for room before it takes a request has each end run the queue, as SCSI
    // does; one that does not stops its queue when it is full.
    let looks = budget > 0 || device.rotational;
    Some(SingleSettings {
        depth: if budget > 0 { tags.min(budget) } else { tags },
        end_runs: match looks {
            true => EndRuns::Always,
            false => EndRuns::IfStopped,
        },
    })
}

/// Tasks that submit, as schedulers see them: fio's threads and, for each with io_uring, its
/// worker, in the order of tasks.
fn submitters(plan: &Plan) -> Submitters {
    let none = Submitter::default();
    let threads = plan.threads.iter().chain(plan.of_workers());
    let submitter = |(index, thread): (usize, &ThreadPlan)| Submitter {
        pid: pid_of(TaskId(index as u32)).cast_signed(),
        ioprio: thread.priority,
        nice: DEFAULT_PRIORITY,
    };
    let known = threads.enumerate().map(submitter);
    Submitters {
        tasks: [none].into_iter().chain(known).collect(),
        groups: plan.groups.clone(),
    }
}

/// Most tasks, without those of a replay, which are the waiters of its disk.
fn tasks_most(plan: &Plan) -> usize {
    let of_devices = plan.disks.len() * BioWork::ALL.len();
    plan.threads.len() + plan.of_workers().count() + usize::from(plan.machine.cpus) + 2 + of_devices
}

/// Threads, their io_uring workers, one kblockd worker a CPU, and the process that changes
/// schedulers.
fn tasks(plan: &Plan, profile: &MachineProfile) -> (Vec<Task>, Vec<TaskId>) {
    let cpus = plan.machine.cpus;
    let mut placement = Placement::new(profile, cpus);
    let mut tasks = Vec::new();
    let mut row = 0;
    for (index, thread) in plan.threads.iter().enumerate() {
        let mut fio = FioTask::new(index, thread, &plan.disks);
        fio.row = row;
        row += lines_of(thread.iodepth);
        let allowed: Vec<CpuId> = thread.cpus.iter().map(|&cpu| CpuId(cpu)).collect();
        let mut task = Task::asleep(Program::Fio(Some(Box::new(fio))), allowed);
        // The placement when fio's threads run: `placement.rs`.
        let at_fork = thread.submitter != plan::Submitter::Fio;
        task.cpu = placement.next(&task.allowed, at_fork);
        task.context_of = Some(context_task(index, thread));
        tasks.push(task);
    }
    for (index, thread) in plan.threads.iter().enumerate() {
        let (first, count) = (TaskId(tasks.len() as u32), thread.workers(cpus));
        for number in 0..count {
            let owner = TaskId(index as u32);
            let program = if thread.hires() {
                let (task, number) = (TaskId(first.0 + number), number as usize);
                let of = (index, thread, owner);
                let fio = FioTask::hired(of, &plan.disks, (task, number, row));
                row += lines_of(1);
                Program::Fio(Some(Box::new(fio)))
            } else {
                let worker = match number {
                    0 => IoWorker::new(owner, thread.iodepth as usize),
                    _ => IoWorker::beside(first, owner),
                };
                Program::IoWorker(Box::new(worker))
            };
            let allowed = tasks[index].allowed.clone();
            let mut task = Task::asleep(program, allowed);
            task.cpu = tasks[index].cpu;
            tasks.push(task);
        }
        if let Program::Fio(Some(fio)) = &mut tasks[index].program
            && count > 0
        {
            match thread.offload {
                true => fio.crew = Some(Box::new(Crew::new(first, count))),
                false => fio.worker = Some(first),
            }
        }
    }
    let mut workers = Vec::new();
    for cpu in 0..cpus {
        workers.push(TaskId(tasks.len() as u32));
        let program = Program::Kworker(Kworker::default());
        tasks.push(Task::asleep(program, vec![CpuId(cpu)]));
    }
    if !plan.changes.is_empty() {
        let allowed = (0..cpus).map(CpuId).collect();
        let program = Program::Writer(Writer::default());
        tasks.push(Task::asleep(program, allowed));
    }
    if let Some(dmsetup) = Dmsetup::of(plan) {
        let allowed = (0..cpus).map(CpuId).collect();
        let program = Program::Dmsetup(Box::new(dmsetup));
        tasks.push(Task::asleep(program, allowed));
    }
    (tasks, workers)
}
