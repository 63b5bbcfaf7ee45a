//! Visited states: fingerprints with the numbers of their states, in shards by hash.
//!
//! A shard is a table in memory, and sorted runs in a file once the table may not grow further. One
//! thread owns a shard while a batch is inserted; each shard takes its part of the batch in order,
//! so that the result does not depend on the number of threads. Read next: `seen/runs.rs`.

mod runs;

use std::io;

use rayon::prelude::*;

use crate::resources::OpenFile;
use runs::Runs;

/// Number of a state, in the order of discovery.
pub(crate) type StateId = u32;
pub(crate) const NONE: StateId = StateId::MAX;

/// The first bits of a fingerprint choose the shard, the next 96 are compared: two different states
/// pass for one with a probability of about n^2 / 2^103, 10^-15 for 10^8 states.
const SHARD_BITS: u32 = 6;
const SHARDS: usize = 1 << SHARD_BITS;

/// 96 bits of a fingerprint and, below, the number of the state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u128);

const FREE: Entry = Entry(u128::MAX);
const ID_MASK: u128 = NONE as u128;

impl Entry {
    const BYTES: usize = size_of::<u128>();

    fn new(print: u128, id: StateId) -> Entry {
        Entry(print << SHARD_BITS & !ID_MASK | u128::from(id))
    }

    fn id(self) -> StateId {
        self.0 as StateId
    }

    fn key(self) -> u128 {
        self.0 >> StateId::BITS
    }

    fn with(self, id: StateId) -> Entry {
        Entry(self.0 & !ID_MASK | u128::from(id))
    }
}

pub(crate) struct Seen {
    shards: Vec<Shard>,
}

struct Shard {
    /// The most entries of the table, as far as a batch needs no more.
    slots_max: usize,
    /// Open addressing; places are in the order of keys, as far as there are no collisions.
    slots: Vec<Entry>,
    used: usize,
    /// Slots that the last batch has filled.
    filled: Vec<u32>,
    runs: Runs,
    /// States with lower numbers are in runs.
    written: StateId,
}

impl Seen {
    /// A table of about so many bytes, and files beyond.
    pub(crate) fn new(bytes: u64) -> Seen {
        let slots_max = bytes / (Entry::BYTES * SHARDS) as u64;
        let shard = |_| Shard {
            slots_max: usize::try_from(slots_max).unwrap_or(usize::MAX),
            slots: vec![FREE; 16],
            used: 0,
            filled: Vec::new(),
            runs: Runs::default(),
            written: 0,
        };
        Seen {
            shards: (0..SHARDS).map(shard).collect(),
        }
    }

    /// Part of it is in files: larger batches are better.
    pub(crate) fn has_runs(&self) -> bool {
        self.shards.iter().any(|shard| !shard.runs.is_empty())
    }

    /// The number of a visited state, if it is in memory.
    pub(crate) fn recent(&self, print: u128) -> Option<StateId> {
        let shard = &self.shards[shard_of(print)];
        let entry = shard.slots[shard.place(Entry::new(print, 0))];
        (entry != FREE).then_some(entry.id())
    }

    /// Inserts the fingerprints of a batch, those that `print` has, where `base` states are known.
    /// `ids` gets the number of the state of each: `base` and the index for the first of a state
    /// that is new. [`Seen::number`] replaces these numbers.
    pub(crate) fn insert(
        &mut self,
        base: StateId,
        ids: &mut [StateId],
        print: impl Fn(usize) -> Option<u128> + Sync,
        open: OpenFile<'_>,
    ) -> io::Result<()> {
        let count = ids.len();
        let part = SHARDS.div_ceil(rayon::current_num_threads());
        let parts = self.shards.par_chunks_mut(part).enumerate();
        let parts = parts.map(|(nth, shards)| {
            let own = nth * part..nth * part + shards.len();
            let mut of_shards = vec![Vec::new(); shards.len()];
            for index in 0..count {
                if let Some(print) = print(index)
                    && own.contains(&shard_of(print))
                {
                    of_shards[shard_of(print) - own.start].push((index as u32, print));
                }
            }
            let mut found = Vec::new();
            for (shard, prints) in shards.iter_mut().zip(&of_shards) {
                shard.insert(base, prints, &mut found, open)?;
            }
            Ok(found)
        });
        let found: Vec<io::Result<Vec<(u32, StateId)>>> = parts.collect();
        for part in found {
            for (index, id) in part? {
                ids[index as usize] = id;
            }
        }
        Ok(())
    }

    /// Replaces the numbers that the last batch has got: `numbers` by index.
    pub(crate) fn number(&mut self, base: StateId, numbers: &[StateId]) {
        self.shards.par_iter_mut().for_each(|shard| {
            for slot in shard.filled.drain(..) {
                let entry = &mut shard.slots[slot as usize];
                if entry.id() >= base {
                    *entry = entry.with(numbers[(entry.id() - base) as usize]);
                }
            }
        });
    }
}

fn shard_of(print: u128) -> usize {
    (print >> (u128::BITS - SHARD_BITS)) as usize
}

impl Shard {
    /// The slot of a key, or the free one for it.
    fn place(&self, entry: Entry) -> usize {
        let count = self.slots.len();
        let high = (entry.0 >> 64) as u64;
        let mut at = ((u128::from(high) * count as u128) >> 64) as usize;
        loop {
            let slot = self.slots[at];
            if slot == FREE || slot.key() == entry.key() {
                return at;
            }
            at += 1;
            if at == count {
                at = 0;
            }
        }
    }

    fn insert(
        &mut self,
        base: StateId,
        prints: &[(u32, u128)],
        found: &mut Vec<(u32, StateId)>,
        open: OpenFile<'_>,
    ) -> io::Result<()> {
        self.make_room(prints.len(), open)?;
        self.filled.clear();
        let mut places = Vec::with_capacity(prints.len());
        for &(index, print) in prints {
            let entry = Entry::new(print, base + index);
            let at = self.place(entry);
            if self.slots[at] == FREE {
                self.slots[at] = entry;
                self.used += 1;
                self.filled.push(at as u32);
            }
            places.push(at);
        }
        if !self.runs.is_empty() {
            self.filled
                .sort_unstable_by_key(|&at| self.slots[at as usize]);
            let slots = &mut self.slots;
            self.runs.find(&self.filled, slots)?;
        }
        let ids = prints.iter().zip(places);
        found.extend(ids.map(|(&(index, _), at)| (index, self.slots[at].id())));
        Ok(())
    }

    /// Room for so many entries more: a larger table, or an empty one.
    fn make_room(&mut self, more: usize, open: OpenFile<'_>) -> io::Result<()> {
        let fits = |used: usize, count: usize| used + more <= count / 4 * 3;
        if fits(self.used, self.slots.len()) {
            return Ok(());
        }
        let mut count = self.slots.len();
        while !fits(self.used, count) && count < self.slots_max {
            count = (count * 2).min(self.slots_max.next_multiple_of(4));
        }
        if !fits(self.used, count) {
            self.write(open)?;
            count = self.slots.len();
            while !fits(0, count) {
                count *= 2;
            }
        }
        if count > self.slots.len() {
            let slots = core::mem::replace(&mut self.slots, vec![FREE; count]);
            for entry in slots.into_iter().filter(|&entry| entry != FREE) {
                let at = self.place(entry);
                self.slots[at] = entry;
            }
        }
        Ok(())
    }

    /// Writes all that is in no run yet as a further run, and empties the table.
    fn write(&mut self, open: OpenFile<'_>) -> io::Result<()> {
        // Free slots are last, once sorted; those of other runs are only copies.
        self.slots.sort_unstable();
        let (old, mut last) = (self.written, self.written);
        let entries = self.slots.iter().copied().take(self.used);
        let new = entries.filter(|entry| entry.id() >= old);
        let new = new.inspect(|entry| last = last.max(entry.id() + 1));
        self.runs.write(new, open)?;
        self.written = last;
        self.slots.fill(FREE);
        self.used = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
