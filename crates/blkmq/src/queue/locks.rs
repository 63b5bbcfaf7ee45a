//! Names and dense numbers of every lock of a tag set and its queues.
//!
//! A path names a lock with a [`LockId`]; the driver acquires it, and arbitration wants a number.

use crate::request::QueueId;
use core::fmt;

use super::{BlkMq, RequestQueue};
use crate::env::{Cpu, Env, Lock};
use crate::sbitmap::{Sbitmap, WAIT_QUEUES};
use crate::tags::TagSet;

/// Which lock of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockKind {
    /// The scheduler's own (mq-deadline: dd->lock).
    Elevator,
    /// hctx->lock; index: hctx.
    Dispatch,
    /// ctx->lock; index: CPU.
    Ctx,
    /// requeue_lock.
    Requeue,
    /// queue_lock.
    Queue,
    /// mq_flush_lock; index: hctx.
    Flush,
    /// swap_lock of a driver tag word; index: map * 1024 + word.
    DriverSwap,
    /// swap_lock of a scheduler tag word; index: map * 1024 + word.
    SchedSwap,
    /// Wait queue of driver tags; index: map * 8 + queue.
    DriverWait,
    /// Wait queue of scheduler tags; index: map * 8 + queue.
    SchedWait,
    /// Lock of an insertion bucket of mq-deadline (January 2024 series); index: bucket.
    Bucket,
    /// insert_lock of mq-deadline (January 2024 series, v3).
    Inserted,
    /// tags->lock of driver tags that queues share; index: map.
    Tags,
}

/// Words of one tag map at most (10,240 tags in words of 64).
pub(crate) const WORDS_MAX: u32 = 1024;

/// A lock of one `BlkMq`: queue, kind and index in one word, as it goes through every layer of a
/// step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(u32);

/// Bits of an index in a `LockId`.
const INDEX_BITS: u32 = 20;

impl LockId {
    /// The lock of `queue` of this kind with this index, below 2^20.
    #[inline]
    pub fn new(queue: QueueId, kind: LockKind, index: u32) -> LockId {
        assert!(index < 1 << INDEX_BITS, "lock {index} of {kind:?}");
        LockId(u32::from(queue.0) << (INDEX_BITS + 4) | (kind as u32) << INDEX_BITS | index)
    }

    /// Which queue.
    #[inline]
    pub fn queue(self) -> QueueId {
        QueueId((self.0 >> (INDEX_BITS + 4)) as u8)
    }

    /// Which kind.
    #[inline]
    pub fn kind(self) -> LockKind {
        LockKind::ALL[self.kind_index()]
    }

    /// Which one of that kind.
    #[inline]
    pub fn index(self) -> u32 {
        self.0 % (1 << INDEX_BITS)
    }

    /// A holder takes no interrupt.
    #[inline]
    pub fn masks_irq(self) -> bool {
        IRQ_SAVE >> self.kind_index() & 1 == 1
    }

    #[inline]
    fn kind_index(self) -> usize {
        (self.0 >> INDEX_BITS) as usize % 16
    }
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {} of queue {}",
            self.kind(),
            self.index(),
            self.queue()
        )
    }
}

/// What may interrupt a holder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IrqClass {
    /// spin_lock(): anything.
    Plain,
    /// spin_lock_irqsave(): nothing.
    IrqSave,
}

impl LockKind {
    /// How the kernel takes it.
    pub const fn irq_class(self) -> IrqClass {
        match self {
            LockKind::Elevator
            | LockKind::Dispatch
            | LockKind::Ctx
            | LockKind::Bucket
            | LockKind::Inserted => IrqClass::Plain,
            LockKind::Requeue
            | LockKind::Queue
            | LockKind::Flush
            | LockKind::DriverSwap
            | LockKind::SchedSwap
            | LockKind::DriverWait
            | LockKind::SchedWait
            | LockKind::Tags => IrqClass::IrqSave,
        }
    }

    /// Name as the kernel's lock statistics would show it.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Elevator => "dd->lock",
            LockKind::Dispatch => "hctx->lock",
            LockKind::Ctx => "ctx->lock",
            LockKind::Requeue => "q->requeue_lock",
            LockKind::Queue => "q->queue_lock",
            LockKind::Flush => "fq->mq_flush_lock",
            LockKind::DriverSwap => "driver tags swap_lock",
            LockKind::SchedSwap => "scheduler tags swap_lock",
            LockKind::DriverWait => "driver tags wait_queue",
            LockKind::SchedWait => "scheduler tags wait_queue",
            LockKind::Bucket => "dd->bucket_lists[].lock",
            LockKind::Inserted => "dd->insert_lock",
            LockKind::Tags => "driver tags lock",
        }
    }

    /// All kinds.
    pub const ALL: [LockKind; 13] = [
        LockKind::Elevator,
        LockKind::Dispatch,
        LockKind::Ctx,
        LockKind::Requeue,
        LockKind::Queue,
        LockKind::Flush,
        LockKind::DriverSwap,
        LockKind::SchedSwap,
        LockKind::DriverWait,
        LockKind::SchedWait,
        LockKind::Bucket,
        LockKind::Inserted,
        LockKind::Tags,
    ];
}

// A kind is an index of four bits, and `ALL` is in the order of the enum.
const _: () = {
    assert!(LockKind::ALL.len() <= 16);
    let mut kind = 0;
    while kind < LockKind::ALL.len() {
        assert!(LockKind::ALL[kind] as usize == kind);
        kind += 1;
    }
};

/// One bit for each kind whose holders take no interrupt.
const IRQ_SAVE: u32 = {
    let (mut bits, mut kind) = (0, 0);
    while kind < LockKind::ALL.len() {
        if matches!(LockKind::ALL[kind].irq_class(), IrqClass::IrqSave) {
            bits |= 1 << kind;
        }
        kind += 1;
    }
    bits
};

/// First dense number of each kind of each queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct LockTable {
    base: Vec<[u32; LockKind::ALL.len()]>,
    stride: [u32; LockKind::ALL.len()],
    count: u32,
}

impl LockTable {
    pub(super) fn new<E: Env>(sets: &[TagSet<E>], queues: &[RequestQueue<E>]) -> LockTable {
        let mut base = Vec::new();
        let mut count = 0;
        let words = |map: &Sbitmap<E>| map.words.len() as u32;
        let driver_words = sets
            .iter()
            .flat_map(|set| set.driver.iter().map(words))
            .max()
            .unwrap_or(1);
        let sched_words = queues
            .iter()
            .flat_map(|q| q.sched.iter().map(words))
            .max()
            .unwrap_or(1);
        for queue in queues {
            let hctxs = queue.hctxs.len() as u32;
            // Driver tags belong to the set: every queue means the locks of its first one.
            let set = &sets[queue.set.index()];
            let owner = set.queues.start;
            let maps = match owner == queue.id.index() {
                true => set.driver.len() as u32,
                false => 0,
            };
            let sizes = [
                1,
                hctxs,
                queue.ctxs.len() as u32,
                1,
                1,
                hctxs,
                maps * driver_words,
                queue.sched.len() as u32 * sched_words,
                maps * WAIT_QUEUES as u32,
                (queue.sched.len() * WAIT_QUEUES) as u32,
                queue.dd.buckets.len() as u32,
                1,
                maps,
            ];
            let mut numbers = sizes.map(|size| {
                let first = count;
                count += size;
                first
            });
            if maps == 0 {
                let first: &[u32; LockKind::ALL.len()] = &base[owner];
                for kind in [LockKind::DriverSwap, LockKind::DriverWait, LockKind::Tags] {
                    numbers[kind as usize] = first[kind as usize];
                }
            }
            base.push(numbers);
        }
        let mut stride = [WORDS_MAX; LockKind::ALL.len()];
        stride[LockKind::DriverSwap as usize] = driver_words;
        stride[LockKind::SchedSwap as usize] = sched_words;
        LockTable {
            base,
            stride,
            count,
        }
    }
}

/// Does something with the lock of an id: locks guard different types, so no function can name it.
macro_rules! of_lock {
    ($mq:expr, $id:expr, $lock:ident => $act:expr) => {{
        let q = $mq.queue($id.queue());
        let at = $id.index() as usize;
        let (map, word) = (at / WORDS_MAX as usize, at % WORDS_MAX as usize);
        let (line, queue) = (at / WAIT_QUEUES, at % WAIT_QUEUES);
        macro_rules! with {
            ($found:expr) => {{
                let $lock = &$found;
                $act
            }};
        }
        match $id.kind() {
            LockKind::Elevator => with!(q.elevator),
            LockKind::Dispatch => with!(q.hctxs[at].dispatch),
            LockKind::Ctx => with!(q.ctxs[at].lists),
            LockKind::Requeue => with!(q.requeue),
            LockKind::Queue => with!(q.queue_lock),
            LockKind::Flush => with!(q.hctxs[at].flush),
            LockKind::DriverSwap => with!($mq.set_of($id.queue()).driver[map].words[word].swap),
            LockKind::SchedSwap => with!(q.sched[map].words[word].swap),
            LockKind::DriverWait => with!($mq.set_of($id.queue()).driver[line].wait[queue].queue),
            LockKind::SchedWait => with!(q.sched[line].wait[queue].queue),
            LockKind::Bucket => with!(q.dd.buckets[at].list),
            LockKind::Inserted => with!(q.dd.inserted),
            LockKind::Tags => with!($mq.set_of($id.queue()).locks[at]),
        }
    }};
}

impl<E: Env> BlkMq<E> {
    /// Number of locks.
    pub fn lock_count(&self) -> usize {
        self.locks.count as usize
    }

    /// Dense number of a lock, below `lock_count`.
    pub fn lock_slot(&self, id: LockId) -> usize {
        let (kind, at) = (id.kind_index(), id.index());
        let index = at / WORDS_MAX * self.locks.stride[kind] + at % WORDS_MAX;
        (self.locks.base[id.queue().index()][kind] + index) as usize
    }

    /// Kind of the lock with this dense number, for reports.
    pub fn lock_kind(&self, slot: usize) -> LockKind {
        let base = self
            .locks
            .base
            .iter()
            .rev()
            .find(|base| base[0] as usize <= slot);
        let base = base.expect("the first queue's first lock has number 0");
        let kinds = LockKind::ALL.into_iter().zip(base);
        // Numbers below the queue's own are those of its tag set.
        let own = base[0]..=slot as u32;
        let below = kinds.filter(|&(_, first)| own.contains(first));
        below
            .max_by_key(|&(_, &first)| first)
            .map(|(kind, _)| kind)
            .expect("base[0] is not above the slot")
    }

    /// Acquires a lock: the driver's grant.
    pub fn acquire(&self, id: LockId, cpu: &mut Cpu) {
        of_lock!(self, id, lock => lock.acquire(cpu));
    }

    /// Tries a lock: the driver's answer to `Next::TryLock`. True if it was free and is owned now.
    pub fn try_acquire(&self, id: LockId, cpu: &mut Cpu) -> bool {
        of_lock!(self, id, lock => lock.try_acquire(cpu))
    }

    /// Tries a lock that somebody holds at that time (see `Lock::try_in_vain`).
    pub fn try_in_vain(&self, id: LockId, cpu: &mut Cpu) {
        of_lock!(self, id, lock => lock.try_in_vain(cpu));
    }

    /// True if nobody owns the lock.
    pub fn is_free(&self, id: LockId) -> bool {
        of_lock!(self, id, lock => lock.is_free())
    }
}
