//! The allocation of a bit, word by word. Kernel: sbitmap_find_bit(), sbitmap_deferred_clear()
//! (6.1.192, 6.12.117); the latter also in its form without lock.

use super::{SbWord, Sbitmap};
use crate::env::Cpu;
use crate::names::stages;
use crate::rules::FreedBits;

stages! {
/// Position of a search.
pub enum At in "tag-get" {
    /// Search for a zero bit in the current word.
    Search,
    /// Under swap_lock: are there freed bits to merge back?
    Merge,
    /// Without that lock: are there?
    Freed,
    /// Without the lock: take them out of the cleared word.
    Seize,
    /// Without it: take them out of the word.
    Release,
    /// Batch: under swap_lock, merge freed bits back first.
    RunMerge,
    /// Batch: take a run of bits.
    Run,
}
}

/// A search for a free bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Get {
    at: At,
    run: u8,
    start: u8,
    tried: u16,
    hint: u32,
    index: u32,
    shallow: Option<u32>,
    /// Freed bits that are in neither word, and so invisible to other CPUs.
    freed: u64,
}

/// Outcome of one step of a search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GetStep {
    Step,
    /// Needs the swap lock of this word.
    Lock(u32),
    Got(u32),
    /// Took the bits `first + i` for every bit `i` of `bits`.
    GotRun {
        /// The bit of the map for bit 0 of `bits`.
        first: u32,
        /// The bits of the run that were free.
        bits: u64,
    },
    /// Every word is full.
    Full,
}

impl Get {
    /// A search from this CPU's hint. `shallow` limits the bits that may be taken.
    pub fn start(map: &Sbitmap, cpu: &mut Cpu, shallow: Option<u32>) -> Get {
        let hint = map.hint_before(cpu);
        let offset = hint & ((1 << map.shift) - 1);
        let from_offset = map.round_robin || shallow.is_some();
        Get {
            at: At::Search,
            hint,
            index: hint >> map.shift,
            start: if from_offset { offset as u8 } else { 0 },
            tried: 0,
            shallow,
            run: 0,
            freed: 0,
        }
    }

    /// A search for up to `count` bits in a row (__sbitmap_queue_get_batch).
    pub fn batch(map: &Sbitmap, cpu: &mut Cpu, count: u32) -> Get {
        Get {
            at: At::Search,
            run: count as u8,
            start: 0,
            ..Get::start(map, cpu, None)
        }
    }

    /// True if this label only computes or searches one word (not under a lock).
    pub fn wraps(&self, map: &Sbitmap) -> bool {
        self.shallow.is_some() || !map.round_robin
    }

    pub fn stage(&self) -> At {
        self.at
    }

    pub fn step(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> GetStep {
        match self.at {
            At::Search if self.run > 0 && map.freed_bits == FreedBits::AtOnce => {
                self.at = At::Run;
                GetStep::Step
            }
            At::Search if self.run > 0 => {
                self.at = At::RunMerge;
                GetStep::Lock(self.index)
            }
            At::Search => self.search(map, cpu),
            At::Merge => self.merge(map, cpu),
            At::Freed | At::Seize | At::Release => self.merge_unlocked(map, cpu),
            At::RunMerge => {
                let word = &map.words[self.index as usize];
                merge_freed(map, word, cpu);
                word.swap.release(cpu);
                self.at = At::Run;
                GetStep::Step
            }
            At::Run => self.take_run(map, cpu),
        }
    }

    fn take_run(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> GetStep {
        let word = &map.words[self.index as usize];
        self.at = At::Search;
        let depth = map.bits_of(self.index as usize);
        let Some((first, bits)) = word.word.acquire_run(cpu, u32::from(self.run), depth) else {
            return self.next_word(map, cpu);
        };
        debug_assert_ne!(bits, 0, "a run of bits that were all taken");
        debug_assert_eq!(
            word.word.peek() >> first & bits,
            bits,
            "a run of them is not taken"
        );
        let base = first + (self.index << map.shift);
        debug_assert!(
            base + u32::from(self.run) <= map.depth(),
            "a run beyond the map"
        );
        map.hint_after(cpu, self.hint, Some(base + u32::from(self.run) - 1));
        GetStep::GotRun { first: base, bits }
    }

    fn search(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> GetStep {
        let depth = map.word_depth(self.index as usize, self.shallow);
        if depth == 0 {
            return self.next_word(map, cpu);
        }
        let candidates = u64::MAX >> (64 - depth);
        let start = u32::from(self.start);
        let start = if start < depth { start } else { 0 };
        let word = &map.words[self.index as usize].word;
        match word.acquire_zero(cpu, start, candidates, self.wraps(map)) {
            Some(bit) => {
                debug_assert!(bit < depth, "bit {bit} of a word with {depth}");
                debug_assert_eq!(word.peek() >> bit & 1, 1, "bit {bit} was taken");
                let bit = bit + (self.index << map.shift);
                map.hint_after(cpu, self.hint, Some(bit));
                GetStep::Got(bit)
            }
            None if map.freed_bits == FreedBits::AtOnce => self.next_word(map, cpu),
            None if map.swap_lock => {
                self.at = At::Merge;
                GetStep::Lock(self.index)
            }
            None => {
                self.at = At::Freed;
                GetStep::Step
            }
        }
    }

    /// Under swap_lock, for which all searches that found the word full wait: none of them sees
    /// freed bits that are in neither word. Frees may run meanwhile.
    fn merge(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> GetStep {
        let word = &map.words[self.index as usize];
        self.at = At::Search;
        if merge_freed(map, word, cpu) {
            word.swap.release(cpu);
            return GetStep::Step;
        }
        let depth = map.word_depth(self.index as usize, self.shallow);
        let mut usable = u64::MAX >> (64 - depth);
        if !self.wraps(map) {
            usable &= u64::MAX << self.start;
        }
        let retry = word.word.load(cpu) & usable != usable;
        word.swap.release(cpu);
        if retry {
            GetStep::Step
        } else {
            self.next_word(map, cpu)
        }
    }

    /// sbitmap_deferred_clear() of v5.11 to v6.10: between two of its steps another CPU sees freed
    /// bits in neither word.
    fn merge_unlocked(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> GetStep {
        let word = &map.words[self.index as usize];
        self.at = match self.at {
            At::Freed if word.cleared.load(cpu) == 0 => {
                self.at = At::Search;
                return self.next_word(map, cpu);
            }
            At::Freed => At::Seize,
            At::Seize => {
                self.freed = word.cleared.swap(cpu, 0);
                At::Release
            }
            _ => {
                word.word.fetch_and(cpu, !core::mem::take(&mut self.freed));
                At::Search
            }
        };
        GetStep::Step
    }

    fn next_word(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> GetStep {
        self.start = 0;
        self.tried += 1;
        let count = map.word_count();
        self.index += 1;
        if self.index >= count {
            self.index = 0;
        }
        if u32::from(self.tried) < count {
            return GetStep::Step;
        }
        // A batch that finds no run leaves the hint unchanged (__sbitmap_queue_get_batch).
        if self.run == 0 {
            map.hint_after(cpu, self.hint, None);
        }
        GetStep::Full
    }
}

impl Sbitmap {
    /// Takes a bit while nothing else runs, in any order of steps.
    pub(crate) fn take_any(&self, cpu: &mut Cpu) -> Option<u32> {
        cpu.begin_label();
        let mut get = Get::start(self, cpu, None);
        loop {
            let step = get.step(self, cpu);
            cpu.begin_label();
            match step {
                GetStep::Step => {}
                GetStep::Lock(word) => self.words[word as usize].swap.acquire(cpu),
                GetStep::Got(bit) => return Some(bit),
                GetStep::GotRun { .. } => unreachable!("bits are taken one by one"),
                GetStep::Full => return None,
            }
        }
    }
}

/// sbitmap_deferred_clear() under swap_lock: takes freed bits out of the word. True if there were.
///
/// Deviation(D13): both words change in one step, though searches read them without the lock.
pub(super) fn merge_freed(map: &Sbitmap, word: &SbWord, cpu: &mut Cpu) -> bool {
    if word.cleared.load(cpu) == 0 {
        return false;
    }
    let freed = word.cleared.swap(cpu, 0);
    let before = word.word.fetch_and(cpu, !freed);
    let taken = before & freed == freed || map.given_twice;
    debug_assert!(taken, "a bit is given back that nobody had");
    true
}
