//! Unfinished things on one device, found by start sector or by range.
//!
//! A hash table of 64 KiB regions of the disk, each with a chain of the values that start in it:
//! look-ups by exact start are one probe, by range a few, and nothing is allocated once the table
//! has grown to the number of things in flight. The hash is fixed, so the order of a chain is the
//! same in every run. Not a map: several values may start at one sector.

pub(super) const NONE: u32 = u32::MAX;

/// Sectors of a region, as a shift.
const REGION_SHIFT: u32 = 7;
/// Not a region: sectors have 64 bits, regions 57.
const VACANT: u64 = u64::MAX;
const FIRST_SLOTS: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Slot {
    region: u64,
    head: u32,
}

#[derive(Debug)]
struct Node<T> {
    /// Region whose chain this is in, or `VACANT`.
    region: u64,
    /// Next in the chain; of a free node: the next free one.
    next: u32,
    older: u32,
    newer: u32,
    value: T,
}

/// See the head of the file.
#[derive(Debug)]
pub(super) struct Table<T> {
    slots: Vec<Slot>,
    /// Bits of a hash that do not choose the slot.
    shift: u32,
    used_slots: usize,
    nodes: Vec<Node<T>>,
    free: u32,
    count: usize,
    oldest: u32,
    newest: u32,
}

impl<T> Table<T> {
    pub(super) fn new() -> Table<T> {
        Table {
            slots: vec![
                Slot {
                    region: VACANT,
                    head: NONE
                };
                FIRST_SLOTS
            ],
            shift: 64 - FIRST_SLOTS.trailing_zeros(),
            used_slots: 0,
            nodes: Vec::new(),
            free: NONE,
            count: 0,
            oldest: NONE,
            newest: NONE,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The value that was added first of those that are left, or `NONE`.
    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// The value added next after this one, or `NONE`.
    pub(super) fn newer(&self, id: u32) -> u32 {
        self.nodes[id as usize].newer
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &T {
        &self.nodes[id as usize].value
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut T {
        &mut self.nodes[id as usize].value
    }

    /// Adds a value that cannot be found by sector yet.
    #[inline]
    pub(super) fn add(&mut self, value: T) -> u32 {
        let older = self.newest;
        let mut id = self.free;
        if id == NONE {
            id = self.nodes.len() as u32;
            self.nodes.push(Node {
                region: VACANT,
                next: NONE,
                older,
                newer: NONE,
                value,
            });
        } else {
            let node = &mut self.nodes[id as usize];
            self.free = node.next;
            (node.older, node.newer) = (older, NONE);
            node.value = value;
        }
        if older == NONE {
            self.oldest = id;
        } else {
            self.nodes[older as usize].newer = id;
        }
        self.newest = id;
        self.count += 1;
        id
    }

    /// Makes a value findable at a sector. Panics if it is already.
    #[inline]
    pub(super) fn attach(&mut self, id: u32, sector: u64) {
        let region = sector >> REGION_SHIFT;
        assert_eq!(self.nodes[id as usize].region, VACANT);
        if self.used_slots * 8 >= self.slots.len() {
            self.grow();
        }
        let at = self.slot_of(region);
        let slot = &mut self.slots[at];
        self.used_slots += usize::from(slot.region == VACANT);
        slot.region = region;
        let node = &mut self.nodes[id as usize];
        node.region = region;
        node.next = std::mem::replace(&mut slot.head, id);
    }

    /// Makes a value no longer findable. Nothing happens if it was not.
    #[inline]
    pub(super) fn detach(&mut self, id: u32) {
        let Node { region, next, .. } = self.nodes[id as usize];
        if region == VACANT {
            return;
        }
        self.nodes[id as usize].region = VACANT;
        let at = self.slot_of(region);
        let mut before = self.slots[at].head;
        if before == id {
            self.slots[at].head = next;
            if next == NONE {
                self.vacate(at);
            }
            return;
        }
        while self.nodes[before as usize].next != id {
            before = self.nodes[before as usize].next;
        }
        self.nodes[before as usize].next = next;
    }

    /// Takes a value out. Its number will be used again.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        self.detach(id);
        let free = std::mem::replace(&mut self.free, id);
        let node = &mut self.nodes[id as usize];
        node.next = free;
        let (older, newer) = (node.older, node.newer);
        if older == NONE {
            self.oldest = newer;
        } else {
            self.nodes[older as usize].newer = newer;
        }
        if newer == NONE {
            self.newest = older;
        } else {
            self.nodes[newer as usize].older = older;
        }
        self.count -= 1;
    }

    /// First of the chain of values that start near `sector`; newest first.
    #[inline]
    pub(super) fn first(&self, sector: u64) -> u32 {
        self.slots[self.slot_of(sector >> REGION_SHIFT)].head
    }

    /// Next of the chain, or `NONE`.
    #[inline]
    pub(super) fn after(&self, id: u32) -> u32 {
        self.nodes[id as usize].next
    }

    /// Calls `visit` for all values that start in a region touched by `from..to`, and perhaps for
    /// others. At least the region of `from` is visited.
    #[inline]
    pub(super) fn near(&self, from: u64, to: u64, mut visit: impl FnMut(u32, &T)) {
        let first = from >> REGION_SHIFT;
        let last = to.saturating_sub(1).max(from) >> REGION_SHIFT;
        if last - first >= self.slots.len() as u64 {
            for slot in self.slots.iter().filter(|slot| slot.region != VACANT) {
                self.chain(slot.head, &mut visit);
            }
            return;
        }
        for region in first..=last {
            self.chain(self.slots[self.slot_of(region)].head, &mut visit);
        }
    }

    #[inline]
    fn chain(&self, mut id: u32, visit: &mut impl FnMut(u32, &T)) {
        while id != NONE {
            let node = &self.nodes[id as usize];
            visit(id, &node.value);
            id = node.next;
        }
    }

    /// Slot a region is in or would go to.
    #[inline]
    fn slot_of(&self, region: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(region);
        while self.slots[at].region != region && self.slots[at].region != VACANT {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline]
    fn home(&self, region: u64) -> usize {
        // Fibonacci hashing: the upper bits of the product are well mixed.
        (region.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Empties a slot and moves back those after it that would no longer be found.
    #[inline]
    fn vacate(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut at = hole;
        self.used_slots -= 1;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.region == VACANT {
                break;
            }
            let home = self.home(slot.region);
            // May stay if its home lies cyclically after the hole.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = Slot {
            region: VACANT,
            head: NONE,
        };
    }

    #[cold]
    fn grow(&mut self) {
        let vacant = Slot {
            region: VACANT,
            head: NONE,
        };
        let double = vec![vacant; self.slots.len() * 2];
        self.shift -= 1;
        for slot in std::mem::replace(&mut self.slots, double) {
            if slot.region != VACANT {
                let at = self.slot_of(slot.region);
                self.slots[at] = slot;
            }
        }
    }

    /// Whole-structure check: every chain is reachable, every count right.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut found = 0;
        for slot in self.slots.iter().filter(|slot| slot.region != VACANT) {
            assert_ne!(slot.head, NONE, "an empty chain has no slot");
            assert_eq!(self.slots[self.slot_of(slot.region)].head, slot.head);
            self.chain(slot.head, &mut |id, _| {
                assert_eq!(self.nodes[id as usize].region, slot.region);
                found += 1;
            });
        }
        let used = self
            .slots
            .iter()
            .filter(|slot| slot.region != VACANT)
            .count();
        assert_eq!(used, self.used_slots);
        let (mut aged, mut attached, mut id) = (0, 0, self.oldest);
        while id != NONE {
            aged += 1;
            attached += usize::from(self.nodes[id as usize].region != VACANT);
            id = self.newer(id);
        }
        assert_eq!((aged, attached), (self.count, found));
    }
}

#[cfg(test)]
mod tests;
