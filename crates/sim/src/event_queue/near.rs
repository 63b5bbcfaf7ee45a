//! The near half: two ticks from the present on, one slot for each nanosecond.
//!
//! A slot holds events of one time, so that only their classes need an order. Two levels of
//! bitmaps find the next slot that is not empty. A slot's index is its time modulo the window.

use super::{List, NONE, Nodes, TICK_SHIFT};

/// Slots, and nanoseconds from the start of the present tick to the horizon.
const SLOTS: usize = 2 << TICK_SHIFT;
const WORDS: usize = SLOTS / 64;

#[derive(Clone, Debug)]
pub(super) struct Near {
    /// Lists, valid where the slot's bit in `words` is set.
    slots: Box<[List; SLOTS]>,
    /// One bit for each slot.
    words: [u64; WORDS],
    /// One bit for each word that is not zero.
    summary: u64,
}

impl Near {
    pub(super) fn new() -> Near {
        let slots = vec![
            List {
                head: NONE,
                tail: NONE
            };
            SLOTS
        ]
        .into_boxed_slice();
        Near {
            slots: slots
                .try_into()
                .expect("the vector has one element for each slot"),
            words: [0; WORDS],
            summary: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.words = [0; WORDS];
        self.summary = 0;
    }

    /// Insert a node behind those of its time that have its class or a lower one.
    #[inline]
    pub(super) fn push<E>(&mut self, nodes: &mut Nodes<E>, id: u32) {
        let (index, class) = {
            let node = &nodes.slab[id as usize];
            (node.time as usize % SLOTS, node.class)
        };
        let word = &mut self.words[index / 64];
        let bit = 1 << (index % 64);
        let slot = &mut self.slots[index];
        if *word & bit == 0 {
            *word |= bit;
            self.summary |= 1 << (index / 64);
            *slot = List { head: id, tail: id };
            return;
        }
        let tail = &mut nodes.slab[slot.tail as usize];
        if tail.class <= class {
            tail.next = id;
            slot.tail = id;
        } else {
            insert_before_higher(nodes, slot, id, class);
        }
    }

    /// Remove the first node at `time`, of which there is one.
    #[inline]
    pub(super) fn pop<E: Copy>(&mut self, nodes: &mut Nodes<E>, time: u64) -> E {
        let index = time as usize % SLOTS;
        let slot = &mut self.slots[index];
        let id = slot.head;
        debug_assert_eq!(nodes.slab[id as usize].time, time, "a slot holds one time");
        if id == slot.tail {
            let word = &mut self.words[index / 64];
            debug_assert!(
                *word >> (index % 64) & 1 == 1,
                "the earliest event has a slot"
            );
            *word &= !(1 << (index % 64));
            if *word == 0 {
                self.summary &= !(1 << (index / 64));
            }
        } else {
            slot.head = nodes.slab[id as usize].next;
        }
        nodes.remove(id)
    }

    /// Time of the first slot in use, if any; none lies before `now`.
    #[inline]
    pub(super) fn next_from(&self, now: u64) -> Option<u64> {
        let start = now as usize % SLOTS;
        let ahead = self.words[start / 64] >> (start % 64);
        if ahead != 0 {
            return Some(now + u64::from(ahead.trailing_zeros()));
        }
        if self.summary == 0 {
            return None;
        }
        // The word of `now` comes last: what it holds lies a whole window ahead.
        let first = start / 64 + 1;
        let skipped = self
            .summary
            .rotate_right(first as u32 % 64)
            .trailing_zeros() as usize;
        let word = (first + skipped) % WORDS;
        let index = word * 64 + self.words[word].trailing_zeros() as usize;
        Some(now + (index.wrapping_sub(start) % SLOTS) as u64)
    }
}

/// Insert a node before the first of a higher class, which exists.
#[cold]
fn insert_before_higher<E>(nodes: &mut Nodes<E>, slot: &mut List, id: u32, class: u8) {
    let mut before = NONE;
    let mut after = slot.head;
    while nodes.slab[after as usize].class <= class {
        before = after;
        after = nodes.slab[after as usize].next;
    }
    nodes.slab[id as usize].next = after;
    if before == NONE {
        slot.head = id;
    } else {
        nodes.slab[before as usize].next = id;
    }
}
