//! Names and dense numbers of every lock of a tag set and its queues.
//!
//! A path names a lock with a [`LockId`]; the driver acquires it, and arbitration wants a number.

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
}

/// Words of one tag map at most (10,240 tags in words of 64).
pub(crate) const WORDS_MAX: u32 = 1024;

/// A lock of one `BlkMq`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockId {
    /// Which queue.
    pub queue: u8,
    /// Which kind.
    pub kind: LockKind,
    /// Which one of that kind.
    pub index: u32,
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
    pub fn irq_class(self) -> IrqClass {
        match self {
            LockKind::Elevator | LockKind::Dispatch | LockKind::Ctx => IrqClass::Plain,
            LockKind::Requeue
            | LockKind::Queue
            | LockKind::Flush
            | LockKind::DriverSwap
            | LockKind::SchedSwap
            | LockKind::DriverWait
            | LockKind::SchedWait => IrqClass::IrqSave,
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
        }
    }

    /// All kinds.
    pub const ALL: [LockKind; 10] = [
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
    ];
}

/// First dense number of each kind of each queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct LockTable {
    base: Vec<[u32; LockKind::ALL.len()]>,
    stride: [u32; LockKind::ALL.len()],
    count: u32,
}

impl LockTable {
    pub(super) fn new<E: Env>(set: &TagSet<E>, queues: &[RequestQueue<E>]) -> LockTable {
        let mut base = Vec::new();
        let mut count = 0;
        let words = |map: &Sbitmap<E>| map.words.len() as u32;
        let driver_words = set.driver.iter().map(words).max().unwrap_or(1);
        let sched_words = queues
            .iter()
            .flat_map(|q| q.sched.iter().map(words))
            .max()
            .unwrap_or(1);
        for queue in queues {
            let hctxs = queue.hctxs.len() as u32;
            let sizes = [
                1,
                hctxs,
                queue.ctxs.len() as u32,
                1,
                1,
                hctxs,
                set.driver.len() as u32 * driver_words,
                queue.sched.len() as u32 * sched_words,
                (set.driver.len() * WAIT_QUEUES) as u32,
                (queue.sched.len() * WAIT_QUEUES) as u32,
            ];
            base.push(sizes.map(|size| {
                let first = count;
                count += size;
                first
            }));
        }
        // Driver tags belong to the set: every queue means the same lock.
        let first: [u32; LockKind::ALL.len()] = base[0];
        for numbers in &mut base {
            for kind in [LockKind::DriverSwap, LockKind::DriverWait] {
                numbers[kind as usize] = first[kind as usize];
            }
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

impl<E: Env> BlkMq<E> {
    /// Number of locks.
    pub fn lock_count(&self) -> usize {
        self.locks.count as usize
    }

    /// Dense number of a lock, below `lock_count`.
    pub fn lock_slot(&self, id: LockId) -> usize {
        let kind = id.kind as usize;
        let index = id.index / WORDS_MAX * self.locks.stride[kind] + id.index % WORDS_MAX;
        (self.locks.base[usize::from(id.queue)][kind] + index) as usize
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
        let below = kinds.filter(|&(_, &first)| first as usize <= slot);
        below
            .max_by_key(|&(_, &first)| first)
            .map(|(kind, _)| kind)
            .expect("base[0] is not above the slot")
    }

    /// Acquires a lock: the driver's grant.
    pub fn acquire(&self, id: LockId, cpu: &mut Cpu) {
        let q = self.queue(id.queue);
        let at = id.index as usize;
        let word = |maps: &Vec<Sbitmap<E>>, cpu: &mut Cpu| {
            maps[at / WORDS_MAX as usize].words[at % WORDS_MAX as usize]
                .swap
                .acquire(cpu);
        };
        let wait = |maps: &Vec<Sbitmap<E>>, cpu: &mut Cpu| {
            maps[at / WAIT_QUEUES].wait[at % WAIT_QUEUES]
                .queue
                .acquire(cpu);
        };
        match id.kind {
            LockKind::Elevator => q.elevator.acquire(cpu),
            LockKind::Dispatch => q.hctxs[at].dispatch.acquire(cpu),
            LockKind::Ctx => q.ctxs[at].lists.acquire(cpu),
            LockKind::Requeue => q.requeue.acquire(cpu),
            LockKind::Queue => q.queue_lock.acquire(cpu),
            LockKind::Flush => q.hctxs[at].flush.acquire(cpu),
            LockKind::DriverSwap => word(&self.set.driver, cpu),
            LockKind::SchedSwap => word(&q.sched, cpu),
            LockKind::DriverWait => wait(&self.set.driver, cpu),
            LockKind::SchedWait => wait(&q.sched, cpu),
        }
    }

    /// True if nobody owns the lock.
    pub fn is_free(&self, id: LockId) -> bool {
        let q = self.queue(id.queue);
        let at = id.index as usize;
        let word = |maps: &Vec<Sbitmap<E>>| {
            maps[at / WORDS_MAX as usize].words[at % WORDS_MAX as usize]
                .swap
                .is_free()
        };
        let wait = |maps: &Vec<Sbitmap<E>>| {
            let map = &maps[at / WAIT_QUEUES];
            map.wait[at % WAIT_QUEUES].queue.is_free()
        };
        match id.kind {
            LockKind::Elevator => q.elevator.is_free(),
            LockKind::Dispatch => q.hctxs[at].dispatch.is_free(),
            LockKind::Ctx => q.ctxs[at].lists.is_free(),
            LockKind::Requeue => q.requeue.is_free(),
            LockKind::Queue => q.queue_lock.is_free(),
            LockKind::Flush => q.hctxs[at].flush.is_free(),
            LockKind::DriverSwap => word(&self.set.driver),
            LockKind::SchedSwap => word(&q.sched),
            LockKind::DriverWait => wait(&self.set.driver),
            LockKind::SchedWait => wait(&q.sched),
        }
    }
}
