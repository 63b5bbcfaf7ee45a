//! Queues of a scheduler by the sector of their next request, to find queues close to each other.
//!
//! Where two neighbours are close the shape of the tree decides, so it is the kernel's. A second
//! queue at a sector stays out. Not here: which queues may cooperate.
//! Kernel: cfq_prio_tree_lookup(), cfqq_close() in block/cfq-iosched.c (2.6.32 to 4.20), their like
//! in block/bfq-iosched.c (6.1.192, 6.12.117).

use core::cmp::Ordering;

use crate::list::NIL;
use crate::rbtree::{LEFT, RIGHT, RbNodes, RbTree, neighbour};
use crate::request::{RequestPool, Sector};

/// Nodes with a sector.
pub(super) trait Placed: RbNodes {
    /// Start of the next request of this node's queue.
    fn sector(&self, pool: &RequestPool, at: u32) -> Sector;
}

/// The result of a look-up: a queue at the sector, or the last visited one and the side to insert
/// at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    /// The queue at that sector.
    pub(super) found: Option<u32>,
    /// The last visited queue; [`NIL`] in an empty tree.
    pub(super) last: u32,
    /// The side on which a queue at the sector would be inserted.
    pub(super) side: usize,
}

/// Searches the tree for `sector`.
pub(super) fn look_up(
    tree: &mut RbTree,
    nodes: &impl Placed,
    pool: &RequestPool,
    sector: Sector,
) -> Looked {
    let mut looked = Looked {
        found: None,
        last: NIL,
        side: LEFT,
    };
    let mut at = tree.root();
    while at != NIL {
        tree.count_touch();
        looked.last = at;
        match sector.cmp(&nodes.sector(pool, at)) {
            Ordering::Greater => looked.side = RIGHT,
            Ordering::Less => looked.side = LEFT,
            Ordering::Equal => {
                looked.found = Some(at);
                break;
            }
        }
        at = nodes.node(at).child[looked.side];
    }
    looked
}

/// The queue at the sector, or else the last visited one, or its neighbour beyond the sector, if
/// `close` accepts the start of its next request.
pub(super) fn closest(
    nodes: &impl Placed,
    pool: &RequestPool,
    sector: Sector,
    looked: Looked,
    close: impl Fn(Sector) -> bool,
) -> Option<u32> {
    if looked.found.is_some() {
        return looked.found;
    }
    let last = nodes.sector(pool, looked.last);
    if close(last) {
        return Some(looked.last);
    }
    let side = if last < sector { RIGHT } else { LEFT };
    let other = neighbour(nodes, looked.last, side)?;
    close(nodes.sector(pool, other)).then_some(other)
}
