//! How the single-queue scheduler of time slices (CFQ) differs between kernels.
//!
//! Names say what changes; the algorithm that all share is in the scheduler's folder.
//! Kernel: block/cfq-iosched.c of 2.6.32, 2.6.33, 2.6.35 and 4.20, and the patch of October 2009
//! that joins queues of cooperating processes, on 2.6.32-rc5.

use super::queue_merge::QueueMerge;
use super::single_queue::SameStart;

/// The clock of slices and waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceClock {
    /// jiffies, and a timer that runs at a tick (up to v4.6).
    Ticks,
    /// ktime_get_ns(), and a high-resolution timer (9a7f38c42c2b, v4.7).
    Nanoseconds,
}

/// Where queues wait for their turn, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceTrees {
    /// In one tree, which a queue leaves with its last request (2.6.32).
    One,
    /// In one for each class and kind of work of a group; an empty queue stays while it is active
    /// (2.6.33).
    ByWorkload,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceGroups {
    /// There are none (2.6.32).
    None,
    /// Each for itself, by its own weight; without group_isolation queues that do not idle go to
    /// the root (2.6.33 to 2.6.37).
    Flat,
    /// Each has the fraction that its weights up to the root give it; asynchronous queues are its
    /// own (3.10, 4.3).
    Hierarchy,
}

/// How it is known that requests are far from each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Seeks {
    /// Mean distance of a process's requests; the distance that is close is that mean (2.6.32).
    MeanOfProcess,
    /// The same of a queue's requests, the search for cooperators capped at 8192 sectors (2.6.33).
    MeanOfQueue,
    /// A bit for each of the last 32 requests; close is within 8192 sectors (41647e7a9133, 2.6.34).
    History,
}

/// Requests of one queue that may be with the driver (cfq_may_dispatch()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceDepth {
    /// quantum; four times that if nobody else is busy (2.6.32).
    Fourfold,
    /// quantum; no limit if nobody else is busy (2.6.33).
    Unlimited,
    /// Half of quantum; all of it while the slice is far from used up (2.6.34).
    Halved,
    /// The same; no limit for the only synchronous queue, and an overdue request goes in any case
    /// (late ones).
    HalvedButOverdue,
}

/// Since when there was no synchronous request in the way of asynchronous ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SyncDelay {
    /// The end of any (2.6.32).
    LastEnd,
    /// The end of one that took longer than fifo_expire_sync (2.6.33).
    LastSlowEnd,
}

/// Order of the reasons for which a queue preempts the active one (cfq_should_preempt()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Preemption {
    /// A slice that is used up comes first (2.6.32).
    UsedFirst,
    /// Class RT is safe, other groups are distinguished (2.6.33).
    ByGroup,
    /// Ancestors count as the same group; an empty queue that should not idle gives way (late).
    ByAncestry,
}

/// A preemption because the newcomer's request is close, while the active queue is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClosePreemption {
    /// Always.
    Plain,
    /// If it has not jumped in before, or nobody else is busy; it is marked as one that has
    /// (`coop_preempt`, 2.6.32 release).
    Marks,
}

/// A request of the queue that is waited for arrives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AwaitedArrival {
    /// It must be dispatched next in any case, and the queue counts as waited for until it expires
    /// (2.6.32).
    KeepsWaiting,
    /// The wait is over if the queue is run at once; must_dispatch is set only if not (2.6.33).
    EndsWaiting,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceIdling {
    /// A queue with an idle window, shorter if it seeks, while nothing at all is with the driver
    /// (2.6.32).
    ByWindow,
    /// The last queue of a tree, too, and a group that has only this one (2.6.33 to 2.6.35).
    ByTree,
    /// The same by the think time of trees and groups; a group has a wait of its own
    /// (`group_idle`, 4.20).
    ByTreeAndGroup,
}

/// Whether the drive queues commands (hw_tag).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueueingGuess {
    /// Initially yes, and decided again every 51 samples (2.6.32).
    Renewed,
    /// Not known at first, and for good once it is yes (2.6.33).
    Sticks,
}

/// Where the search for the request after the dispatched one begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NextFrom {
    /// The head (2.6.32).
    Head,
    /// The start of the one that leaves (2.6.33).
    Leaving,
}

/// How all requests go to the driver at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceDrain {
    /// Queue by queue, and the active one expires after all (2.6.32).
    ExpiresActive,
    /// Each expires, active or not (2.6.33).
    ExpiresEach,
    /// The active one expires, then each is made active and expires (2.6.34).
    ActivatesEach,
}

/// How lines in blktrace name a queue (cfq_log_cfqq()), and their further contents.
///
/// Lines of groups are those of a kernel that was built with CONFIG_CFQ_GROUP_IOSCHED and
/// CONFIG_DEBUG_CFQ_IOSCHED, which write the paths of groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceLog {
    /// By the process (2.6.32).
    Process,
    /// By the process, sync or async, and the path of the group; groups have lines of their own
    /// (2.6.33).
    Path,
    /// The same, with the workload that is served, and why there is no wait (2.6.35).
    PathAndWork,
    /// By the process, sync or async, and whether it does not idle; the group is a field of the
    /// record (4.20).
    Kind,
}

impl SliceLog {
    /// Workloads and waits are logged (2.6.35).
    pub(crate) fn tells_work(self) -> bool {
        matches!(self, SliceLog::PathAndWork | SliceLog::Kind)
    }
}

/// Which attributes there are in queue/iosched beside those that all kernels have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceAttributes {
    /// None (2.6.32).
    First,
    /// group_isolation (2.6.33 to 2.6.37).
    Isolation,
    /// group_idle, target_latency, and spans in us as well (4.20).
    Targets,
}

/// Which task is raised to best effort, level 4, while it allocates a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SliceBoost {
    /// A task that holds a resource of a file system (has_fs_excl()), which no task does here.
    Exclusive,
    /// A task that allocates a request of metadata (REQ_PRIO, 3.2).
    Meta,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimeSlices {
    pub clock: SliceClock,
    pub trees: SliceTrees,
    pub groups: SliceGroups,
    pub seeks: Seeks,
    pub depth: SliceDepth,
    pub sync_delay: SyncDelay,
    pub preemption: Preemption,
    /// A request of metadata preempts a queue that has none. By mistake it did not, and kept others
    /// from it, in 2.6.32-rc5.
    pub meta_preempts: bool,
    pub close_preemption: ClosePreemption,
    /// Requests that are waited for.
    pub awaited: AwaitedArrival,
    pub idling: SliceIdling,
    /// Queueing of the drive.
    pub queueing: QueueingGuess,
    pub next_from: NextFrom,
    /// Requests at one sector.
    pub same_start: SameStart,
    pub drain: SliceDrain,
    /// Raised priorities.
    pub boost: SliceBoost,
    /// Class IDLE has no cooperator (2.6.35).
    pub idle_class_alone: bool,
    /// Requests that come from a plug are merged before they are inserted (2.6.39).
    pub insert_merges: bool,
    /// Without idling on a drive that queues, groups are charged for requests instead of time, and
    /// a drive without seeks begins so (2.6.36, 4.5).
    pub charges_requests: bool,
    /// Default of `quantum`.
    pub quantum: u32,
    pub attributes: SliceAttributes,
    pub log: SliceLog,
    pub merge: QueueMerge,
}

impl TimeSlices {
    /// 2.6.32-rc5.
    pub const V2_6_32_RC5: TimeSlices = TimeSlices {
        clock: SliceClock::Ticks,
        trees: SliceTrees::One,
        groups: SliceGroups::None,
        seeks: Seeks::MeanOfProcess,
        depth: SliceDepth::Fourfold,
        sync_delay: SyncDelay::LastEnd,
        preemption: Preemption::UsedFirst,
        meta_preempts: false,
        close_preemption: ClosePreemption::Plain,
        awaited: AwaitedArrival::KeepsWaiting,
        idling: SliceIdling::ByWindow,
        queueing: QueueingGuess::Renewed,
        next_from: NextFrom::Head,
        same_start: SameStart::HandsOver,
        drain: SliceDrain::ExpiresActive,
        boost: SliceBoost::Exclusive,
        idle_class_alone: false,
        insert_merges: false,
        charges_requests: false,
        quantum: 4,
        attributes: SliceAttributes::First,
        log: SliceLog::Process,
        merge: QueueMerge::NONE,
    };

    /// The same with the patch.
    pub const V2_6_32_RC5_COOP: TimeSlices = TimeSlices {
        merge: QueueMerge::POSTED,
        ..TimeSlices::V2_6_32_RC5
    };

    /// 2.6.32.
    pub const V2_6_32: TimeSlices = TimeSlices {
        meta_preempts: true,
        close_preemption: ClosePreemption::Marks,
        ..TimeSlices::V2_6_32_RC5
    };

    /// 2.6.33.
    pub const V2_6_33: TimeSlices = TimeSlices {
        trees: SliceTrees::ByWorkload,
        groups: SliceGroups::Flat,
        seeks: Seeks::MeanOfQueue,
        depth: SliceDepth::Unlimited,
        sync_delay: SyncDelay::LastSlowEnd,
        preemption: Preemption::ByGroup,
        meta_preempts: true,
        awaited: AwaitedArrival::EndsWaiting,
        idling: SliceIdling::ByTree,
        queueing: QueueingGuess::Sticks,
        next_from: NextFrom::Leaving,
        drain: SliceDrain::ExpiresEach,
        attributes: SliceAttributes::Isolation,
        log: SliceLog::Path,
        merge: QueueMerge::V2_6_33,
        ..TimeSlices::V2_6_32_RC5
    };

    /// 2.6.35.
    pub const V2_6_35: TimeSlices = TimeSlices {
        seeks: Seeks::History,
        depth: SliceDepth::Halved,
        drain: SliceDrain::ActivatesEach,
        idle_class_alone: true,
        quantum: 8,
        log: SliceLog::PathAndWork,
        merge: QueueMerge::V2_6_35,
        ..TimeSlices::V2_6_33
    };

    /// 4.20, the last.
    pub const V4_20: TimeSlices = TimeSlices {
        clock: SliceClock::Nanoseconds,
        groups: SliceGroups::Hierarchy,
        depth: SliceDepth::HalvedButOverdue,
        preemption: Preemption::ByAncestry,
        idling: SliceIdling::ByTreeAndGroup,
        same_start: SameStart::Behind,
        boost: SliceBoost::Meta,
        insert_merges: true,
        charges_requests: true,
        attributes: SliceAttributes::Targets,
        log: SliceLog::Kind,
        merge: QueueMerge::V4_20,
        ..TimeSlices::V2_6_35
    };
}
