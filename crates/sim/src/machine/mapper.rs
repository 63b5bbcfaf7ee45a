//! kdmwork: the thread of a mapped device of the single-queue kind, which maps its requests one by
//! one, in the order in which the driver's function has left them to it.
//!
//! Not here: what it runs (`path/map.rs` of blkmq), who leaves requests to it
//! (`path/single/run.rs`).
//! Kernel: kthread_worker_fn(), queue_kthread_work() in kernel/kthread.c, map_tio_request() in
//! drivers/md/dm.c (4.5).

use blkmq::path::{Frame, MapPath};
use blkmq::request::{CpuId, QueueId, RequestId};

use super::cpu::Mode;
use super::cpus::Cpus;
use super::handed::Handed;
use super::task::{TaskId, Turn};
use super::tasks::Tasks;
use crate::cost::Step;

/// What waits for one of these threads.
#[derive(Clone, Debug)]
struct Mapper {
    queue: QueueId,
    task: TaskId,
    requests: Handed<RequestId>,
    /// It has a request in hand (current_work): nobody need wake it.
    busy: bool,
}

/// These threads, one of each mapped device that has one.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappers {
    all: Vec<Mapper>,
}

impl Mappers {
    /// One more, with room for so many requests. `task`: the thread, whose number here is that of
    /// those before it.
    pub(super) fn add(&mut self, queue: QueueId, task: TaskId, room: usize) {
        self.all.push(Mapper {
            queue,
            task,
            requests: Handed::with_capacity(room),
            busy: false,
        });
    }

    /// queue_kthread_work() by CPU `id`, which has the queue's lock.
    pub(super) fn give(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        id: CpuId,
        (queue, rq): (QueueId, RequestId),
    ) {
        let mapper = self.all.iter_mut().find(|of| of.queue == queue);
        let mapper = mapper.expect("such a queue has a thread");
        mapper.requests.give(cpus.at(id), rq);
        if !mapper.busy {
            cpus.charge(id, Step::Wake);
        }
        tasks.wake(cpus, mapper.task, id, cpus.at(id));
    }

    /// The thread takes its next request.
    pub(super) fn turn(&mut self, cpus: &mut Cpus, id: CpuId, number: usize) -> Turn {
        let mapper = &mut self.all[number];
        let rq = mapper.requests.take(cpus.at(id));
        mapper.busy = rq.is_some();
        let Some(rq) = rq else {
            return mapper.requests.next_time().map_or(Turn::Sleep, Turn::Pause);
        };
        cpus.charge_as(id, Step::Worker, Mode::System);
        cpus.push(id, Frame::Map(MapPath::new(mapper.queue, rq)));
        Turn::Again
    }

    /// A request waits for its thread.
    pub(super) fn has(&self, queue: QueueId, rq: RequestId) -> bool {
        let mut all = self.all.iter().filter(|of| of.queue == queue);
        all.any(|of| of.requests.iter().any(|&other| other == rq))
    }
}
