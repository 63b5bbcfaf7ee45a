//! Numbers of queues, entities and groups.

/// Number of a queue: its index in the arena, which is used again after it was freed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct QId(pub(super) u32);

/// Number of an entity: its index in the arena.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct EntityId(pub(super) u32);

/// Number of a group: its index in [`Submitters::groups`](crate::elevator::Submitters).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct GroupId(pub(super) u16);

/// The group without an entity.
pub(super) const ROOT: GroupId = GroupId(0);

impl GroupId {
    #[inline]
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    #[inline]
    pub(super) fn entity(self) -> Option<EntityId> {
        (self != ROOT).then_some(EntityId(u32::from(self.0)))
    }
}
