//! Cache lines of requests, as `struct request` is laid out.
//!
//! Line 0 to `bio`; line 1 `queuelist`, times, state; line 2 `hash`, `rb_node`; line 3 `fifo_time`
//! and the driver's part. Work on a request needs all of them and has their addresses at once, so
//! it waits only for the farthest. Its neighbours in lists and trees cost one line each: a node on
//! the way down a tree is waited for, a changed link is only stored, and stores overlap. Kernel:
//! include/linux/blk-mq.h struct request, block/elevator.c (v6.12).

use core::cell::Cell;
use std::sync::Arc;

use crate::env::{Line, Misses, Near, Overlap};

use super::CpuId;

/// Lines of the heads of a merge hash: 64 pointers.
const HASH_HEADS: usize = 8;

/// Prices of cache lines on each CPU. Empty: nothing has a price.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    near: Arc<[Near]>,
    overlap: Overlap,
    hash_heads: [Line; HASH_HEADS],
    /// The line of `last_merge` and `q_usage_counter` in `struct request_queue`.
    queue: Line,
    chain: Cell<u64>,
    loads: Cell<u64>,
    stores: Cell<u64>,
    /// One of these may be other than zero: most labels miss nothing here.
    missed: Cell<bool>,
}

const NOBODY: u16 = u16::MAX;

/// Lines of one request. Most touches come from the CPU that touched it last: a stored CPU number
/// finds these without reading the lines.
#[derive(Clone, Debug)]
pub struct RequestLines {
    /// The CPU that has all of them exclusively.
    owner: Cell<u16>,
    /// The CPU that touched line 2 last: it has a copy.
    reader: Cell<u16>,
    /// Line 2.
    sort: Line,
    /// Line 1.
    links: Line,
    /// Lines 0 and 3: only touched by work on the request itself.
    own: Line,
}

impl Default for RequestLines {
    fn default() -> RequestLines {
        RequestLines {
            owner: Cell::new(NOBODY),
            reader: Cell::new(NOBODY),
            sort: Line::default(),
            links: Line::default(),
            own: Line::default(),
        }
    }
}

impl Lines {
    /// Sets the prices of lines on each CPU, and of several of them together.
    pub fn set_prices(&mut self, near: Arc<[Near]>, overlap: Overlap) {
        self.near = near;
        self.overlap = overlap;
    }

    /// A CPU works on a request.
    #[inline]
    pub(crate) fn own(&self, cpu: CpuId, lines: &RequestLines) {
        if lines.owner.get() != cpu.0 {
            self.take_over(cpu, lines);
        }
    }

    #[inline(never)]
    fn take_over(&self, cpu: CpuId, lines: &RequestLines) {
        let Some(near) = self.near.get(usize::from(cpu.0)) else {
            return;
        };
        let (mut loaded, mut stored) = (0, self.stores.get());
        for line in [&lines.own, &lines.links, &lines.sort] {
            if !line.is_of(cpu) {
                let (load, store) = line.claim(cpu, near);
                loaded = self.overlap.both(loaded, load);
                stored = self.overlap.both(stored, store);
            }
        }
        self.stores.set(stored);
        self.wait(loaded);
        lines.owner.set(cpu.0);
        lines.reader.set(cpu.0);
    }

    /// A CPU changes the `queuelist` of a neighbour.
    #[inline]
    pub(crate) fn relink(&self, cpu: CpuId, lines: &RequestLines) {
        if !lines.links.is_of(cpu) {
            self.store(cpu, &lines.links);
            lines.owner.set(NOBODY);
        }
    }

    /// A CPU changes the hash links or the tree node of a neighbour.
    #[inline]
    pub(crate) fn resort(&self, cpu: CpuId, lines: &RequestLines) {
        if !lines.sort.is_of(cpu) {
            self.store(cpu, &lines.sort);
            lines.owner.set(NOBODY);
            lines.reader.set(cpu.0);
        }
    }

    /// A CPU reads a tree node or a hash entry, and needs it to continue.
    #[inline]
    pub(crate) fn visit(&self, cpu: CpuId, lines: &RequestLines) {
        if lines.reader.get() != cpu.0 {
            self.look_at(cpu, lines);
        }
    }

    #[inline(never)]
    fn look_at(&self, cpu: CpuId, lines: &RequestLines) {
        let Some(near) = self.near.get(usize::from(cpu.0)) else {
            return;
        };
        lines.owner.set(NOBODY);
        lines.reader.set(cpu.0);
        if lines.sort.is_of(cpu) {
            return;
        }
        // A call at the end needs no stack.
        match lines.sort.fetch_among_first(cpu, near) {
            Some(miss) => self.wait(miss),
            None => self.wait_for(cpu, &lines.sort),
        }
    }

    /// A CPU reads the head of a hash bucket.
    #[inline]
    pub(super) fn read_hash(&self, cpu: CpuId, bucket: u8) {
        let line = &self.hash_heads[usize::from(bucket) / 8];
        if !line.is_at(cpu) {
            self.load(cpu, line);
        }
    }

    /// A CPU reads `q->last_merge`, and needs it to continue.
    #[inline]
    pub(super) fn read_last_merge(&self, cpu: CpuId) {
        if !self.queue.is_at(cpu) {
            self.wait_for(cpu, &self.queue);
        }
    }

    /// A CPU reads a field beside `q->last_merge`.
    #[inline]
    pub(super) fn read_queue(&self, cpu: CpuId) {
        if !self.queue.is_at(cpu) {
            self.load(cpu, &self.queue);
        }
    }

    /// A CPU changes `q->last_merge`.
    #[inline]
    pub(super) fn write_last_merge(&self, cpu: CpuId) {
        if !self.queue.is_of(cpu) {
            self.store(cpu, &self.queue);
        }
    }

    /// A CPU changes the head of a hash bucket.
    #[inline]
    pub(super) fn write_hash(&self, cpu: CpuId, bucket: u8) {
        let line = &self.hash_heads[usize::from(bucket) / 8];
        if !line.is_of(cpu) {
            self.store(cpu, line);
        }
    }

    // Misses, out of line.
    #[inline(never)]
    fn load(&self, cpu: CpuId, line: &Line) {
        if let Some(near) = self.near.get(usize::from(cpu.0)) {
            let miss = line.fetch(cpu, near);
            self.loads.set(self.overlap.both(self.loads.get(), miss));
            self.missed.set(true);
        }
    }

    #[inline(never)]
    fn wait_for(&self, cpu: CpuId, line: &Line) {
        if let Some(near) = self.near.get(usize::from(cpu.0)) {
            self.wait(line.fetch(cpu, near));
        }
    }

    #[inline(never)]
    fn store(&self, cpu: CpuId, line: &Line) {
        if let Some(near) = self.near.get(usize::from(cpu.0)) {
            let miss = line.take_away(cpu, near);
            self.stores.set(self.overlap.both(self.stores.get(), miss));
            self.missed.set(true);
        }
    }

    #[inline]
    fn wait(&self, miss: u64) {
        self.chain.set(self.chain.get() + miss);
        self.missed.set(true);
    }

    /// Takes the misses since the last call, if there are any. Stores complete after all loads.
    #[inline]
    pub fn take(&self) -> Option<Misses> {
        self.missed.take().then(|| Misses {
            chain: self.chain.take(),
            together: self.loads.take(),
            stores: self.stores.take(),
        })
    }
}

#[cfg(test)]
mod tests;
