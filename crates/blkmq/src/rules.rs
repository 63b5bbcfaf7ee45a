//! Kernel variants as data: what differs between releases, one small enum per difference.
//!
//! Not settings of a queue (those are in `queue.rs`). Nothing compares version numbers: a preset
//! names a combination. Kernel: block/blk-mq.c, block/mq-deadline.c (6.1.192, 6.12.117).

mod device_mapper;
mod fair_queueing;
mod fixes;
mod mapped_requests;
mod queue_merge;
mod restart;
mod series;
mod single_queue;
mod time_slices;

pub use device_mapper::{
    DeviceMapper, EndRule, FlagRead, Held, Hold, NoClone, Pathless, PushBack, QueueModes, Repeat,
    Rotation, Saved, Selectors, TargetLock, Undo, Unready,
};
pub use fair_queueing::{
    BfqWork, DepthLimit, FairQueueing, InjectionScan, InsertOrder, IoBound, PendingGroups, Raising,
    ResumeAfter, SoleArrival, StableMerge, ThinkTime, WakerCheck,
};
pub use fixes::{BatchRule, BatchScale, Countdown, Fix, Fixes};
pub use mapped_requests::{
    CloneInsertion, EndRun, InFlight, IoData, MappedRequests, RefusedRun, SecondEnd, TargetLookUp,
};
pub use queue_merge::{
    Candidate, Current, MergeDirection, QueueMerge, RedirectedSlot, Split, Unreferenced,
};
pub use restart::{
    AfterRefusal, AskAfter, LineEntry, LineRetry, Pull, PutBack, Recheck, Restart, RestartRule,
    RunAll, TagLine, WaitingItem, WokenRun,
};
pub use series::{BucketSignal, DispatchGate, Insertion, MergeLookup, Series, SideWork};
pub use single_queue::{Late, QueuePlug, SameStart, SingleQueueRules};
pub use time_slices::{
    AwaitedArrival, ClosePreemption, NextFrom, Preemption, QueueingGuess, Seeks, SliceAttributes,
    SliceBoost, SliceClock, SliceDepth, SliceDrain, SliceGroups, SliceIdling, SliceLog, SliceTrees,
    SyncDelay, TimeSlices,
};

use crate::request::{Op, PAGE_SECTORS};

/// Behaviour axes of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// Name of the preset, for reports.
    pub name: &'static str,
    /// Order of a task's plug.
    pub plug_order: PlugOrder,
    /// Who starts a plug where the task has none.
    pub lone_plug: LonePlug,
    /// Whether the direct flush of a plug traces U.
    pub direct_unplug: DirectUnplug,
    /// Which way the data of a flush sequence goes.
    pub flush_data: FlushData,
    /// How mq-deadline finds the next request of a batch.
    pub batch_position: BatchPosition,
    /// Where mq-deadline puts head insertions.
    pub head_insert: HeadInsert,
    /// What `shallow_depth` of a tag map limits.
    pub shallow_depth: ShallowDepth,
    /// When kyber reckons how many tags operations may use that are not synchronous.
    pub async_depth: AsyncDepth,
    /// Which requests that end a scheduler is told of (completed_request).
    pub told_ends: ToldEnds,
    /// Which clock stamps requests.
    pub stamp: Stamp,
    /// How far a wake-up of tag waiters looks.
    pub wake_scan: WakeScan,
    /// Freed tags per wake-up of a map that several queues share.
    pub share_batch: BatchRule,
    /// When a request counts as one of those with a tag of such a map.
    pub active_count: ActiveCount,
    /// How the dispatcher tells the driver that more follows.
    pub last_hint: LastHint,
    /// What a run does that finds nothing pending.
    pub empty_run: EmptyRun,
    /// Order of the requeue list.
    pub requeue_order: RequeueOrder,
    /// Completion on an hctx with one ctx.
    pub single_ctx: SingleCtx,
    /// Completion of a queue with one hctx.
    pub single_hctx: SingleHctx,
    /// Default map of CPUs to hctxs.
    pub cpu_map: CpuMap,
    /// What direct issue does on a stopped or quiesced queue.
    pub stopped_issue: StoppedIssue,
    /// Direct issue of a single request that finds no budget or no driver tag.
    pub starved_issue: StarvedIssue,
    /// The run behind requests of a plug for one software queue.
    pub plug_run: PlugRun,
    /// A run of an hctx whose driver may sleep (BLK_MQ_F_BLOCKING).
    pub blocking_run: BlockingRun,
    /// A request allocated ahead, when the bio that would have had it is merged.
    pub spare_request: SpareRequest,
    /// When mq-deadline frees the requests that an insertion merged away.
    pub merged_free: MergedFree,
    /// Whether `elevator` and `last_merge` of a queue lie on one cache line.
    pub elevator_line: ElevatorLine,
    /// null_blk has queue_rqs: it takes a whole plug.
    pub null_blk_queue_rqs: bool,
    /// A task reads the clock once in a plug, until that is let go (blk_time_get_ns(), v6.9).
    pub plug_keeps_time: bool,
    /// null_blk has the parameter `fua`; without it a device with a cache takes FUA writes.
    pub null_blk_fua: bool,
    /// NVME_MAX_SEGS: most segments of an NVMe command.
    pub nvme_max_segments: u16,
    /// NVME_MAX_KB_SZ: largest NVMe command, KiB.
    pub nvme_max_kb: u32,
    /// What a write to an attribute of the queue does around it.
    pub attribute_store: AttributeStore,
    /// What of the January 2024 series is applied to mq-deadline; kernels have nothing of it.
    pub series: Series,
    /// Budget fair queueing as this kernel has it.
    pub fair_queueing: FairQueueing,
    /// The scheduler of time slices as this kernel has it, or the last one that had it.
    pub time_slices: TimeSlices,
    /// dm-multipath as this kernel has it.
    pub device_mapper: DeviceMapper,
    /// Who runs an hctx again that could not issue all it had.
    pub restart: Restart,
    /// The single-queue path, of kernels whose queues are of that kind here; none: blk-mq.
    pub single_queue: Option<SingleQueueRules>,
    /// Repairs of stalls; kernels of today have them all.
    pub fixes: Fixes,
}

/// Order in which a plug hands out its requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlugOrder {
    /// A stack: newest first (v6.1).
    Lifo,
    /// A queue: oldest first (v6.12 stable).
    Fifo,
}

/// Who starts a plug where the task has none. A discard has one of its ioctl either way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LonePlug {
    /// Nobody: bios come one by one, as specifications of insertion and dispatch have them. No
    /// kernel in all cases; v6.1 for reads.
    Never,
    /// A write to a block device, around all that it submits: blkdev_write_iter() (v6.1). Reads and
    /// flushes have none.
    EachWrite,
    /// Each bio, around its submission: __submit_bio() (v6.12).
    EachBio,
}

impl LonePlug {
    /// All of them, by name.
    pub const NAMES: [(&'static str, LonePlug); 3] = [
        ("never", LonePlug::Never),
        ("each-write", LonePlug::EachWrite),
        ("each-bio", LonePlug::EachBio),
    ];

    /// The one of this name.
    pub fn by_name(name: &str) -> Option<LonePlug> {
        let mut all = LonePlug::NAMES.into_iter();
        all.find(|(other, _)| *other == name).map(|(_, plug)| plug)
    }
}

/// Trace of the direct flush of a one-queue plug.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DirectUnplug {
    /// No U (v6.1).
    Silent,
    /// U with the number of requests (v6.12).
    Traced,
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

/// When a request counts among those with tags of a map that several queues share (nr_active).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ActiveCount {
    /// In blk_mq_get_driver_tag(), marked by RQF_MQ_INFLIGHT: without scheduler not before it is
    /// issued, so that plugs may hold more than a share (v6.1).
    AtIssue,
    /// From its tag on, and until that goes back (v6.12).
    WithTag,
}

/// Way of the data of a flush sequence, and of a FUA write that needs no flush.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FlushData {
    /// Straight to the dispatch list, around plug and scheduler (v6.1).
    DispatchList,
    /// Like any other write (v6.12).
    Scheduler,
}

/// mq-deadline's memory of where a batch stands.
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

/// Meaning of a shallow depth.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShallowDepth {
    /// Bits of each word (v6.1).
    PerWord,
    /// Bits of the whole map (v6.12 stable).
    Total,
}

/// kyber's async_depth.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AsyncDepth {
    /// Once, when the scheduler starts (v5.11).
    AtStart,
    /// Of the map as it is (v6.1).
    OfMap,
    /// Of nr_requests as it was before it was written last: kyber_depth_updated() is called before
    /// the new value is stored (v6.12).
    BeforeChange,
}

/// Requests whose end completed_request hears of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ToldEnds {
    /// All with a scheduler tag (RQF_ELV), also those that went around the scheduler, and data of a
    /// flush sequence twice: at its own end and at that of the sequence (v6.1).
    WithSchedTag,
    /// Those that may enter the scheduler (RQF_USE_SCHED), once (v6.12).
    UseSched,
}

/// The time that a request is stamped with at allocation and issue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stamp {
    /// ktime_get_ns(); one allocated ahead has the time of that (v6.1).
    Each,
    /// blk_time_get_ns(): of a task with a plug the time at which that plug was first asked, until
    /// it is flushed; one allocated ahead has the time at which a bio takes it (v6.12).
    OfPlug,
}

/// Reach of `__sbitmap_queue_wake_up`, and what was before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WakeScan {
    /// The next wait queue, counted down by itself (before v6.2).
    Countdown(Countdown),
    /// The next wait queue that seems to have waiters, whether they are still there or not
    /// (4f8126bb2308, v6.2-rc).
    OneQueue,
    /// Stops at the first wait queue that woke somebody (v6.1).
    FirstQueue,
    /// Goes on until the whole batch is spent (v6.12).
    UntilSpent,
}

/// Value of `last` in queue_rq.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LastHint {
    /// The list is empty, or the next request gets no driver tag; a tag got stays (v6.1).
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
    /// Where the driver tells it (4.20).
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

/// Direct issue on a stopped or quiesced queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StoppedIssue {
    /// Inserts and leaves it (v6.1).
    Insert,
    /// Inserts and runs the queue (v6.12 stable).
    InsertAndRun,
}

/// Direct issue of a single request without budget or driver tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StarvedIssue {
    /// Inserts it and runs the queue here (v6.1).
    RunHere,
    /// Inserts it and runs the queue, in kblockd if the request is REQ_NOWAIT (v6.12).
    NowaitInBackground,
}

/// The run of an hctx behind requests of a plug that are issued directly or else inserted into a
/// software queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlugRun {
    /// None if all were issued, else here (v6.1).
    IfInserted,
    /// Always; in kblockd if one that was inserted is REQ_NOWAIT (v6.12).
    Always,
}

/// A write to a file of queue/ in sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttributeStore {
    /// The attribute freezes the queue if it has to (v6.1).
    Plain,
    /// The queue is frozen around it, whatever is written (v6.12 stable).
    Frozen,
}

/// A run of an hctx with BLK_MQ_F_BLOCKING.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockingRun {
    /// Always in kblockd (v6.1).
    InBackground,
    /// Where it is called, which may sleep (v6.12).
    Here,
}

/// A request allocated ahead whose bio is merged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpareRequest {
    /// Is freed (v6.1).
    Freed,
    /// Goes back to the plug (v6.12).
    Kept,
}

/// Requests that mq-deadline's insertion merged away.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergedFree {
    /// Freed under dd->lock (v6.1).
    UnderLock,
    /// Freed after it is dropped (v6.12).
    Unlocked,
}

impl Rules {
    /// What is known here of Linux 5.11: v6.1 but for what is told apart. One of
    /// [`PARTIAL`](Rules::PARTIAL), as most of that kernel is told by no axis.
    pub const fn v5_11() -> Rules {
        Rules {
            name: "v5.11",
            async_depth: AsyncDepth::AtStart,
            wake_scan: WakeScan::Countdown(Countdown::Resets),
            restart: Restart::V5_9,
            fair_queueing: FairQueueing::V5_11,
            fixes: Fixes::ALL.without(Fix::SwapLock),
            ..Rules::v6_1()
        }
    }

    /// What is known here of Linux 5.13: v5.11 but for what is told apart.
    pub const fn v5_13() -> Rules {
        Rules {
            name: "v5.13",
            restart: Restart::V5_12,
            fixes: Fixes::ALL,
            fair_queueing: FairQueueing::V5_13,
            ..Rules::v5_11()
        }
    }

    /// Linux 6.1 stable (6.1.192).
    pub const fn v6_1() -> Rules {
        Rules {
            name: "v6.1",
            plug_order: PlugOrder::Lifo,
            lone_plug: LonePlug::EachWrite,
            direct_unplug: DirectUnplug::Silent,
            flush_data: FlushData::DispatchList,
            batch_position: BatchPosition::NextPointer,
            head_insert: HeadInsert::PerPriority,
            shallow_depth: ShallowDepth::PerWord,
            async_depth: AsyncDepth::OfMap,
            told_ends: ToldEnds::WithSchedTag,
            stamp: Stamp::Each,
            wake_scan: WakeScan::FirstQueue,
            share_batch: BatchRule::ShareOne,
            active_count: ActiveCount::AtIssue,
            last_hint: LastHint::TagAhead,
            empty_run: EmptyRun::Return,
            attribute_store: AttributeStore::Plain,
            requeue_order: RequeueOrder::Stack,
            single_ctx: SingleCtx::AlwaysHere,
            single_hctx: SingleHctx::Softirq,
            cpu_map: CpuMap::Interleaved,
            stopped_issue: StoppedIssue::Insert,
            starved_issue: StarvedIssue::RunHere,
            plug_run: PlugRun::IfInserted,
            blocking_run: BlockingRun::InBackground,
            spare_request: SpareRequest::Freed,
            merged_free: MergedFree::UnderLock,
            elevator_line: ElevatorLine::Shared,
            null_blk_queue_rqs: false,
            plug_keeps_time: false,
            null_blk_fua: false,
            nvme_max_segments: 127,
            nvme_max_kb: 4096,
            series: Series::STOCK,
            fair_queueing: FairQueueing::V6_1,
            time_slices: TimeSlices::V4_20,
            device_mapper: DeviceMapper::V6_1,
            restart: Restart::V5_12,
            single_queue: None,
            fixes: Fixes::ALL,
        }
    }

    /// Linux 6.12 stable (6.12.117).
    pub const fn v6_12() -> Rules {
        Rules {
            name: "v6.12",
            plug_order: PlugOrder::Fifo,
            lone_plug: LonePlug::EachBio,
            direct_unplug: DirectUnplug::Traced,
            flush_data: FlushData::Scheduler,
            batch_position: BatchPosition::LatestPosition,
            head_insert: HeadInsert::Global,
            shallow_depth: ShallowDepth::Total,
            async_depth: AsyncDepth::BeforeChange,
            told_ends: ToldEnds::UseSched,
            stamp: Stamp::OfPlug,
            wake_scan: WakeScan::UntilSpent,
            share_batch: BatchRule::ShareOne,
            active_count: ActiveCount::WithTag,
            last_hint: LastHint::ListEmpty,
            empty_run: EmptyRun::RecheckUnderQueueLock,
            attribute_store: AttributeStore::Frozen,
            requeue_order: RequeueOrder::Fifo,
            single_ctx: SingleCtx::OnlyOnItsCpu,
            single_hctx: SingleHctx::Softirq,
            cpu_map: CpuMap::Grouped,
            stopped_issue: StoppedIssue::InsertAndRun,
            starved_issue: StarvedIssue::NowaitInBackground,
            plug_run: PlugRun::Always,
            blocking_run: BlockingRun::Here,
            spare_request: SpareRequest::Kept,
            merged_free: MergedFree::Unlocked,
            elevator_line: ElevatorLine::Apart,
            null_blk_queue_rqs: true,
            plug_keeps_time: true,
            null_blk_fua: true,
            nvme_max_segments: 128,
            nvme_max_kb: 8192,
            series: Series::STOCK,
            fair_queueing: FairQueueing::V6_12,
            time_slices: TimeSlices::V4_20,
            device_mapper: DeviceMapper::V6_12,
            restart: Restart::V5_12,
            single_queue: None,
            fixes: Fixes::ALL,
        }
    }

    /// blk-mq of Linux 4.5, as far as dm-multipath over null_blk needs it: no scheduler, and what
    /// is told apart; the rest is that of v6.1.
    pub const fn v4_5() -> Rules {
        Rules {
            name: "v4.5",
            lone_plug: LonePlug::Never,
            wake_scan: WakeScan::Countdown(Countdown::Resets),
            single_ctx: SingleCtx::OnlyOnItsCpu,
            single_hctx: SingleHctx::Here,
            restart: Restart::V4_5,
            device_mapper: DeviceMapper::V4_5,
            ..Rules::v6_1()
        }
    }

    /// The same of Linux 4.6.
    pub const fn v4_6() -> Rules {
        Rules {
            name: "v4.6",
            device_mapper: DeviceMapper::V4_6,
            ..Rules::v4_5()
        }
    }

    /// The same of Linux 4.12, which has schedulers.
    pub const fn v4_12() -> Rules {
        Rules {
            name: "v4.12",
            restart: Restart::V4_12,
            device_mapper: DeviceMapper::V4_12,
            ..Rules::v4_5()
        }
    }

    /// The single-queue path of Linux 2.6.32 (2.6.32.2). What else is asked is that of v6.1, but
    /// that a work item which waits stays where it is.
    pub const fn v2_6_32() -> Rules {
        Rules {
            name: "v2.6.32",
            lone_plug: LonePlug::Never,
            restart: Restart {
                waiting_item: WaitingItem::Stays,
                ..Restart::V5_12
            },
            single_queue: Some(SingleQueueRules::V2_6_32),
            time_slices: TimeSlices::V2_6_32,
            ..Rules::v6_1()
        }
    }

    /// The single-queue path of Linux 4.20, with plugs of tasks that end with each I/O.
    pub const fn v4_20() -> Rules {
        Rules {
            name: "v4.20",
            single_queue: Some(SingleQueueRules::V4_20),
            time_slices: TimeSlices::V4_20,
            device_mapper: DeviceMapper::V4_20,
            ..Rules::v2_6_32()
        }
    }

    /// These rules with another series.
    pub const fn with_series(self, series: Series) -> Rules {
        Rules { series, ..self }
    }

    /// These rules with other plugs where a task has none: what is compared with v6.12 and older
    /// than its plug around each bio.
    pub const fn with_lone_plug(self, lone_plug: LonePlug) -> Rules {
        Rules { lone_plug, ..self }
    }

    /// These rules with another way of restarting.
    pub const fn with_restart(self, restart: Restart) -> Rules {
        Rules { restart, ..self }
    }

    /// These rules without a repair.
    pub const fn without(self, fix: Fix) -> Rules {
        let fixes = self.fixes.without(fix);
        Rules { fixes, ..self }
    }

    /// Presets whose queues are of the single-queue kind, oldest first. Those between 2.6.32 and
    /// 4.20 differ from 2.6.32 in their scheduler of time slices alone.
    pub const SINGLE_QUEUE: [Rules; 6] = [
        Rules::of_slices("v2.6.32-rc5", TimeSlices::V2_6_32_RC5),
        Rules::of_slices("v2.6.32-rc5-coop", TimeSlices::V2_6_32_RC5_COOP),
        Rules::v2_6_32(),
        Rules::of_slices("v2.6.33", TimeSlices::V2_6_33),
        Rules::of_slices("v2.6.35", TimeSlices::V2_6_35),
        Rules::v4_20(),
    ];

    /// Presets of blk-mq that are told whole, oldest first.
    pub const PRESETS: [Rules; 2] = [Rules::v6_1(), Rules::v6_12()];

    /// Presets of blk-mq of which schedulers and restarts are told, and which are v6.1 else; oldest
    /// first.
    pub const PARTIAL: [Rules; 2] = [Rules::v5_11(), Rules::v5_13()];

    /// Presets of blk-mq of which no more is told than dm-multipath needs, oldest first. Not among
    /// those of a path.
    pub const MAPPED: [Rules; 3] = [Rules::v4_5(), Rules::v4_6(), Rules::v4_12()];

    /// All presets whose queues are of this kind, oldest first.
    pub fn of_path(single_queue: bool) -> impl Iterator<Item = Rules> {
        let all = Rules::SINGLE_QUEUE.into_iter();
        let all = all.chain(Rules::PARTIAL).chain(Rules::PRESETS);
        all.filter(move |rules| rules.single_queue.is_some() == single_queue)
    }

    /// Names of [`Rules::of_path`], as messages tell them.
    pub fn names_of(single_queue: bool) -> String {
        let names: Vec<&str> = Rules::of_path(single_queue)
            .map(|rules| rules.name)
            .collect();
        names.join(", ")
    }

    /// These rules with another merging of queues that are created together.
    pub const fn with_stable_merge(self, stable_merge: StableMerge) -> Rules {
        let fair_queueing = FairQueueing {
            stable_merge,
            ..self.fair_queueing
        };
        Rules {
            fair_queueing,
            ..self
        }
    }

    /// A kernel of the time of 2.6.32 whose scheduler of time slices is this one.
    const fn of_slices(name: &'static str, time_slices: TimeSlices) -> Rules {
        Rules {
            name,
            time_slices,
            ..Rules::v2_6_32()
        }
    }

    /// The preset of this name ("v6.1", also without the "v"), of either kind of queue, or one of
    /// [`Rules::MAPPED`].
    pub fn by_name(name: &str) -> Option<Rules> {
        let bare = name.strip_prefix('v').unwrap_or(name);
        let all = Rules::of_path(false).chain(Rules::of_path(true));
        let mut all = all.chain(Rules::MAPPED);
        all.find(|rules| &rules.name[1..] == bare)
    }
}

/// Limits of a queue that merging and splitting obey (queue_limits).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueLimits {
    /// Largest request, sectors (max_sectors_kb * 2).
    pub max_sectors: u32,
    /// Most segments of a request.
    pub max_segments: u16,
    /// A request may not cross a multiple of this many sectors, but for discards; 0: no limit.
    pub chunk_sectors: u32,
    /// Largest discard, sectors; 0: no discard.
    pub max_discard_sectors: u32,
    /// Discards that are split begin and end at multiples of this many sectors; 0: anywhere.
    pub discard_granularity: u32,
    /// Ranges in one discard; more than one lets discards merge without adjacency.
    pub max_discard_segments: u16,
    /// A volatile write cache: flushes mean something.
    pub write_cache: bool,
    /// The device takes FUA writes itself.
    pub fua: bool,
}

impl QueueLimits {
    /// Requests up to 1280 KiB in 128 segments, no discard, no volatile cache.
    pub const PLAIN: QueueLimits = QueueLimits {
        max_sectors: 2560,
        max_segments: 128,
        chunk_sectors: 0,
        max_discard_sectors: 0,
        discard_granularity: 0,
        max_discard_segments: 1,
        write_cache: false,
        fua: false,
    };

    /// Largest discard of whole granules, sectors.
    pub(crate) fn discard_sectors(&self) -> u32 {
        let granule = self.discard_granularity.max(1);
        self.max_discard_sectors - self.max_discard_sectors % granule
    }

    /// Most bios that one of so many sectors can become by splitting, itself included.
    pub fn parts_max(&self, op: Op, sectors: u32) -> u32 {
        if op == Op::Discard {
            // The first part may be shorter, up to the first granule that is whole.
            let lost = u32::from(self.discard_granularity > 1);
            let most = self.discard_sectors();
            return match most {
                0 => 1,
                most => sectors.div_ceil(most).max(1) + lost,
            };
        }
        // A part may begin in the middle of a page.
        let whole = self.max_sectors.is_multiple_of(PAGE_SECTORS) && self.chunk_sectors == 0;
        let lost = if whole { 0 } else { PAGE_SECTORS - 1 };
        let pages = u32::from(self.max_segments) * PAGE_SECTORS;
        let most = self.max_sectors.min(pages.saturating_sub(lost).max(1));
        let parts = if most == 0 { 1 } else { sectors.div_ceil(most) };
        match self.chunk_sectors {
            0 => parts.max(1),
            chunk => parts + sectors.div_ceil(chunk) + 1,
        }
    }
}

/// queue/nomerges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NoMerges {
    /// 0: all merges are tried.
    #[default]
    All,
    /// 1: no hash and no tree look-up.
    Simple,
    /// 2: none, and no size-triggered plug flush.
    Never,
}
