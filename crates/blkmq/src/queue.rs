//! Request queues, hardware and software queues, and the locks and words they share.
//!
//! State and its invariants only; the operations are in `path/`. Read first:
//! docs/internals/architecture.md. Kernel: include/linux/blk-mq.h, block/blk-mq.h,
//! block/blk-flush.c (6.1.192, 6.12.117).

mod config;
mod exchange;
mod locks;
mod mapped;
mod single;
mod tokens;

pub use config::{ACCESS_RANGES_MAX, Above, QueueConfig, QueueSettings};
pub use exchange::nr_requests_for;
pub(crate) use locks::{DEFERRED, WORDS_MAX};
pub use locks::{IrqClass, LockId, LockKind};
pub use mapped::{BioBased, BioTio, CloneOf, Clones, MapState, Mapped, MappedConfig, Tio};
pub(crate) use single::{Asks, unplug_delay};
pub use single::{
    Batcher, EndRuns, Kind, RequestLimits, Single, SingleQueue, SingleSettings, UNPLUG_THRESH,
    UNPLUG_TIMER, slots_for,
};
pub use tokens::{TokenMap, TokenWait};

pub use crate::call::WaitQueue;

use crate::elevator::{
    ELEVATOR_LOCKS_MAX, Elevator, QueueShape, SchedulerKind, SchedulerSettings, Submitters,
};
use crate::env::{Bit, CacheLine, Count, Cpu, Hint, Lock, Slab, Word, value};
use crate::list::QueueList;
use crate::request::{CpuId, HctxId, QueueId, RequestId, RequestPool, SetId};
use crate::rules::{ElevatorLine, Quiesce};
use crate::sbitmap::Sbitmap;
use crate::tags::TagSet;
use crate::time::Jiffies;
use crate::waiter::WaiterId;

/// Tag sets, and the queues that draw from them.
#[derive(Debug)]
pub struct BlkMq {
    pub sets: Vec<TagSet>,
    /// The queues, those of one set next to each other.
    pub queues: Vec<RequestQueue>,
    /// For each task: its entry is in a wait queue of tags, and may be woken.
    task_waits: Vec<Bit>,
    /// Dense numbers of all locks, for arbitration.
    locks: locks::LockTable,
}

value!(BlkMq { locks; sets, queues, task_waits });

/// Ctxs to a word of `ctx_map`, each word with a cache line of its own: few inserting CPUs share a
/// line (`ilog2(8)` of blk_mq_alloc_hctx()).
pub const CTXS_A_WORD: u32 = 8;

/// A disk's queue (request_queue).
#[derive(Debug)]
pub struct RequestQueue {
    pub id: QueueId,
    pub set: SetId,
    /// Constant while it runs, except for the scheduler and its tags.
    pub settings: QueueSettings,
    /// The scheduler that it begins with.
    first: SchedulerSettings,
    /// Schedulers that it may be changed to while it runs.
    pub further: Vec<SchedulerSettings>,
    /// Most tasks that wait for scheduler tags.
    waiters: usize,
    /// First number of each of the scheduler's locks, among those of schedulers.
    elevator_locks: [u32; ELEVATOR_LOCKS_MAX],
    pub pool: Slab<RequestPool>,
    pub ctxs: Vec<SwQueue>,
    /// One per hardware queue.
    pub hctxs: Vec<HwQueue>,
    /// Scheduler tags, one map per hctx (one in all with shared driver tags); none without
    /// scheduler.
    pub sched: Vec<Sbitmap>,
    /// Tokens of the scheduler; none of one that needs none.
    pub tokens: Vec<TokenMap>,
    /// The scheduler with its locks.
    pub elevator: Elevator,
    /// requeue_list and flush_list under requeue_lock.
    pub requeue: Lock<RequeueLists>,
    /// QUEUE_FLAG_HCTX_ACTIVE: a user of tags that all hctxs share.
    pub tag_active: Bit,
    /// Its requests with tags that all hctxs share (nr_active_requests_shared_tags).
    pub nr_active: Count,
    /// Marked hctxs (`shared_hctx_restart`), or with R0 the flag that there are any.
    pub restarts: Count,
    /// QUEUE_FLAG_QUIESCED.
    pub quiesced: Bit,
    /// The timeout timer: when it expires, in ticks; 0: not pending.
    pub timeout: Hint,
    /// queue_lock, and under it how often the queue is quiesced (quiesce_depth).
    pub queue_lock: Lock<u32>,
    /// mq_freeze_wq: tasks that wait for a thaw, or for the last user of a frozen queue.
    pub freeze_wq: Lock<Vec<WaiterId>>,
    /// State of a single-queue one; none: blk-mq.
    pub single: Option<Single>,
    /// The state of a queue whose requests are mapped to queues below; none: they go to its driver.
    pub mapped: Option<Box<Mapped>>,
    /// State of the queue of a path.
    pub clones: Option<Box<Clones>>,
    /// The bio-based device for whose bios its own are clones, if it is the queue of a path.
    pub bios_of: Option<QueueId>,
}

value!(RequestQueue {
    id, set, settings, first, further, waiters, elevator_locks, bios_of;
    pool, ctxs, hctxs, sched, tokens, elevator, requeue, restarts, tag_active, nr_active, quiesced,
    timeout, queue_lock, freeze_wq, single, mapped, clones
} made for made_for);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RequeueLists {
    /// Requests to be inserted again.
    pub requeue: QueueList,
    /// Flush requests to be issued (v6.12; v6.1 has them at the tail of `requeue`).
    pub flush: QueueList,
}

/// A software queue (blk_mq_ctx).
#[derive(Debug)]
pub struct SwQueue {
    /// Requests by hctx type, under ctx->lock.
    pub lists: Lock<[QueueList; 3]>,
    /// `!list_empty` of each list, as read without the lock.
    pub pending: [Bit; 3],
    /// Bit of this ctx in the ctx_map of its hctx, by type.
    pub index_hw: [u32; 3],
}

value!(SwQueue { index_hw; lists, pending });

/// A hardware context (blk_mq_hw_ctx).
#[derive(Debug)]
pub struct HwQueue {
    /// CPUs that map to it, ascending.
    pub cpumask: Vec<CpuId>,
    /// `ctxs[]`: CPU and hctx type of each bit of `ctx_map`.
    pub ctxs: Vec<(CpuId, u8)>,
    /// `dispatch` under hctx->lock.
    pub dispatch: Lock<QueueList>,
    /// `!list_empty(dispatch)`, as read without the lock.
    pub dispatch_pending: Bit,
    /// One bit for each ctx that has requests, [`CTXS_A_WORD`] to a word ([`HwQueue::ctx_word`]).
    pub ctx_map: Vec<Word>,
    /// BLK_MQ_S_SCHED_RESTART.
    pub restart: Bit,
    /// The lines of `tags`, `run` and `dispatch_wait`, next to each other (up to v4.18).
    pub tags_line: CacheLine,
    /// BLK_MQ_S_STOPPED.
    pub stopped: Bit,
    /// dispatch_wait is in a wait queue of the driver tags.
    pub dispatch_wait: Bit,
    /// The wait queue that it is in, or was in last.
    pub dispatch_ws_index: Hint,
    /// BLK_MQ_S_TAG_ACTIVE: a user of its tags.
    pub tag_active: Bit,
    /// Its requests with driver tags, where queues share them.
    pub nr_active: Count,
    /// dispatch_busy: moving average of "had to stop".
    pub dispatch_busy: Count,
    /// dispatch_from: next ctx of the round robin.
    pub dispatch_from: Hint,
    /// wait_index: next wait queue for a task that finds no tag.
    pub wait_index: Hint,
    /// Flush machine (blk_flush_queue) under mq_flush_lock.
    pub flush: Lock<FlushQueue>,
    /// Slot of the hctx's own flush request.
    pub flush_rq: RequestId,
}

value!(HwQueue {
    cpumask, ctxs, flush_rq;
    dispatch, dispatch_pending, ctx_map, restart, tags_line, stopped, dispatch_wait,
    dispatch_ws_index,
    tag_active, nr_active, dispatch_busy, dispatch_from, wait_index, flush
});

/// State of the flush machine of one hctx.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FlushQueue {
    /// Requests that wait for a flush: one list fills while the flush for the other is in progress.
    pub pending: [QueueList; 2],
    pub pending_idx: u8,
    /// The list that the current flush serves; differs from `pending_idx` while there is one.
    pub running_idx: u8,
    /// Arrival of the oldest pending request.
    pub pending_since: Jiffies,
    /// Data writes of sequences in flight.
    pub data_in_flight: u32,
}

/// Requests of a queue with room for so many: none if nothing submits to it.
fn slots_of(config: &QueueConfig, room: usize) -> usize {
    if config.bios == 0 { 0 } else { room }
}

/// Most queues, and most tag sets.
pub const QUEUES_MAX: u16 = 1024;

/// The number of the next queue or tag set.
fn numbered(before: usize) -> u16 {
    assert!(before < usize::from(QUEUES_MAX), "at most 1024 queues");
    before as u16
}

impl BlkMq {
    /// One queue on its own tag set. `hint` draws first allocation hints.
    pub fn new(config: &QueueConfig, hint: &mut dyn FnMut() -> u32) -> BlkMq {
        BlkMq::with_sets(&[vec![config.clone()]], hint)
    }

    /// Several tag sets, each with the queues that share it; the first queue of a set configures
    /// tags and CPUs for all of it. Queues are numbered through in this order. `hint` draws first
    /// allocation hints. Panics without a queue, with a set without one, or with more than
    /// [`QUEUES_MAX`].
    pub fn with_sets(config: &[Vec<QueueConfig>], hint: &mut dyn FnMut() -> u32) -> BlkMq {
        let mut sets: Vec<TagSet> = Vec::with_capacity(config.len());
        let mut queues: Vec<RequestQueue> = Vec::new();
        for on_set in config {
            let number = SetId(numbered(sets.len()));
            let first = queues.len();
            let settings = &on_set[0].settings;
            let mut set = TagSet::new(
                &on_set[0].tags,
                &on_set[0].topology,
                &settings.rules,
                first..first + on_set.len(),
                hint,
            );
            if settings.scheduler == SchedulerKind::None {
                // queue/nr_requests is the depth of the driver tags then.
                for map in &mut set.driver {
                    map.shrink(settings.nr_requests, None);
                }
            }
            for queue in on_set {
                let id = QueueId(numbered(queues.len()));
                let above = match queue.above {
                    Some(Above::Requests(above)) => queues.get(above.index()),
                    _ => None,
                };
                let clones = above.map_or(0, |above| above.with_pool(|pool| pool.len()));
                queues.push(RequestQueue::new(id, number, (queue, clones), &set, hint));
            }
            sets.push(set);
        }
        let locks = locks::LockTable::new(&sets, &queues);
        for queue in &mut queues {
            queue.elevator_locks = locks.of_elevator(queue.id, queue.settings.scheduler);
        }
        let tasks = config.iter().flatten().map(|queue| queue.tags.tasks).max();
        let tasks = 0..tasks.unwrap_or(0);
        BlkMq {
            sets,
            queues,
            task_waits: tasks.map(|_| Bit::new(false)).collect(),
            locks,
        }
    }

    /// Schedulers write their messages to blktrace. Called before a run begins: creates the
    /// schedulers again.
    pub fn listen(&mut self) {
        for queue in &mut self.queues {
            queue.listen();
        }
    }

    /// Sets the submitters. Called before a run begins: creates the schedulers again.
    pub fn know(&mut self, submitters: &Submitters) {
        for queue in &mut self.queues {
            queue.settings.submitters = submitters.clone();
            queue.remake();
        }
    }

    /// Whether the task has an entry in a wait queue of tags and must be woken there
    /// (TASK_UNINTERRUPTIBLE; `!list_empty` of its entry), as read without the queue's lock. A task
    /// that has found a tag keeps its entry until it removes that, and must not be woken. Panics if
    /// its number is not below `TagSetConfig::tasks`.
    pub fn task_waits(&self, task: WaiterId) -> &Bit {
        &self.task_waits[task.0 as usize]
    }

    /// The tag set of this queue.
    #[inline]
    pub fn set_of(&self, queue: QueueId) -> &TagSet {
        &self.sets[self.queue(queue).set.index()]
    }

    #[inline]
    pub fn queue(&self, id: QueueId) -> &RequestQueue {
        &self.queues[id.index()]
    }
}

impl RequestQueue {
    fn new(
        id: QueueId,
        set_number: SetId,
        (config, clones): (&QueueConfig, usize),
        set: &TagSet,
        hint: &mut dyn FnMut() -> u32,
    ) -> RequestQueue {
        let mut settings = config.settings.clone();
        assert_eq!(settings.scheduler, config.elevator.kind(), "one scheduler");
        settings.limits = settings.limits.of_kernel(&settings.rules);
        let hctx_count = usize::from(set.counts.total());
        let scheduled = settings.scheduler != SchedulerKind::None;
        let maps = if set.hctx_shared { 1 } else { hctx_count };
        let later = |later: &SchedulerSettings| nr_requests_for(later.kind(), set.queue_depth);
        let most = config.further.iter().map(later);
        let per_map = match scheduled {
            true => settings.nr_requests,
            false => set.queue_depth,
        };
        let per_map = match settings.single {
            Some(_) => slots_for(settings.nr_requests),
            None => most.fold(per_map, u32::max),
        };
        if !config.further.is_empty() || settings.single.is_some() {
            settings.slots_per_map = per_map;
        }
        let tagged = maps as u32 * per_map;
        let cpus = config.topology.cpus();
        let (of, users) = ((&settings, &config.elevator), (cpus, config.tags.waiters));
        let sched = exchange::sched_tags(of, set, users, hint);
        let hctxs = (tagged..).map(RequestId).zip(set.ctxs_of_hctxs());
        let hctx = |(flush_rq, ctxs)| HwQueue::new(ctxs, flush_rq);
        let hctxs: Vec<HwQueue> = hctxs.map(hctx).collect();
        let shape = shape_of(cpus, &hctxs);
        let single = settings.single.map(|_| {
            assert!(scheduled, "a single-queue one has a scheduler");
            Single::new(settings.nr_requests, config.tags.tasks + 1)
        });
        // Clones that are no requests of the path's queue have the numbers of those above.
        let clones = settings.single.map_or(0, |_| clones);
        let slots = slots_of(config, (tagged as usize + hctx_count).max(clones));
        let (clones, bios_of) = mapped::of_above(config.above, slots);
        RequestQueue {
            id,
            set: set_number,
            mapped: Mapped::of(config, slots),
            clones,
            bios_of,
            pool: Slab::new(RequestPool::new(slots, config.bios)),
            ctxs: sw_queues(cpus, set, &hctxs),
            hctxs,
            sched,
            tokens: tokens::token_maps(&settings, cpus, hctx_count, hint),
            elevator: Elevator::new(&config.elevator, &settings, &shape),
            requeue: Lock::new(RequeueLists::default()),
            tag_active: Bit::new(false),
            nr_active: Count::new(0),
            restarts: Count::new(0),
            quiesced: Bit::new(false),
            timeout: Hint::new(0),
            queue_lock: Lock::new(0),
            freeze_wq: Lock::new(Vec::new()),
            single,
            settings,
            first: config.elevator.clone(),
            further: config.further.clone(),
            waiters: config.tags.waiters,
            elevator_locks: [0; ELEVATOR_LOCKS_MAX],
        }
    }

    fn listen(&mut self) {
        self.settings.log = true;
        self.remake();
    }

    /// Creates the scheduler again, with changed settings.
    fn remake(&mut self) {
        let shape = shape_of(self.ctxs.len(), &self.hctxs);
        self.elevator = Elevator::new(&self.first, &self.settings, &shape);
    }

    /// The configuration of its parts: another one after a change of the scheduler.
    #[cfg(not(loom))]
    fn made_for(&self) -> (SchedulerKind, u32) {
        (self.settings.scheduler, self.settings.nr_requests)
    }

    /// Records that the CPU of `pool` reads q->elevator, where that shares the line of last_merge.
    #[inline]
    pub(crate) fn touch_elevator(&self, pool: &RequestPool) {
        if self.settings.rules.elevator_line == ElevatorLine::Shared {
            pool.touch_queue();
        }
    }

    pub fn has_elevator(&self) -> bool {
        self.settings.scheduler != SchedulerKind::None
    }

    /// The scheduler tags that `hctx` uses. Panics without a scheduler.
    pub fn sched_of(&self, hctx: HctxId) -> &Sbitmap {
        &self.sched[self.sched_index(hctx)]
    }

    /// Index of the map of scheduler tags that `hctx` uses.
    pub fn sched_index(&self, hctx: HctxId) -> usize {
        if self.sched.len() == 1 {
            0
        } else {
            usize::from(hctx.0)
        }
    }

    pub fn hctx(&self, hctx: HctxId) -> &HwQueue {
        &self.hctxs[usize::from(hctx.0)]
    }

    /// Writes to the line of `hctx->tags`: the count of runs, or the entry in a wait queue. Only a
    /// walk over hctxs reads that line.
    ///
    /// Deviation(D16): no write where no restart walks over hctxs.
    pub(crate) fn dirty_tags_line(&self, hctx: HctxId, cpu: &mut Cpu) {
        if self.settings.rules.restart.rule.walks() {
            self.hctx(hctx).tags_line.write(cpu);
        }
    }

    /// Under queue_lock: no run begins any more (blk_mq_quiesce_queue_nowait()).
    pub(crate) fn quiesce(&self, cpu: &mut Cpu) {
        let mut depth = self.queue_lock.held(cpu);
        *depth = match self.settings.rules.quiesce {
            Quiesce::Flag => 1,
            Quiesce::Nested => *depth + 1,
        };
        drop(depth);
        self.quiesced.set(cpu);
    }

    /// Under queue_lock: true if runs may begin again (blk_mq_unquiesce_queue()).
    pub(crate) fn unquiesce(&self, cpu: &mut Cpu) -> bool {
        let mut depth = self.queue_lock.held(cpu);
        *depth = match self.settings.rules.quiesce {
            Quiesce::Flag => 0,
            Quiesce::Nested => *depth - 1,
        };
        let last = *depth == 0;
        drop(depth);
        if last {
            self.quiesced.clear(cpu);
        }
        last
    }

    /// The slot of the request that holds bit `bit` of the map that identifies requests.
    pub fn slot(&self, map: usize, bit: u32) -> RequestId {
        RequestId(map as u32 * self.settings.slots_per_map + bit)
    }

    /// Inspects the pool while nothing runs.
    pub fn with_pool<R>(&self, look: impl FnOnce(&mut RequestPool) -> R) -> R {
        look(&mut self.pool.held(CpuId(0)))
    }
}

/// The software queues, with the bit of each in the `ctx_map` of its hctxs.
fn sw_queues(cpus: usize, set: &TagSet, hctxs: &[HwQueue]) -> Vec<SwQueue> {
    let ctx = |_| SwQueue {
        lists: Lock::new([QueueList::new(); 3]),
        pending: core::array::from_fn(|_| Bit::new(false)),
        index_hw: [0; 3],
    };
    let mut ctxs: Vec<SwQueue> = (0..cpus).map(ctx).collect();
    for kind in 0..set.map.len() {
        let alike = set.map.each_ref().map(|map| *map == set.map[kind]);
        for (hctx, of) in (0..).map(HctxId).zip(hctxs) {
            for (index, &(cpu, own)) in (0..).zip(&of.ctxs) {
                let cpu = usize::from(cpu.0);
                if alike[usize::from(own)] && set.map[kind][cpu] == hctx {
                    ctxs[cpu].index_hw[kind] = index;
                }
            }
        }
    }
    ctxs
}

impl HwQueue {
    fn new(ctxs: Vec<(CpuId, u8)>, flush_rq: RequestId) -> HwQueue {
        let words = ctxs.len().div_ceil(CTXS_A_WORD as usize).max(1);
        let mut cpumask: Vec<CpuId> = ctxs.iter().map(|&(cpu, _)| cpu).collect();
        cpumask.dedup();
        HwQueue {
            cpumask,
            ctxs,
            dispatch: Lock::new(QueueList::new()),
            dispatch_pending: Bit::new(false),
            ctx_map: (0..words).map(|_| Word::new(0)).collect(),
            restart: Bit::new(false),
            tags_line: CacheLine::default(),
            stopped: Bit::new(false),
            dispatch_wait: Bit::new(false),
            dispatch_ws_index: Hint::new(0),
            tag_active: Bit::new(false),
            nr_active: Count::new(0),
            dispatch_busy: Count::new(0),
            dispatch_from: Hint::new(0),
            wait_index: Hint::new(0),
            flush: Lock::new(FlushQueue::default()),
            flush_rq,
        }
    }
}

impl HwQueue {
    /// cpumask_test_cpu() of its CPUs.
    pub fn serves(&self, cpu: CpuId) -> bool {
        self.cpumask.binary_search(&cpu).is_ok()
    }

    /// The word of `ctx_map` with this bit, and its mask there.
    pub fn ctx_word(&self, bit: u32) -> (&Word, u64) {
        let word = &self.ctx_map[(bit / CTXS_A_WORD) as usize];
        (word, 1 << (bit % CTXS_A_WORD))
    }
}

/// The shape of a queue for its scheduler.
fn shape_of(cpus: usize, hctxs: &[HwQueue]) -> QueueShape {
    QueueShape {
        cpus,
        ctxs: hctxs.iter().map(|hctx| hctx.ctxs.len()).collect(),
        cpus_of: (hctxs
            .iter()
            .map(|hctx| hctx.ctxs.iter().map(|&(cpu, _)| cpu).collect()))
        .collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
