//! The far half: levels of 64 slots, of 1 tick each, of 64, of 64^2, up to the end of time.
//!
//! An event's level is the highest base-64 digit in which its tick differs from the horizon's, its
//! slot is that digit. Lists are first-in, first-out and are taken as a whole before a later event
//! is pushed, so that insertion order survives every move.

use super::{List, NONE, Nodes, TICK_SHIFT, cell_of};

/// Enough for every 64-bit time.
const LEVELS: usize = (64 - TICK_SHIFT as usize).div_ceil(DIGIT as usize);
/// Bits of a digit.
const DIGIT: u32 = 6;

#[derive(Clone, Debug)]
pub(super) struct Far {
    levels: Box<[Level; LEVELS]>,
    /// One bit for each level that holds an event.
    used: u64,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    /// One bit for each slot that holds an event.
    used: u64,
    slots: [Slot; 64],
}

/// Valid where the level's bit is set.
#[derive(Clone, Copy, Debug)]
struct Slot {
    list: List,
    /// Time of the earliest event of the list.
    first: u64,
}

impl Far {
    pub(super) fn new() -> Far {
        let slot = Slot {
            list: List {
                head: NONE,
                tail: NONE,
            },
            first: u64::MAX,
        };
        Far {
            levels: Box::new(
                [Level {
                    used: 0,
                    slots: [slot; 64],
                }; LEVELS],
            ),
            used: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        for level in self.levels.iter_mut() {
            level.used = 0;
        }
        self.used = 0;
    }

    /// Append a node whose tick is not before the horizon.
    pub(super) fn push<E>(&mut self, nodes: &mut Nodes<E>, id: u32, horizon: u64) {
        let time = nodes.slab[id as usize].time;
        let tick = time >> TICK_SHIFT;
        debug_assert!(tick >= horizon, "tick {tick} belongs to the near half");
        let level = highest_digit(tick ^ horizon);
        let digit = digit(tick, level);
        let Level { used, slots } = &mut self.levels[level];
        let slot = &mut slots[digit];
        if *used >> digit & 1 == 0 {
            *used |= 1 << digit;
            self.used |= 1 << level;
            *slot = Slot {
                list: List { head: id, tail: id },
                first: time,
            };
        } else {
            nodes.links[cell_of(slot.list.tail)] = id;
            slot.list.tail = id;
            slot.first = slot.first.min(time);
        }
    }

    /// Time of the earliest event, all bits set if there is none.
    pub(super) fn next(&self) -> u64 {
        if self.used == 0 {
            return u64::MAX;
        }
        // A lower level shares more digits with the horizon, so it is earlier as a whole.
        let level = &self.levels[self.used.trailing_zeros() as usize];
        level.slots[level.used.trailing_zeros() as usize].first
    }

    /// Take the list of the slot that contains `tick`, of the level where it differs from the
    /// horizon. It holds the earliest event, so every other event is already in the right place for
    /// `tick`.
    pub(super) fn enter(&mut self, horizon: u64, tick: u64) -> List {
        let level = highest_digit(tick ^ horizon);
        debug_assert_eq!(
            level,
            self.used.trailing_zeros() as usize,
            "events are passed over"
        );
        self.take(level, digit(tick, level))
            .expect("the slot of the earliest event is in use")
    }

    /// Take the events of exactly this tick, the horizon's last value.
    pub(super) fn take_first(&mut self, tick: u64) -> Option<List> {
        self.take(0, digit(tick, 0))
    }

    /// Take the events of the largest block of ticks that begins at `horizon`.
    pub(super) fn take_block(&mut self, horizon: u64) -> Option<List> {
        let level = horizon.trailing_zeros() / DIGIT;
        if level == 0 {
            return None;
        }
        self.take(level as usize, digit(horizon, level as usize))
    }

    fn take(&mut self, level: usize, digit: usize) -> Option<List> {
        let Level { used, slots } = &mut self.levels[level];
        if *used >> digit & 1 == 0 {
            return None;
        }
        *used &= !(1 << digit);
        if *used == 0 {
            self.used &= !(1 << level);
        }
        Some(slots[digit].list)
    }
}

fn highest_digit(difference: u64) -> usize {
    ((difference | 1).ilog2() / DIGIT) as usize
}

fn digit(tick: u64, level: usize) -> usize {
    (tick >> (level as u32 * DIGIT)) as usize % 64
}
