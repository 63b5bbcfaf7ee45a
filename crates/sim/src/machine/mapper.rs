//! kdmwork: the thread of a mapped device of the single-queue kind, which maps its requests one by
//! one, in the order in which the driver's request function queued them.
//!
//! A suspension of the device waits until the thread comes to an item of its own.
//!
//! Not here: mapping (`path/map.rs` of blkmq), the request function (`path/single/run.rs`). Kernel:
//! kthread_worker_fn(), queue_kthread_work(), flush_kthread_worker() in kernel/kthread.c,
//! map_tio_request() in drivers/md/dm.c (4.5).

use blkmq::path::{Frame, MapPath};
use blkmq::request::{CpuId, QueueId, RequestId};
use blkmq::time::SimTime;
use blkmq::waiter::WaiterId;

use super::cpu::Mode;
use super::cpus::Cpus;
use super::handed::Handed;
use super::task::{TaskId, Turn};
use super::tasks::Tasks;
use crate::cost::Step;

/// A work item of such a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MapItem {
    Map(RequestId),
    /// Wake this task, which waits for the items before.
    Flush(WaiterId),
}

/// Items that wait for one of these threads.
#[derive(Clone, Debug)]
struct Mapper {
    queue: QueueId,
    task: TaskId,
    items: Handed<MapItem>,
    /// It has a current item (current_work): no wake-up is needed.
    busy: bool,
}

/// The threads of all mapped devices that have one.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappers {
    all: Vec<Mapper>,
}

impl Mappers {
    /// Adds one, with room for so many requests. `task`: the thread, which gets the next number.
    pub(super) fn add(&mut self, queue: QueueId, task: TaskId, room: usize) {
        self.all.push(Mapper {
            queue,
            task,
            items: Handed::with_capacity(room + 1),
            busy: false,
        });
    }

    /// queue_kthread_work() by CPU `id`, which holds the queue's lock.
    pub(super) fn give(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        id: CpuId,
        (queue, item): (QueueId, MapItem),
    ) {
        let mapper = self.all.iter_mut().find(|of| of.queue == queue);
        let mapper = mapper.expect("such a queue has a thread");
        mapper.items.give(cpus.at(id), item);
        if !mapper.busy {
            cpus.charge(id, Step::Wake);
        }
        tasks.wake(cpus, mapper.task, id, cpus.at(id));
    }

    /// The thread takes its next item.
    pub(super) fn turn(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        id: CpuId,
        number: usize,
    ) -> Turn {
        let mapper = &mut self.all[number];
        let item = mapper.items.take(cpus.at(id));
        mapper.busy = item.is_some();
        let Some(item) = item else {
            return mapper.items.next_time().map_or(Turn::Sleep, Turn::Pause);
        };
        cpus.charge_as(id, Step::Worker, Mode::System);
        match item {
            MapItem::Map(rq) => cpus.push(id, Frame::Map(MapPath::new(mapper.queue, rq))),
            MapItem::Flush(waiter) => {
                cpus.charge(id, Step::Wake);
                tasks.wake(cpus, TaskId(waiter.0), id, SimTime::ZERO);
            }
        }
        Turn::Again
    }

    /// A request waits for its thread.
    pub(super) fn has(&self, queue: QueueId, rq: RequestId) -> bool {
        let mut all = self.all.iter().filter(|of| of.queue == queue);
        all.any(|of| of.items.iter().any(|&item| item == MapItem::Map(rq)))
    }
}
