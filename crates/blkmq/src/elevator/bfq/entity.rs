//! Entity: the unit that a service tree schedules, a queue or a group.
//!
//! Groups come first in the arena, in the order of [`Submitters`](crate::elevator::Submitters); the
//! root's own entry is unused. Kernel: struct bfq_entity in block/bfq-iosched.h (6.1.192).

use core::ops::{Index, IndexMut};

use super::ids::{EntityId, GroupId, QId};
use crate::rbtree::{RbNode, RbNodes};

/// The tree of its service tree that an entity is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum InTree {
    #[default]
    No,
    Active,
    /// It was served recently.
    Idle,
}

/// Times are virtual: sectors shifted by 22, divided by weight.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Entity {
    pub(super) rb: RbNode,
    /// In a tree or in service (on_st_or_in_serv).
    pub(super) on_st: bool,
    pub(super) start: u64,
    pub(super) finish: u64,
    pub(super) tree: InTree,
    /// Least start of its subtree in the active tree.
    pub(super) min_start: u64,
    /// Sectors served in the current slot.
    pub(super) service: i32,
    /// Sectors that the entity may be served.
    pub(super) budget: i32,
    pub(super) allocated: i32,
    pub(super) weight: u32,
    pub(super) new_weight: u32,
    pub(super) orig_weight: u32,
    pub(super) group: GroupId,
    pub(super) prio_changed: bool,
    /// Counts among the entities with pending requests (in_groups_with_pending_reqs).
    pub(super) pending: bool,
    /// For a group: the queue that was created last in it.
    pub(super) last_created: Option<QId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Entities {
    pub(super) list: Vec<Entity>,
    pub(super) groups: u32,
}

impl Entities {
    #[inline]
    pub(super) fn of(&self, q: QId) -> EntityId {
        EntityId(self.groups + q.0)
    }

    /// The queue of the entity, if it is one (bfq_entity_to_bfqq()).
    #[inline]
    pub(super) fn queue(&self, e: EntityId) -> Option<QId> {
        e.0.checked_sub(self.groups).map(QId)
    }

    /// The entity of its group; none below the root.
    #[inline]
    pub(super) fn parent(&self, e: EntityId) -> Option<EntityId> {
        self[e].group.entity()
    }

    /// The entity and all above it, the root excluded.
    pub(super) fn path(&self, e: EntityId) -> impl Iterator<Item = EntityId> + '_ {
        core::iter::successors(Some(e), |&e| self.parent(e))
    }
}

impl Index<EntityId> for Entities {
    type Output = Entity;
    #[inline]
    fn index(&self, e: EntityId) -> &Entity {
        &self.list[e.0 as usize]
    }
}

impl IndexMut<EntityId> for Entities {
    #[inline]
    fn index_mut(&mut self, e: EntityId) -> &mut Entity {
        &mut self.list[e.0 as usize]
    }
}

impl RbNodes for Entities {
    #[inline]
    fn node(&self, at: u32) -> &RbNode {
        &self.list[at as usize].rb
    }

    #[inline]
    fn node_mut(&mut self, at: u32) -> &mut RbNode {
        &mut self.list[at as usize].rb
    }
}
