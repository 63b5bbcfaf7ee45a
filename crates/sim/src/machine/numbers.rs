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
    above: Above,
    /// The disk for whose requests it works.
    disk: DiskId,
    device: DeviceId,
}

/// Who puts requests into a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Above {
    /// Jobs: the queue is that of a disk.
    Jobs,
    /// A stacked device, as clones of what it gets.
    Device(DeviceId),
}

impl Numbers {
    /// Queues are made in the order of the plan, and each has a device.
    pub(super) fn new(plan: &Plan) -> Numbers {
        let count = plan.queues().count();
        let count = u8::try_from(count).expect("at most 256 queues");
        let disks = || (0..plan.disks.len() as u8).map(DiskId);
        let of_disks = disks().map(|disk| (Above::Jobs, disk));
        let below = disks().flat_map(|disk| {
            let above = Above::Device(DeviceId(disk.0));
            let below = plan.disks[disk.index()].below();
            below.iter().map(move |_| (above, disk))
        });
        let ends = of_disks.chain(below).zip(0..count);
        let ends = ends.map(|((above, disk), queue)| Ends {
            above,
            disk,
            device: DeviceId(queue),
        });
        Numbers {
            disks: disks().map(|disk| QueueId(disk.0)).collect(),
            queues: ends.collect(),
            devices: (0..count).map(QueueId).collect(),
        }
    }

    /// The queue of a disk.
    #[inline]
    pub(super) fn queue_of(&self, disk: DiskId) -> QueueId {
        self.disks[disk.index()]
    }

    /// Who puts requests into a queue.
    #[inline]
    pub(super) fn above(&self, queue: QueueId) -> Above {
        self.queues[queue.index()].above
    }

    /// The disk for whose requests a queue works.
    #[inline]
    pub(super) fn disk_of(&self, queue: QueueId) -> DiskId {
        self.queues[queue.index()].disk
    }

    /// The queues below a device.
    pub(super) fn below(&self, device: DeviceId) -> Vec<QueueId> {
        let of_device = |(_, ends): &(usize, &Ends)| ends.above == Above::Device(device);
        let below = self.queues.iter().enumerate().filter(of_device);
        below.map(|(queue, _)| QueueId(queue as u8)).collect()
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
