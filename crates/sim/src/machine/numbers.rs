//! Which queue a disk has, which device a queue has, and which queues a device.

use blkmq::request::{QueueId, RequestId};

use crate::plan::{DeviceId, DiskId, DiskPlan, Owner, Plan};

/// Numbers of disks, queues and devices, from one to the other.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// By disk: its queue.
    disks: Vec<QueueId>,
    /// By disk: the queues that it is mapped to, in the order of its paths.
    below: Vec<Vec<QueueId>>,
    queues: Vec<Ends>,
    /// By device: the queues above it, in their order.
    devices: Vec<Vec<QueueId>>,
}

/// What is above a queue, and what is below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    above: Above,
    /// The disk for whose requests it works.
    pub(super) disk: DiskId,
    /// The device that its requests go to.
    pub(super) device: DeviceId,
    /// Its place among the queues of its device: the unit that it is the queue of.
    pub(super) unit: u8,
    /// What its device knows its first request as: those of the queues before it come before.
    first: u32,
}

/// Who puts requests into a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Above {
    /// Jobs: the queue is that of a disk.
    Jobs,
    /// A mapped queue, as clones of what it gets.
    Mapped(QueueId),
}

impl Numbers {
    /// Queues are made in the order of the plan, and each has a device, be it one of its own or
    /// that of a disk before.
    pub(super) fn new(plan: &Plan) -> Numbers {
        let count = u8::try_from(plan.queues().count());
        count.expect("at most 255 queues");
        let mut numbers = Numbers {
            disks: Vec::new(),
            below: Vec::new(),
            queues: Vec::new(),
            devices: Vec::new(),
        };
        for (disk, of) in (0..).map(DiskId).zip(&plan.disks) {
            let queue = numbers.add(plan, Above::Jobs, disk, of);
            numbers.disks.push(queue);
        }
        let mapped = (0..).map(DiskId).take(plan.disks.len());
        numbers.below = mapped.map(|disk| plan.queues_below(disk)).collect();
        for path in plan.paths() {
            let above = Above::Mapped(numbers.queue_of(path.0));
            numbers.add(plan, above, path.0, plan.path(path));
        }
        numbers
    }

    fn add(&mut self, plan: &Plan, above: Above, disk: DiskId, of: &DiskPlan) -> QueueId {
        let queue = QueueId(self.queues.len() as u8);
        let device = match of.owner {
            Some(Owner::Disk(owner)) => self.device_of(self.queue_of(owner)),
            Some(Owner::Path(disk, path)) => self.device_of(self.below[disk.index()][path.index()]),
            None => {
                self.devices.push(Vec::new());
                DeviceId(self.devices.len() as u8 - 1)
            }
        };
        let others = &mut self.devices[device.index()];
        let before = others
            .iter()
            .filter_map(|other| plan.queues().nth(other.index()));
        let first = before.map(|other| other.capacity.requests).sum();
        let unit = others.len() as u8;
        others.push(queue);
        self.queues.push(Ends {
            above,
            disk,
            device,
            unit,
            first,
        });
        queue
    }

    /// The queue of a disk.
    #[inline]
    pub(super) fn queue_of(&self, disk: DiskId) -> QueueId {
        self.disks[disk.index()]
    }

    /// All of these at once.
    #[inline]
    pub(super) fn ends(&self, queue: QueueId) -> Ends {
        self.queues[queue.index()]
    }

    /// Who puts requests into a queue.
    #[inline]
    pub(super) fn above(&self, queue: QueueId) -> Above {
        self.queues[queue.index()].above
    }

    /// The queues that a disk is mapped to, in the order of its paths.
    pub(super) fn below(&self, disk: DiskId) -> &[QueueId] {
        &self.below[disk.index()]
    }

    /// The device that a queue's requests go to.
    #[inline]
    pub(super) fn device_of(&self, queue: QueueId) -> DeviceId {
        self.queues[queue.index()].device
    }

    /// All devices with the queues above each, which are at least one.
    pub(super) fn devices(&self) -> impl Iterator<Item = (DeviceId, &[QueueId])> {
        (0..)
            .map(DeviceId)
            .zip(self.devices.iter().map(Vec::as_slice))
    }

    /// The queues whose requests a device gets, at least one.
    #[inline]
    pub(super) fn queues_above(&self, device: DeviceId) -> &[QueueId] {
        &self.devices[device.index()]
    }

    /// The queue and the request that a device knows as this.
    #[inline]
    pub(super) fn request(&self, device: DeviceId, slot: RequestId) -> (QueueId, RequestId) {
        let above = self.queues_above(device);
        let first = |queue: QueueId| self.queues[queue.index()].first;
        if let &[queue] = above {
            return (queue, slot);
        }
        let of = above[above.partition_point(|&queue| first(queue) <= slot.0) - 1];
        (of, RequestId(slot.0 - first(of)))
    }
}

impl Ends {
    /// As what its device knows a request of the queue.
    #[inline]
    pub(super) fn slot(self, rq: RequestId) -> RequestId {
        RequestId(self.first + rq.0)
    }
}
