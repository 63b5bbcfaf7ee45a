//! Names and dense numbers of every lock of a tag set and its queues.
//!
//! A path names a lock with a [`LockId`]; the driver acquires it, and the arbiter needs a number.

use crate::call::WaitQueue;
use crate::request::QueueId;
use core::fmt;

use super::{BlkMq, RequestQueue, nr_requests_for};
use crate::elevator::{ELEVATOR_LOCKS_MAX, Elevator, ElevatorTokens, SchedulerKind};
use crate::env::{Cpu, SpinLock};
use crate::sbitmap::{Sbitmap, WAIT_QUEUES, shift_for};
use crate::tags::TagSet;

/// The kind of a lock of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockKind {
    /// hctx->lock; index: hctx.
    Dispatch,
    /// ctx->lock; index: CPU.
    Ctx,
    /// One of the scheduler's; index: its number among the scheduler's locks * 8192 + its index
    /// among locks of that kind.
    Elevator,
    /// requeue_lock.
    Requeue,
    /// queue_lock.
    Queue,
    /// mq_flush_lock; index: hctx.
    Flush,
    /// swap_lock of a driver tag word; index: map * 256 + word.
    DriverSwap,
    /// swap_lock of a scheduler tag word; index: map * 256 + word.
    SchedSwap,
    /// Wait queue of driver tags; index: map * 8 + queue.
    DriverWait,
    /// Wait queue of scheduler tags; index: map * 8 + queue.
    SchedWait,
    /// tags->lock of driver tags that queues share; index: map.
    Tags,
    /// A wait queue of tasks; index: [`WaitQueue`](super::WaitQueue).
    Wait,
    /// swap_lock of a word of a scheduler's tokens; index: map * 256 + word.
    TokenSwap,
    /// Wait queue of a scheduler's tokens; index: map * 8 + queue.
    TokenWait,
    /// A lock of a mapped device; index 0: m->lock of its target, 1: md->deferred_lock of a
    /// bio-based one.
    Target,
    /// The lock of a selector of such a target; index: group.
    Selector,
}

/// md->deferred_lock among the locks of a mapped device.
pub(crate) const DEFERRED: u32 = 1;
const DEFERRED_NAME: &str = "md->deferred_lock";

/// Words of one tag map at most (10,240 tags in words of 64).
pub(crate) const WORDS_MAX: u32 = 256;

/// Words of a map of scheduler tags that all hctxs share.
const WORDS_SHARED: u32 = 32;

/// A lock of one `BlkMq`: queue, kind, index and whether it disables interrupts, in one word, as
/// every layer of a step passes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(u32);

/// Bits of an index in a `LockId`.
const INDEX_BITS: u32 = 18;
/// Where the queue begins, after four bits of the kind.
const QUEUE: u32 = INDEX_BITS + 4;
/// The bit of a scheduler's lock that is held with interrupts disabled.
const IRQ_SAVE: u32 = 1 << (INDEX_BITS - 1);
/// Where the number of a scheduler's lock begins in the index, four bits.
const NUMBER: u32 = INDEX_BITS - 5;
/// Kind and index of the first lock that is held with interrupts disabled.
const FIRST_IRQ_SAVE: u32 = (LockKind::Elevator as u32) << INDEX_BITS | IRQ_SAVE;

impl LockId {
    /// The lock of `queue` of this kind with this index, below 2^18. Not for a scheduler's.
    #[inline]
    pub fn new(queue: QueueId, kind: LockKind, index: u32) -> LockId {
        LockId::with(queue, kind, index)
    }

    /// Number `number` of the locks of the scheduler of `queue`, and the index among several of
    /// that kind, below 2^13.
    #[inline]
    pub const fn of_elevator(queue: QueueId, number: u8, class: IrqClass, index: u32) -> LockId {
        assert!(index < 1 << NUMBER, "a scheduler has fewer locks of a kind");
        let masks = match class {
            IrqClass::Plain => 0,
            IrqClass::IrqSave => IRQ_SAVE,
        };
        let index = masks | (number as u32) << NUMBER | index;
        LockId::with(queue, LockKind::Elevator, index)
    }

    #[inline]
    const fn with(queue: QueueId, kind: LockKind, index: u32) -> LockId {
        assert!(index < 1 << INDEX_BITS, "a queue has fewer locks of a kind");
        LockId((queue.0 as u32) << QUEUE | (kind as u32) << INDEX_BITS | index)
    }

    #[inline]
    pub fn queue(self) -> QueueId {
        QueueId((self.0 >> QUEUE) as u16)
    }

    #[inline]
    pub fn kind(self) -> LockKind {
        LockKind::ALL[self.kind_index()]
    }

    #[inline]
    pub fn index(self) -> u32 {
        self.0 % (1 << INDEX_BITS)
    }

    /// Number among the scheduler's locks, and the index there; none for the block layer's own.
    pub fn elevator(self) -> Option<(u8, u32)> {
        (self.kind_index() == LockKind::Elevator as usize).then(|| of_scheduler(self.index()))
    }

    /// Its owner runs with interrupts disabled.
    #[inline]
    pub fn masks_irq(self) -> bool {
        self.0 % (1 << QUEUE) >= FIRST_IRQ_SAVE
    }

    #[inline]
    fn kind_index(self) -> usize {
        (self.0 >> INDEX_BITS) as usize % 16
    }
}

/// Number of a scheduler's lock, and the index among several of that kind, by the index of its id.
#[inline]
fn of_scheduler(index: u32) -> (u8, u32) {
    let number = (index >> NUMBER) % ELEVATOR_LOCKS_MAX as u32;
    (number as u8, index % (1 << NUMBER))
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

/// The contexts that can interrupt the owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IrqClass {
    /// spin_lock(): anything.
    Plain,
    /// spin_lock_irqsave(): nothing.
    IrqSave,
}

impl LockKind {
    /// How the kernel takes it; a scheduler's info has it for its own locks.
    #[inline]
    pub const fn irq_class(self) -> IrqClass {
        match self {
            LockKind::Elevator | LockKind::Dispatch | LockKind::Ctx => IrqClass::Plain,
            LockKind::Requeue
            | LockKind::Queue
            | LockKind::Flush
            | LockKind::DriverSwap
            | LockKind::SchedSwap
            | LockKind::DriverWait
            | LockKind::SchedWait
            | LockKind::Tags
            | LockKind::Wait
            | LockKind::TokenSwap
            | LockKind::TokenWait
            | LockKind::Target
            | LockKind::Selector => IrqClass::IrqSave,
        }
    }

    /// Name as the kernel's lock statistics would show it; a scheduler names its own.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Elevator => "scheduler's lock",
            LockKind::Dispatch => "hctx->lock",
            LockKind::Ctx => "ctx->lock",
            LockKind::Requeue => "q->requeue_lock",
            LockKind::Queue => "q->queue_lock",
            LockKind::Flush => "fq->mq_flush_lock",
            LockKind::DriverSwap => "driver tags swap_lock",
            LockKind::SchedSwap => "scheduler tags swap_lock",
            LockKind::DriverWait => "driver tags wait_queue",
            LockKind::SchedWait => "scheduler tags wait_queue",
            LockKind::Tags => "driver tags lock",
            LockKind::Wait => "wait queue of tasks",
            LockKind::TokenSwap => "tokens swap_lock",
            LockKind::TokenWait => "tokens wait_queue",
            LockKind::Target => "m->lock",
            LockKind::Selector => "path selector's lock",
        }
    }

    pub const ALL: [LockKind; 16] = [
        LockKind::Dispatch,
        LockKind::Ctx,
        LockKind::Elevator,
        LockKind::Requeue,
        LockKind::Queue,
        LockKind::Flush,
        LockKind::DriverSwap,
        LockKind::SchedSwap,
        LockKind::DriverWait,
        LockKind::SchedWait,
        LockKind::Tags,
        LockKind::Wait,
        LockKind::TokenSwap,
        LockKind::TokenWait,
        LockKind::Target,
        LockKind::Selector,
    ];
}

// A kind is an index of four bits, and `ALL` is in the order of the enum. `masks_irq` compares:
// kinds of which no lock is held with interrupts disabled come first, then the scheduler's.
const _: () = {
    assert!(LockKind::ALL.len() <= 16);
    let mut kind = 0;
    while kind < LockKind::ALL.len() {
        assert!(LockKind::ALL[kind] as usize == kind);
        let masks = matches!(LockKind::ALL[kind].irq_class(), IrqClass::IrqSave);
        assert!(masks == (kind > LockKind::Elevator as usize));
        kind += 1;
    }
};

/// First dense number of each kind of each queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct LockTable {
    /// For each queue its schedulers: first number of each one's locks, after that of the kind.
    elevator: Vec<Vec<(SchedulerKind, [u32; ELEVATOR_LOCKS_MAX])>>,
    base: Vec<[u32; LockKind::ALL.len()]>,
    stride: [u32; LockKind::ALL.len()],
    count: u32,
}

impl LockTable {
    pub(super) fn new(sets: &[TagSet], queues: &[RequestQueue]) -> LockTable {
        let mut base = Vec::new();
        let mut elevator = Vec::new();
        let mut count = 0;
        let words = |map: &Sbitmap| map.words.len() as u32;
        let driver_words = sets
            .iter()
            .flat_map(|set| set.driver.iter().map(words))
            .max()
            .unwrap_or(1);
        let now = queues.iter().flat_map(|q| q.sched.iter().map(words)).max();
        let later = queues
            .iter()
            .map(|q| sched_words_later(&sets[q.set.index()], q))
            .max();
        let sched_words = now.max(later).unwrap_or(0).max(1);
        let token_words = queues.iter().map(|q| tokens_of(q).1).max().unwrap_or(0);
        for queue in queues {
            let hctxs = queue.hctxs.len() as u32;
            // Driver tags belong to the set: every queue uses the locks of its first one.
            let set = &sets[queue.set.index()];
            let owner = set.queues.start;
            let maps = match owner == queue.id.index() {
                true => set.driver.len() as u32,
                false => 0,
            };
            let (schedulers, of_elevator) = starts_of(queue);
            let mut kinds = schedulers.iter().map(|&(kind, _)| kind);
            let any = kinds.any(|kind| kind != SchedulerKind::None);
            elevator.push(schedulers);
            let sched_maps = if any { set.driver.len() as u32 } else { 0 };
            let (token_maps, _) = tokens_of(queue);
            let sizes = [
                hctxs,
                queue.ctxs.len() as u32,
                of_elevator,
                1,
                1,
                hctxs,
                maps * driver_words,
                sched_maps * sched_words,
                maps * WAIT_QUEUES as u32,
                sched_maps * WAIT_QUEUES as u32,
                maps,
                wait_queues_of(queue),
                token_maps * token_words,
                token_maps * WAIT_QUEUES as u32,
                targets_of(queue),
                groups_of(queue),
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
        LockTable {
            elevator,
            base,
            stride: strides(driver_words, sched_words, token_words),
            count,
        }
    }

    /// First number of each lock of a queue's scheduler, after that of the kind.
    pub(super) fn of_elevator(
        &self,
        queue: QueueId,
        kind: SchedulerKind,
    ) -> [u32; ELEVATOR_LOCKS_MAX] {
        let mut all = self.elevator[queue.index()].iter();
        let found = all.find(|(known, _)| *known == kind);
        found.expect("the queue may have this scheduler").1
    }
}

fn wait_queues_of(queue: &RequestQueue) -> u32 {
    match queue.mapped.is_some() {
        true => WaitQueue::ALL.len() as u32,
        false => 1,
    }
}

/// Locks of a mapped device but those of its selectors.
fn targets_of(queue: &RequestQueue) -> u32 {
    let mapped = queue.mapped.as_ref();
    mapped.map_or(0, |mapped| 1 + u32::from(mapped.bios.is_some()))
}

/// Selectors of the target of a queue.
fn groups_of(queue: &RequestQueue) -> u32 {
    let mapped = queue.mapped.as_ref();
    mapped.map_or(0, |mapped| mapped.selectors.len() as u32)
}

/// Numbers from one map to the next: words have a lock each.
fn strides(driver: u32, sched: u32, tokens: u32) -> [u32; LockKind::ALL.len()] {
    let mut stride = [WORDS_MAX; LockKind::ALL.len()];
    stride[LockKind::DriverSwap as usize] = driver;
    stride[LockKind::SchedSwap as usize] = sched;
    stride[LockKind::TokenSwap as usize] = tokens;
    stride
}

/// For each scheduler that a queue may have: first number of each of its locks, and the number of
/// locks in all.
fn starts_of(queue: &RequestQueue) -> (Vec<(SchedulerKind, [u32; ELEVATOR_LOCKS_MAX])>, u32) {
    let mut count = 0;
    let starts = |(kind, one): (SchedulerKind, Elevator)| {
        let starts = core::array::from_fn(|number| {
            let first = count;
            count += one.lock_count(number as u8);
            first
        });
        (kind, starts)
    };
    let all = queue.schedulers().into_iter().map(starts).collect();
    (all, count)
}

/// Most words of a map of scheduler tags that a further scheduler of the queue brings.
fn sched_words_later(set: &TagSet, q: &RequestQueue) -> u32 {
    let words = |kind: SchedulerKind| match (kind, set.hctx_shared) {
        (SchedulerKind::None, _) => 0,
        (_, true) => WORDS_SHARED,
        (_, false) => {
            let depth = nr_requests_for(kind, set.queue_depth);
            depth.div_ceil(1 << shift_for(depth))
        }
    };
    let further = q.further.iter().map(|later| words(later.kind()));
    further.max().unwrap_or(0)
}

/// Most maps of tokens that a scheduler of the queue has, and most words of one.
fn tokens_of(queue: &RequestQueue) -> (u32, u32) {
    let all = core::iter::once(&queue.first).chain(&queue.further);
    let info = all.filter_map(|settings| settings.kind().info());
    let words = |tokens: &ElevatorTokens| tokens.depth.div_ceil(1 << shift_for(tokens.depth));
    info.fold((0, 0), |(maps, most), info| {
        let words = info.tokens.iter().map(words).max().unwrap_or(0);
        (maps.max(info.tokens.len() as u32), most.max(words))
    })
}

impl BlkMq {
    /// The lock of an id.
    #[inline]
    pub fn spin_lock(&self, id: LockId) -> &SpinLock {
        let q = self.queue(id.queue());
        let at = id.index() as usize;
        // Most locks are these; the others split their index where they need it.
        if id.kind_index() == LockKind::Elevator as usize {
            let (number, at) = of_scheduler(id.index());
            return q.elevator.spin_lock(number, at as usize);
        }
        let word_of = || (at / WORDS_MAX as usize, at % WORDS_MAX as usize);
        let queue_of = || (at / WAIT_QUEUES, at % WAIT_QUEUES);
        match id.kind() {
            LockKind::Elevator => unreachable!("one of the scheduler's was asked for above"),
            LockKind::Dispatch => &q.hctxs[at].dispatch,
            LockKind::Ctx => &q.ctxs[at].lists,
            LockKind::Requeue => &q.requeue,
            LockKind::Queue => &q.queue_lock,
            LockKind::Flush => &q.hctxs[at].flush,
            LockKind::DriverSwap => {
                let (map, word) = word_of();
                &self.set_of(id.queue()).driver[map].words[word].swap
            }
            LockKind::SchedSwap => {
                let (map, word) = word_of();
                &q.sched[map].words[word].swap
            }
            LockKind::DriverWait => {
                let (map, queue) = queue_of();
                &self.set_of(id.queue()).driver[map].wait[queue].queue
            }
            LockKind::SchedWait => {
                let (map, queue) = queue_of();
                &q.sched[map].wait[queue].queue
            }
            LockKind::Tags => &self.set_of(id.queue()).locks[at],
            LockKind::Wait => q.wait_queue(WaitQueue::ALL[at]),
            LockKind::Target if at == DEFERRED as usize => &q.own_mapped().own_bios().deferred,
            LockKind::Target => &q.own_mapped().lock,
            LockKind::Selector => &q.own_mapped().selectors[at],
            LockKind::TokenSwap => {
                let (map, word) = word_of();
                &q.tokens[map].map.words[word].swap
            }
            LockKind::TokenWait => {
                let (map, queue) = queue_of();
                &q.tokens[map].map.wait[queue].queue
            }
        }
    }

    pub fn lock_count(&self) -> usize {
        self.locks.count as usize
    }

    /// Dense number of a lock, below `lock_count`.
    pub fn lock_slot(&self, id: LockId) -> usize {
        let (kind, at) = (id.kind_index(), id.index());
        let queue = id.queue().index();
        let index = match id.kind() {
            LockKind::Elevator => {
                let (number, at) = of_scheduler(at);
                self.queues[queue].elevator_locks[usize::from(number)] + at
            }
            _ => at / WORDS_MAX * self.locks.stride[kind] + at % WORDS_MAX,
        };
        (self.locks.base[queue][kind] + index) as usize
    }

    /// Names of all locks, each once: those of schedulers, then the block layer's own in the order
    /// of their kinds. With them the index of each lock's name, by its dense number. For reports.
    pub fn lock_names(&self) -> (Vec<&'static str>, Vec<u8>) {
        let all = self.locks.elevator.iter().flatten();
        let info = all.filter_map(|(kind, _)| kind.info());
        // The lock of a single-queue one is its queue_lock, which is among the block layer's own.
        let of_schedulers = info.flat_map(|info| info.locks.iter().map(|lock| lock.name));
        let own = LockKind::ALL.into_iter();
        let own = own.filter(|kind| *kind != LockKind::Elevator);
        let own = own.map(LockKind::name);
        let mut names: Vec<&'static str> = Vec::new();
        let deferred = self
            .queues
            .iter()
            .map(targets_of)
            .any(|locks| locks > DEFERRED);
        let deferred = deferred.then_some(DEFERRED_NAME);
        for name in of_schedulers.chain(own).chain(deferred) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let place = |slot| {
            let name = self.lock_name(slot);
            let place = names.iter().position(|&known| known == name);
            place.expect("each lock has one of these names") as u8
        };
        let classes = (0..self.lock_count()).map(place).collect();
        (names, classes)
    }

    /// The queue of the lock with this dense number.
    pub fn lock_queue(&self, slot: usize) -> QueueId {
        let above = self
            .locks
            .base
            .partition_point(|base| base[0] as usize <= slot);
        QueueId(
            above
                .checked_sub(1)
                .expect("the first queue's first lock has number 0") as u16,
        )
    }

    /// Name of the lock with this dense number.
    pub fn lock_name(&self, slot: usize) -> &'static str {
        let base = &self.locks.base;
        let queue = self.lock_queue(slot).index();
        let kinds = LockKind::ALL.into_iter().zip(base[queue]);
        // Numbers below the queue's own belong to its tag set. Kinds without a lock have the first
        // number of the next kind, so the last one that begins there counts.
        let own = base[queue][0]..=slot as u32;
        let below = kinds.filter(|(_, first)| own.contains(first));
        match below.max_by_key(|&(_, first)| first) {
            Some((LockKind::Elevator, _)) if self.queues[queue].single.is_some() => {
                LockKind::Queue.name()
            }
            Some((LockKind::Elevator, first)) => {
                let at = slot as u32 - first;
                let all = self.locks.elevator[queue].iter();
                let locks = all.filter_map(|(kind, starts)| Some((kind.info()?.locks, starts)));
                // Scheduler locks without an instance have the first number of the next one: the
                // last one counts.
                let named = locks.flat_map(|(locks, starts)| locks.iter().zip(starts));
                let below = named.filter(|&(_, &start)| start <= at);
                let last = below.max_by_key(|&(_, &start)| start);
                last.expect("the first one has number 0").0.name
            }
            Some((LockKind::Target, first)) if slot as u32 - first == DEFERRED => DEFERRED_NAME,
            Some((kind, _)) => kind.name(),
            None => unreachable!("base[0] is not above the slot"),
        }
    }

    /// Acquires a lock: the driver's grant.
    #[inline]
    pub fn acquire(&self, id: LockId, cpu: &mut Cpu) {
        self.spin_lock(id).acquire(cpu);
    }

    /// Tries a lock: the driver's answer to `Next::TryLock`. True if it was free and is owned now.
    pub fn try_acquire(&self, id: LockId, cpu: &mut Cpu) -> bool {
        self.spin_lock(id).try_acquire(cpu)
    }

    /// Tries a lock that another context holds at that time (see `Lock::try_in_vain`).
    pub fn try_in_vain(&self, id: LockId, cpu: &mut Cpu) {
        self.spin_lock(id).try_in_vain(cpu);
    }

    /// True if the lock has no owner.
    pub fn is_free(&self, id: LockId) -> bool {
        self.spin_lock(id).is_free()
    }
}
