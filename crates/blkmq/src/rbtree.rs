//! Red-black tree by index, of any nodes, balanced step for step as the kernel's.
//!
//! The shape matters where a search does not end at the first node in order: equal sectors of
//! requests, the active tree of BFQ. The caller of an insertion goes down the tree by its own order
//! and passes the parent of the new node. Nothing is allocated. Read next: `sort.rs`. Kernel:
//! lib/rbtree.c rb_link_node(), rb_insert_color(), rb_erase() (v6.12).

use core::fmt;
use core::hash::{Hash, Hasher};

use crate::list::NIL;

/// Parent of a node that is in no tree (RB_EMPTY_NODE).
const OFF: u32 = u32::MAX - 1;

/// Lower in order.
pub const LEFT: usize = 0;
pub const RIGHT: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RbNode {
    pub(crate) parent: u32,
    /// Left and right; `NIL` if missing.
    pub child: [u32; 2],
    red: bool,
}

impl RbNode {
    /// True while it is in a tree.
    #[inline]
    pub fn is_linked(&self) -> bool {
        self.parent != OFF
    }

    /// Its colour.
    pub fn is_red(&self) -> bool {
        self.red
    }
}

impl Default for RbNode {
    fn default() -> RbNode {
        RbNode {
            parent: OFF,
            child: [NIL; 2],
            red: false,
        }
    }
}

pub trait RbNodes {
    /// The node with this number.
    fn node(&self, at: u32) -> &RbNode;
    /// The same, mutable.
    fn node_mut(&mut self, at: u32) -> &mut RbNode;
    /// The same for a node that will be linked, which the caller has touched.
    fn new_node(&mut self, at: u32) -> &mut RbNode {
        self.node_mut(at)
    }
}

/// A tree: its root, and the costs of work on it.
#[derive(Clone, Copy)]
pub struct RbTree {
    root: u32,
    len: u32,
    visits: u32,
}

impl Default for RbTree {
    fn default() -> RbTree {
        RbTree::new()
    }
}

/// Equality is that of the contents; costs are not part of it.
impl PartialEq for RbTree {
    fn eq(&self, other: &RbTree) -> bool {
        self.root == other.root && self.len == other.len
    }
}

impl Eq for RbTree {}

impl Hash for RbTree {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.root.hash(state);
    }
}

impl fmt::Debug for RbTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            NIL => write!(f, "tree of 0"),
            root => write!(f, "tree of {} at {root}", self.len),
        }
    }
}

impl RbTree {
    pub const fn new() -> RbTree {
        RbTree {
            root: NIL,
            len: 0,
            visits: 0,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The node at the top, `NIL` if there is none.
    #[inline]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Nodes visited while rebalancing and counted on the way down, since the last call.
    #[inline]
    pub fn take_touched(&mut self) -> u32 {
        core::mem::take(&mut self.visits)
    }

    /// Counts a node on the way down.
    #[inline]
    pub fn count_touch(&mut self) {
        self.visits += 1;
    }

    /// Links `at` below `parent` (`NIL`: it is the first) on this side, and balances.
    ///
    /// # Panics
    /// If it is in a tree.
    pub fn link(&mut self, nodes: &mut impl RbNodes, at: u32, (parent, side): (u32, usize)) {
        let new = nodes.new_node(at);
        assert!(!new.is_linked(), "node {at} is in a tree already");
        *new = RbNode {
            parent,
            child: [NIL; 2],
            red: true,
        };
        if parent == NIL {
            self.root = at;
        } else {
            nodes.node_mut(parent).child[side] = at;
        }
        self.len += 1;
        self.rebalance_after_insert(nodes, at);
    }

    /// Takes `at` out.
    ///
    /// # Panics
    /// If it is in no tree.
    pub fn erase(&mut self, nodes: &mut impl RbNodes, at: u32) {
        let gone = *self.visit(nodes, at);
        assert!(gone.is_linked(), "node {at} is in no tree");
        // `short` is the parent of the side that lost a black node.
        let short = match gone.child {
            [NIL, only] | [only, NIL] => {
                self.replace_child(nodes, gone.parent, at, only);
                if only == NIL {
                    (!gone.red).then_some((gone.parent, NIL))
                } else {
                    // A lone child is red and its parent black: it takes place and colour.
                    let only = nodes.node_mut(only);
                    only.parent = gone.parent;
                    only.red = gone.red;
                    None
                }
            }
            [_, right] => self.replace_by_successor(nodes, at, &gone, right),
        };
        *nodes.node_mut(at) = RbNode::default();
        self.len -= 1;
        if let Some((parent, at)) = short {
            self.rebalance_after_remove(nodes, parent, at);
        }
    }

    pub fn first(&self, nodes: &impl RbNodes) -> Option<u32> {
        (self.root != NIL).then(|| outermost(nodes, self.root, LEFT))
    }

    pub fn last(&self, nodes: &impl RbNodes) -> Option<u32> {
        (self.root != NIL).then(|| outermost(nodes, self.root, RIGHT))
    }

    /// Panics unless the tree is red-black and as long as it says.
    pub fn check(&self, nodes: &impl RbNodes) {
        let mut count = 0;
        if self.root != NIL {
            assert!(!nodes.node(self.root).red, "red root");
            assert_eq!(nodes.node(self.root).parent, NIL, "parent of the root");
            check_below(nodes, self.root, &mut count);
        }
        assert_eq!(count, self.len, "number of nodes in the tree");
    }

    /// Replaces `gone` by its successor. Returns where a black node is missing.
    fn replace_by_successor(
        &mut self,
        nodes: &mut impl RbNodes,
        old: u32,
        gone: &RbNode,
        right: u32,
    ) -> Option<(u32, u32)> {
        let heir = outermost(nodes, right, LEFT);
        let RbNode {
            parent: heir_parent,
            child: [_, orphan],
            red: heir_red,
            ..
        } = *self.visit(nodes, heir);
        let short_parent = if heir == right {
            heir
        } else {
            nodes.node_mut(heir_parent).child[LEFT] = orphan;
            set_parent(nodes, orphan, heir_parent);
            nodes.node_mut(heir).child[RIGHT] = right;
            set_parent(nodes, right, heir);
            heir_parent
        };
        let left = gone.child[LEFT];
        let taken = nodes.node_mut(heir);
        taken.child[LEFT] = left;
        taken.parent = gone.parent;
        taken.red = gone.red;
        set_parent(nodes, left, heir);
        self.replace_child(nodes, gone.parent, old, heir);
        if orphan != NIL {
            // The heir had one child, which was red: painted black it keeps the count.
            nodes.node_mut(orphan).red = false;
            return None;
        }
        (!heir_red).then_some((short_parent, NIL))
    }

    /// A red node may have a red parent: recolours upwards, at most two rotations.
    fn rebalance_after_insert(&mut self, nodes: &mut impl RbNodes, inserted: u32) {
        let mut at = inserted;
        loop {
            let parent = nodes.node(at).parent;
            if parent == NIL {
                nodes.node_mut(at).red = false;
                return;
            }
            let &RbNode {
                red, parent: grand, ..
            } = self.visit(nodes, parent);
            if !red {
                return;
            }
            let children = nodes.node(grand).child;
            let side = usize::from(children[RIGHT] == parent);
            let uncle = children[1 - side];
            if is_red(nodes, uncle) {
                nodes.node_mut(uncle).red = false;
                nodes.node_mut(parent).red = false;
                nodes.node_mut(grand).red = true;
                at = grand;
                continue;
            }
            let mut top = parent;
            if side_of(nodes, parent, at) != side {
                self.rotate(nodes, parent, side);
                top = at;
            }
            nodes.node_mut(top).red = false;
            nodes.node_mut(grand).red = true;
            self.rotate(nodes, grand, 1 - side);
            return;
        }
    }

    /// Paths through child `at` of `parent` lack one black node: borrows it or moves up.
    fn rebalance_after_remove(&mut self, nodes: &mut impl RbNodes, parent: u32, at: u32) {
        let (mut parent, mut at) = (parent, at);
        while parent != NIL && !is_red(nodes, at) {
            // The short side is that of `at`; if `at` is a leaf, the other side has a node.
            let children = nodes.node(parent).child;
            let side = usize::from(children[RIGHT] == at);
            let mut sibling = children[1 - side];
            if self.visit(nodes, sibling).red {
                nodes.node_mut(sibling).red = false;
                nodes.node_mut(parent).red = true;
                self.rotate(nodes, parent, side);
                sibling = nodes.node(parent).child[1 - side];
            }
            let children = nodes.node(sibling).child;
            let (near, far) = (children[side], children[1 - side]);
            if !is_red(nodes, near) && !is_red(nodes, far) {
                nodes.node_mut(sibling).red = true;
                at = parent;
                parent = nodes.node(at).parent;
                continue;
            }
            if !is_red(nodes, far) {
                nodes.node_mut(near).red = false;
                nodes.node_mut(sibling).red = true;
                self.rotate(nodes, sibling, 1 - side);
                sibling = near;
            }
            let far = nodes.node(sibling).child[1 - side];
            nodes.node_mut(sibling).red = nodes.node(parent).red;
            nodes.node_mut(parent).red = false;
            nodes.node_mut(far).red = false;
            self.rotate(nodes, parent, side);
            return;
        }
        if at != NIL {
            nodes.node_mut(at).red = false;
        }
    }

    /// Moves `at` down to `side`; its other child takes its place.
    fn rotate(&mut self, nodes: &mut impl RbNodes, at: u32, side: usize) {
        let RbNode { parent, child, .. } = *self.visit(nodes, at);
        let up = child[1 - side];
        let inner = nodes.node(up).child[side];
        let lower = nodes.node_mut(at);
        lower.child[1 - side] = inner;
        lower.parent = up;
        set_parent(nodes, inner, at);
        self.replace_child(nodes, parent, at, up);
        let upper = nodes.node_mut(up);
        upper.parent = parent;
        upper.child[side] = at;
    }

    /// Replaces `old` by `new` below `parent`, or as the root.
    fn replace_child(&mut self, nodes: &mut impl RbNodes, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else {
            let side = side_of(nodes, parent, old);
            nodes.node_mut(parent).child[side] = new;
        }
    }

    #[inline]
    fn visit<'a>(&mut self, nodes: &'a impl RbNodes, at: u32) -> &'a RbNode {
        self.visits += 1;
        nodes.node(at)
    }
}

fn set_parent(nodes: &mut impl RbNodes, at: u32, parent: u32) {
    if at != NIL {
        nodes.node_mut(at).parent = parent;
    }
}

/// Missing nodes are black.
fn is_red(nodes: &impl RbNodes, at: u32) -> bool {
    at != NIL && nodes.node(at).red
}

/// The side of `parent` with `child`. For a missing child of a node with one missing child that is
/// unambiguous.
fn side_of(nodes: &impl RbNodes, parent: u32, child: u32) -> usize {
    usize::from(nodes.node(parent).child[RIGHT] == child)
}

/// The last node from `at` on one side.
fn outermost(nodes: &impl RbNodes, at: u32, side: usize) -> u32 {
    let mut at = at;
    loop {
        let next = nodes.node(at).child[side];
        if next == NIL {
            return at;
        }
        at = next;
    }
}

/// The next node in order on one side.
///
/// # Panics
/// If it is in no tree.
pub fn neighbour(nodes: &impl RbNodes, of: u32, side: usize) -> Option<u32> {
    let here = nodes.node(of);
    assert!(here.is_linked(), "neighbour of {of}, which is in no tree");
    if here.child[side] != NIL {
        return Some(outermost(nodes, here.child[side], 1 - side));
    }
    let (mut at, mut parent) = (of, here.parent);
    while parent != NIL && nodes.node(parent).child[side] == at {
        at = parent;
        parent = nodes.node(at).parent;
    }
    (parent != NIL).then_some(parent)
}

/// Checks the subtree at `at`; returns its height in black nodes.
fn check_below(nodes: &impl RbNodes, at: u32, count: &mut u32) -> u32 {
    if at == NIL {
        return 0;
    }
    *count += 1;
    let here = *nodes.node(at);
    for child in here.child.into_iter().filter(|&child| child != NIL) {
        assert_eq!(nodes.node(child).parent, at, "parent of {child}");
        let both_red = here.red && nodes.node(child).red;
        assert!(!both_red, "red {child} below red {at}");
    }
    let heights = here.child.map(|child| check_below(nodes, child, count));
    assert_eq!(
        heights[LEFT], heights[RIGHT],
        "black height below node {at}"
    );
    heights[LEFT] + u32::from(!here.red)
}
