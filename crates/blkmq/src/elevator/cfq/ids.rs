//! Numbers of queues and groups.

/// Number of a queue. It is used again only when no pointer leads to its last queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QId(pub u32);

/// Number of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct GroupId(pub(super) u16);

impl GroupId {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

pub(super) const ROOT: GroupId = GroupId(0);
