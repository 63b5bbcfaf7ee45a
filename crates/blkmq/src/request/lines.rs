//! Cache lines of requests, as `struct request` is laid out.
//!
//! Line 0 to `bio`; line 1 `queuelist`, times, state; line 2 `hash`, `rb_node`; line 3 `fifo_time`
//! and the driver's part. Whoever works on a request needs all of them, knows their addresses at
//! once and so waits for the farthest only. Its neighbours in lists and trees cost one line each:
//! a node on the way down a tree is waited for, a link that is changed is only stored, and stores
//! are under way together.
//! Kernel: include/linux/blk-mq.h struct request, block/elevator.c (v6.12).

use core::cell::Cell;

use crate::env::{Line, Misses, Near, bit_of};

use super::{CpuId, RequestId};

/// Lines of the heads of a merge hash: 64 pointers.
const HASH_HEADS: usize = 8;

/// Prices of cache lines on each CPU. Empty: nothing has a price.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    near: Vec<Near>,
    requests: Vec<RequestLines>,
    hash_heads: [Line; HASH_HEADS],
    /// `q->last_merge`, in `struct request_queue`.
    last_merge: Line,
    chain: Cell<u64>,
    loads: Cell<u64>,
    stores: Cell<u64>,
}

/// Lines of one request.
#[derive(Clone, Debug, Default)]
struct RequestLines {
    /// Lines 0 and 3: nobody but who works on the request touches them.
    own: Line,
    /// Line 1.
    links: Line,
    /// Line 2.
    sort: Line,
}

impl Lines {
    pub(super) fn new(requests: usize) -> Lines {
        Lines {
            requests: vec![RequestLines::default(); requests],
            ..Lines::default()
        }
    }

    /// Sets what lines cost on each CPU.
    pub fn set_prices(&mut self, near: Vec<Near>) {
        self.near = near;
    }

    /// A CPU works on a request.
    #[inline]
    pub(super) fn own(&self, cpu: CpuId, rq: RequestId) {
        let Some(near) = self.near.get(usize::from(cpu.0)) else {
            return;
        };
        let (bit, lines) = (bit_of(cpu), &self.requests[rq.0 as usize]);
        let farthest = lines.own.write(bit, near).max(lines.links.write(bit, near));
        let farthest = farthest.max(lines.sort.write(bit, near));
        self.chain.set(self.chain.get() + farthest);
    }

    /// A CPU changes the `queuelist` of a neighbour.
    #[inline]
    pub(super) fn relink(&self, cpu: CpuId, rq: RequestId) {
        self.store(cpu, &self.requests[rq.0 as usize].links);
    }

    /// A CPU changes the hash links or the tree node of a neighbour.
    #[inline]
    pub(super) fn resort(&self, cpu: CpuId, rq: RequestId) {
        self.store(cpu, &self.requests[rq.0 as usize].sort);
    }

    /// A CPU reads a tree node or a hash entry, and needs it to go on.
    #[inline]
    pub(super) fn visit(&self, cpu: CpuId, rq: RequestId) {
        if let Some(near) = self.near.get(usize::from(cpu.0)) {
            let line = &self.requests[rq.0 as usize].sort;
            self.chain
                .set(self.chain.get() + line.read(bit_of(cpu), near));
        }
    }

    /// A CPU reads the head of a hash bucket.
    #[inline]
    pub(super) fn read_hash(&self, cpu: CpuId, bucket: u8) {
        if let Some(near) = self.near.get(usize::from(cpu.0)) {
            let line = &self.hash_heads[usize::from(bucket) / 8];
            self.loads
                .set(self.loads.get().max(line.read(bit_of(cpu), near)));
        }
    }

    /// A CPU reads `q->last_merge`, and needs it to go on.
    #[inline]
    pub(super) fn read_last_merge(&self, cpu: CpuId) {
        if let Some(near) = self.near.get(usize::from(cpu.0)) {
            let price = self.last_merge.read(bit_of(cpu), near);
            self.chain.set(self.chain.get() + price);
        }
    }

    /// A CPU changes `q->last_merge`.
    #[inline]
    pub(super) fn write_last_merge(&self, cpu: CpuId) {
        self.store(cpu, &self.last_merge);
    }

    /// A CPU changes the head of a hash bucket.
    #[inline]
    pub(super) fn write_hash(&self, cpu: CpuId, bucket: u8) {
        self.store(cpu, &self.hash_heads[usize::from(bucket) / 8]);
    }

    #[inline]
    fn store(&self, cpu: CpuId, line: &Line) {
        if let Some(near) = self.near.get(usize::from(cpu.0)) {
            self.stores
                .set(self.stores.get().max(line.write(bit_of(cpu), near)));
        }
    }

    /// Takes the misses since the last call. Stores end behind all loads.
    #[inline]
    pub fn take(&self) -> Misses {
        Misses {
            chain: self.chain.take() + self.stores.take(),
            together: self.loads.take(),
        }
    }
}

#[cfg(test)]
mod tests;
