//! Workers of bio-based devices: one for each work item, as an item does not run twice at a time.
//!
//! kmpathd and kdmflush are bound workqueues: an item runs on the CPU that has queued it, by a
//! worker of its own, as the pool wakes another worker when one sleeps. Not here: what an item does
//! (`path/bio_work.rs` of blkmq). Kernel: queue_work(), process_one_work() in kernel/workqueue.c
//! (6.1.192).

use blkmq::path::{BioWork, BioWorkPath, Frame};
use blkmq::request::{CpuId, QueueId};
use blkmq::time::SimTime;

use super::cpu::Mode;
use super::cpus::Cpus;
use super::task::{TaskId, Turn};
use super::tasks::Tasks;
use crate::cost::Step;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Idle,
    /// It has waited for its worker since then.
    Queued(SimTime),
    /// It runs; `Some`: it was queued again at this time.
    Running(Option<SimTime>),
}

#[derive(Clone, Copy, Debug)]
struct Worker {
    queue: QueueId,
    what: BioWork,
    task: TaskId,
    item: Item,
}

/// All work items: two for each bio-based device.
#[derive(Clone, Debug, Default)]
pub(super) struct BioWorkers {
    all: Vec<Worker>,
    /// Times that items have begun.
    runs: u64,
}

impl BioWorkers {
    /// Adds one. `task`: its worker, which gets the next number.
    pub(super) fn add(&mut self, queue: QueueId, what: BioWork, task: TaskId) {
        let item = Item::Idle;
        self.all.push(Worker {
            queue,
            what,
            task,
            item,
        });
    }

    /// queue_work() by CPU `id`.
    pub(super) fn queue(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        id: CpuId,
        (queue, what): (QueueId, BioWork),
    ) {
        let at = cpus.at(id);
        let own = |worker: &&mut Worker| (worker.queue, worker.what) == (queue, what);
        let worker = self.all.iter_mut().find(own);
        let worker = worker.expect("a bio-based device has both workers");
        match worker.item {
            Item::Idle => worker.item = Item::Queued(at),
            Item::Running(None) => {
                worker.item = Item::Running(Some(at));
                return;
            }
            Item::Queued(_) | Item::Running(Some(_)) => return,
        }
        if !cpus[id].is_idle() {
            cpus.charge(id, Step::QueueWork);
            cpus.charge(id, Step::Wake);
        }
        tasks.wake_on(cpus, worker.task, id, at);
    }

    /// The worker with this number takes its item, if that is queued.
    pub(super) fn turn(&mut self, cpus: &mut Cpus, id: CpuId, number: usize) -> Turn {
        let worker = &mut self.all[number];
        if let Item::Running(again) = worker.item {
            worker.item = again.map_or(Item::Idle, Item::Queued);
        }
        let Item::Queued(since) = worker.item else {
            return Turn::Sleep;
        };
        if cpus.at(id) < since {
            return Turn::Pause(since);
        }
        worker.item = Item::Running(None);
        self.runs += 1;
        cpus.charge_as(id, Step::Worker, Mode::System);
        let path = BioWorkPath::new(worker.queue, worker.what);
        cpus.push(id, Frame::BioWork(path));
        Turn::Again
    }

    pub(super) fn runs(&self) -> u64 {
        self.runs
    }

    /// Items that are not idle, for stall reports.
    pub(super) fn pending(&self) -> usize {
        let idle = |worker: &&Worker| worker.item != Item::Idle;
        self.all.iter().filter(idle).count()
    }

    /// The current work of a worker, for stall reports.
    pub(super) fn describe(&self, number: usize) -> String {
        let Worker { queue, what, .. } = self.all[number];
        match what {
            BioWork::Held => format!("maps held bios of queue {queue} (kmpathd)"),
            BioWork::Deferred => format!("maps deferred bios of queue {queue} (kdmflush)"),
        }
    }
}
