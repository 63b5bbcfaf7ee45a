//! Numbers of disks and devices, and shared devices.
//!
//! Three things are numbered separately: a queue (`blkmq::request::QueueId`), a disk, which jobs
//! use and reports show, and a device with its driver. A queue below a mapped device has no disk,
//! and a device may own several queues.

use blkmq::dm::PathId;

/// A disk of the plan: it has a name below /dev.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DiskId(pub u16);

/// A device with its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DeviceId(pub u16);

/// Owner of the device of a queue that has none of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A disk: see [`Plan::join`](super::Plan::join).
    Disk(DiskId),
    /// A path of a mapped disk: see [`Plan::join_paths`](super::Plan::join_paths).
    Path(DiskId, PathId),
}

impl DiskId {
    /// Its place in a list of all disks.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl DeviceId {
    /// Its place in a list of all devices.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
