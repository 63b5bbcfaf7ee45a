//! The look-up of a scheduler for a request that ends where a bio starts.
//!
//! `last_merge`, the one-hit cache, and a hash of mergeable requests by end sector: 64 buckets,
//! newest first. Not here: its use (`elevator/merging.rs`). Kernel: block/elevator.c elv_rqhash_*()
//! (v6.1, v6.12).

use crate::list::{HashLink, List};
use crate::request::{RequestId, RequestPool, Sector};
use core::hash::{Hash, Hasher};

/// ELV_HASH_BITS.
const HASH_BITS: u32 = 6;
const BUCKETS: usize = 1 << HASH_BITS;

/// `q->last_merge` and the elevator's hash.
#[derive(Debug)]
pub struct MergeIndex {
    buckets: [List<HashLink>; BUCKETS],
    /// Buckets that are not empty, one bit each.
    filled: u64,
    last_merge: Option<RequestId>,
    visits: u32,
}

/// `clone_from` copies the buckets that are not empty in one of them.
impl Clone for MergeIndex {
    fn clone(&self) -> MergeIndex {
        MergeIndex {
            buckets: self.buckets,
            ..*self
        }
    }

    fn clone_from(&mut self, source: &MergeIndex) {
        let mut left = self.filled | source.filled;
        while left != 0 {
            let bucket = left.trailing_zeros() as usize;
            left &= left - 1;
            self.buckets[bucket] = source.buckets[bucket];
        }
        self.filled = source.filled;
        self.last_merge = source.last_merge;
        self.visits = source.visits;
    }
}

/// Equality is that of the contents; the costs of look-ups are not part of it.
impl PartialEq for MergeIndex {
    fn eq(&self, other: &MergeIndex) -> bool {
        self.buckets == other.buckets && self.last_merge == other.last_merge
    }
}

impl Eq for MergeIndex {}

impl Hash for MergeIndex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.buckets.hash(state);
        self.last_merge.hash(state);
    }
}

impl Default for MergeIndex {
    fn default() -> MergeIndex {
        MergeIndex {
            buckets: [List::new(); BUCKETS],
            filled: 0,
            last_merge: None,
            visits: 0,
        }
    }
}

/// hash_long() of a 64-bit kernel.
fn bucket_of(end: Sector) -> u8 {
    (end.0.wrapping_mul(0x61C8_8646_80B5_83EB) >> (64 - HASH_BITS)) as u8
}

impl MergeIndex {
    pub fn last_merge(&self) -> Option<RequestId> {
        self.last_merge
    }

    /// Makes `rq` the first to be tried.
    pub fn set_last_merge(&mut self, rq: RequestId) {
        self.last_merge = Some(rq);
    }

    /// Hash entries visited since the last call.
    pub fn take_touched(&mut self) -> u32 {
        core::mem::take(&mut self.visits)
    }

    /// Adds a request that enters the scheduler, if it is mergeable. It becomes `last_merge` only
    /// when there is none.
    pub fn add(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if pool[rq].is_mergeable() {
            self.hash(pool, rq);
            if self.last_merge.is_none() {
                pool.change_last_merge();
                self.last_merge = Some(rq);
            }
        }
    }

    pub fn remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.unhash(pool, rq);
        if self.last_merge == Some(rq) {
            pool.change_last_merge();
            self.last_merge = None;
        }
    }

    /// Moves `rq` to the bucket of its present end (elv_rqhash_reposition()).
    pub fn rehash(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.unhash(pool, rq);
        self.hash(pool, rq);
    }

    /// Drops `rq` from the one-hit cache once it is marked NOMERGE (req_set_nomerge()). The hash
    /// keeps it until a look-up visits it there.
    pub fn drop_unmergeable(&mut self, pool: &RequestPool, rq: RequestId) {
        if pool[rq].flags.nomerge && self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }

    /// The newest request that ends at `end`. Visited entries that have become unmergeable leave
    /// the hash.
    pub fn find(&mut self, pool: &mut RequestPool, end: Sector) -> Option<RequestId> {
        let bucket = bucket_of(end);
        pool.touch_bucket(bucket);
        let mut next = self.buckets[usize::from(bucket)].first();
        while let Some(rq) = next {
            self.visits += 1;
            pool.visit(rq);
            next = self.buckets[usize::from(bucket)].next(pool, rq);
            if !pool[rq].is_mergeable() {
                self.unhash(pool, rq);
            } else if pool[rq].end() == end {
                return Some(rq);
            }
        }
        None
    }

    /// Panics unless every bucket holds exactly the hashed requests, mergeable ones under their
    /// end. Multi-range discards grow without being hashed again, as in the kernel.
    pub fn check(&self, pool: &RequestPool) {
        let mut count = 0;
        for (bucket, list) in self.buckets.iter().enumerate() {
            list.check(pool);
            let filled = self.filled >> bucket & 1 == 1;
            assert_eq!(filled, !list.is_empty(), "bit of bucket {bucket}");
            for rq in list.iter(pool) {
                assert_eq!(pool[rq].hashed, Some(bucket as u8), "bucket of {rq:?}");
                count += 1;
            }
        }
        let hashed = pool.iter().filter(|(_, rq)| rq.hashed.is_some()).count();
        assert_eq!(count, hashed, "requests marked as hashed");
        if let Some(rq) = self.last_merge {
            assert!(pool[rq].is_mergeable(), "last_merge {rq:?} takes no merge");
            assert!(
                pool[rq].hashed.is_some(),
                "last_merge {rq:?} is not in the hash"
            );
        }
    }

    fn hash(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let request = &mut pool[rq];
        let bucket = bucket_of(request.end());
        let before = request.hashed.replace(bucket);
        assert!(before.is_none(), "{rq:?} is in the hash already");
        pool.relink_bucket(bucket);
        self.buckets[usize::from(bucket)].push_front(pool, rq);
        self.filled |= 1 << bucket;
    }

    fn unhash(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if let Some(bucket) = pool[rq].hashed.take() {
            // hlist_del() changes the head only if the entry is the first.
            if self.buckets[usize::from(bucket)].first() == Some(rq) {
                pool.relink_bucket(bucket);
            }
            self.buckets[usize::from(bucket)].remove(pool, rq);
            if self.buckets[usize::from(bucket)].is_empty() {
                self.filled &= !(1 << bucket);
            }
        }
    }
}
