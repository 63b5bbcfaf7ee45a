//! Intrusive doubly linked lists of requests, by index.
//!
//! A request has one pair of links for each kind of list ([`QueueLink`], [`HashLink`]), so it is on
//! at most one list of a kind; that is asserted. The links are in the [`RequestPool`], a [`List`]
//! is only a head. Not here: the meaning of a list (see `Place`). Kernel: include/linux/list.h.

use crate::request::{CpuId, Lines, RequestId, RequestLines, RequestPool, Slot};
use core::fmt;
use core::marker::PhantomData;

/// No neighbour: the end of a list.
pub const NIL: u32 = u32::MAX;
/// On no list at all.
const OFF: u32 = u32::MAX - 1;

/// Neighbours of one entry, as slots of the pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Links {
    prev: u32,
    next: u32,
}

impl Links {
    /// Links of an entry that is on no list.
    pub const UNLINKED: Links = Links {
        prev: OFF,
        next: OFF,
    };

    /// True while the entry is on a list.
    pub fn is_linked(self) -> bool {
        self.prev != OFF
    }
}

impl Default for Links {
    fn default() -> Links {
        Links::UNLINKED
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |slot| match slot {
            NIL => "-".to_owned(),
            OFF => "off".to_owned(),
            slot => slot.to_string(),
        };
        write!(f, "{}<>{}", name(self.prev), name(self.next))
    }
}

/// The pair of links that a list uses.
pub trait LinkField: Copy + fmt::Debug {
    fn links(slot: &Slot) -> Links;
    fn links_mut(slot: &mut Slot) -> &mut Links;
    /// Records that the links of a request change with a neighbour.
    fn relink(lines: &Lines, cpu: CpuId, of: &RequestLines);
}

/// `rq->queuelist`: ctx, fifo, dispatch, requeue and free lists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct QueueLink;

/// `rq->hash`: buckets of the elevator's merge hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct HashLink;

impl LinkField for QueueLink {
    fn links(slot: &Slot) -> Links {
        slot.queue
    }
    fn links_mut(slot: &mut Slot) -> &mut Links {
        &mut slot.queue
    }
    #[inline]
    fn relink(lines: &Lines, cpu: CpuId, of: &RequestLines) {
        lines.relink(cpu, of);
    }
}

impl LinkField for HashLink {
    fn links(slot: &Slot) -> Links {
        slot.hash
    }
    fn links_mut(slot: &mut Slot) -> &mut Links {
        &mut slot.hash
    }
    #[inline]
    fn relink(lines: &Lines, cpu: CpuId, of: &RequestLines) {
        lines.resort(cpu, of);
    }
}

/// A list through `queuelist`.
pub type QueueList = List<QueueLink>;

/// Head of a list. Copying it does not copy the entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct List<F> {
    first: u32,
    last: u32,
    len: u32,
    field: PhantomData<F>,
}

impl<F> Default for List<F> {
    fn default() -> List<F> {
        List::new()
    }
}

impl<F> fmt::Debug for List<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first(), self.last()) {
            (Some(first), Some(last)) => write!(f, "[{}..{}; {}]", first.0, last.0, self.len),
            _ => write!(f, "[]"),
        }
    }
}

impl<F> List<F> {
    pub const fn new() -> List<F> {
        List {
            first: NIL,
            last: NIL,
            len: 0,
            field: PhantomData,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The entry at the front.
    pub fn first(&self) -> Option<RequestId> {
        slot_to_id(self.first)
    }

    /// The entry at the back.
    pub fn last(&self) -> Option<RequestId> {
        slot_to_id(self.last)
    }
}

impl<F: LinkField> List<F> {
    /// Adds `rq` at the back. Panics if it is on a list of this kind.
    pub fn push_back(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.link(pool, self.last, rq.0, NIL);
    }

    /// Adds `rq` at the front. Panics if it is on a list of this kind.
    pub fn push_front(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.link(pool, NIL, rq.0, self.first);
    }

    /// Adds `rq` just before `at`, which is on this list. Panics if `rq` is on a list.
    pub fn insert_before(&mut self, pool: &mut RequestPool, at: RequestId, rq: RequestId) {
        debug_assert!(
            self.contains(pool, at),
            "insert before {at:?}, which is not on this list"
        );
        let prev = F::links(&pool.slots[at.0 as usize]).prev;
        self.link(pool, prev, rq.0, at.0);
    }

    /// Replaces `old`, which leaves the list, by `rq`. Panics if `rq` is on a list.
    pub fn replace(&mut self, pool: &mut RequestPool, old: RequestId, rq: RequestId) {
        self.insert_before(pool, old, rq);
        self.remove(pool, old);
    }

    pub fn pop_front(&mut self, pool: &mut RequestPool) -> Option<RequestId> {
        let rq = self.first()?;
        self.unlink(pool, rq.0);
        Some(rq)
    }

    pub fn pop_back(&mut self, pool: &mut RequestPool) -> Option<RequestId> {
        let rq = self.last()?;
        self.unlink(pool, rq.0);
        Some(rq)
    }

    /// Takes `rq` off this list. Panics if it is not linked, or is an end of another list.
    pub fn remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        debug_assert!(
            self.contains(pool, rq),
            "remove {rq:?}, which is not on this list"
        );
        self.unlink(pool, rq.0);
    }

    /// Appends all of `other`. `other` is left empty.
    pub fn splice_back(&mut self, pool: &mut RequestPool, other: &mut List<F>) {
        let (Some(front), false) = (other.first(), self.is_empty()) else {
            if self.is_empty() {
                core::mem::swap(self, other);
            }
            return;
        };
        self.set_next(pool, self.last, front.0);
        self.set_prev(pool, front.0, self.last);
        self.last = other.last;
        self.len += other.len;
        *other = List::new();
    }

    /// Moves all entries of `other` before those of this list. `other` is left empty.
    pub fn splice_front(&mut self, pool: &mut RequestPool, other: &mut List<F>) {
        other.splice_back(pool, self);
        core::mem::swap(self, other);
    }

    /// The entry after `rq`, which is on this list.
    pub fn next(&self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        let links = F::links(&pool.slots[rq.0 as usize]);
        assert!(links.is_linked(), "next of {rq:?}, which is on no list");
        slot_to_id(links.next)
    }

    /// The entry before `rq`, which is on this list.
    pub fn prev(&self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        let links = F::links(&pool.slots[rq.0 as usize]);
        assert!(links.is_linked(), "prev of {rq:?}, which is on no list");
        slot_to_id(links.prev)
    }

    pub fn iter<'a>(&self, pool: &'a RequestPool) -> impl Iterator<Item = RequestId> + use<'a, F> {
        let mut at = self.first();
        core::iter::from_fn(move || {
            let rq = at?;
            at = slot_to_id(F::links(&pool.slots[rq.0 as usize]).next);
            Some(rq)
        })
    }

    pub fn iter_rev<'a>(
        &self,
        pool: &'a RequestPool,
    ) -> impl Iterator<Item = RequestId> + use<'a, F> {
        let mut at = self.last();
        core::iter::from_fn(move || {
            let rq = at?;
            at = slot_to_id(F::links(&pool.slots[rq.0 as usize]).prev);
            Some(rq)
        })
    }

    /// True if `rq` is on this list. Walks it.
    pub fn contains(&self, pool: &RequestPool, rq: RequestId) -> bool {
        self.iter(pool).any(|entry| entry == rq)
    }

    /// Walks the whole list. Panics unless links, ends and length agree.
    pub fn check(&self, pool: &RequestPool) {
        let mut prev = NIL;
        let mut count = 0;
        let mut at = self.first;
        while at != NIL {
            assert!(
                count < self.len,
                "list longer than its length of {}",
                self.len
            );
            let links = F::links(&pool.slots[at as usize]);
            assert_eq!(links.prev, prev, "back link of request {at}");
            (prev, at) = (at, links.next);
            count += 1;
        }
        assert_eq!(count, self.len, "list shorter than its length");
        assert_eq!(self.last, prev, "last entry of the list");
    }

    /// Sets `rq` between `prev` and `next`, which are neighbours or ends.
    fn link(&mut self, pool: &mut RequestPool, prev: u32, rq: u32, next: u32) {
        let links = F::links_mut(&mut pool.slots[rq as usize]);
        assert!(!links.is_linked(), "request {rq} is on a list already");
        *links = Links { prev, next };
        self.set_next(pool, prev, rq);
        self.set_prev(pool, next, rq);
        pool.touch(RequestId(rq));
        self.len += 1;
    }

    fn unlink(&mut self, pool: &mut RequestPool, rq: u32) {
        // Not assert_eq: its arguments would be kept in memory on the path without failure.
        let Links { prev, next } = core::mem::take(F::links_mut(&mut pool.slots[rq as usize]));
        assert!(prev != OFF, "request {rq} is on no list");
        assert!(
            (prev == NIL) == (self.first == rq),
            "request {rq} is at the front of another list"
        );
        assert!(
            (next == NIL) == (self.last == rq),
            "request {rq} is at the back of another list"
        );
        self.set_next(pool, prev, next);
        self.set_prev(pool, next, prev);
        pool.touch(RequestId(rq));
        self.len -= 1;
    }

    /// Makes `next` follow `prev`, or come first.
    fn set_next(&mut self, pool: &mut RequestPool, prev: u32, next: u32) {
        // No slot has the number NIL.
        match pool.slots.get_mut(prev as usize) {
            None => self.first = next,
            Some(slot) => {
                F::links_mut(slot).next = next;
                F::relink(&pool.lines, pool.toucher, &slot.lines);
            }
        }
    }

    /// Makes `prev` precede `next`, or come last.
    fn set_prev(&mut self, pool: &mut RequestPool, next: u32, prev: u32) {
        match pool.slots.get_mut(next as usize) {
            None => self.last = prev,
            Some(slot) => {
                F::links_mut(slot).prev = prev;
                F::relink(&pool.lines, pool.toucher, &slot.lines);
            }
        }
    }
}

fn slot_to_id(slot: u32) -> Option<RequestId> {
    (slot != NIL).then_some(RequestId(slot))
}

#[cfg(test)]
mod tests;
