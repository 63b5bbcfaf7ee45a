//! How budget fair queueing (BFQ) differs between kernels.
//!
//! Names say what changes; the algorithm that all share is in the scheduler's folder.
//! Kernel: block/bfq-iosched.c of 5.11, 5.13 (430a67f9d616 and 7ea96eefb009 among it), 5.14-rc5,
//! 6.1.192, 6.12.117.

/// When queues of processes that start together are merged (bfq_do_or_sched_stable_merge()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StableMerge {
    /// Never (up to v5.12).
    Never,
    /// As first posted (v5.13): within 180 ms; delayed ones only within 200 ms after a split, a
    /// condition that was meant to be inverted.
    WithinBurst,
    /// v5.14 and later: a first queue serves as target for 600 ms, delayed ones wait 600 ms.
    SinceActivation,
}

impl StableMerge {
    /// All of them, by name.
    pub const NAMES: [(&'static str, StableMerge); 3] = [
        ("never", StableMerge::Never),
        ("within-burst", StableMerge::WithinBurst),
        ("since-activation", StableMerge::SinceActivation),
    ];

    /// The one of this name.
    pub fn by_name(name: &str) -> Option<StableMerge> {
        let mut all = StableMerge::NAMES.into_iter();
        all.find(|(other, _)| *other == name).map(|(_, rule)| rule)
    }
}

/// The arrivals that reveal a waker, and start a sample for the injection limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SoleArrival {
    /// One to an empty queue.
    EmptyQueue,
    /// The only request of its process (v6.1 and later).
    OnlyRequest,
}

/// How a queue is known to be limited by I/O (IO_bound).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoBound {
    /// Lost when it expires idle having used little, got back by 120 quick arrivals in a row
    /// (v5.11).
    Streak,
    /// Idle for less than a fifth of a moving window (v5.12 and later).
    Window,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThinkTime {
    /// A sample with each insertion, long above slice_idle (v5.11).
    EachInsertion,
    /// A sample when the queue is idle, long above half of slice_idle (v5.12 and later).
    WhenIdle,
}

/// How a process's share of the tags is limited (bfq_limit_depth()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DepthLimit {
    /// Depths inside a word, of asynchronous operations and synchronous writes (up to v5.16).
    Words,
    /// The same, and one tag for a queue that has used up its share by weight (v5.17 and later).
    WordsAndShare,
    /// Both of the whole map (6.12.y).
    TotalAndShare,
}

/// When a group counts as one that has something to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PendingGroups {
    /// From its activation; any but the root makes the scenario asymmetric (up to v6.1).
    SinceActivation,
    /// While a queue of its own has requests; more than one makes the scenario asymmetric (v6.2 and
    /// later).
    Exact,
}

/// Which queue is injected while the one in service is idle (bfq_choose_bfqq_for_injection()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InjectionScan {
    /// A large request lowers the limit to one (up to v6.2).
    LowersLimit,
    /// A large request is passed over while something is with the driver (v6.3 and later).
    PassesLarge,
}

/// What happens first to a request that is inserted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InsertOrder {
    /// It is merged, in a section of its own, and traced, then it gets its queue (up to v5.16).
    MergeFirst,
    /// It gets its queue, then it is merged (v5.17 and later).
    QueueFirst,
}

/// When saved state comes back after a split.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResumeAfter {
    /// When the request has been counted, and only if the queue is the process's own then.
    Counting,
    /// Directly after the split (6.12.y).
    Split,
}

/// Which queues get weight raising, and which of its state survives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Raising {
    /// Queues of any weight that have one owner; part of the state is saved (v5.11).
    AnyWeight,
    /// Those of default weight, stably merged ones too (v5.12 and later).
    DefaultWeight,
}

/// How the waker of a queue is detected (bfq_check_waker()), and when it is reset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WakerCheck {
    /// The first one seen, shared queues too; nothing depends on it (v5.11).
    AtOnce,
    /// The queue that preceded three times in a row. Wakers and the queues that they wake are
    /// served while the queue in service is waited for; the end of a shared queue's request is not
    /// considered (v5.13).
    Confirmed,
    /// The same within 128 times slice_idle, also for the current waker, with lines in the log;
    /// after the end of a shared queue's request there is no waker (v5.14 and later).
    ConfirmedInTime,
}

/// Where there is something to dispatch (bfq_has_work()), besides the dispatch list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BfqWork {
    /// A queue is busy, and a request that was inserted has not ended: of the whole device, where
    /// the kernel counts by hctx (v5.11, elevator_queued).
    BusyQueuesAndInserted,
    /// A queue is busy, be it only waited for (v5.13 and v5.14).
    BusyQueues,
    /// A request is queued (v5.15 and later).
    Queued,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FairQueueing {
    /// Merges of queues that are created together.
    pub stable_merge: StableMerge,
    /// The arrivals that reveal a waker.
    pub sole_arrival: SoleArrival,
    /// IO_bound.
    pub io_bound: IoBound,
    pub think_time: ThinkTime,
    /// Share of the tags.
    pub depth_limit: DepthLimit,
    pub pending_groups: PendingGroups,
    pub injection_scan: InjectionScan,
    pub insert_order: InsertOrder,
    pub resume_after: ResumeAfter,
    pub raising: Raising,
    pub waker_check: WakerCheck,
    /// What has_work sees.
    pub work: BfqWork,
    /// The priority level of a changed weight (bfq_weight_to_ioprio()): without the factor of ten
    /// between the two (up to v5.14).
    pub level_is_difference: bool,
    /// A queue that is to be merged is redirected to the end of its chain, and a queue in one is
    /// never recycled (v6.1 and later; before, one hop).
    pub chain_to_tail: bool,
    /// The only busy queue idles, and one that need not idle may be preempted (v5.12 and later).
    pub only_busy_idles: bool,
    /// A request goes straight to the dispatch list if its queue and the one in service wake each
    /// other and nobody else is busy (v5.13).
    pub waker_bypass: bool,
    /// Limits of injection begin with the stamp of their queue's creation (6.12.y), not zero.
    pub stamp_at_creation: bool,
    /// One set of queues for each of a drive's access ranges (v6.3 and later).
    pub actuators: bool,
    /// A candidate for a stable merge that another one replaces is put. No kernel does it:
    /// docs/findings/0002 proposes it.
    pub puts_candidate: bool,
    /// Queues of two actuators never merge. No kernel does it: docs/findings/0003 proposes it.
    pub merges_per_actuator: bool,
}

impl FairQueueing {
    /// v5.11: before stable merging.
    pub const V5_11: FairQueueing = FairQueueing {
        stable_merge: StableMerge::Never,
        sole_arrival: SoleArrival::EmptyQueue,
        io_bound: IoBound::Streak,
        think_time: ThinkTime::EachInsertion,
        depth_limit: DepthLimit::Words,
        pending_groups: PendingGroups::SinceActivation,
        injection_scan: InjectionScan::LowersLimit,
        insert_order: InsertOrder::MergeFirst,
        resume_after: ResumeAfter::Counting,
        raising: Raising::AnyWeight,
        waker_check: WakerCheck::AtOnce,
        work: BfqWork::BusyQueuesAndInserted,
        level_is_difference: true,
        chain_to_tail: false,
        only_busy_idles: false,
        waker_bypass: false,
        stamp_at_creation: false,
        actuators: false,
        puts_candidate: false,
        merges_per_actuator: false,
    };

    /// v5.13: stable merging as it came.
    pub const V5_13: FairQueueing = FairQueueing {
        stable_merge: StableMerge::WithinBurst,
        io_bound: IoBound::Window,
        think_time: ThinkTime::WhenIdle,
        raising: Raising::DefaultWeight,
        waker_check: WakerCheck::Confirmed,
        work: BfqWork::BusyQueues,
        only_busy_idles: true,
        waker_bypass: true,
        ..FairQueueing::V5_11
    };

    /// 6.1.192.
    pub const V6_1: FairQueueing = FairQueueing {
        stable_merge: StableMerge::SinceActivation,
        sole_arrival: SoleArrival::OnlyRequest,
        depth_limit: DepthLimit::WordsAndShare,
        insert_order: InsertOrder::QueueFirst,
        waker_check: WakerCheck::ConfirmedInTime,
        work: BfqWork::Queued,
        level_is_difference: false,
        chain_to_tail: true,
        waker_bypass: false,
        ..FairQueueing::V5_13
    };

    /// 6.12.117.
    pub const V6_12: FairQueueing = FairQueueing {
        depth_limit: DepthLimit::TotalAndShare,
        pending_groups: PendingGroups::Exact,
        injection_scan: InjectionScan::PassesLarge,
        resume_after: ResumeAfter::Split,
        stamp_at_creation: true,
        actuators: true,
        ..FairQueueing::V6_1
    };

    /// Wakers and the queues that they wake are served while the queue in service is waited for, a
    /// queue that becomes busy is the first of those, and a queue that merges passes its waker on
    /// (v5.13 and later).
    pub const fn injects_wakers(&self) -> bool {
        !matches!(self.waker_check, WakerCheck::AtOnce)
    }

    /// The priority level of a changed weight (bfq_weight_to_ioprio()).
    pub fn level_of(&self, weight: u32) -> u8 {
        let level = match self.level_is_difference {
            true => 80u32.saturating_sub(weight),
            false => 8u32.saturating_sub(weight / 10),
        };
        level as u8
    }
}
