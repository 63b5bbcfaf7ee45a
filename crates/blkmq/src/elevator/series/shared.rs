//! The words, buckets and lists of the January 2024 series, beside a scheduler's lock.
//!
//! Without the series none of them is accessed. The use is in `insert.rs` and `dispatch.rs`. One
//! cache line for `run_state`, as in the postings: its three bits travel together.

use super::{BUCKET, INSERTED};
use crate::env::{Bit, Count, Cpu, Lock, SpinLock, Word, value};
use crate::list::QueueList;
use crate::queue::{IrqClass, LockId, RequestQueue};
use crate::request::CpuId;
use crate::rules::{Insertion, Rules, SideWork};
use crate::step::{Cx, Next};

/// DD_DISPATCHING, BFQ_DISPATCHING: a CPU is in dispatch.
pub const DISPATCHING: u64 = 1 << 0;
/// DD_INSERTING: a CPU inserts, and will look at the buckets.
pub const INSERTING: u64 = 1 << 1;
/// DD_BUCKETS: there may be requests in buckets.
pub const BUCKETS: u64 = 1 << 2;

/// What the series adds to a scheduler.
#[derive(Debug)]
pub struct Series {
    /// `run_state`: the three bits.
    pub run_state: Word,
    /// `insert_seq` (proof of concept, v1); wraps.
    pub insert_seq: Count,
    /// Buckets; none unless the series has them.
    pub buckets: Vec<Bucket>,
    /// `at_head` and `at_tail` under `insert_lock` (v3).
    pub inserted: Lock<SideLists>,
    /// A side list has requests, as has_work reads it without a lock.
    pub inserted_pending: Bit,
    /// Of its locks and the scheduler's.
    irq_class: IrqClass,
}

value!(Series { irq_class; run_state, insert_seq, buckets, inserted, inserted_pending });

/// Requests that wait until a CPU inserts them (dd_bucket_list).
#[derive(Debug)]
pub struct Bucket {
    /// `list` under `lock`.
    pub list: Lock<QueueList>,
    /// `!list_empty`, as the inserter reads it without the lock.
    pub pending: Bit,
}

value!(Bucket { ; list, pending });

/// Requests that wait for the next dispatch (v3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SideLists {
    /// To be inserted at head.
    pub at_head: QueueList,
    /// To be inserted where the scheduler sees fit.
    pub at_tail: QueueList,
}

impl Series {
    pub(crate) fn new(irq_class: IrqClass, rules: &Rules) -> Series {
        let bucket = |_| Bucket {
            list: Lock::new(QueueList::new()),
            pending: Bit::new(false),
        };
        Series {
            run_state: Word::new(0),
            insert_seq: Count::new(0),
            buckets: (0..rules.series.bucket_count()).map(bucket).collect(),
            inserted: Lock::new(SideLists::default()),
            inserted_pending: Bit::new(false),
            irq_class,
        }
    }

    /// That of the path's queue.
    #[inline]
    pub(super) fn of<'a>(cx: &Cx<'a>) -> &'a Series {
        cx.q.elevator.series()
    }

    pub fn bucket_of(&self, cpu: CpuId) -> usize {
        usize::from(cpu.0) % self.buckets.len()
    }

    /// The request for a lock besides the scheduler's. It disables interrupts as the scheduler's
    /// lock does: otherwise its owner could be interrupted by a path that takes the scheduler's
    /// lock, while the owner of that one waits for this lock: a deadlock.
    fn beside_lock(&self, q: &RequestQueue, number: u8, place: u32) -> Next {
        Next::Lock(LockId::of_elevator(q.id, number, self.irq_class, place))
    }

    /// The request for a bucket's lock.
    pub(super) fn bucket_lock(&self, q: &RequestQueue, bucket: u16) -> Next {
        self.beside_lock(q, BUCKET, u32::from(bucket))
    }

    /// The request for insert_lock.
    pub(super) fn insert_lock(&self, q: &RequestQueue) -> Next {
        self.beside_lock(q, INSERTED, 0)
    }

    pub(crate) fn lock_count(&self, number: u8) -> u32 {
        match number {
            INSERTED => 1,
            BUCKET => self.buckets.len() as u32,
            _ => 0,
        }
    }

    pub(crate) fn spin_lock(&self, number: u8, at: usize) -> &SpinLock {
        match number {
            BUCKET => &self.buckets[at].list,
            INSERTED => &self.inserted,
            _ => panic!("the series has no lock {number}"),
        }
    }

    /// Further places of has_work(), with some of the series: both side lists in one access, or
    /// each bucket.
    pub(crate) fn work_places(&self, rules: &Rules) -> u16 {
        match (rules.series.side_work, rules.series.insertion) {
            (SideWork::Unseen, _) => 0,
            (SideWork::Seen, Insertion::SideLists) => 1,
            (SideWork::Seen, _) => self.buckets.len() as u16,
        }
    }

    /// Whether one of these places has requests.
    pub(crate) fn sees_work(&self, place: u16, cpu: &mut Cpu) -> bool {
        if let Some(bucket) = self.buckets.get(usize::from(place)) {
            bucket.list.glance(cpu);
            return bucket.pending.test(cpu);
        }
        self.inserted.glance(cpu);
        self.inserted_pending.test(cpu)
    }

    /// Panics unless each list that no path works on agrees with the bit for its requests.
    pub(crate) fn check(&self) {
        for bucket in &self.buckets {
            let pending = bucket.list.inspect(|list| !list.is_empty());
            let agrees = pending == bucket.pending.peek();
            assert!(agrees || !bucket.list.is_free(), "a bucket and its bit");
        }
        let filled = |lists: &SideLists| !(lists.at_head.is_empty() && lists.at_tail.is_empty());
        let agrees = self.inserted.inspect(filled) == self.inserted_pending.peek();
        assert!(
            agrees || !self.inserted.is_free(),
            "side lists and their bit"
        );
    }

    /// Buckets, then the side lists.
    pub(crate) fn lists(&self) -> Vec<QueueList> {
        let buckets = self.buckets.iter();
        let mut lists: Vec<QueueList> = buckets.map(|b| b.list.inspect(|list| *list)).collect();
        lists.extend(
            self.inserted
                .inspect(|lists| [lists.at_head, lists.at_tail]),
        );
        lists
    }
}
