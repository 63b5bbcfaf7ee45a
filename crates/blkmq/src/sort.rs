//! Red-black tree of requests by start sector, by index.
//!
//! The shape matters: of several requests with one start, a front merge takes the one met first
//! on the way down. So insertion and removal rebalance step for step as the kernel does; equal
//! sectors go behind older ones. Nodes live in the [`RequestPool`]; nothing is allocated.
//! Kernel: lib/rbtree.c, block/elevator.c elv_rb_add(), elv_rb_find() (v6.12).

use crate::list::NIL;
use crate::request::{RequestId, RequestPool, Sector};
use core::fmt;
use core::hash::{Hash, Hasher};

/// Parent of a node that is in no tree (RB_EMPTY_NODE).
const OFF: u32 = u32::MAX - 1;

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// Node of one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SortNode {
    key: Sector,
    parent: u32,
    child: [u32; 2],
    red: bool,
}

impl SortNode {
    /// True while the request is in a tree.
    pub fn is_linked(&self) -> bool {
        self.parent != OFF
    }
}

impl Default for SortNode {
    fn default() -> SortNode {
        SortNode {
            key: Sector(0),
            parent: OFF,
            child: [NIL; 2],
            red: false,
        }
    }
}

/// A tree of requests in order of their start sector.
#[derive(Clone, Copy)]
pub struct SortTree {
    root: u32,
    len: u32,
    visits: u32,
}

impl Default for SortTree {
    fn default() -> SortTree {
        SortTree::new()
    }
}

/// Equality is that of the contents: what operations cost is not part of it.
impl PartialEq for SortTree {
    fn eq(&self, other: &SortTree) -> bool {
        self.root == other.root && self.len == other.len
    }
}

impl Eq for SortTree {}

impl Hash for SortTree {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.root.hash(state);
    }
}

impl fmt::Debug for SortTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            NIL => write!(f, "tree of 0"),
            root => write!(f, "tree of {} at {root}", self.len),
        }
    }
}

impl SortTree {
    /// An empty tree.
    pub const fn new() -> SortTree {
        SortTree {
            root: NIL,
            len: 0,
            visits: 0,
        }
    }

    /// True if there is no request.
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Nodes visited on the way down and while rebalancing, since the last call.
    pub fn take_visits(&mut self) -> u32 {
        core::mem::take(&mut self.visits)
    }

    /// Adds `rq`, behind those that start at the same sector. Panics if it is in a tree.
    pub fn insert(&mut self, pool: &mut RequestPool, rq: RequestId, sector: Sector) {
        assert!(
            !pool.slots[rq.0 as usize].sort.is_linked(),
            "{rq:?} is in a tree already"
        );
        let (mut parent, mut side, mut at) = (NIL, LEFT, self.root);
        while at != NIL {
            parent = at;
            let here = self.visit(pool, at);
            side = usize::from(sector >= here.key);
            at = here.child[side];
        }
        pool.slots[rq.0 as usize].sort = SortNode {
            key: sector,
            parent,
            child: [NIL; 2],
            red: true,
        };
        pool.touch(rq);
        if parent == NIL {
            self.root = rq.0;
        } else {
            node_mut(pool, parent).child[side] = rq.0;
        }
        self.len += 1;
        self.rebalance_after_insert(pool, rq.0);
    }

    /// Takes `rq` out. Panics if it is in no tree; `check` finds a wrong tree.
    pub fn remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let gone = *self.visit(pool, rq.0);
        assert!(gone.is_linked(), "{rq:?} is in no tree");
        // `short` is the parent of the side that lost a black node.
        let short = match gone.child {
            [NIL, only] | [only, NIL] => {
                self.replace_child(pool, gone.parent, rq.0, only);
                if only == NIL {
                    (!gone.red).then_some((gone.parent, NIL))
                } else {
                    // A lone child is red and its parent black: it takes place and colour.
                    let only = node_mut(pool, only);
                    only.parent = gone.parent;
                    only.red = gone.red;
                    None
                }
            }
            [_, right] => self.replace_by_successor(pool, rq.0, &gone, right),
        };
        *node_mut(pool, rq.0) = SortNode::default();
        self.len -= 1;
        if let Some((parent, at)) = short {
            self.rebalance_after_remove(pool, parent, at);
        }
    }

    /// The request with the lowest sector, the oldest of them.
    pub fn first(&self, pool: &RequestPool) -> Option<RequestId> {
        (self.root != NIL).then(|| RequestId(outermost(pool, self.root, LEFT)))
    }

    /// The request with the highest sector, the newest of them.
    pub fn last(&self, pool: &RequestPool) -> Option<RequestId> {
        (self.root != NIL).then(|| RequestId(outermost(pool, self.root, RIGHT)))
    }

    /// The first request in order that starts at `sector` or behind it.
    pub fn first_at_or_after(&mut self, pool: &RequestPool, sector: Sector) -> Option<RequestId> {
        let (mut found, mut at) = (None, self.root);
        while at != NIL {
            let here = self.visit(pool, at);
            let side = if here.key >= sector {
                found = Some(RequestId(at));
                LEFT
            } else {
                RIGHT
            };
            at = here.child[side];
        }
        found
    }

    /// The request that starts at `sector` and is met first on the way down.
    pub fn find(&mut self, pool: &RequestPool, sector: Sector) -> Option<RequestId> {
        let mut at = self.root;
        while at != NIL {
            let here = self.visit(pool, at);
            at = match sector.cmp(&here.key) {
                core::cmp::Ordering::Less => here.child[LEFT],
                core::cmp::Ordering::Greater => here.child[RIGHT],
                core::cmp::Ordering::Equal => return Some(RequestId(at)),
            };
        }
        None
    }

    /// The request behind `rq` in order. Panics if `rq` is in no tree.
    pub fn next(&self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        neighbour(pool, rq, RIGHT)
    }

    /// The request before `rq` in order. Panics if `rq` is in no tree.
    pub fn prev(&self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        neighbour(pool, rq, LEFT)
    }

    /// Requests in order.
    pub fn iter<'a>(&self, pool: &'a RequestPool) -> impl Iterator<Item = RequestId> + use<'a> {
        let mut at = self.first(pool);
        core::iter::from_fn(move || {
            let rq = at?;
            at = neighbour(pool, rq, RIGHT);
            Some(rq)
        })
    }

    /// Panics unless the tree is ordered, red-black, as long as it says, and its keys are the
    /// start sectors of its requests.
    pub fn check(&self, pool: &RequestPool) {
        let mut count = 0;
        if self.root != NIL {
            assert!(!node(pool, self.root).red, "red root");
            assert_eq!(node(pool, self.root).parent, NIL, "parent of the root");
            check_below(pool, self.root, &mut count);
        }
        assert_eq!(count, self.len, "number of requests in the tree");
        let order: Vec<Sector> = self.iter(pool).map(|rq| pool[rq].sector).collect();
        assert!(order.is_sorted(), "tree out of order: {order:?}");
    }

    /// Puts the successor of `gone` in its place. Answers where a black node went missing.
    fn replace_by_successor(
        &mut self,
        pool: &mut RequestPool,
        old: u32,
        gone: &SortNode,
        right: u32,
    ) -> Option<(u32, u32)> {
        let heir = outermost(pool, right, LEFT);
        let SortNode {
            parent: heir_parent,
            child: [_, orphan],
            red: heir_red,
            ..
        } = *self.visit(pool, heir);
        let short_parent = if heir == right {
            heir
        } else {
            node_mut(pool, heir_parent).child[LEFT] = orphan;
            set_parent(pool, orphan, heir_parent);
            node_mut(pool, heir).child[RIGHT] = right;
            set_parent(pool, right, heir);
            heir_parent
        };
        let left = gone.child[LEFT];
        let taken = node_mut(pool, heir);
        taken.child[LEFT] = left;
        taken.parent = gone.parent;
        taken.red = gone.red;
        set_parent(pool, left, heir);
        self.replace_child(pool, gone.parent, old, heir);
        if orphan != NIL {
            // The heir had one child, which was red: painted black it keeps the count.
            node_mut(pool, orphan).red = false;
            return None;
        }
        (!heir_red).then_some((short_parent, NIL))
    }

    /// A red node may have a red parent: recolours upwards, at most two rotations.
    fn rebalance_after_insert(&mut self, pool: &mut RequestPool, inserted: u32) {
        let mut at = inserted;
        loop {
            let parent = node(pool, at).parent;
            if parent == NIL {
                node_mut(pool, at).red = false;
                return;
            }
            let &SortNode {
                red, parent: grand, ..
            } = self.visit(pool, parent);
            if !red {
                return;
            }
            let children = node(pool, grand).child;
            let side = usize::from(children[RIGHT] == parent);
            let uncle = children[1 - side];
            if is_red(pool, uncle) {
                node_mut(pool, uncle).red = false;
                node_mut(pool, parent).red = false;
                node_mut(pool, grand).red = true;
                at = grand;
                continue;
            }
            let mut top = parent;
            if side_of(pool, parent, at) != side {
                self.rotate(pool, parent, side);
                top = at;
            }
            node_mut(pool, top).red = false;
            node_mut(pool, grand).red = true;
            self.rotate(pool, grand, 1 - side);
            return;
        }
    }

    /// Paths through child `at` of `parent` lack one black node: borrows it or moves up.
    fn rebalance_after_remove(&mut self, pool: &mut RequestPool, parent: u32, at: u32) {
        let (mut parent, mut at) = (parent, at);
        while parent != NIL && !is_red(pool, at) {
            // The short side is the one where `at` hangs; a leaf is told by the taller sibling.
            let children = node(pool, parent).child;
            let side = usize::from(children[RIGHT] == at);
            let mut sibling = children[1 - side];
            if self.visit(pool, sibling).red {
                node_mut(pool, sibling).red = false;
                node_mut(pool, parent).red = true;
                self.rotate(pool, parent, side);
                sibling = node(pool, parent).child[1 - side];
            }
            let children = node(pool, sibling).child;
            let (near, far) = (children[side], children[1 - side]);
            if !is_red(pool, near) && !is_red(pool, far) {
                node_mut(pool, sibling).red = true;
                at = parent;
                parent = node(pool, at).parent;
                continue;
            }
            if !is_red(pool, far) {
                node_mut(pool, near).red = false;
                node_mut(pool, sibling).red = true;
                self.rotate(pool, sibling, 1 - side);
                sibling = near;
            }
            let far = node(pool, sibling).child[1 - side];
            node_mut(pool, sibling).red = node(pool, parent).red;
            node_mut(pool, parent).red = false;
            node_mut(pool, far).red = false;
            self.rotate(pool, parent, side);
            return;
        }
        if at != NIL {
            node_mut(pool, at).red = false;
        }
    }

    /// Moves `at` down to `side`; its other child takes its place.
    fn rotate(&mut self, pool: &mut RequestPool, at: u32, side: usize) {
        let SortNode { parent, child, .. } = *self.visit(pool, at);
        let up = child[1 - side];
        let inner = node(pool, up).child[side];
        let lower = node_mut(pool, at);
        lower.child[1 - side] = inner;
        lower.parent = up;
        set_parent(pool, inner, at);
        self.replace_child(pool, parent, at, up);
        let upper = node_mut(pool, up);
        upper.parent = parent;
        upper.child[side] = at;
    }

    /// Hangs `new` where `old` hung below `parent`, or at the root.
    fn replace_child(&mut self, pool: &mut RequestPool, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else {
            let side = side_of(pool, parent, old);
            node_mut(pool, parent).child[side] = new;
        }
    }

    /// The node, counted.
    #[inline]
    fn visit<'a>(&mut self, pool: &'a RequestPool, at: u32) -> &'a SortNode {
        self.visits += 1;
        node(pool, at)
    }
}

#[inline]
fn node(pool: &RequestPool, at: u32) -> &SortNode {
    let node = &pool.slots[at as usize];
    pool.lines.visit(pool.toucher, &node.lines);
    &node.sort
}

#[inline]
fn node_mut(pool: &mut RequestPool, at: u32) -> &mut SortNode {
    let node = &mut pool.slots[at as usize];
    pool.lines.resort(pool.toucher, &node.lines);
    &mut node.sort
}

fn set_parent(pool: &mut RequestPool, at: u32, parent: u32) {
    if at != NIL {
        node_mut(pool, at).parent = parent;
    }
}

/// Missing nodes are black.
fn is_red(pool: &RequestPool, at: u32) -> bool {
    at != NIL && node(pool, at).red
}

/// The side of `parent` on which `child` hangs. For a missing child of a node with one missing
/// child that is unambiguous.
fn side_of(pool: &RequestPool, parent: u32, child: u32) -> usize {
    usize::from(node(pool, parent).child[RIGHT] == child)
}

/// The last node from `at` on one side.
fn outermost(pool: &RequestPool, at: u32, side: usize) -> u32 {
    let mut at = at;
    loop {
        let next = node(pool, at).child[side];
        if next == NIL {
            return at;
        }
        at = next;
    }
}

/// The next node in order on one side.
fn neighbour(pool: &RequestPool, rq: RequestId, side: usize) -> Option<RequestId> {
    let here = node(pool, rq.0);
    assert!(here.is_linked(), "neighbour of {rq:?}, which is in no tree");
    if here.child[side] != NIL {
        return Some(RequestId(outermost(pool, here.child[side], 1 - side)));
    }
    let (mut at, mut parent) = (rq.0, here.parent);
    while parent != NIL && node(pool, parent).child[side] == at {
        at = parent;
        parent = node(pool, at).parent;
    }
    (parent != NIL).then_some(RequestId(parent))
}

/// Checks the subtree at `at`; answers its height in black nodes.
fn check_below(pool: &RequestPool, at: u32, count: &mut u32) -> u32 {
    if at == NIL {
        return 0;
    }
    *count += 1;
    let here = node(pool, at);
    assert_eq!(here.key, pool[RequestId(at)].sector, "key of request {at}");
    for child in here.child.into_iter().filter(|&child| child != NIL) {
        assert_eq!(node(pool, child).parent, at, "parent of {child}");
        let both_red = here.red && node(pool, child).red;
        assert!(!both_red, "red {child} below red {at}");
    }
    let heights = here.child.map(|child| check_below(pool, child, count));
    assert_eq!(
        heights[LEFT], heights[RIGHT],
        "black height below request {at}"
    );
    heights[LEFT] + u32::from(!here.red)
}

#[cfg(test)]
mod tests;
