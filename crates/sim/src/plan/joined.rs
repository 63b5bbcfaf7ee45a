//! A device that owns the queues of several disks: a controller with its namespaces, a host with
//! its units.

use blkmq::request::SetId;

use super::{DiskId, Owner, Plan};

impl Plan {
    /// Attaches the `count` disks after `owner` to its device: its hardware serves their requests,
    /// and all of them draw from one tag set, as the device has its queues once. They keep names
    /// and sizes; a budget is that of each disk.
    ///
    /// # Panics
    /// If there are no such disks; if they differ, or have something below; or if they belong to
    /// another device or tag set already.
    pub fn join(&mut self, owner: DiskId, count: usize) {
        let all = owner.index()..=owner.index() + count;
        let first = &self.disks[owner.index()];
        for disk in &self.disks[all.clone()] {
            let name = &disk.device.name;
            assert!(disk.owner.is_none(), "{name} is of another device already");
            assert_eq!(disk.device.kind, first.device.kind, "{name}");
            assert_eq!(disk.device.fault, first.device.fault, "{name}");
            let alone = self.disks.iter().filter(|other| other.set == disk.set);
            assert_eq!(alone.count(), 1, "{name} is on another tag set already");
        }
        let mut joined = self.disks[all.clone()].iter();
        let mapped = joined.any(|disk| !disk.below().is_empty());
        assert!(!mapped, "a mapped disk has no device of its own");
        for disk in &mut self.disks[all.clone()][1..] {
            disk.owner = Some(Owner::Disk(owner));
        }
        let (mut before, mut number) = (None, 0);
        for disk in &mut self.disks {
            let old = disk.set;
            let same = disk.owner.is_some() || before == Some(old);
            number += u16::from(before.is_some() && !same);
            (disk.set, before) = (SetId(number), Some(old));
        }
        self.number_below();
    }
}
