//! Requests by start sector: the kernel's red-black tree, by index.
//!
//! The shape matters: of several requests with one start, a front merge takes the first one on the
//! way down. Equal sectors are sorted after older ones. Nodes are in the [`RequestPool`]; nothing
//! is allocated. Balancing: `rbtree.rs`. Kernel: block/elevator.c elv_rb_add(), elv_rb_find()
//! (v6.12).

use core::fmt;

use crate::list::NIL;
use crate::rbtree::{LEFT, RIGHT, RbNode, RbNodes, RbTree, neighbour};
use crate::request::{RequestId, RequestPool, Sector};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SortNode {
    key: Sector,
    rb: RbNode,
}

impl SortNode {
    /// True while the request is in a tree.
    pub fn is_linked(&self) -> bool {
        self.rb.is_linked()
    }
}

impl Default for SortNode {
    fn default() -> SortNode {
        SortNode {
            key: Sector(0),
            rb: RbNode::default(),
        }
    }
}

impl RbNodes for RequestPool {
    #[inline]
    fn node(&self, at: u32) -> &RbNode {
        &node(self, at).rb
    }

    #[inline]
    fn node_mut(&mut self, at: u32) -> &mut RbNode {
        let node = &mut self.slots[at as usize];
        self.lines.resort(self.toucher, &node.lines);
        &mut node.sort.rb
    }

    #[inline]
    fn new_node(&mut self, at: u32) -> &mut RbNode {
        &mut self.slots[at as usize].sort.rb
    }
}

/// A tree of requests in order of their start sector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SortTree(RbTree);

impl fmt::Debug for SortTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl SortTree {
    pub const fn new() -> SortTree {
        SortTree(RbTree::new())
    }

    /// Its shape.
    pub fn tree(&self) -> &RbTree {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Nodes visited on the way down and while rebalancing, since the last call.
    pub fn take_touched(&mut self) -> u32 {
        self.0.take_touched()
    }

    /// Adds `rq`, after those that start at the same sector. Panics if it is in a tree.
    pub fn insert(&mut self, pool: &mut RequestPool, rq: RequestId, sector: Sector) {
        let (mut parent, mut side, mut at) = (NIL, LEFT, self.0.root());
        while at != NIL {
            parent = at;
            let here = self.visit(pool, at);
            side = usize::from(sector >= here.key);
            at = here.rb.child[side];
        }
        pool.slots[rq.0 as usize].sort.key = sector;
        pool.touch(rq);
        self.0.link(pool, rq.0, (parent, side));
    }

    /// Takes `rq` out. Panics if it is in no tree; `check` finds a wrong tree.
    pub fn remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.0.erase(pool, rq.0);
        pool.slots[rq.0 as usize].sort.key = Sector(0);
    }

    /// `rq` starts at another sector now, and is still in order: the tree stays as it is.
    pub fn starts_at(&mut self, pool: &mut RequestPool, rq: RequestId, sector: Sector) {
        pool.slots[rq.0 as usize].sort.key = sector;
        pool.touch(rq);
    }

    /// The request with the lowest sector, the oldest of them.
    pub fn first(&self, pool: &RequestPool) -> Option<RequestId> {
        self.0.first(pool).map(RequestId)
    }

    /// The request with the highest sector, the newest of them.
    pub fn last(&self, pool: &RequestPool) -> Option<RequestId> {
        self.0.last(pool).map(RequestId)
    }

    /// The first request in order that starts at `sector` or after it.
    pub fn first_at_or_after(&mut self, pool: &RequestPool, sector: Sector) -> Option<RequestId> {
        let (mut found, mut at) = (None, self.0.root());
        while at != NIL {
            let here = self.visit(pool, at);
            let side = if here.key >= sector {
                found = Some(RequestId(at));
                LEFT
            } else {
                RIGHT
            };
            at = here.rb.child[side];
        }
        found
    }

    /// The request that starts at `sector` and is visited first on the way down.
    pub fn find(&mut self, pool: &RequestPool, sector: Sector) -> Option<RequestId> {
        let mut at = self.0.root();
        while at != NIL {
            let here = self.visit(pool, at);
            at = match sector.cmp(&here.key) {
                core::cmp::Ordering::Less => here.rb.child[LEFT],
                core::cmp::Ordering::Greater => here.rb.child[RIGHT],
                core::cmp::Ordering::Equal => return Some(RequestId(at)),
            };
        }
        None
    }

    /// The request after `rq` in order. Panics if `rq` is in no tree.
    pub fn next(&self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        neighbour(pool, rq.0, RIGHT).map(RequestId)
    }

    /// The request before `rq` in order. Panics if `rq` is in no tree.
    pub fn prev(&self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        neighbour(pool, rq.0, LEFT).map(RequestId)
    }

    pub fn iter<'a>(&self, pool: &'a RequestPool) -> impl Iterator<Item = RequestId> + use<'a> {
        let mut at = self.first(pool);
        core::iter::from_fn(move || {
            let rq = at?;
            at = neighbour(pool, rq.0, RIGHT).map(RequestId);
            Some(rq)
        })
    }

    /// Panics unless the tree is ordered, red-black, as long as it says, and its keys are the
    /// start sectors of its requests.
    pub fn check(&self, pool: &RequestPool) {
        self.0.check(pool);
        let mut before = Sector(0);
        for rq in self.iter(pool) {
            let (key, sector) = (pool.slots[rq.0 as usize].sort.key, pool[rq].sector);
            assert_eq!(key, sector, "key of {rq:?}");
            assert!(before <= sector, "tree out of order at {rq:?}");
            before = sector;
        }
    }

    #[inline]
    fn visit<'a>(&mut self, pool: &'a RequestPool, at: u32) -> &'a SortNode {
        self.0.count_touch();
        node(pool, at)
    }
}

#[inline]
fn node(pool: &RequestPool, at: u32) -> &SortNode {
    let node = &pool.slots[at as usize];
    pool.lines.visit(pool.toucher, &node.lines);
    &node.sort
}

#[cfg(test)]
mod tests;
