//! The block layer of a run, with the disks above and the devices below its queues.

use blkmq::env::Cpu;
use blkmq::path::CompleteOn;
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, QueueId, RequestId, Status};

use super::cpu::Ended;
use super::cpus::Cpus;
use super::numbers::Numbers;
use super::progress::is_live;
use crate::plan::{DeviceId, Plan};
use crate::rng::Rng;

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) mq: BlkMq,
    /// Which disk, queue and device belong together.
    pub(super) numbers: Numbers,
    /// By queue: the name of its device.
    names: Vec<String>,
    /// First allocation hints of tag maps.
    hints: Rng,
}

impl Layer {
    /// The queues of a plan. `hints`: the stream that their first hints were drawn from.
    pub(super) fn new(plan: &Plan, mq: BlkMq, hints: Rng) -> Layer {
        let names = plan.queues().map(|disk| disk.device.name.clone());
        Layer {
            mq,
            numbers: Numbers::new(plan),
            names: names.collect(),
            hints,
        }
    }

    /// Adds the explanations of a queue's scheduler.
    pub(super) fn explain(&self, queue: QueueId, all: &mut Vec<String>) {
        let name = &self.names[queue.index()];
        let elevator = &self.mq.queue(queue).elevator;
        elevator
            .inspect(|policy| policy.explanations(&mut |line| all.push(format!("{name}: {line}"))));
    }

    /// Gives a queue this one of its further schedulers.
    pub(super) fn exchange(&mut self, queue: QueueId, to: usize) {
        let hints = &mut self.hints;
        let mut hint = || hints.next_u64() as u32;
        self.mq.exchange(queue, to, &mut hint);
    }

    /// Name of this queue's device, if there are several queues.
    pub(super) fn name(&self, queue: QueueId) -> Option<&str> {
        let several = self.mq.queues.len() > 1;
        several.then(|| self.names[queue.index()].as_str())
    }

    pub(super) fn anything_waits(&self) -> bool {
        self.mq.queues.iter().any(|queue| {
            queue.with_pool(|pool| {
                pool.iter().any(|(_, rq)| is_live(rq.place)) || pool.bios_in_use() > 0
            })
        })
    }

    /// The device has a request of this queue.
    pub(super) fn has_in_flight(&self, queue: QueueId) -> bool {
        let queue = self.mq.queue(queue);
        queue.with_pool(|pool| pool.iter().any(|(_, rq)| rq.in_flight))
    }

    /// The timeout timer of this queue would wake a task that waits for a tag.
    pub(super) fn timeout_helps(&self, queue: QueueId) -> bool {
        !self.has_in_flight(queue) && self.mq.set_of(queue).waiting_count() > 0
    }

    /// The CPU to which blk_mq_complete_request() on `id` sends a completion.
    pub(super) fn complete_on(
        &self,
        cpus: &Cpus,
        queue: QueueId,
        id: CpuId,
        rq: RequestId,
    ) -> CompleteOn {
        let costs = &cpus.core.costs;
        self.mq
            .complete_on(queue, rq, id, |a, b| costs.share_cache(a, b))
    }

    /// blk_mq_add_to_batch() accepts the completion.
    pub(super) fn may_batch(&self, id: CpuId, ended: Ended) -> bool {
        let q = self.mq.queue(ended.queue);
        let pool = q.pool.held(id);
        let rq = &pool[ended.rq];
        q.single.is_none()
            && q.clones.is_none()
            && rq.internal_tag.is_none()
            && !rq.flush_seq
            && ended.status == Status::Ok
    }

    /// blk_mq_stop_hw_queues() of a device's queues, or the first half of
    /// blk_mq_start_stopped_hw_queues().
    pub(super) fn set_stopped(&self, env: &mut Cpu, device: DeviceId, stopped: bool) {
        let queues = self.numbers.queues_above(device).iter();
        for hctx in queues.flat_map(|&queue| &self.mq.queue(queue).hctxs) {
            env.begin_label();
            if stopped {
                hctx.stopped.set(env);
            } else {
                hctx.stopped.clear(env);
            }
        }
        env.begin_label();
        env.meter.take();
    }
}
