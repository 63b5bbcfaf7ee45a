//! Projections by number: an open-addressing table that compares whole keys.

use crate::fingerprint::spread;

/// Number of a distinct state.
pub(super) type Id = u32;
pub(super) const NONE: Id = Id::MAX;

/// Projections, whole, in the order of discovery.
#[derive(Debug)]
pub(super) struct Table {
    bytes: Vec<u8>,
    ends: Vec<u64>,
    slots: Vec<Slot>,
}

/// A slot of the table: a state and bits of its hash, which only save comparisons.
#[derive(Clone, Copy, Debug)]
struct Slot {
    id: Id,
    hash: u32,
}

/// The bits of a hash that do not choose the slot.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

const FREE: Slot = Slot { id: NONE, hash: 0 };

impl Table {
    pub(super) fn new() -> Table {
        Table {
            bytes: Vec::new(),
            ends: vec![0],
            slots: vec![FREE; 1 << 12],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    pub(super) fn get(&self, id: Id) -> &[u8] {
        let id = id as usize;
        &self.bytes[self.ends[id] as usize..self.ends[id + 1] as usize]
    }

    /// The number of a known projection.
    pub(super) fn find(&self, projection: &[u8]) -> Option<Id> {
        let id = self.slots[self.slot(projection, spread(projection))].id;
        (id != NONE).then_some(id)
    }

    /// The number of the projection, and whether it is new.
    pub(super) fn insert(&mut self, projection: &[u8]) -> (Id, bool) {
        let hash = spread(projection);
        let at = self.slot(projection, hash);
        if self.slots[at].id != NONE {
            return (self.slots[at].id, false);
        }
        let id = self.len() as Id;
        self.slots[at] = Slot {
            id,
            hash: tag(hash),
        };
        self.bytes.extend_from_slice(projection);
        self.ends.push(self.bytes.len() as u64);
        if self.len() * 2 > self.slots.len() {
            self.grow();
        }
        (id, true)
    }

    /// The slot of a projection, or the free one for it.
    fn slot(&self, projection: &[u8], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let same = slot.hash == tag(hash) && slot.id != NONE && self.get(slot.id) == projection;
            if slot.id == NONE || same {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![FREE; mask + 1];
        for id in 0..self.len() as Id {
            let hash = spread(self.get(id));
            let mut at = hash as usize & mask;
            while self.slots[at].id != NONE {
                at = (at + 1) & mask;
            }
            self.slots[at] = Slot {
                id,
                hash: tag(hash),
            };
        }
    }
}
