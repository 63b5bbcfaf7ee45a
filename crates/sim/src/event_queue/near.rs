//! The near half: two ticks from the present on, one slot for each nanosecond.
//!
//! A slot holds events of one time, so that only their classes need an order. Two levels of
//! bitmaps find the next slot that is not empty. A slot's index is its time modulo the window.
//! The paths that every event takes have no branch that depends on whether a slot was empty.

use super::{NONE, Nodes, TICK_SHIFT, cell_of};

/// Slots, and nanoseconds from the start of the present tick to the horizon.
pub(super) const SLOTS: usize = 2 << TICK_SHIFT;
/// Cells that a `Tail` can name.
pub(super) const CELLS: usize = 1 << 24;
const WORDS: usize = SLOTS / 64;

#[derive(Clone, Debug)]
pub(super) struct Near {
    /// One bit for each slot that holds an event.
    words: [u64; WORDS],
    /// One bit for each word that is not zero.
    summary: u64,
}

/// The cell whose link ends a slot's list, and the class of the event there: in one word, so that
/// an append need not look at that event. An empty list ends in the slot's own cell, class 0. A
/// slot's tail lies in the cell after its own: one cache line has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tail(u32);

impl Tail {
    fn new(cell: usize, class: u8) -> Tail {
        debug_assert!(cell < CELLS);
        Tail(cell as u32 | u32::from(class) << 24)
    }

    fn cell(self) -> usize {
        self.0 as usize % CELLS
    }

    fn class(self) -> u8 {
        (self.0 >> 24) as u8
    }
}

/// The cells of all slots, empty.
pub(super) fn empty_slots() -> impl Iterator<Item = u32> {
    (0..SLOTS).flat_map(|slot| [NONE, Tail::new(own_cell(slot), 0).0])
}

/// The cell of a slot's first node.
const fn own_cell(slot: usize) -> usize {
    2 * slot
}

impl Near {
    pub(super) fn new() -> Near {
        Near {
            words: [0; WORDS],
            summary: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Near::new();
    }

    /// Insert a node after those of its time that have its class or a lower one.
    #[inline]
    pub(super) fn push<E>(&mut self, nodes: &mut Nodes<E>, id: u32, time: u64, class: u8) {
        let slot = time as usize % SLOTS;
        self.words[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
        let cell = own_cell(slot);
        let tail = Tail(nodes.links[cell + 1]);
        if tail.class() > class {
            return insert_before_higher(nodes, cell, id, class);
        }
        nodes.links[tail.cell()] = id;
        nodes.links[cell + 1] = Tail::new(cell_of(id), class).0;
    }

    /// Remove the first node at `time`, of which there is one, and return the time of the next slot
    /// in use if it lies in the same word.
    #[inline]
    pub(super) fn pop<E: Copy>(&mut self, nodes: &mut Nodes<E>, time: u64) -> (E, Option<u64>) {
        let slot = time as usize % SLOTS;
        let cell = own_cell(slot);
        let id = nodes.links[cell];
        debug_assert_eq!(nodes.slab[id as usize].time, time, "a slot holds one time");
        // Stale if that was the last one: the empty list's tail makes the next push overwrite it.
        nodes.links[cell] = nodes.links[cell_of(id)];
        let tail = Tail(nodes.links[cell + 1]);
        let last = tail.cell() == cell_of(id);
        nodes.links[cell + 1] = if last { Tail::new(cell, 0) } else { tail }.0;
        let word = self.words[slot / 64] & !(u64::from(last) << (slot % 64));
        self.words[slot / 64] = word;
        self.summary &= !(u64::from(word == 0) << (slot / 64));
        let ahead = word >> (slot % 64);
        let next = (ahead != 0).then(|| time + u64::from(ahead.trailing_zeros()));
        (nodes.remove(id), next)
    }

    /// Time of the first slot in use, if any; none lies before `now`.
    pub(super) fn next_from(&self, now: u64) -> Option<u64> {
        let start = now as usize % SLOTS;
        let ahead = self.words[start / 64] >> (start % 64);
        if ahead != 0 {
            return Some(now + u64::from(ahead.trailing_zeros()));
        }
        if self.summary == 0 {
            return None;
        }
        // Words after that of `now`, wrapping around; that of `now` itself holds nothing more.
        let first = start / 64 + 1;
        let skipped = self
            .summary
            .rotate_right(first as u32 % 64)
            .trailing_zeros() as usize;
        let word = (first + skipped) % WORDS;
        let slot = word * 64 + self.words[word].trailing_zeros() as usize;
        Some(now + (slot.wrapping_sub(start) % SLOTS) as u64)
    }
}

/// Insert a node before the first of a higher class, which exists, so that the tail stays.
#[cold]
fn insert_before_higher<E>(nodes: &mut Nodes<E>, slot: usize, id: u32, class: u8) {
    let mut cell = slot;
    let mut after = nodes.links[cell];
    while nodes.slab[after as usize].class <= class {
        cell = cell_of(after);
        after = nodes.links[cell];
    }
    nodes.links[cell_of(id)] = after;
    nodes.links[cell] = id;
}
