//! Kernel workers: kblockd's work items, and io_uring's workers.
//!
//! Each hctx has exactly one work item. Queueing it again steals it, from its timer or from the
//! worker that it waits for, and queues it on the CPU that is chosen now; before v4.15 it stays
//! where it is. A running item is not stolen: it is queued once more, where it runs. Kernel:
//! mod_delayed_work_on(), try_to_grab_pending(), __queue_work() in kernel/workqueue.c,
//! blk_mq_hctx_next_cpu(), io_uring/io-wq.c (6.1.192, 6.12.117).

use blkmq::drive::Kick;
use blkmq::path::{Frame, TargetPath, TimeoutPath, ToTarget, Unplug};
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, HctxId, QueueId};
use blkmq::time::{Duration, SimTime};

use super::burst::owner;
use super::cpu::Mode;
use super::cpus::Cpus;
use super::event::{Event, Of, class};
use super::fio::OwnPlug;
use super::handed::Handed;
use super::layer::Layer;
use super::targets::Targets;
use super::task::{Program, TaskId, Turn};
use super::tasks::Tasks;
use crate::cost::Step;
use crate::recorder::WorkItems;

/// BLK_MQ_CPU_WORK_BATCH.
const WORK_BATCH: u8 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Idle,
    /// Its timer runs, which will queue it on this CPU; the generation voids older timers.
    Delayed(CpuId),
    /// In the queue of a worker.
    Queued(CpuId),
    /// Being executed; `Some`: queued again meanwhile.
    Running(Option<Again>),
}

/// Items for which a worker has room at once; for more the list grows.
const ITEMS_A_CPU: usize = 256;

/// A work item is queued again while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Again {
    delay: Duration,
    /// When that was asked for.
    asked: SimTime,
    /// Where a timer will queue it; without delay it is queued where it runs.
    target: CpuId,
}

#[derive(Clone, Copy, Debug)]
struct HctxWork {
    item: Item,
    generation: u32,
    next_cpu: usize,
    batch: u8,
    /// Only CPUs of other hctxs have queued it; known while a run is watched.
    foreign: bool,
}

#[derive(Clone, Debug)]
struct QueueWork {
    hctxs: Vec<HctxWork>,
    requeue: Item,
    /// Moves when requeue_work is delayed or asked for at once: older events are void.
    requeue_generation: u32,
    timeout: Timeout,
}

/// timeout_work of a queue, and its timer.
#[derive(Clone, Copy, Debug)]
struct Timeout {
    item: Item,
    /// Moves when the timer is set: older events are void.
    generation: u32,
    /// The CPU of the timer: the work will run there.
    cpu: CpuId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    Hctx(QueueId, HctxId),
    /// requeue_work of this queue; unplug_work of a single-queue one.
    Requeue(QueueId),
    Timeout(QueueId),
    /// A call to the target of this queue.
    ToTarget(QueueId, ToTarget),
}

impl Job {
    fn count(self, mq: &BlkMq, items: &mut WorkItems) {
        let count = match self {
            Job::Hctx(queue, _) if mq.queue(queue).mapped.is_some() => &mut items.runs_above,
            Job::Hctx(..) => &mut items.runs,
            Job::Requeue(_) => &mut items.requeues,
            Job::Timeout(_) | Job::ToTarget(..) => &mut items.others,
        };
        *count += 1;
    }
}

#[derive(Clone, Debug)]
pub(super) struct KernelWork {
    of_queues: Vec<QueueWork>,
    queues: Vec<Handed<Job>>,
    workers: Vec<TaskId>,
}

/// Source of work: a CPU, at its own time but not before `from`.
#[derive(Clone, Copy, Debug)]
struct Asker {
    cpu: CpuId,
    from: SimTime,
}

/// kblockd's worker of one CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Kworker {
    running: Option<Job>,
}

/// io_uring's workers of one thread (io-wq): they submit I/Os that would block, and run operations
/// that block.
///
/// One task for all of them: while one waits for its fsync(2) the next goes on with later I/Os, as
/// io-wq creates a worker for each that sleeps. With force_async each is a task, and takes from the
/// list of the first.
#[derive(Clone, Debug)]
pub(super) struct IoWorker {
    /// The first worker; none if this is the first.
    first: Option<TaskId>,
    /// The thread that owns the I/Os.
    pub(super) owner: TaskId,
    /// Slots of I/Os to be submitted.
    pub(super) queue: Handed<u32>,
    /// Slots of I/Os that a worker waited for, to be posted.
    pub(super) ended: Handed<u32>,
    pub(super) own_plug: OwnPlug,
}

impl Kworker {
    /// Its current work, for stall reports.
    pub(super) fn describe(&self) -> String {
        match self.running {
            Some(Job::Hctx(queue, hctx)) => format!("runs hctx {} of queue {queue}", hctx.0),
            Some(Job::Requeue(queue)) => format!("requeues requests of queue {queue}"),
            Some(Job::Timeout(queue)) => format!("looks for timeouts of queue {queue}"),
            Some(Job::ToTarget(queue, what)) => {
                format!("calls the target of queue {queue} {what:?}")
            }
            None => "looks for work".to_owned(),
        }
    }
}

impl IoWorker {
    pub(super) fn new(owner: TaskId, depth: usize) -> IoWorker {
        IoWorker {
            first: None,
            owner,
            queue: Handed::with_capacity(depth),
            ended: Handed::with_capacity(depth),
            own_plug: OwnPlug::default(),
        }
    }

    /// One that takes from the list of the first.
    pub(super) fn beside(first: TaskId, owner: TaskId) -> IoWorker {
        IoWorker {
            first: Some(first),
            ..IoWorker::new(owner, 0)
        }
    }

    /// Posts an ended I/O, or submits the next one, which may block.
    pub(super) fn turn(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        layer: &Layer,
        id: CpuId,
    ) -> Turn {
        if self.own_plug.flushes(cpus, id, Unplug::Finish) {
            return Turn::Again;
        }
        if let Some(slot) = self.ended.take(cpus.at(id)) {
            cpus.charge_as(id, Step::UringComplete, Mode::System);
            tasks.post(cpus, id, self.owner, slot);
            return Turn::Again;
        }
        let now = cpus.at(id);
        let (taken, next) = match self.first {
            None => (self.queue.take(now), self.queue.next_time()),
            Some(first) => {
                let Program::IoWorker(first) = &mut tasks[first].program else {
                    unreachable!("only one worker takes its turn at a time")
                };
                (first.queue.take(now), first.queue.next_time())
            }
        };
        let Some(slot) = taken else {
            let times = [next, self.ended.next_time()];
            let next = times.into_iter().flatten().min();
            return next.map_or(Turn::Sleep, Turn::Pause);
        };
        cpus.charge_as(id, Step::Worker, Mode::System);
        tasks.submit_slot(cpus, layer, id, self, slot);
        Turn::Again
    }
}

impl KernelWork {
    /// All idle. `hctxs`: how many each queue has.
    pub(super) fn new(hctxs: &[usize], workers: Vec<TaskId>) -> KernelWork {
        let idle = HctxWork {
            item: Item::Idle,
            generation: 0,
            next_cpu: 0,
            batch: WORK_BATCH,
            foreign: false,
        };
        let items = hctxs.iter().map(|&count| count + 2).sum::<usize>();
        KernelWork {
            of_queues: hctxs
                .iter()
                .map(|&count| QueueWork {
                    hctxs: vec![idle; count],
                    requeue: Item::Idle,
                    requeue_generation: 0,
                    timeout: Timeout {
                        item: Item::Idle,
                        generation: 0,
                        cpu: CpuId(0),
                    },
                })
                .collect(),
            // `vec!` would copy one, and a copy has no room.
            queues: (0..workers.len())
                .map(|_| Handed::with_capacity(items.min(ITEMS_A_CPU)))
                .collect(),
            workers,
        }
    }

    /// Items that are not idle, for stall reports.
    pub(super) fn pending(&self) -> usize {
        let hctxs = self.of_queues.iter().flat_map(|queue| &queue.hctxs);
        let requeues = self.of_queues.iter().map(|queue| queue.requeue);
        let timeouts = self.of_queues.iter().map(|queue| queue.timeout.item);
        let items = hctxs.map(|work| work.item).chain(requeues).chain(timeouts);
        items.filter(|item| *item != Item::Idle).count()
    }

    fn of(&mut self, queue: QueueId, hctx: HctxId) -> &mut HctxWork {
        &mut self.of_queues[queue.index()].hctxs[usize::from(hctx.0)]
    }

    fn timeout(&mut self, queue: QueueId) -> &mut Timeout {
        &mut self.of_queues[queue.index()].timeout
    }

    /// mod_timer() of a queue's timeout timer, by CPU `id`.
    pub(super) fn set_timeout(
        &mut self,
        cpus: &mut Cpus,
        id: CpuId,
        queue: QueueId,
        after: Duration,
    ) {
        let due = cpus.tick_after(cpus.at(id), after);
        let timeout = self.timeout(queue);
        timeout.generation = timeout.generation.wrapping_add(1);
        timeout.cpu = id;
        let whom = Of::part(queue.0, 0, timeout.generation);
        let timers = &mut cpus.core.events;
        timers.push(due, class::TIMER, Event::Timeout(whom));
    }

    /// blk_rq_timed_out_timer(): the work goes to the CPU that set the timer.
    pub(super) fn timed_out(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, mq: &BlkMq, whom: Of) {
        let queue = whom.queue();
        let timeout = *self.timeout(queue);
        if timeout.generation != whom.detail() {
            return;
        }
        mq.timer_expires(queue);
        self.queue_timeout(cpus, tasks, Asker::now(timeout.cpu), queue);
    }

    fn queue_timeout(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, by: Asker, queue: QueueId) {
        let asked = by.at(cpus);
        let item = &mut self.timeout(queue).item;
        match *item {
            Item::Running(_) => {
                *item = Item::Running(Some(Again {
                    delay: Duration::ZERO,
                    asked,
                    target: by.cpu,
                }));
            }
            Item::Queued(_) | Item::Delayed(_) => {}
            Item::Idle => {
                *item = Item::Queued(by.cpu);
                self.enqueue(cpus, tasks, by, by.cpu, Job::Timeout(queue));
            }
        }
    }

    fn requeue(&mut self, queue: QueueId) -> &mut Item {
        &mut self.of_queues[queue.index()].requeue
    }

    /// blk_mq_delay_run_hw_queue() on behalf of CPU `from`.
    pub(super) fn kick(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        mq: &BlkMq,
        from: CpuId,
        kick: Kick,
    ) {
        let by = Asker::now(from);
        let Kick {
            queue, hctx, delay, ..
        } = kick;
        if mq.queue(queue).hctx(hctx).stopped.peek() {
            return;
        }
        if cpus.core.arbiter.watch.is_some() {
            self.note_asker(mq, from, kick);
        }
        cpus.item_queued(queue, delay.0 > 0);
        let item = self.of(queue, hctx).item;
        let pending = !matches!(item, Item::Idle | Item::Running(None));
        if pending && kick.unless_pending {
            return;
        }
        let target = self.next_cpu(mq, by.cpu, queue, hctx);
        if pending && stays(mq, queue) {
            return;
        }
        if !cpus[by.cpu].is_idle() {
            cpus.charge(by.cpu, Step::QueueWork);
        }
        match item {
            Item::Running(_) => {
                let again = Again {
                    delay,
                    asked: by.at(cpus),
                    target,
                };
                self.of(queue, hctx).item = Item::Running(Some(again));
                return;
            }
            Item::Queued(cpu) => self.steal(cpu, Job::Hctx(queue, hctx)),
            Item::Idle | Item::Delayed(_) => {}
        }
        self.start(cpus, tasks, by, (queue, hctx), (delay, target));
    }

    /// A run that several CPUs asked for is foreign if it is so for all of them.
    #[cold]
    fn note_asker(&mut self, mq: &BlkMq, from: CpuId, kick: Kick) {
        let served = mq.queue(kick.queue).hctx(kick.hctx).serves(from);
        let work = self.of(kick.queue, kick.hctx);
        let pending = !matches!(work.item, Item::Idle | Item::Running(None));
        work.foreign = !served && (work.foreign || !pending);
    }

    /// try_to_grab_pending() of an item that waits for the worker of this CPU.
    fn steal(&mut self, cpu: CpuId, job: Job) {
        self.queues[usize::from(cpu.0)].retain(|&other| other != job);
    }

    /// __queue_delayed_work(): queues an item, or has a timer do it.
    fn start(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        by: Asker,
        (queue, hctx): (QueueId, HctxId),
        (delay, target): (Duration, CpuId),
    ) {
        if delay.0 == 0 {
            self.of(queue, hctx).item = Item::Queued(target);
            self.enqueue(cpus, tasks, by, target, Job::Hctx(queue, hctx));
            return;
        }
        let due = cpus.tick_after(by.at(cpus), delay);
        let work = self.of(queue, hctx);
        work.item = Item::Delayed(target);
        work.generation = work.generation.wrapping_add(1);
        let whom = Of::part(queue.0, hctx.0, work.generation);
        cpus.core.events.push(due, class::TIMER, Event::Work(whom));
    }

    /// A delay is over: the timer is that of the CPU which gets the item.
    pub(super) fn due(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, of: Of) {
        let (queue, hctx) = (QueueId(of.part_of()), HctxId(of.whom() as u16));
        let work = *self.of(queue, hctx);
        if let Item::Delayed(target) = work.item
            && work.generation == of.detail()
        {
            let (by, at_once) = (Asker::now(target), (Duration::ZERO, target));
            self.start(cpus, tasks, by, (queue, hctx), at_once);
        }
    }

    /// blk_mq_hctx_next_cpu(): eight items on a CPU, then the next of the hctx; with one hctx
    /// (WORK_CPU_UNBOUND, and kblockd's workers are bound) the CPU that asks.
    fn next_cpu(&mut self, mq: &BlkMq, from: CpuId, queue: QueueId, hctx: HctxId) -> CpuId {
        let q = mq.queue(queue);
        let mask = &q.hctx(hctx).cpumask;
        if q.hctxs.len() == 1 || mask.is_empty() {
            return from;
        }
        let work = self.of(queue, hctx);
        work.batch -= 1;
        if work.batch == 0 {
            work.batch = WORK_BATCH;
            work.next_cpu = (work.next_cpu + 1) % mask.len();
        }
        mask[work.next_cpu]
    }

    /// A worker gets an item.
    fn enqueue(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, by: Asker, target: CpuId, job: Job) {
        let at = by.at(cpus);
        self.queues[usize::from(target.0)].give(at, job);
        let worker = self.workers[usize::from(target.0)];
        if !cpus[by.cpu].is_idle() {
            cpus.charge(by.cpu, Step::Wake);
        }
        tasks.wake(cpus, worker, by.cpu, at);
    }

    /// blk_mq_kick_requeue_list() on behalf of CPU `from`.
    pub(super) fn kick_requeue(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        mq: &BlkMq,
        from: CpuId,
        queue: QueueId,
    ) {
        if self.requeue_stays(mq, queue) {
            return;
        }
        self.kick_requeue_after(cpus, tasks, Asker::now(from), queue);
    }

    /// requeue_work waits, and stays as it is, with its time.
    fn requeue_stays(&mut self, mq: &BlkMq, queue: QueueId) -> bool {
        let item = *self.requeue(queue);
        stays(mq, queue) && !matches!(item, Item::Idle | Item::Running(None))
    }

    fn kick_requeue_after(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        by: Asker,
        queue: QueueId,
    ) {
        let asked = by.at(cpus);
        let item = self.requeue(queue);
        match *item {
            Item::Running(_) => {
                *item = Item::Running(Some(Again {
                    delay: Duration::ZERO,
                    asked,
                    target: by.cpu,
                }));
            }
            pending => {
                // A timer that runs is void from now on.
                self.of_queues[queue.index()].requeue_generation += 1;
                *self.requeue(queue) = Item::Queued(by.cpu);
                if let Item::Queued(cpu) = pending {
                    self.steal(cpu, Job::Requeue(queue));
                }
                let by = Asker { from: asked, ..by };
                self.enqueue(cpus, tasks, by, by.cpu, Job::Requeue(queue));
            }
        }
    }

    /// blk_mq_delay_kick_requeue_list() on behalf of CPU `from`.
    pub(super) fn kick_requeue_later(
        &mut self,
        cpus: &mut Cpus,
        mq: &BlkMq,
        from: CpuId,
        (queue, after): (QueueId, Duration),
    ) {
        if !self.requeue_stays(mq, queue) {
            self.delay_requeue(cpus, from, queue, after);
        }
    }

    /// Replaces an earlier delay.
    fn delay_requeue(&mut self, cpus: &mut Cpus, from: CpuId, queue: QueueId, after: Duration) {
        let asked = cpus.at(from);
        match *self.requeue(queue) {
            Item::Running(_) => {
                *self.requeue(queue) = Item::Running(Some(Again {
                    delay: after,
                    asked,
                    target: from,
                }));
                return;
            }
            Item::Queued(cpu) => self.steal(cpu, Job::Requeue(queue)),
            Item::Idle | Item::Delayed(_) => {}
        }
        *self.requeue(queue) = Item::Delayed(from);
        let work = &mut self.of_queues[queue.index()];
        work.requeue_generation += 1;
        let whom = Of::part(queue.0, 0, work.requeue_generation);
        let due = cpus.tick_after(asked, after);
        cpus.core
            .events
            .push(due, class::TIMER, Event::Requeue(whom));
    }

    pub(super) fn requeue_due(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, of: Of) {
        let queue = of.queue();
        let work = &self.of_queues[queue.index()];
        if let Item::Delayed(target) = work.requeue
            && work.requeue_generation == of.detail()
        {
            self.kick_requeue_after(cpus, tasks, Asker::now(target), queue);
        }
    }

    /// Queues a call to the target of a mapped queue.
    pub(super) fn send_to_target(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        cpu: CpuId,
        (queue, what): (QueueId, ToTarget),
    ) {
        self.enqueue(
            cpus,
            tasks,
            Asker::now(cpu),
            cpu,
            Job::ToTarget(queue, what),
        );
    }

    /// The worker of a CPU takes its next item.
    pub(super) fn turn(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        (mq, targets): (&BlkMq, &mut Targets),
        id: CpuId,
        worker: &mut Kworker,
    ) -> Turn {
        if let Some(done) = worker.running.take() {
            self.finish(cpus, tasks, id, done);
            if let Job::ToTarget(queue, what) = done {
                let answer = core::mem::take(&mut cpus[id].env.answer);
                targets.heard(cpus, id, (queue, what), answer);
            }
            return Turn::Again;
        }
        let now = cpus.at(id);
        let queue = &mut self.queues[usize::from(id.0)];
        let Some(job) = queue.take(now) else {
            return queue.next_time().map_or(Turn::Sleep, Turn::Pause);
        };
        cpus.charge_as(id, Step::Worker, Mode::System);
        worker.running = Some(job);
        job.count(mq, &mut cpus[id].items);
        let frame = match job {
            Job::Hctx(queue, hctx) => {
                let work = self.of(queue, hctx);
                work.item = Item::Running(None);
                if work.foreign {
                    let worker = owner(id, cpus[id].level);
                    cpus.core.arbiter.run_is_foreign(queue, worker);
                }
                cpus.item_begins(mq, id, queue);
                mq.works(queue, hctx)
            }
            Job::Requeue(queue) => {
                *self.requeue(queue) = Item::Running(None);
                mq.requeues(queue)
            }
            Job::Timeout(queue) => {
                self.timeout(queue).item = Item::Running(None);
                Frame::Timeout(TimeoutPath::new(queue))
            }
            Job::ToTarget(queue, what) => Frame::Target(TargetPath::new(queue, what)),
        };
        cpus.push(id, frame);
        Turn::Again
    }

    fn finish(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, id: CpuId, job: Job) {
        let item = match job {
            Job::Hctx(queue, hctx) => &mut self.of(queue, hctx).item,
            Job::Requeue(queue) => self.requeue(queue),
            Job::Timeout(queue) => &mut self.timeout(queue).item,
            Job::ToTarget(..) => return,
        };
        let Item::Running(Some(again)) = core::mem::replace(item, Item::Idle) else {
            return;
        };
        let Again {
            delay,
            asked,
            target,
        } = again;
        let by = Asker {
            cpu: id,
            from: asked,
        };
        match job {
            Job::Hctx(queue, hctx) => {
                // It is queued where it was running, so that it does not run twice at a time.
                let target = if delay.0 == 0 { id } else { target };
                self.start(cpus, tasks, by, (queue, hctx), (delay, target));
            }
            Job::Requeue(queue) if delay.0 > 0 => {
                self.delay_requeue(cpus, id, queue, delay);
            }
            Job::Requeue(queue) => self.kick_requeue_after(cpus, tasks, by, queue),
            Job::ToTarget(..) => unreachable!("it is queued once"),
            Job::Timeout(queue) => self.queue_timeout(cpus, tasks, by, queue),
        }
    }
}

/// An item that waits is left where it is.
fn stays(mq: &BlkMq, queue: QueueId) -> bool {
    mq.queue(queue).settings.rules.restart.waiting_item.stays()
}

impl Asker {
    fn now(cpu: CpuId) -> Asker {
        let from = SimTime::ZERO;
        Asker { cpu, from }
    }

    fn at(self, cpus: &Cpus) -> SimTime {
        cpus.at(self.cpu).max(self.from)
    }
}

#[cfg(test)]
mod tests;
