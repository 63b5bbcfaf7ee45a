//! Kernel variants as data: what differs between releases, one small enum per difference.
//!
//! Not settings of a queue (those are in `queue.rs`). Nothing compares version numbers: a preset
//! names a combination. Kernel: block/blk-mq.c, block/mq-deadline.c (6.1.192, 6.12.117).

/// Behaviour axes of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// Name of the preset, for reports.
    pub name: &'static str,
    /// Order of a task's plug.
    pub plug_order: PlugOrder,
    /// Whether the direct flush of a plug traces U.
    pub direct_unplug: DirectUnplug,
    /// Which of several same-queue requests in a plug a bio is offered to.
    pub flush_data: FlushData,
    /// How mq-deadline finds the next request of a batch.
    pub batch_position: BatchPosition,
    /// Where mq-deadline puts head insertions.
    pub head_insert: HeadInsert,
    /// What `shallow_depth` of a tag map limits.
    pub shallow_depth: ShallowDepth,
    /// How far a wake-up of tag waiters looks.
    pub wake_scan: WakeScan,
    /// How the dispatcher tells the driver that more follows.
    pub last_hint: LastHint,
    /// What a run does that finds nothing pending.
    pub empty_run: EmptyRun,
    /// Order of the requeue list.
    pub requeue_order: RequeueOrder,
    /// Completion on an hctx with one ctx.
    pub single_ctx: SingleCtx,
    /// Default map of CPUs to hctxs.
    pub cpu_map: CpuMap,
    /// What direct issue does on a stopped or quiesced queue.
    pub stopped_issue: StoppedIssue,
    /// Whether merging per ctx needs the driver's SHOULD_MERGE flag.
    pub null_blk_queue_rqs: bool,
}

/// Order in which a plug hands out its requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlugOrder {
    /// A stack: newest first (v6.1).
    Lifo,
    /// A queue: oldest first (v6.12 stable).
    Fifo,
}

/// Trace of the direct flush of a one-queue plug.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DirectUnplug {
    /// No U (v6.1).
    Silent,
    /// U with the number of requests (v6.12).
    Traced,
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

/// Reach of `__sbitmap_queue_wake_up`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WakeScan {
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

/// Order in which requeued requests come back.
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

/// Default CPU map of a tag set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CpuMap {
    /// CPU c to queue c mod n, siblings following their first (v6.1).
    Interleaved,
    /// Contiguous groups of near-equal size, siblings together (v6.12).
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

impl Rules {
    /// Linux 6.1 stable (6.1.192).
    pub const fn v6_1() -> Rules {
        Rules {
            name: "v6.1",
            plug_order: PlugOrder::Lifo,
            direct_unplug: DirectUnplug::Silent,
            flush_data: FlushData::DispatchList,
            batch_position: BatchPosition::NextPointer,
            head_insert: HeadInsert::PerPriority,
            shallow_depth: ShallowDepth::PerWord,
            wake_scan: WakeScan::FirstQueue,
            last_hint: LastHint::TagAhead,
            empty_run: EmptyRun::Return,
            requeue_order: RequeueOrder::Stack,
            single_ctx: SingleCtx::AlwaysHere,
            cpu_map: CpuMap::Interleaved,
            stopped_issue: StoppedIssue::Insert,
            null_blk_queue_rqs: false,
        }
    }

    /// Linux 6.12 stable (6.12.117).
    pub const fn v6_12() -> Rules {
        Rules {
            name: "v6.12",
            plug_order: PlugOrder::Fifo,
            direct_unplug: DirectUnplug::Traced,
            flush_data: FlushData::Scheduler,
            batch_position: BatchPosition::LatestPosition,
            head_insert: HeadInsert::Global,
            shallow_depth: ShallowDepth::Total,
            wake_scan: WakeScan::UntilSpent,
            last_hint: LastHint::ListEmpty,
            empty_run: EmptyRun::RecheckUnderQueueLock,
            requeue_order: RequeueOrder::Fifo,
            single_ctx: SingleCtx::OnlyOnItsCpu,
            cpu_map: CpuMap::Grouped,
            stopped_issue: StoppedIssue::InsertAndRun,
            null_blk_queue_rqs: true,
        }
    }

    /// All presets, oldest first.
    pub const PRESETS: [Rules; 2] = [Rules::v6_1(), Rules::v6_12()];

    /// The preset of this name ("v6.1", also without the "v").
    pub fn by_name(name: &str) -> Option<Rules> {
        let bare = name.strip_prefix('v').unwrap_or(name);
        Rules::PRESETS
            .into_iter()
            .find(|rules| &rules.name[1..] == bare)
    }
}

/// Which scheduler a queue runs. BFQ, Kyber and CFQ will be further arms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SchedulerKind {
    /// No scheduler.
    None,
    /// mq-deadline.
    MqDeadline,
}

impl SchedulerKind {
    /// The name that queue/scheduler shows.
    pub const fn name(self) -> &'static str {
        match self {
            SchedulerKind::None => "none",
            SchedulerKind::MqDeadline => "mq-deadline",
        }
    }
}

/// Limits of a queue that merging and splitting obey (queue_limits).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueLimits {
    /// Largest request, sectors (max_sectors_kb * 2).
    pub max_sectors: u32,
    /// Most segments of a request.
    pub max_segments: u16,
    /// A request may not cross a multiple of this many sectors; 0: no limit.
    pub chunk_sectors: u32,
    /// Largest discard, sectors; 0: no discard.
    pub max_discard_sectors: u32,
    /// Ranges in one discard; more than one lets discards merge without adjacency.
    pub max_discard_segments: u16,
    /// A volatile write cache: flushes mean something.
    pub write_cache: bool,
    /// The device takes FUA writes itself.
    pub fua: bool,
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
