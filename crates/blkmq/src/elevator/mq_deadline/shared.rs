//! What mq-deadline shares between CPUs besides its lock: the words, buckets and lists of the
//! January 2024 series.
//!
//! Without the series nothing of it is ever touched. How it is used: `path/dd_insert.rs` and
//! `path/pass.rs`. One line for `run_state`, as the postings have it: its three bits travel
//! together.

use crate::env::{Bit, Count, Env, Lock, Word, solo_value};
use crate::list::QueueList;
use crate::request::CpuId;
use crate::rules::Series;

/// DD_DISPATCHING: somebody is in dispatch.
pub const DISPATCHING: u64 = 1 << 0;
/// DD_INSERTING: somebody inserts, and will look at the buckets.
pub const INSERTING: u64 = 1 << 1;
/// DD_BUCKETS: there may be requests in buckets.
pub const BUCKETS: u64 = 1 << 2;

/// Words, buckets and lists beside `dd->lock`.
#[derive(Debug)]
pub struct DeadlineShared<E: Env> {
    /// `run_state`: the three bits.
    pub run_state: E::Word,
    /// `insert_seq` (proof of concept, v1); wraps.
    pub insert_seq: E::Count,
    /// Buckets; none unless the series has them.
    pub buckets: Vec<Bucket<E>>,
    /// `at_head` and `at_tail` under `insert_lock` (v3).
    pub inserted: E::Lock<SideLists>,
    /// One of them has requests, as has_work reads it without a lock.
    pub inserted_pending: E::Bit,
}

solo_value!(DeadlineShared { ; run_state, insert_seq, buckets, inserted, inserted_pending });

/// Requests that wait until somebody inserts them (dd_bucket_list).
#[derive(Debug)]
pub struct Bucket<E: Env> {
    /// `list` under `lock`.
    pub list: E::Lock<QueueList>,
    /// `!list_empty`, as the inserter reads it without the lock.
    pub pending: E::Bit,
}

solo_value!(Bucket { ; list, pending });

/// Requests that wait for the next dispatch (v3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SideLists {
    /// To be inserted at head.
    pub at_head: QueueList,
    /// To be inserted where the scheduler sees fit.
    pub at_tail: QueueList,
}

impl<E: Env> DeadlineShared<E> {
    pub(crate) fn new(series: &Series) -> DeadlineShared<E> {
        let bucket = |_| Bucket {
            list: E::Lock::new(QueueList::new()),
            pending: E::Bit::new(false),
        };
        DeadlineShared {
            run_state: E::Word::new(0),
            insert_seq: E::Count::new(0),
            buckets: (0..series.bucket_count()).map(bucket).collect(),
            inserted: E::Lock::new(SideLists::default()),
            inserted_pending: E::Bit::new(false),
        }
    }

    /// Number of the bucket that a CPU fills.
    pub fn bucket_of(&self, cpu: CpuId) -> usize {
        usize::from(cpu.0) % self.buckets.len()
    }
}
