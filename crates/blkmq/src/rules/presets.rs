//! The differences of each kernel.

use super::{
    ActiveCount, AioPlug, AsyncDepth, AttributeStore, BatchPosition, BatchRule, BioPlug,
    BlockingRun, CachedRequest, CompletedHook, Countdown, CpuMap, DeviceMapper, DirectIssue,
    DirectUnplug, ElevatorLine, EmptyRun, FairQueueing, Fix, Fixes, FlushData, FreedBits,
    HeadInsert, LastHint, MergedFree, PlugOrder, PlugRun, Quiesce, RequeueOrder, Restart, Rules,
    Series, ShallowDepth, SingleCtx, SingleHctx, SingleQueueRules, StableMerge, Stamp,
    StarvedIssue, StoppedIssue, TimeSlices, WaitingItem, WakeScan,
};

impl Rules {
    /// Linux 5.11 as far as it is known here: v6.1 but for the fields listed. In
    /// [`PARTIAL`](Rules::PARTIAL), since no field describes most of that kernel.
    pub const fn v5_11() -> Rules {
        Rules {
            name: "v5.11",
            quiesce: Quiesce::Flag,
            async_depth: AsyncDepth::AtStart,
            wake_scan: WakeScan::Countdown(Countdown::Resets),
            restart: Restart::V5_9,
            fair_queueing: FairQueueing::V5_11,
            fixes: Fixes::ALL.without(Fix::SwapLock),
            ..Rules::v6_1()
        }
    }

    /// Linux 5.13 as far as it is known here: v5.11 but for the fields listed.
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
            bio_plug: BioPlug::EachWrite,
            direct_unplug: DirectUnplug::Silent,
            flush_data: FlushData::DispatchList,
            batch_position: BatchPosition::NextPointer,
            head_insert: HeadInsert::PerPriority,
            shallow_depth: ShallowDepth::PerWord,
            async_depth: AsyncDepth::OfMap,
            completed_hook: CompletedHook::WithSchedTag,
            stamp: Stamp::Each,
            wake_scan: WakeScan::FirstQueue,
            share_batch: BatchRule::ShareOne,
            freed_bits: FreedBits::Deferred,
            active_count: ActiveCount::AtIssue,
            last_hint: LastHint::TagAhead,
            empty_run: EmptyRun::Return,
            quiesce: Quiesce::Nested,
            attribute_store: AttributeStore::Plain,
            requeue_order: RequeueOrder::Stack,
            single_ctx: SingleCtx::AlwaysHere,
            single_hctx: SingleHctx::Softirq,
            cpu_map: CpuMap::Interleaved,
            aio_plug: AioPlug::AboveTwo,
            direct_issue: DirectIssue::UnlessBusy,
            stopped_issue: StoppedIssue::Insert,
            starved_issue: StarvedIssue::RunHere,
            plug_run: PlugRun::IfInserted,
            blocking_run: BlockingRun::InBackground,
            cached_request: CachedRequest::Freed,
            merged_free: MergedFree::UnderLock,
            mq_schedulers: true,
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
            bio_plug: BioPlug::EachBio,
            direct_unplug: DirectUnplug::Traced,
            flush_data: FlushData::Scheduler,
            batch_position: BatchPosition::LatestPosition,
            head_insert: HeadInsert::Global,
            shallow_depth: ShallowDepth::Total,
            async_depth: AsyncDepth::BeforeChange,
            completed_hook: CompletedHook::UseSched,
            stamp: Stamp::OfPlug,
            wake_scan: WakeScan::UntilSpent,
            share_batch: BatchRule::ShareOne,
            freed_bits: FreedBits::Deferred,
            active_count: ActiveCount::WithTag,
            last_hint: LastHint::ListEmpty,
            empty_run: EmptyRun::RecheckUnderQueueLock,
            quiesce: Quiesce::Nested,
            attribute_store: AttributeStore::Frozen,
            requeue_order: RequeueOrder::Fifo,
            single_ctx: SingleCtx::OnlyOnItsCpu,
            single_hctx: SingleHctx::Softirq,
            cpu_map: CpuMap::Grouped,
            aio_plug: AioPlug::AboveTwo,
            direct_issue: DirectIssue::UnlessBusy,
            stopped_issue: StoppedIssue::InsertAndRun,
            starved_issue: StarvedIssue::NowaitInBackground,
            plug_run: PlugRun::Always,
            blocking_run: BlockingRun::Here,
            cached_request: CachedRequest::Kept,
            merged_free: MergedFree::Unlocked,
            mq_schedulers: true,
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

    /// blk-mq of Linux 4.5, as far as dm-multipath over null_blk needs it: no scheduler, and the
    /// fields listed; the rest is that of v6.1.
    pub const fn v4_5() -> Rules {
        Rules {
            name: "v4.5",
            quiesce: Quiesce::Flag,
            mq_schedulers: false,
            bio_plug: BioPlug::Never,
            wake_scan: WakeScan::Countdown(Countdown::Resets),
            freed_bits: FreedBits::AtOnce,
            single_ctx: SingleCtx::OnlyOnItsCpu,
            single_hctx: SingleHctx::Here,
            aio_plug: AioPlug::Always,
            direct_issue: DirectIssue::OfSeveral,
            stopped_issue: StoppedIssue::Unseen,
            restart: Restart::V4_5,
            device_mapper: DeviceMapper::V4_5,
            ..Rules::v6_1()
        }
    }

    /// blk-mq of Linux 4.6, likewise.
    pub const fn v4_6() -> Rules {
        Rules {
            name: "v4.6",
            device_mapper: DeviceMapper::V4_6,
            ..Rules::v4_5()
        }
    }

    /// blk-mq of Linux 4.12, likewise; it has schedulers.
    pub const fn v4_12() -> Rules {
        Rules {
            name: "v4.12",
            mq_schedulers: true,
            direct_issue: DirectIssue::OfSeveralElseKblockd,
            stopped_issue: StoppedIssue::Insert,
            restart: Restart::V4_12,
            device_mapper: DeviceMapper::V4_12,
            ..Rules::v4_5()
        }
    }

    /// The single-queue path of Linux 2.6.32 (2.6.32.2). Fields that are not listed are those of
    /// v6.1, except that a pending work item is not moved.
    pub const fn v2_6_32() -> Rules {
        Rules {
            name: "v2.6.32",
            quiesce: Quiesce::Flag,
            bio_plug: BioPlug::Never,
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

    /// These rules with another plug for tasks without one: a comparison of v6.12 with kernels
    /// older than its plug around each bio.
    pub const fn with_bio_plug(self, bio_plug: BioPlug) -> Rules {
        Rules { bio_plug, ..self }
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
    /// 4.20 differ from 2.6.32 only in cfq.
    pub const SINGLE_QUEUE: [Rules; 6] = [
        Rules::of_slices("v2.6.32-rc5", TimeSlices::V2_6_32_RC5),
        Rules::of_slices("v2.6.32-rc5-coop", TimeSlices::V2_6_32_RC5_COOP),
        Rules::v2_6_32(),
        Rules::of_slices("v2.6.33", TimeSlices::V2_6_33),
        Rules::of_slices("v2.6.35", TimeSlices::V2_6_35),
        Rules::v4_20(),
    ];

    /// Complete presets of blk-mq, oldest first.
    pub const PRESETS: [Rules; 2] = [Rules::v6_1(), Rules::v6_12()];

    /// Presets of blk-mq of which only schedulers and restarts are modelled, the rest being v6.1;
    /// oldest first.
    pub const PARTIAL: [Rules; 2] = [Rules::v5_11(), Rules::v5_13()];

    /// Presets of blk-mq of which only what dm-multipath needs is modelled, oldest first. Not among
    /// those of a path.
    pub const MAPPED: [Rules; 3] = [Rules::v4_5(), Rules::v4_6(), Rules::v4_12()];

    /// All presets whose queues are of this kind, oldest first.
    pub fn of_path(single_queue: bool) -> impl Iterator<Item = Rules> {
        let all = Rules::SINGLE_QUEUE.into_iter();
        let all = all.chain(Rules::PARTIAL).chain(Rules::PRESETS);
        all.filter(move |rules| rules.single_queue.is_some() == single_queue)
    }

    /// Names of [`Rules::of_path`] for messages; with [`Rules::MAPPED`] if they are of blk-mq.
    pub fn names_of(single_queue: bool) -> String {
        let names = |all: &mut dyn Iterator<Item = Rules>| {
            let names: Vec<&str> = all.map(|rules| rules.name).collect();
            names.join(", ")
        };
        let own = names(&mut Rules::of_path(single_queue));
        match single_queue {
            true => own,
            false => format!(
                "{own}; for mapped devices {}",
                names(&mut Rules::MAPPED.into_iter())
            ),
        }
    }

    /// These rules with another stable merge of BFQ.
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

    /// A kernel of the time of 2.6.32 with this cfq.
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
