//! Which queue a disk has, and which device a queue has.

use blkmq::request::QueueId;

use crate::plan::{DeviceId, DiskId, Plan};

/// Numbers of disks, queues and devices, from one to the other.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// By disk: its queue.
    disks: Vec<QueueId>,
    /// By queue.
    queues: Vec<Ends>,
    /// By device: the queue above it.
    devices: Vec<QueueId>,
}

/// What is above a queue, and what is below.
#[derive(Clone, Copy, Debug)]
struct Ends {
    disk: Option<DiskId>,
    device: DeviceId,
}

impl Numbers {
    /// Queues are made in the order of the plan's disks, and so are devices.
    pub(super) fn new(plan: &Plan) -> Numbers {
        let count = u8::try_from(plan.disks.len()).expect("at most 256 queues");
        let ends = |queue: u8| Ends {
            disk: Some(DiskId(queue)),
            device: DeviceId(queue),
        };
        Numbers {
            disks: (0..count).map(QueueId).collect(),
            queues: (0..count).map(ends).collect(),
            devices: (0..count).map(QueueId).collect(),
        }
    }

    /// The queue of a disk.
    #[inline]
    pub(super) fn queue_of(&self, disk: DiskId) -> QueueId {
        self.disks[disk.index()]
    }

    /// The disk of a queue; none if no job can use it.
    #[inline]
    pub(super) fn disk_of(&self, queue: QueueId) -> Option<DiskId> {
        self.queues[queue.index()].disk
    }

    /// The device that a queue's requests go to.
    #[inline]
    pub(super) fn device_of(&self, queue: QueueId) -> DeviceId {
        self.queues[queue.index()].device
    }

    /// The queue whose requests a device gets.
    #[inline]
    pub(super) fn queue_above(&self, device: DeviceId) -> QueueId {
        self.devices[device.index()]
    }
}
