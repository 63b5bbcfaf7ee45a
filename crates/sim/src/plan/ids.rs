//! Numbers of disks and devices.
//!
//! Three things are numbered beside each other: a queue (`blkmq::request::QueueId`), a disk, which
//! is what jobs use and reports show, and a device with its driver. A queue below a mapped device
//! has no disk, and a device may own several queues.

/// A disk of the plan: what has a name below /dev.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DiskId(pub u8);

/// A device with its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DeviceId(pub u8);

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
