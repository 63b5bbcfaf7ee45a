//! Kernel variants as data: what differs between releases, one small enum per difference.
//!
//! Not settings of a queue (those are in `queue.rs`). Nothing compares version numbers: a preset
//! names a combination. Kernel: block/blk-mq.c, block/mq-deadline.c (6.1.192, 6.12.117).

mod device_mapper;
mod fair_queueing;
mod fixes;
mod limits;
mod mapped_requests;
mod old_top;
mod plugs;
mod presets;
mod queue_merge;
mod restart;
mod series;
mod single_changes;
mod single_queue;
mod tags;
mod time_slices;

pub use device_mapper::{
    BioMap, DeviceMapper, EndRule, FlagRead, FlushClone, Held, Hold, NoClone, Pathless, PushBack,
    QueueModes, Repeat, Rotation, Saved, Selectors, TargetLock, Undo, Unready,
};
pub use fair_queueing::{
    BfqWork, DepthLimit, FairQueueing, InjectionScan, InsertOrder, IoBound, PendingGroups, Raising,
    ResumeAfter, SoleArrival, StableMerge, ThinkTime, WakerCheck,
};
pub use fixes::{BatchRule, Countdown, Fix, Fixes};
pub use limits::{NoMerges, QueueLimits};
pub use mapped_requests::{
    BioUpdates, BusyPaths, CloneInsertion, EndRun, InFlight, IoData, MappedRequests, RefusedRun,
    SecondEnd, Suspension, TargetLookUp,
};
pub use old_top::{BusyAgain, OldTop, StoppedLook};
pub use plugs::{
    AioPlug, BioPlug, CachedRequest, DirectIssue, DirectUnplug, PlugOrder, PlugRun, StarvedIssue,
    StoppedIssue,
};
pub use queue_merge::{
    Candidate, Current, MergeDirection, QueueMerge, RedirectedSlot, Split, Unreferenced,
};
pub use restart::{
    AfterRefusal, AskAfter, Pull, PutBack, Recheck, Restart, RestartRule, RunAll, TagWait,
    WaitEntry, WaitRetry, WaitingItem, WokenRun,
};
pub use series::{BucketSignal, DispatchGate, Insertion, MergeLookup, Series, SideWork};
pub use single_changes::{SINGLE_CHANGES, SingleChange};
pub use single_queue::{Late, QueuePlug, SameStart, SingleQueueRules};
pub use tags::{ActiveCount, AsyncDepth, FreedBits, ShallowDepth, WakeScan};
pub use time_slices::{
    AwaitedArrival, ClosePreemption, NextFrom, Preemption, QueueingGuess, Seeks, SliceAttributes,
    SliceBoost, SliceClock, SliceDepth, SliceDrain, SliceGroups, SliceIdling, SliceLog, SliceTrees,
    SyncDelay, TimeSlices,
};

/// Behaviour axes of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// Name of the preset, for reports.
    pub name: &'static str,
    /// Order of a task's plug.
    pub plug_order: PlugOrder,
    /// The plug of a bio whose task has none.
    pub bio_plug: BioPlug,
    /// Whether the direct flush of a plug traces U.
    pub direct_unplug: DirectUnplug,
    /// Where the data of a flush sequence goes.
    pub flush_data: FlushData,
    /// How mq-deadline finds the next request of a batch.
    pub batch_position: BatchPosition,
    /// Where mq-deadline puts head insertions.
    pub head_insert: HeadInsert,
    /// What `shallow_depth` of a tag map limits.
    pub shallow_depth: ShallowDepth,
    /// When kyber computes the number of tags for operations that are not synchronous.
    pub async_depth: AsyncDepth,
    /// The requests whose end calls the scheduler's completed_request.
    pub completed_hook: CompletedHook,
    /// Which clock stamps requests.
    pub stamp: Stamp,
    /// Reach of a wake-up of tag waiters.
    pub wake_scan: WakeScan,
    /// Freed tags per wake-up of a map that several queues share.
    pub share_batch: BatchRule,
    /// Where a freed tag goes.
    pub freed_bits: FreedBits,
    /// When a request counts as one of those with a tag of such a map.
    pub active_count: ActiveCount,
    /// The value of `last` in queue_rq.
    pub last_hint: LastHint,
    /// A run that finds nothing pending.
    pub empty_run: EmptyRun,
    /// Order of the requeue list.
    pub requeue_order: RequeueOrder,
    /// Completion on an hctx with one ctx.
    pub single_ctx: SingleCtx,
    /// Completion of a queue with one hctx.
    pub single_hctx: SingleHctx,
    /// Default map of CPUs to hctxs.
    pub cpu_map: CpuMap,
    /// Queues of blk-mq may have a scheduler (bd166ef183c2, v4.11).
    pub mq_schedulers: bool,
    /// The plug of io_submit().
    pub aio_plug: AioPlug,
    /// Which requests are issued directly.
    pub direct_issue: DirectIssue,
    /// What direct issue does on a stopped or quiesced queue.
    pub stopped_issue: StoppedIssue,
    /// Direct issue of a single request that finds no budget or no driver tag.
    pub starved_issue: StarvedIssue,
    /// The run after requests of a plug for one software queue.
    pub plug_run: PlugRun,
    /// A run of an hctx whose driver may sleep (BLK_MQ_F_BLOCKING).
    pub blocking_run: BlockingRun,
    /// A cached request whose bio is merged.
    pub cached_request: CachedRequest,
    /// When mq-deadline frees the requests that an insertion merged away.
    pub merged_free: MergedFree,
    /// Whether `elevator` and `last_merge` of a queue lie on one cache line.
    pub elevator_line: ElevatorLine,
    /// null_blk has queue_rqs: it takes a whole plug.
    pub null_blk_queue_rqs: bool,
    /// A task reads the clock once in a plug, until the plug is flushed (blk_time_get_ns(), v6.9).
    pub plug_keeps_time: bool,
    /// null_blk has the parameter `fua`; without it a device with a cache takes FUA writes.
    pub null_blk_fua: bool,
    /// NVME_MAX_SEGS: most segments of an NVMe command.
    pub nvme_max_segments: u16,
    /// NVME_MAX_KB_SZ: largest NVMe command, KiB.
    pub nvme_max_kb: u32,
    /// Quiescing a quiesced queue.
    pub quiesce: Quiesce,
    /// Freeze around a write to an attribute of the queue.
    pub attribute_store: AttributeStore,
    /// The part of the January 2024 series that mq-deadline has; kernels have none of it.
    pub series: Series,
    /// Budget fair queueing as this kernel has it.
    pub fair_queueing: FairQueueing,
    /// The scheduler of time slices as this kernel has it, or the last one that had it.
    pub time_slices: TimeSlices,
    /// dm-multipath as this kernel has it.
    pub device_mapper: DeviceMapper,
    /// What runs an hctx again that could not issue all its requests.
    pub restart: Restart,
    /// The single-queue path, for kernels whose queues are of that kind here; none: blk-mq.
    pub single_queue: Option<SingleQueueRules>,
    /// Repairs of stalls; kernels of today have them all.
    pub fixes: Fixes,
}

/// Where `elevator` lies in `struct request_queue`, which every request reads several times:
/// `last_merge` is written whenever the scheduler's hash was or becomes empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElevatorLine {
    /// On the line of `last_merge` (v6.1).
    Shared,
    /// On another one (v6.12).
    Apart,
}

/// Where the data of a flush sequence goes, and a FUA write that needs no flush.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FlushData {
    /// Straight to the dispatch list, not through plug and scheduler (v6.1).
    DispatchList,
    /// Like any other write (v6.12).
    Scheduler,
}

/// mq-deadline's record of the position of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BatchPosition {
    /// A pointer to the successor of the last dispatched request (v6.1, `next_rq`).
    NextPointer,
    /// The start of the last dispatched request (v6.12, `latest_pos`).
    LatestPosition,
}

/// mq-deadline's list of head insertions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeadInsert {
    /// One list for each priority (v6.1).
    PerPriority,
    /// One list for the queue, served before anything else (v6.12).
    Global,
}

/// Requests whose end calls completed_request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompletedHook {
    /// All with a scheduler tag (RQF_ELV), also those that bypassed the scheduler, and data of a
    /// flush sequence twice: at its own end and at that of the sequence (v6.1).
    WithSchedTag,
    /// Those that may enter the scheduler (RQF_USE_SCHED), once (v6.12).
    UseSched,
}

/// The time that a request is stamped with at allocation and issue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stamp {
    /// ktime_get_ns(); a cached request has the time of its allocation (v6.1).
    Each,
    /// blk_time_get_ns(): for a task with a plug the time of the first read in that plug, until it
    /// is flushed; a cached request has the time at which a bio takes it (v6.12).
    OfPlug,
}

/// Value of `last` in queue_rq.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LastHint {
    /// The list is empty, or the next request gets no driver tag; a tag that it got is kept (v6.1).
    TagAhead,
    /// The list is empty (v6.12).
    ListEmpty,
}

/// A run of a hardware queue that finds nothing pending.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EmptyRun {
    /// Returns (v6.1).
    Return,
    /// Looks again under `queue_lock` (v6.12 stable).
    RecheckUnderQueueLock,
}

/// Order in which requests that a driver requeues come back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequeueOrder {
    /// Requeued at the front, reinserted at head in list order (v6.1).
    Stack,
    /// Requeued at the tail (v6.12).
    Fifo,
}

/// Completion of an hctx that serves one ctx.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SingleCtx {
    /// Always completes where the interrupt came (v6.1).
    AlwaysHere,
    /// Completes here only if this is that CPU (v6.12).
    OnlyOnItsCpu,
}

/// Completion of a queue with one hctx, where the CPU is right.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SingleHctx {
    /// In the driver's completion (4.20).
    Here,
    /// In the softirq (v6.1).
    Softirq,
}

/// Default CPU map of a tag set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CpuMap {
    /// CPU c to queue c mod n, siblings following their first (v6.1).
    Interleaved,
    /// Contiguous groups of near-equal size, siblings together (v6.12; of interrupt vectors in
    /// both).
    Grouped,
}

/// A write to a file of queue/ in sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttributeStore {
    /// The attribute freezes the queue if it has to (v6.1).
    Plain,
    /// The queue is frozen around it, whatever is written (v6.12 stable).
    Frozen,
}

/// A queue that is quiesced more than once, by a change of its scheduler while it is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quiesce {
    /// It has a flag: runs may begin when the first of them is over (v5.13).
    Flag,
    /// Counted: runs may begin when the last of them is over (quiesce_depth, e70feb8b3e68, 5.16).
    /// Requests of runs in between dm would refuse (DMF_BLOCK_IO_FOR_SUSPEND, b4459b11e840); here
    /// no run begins.
    Nested,
}

/// A run of an hctx with BLK_MQ_F_BLOCKING.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockingRun {
    /// Always in kblockd (v6.1).
    InBackground,
    /// In the calling context, which may sleep (v6.12).
    Here,
}

/// Requests that mq-deadline's insertion merged away.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergedFree {
    /// Freed under dd->lock (v6.1).
    UnderLock,
    /// Freed after it is dropped (v6.12).
    Unlocked,
}
