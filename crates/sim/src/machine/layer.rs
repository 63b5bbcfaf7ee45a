//! The block layer of a run, and what is above and below its queues.

use blkmq::env::Solo;
use blkmq::queue::BlkMq;
use blkmq::request::QueueId;

use super::numbers::Numbers;
use super::progress::is_live;
use crate::plan::Plan;
use crate::rng::Rng;

/// All queues of a run.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) mq: BlkMq<Solo>,
    /// Which disk, queue and device belong together.
    pub(super) numbers: Numbers,
    /// Of each queue its device's name.
    names: Vec<String>,
    /// First allocation hints of tag maps.
    hints: Rng,
}

impl Layer {
    /// The queues of a plan. `hints`: where those that made them were drawn.
    pub(super) fn new(plan: &Plan, mq: BlkMq<Solo>, hints: Rng) -> Layer {
        let names = plan.queues().map(|disk| disk.device.name.clone());
        Layer {
            mq,
            numbers: Numbers::new(plan),
            names: names.collect(),
            hints,
        }
    }

    /// A queue gets this one of its further schedulers.
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

    /// Somebody waits for something.
    pub(super) fn anything_waits(&self) -> bool {
        self.mq.queues.iter().any(|queue| {
            queue.with_pool(|pool| {
                pool.iter().any(|(_, rq)| is_live(rq.place)) || pool.bios_in_use() > 0
            })
        })
    }
}
