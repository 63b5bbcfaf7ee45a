//! Kernel variants as data: what differs between releases, one row for each difference.
//!
//! Not settings of a queue (those are in `queue.rs`). Nothing compares version numbers: a preset
//! names a combination. The form of a row: `axes.rs`; all rows: docs/reference/kernels.md. Kernel:
//! block/blk-mq.c, blk-core.c, blk-flush.c, mq-deadline.c, kyber-iosched.c, lib/sbitmap.c (6.1.192,
//! 6.6.63, 6.12.117, 6.18.2, 7.2.13).

mod axes;
mod device_mapper;
mod fair_queueing;
mod fixes;
mod limits;
mod mapped_requests;
mod old_top;
mod presets;
mod queue_merge;
mod restart;
mod series;
mod single_changes;
mod single_queue;
mod time_slices;
mod wake_ups;

pub use axes::{Axes, Axis, AxisValue};
pub use device_mapper::*;
pub use fair_queueing::*;
pub use fixes::{Fix, Fixes};
pub use limits::{NoMerges, QueueLimits};
pub use mapped_requests::*;
pub use old_top::*;
pub use queue_merge::*;
pub use restart::*;
pub use series::*;
pub use single_changes::{SINGLE_CHANGES, SingleChange};
pub use single_queue::*;
pub use time_slices::*;
pub use wake_ups::{Countdown, WakeScan};

crate::axes! {
    /// Behaviour axes of one kernel.
    pub struct Rules(name), fn {
        /// The single-queue path of Linux 2.6.32 (2.6.32.2). Axes that do not name it are those of
        /// v6.1, except that a pending work item is not moved.
        v2_6_32 "v2.6.32" = v6_1,
        /// As v2.6.32, with this cfq; so are the next three.
        v2_6_32_rc5 "v2.6.32-rc5" = v2_6_32,
        v2_6_32_rc5_coop "v2.6.32-rc5-coop" = v2_6_32,
        v2_6_33 "v2.6.33" = v2_6_32,
        v2_6_35 "v2.6.35" = v2_6_32,
        /// blk-mq of Linux 4.5, as far as dm-multipath over null_blk needs it: no scheduler; axes
        /// that do not name it are those of v6.1.
        v4_5 "v4.5" = v6_1,
        /// Likewise.
        v4_6 "v4.6" = v4_5,
        /// Likewise; it has schedulers.
        v4_12 "v4.12" = v4_5,
        /// The single-queue path of Linux 4.20, with plugs of tasks that end with each I/O.
        v4_20 "v4.20" = v2_6_32,
        /// As far as it is known here; axes that do not name it are those of v6.1. In
        /// [`PARTIAL`](Rules::PARTIAL), since no axis describes most of that kernel.
        v5_11 "v5.11" = v6_1,
        /// As far as it is known here.
        v5_13 "v5.13" = v5_11,
        /// Linux 6.1 stable (6.1.192).
        v6_1 "v6.1",
        /// Linux 6.6 stable (6.6.63).
        v6_6 "v6.6" = v6_1,
        /// Linux 6.12 stable (6.12.117).
        v6_12 "v6.12" = v6_6,
        /// Linux 6.18 stable (6.18.2).
        v6_18 "v6.18" = v6_12,
        /// Linux 7.2 stable (7.2.13).
        v7_2 "v7.2" = v6_18,
    }

    /// A plug issues its newest request first, or its oldest (blk_add_rq_to_plug()).
    plug_order: PlugOrder {
        v4_5 => Sorted /// By software queue and sector (plug_ctx_cmp(), to v4.20).
        v6_1 => Lifo,
        v6_12 => Fifo,
    }
    /// Requests with which a plug is full: 16 of the queue of the bio, 16, or 32 and 64 if it has
    /// held those of several queues (BLK_MAX_REQUEST_COUNT, blk_plug_max_rq_count()).
    plug_max: PlugMax { v4_5 => SixteenOfQueue, v5_11 => Sixteen, v6_1 => ThirtyTwo }
    /// A plug is flushed, too, when its newest request (v6.12: its oldest) has 128 KiB
    /// (BLK_PLUG_FLUSH_SIZE).
    plug_bytes: bool [v4_5 => false, v4_12 | v6_1 => true]
    /// The requests of a plug with which a bio may merge: any of its queue, the newest first, or
    /// one (blk_attempt_plug_merge(), d38a9c04c0d5, 5.16).
    plug_merge: PlugMerge { v4_5 | v5_11 => Any, v6_1 => One }
    /// U is traced at the end of a plug, and UT where schedule() flushes it; in 4.12 the other way
    /// round (587562d0c7cd).
    unplug_letters: UnplugLetters { v4_12 => Exchanged, v6_1 => AsMeant }
    /// The first request of a plug traces P, or only that of a queue of one hctx.
    plug_trace: PlugTrace { v4_5 => OfOneHctx, v6_1 => Always }
    /// The plug of a bio whose task has none. A discard has one of its ioctl in any case.
    bio_plug: BioPlug {
        v2_6_32 | v4_5 | v6_6 | v7_2 => Never "never"
            /// None: bios come one by one.
        v6_1 => EachWrite "each-write"
            /// A plug around all bios of a write to a block device: blkdev_write_iter(). Reads and
            /// flushes have none.
        v6_12 => EachBio "each-bio"
            /// Each bio, around its submission: __submit_bio() (v6.9, until after v6.18).
    }
    /// The direct flush of a one-queue plug traces no U, or U with the number of requests
    /// (blk_mq_plug_issue_direct()).
    direct_unplug: DirectUnplug { v6_1 => Silent, v6_12 => Traced }
    /// The data of a flush sequence, and a FUA write that needs no flush, go straight to the
    /// dispatch list, or through plug and scheduler like any other write (blk_insert_flush()).
    flush_data: FlushData { v6_1 => DispatchList, v6_6 => Scheduler }
    /// mq-deadline records the position of a batch as a pointer to the successor of the last
    /// dispatched request (`next_rq`), or as the start of that request (`latest_pos`).
    batch_position: BatchPosition { v6_1 => NextPointer, v6_6 => LatestPosition }
    /// mq-deadline has a list of head insertions for each priority, or one for the queue, which is
    /// served before anything else (dd_insert_request()).
    head_insert: HeadInsert { v6_1 => PerPriority, v6_12 => Global }
    /// `shallow_depth` limits the bits of each word of a tag map, or those of the whole map
    /// (sbitmap_queue_get_shallow()).
    shallow_depth: ShallowDepth { v6_1 => PerWord, v6_12 => Total }
    /// When kyber computes the number of tags for operations that are not synchronous
    /// (kyber_depth_updated()).
    async_depth: AsyncDepth {
        v5_11 => AtStart /// Once, when the scheduler starts.
        v6_1 => OfMap /// From the current depth of the map.
        v6_12 => OfRequests /// From nr_requests as kyber_depth_updated() sees it.
        v7_2 => OfQueue
            /// queue/async_depth, of all schedulers: it keeps its share of nr_requests when that
            /// changes. kyber limits synchronous writes as well, mq-deadline's tag map wakes tasks
            /// by that number (v7.0). bfq computes its depths before it sets its own value.
    }
    /// depth_updated is called before a new nr_requests is stored, or after it (v6.18).
    depth_hook: DepthHook { v6_1 => BeforeStore, v6_18 => AfterStore }
    /// A plug that announces several bios takes one run of tags for them, or goes on until all are
    /// there or no tag is free (__blk_mq_alloc_requests_batch(), v6.19).
    tags_ahead: TagsAhead { v6_1 => OneRun, v7_2 => AllWanted }
    /// A plug with requests of several queues, none with a scheduler, is flushed by software queue,
    /// and inserts them, or by queue, each as a plug of its own (v6.18).
    plug_several: PlugSeveral { v6_1 => ByCtx, v6_18 => ByQueue }
    /// The requests whose end calls the scheduler's completed_request
    /// (blk_mq_sched_completed_request()).
    completed_hook: CompletedHook {
        v6_1 => WithSchedTag
            /// All with a scheduler tag (RQF_ELV), also those that bypassed the scheduler, and data
            /// of a flush sequence twice: at its own end and at that of the sequence.
        v6_6 => UseSched /// Those that may enter the scheduler (RQF_USE_SCHED), once.
    }
    /// The clock that stamps requests at allocation and issue.
    stamp: Stamp {
        v6_1 => Each /// ktime_get_ns(); a cached request has the time of its allocation.
        v6_6 => EachBio /// ktime_get_ns(); a cached request has the time at which a bio takes it.
        v6_12 => OfPlug
            /// blk_time_get_ns(): for a task with a plug the time of the first read in that plug,
            /// until it is flushed; a cached request has the time at which a bio takes it.
    }
    /// Reach of a wake-up of tag waiters (__sbitmap_queue_wake_up()).
    wake_scan: WakeScan [
        v4_5 => WakeScan::Countdown(Countdown::CountsBack),
        v4_12 => WakeScan::Countdown(Countdown::Adds),
        v5_11 => WakeScan::Countdown(Countdown::Resets),
        v6_1 => WakeScan::FirstQueue,
        v6_6 => WakeScan::UntilSpent,
    ]
    /// Tasks that wait for a tag (bt_get(), blk_mq_get_tag()).
    tag_waiters: TagWaiters {
        v4_5 => AllAfterRun
            /// A task runs the hctx and tries again. Then it adds itself to the front of a wait
            /// queue, tries, runs the hctx, tries and sleeps. All of the queue are woken.
        v4_12 => All /// The same without the first run (to v4.17).
        v6_1 => Batch
            /// A task runs the hctx and tries again before it adds itself, exclusively, to the end;
            /// as many are woken as tags were freed (4e5dff41be7b, v4.18).
    }
    /// Freed tags per wake-up of a map that several queues share, four formulas
    /// (sbitmap_queue_recalculate_wake_batch()).
    share_batch: BatchRule {
        v4_5 | v5_11 => WholeDepth /// From the whole depth (before v5.17).
        - => Share /// The share of one user, 4 at least (180dccb0dba4, v5.17).
        - => ShareFour
            /// The share spread over the wait queues, 4 at least in a map of 32 (10825410b956,
            /// v5.17).
        v6_1 => ShareOne
            /// The share spread over the wait queues (b5fcf7871acb, v6.3 and stable).
    }
    /// A freed tag goes into a second word, which is merged back when a search finds the map full
    /// (sbitmap_deferred_clear_bit(), ea86ea2cdced, v5.0), or out of the word itself.
    freed_bits: FreedBits { v6_1 => Deferred, v4_5 => AtOnce }
    /// When a request counts among those with tags of a map that several queues share (nr_active).
    active_count: ActiveCount {
        v6_1 => AtIssue
            /// In blk_mq_get_driver_tag(), marked by RQF_MQ_INFLIGHT: without scheduler only when
            /// it is issued, so that plugs may hold more than a share.
        v6_12 => WithTag /// From the allocation of its tag to its free.
    }
    /// `last` in queue_rq is also true if the next request gets no driver tag, and a tag that it
    /// got is kept; or only if the list is empty (blk_mq_dispatch_rq_list()).
    last_hint: LastHint { v6_1 => TagAhead, v6_6 => ListEmpty }
    /// A run of an hctx without anything pending (blk_mq_run_hw_queue()).
    empty_run: EmptyRun {
        v4_5 => Unseen
            /// Runs, here or by kblockd: only blk_mq_run_hw_queues() looks whether anything is
            /// pending (79f720a751ca, v4.15).
        v6_1 => Return /// Returns.
        v6_12 => RecheckUnderQueueLock /// Looks again under `queue_lock`, then returns.
    }
    /// A request that a driver requeues goes to the front of the requeue list, whose requests are
    /// reinserted at head in list order, or to its tail (blk_mq_requeue_work()).
    requeue_order: RequeueOrder { v6_1 => Stack, v6_6 => Fifo }
    /// A request of an hctx that serves one ctx always completes where the interrupt came, or only
    /// if that is the CPU of the ctx (blk_mq_complete_request_remote()).
    single_ctx: SingleCtx { v6_1 => AlwaysHere, v4_5 | v6_6 => OnlyOnItsCpu }
    /// On a queue with one hctx, where the CPU is right, a request completes in the driver's
    /// completion (4.20), or in the softirq.
    single_hctx: SingleHctx { v4_5 => Here, v6_1 => Softirq }
    /// Default map of a tag set: CPU c to queue c mod n, siblings following their first, or
    /// contiguous groups of near-equal size, siblings together (blk_mq_map_queues(); interrupt
    /// vectors have groups in both).
    cpu_map: CpuMap { v6_1 => Interleaved, v6_6 => Grouped }
    /// Requests of different priorities merge, and the better one counts (up to v4.20).
    prios_merge: bool [v2_6_32 | v4_5 => true, v6_1 => false]
    /// Requests of different cgroups merge, and metadata (REQ_META) with data
    /// (blk_cgroup_mergeable(), 6b2b04590b51, v5.18).
    cgroups_merge: bool [v2_6_32 | v4_5 | v5_11 => true, v6_1 => false]
    /// How discards merge where the device takes several ranges in one.
    discard_merge: DiscardMerge {
        v2_6_32 | v4_5 => AtEnds
            /// A bio joins one that is queued at an end only, and its segments count as those of
            /// other operations do (up to v4.15, of the single-queue path v4.20). Requests merge as
            /// ranges.
        v6_1 => AsRanges
            /// As ranges, wherever they are, and one that grows at an end has no more segments
            /// (943b40c832be, v5.9).
    }
    /// Queues of blk-mq may have a scheduler (bd166ef183c2, v4.11).
    mq_schedulers: bool [v6_1 | v4_12 => true, v4_5 => false]
    /// io_submit() always has a plug (4.20), or if there are more than two submissions in the call
    /// (a79d40e9b0ee, 5.0).
    aio_plug: AioPlug { v4_5 => Always, v6_1 => AboveTwo }
    /// The requests of a queue without scheduler that are issued directly
    /// (blk_mq_submit_bio(), blk_mq_make_request()).
    direct_issue: DirectIssue {
        v4_5 => OfSeveral
            /// Synchronous ones of a queue of several hctxs: the request of an unplugged bio, or
            /// the one in the plug when the next comes. All others, and those left in a plug at its
            /// end, are inserted into their software queues, which are run; a single one only by
            /// kblockd unless it is synchronous (blk_sq_make_request() serves queues of one hctx).
            /// One that the driver refuses is inserted there, too, and run by kblockd.
        v4_12 => OfSeveralElseKblockd
            /// The same; a single one is run by kblockd in any case. One that the driver refuses is
            /// inserted and run here, and so are those of a queue with a scheduler instead of being
            /// issued.
        v6_1 => UnlessBusy
            /// Any of an hctx that is not busy, with the requests of the plug (6ce3dd6eec11, 4.19;
            /// plugs v5.1).
    }
    /// Direct issue on a stopped or quiesced queue (blk_mq_try_issue_directly()).
    stopped_issue: StoppedIssue {
        v4_5 => Unseen
            /// Does not check: the driver gets the request (fixed by bc27c01b5c46, 4.10).
        v4_12 | v6_1 => Insert /// Inserts and leaves it.
        v6_12 => InsertAndRun /// Inserts and runs the queue.
    }
    /// Direct issue of a single request that finds no budget or no driver tag inserts it and runs
    /// the queue here, or in kblockd if the request is REQ_NOWAIT.
    starved_issue: StarvedIssue { v6_1 => RunHere, v6_6 => NowaitInBackground }
    /// Requests of a plug are issued directly or else inserted into a software queue, and the hctx
    /// is run here if any was inserted, or always, in kblockd if one that was inserted is
    /// REQ_NOWAIT (blk_mq_flush_plug_list()).
    plug_run: PlugRun { v6_1 => IfInserted, v6_6 => Always }
    /// An hctx whose driver may sleep (BLK_MQ_F_BLOCKING) always runs in kblockd, or in the calling
    /// context if that may sleep (blk_mq_run_hw_queue()).
    blocking_run: BlockingRun { v6_1 => InBackground, v6_6 => Here }
    /// A cached request whose bio is merged is freed, or goes back to the plug
    /// (blk_mq_submit_bio()).
    cached_request: CachedRequest { v6_1 => Freed, v6_6 => Kept }
    /// Requests that an insertion of mq-deadline merged away are freed under dd->lock, or after it
    /// is dropped (dd_insert_requests()).
    merged_free: MergedFree { v6_1 => UnderLock, v6_6 => Unlocked }
    /// `elevator` of `struct request_queue`, which every request reads several times, is on the
    /// line of `last_merge`, which is written whenever the scheduler's hash was or becomes empty,
    /// or on another one.
    elevator_line: ElevatorLine { v6_1 => Shared, v6_12 => Apart }
    /// null_blk has queue_rqs: it takes a whole plug.
    null_blk_queue_rqs: bool [v6_1 => false, v6_12 => true]
    /// A task reads the clock once in a plug, until the plug is flushed (blk_time_get_ns(), v6.9).
    plug_keeps_time: bool [v6_1 => false, v6_12 => true]
    /// The block_rq_* events of ftrace print the priority (v6.11).
    traced_priorities: bool [v6_1 => false, v6_12 => true]
    /// null_blk has the parameter `fua`; without it a device with a cache takes FUA writes.
    null_blk_fua: bool [v6_1 => false, v6_12 => true]
    /// BLK_DEF_MAX_SECTORS_CAP: largest max_sectors that the block layer chooses by itself.
    default_max_sectors: u32 [v6_1 => 2560, v6_18 => 8192]
    /// sd limits requests to the optimal transfer length of a drive, also where that is less than
    /// the block layer's default (sd_revalidate_disk(), before queue limits in v6.11).
    sd_optimal_length: bool [v6_1 => true, v6_12 => false]
    /// NVME_MAX_SEGS: most segments of an NVMe command.
    nvme_max_segments: u16 [v6_1 => 127, v6_6 => 128, v6_18 => 256]
    /// NVME_MAX_KB_SZ: largest NVMe command, KiB.
    nvme_max_kb: u32 [v6_1 => 4096, v6_6 => 8192]
    /// Quiescing a quiesced queue, by a change of its scheduler while it is suspended
    /// (blk_mq_quiesce_queue()).
    quiesce: Quiesce {
        v2_6_32 | v4_5 | v5_11 => Flag
            /// It has a flag: runs may begin when the first of them is over.
        v6_1 => Nested
            /// Counted: runs may begin when the last of them is over (quiesce_depth, e70feb8b3e68,
            /// 5.16). Requests of runs in between dm would refuse (DMF_BLOCK_IO_FOR_SUSPEND,
            /// b4459b11e840); here no run begins.
    }
    /// A write to a file of queue/ in sysfs freezes the queue if the attribute has to, or whatever
    /// is written (queue_attr_store()).
    attribute_store: AttributeStore { v6_1 => Plain, v6_12 => Frozen }
    /// The part of the January 2024 series that mq-deadline has; kernels have none of it.
    series: Series [v6_1 => Series::STOCK]
    /// Budget fair queueing as this kernel has it.
    fair_queueing: FairQueueing [
        v5_11 => FairQueueing::V5_11,
        v5_13 => FairQueueing::V5_13,
        v6_1 => FairQueueing::V6_1,
        v6_6 => FairQueueing::V6_6,
        v6_12 => FairQueueing::V6_12,
        v6_18 => FairQueueing::V6_18,
        v7_2 => FairQueueing::V7_2,
    ]
    /// The scheduler of time slices as this kernel has it, or the last one that had it.
    time_slices: TimeSlices [
        v2_6_32_rc5 => TimeSlices::V2_6_32_RC5,
        v2_6_32_rc5_coop => TimeSlices::V2_6_32_RC5_COOP,
        v2_6_32 => TimeSlices::V2_6_32,
        v2_6_33 => TimeSlices::V2_6_33,
        v2_6_35 => TimeSlices::V2_6_35,
        v4_20 | v6_1 => TimeSlices::V4_20,
    ]
    /// dm-multipath as this kernel has it.
    device_mapper: DeviceMapper [
        v4_5 => DeviceMapper::V4_5,
        v4_6 => DeviceMapper::V4_6,
        v4_12 => DeviceMapper::V4_12,
        v4_20 => DeviceMapper::V4_20,
        v6_1 => DeviceMapper::V6_1,
        v6_6 => DeviceMapper::V6_6,
        v6_12 => DeviceMapper::V6_12,
        v6_18 => DeviceMapper::V6_18,
        v7_2 => DeviceMapper::V7_2,
    ]
    /// What runs an hctx again that could not issue all its requests.
    restart: Restart [
        v2_6_32 => Restart { waiting_item: WaitingItem::Stays, ..Restart::V5_12 },
        v4_5 => Restart::V4_5,
        v4_12 => Restart::V4_12,
        v5_11 => Restart::V5_9,
        v5_13 | v6_1 => Restart::V5_12,
    ]
    /// The single-queue path, for kernels whose queues are of that kind here; none: blk-mq.
    single_queue: (Option<SingleQueueRules>) [
        v2_6_32 => Some(SingleQueueRules::V2_6_32),
        v4_20 => Some(SingleQueueRules::V4_20),
        v6_1 => None,
    ]
    /// Repairs of stalls. The newest releases have them all, 6.6.63 not.
    fixes: Fixes [
        v5_11 => Fixes::ALL.without(Fix::SwapLock),
        v6_6 => Fixes::ALL.without(Fix::StoppedBarrier),
        v5_13 | v6_1 | v6_12 => Fixes::ALL,
    ]
}
