//! State that CPUs share of a scheduler with the January 2024 series: its lock with the policy, and
//! the words, buckets and lists of the series.
//!
//! Without the series only the lock is accessed. The use is in `insert.rs` and `dispatch.rs`. One
//! cache line for `run_state`, as in the postings: its three bits travel together.

use super::{BUCKET, INSERTED};
use crate::call::Hook;
use crate::elevator::locked::{HookPath, LOCK, Locked, Log, MergePath};
use crate::elevator::{
    After, LEVELS, MergeAsked, Merged, Now, Override, Scheduler, SchedulerInfo, StoreError, Wanted,
};
use crate::env::{Bit, Count, Cpu, Lock, SpinLock, Word, value};
use crate::list::QueueList;
use crate::queue::{LockId, RequestQueue};
use crate::request::{BioId, CpuId, HctxId, Request, RequestPool};
use crate::rules::{Insertion, Rules, SideWork};
use crate::step::{Next, Sub};
use crate::time::SimTime;

/// DD_DISPATCHING, BFQ_DISPATCHING: a CPU is in dispatch.
pub const DISPATCHING: u64 = 1 << 0;
/// DD_INSERTING: a CPU inserts, and will look at the buckets.
pub const INSERTING: u64 = 1 << 1;
/// DD_BUCKETS: there may be requests in buckets.
pub const BUCKETS: u64 = 1 << 2;

/// A scheduler with policy `P`, and the series.
#[derive(Debug)]
pub struct WithSeries<P: Scheduler + 'static> {
    /// The scheduler's lock with the policy, and the words that are read without it.
    pub locked: Locked<P>,
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
}

value!(WithSeries of P: Scheduler {
    ;
    locked, run_state, insert_seq, buckets, inserted, inserted_pending
});

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

impl<P: Scheduler + 'static> WithSeries<P> {
    pub(crate) fn with(policy: P, info: &'static SchedulerInfo, rules: &Rules) -> WithSeries<P> {
        let class = |number: u8| info.locks[usize::from(number)].irq_class;
        assert!(
            class(BUCKET) == class(LOCK) && class(INSERTED) == class(LOCK),
            "an interrupt may want {}",
            info.locks[0].name
        );
        let bucket = |_| Bucket {
            list: Lock::new(QueueList::new()),
            pending: Bit::new(false),
        };
        WithSeries {
            locked: Locked::with(policy, info),
            run_state: Word::new(0),
            insert_seq: Count::new(0),
            buckets: (0..rules.series.bucket_count()).map(bucket).collect(),
            inserted: Lock::new(SideLists::default()),
            inserted_pending: Bit::new(false),
        }
    }

    pub fn bucket_of(&self, cpu: CpuId) -> usize {
        usize::from(cpu.0) % self.buckets.len()
    }

    /// The request for a lock besides the scheduler's. It disables interrupts as the scheduler's
    /// lock does: otherwise its owner could be interrupted by a path that takes the scheduler's
    /// lock, while the owner of that one waits for this lock: a deadlock.
    fn beside_lock(&self, q: &RequestQueue, number: u8, place: u32) -> Next {
        let class = self.locked.info.locks[usize::from(number)].irq_class;
        Next::Lock(LockId::of_elevator(q.id, number, class, place))
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
            LOCK | INSERTED => 1,
            BUCKET => self.buckets.len() as u32,
            _ => 0,
        }
    }

    #[inline]
    pub(crate) fn spin_lock(&self, number: u8, at: usize) -> &SpinLock {
        match number {
            LOCK => &self.locked.policy,
            BUCKET => &self.buckets[at].list,
            INSERTED => &self.inserted,
            _ => panic!("a scheduler with the series has no lock {number}"),
        }
    }

    /// has_work(): the policy's lists; with some of the series also both side lists in one access,
    /// or each bucket.
    pub(crate) fn work_places(&self, _hctx: HctxId, rules: &Rules) -> u16 {
        let side = match (rules.series.side_work, rules.series.insertion) {
            (SideWork::Unseen, _) => 0,
            (SideWork::Seen, Insertion::SideLists) => 1,
            (SideWork::Seen, _) => self.buckets.len() as u16,
        };
        1 + side
    }

    #[inline]
    pub(crate) fn has_work(&self, hctx: HctxId, place: u16, cpu: &mut Cpu) -> bool {
        if place == 0 {
            return self.locked.has_work(hctx, 0, cpu);
        }
        if let Some(bucket) = self.buckets.get(usize::from(place) - 1) {
            bucket.list.glance(cpu);
            return bucket.pending.test(cpu);
        }
        self.inserted.glance(cpu);
        self.inserted_pending.test(cpu)
    }

    pub(crate) fn seems_to_have_work(&self, hctx: HctxId, cpu: &mut Cpu) -> bool {
        self.locked.seems_to_have_work(hctx, cpu)
    }

    pub(crate) fn has_queued(&self, hctx: HctxId) -> bool {
        self.locked.has_queued(hctx)
    }

    pub(crate) fn completed(&self) -> Option<&[Count; LEVELS]> {
        self.locked.completed()
    }

    pub(crate) fn show(&self, q: &RequestQueue) -> String {
        self.locked.show(q)
    }

    pub(crate) fn store(
        &self,
        q: &RequestQueue,
        name: &str,
        text: &str,
        cpu: &mut Cpu,
    ) -> Result<(), StoreError> {
        self.locked.store(q, name, text, cpu)
    }

    pub(crate) fn lines_at(&self, times: &[SimTime], cpu: &mut Cpu) {
        self.locked.lines_at(times, cpu);
    }

    pub(crate) fn rotates(&self, rotational: bool, cpu: &mut Cpu) {
        self.locked.rotates(rotational, cpu);
    }

    pub(crate) fn apply_override(&self, q: &RequestQueue, with: Override, cpu: &mut Cpu) {
        self.locked.apply_override(q, with, cpu);
    }

    pub(crate) fn revise<R>(
        &self,
        cpu: &mut Cpu,
        change: impl FnOnce(&mut dyn Scheduler) -> R,
    ) -> R {
        self.locked.revise(cpu, change)
    }

    pub(crate) fn call<R>(
        &self,
        q: &RequestQueue,
        cpu: &mut Cpu,
        call: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        self.locked.call(q, cpu, call)
    }

    pub(crate) fn log(&self, q: &RequestQueue, cpu: &mut Cpu) -> Log {
        self.locked.log(q, cpu)
    }

    pub(crate) fn settle_all(&self, q: &RequestQueue, cpu: &mut Cpu) {
        self.locked.settle_all(q, cpu);
    }

    pub(crate) fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        self.locked.limit_depth(wanted)
    }

    pub(crate) fn limit_depth_lock(&self, q: &RequestQueue, wanted: Wanted) -> Option<LockId> {
        self.locked.limit_depth_lock(q, wanted)
    }

    pub(crate) fn limit_depth_locked(
        &self,
        q: &RequestQueue,
        wanted: Wanted,
        cpu: &mut Cpu,
    ) -> Option<u32> {
        self.locked.limit_depth_locked(q, wanted, cpu)
    }

    pub(crate) fn start_merge(
        &self,
        q: &RequestQueue,
        asked: MergeAsked,
    ) -> (MergePath, Sub<Merged>) {
        self.locked.start_merge(q, asked)
    }

    pub(crate) fn merge(
        &self,
        path: &mut MergePath,
        q: &RequestQueue,
        bio: BioId,
        cpu: &mut Cpu,
    ) -> Sub<Merged> {
        self.locked.merge(path, q, bio, cpu)
    }

    pub(crate) fn prepare(&self, rq: &mut Request) {
        self.locked.prepare(rq);
    }

    pub(crate) fn hook(
        &self,
        path: &mut HookPath,
        hook: Hook,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<After> {
        self.locked.hook(path, hook, q, cpu)
    }

    #[inline]
    pub(crate) fn finishes(&self, rq: &Request) -> bool {
        self.locked.finishes(rq)
    }

    #[inline]
    pub(crate) fn finish(&self, elv_priv: [u32; 2], cpu: &mut Cpu) {
        self.locked.finish(elv_priv, cpu);
    }

    pub(crate) fn inspect<R>(&self, look: impl FnOnce(&dyn Scheduler) -> R) -> Option<R> {
        self.locked.inspect(look)
    }

    /// Panics unless policy and words that no path works on agree, and each list outside the lock
    /// agrees with the bit for its requests.
    pub(crate) fn check(&self, pool: &RequestPool) {
        self.locked.check(pool);
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
    pub(crate) fn beside(&self) -> Vec<QueueList> {
        let buckets = self.buckets.iter();
        let mut lists: Vec<QueueList> = buckets.map(|b| b.list.inspect(|list| *list)).collect();
        lists.extend(
            self.inserted
                .inspect(|lists| [lists.at_head, lists.at_tail]),
        );
        lists
    }
}
