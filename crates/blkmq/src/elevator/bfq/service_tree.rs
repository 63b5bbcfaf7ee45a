//! Service tree: the entities of one class in one group, by virtual finish time (B-WF2Q+).
//!
//! The active tree is searched as in the kernel, which does not always find the eligible entity
//! with the least finish: the shape of the tree decides, so all rotations are the kernel's. Kernel:
//! block/bfq-wf2q.c bfq_insert(), bfq_update_active_tree(), bfq_find_deepest(),
//! bfq_first_active_entity() (6.1.192, 6.12.117).

use super::entity::{Entities, InTree};
use super::ids::EntityId;
use crate::list::NIL;
use crate::rbtree::{LEFT, RIGHT, RbNodes, RbTree, neighbour};

/// A is later than B, on a scale that wraps (bfq_gt()).
#[inline]
pub(super) fn later(a: u64, b: u64) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// Virtual time that so many sectors take at this weight (bfq_delta()).
#[inline]
pub(super) fn delta(sectors: u64, weight: u64) -> u64 {
    (sectors << SERVICE_SHIFT) / weight
}

/// WFQ_SERVICE_SHIFT.
const SERVICE_SHIFT: u32 = 22;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ServiceTree {
    active: RbTree,
    idle: RbTree,
    pub(super) first_idle: Option<EntityId>,
    pub(super) last_idle: Option<EntityId>,
    pub(super) vtime: u64,
    /// Sum of the weights of all entities in the trees or in service.
    pub(super) wsum: u64,
}

impl ServiceTree {
    #[inline]
    pub(super) fn has_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// Inserts `e` into the active tree (the tree's part of bfq_active_insert()).
    pub(super) fn insert_active(&mut self, entities: &mut Entities, e: EntityId) {
        insert(&mut self.active, entities, e);
        entities[e].tree = InTree::Active;
        let node = entities.node(e.0);
        let from = match node.child {
            [NIL, NIL] => e.0,
            [NIL, right] => right,
            [left, _] => left,
        };
        update_from(entities, from);
    }

    /// Removes `e` from the active tree (part of bfq_active_extract()).
    pub(super) fn extract_active(&mut self, entities: &mut Entities, e: EntityId) {
        let deepest = deepest(entities, e.0);
        entities[e].tree = InTree::No;
        self.active.erase(entities, e.0);
        if deepest != NIL {
            update_from(entities, deepest);
        }
    }

    /// Inserts `e` into the idle tree (part of bfq_idle_insert()).
    pub(super) fn insert_idle(&mut self, entities: &mut Entities, e: EntityId) {
        let finish = entities[e].finish;
        if self
            .first_idle
            .is_none_or(|first| later(entities[first].finish, finish))
        {
            self.first_idle = Some(e);
        }
        if self
            .last_idle
            .is_none_or(|last| later(finish, entities[last].finish))
        {
            self.last_idle = Some(e);
        }
        insert(&mut self.idle, entities, e);
        entities[e].tree = InTree::Idle;
    }

    /// Removes `e` from the idle tree (part of bfq_idle_extract()).
    pub(super) fn extract_idle(&mut self, entities: &mut Entities, e: EntityId) {
        if self.first_idle == Some(e) {
            self.first_idle = neighbour(entities, e.0, RIGHT).map(EntityId);
        }
        if self.last_idle == Some(e) {
            self.last_idle = neighbour(entities, e.0, LEFT).map(EntityId);
        }
        entities[e].tree = InTree::No;
        self.idle.erase(entities, e.0);
    }

    /// The virtual time of the earliest start, if no entity is eligible before
    /// (bfq_calc_vtime_jump()).
    ///
    /// # Panics
    /// If no entity is active.
    pub(super) fn jump(&self, entities: &Entities) -> u64 {
        let least = entities[EntityId(self.active.root())].min_start;
        if later(least, self.vtime) {
            least
        } else {
            self.vtime
        }
    }

    /// The next entity at this virtual time (bfq_first_active_entity()).
    pub(super) fn eligible(&mut self, entities: &Entities, vtime: u64) -> Option<EntityId> {
        let mut first = None;
        let mut at = self.active.root();
        while at != NIL {
            self.active.count_touch();
            let here = &entities.list[at as usize];
            if !later(here.start, vtime) {
                first = Some(EntityId(at));
            }
            let [left, right] = here.rb.child;
            if left != NIL && !later(entities.list[left as usize].min_start, vtime) {
                at = left;
            } else if first.is_some() {
                break;
            } else {
                at = right;
            }
        }
        first
    }

    /// Nodes visited since the last call.
    pub(super) fn take_touched(&mut self) -> u32 {
        self.active.take_touched() + self.idle.take_touched()
    }

    /// Panics unless both trees are in order and every least start is right.
    pub(super) fn check(&self, entities: &Entities, group: super::ids::GroupId) {
        for (tree, which) in [(&self.active, InTree::Active), (&self.idle, InTree::Idle)] {
            tree.check(entities);
            let mut at = tree.first(entities);
            let mut before: Option<u64> = None;
            while let Some(e) = at {
                let entity = &entities.list[e as usize];
                assert_eq!(entity.tree, which, "entity {e} is in a tree");
                assert_eq!(entity.group, group, "entity {e} is in its group's tree");
                assert!(entity.on_st, "entity {e} is in a tree and counts");
                let in_order = before.is_none_or(|before| !later(before, entity.finish));
                assert!(in_order, "finish times at entity {e}");
                before = Some(entity.finish);
                if which == InTree::Active {
                    let below = entity.rb.child.into_iter().filter(|&child| child != NIL);
                    let below = below.map(|child| entities.list[child as usize].min_start);
                    let least = below.fold(entity.start, |a, b| if later(a, b) { b } else { a });
                    assert_eq!(entity.min_start, least, "least start below entity {e}");
                }
                at = neighbour(entities, e, RIGHT);
            }
        }
        let first = self.idle.first(entities).map(EntityId);
        assert_eq!(self.first_idle, first, "first idle entity");
        // Of equals the first one counts; when it leaves, the one before it in the tree.
        if let Some(last) = self.last_idle {
            assert_eq!(entities[last].tree, InTree::Idle, "last idle entity");
            assert_eq!(entities[last].group, group, "group of the last idle entity");
        }
    }
}

/// Inserts by finish time, after equals (bfq_insert()).
fn insert(tree: &mut RbTree, entities: &mut Entities, e: EntityId) {
    let finish = entities[e].finish;
    let (mut parent, mut side, mut at) = (NIL, LEFT, tree.root());
    while at != NIL {
        tree.count_touch();
        parent = at;
        let here = &entities.list[at as usize];
        side = usize::from(!later(here.finish, finish));
        at = here.rb.child[side];
    }
    tree.link(entities, e.0, (parent, side));
}

/// bfq_update_active_node().
fn update_node(entities: &mut Entities, at: u32) {
    let here = &entities.list[at as usize];
    let [left, right] = here.rb.child;
    let mut least = here.start;
    for child in [right, left] {
        if child != NIL && later(least, entities.list[child as usize].min_start) {
            least = entities.list[child as usize].min_start;
        }
    }
    entities.list[at as usize].min_start = least;
}

/// Updates least starts from a node up to the root, each with its sibling's
/// (bfq_update_active_tree()).
fn update_from(entities: &mut Entities, at: u32) {
    let mut at = at;
    loop {
        update_node(entities, at);
        let parent = entities.node(at).parent;
        if parent == NIL {
            return;
        }
        let [left, right] = entities.node(parent).child;
        if at == left && right != NIL {
            update_node(entities, right);
        } else if left != NIL {
            update_node(entities, left);
        }
        at = parent;
    }
}

/// The lowest node whose subtree changes when `at` is taken out (bfq_find_deepest()).
fn deepest(entities: &Entities, at: u32) -> u32 {
    let node = entities.node(at);
    match node.child {
        [NIL, NIL] => node.parent,
        [left, NIL] => left,
        [NIL, right] => right,
        _ => {
            let next = neighbour(entities, at, RIGHT).expect("there is a right subtree");
            let successor = entities.node(next);
            if successor.child[RIGHT] != NIL {
                successor.child[RIGHT]
            } else if successor.parent != at {
                successor.parent
            } else {
                next
            }
        }
    }
}
