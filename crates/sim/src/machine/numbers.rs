//! Which queue a disk has, and which disk a queue has.

use blkmq::request::QueueId;

use crate::plan::{DiskId, Plan};

/// Numbers of disks and queues, from one to the other.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// By disk.
    queues: Vec<QueueId>,
    /// By queue.
    disks: Vec<DiskId>,
}

impl Numbers {
    /// Queues are made in the order of the plan's disks.
    pub(super) fn new(plan: &Plan) -> Numbers {
        let count = u8::try_from(plan.disks.len()).expect("at most 256 disks");
        Numbers {
            queues: (0..count).map(QueueId).collect(),
            disks: (0..count).map(DiskId).collect(),
        }
    }

    /// The queue of a disk.
    #[inline]
    pub(super) fn queue_of(&self, disk: DiskId) -> QueueId {
        self.queues[disk.index()]
    }

    /// The disk of a queue.
    #[inline]
    pub(super) fn disk_of(&self, queue: QueueId) -> DiskId {
        self.disks[queue.index()]
    }
}
