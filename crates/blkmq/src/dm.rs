//! Device-mapper multipath: one device over several paths to the same disk.
//!
//! Policy only, plain data with `&mut self` methods: the choice of a path for a request, the
//! meaning of its end, failed paths. Not here: the queues above and below, clones, locks, clocks
//! (docs/decisions/0030). Read first: [`multipath`], then [`multipath::Choice`], which asks one
//! question at a time, so that a whole choice may be one critical section or each question an
//! access of its own.
//!
//! * [`table`]: a line of `dmsetup table`, parsed
//! * [`selector`]: the choice of a path within a group
//! * [`multipath`]: groups, failure, initialisation, held I/O
//!
//! Kernel: drivers/md/dm-mpath.c, dm-path-selector.c, dm-ps-*.c (6.1.192).

pub mod multipath;
pub mod selector;
pub mod table;

use crate::request::{BioId, CpuId, Status};
use crate::time::SimTime;

/// A path of a target: those of the first group come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PathId(pub u16);

/// A priority group in the order of the table: the first is 0 here and 1 in messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u16);

impl PathId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl GroupId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A request that needs a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incoming {
    pub bytes: u32,
    /// The CPU that maps it.
    pub cpu: CpuId,
    pub now: SimTime,
    /// The bio, of a bio-based target, which may hold it.
    pub bio: Option<BioId>,
}

/// A request with a path (struct dm_mpath_io).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mapped {
    pub path: PathId,
    pub bytes: u32,
}

/// The result of mapping (DM_MAPIO_*). For a bio [`Mapping::Requeue`] means that the device holds
/// it until its resume.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mapping {
    /// A clone goes to this path.
    To(Mapped),
    /// The request stays where it is; the device reports busy to the queue.
    Requeue,
    /// It goes to the requeue list, which is kicked later (`DeviceMapper::delay_ms`).
    DelayRequeue,
    /// The bio is on the target's list, from which a worker maps it again.
    Held,
    Kill(Status),
}

/// The effect of the end of a clone on the request (DM_ENDIO_*).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ending {
    /// It ends, too.
    Done(Status),
    /// It is tried again at once.
    #[default]
    Requeue,
    /// It is tried again later, with the same delay.
    DelayRequeue,
}
