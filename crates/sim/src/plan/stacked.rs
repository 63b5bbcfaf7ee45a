//! A device that is made of others: what is below it.

use blkmq::request::SetId;

use super::{DeviceKind, DiskId, DiskPlan, FaultPlan, Plan};

/// A pass-through device over several others, which get its requests in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackedPlan {
    /// Queues with their devices. They are no disks: no job can use one.
    pub below: Vec<DiskPlan>,
}

impl Plan {
    /// Has the requests of a disk go to `below`, one device after the other, instead of to its own
    /// device, whose queue, name and size it keeps. Faults of that device go with it; those of the
    /// stacked device are what its plan says from then on.
    ///
    /// # Panics
    /// If nothing is below, if something of it is stacked itself, or if the disk is one of several
    /// of one device.
    pub fn stack(&mut self, disk: DiskId, mut below: Vec<DiskPlan>) {
        assert!(!below.is_empty(), "a stacked device is made of something");
        let joined = self.disks.iter().filter_map(|of| of.owner);
        let joined = joined.chain(self.disks[disk.index()].owner.map(|_| disk));
        let name = &self.disks[disk.index()].device.name;
        assert!(
            !joined.into_iter().any(|of| of == disk),
            "{name} is joined with others"
        );
        let sets = self.queues().map(|queue| queue.set.0 + 1).max();
        let first = sets.expect("a plan has a disk");
        let of = &mut self.disks[disk.index()];
        for (set, lower) in (first..).zip(&mut below) {
            let stacked = matches!(lower.device.kind, DeviceKind::Stacked(_));
            assert!(!stacked, "stacked devices stand on others");
            lower.set = SetId(set);
            lower.owner = None;
            // Each request above has one clone at a time, and each clone one bio.
            lower.capacity.bios = of.capacity.requests;
            lower.capacity.waiters = 0;
        }
        of.device.fault = FaultPlan::NONE;
        of.device.kind = DeviceKind::Stacked(StackedPlan { below });
    }

    /// All queues with their devices, in the order of their numbers: those of disks, then what is
    /// below them.
    pub fn queues(&self) -> impl Iterator<Item = &DiskPlan> {
        let below = self.disks.iter().flat_map(DiskPlan::below);
        self.disks.iter().chain(below)
    }
}

impl DiskPlan {
    /// Queues below its device; none of most devices.
    pub fn below(&self) -> &[DiskPlan] {
        match &self.device.kind {
            DeviceKind::Stacked(plan) => &plan.below,
            DeviceKind::NullBlk(_)
            | DeviceKind::Nvme(_)
            | DeviceKind::ScsiDebug(_)
            | DeviceKind::Ahci(_) => &[],
        }
    }
}
