//! Another depth of a map in use: freed bits are merged back first, the words keep their size, and
//! bits above the new depth stay taken until they are freed.
//!
//! Kernel: sbitmap_queue_resize(), sbitmap_resize(), sbitmap_queue_update_wake_batch() in
//! lib/sbitmap.c (6.1.192, 6.12.117; 5.11 for queues that count down by themselves).

use super::Sbitmap;
use crate::env::Cpu;
use crate::names::stages;

stages! {
/// Position of a resize.
pub enum At in "tag-resize" {
    /// Another wake batch, if the new depth has one.
    Batch,
    /// A queue that counts by itself starts again: the next free wakes it (before v6.2).
    Reset,
    /// Under swap_lock of the next word: merge freed bits back.
    Merge,
    /// Without that lock: are there freed bits?
    Freed,
    /// Without the lock: take them out of the cleared word.
    Seize,
    /// Without it: take them out of the word.
    Release,
    /// The new depth.
    Depth,
}
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resize {
    at: At,
    depth: u32,
    /// The next word or wait queue.
    index: u32,
    /// Freed bits that are in neither word, and so invisible to other CPUs.
    freed: u64,
}

/// Outcome of one step of a resize.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResizeStep {
    Step,
    /// Needs the swap lock of this word.
    Lock(u32),
    Done,
}

impl Resize {
    /// To this depth.
    ///
    /// # Panics
    /// If it is zero.
    pub fn to(depth: u32) -> Resize {
        assert!(depth > 0, "a map without bits");
        Resize {
            at: At::Batch,
            depth,
            index: 0,
            freed: 0,
        }
    }

    pub fn stage(&self) -> At {
        self.at
    }

    /// One step.
    ///
    /// # Panics
    /// If the map was created with fewer words than the new depth has.
    pub fn step(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> ResizeStep {
        match self.at {
            At::Batch => {
                let batch = map.batch_of(self.depth);
                if batch == map.wake_batch.get() {
                    return self.next_word(map);
                }
                map.wake_batch.put(batch);
                if map.countdowns.is_empty() {
                    return self.next_word(map);
                }
                self.go(At::Reset)
            }
            At::Reset => {
                map.countdowns[self.index as usize].write(cpu, 1);
                self.index += 1;
                if (self.index as usize) < map.countdowns.len() {
                    return ResizeStep::Step;
                }
                self.index = 0;
                self.next_word(map)
            }
            At::Merge => {
                let word = &map.words[self.index as usize];
                map.merge_freed(cpu, self.index);
                word.swap.release(cpu);
                self.index += 1;
                self.next_word(map)
            }
            At::Freed | At::Seize | At::Release => self.merge_unlocked(map, cpu),
            At::Depth => {
                let words = self.depth.div_ceil(1 << map.shift) as usize;
                assert!(words <= map.words.len(), "a map has room for its depth");
                map.size.put(self.depth);
                ResizeStep::Done
            }
        }
    }

    /// sbitmap_deferred_clear() without the lock, as searches do it under these rules.
    fn merge_unlocked(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> ResizeStep {
        let word = &map.words[self.index as usize];
        match self.at {
            At::Freed if word.cleared.load(cpu) == 0 => {
                self.index += 1;
                self.next_word(map)
            }
            At::Freed => self.go(At::Seize),
            At::Seize => {
                self.freed = word.cleared.swap(cpu, 0);
                self.go(At::Release)
            }
            _ => {
                word.word.fetch_and(cpu, !core::mem::take(&mut self.freed));
                self.index += 1;
                self.next_word(map)
            }
        }
    }

    fn next_word(&mut self, map: &Sbitmap) -> ResizeStep {
        if self.index == map.word_count() {
            self.index = 0;
            return self.go(At::Depth);
        }
        if !map.swap_lock {
            return self.go(At::Freed);
        }
        self.at = At::Merge;
        ResizeStep::Lock(self.index)
    }

    fn go(&mut self, at: At) -> ResizeStep {
        self.at = at;
        ResizeStep::Step
    }
}
