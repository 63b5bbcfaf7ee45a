//! Device-mapper multipath: one device over several paths to the same disk.
//!
//! Policy only, plain data with `&mut self` methods: which path gets a request, what its end means,
//! when a path is out of use. Not here: the queues above and below, clones, locks, clocks
//! (docs/decisions/0030 says which file is to have them). Read first: [`multipath`], then
//! [`multipath::Choice`], which asks one thing at a time, so that all of a choice may be one
//! critical section or each question an access of its own.
//!
//! * [`table`]: a line of `dmsetup table`, and what it means
//! * [`selector`]: which path of a group
//! * [`multipath`]: groups, failure, initialisation, what is held back
//!
//! Kernel: drivers/md/dm-mpath.c, dm-path-selector.c, dm-ps-*.c (6.1.192).

pub mod multipath;
pub mod selector;
pub mod table;

use crate::request::{BioId, CpuId, Status};
use crate::time::SimTime;

/// A path of a target: those of the first group come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathId(pub u16);

/// A priority group, as tables order them: the first is 0 here and 1 in messages.
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

/// A request that wants a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incoming {
    pub bytes: u32,
    /// Where it is mapped.
    pub cpu: CpuId,
    pub now: SimTime,
    /// The bio, of a bio-based target: what it holds back it has.
    pub bio: Option<BioId>,
}

/// A request that has a path (struct dm_mpath_io).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mapped {
    pub path: PathId,
    pub bytes: u32,
}

/// What mapping came to (DM_MAPIO_*). Of a bio [`Mapping::Requeue`] says that the device is to have
/// it until it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mapping {
    /// A clone goes this way.
    To(Mapped),
    /// The request stays where it is; the device reports busy to the queue.
    Requeue,
    /// It goes to the requeue list, which is kicked later (`DeviceMapper::delay_ms`).
    DelayRequeue,
    /// The bio is on the target's list, from which a worker maps it again.
    Held,
    Kill(Status),
}

/// What the end of a clone means for the request (DM_ENDIO_*).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// It ends, too.
    Done(Status),
    /// It is tried again at once.
    Requeue,
    /// It is tried again later, with the same delay.
    DelayRequeue,
}
