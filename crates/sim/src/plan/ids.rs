//! Numbers of disks and devices, and whose device is another's.
//!
//! Three things are numbered beside each other: a queue (`blkmq::request::QueueId`), a disk, which
//! is what jobs use and reports show, and a device with its driver. A queue below a mapped device
//! has no disk, and a device may own several queues.

use blkmq::dm::PathId;

/// A disk of the plan: what has a name below /dev.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DiskId(pub u8);

/// A device with its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DeviceId(pub u8);

/// Whose device a queue has that has none of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// That of a disk: see [`Plan::join`](super::Plan::join).
    Disk(DiskId),
    /// That of a path of a mapped disk: see [`Plan::join_paths`](super::Plan::join_paths).
    Path(DiskId, PathId),
}

impl DiskId {
    /// Where it stands in a list of all disks.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl DeviceId {
    /// Where it stands in a list of all devices.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
