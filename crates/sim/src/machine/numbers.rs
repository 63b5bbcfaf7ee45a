//! Numbers: the queue of each disk, the device of each queue, the queues of each device.

use blkmq::queue::QUEUES_MAX;
use blkmq::request::{QueueId, RequestId};

use crate::plan::{DeviceId, DiskId, DiskPlan, Owner, Plan};

#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// By disk: its queue.
    disks: Vec<QueueId>,
    /// By disk: the queues of its paths, in their order.
    below: Vec<Vec<QueueId>>,
    queues: Vec<Ends>,
    /// By device: the queues above it, in their order.
    devices: Vec<Vec<QueueId>>,
}

/// The disk above a queue and the device below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    above: Above,
    /// The disk whose requests it gets.
    pub(super) disk: DiskId,
    /// The device that its requests go to.
    pub(super) device: DeviceId,
    /// Its place among the queues of its device, which is its unit.
    pub(super) unit: u16,
    /// The number of its first request at its device: requests of the queues before it come first.
    first: u32,
}

/// Source of the requests of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Above {
    /// Jobs: the queue is that of a disk.
    Jobs,
    /// A mapped queue: the requests are clones of its requests.
    Mapped(QueueId),
}

impl Numbers {
    /// Queues are numbered in the order of the plan; each has a device, its own or that of an
    /// earlier disk.
    pub(super) fn new(plan: &Plan) -> Numbers {
        let count = plan.queues().count();
        assert!(count <= usize::from(QUEUES_MAX), "{count} queues");
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
        let queue = QueueId(self.queues.len() as u16);
        let device = match of.owner {
            Some(Owner::Disk(owner)) => self.device_of(self.queue_of(owner)),
            Some(Owner::Path(disk, path)) => self.device_of(self.below[disk.index()][path.index()]),
            None => {
                self.devices.push(Vec::new());
                DeviceId(self.devices.len() as u16 - 1)
            }
        };
        let others = &mut self.devices[device.index()];
        let before = others
            .iter()
            .filter_map(|other| plan.queues().nth(other.index()));
        let first = before.map(|other| other.capacity.requests).sum();
        let unit = others.len() as u16;
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

    #[inline]
    pub(super) fn queue_of(&self, disk: DiskId) -> QueueId {
        self.disks[disk.index()]
    }

    #[inline]
    pub(super) fn ends(&self, queue: QueueId) -> Ends {
        self.queues[queue.index()]
    }

    #[inline]
    pub(super) fn above(&self, queue: QueueId) -> Above {
        self.queues[queue.index()].above
    }

    /// The queues of a disk's paths, in their order.
    pub(super) fn below(&self, disk: DiskId) -> &[QueueId] {
        &self.below[disk.index()]
    }

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

    /// The queue and the request that have this number at a device.
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
    /// The number of a queue's request at its device.
    #[inline]
    pub(super) fn slot(self, rq: RequestId) -> RequestId {
        RequestId(self.first + rq.0)
    }
}
