//! Kernel workers: kblockd's work items, and io_uring's workers.
//!
//! Each hctx has exactly one work item; a new request for it replaces a pending one
//! (mod_delayed_work). Kernel: kernel/workqueue.c, blk_mq_hctx_next_cpu(), io_uring/io-wq.c.

use blkmq::path::{Frame, RequeuePath, RunPath};
use blkmq::request::{CpuId, HctxId, QueueId};
use blkmq::time::{Duration, Jiffies, SimTime};

use super::cpu::Mode;
use super::handed::Handed;
use super::task::{TaskId, Turn};
use super::{Event, Of, Simulator, class};
use crate::cost::Step;

/// BLK_MQ_CPU_WORK_BATCH.
const WORK_BATCH: u8 = 8;

/// State of a work item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Idle,
    /// Its timer runs; the generation voids older timers.
    Delayed,
    /// In the queue of a worker.
    Queued(CpuId),
    /// Being executed; asked for again meanwhile.
    Running(Option<Again>),
}

/// A work item is wanted once more while it is being executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Again {
    delay: Duration,
    /// When that was asked for.
    asked: SimTime,
}

/// A work item of an hctx.
#[derive(Clone, Copy, Debug)]
struct HctxWork {
    item: Item,
    generation: u32,
    next_cpu: usize,
    batch: u8,
}

/// Work items of a queue.
#[derive(Clone, Debug)]
struct QueueWork {
    hctxs: Vec<HctxWork>,
    requeue: Item,
}

/// What a worker executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    /// A run of this queue's hctx.
    Hctx(QueueId, HctxId),
    /// requeue_work of this queue.
    Requeue(QueueId),
}

/// All work items.
#[derive(Clone, Debug)]
pub(super) struct KernelWork {
    of_queues: Vec<QueueWork>,
    queues: Vec<Handed<Job>>,
    workers: Vec<TaskId>,
}

/// kblockd's worker of one CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Kworker {
    running: Option<Job>,
}

/// io_uring's worker of one thread: submits what would block.
#[derive(Clone, Debug)]
pub(super) struct IoWorker {
    /// The thread whose I/Os they are.
    pub(super) owner: TaskId,
    /// Slots of I/Os to be submitted.
    pub(super) queue: Handed<u32>,
}

impl Kworker {
    /// What it is about, for stall reports.
    pub(super) fn describe(&self) -> String {
        match self.running {
            Some(Job::Hctx(queue, hctx)) => format!("runs hctx {} of queue {queue}", hctx.0),
            Some(Job::Requeue(queue)) => format!("requeues requests of queue {queue}"),
            None => "looks for work".to_owned(),
        }
    }
}

impl IoWorker {
    pub(super) fn new(owner: TaskId, depth: usize) -> IoWorker {
        IoWorker {
            owner,
            queue: Handed::with_capacity(depth),
        }
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
        };
        KernelWork {
            of_queues: hctxs
                .iter()
                .map(|&count| QueueWork {
                    hctxs: vec![idle; count],
                    requeue: Item::Idle,
                })
                .collect(),
            // `vec!` would copy one, and a copy has no room.
            queues: (0..workers.len())
                .map(|_| Handed::with_capacity(hctxs.iter().map(|&count| count + 1).sum()))
                .collect(),
            workers,
        }
    }

    /// Items that are not idle, for stall reports.
    pub(super) fn pending(&self) -> usize {
        let hctxs = self.of_queues.iter().flat_map(|queue| &queue.hctxs);
        let requeues = self.of_queues.iter().map(|queue| queue.requeue);
        let items = hctxs.map(|work| work.item).chain(requeues);
        items.filter(|item| *item != Item::Idle).count()
    }

    fn of(&mut self, queue: QueueId, hctx: HctxId) -> &mut HctxWork {
        &mut self.of_queues[queue.index()].hctxs[usize::from(hctx.0)]
    }

    fn requeue(&mut self, queue: QueueId) -> &mut Item {
        &mut self.of_queues[queue.index()].requeue
    }
}

impl Simulator {
    /// blk_mq_delay_run_hw_queue() on behalf of CPU `from`.
    pub(super) fn kick(
        &mut self,
        from: CpuId,
        queue: QueueId,
        hctx: HctxId,
        delay: Duration,
        unless: bool,
    ) {
        self.kick_after(SimTime::ZERO, from, queue, hctx, delay, unless);
    }

    /// The same, not before `asked`.
    fn kick_after(
        &mut self,
        asked: SimTime,
        from: CpuId,
        queue: QueueId,
        hctx: HctxId,
        delay: Duration,
        unless: bool,
    ) {
        if blkmq::env::Bit::peek(&self.mq.queue(queue).hctx(hctx).stopped) {
            return;
        }
        self.item_queued(queue, delay.0 > 0);
        match self.work.of(queue, hctx).item {
            Item::Delayed | Item::Queued(_) | Item::Running(Some(_)) if unless => return,
            Item::Running(_) => {
                let asked = self.at(from).max(asked);
                self.work.of(queue, hctx).item = Item::Running(Some(Again { delay, asked }));
                return;
            }
            Item::Queued(_) if delay.0 == 0 => return,
            Item::Queued(cpu) => {
                let jobs = &mut self.work.queues[usize::from(cpu.0)];
                jobs.retain(|&job| job != Job::Hctx(queue, hctx));
            }
            Item::Idle | Item::Delayed => {}
        }
        if !self.cpu(from).is_idle() {
            self.charge(from, Step::QueueWork);
        }
        if delay.0 == 0 {
            self.queue_hctx_work(asked, from, queue, hctx);
            return;
        }
        let due = self.tick_after(self.at(from).max(asked), delay);
        let work = self.work.of(queue, hctx);
        work.item = Item::Delayed;
        work.generation = work.generation.wrapping_add(1);
        let generation = work.generation;
        self.core.events.push(
            due,
            class::TIMER,
            Event::Work(Of::part(queue.0, hctx.0, generation)),
        );
    }

    /// Timers end on a tick: the first one at least `delay` in ticks from the current one.
    pub(super) fn tick_after(&self, at: SimTime, delay: Duration) -> SimTime {
        let hz = self.plan.machine.hz;
        let ticks = Jiffies::from_millis(delay.0.div_ceil(1_000_000), hz);
        let tick = 1_000_000_000 / u64::from(hz);
        SimTime((at.jiffies(hz).0 + ticks.0) * tick)
    }

    /// A delay is over.
    pub(super) fn work_due(&mut self, queue: QueueId, hctx: u16, generation: u32) {
        let hctx = HctxId(hctx);
        let work = *self.work.of(queue, hctx);
        if work.item == Item::Delayed && work.generation == generation {
            let cpu = self.mq.queue(queue).hctx(hctx).cpumask.first().copied();
            self.queue_hctx_work(SimTime::ZERO, cpu.unwrap_or_default(), queue, hctx);
        }
    }

    fn queue_hctx_work(&mut self, asked: SimTime, from: CpuId, queue: QueueId, hctx: HctxId) {
        let target = self.next_cpu(from, queue, hctx);
        self.work.of(queue, hctx).item = Item::Queued(target);
        self.enqueue(asked, from, target, Job::Hctx(queue, hctx));
    }

    /// blk_mq_hctx_next_cpu(): eight items on a CPU, then the next of the hctx; with one hctx the
    /// CPU that asks.
    fn next_cpu(&mut self, from: CpuId, queue: QueueId, hctx: HctxId) -> CpuId {
        let q = self.mq.queue(queue);
        let mask = &q.hctx(hctx).cpumask;
        if q.hctxs.len() == 1 || mask.is_empty() {
            return from;
        }
        let work = self.work.of(queue, hctx);
        work.batch -= 1;
        if work.batch == 0 {
            work.batch = WORK_BATCH;
            work.next_cpu = (work.next_cpu + 1) % mask.len();
        }
        mask[work.next_cpu]
    }

    /// A worker gets an item from CPU `from`, not before `asked`.
    fn enqueue(&mut self, asked: SimTime, from: CpuId, target: CpuId, job: Job) {
        let at = self.at(from).max(asked);
        self.work.queues[usize::from(target.0)].give(at, job);
        let worker = self.work.workers[usize::from(target.0)];
        if !self.cpu(from).is_idle() {
            self.charge(from, Step::Wake);
        }
        self.wake(worker, from, at);
    }

    /// blk_mq_kick_requeue_list().
    pub(super) fn kick_requeue(&mut self, from: CpuId, queue: QueueId) {
        self.kick_requeue_after(SimTime::ZERO, from, queue);
    }

    /// The same, not before `asked`.
    fn kick_requeue_after(&mut self, asked: SimTime, from: CpuId, queue: QueueId) {
        let asked = self.at(from).max(asked);
        let item = self.work.requeue(queue);
        match *item {
            Item::Running(_) => {
                let delay = Duration::ZERO;
                *item = Item::Running(Some(Again { delay, asked }));
            }
            Item::Queued(_) | Item::Delayed => {}
            Item::Idle => {
                *item = Item::Queued(from);
                self.enqueue(asked, from, from, Job::Requeue(queue));
            }
        }
    }

    /// The worker of a CPU takes its next item.
    pub(super) fn kworker_turn(&mut self, id: CpuId, worker: &mut Kworker) -> Turn {
        if let Some(done) = worker.running.take() {
            self.finish_job(id, done);
            return Turn::Again;
        }
        let now = self.at(id);
        let queue = &mut self.work.queues[usize::from(id.0)];
        let Some(job) = queue.take(now) else {
            return queue.next_time().map_or(Turn::Sleep, Turn::Pause);
        };
        self.charge_as(id, Step::Worker, Mode::System);
        worker.running = Some(job);
        let frame = match job {
            Job::Hctx(queue, hctx) => {
                self.work.of(queue, hctx).item = Item::Running(None);
                self.item_begins(id, queue);
                Frame::Run(RunPath::work(queue, hctx))
            }
            Job::Requeue(queue) => {
                *self.work.requeue(queue) = Item::Running(None);
                Frame::Requeue(RequeuePath::new(queue))
            }
        };
        self.cpu_mut(id).level_state().stack.push(frame);
        Turn::Again
    }

    fn finish_job(&mut self, id: CpuId, job: Job) {
        match job {
            Job::Hctx(queue, hctx) => {
                let work = self.work.of(queue, hctx);
                let again = core::mem::replace(&mut work.item, Item::Idle);
                if let Item::Running(Some(Again { delay, asked })) = again {
                    self.kick_after(asked, id, queue, hctx, delay, false);
                }
            }
            Job::Requeue(queue) => {
                let again = core::mem::replace(self.work.requeue(queue), Item::Idle);
                if let Item::Running(Some(Again { asked, .. })) = again {
                    self.kick_requeue_after(asked, id, queue);
                }
            }
        }
    }

    /// io_uring's worker submits the next I/O, which may block.
    pub(super) fn io_worker_turn(&mut self, id: CpuId, worker: &mut IoWorker) -> Turn {
        let Some(slot) = worker.queue.take(self.at(id)) else {
            return worker.queue.next_time().map_or(Turn::Sleep, Turn::Pause);
        };
        self.charge_as(id, Step::Worker, Mode::System);
        self.charge_as(id, Step::UringIssue, Mode::System);
        self.submit_slot(id, worker.owner, slot, false);
        Turn::Again
    }
}
