//! How the single-queue scheduler of time slices (CFQ) differs between kernels.
//!
//! The algorithm that all share is in the scheduler's folder.
//! Kernel: block/cfq-iosched.c of 2.6.32, 2.6.33, 2.6.35 and 4.20, and the patch of October 2009
//! that joins queues of cooperating processes, on 2.6.32-rc5.

use super::queue_merge::QueueMerge;
use super::single_queue::SameStart;

crate::axes! {
    pub struct TimeSlices, const {
        V2_6_32_RC5 "v2.6.32-rc5",
        /// The same with the patch.
        V2_6_32_RC5_COOP "v2.6.32-rc5-coop" = V2_6_32_RC5,
        V2_6_32 "v2.6.32" = V2_6_32_RC5,
        V2_6_33 "v2.6.33" = V2_6_32_RC5,
        V2_6_35 "v2.6.35" = V2_6_33,
        /// The last.
        V4_20 "v4.20" = V2_6_35,
    }

    /// Slices and waits are in jiffies, with a timer that runs at a tick (up to v4.6), or in ns of
    /// ktime_get_ns(), with a high-resolution timer (9a7f38c42c2b, v4.7).
    clock: SliceClock { V2_6_32_RC5 => Ticks, V4_20 => Nanoseconds }
    /// Queues wait for their turn in one tree, which a queue leaves with its last request; or in
    /// one for each class and kind of work of a group, where an empty queue stays while it is
    /// active.
    trees: SliceTrees { V2_6_32_RC5 => One, V2_6_33 => ByWorkload }
    /// Groups, and how the disk is divided between them.
    groups: SliceGroups {
        V2_6_32_RC5 => None /// There are none.
        V2_6_33 => Flat
            /// Each for itself, by its own weight; without group_isolation queues that do not idle
            /// go to the root (up to 2.6.37).
        V4_20 => Hierarchy
            /// Each has the fraction that its weights up to the root give it; asynchronous queues
            /// are its own (3.10, 4.3).
    }
    /// How it is known that requests are far from each other (cfq_update_io_seektime()).
    seeks: Seeks {
        V2_6_32_RC5 => MeanOfProcess
            /// Mean distance of a process's requests; the distance that is close is that mean.
        V2_6_33 => MeanOfQueue
            /// The same of a queue's requests, the search for cooperators capped at 8192 sectors.
        V2_6_35 => History
            /// A bit for each of the last 32 requests; close is within 8192 sectors (41647e7a9133,
            /// 2.6.34).
    }
    /// Requests of one queue that may be with the driver (cfq_may_dispatch()).
    depth: SliceDepth {
        V2_6_32_RC5 => Fourfold /// quantum; four times that if no other queue is busy.
        V2_6_33 => Unlimited /// quantum; no limit if no other queue is busy.
        V2_6_35 => Halved
            /// Half of quantum; all of it while the slice is far from used up (2.6.34).
        V4_20 => HalvedButOverdue
            /// The same; no limit for the only synchronous queue, and an overdue request goes in
            /// any case.
    }
    /// Asynchronous requests are limited since the end of any synchronous request, or since the end
    /// of one that took longer than fifo_expire_sync.
    sync_delay: SyncDelay { V2_6_32_RC5 => LastEnd, V2_6_33 => LastSlowEnd }
    /// Order of the reasons for which a queue preempts the active one (cfq_should_preempt()).
    preemption: Preemption {
        V2_6_32_RC5 => UsedFirst /// A slice that is used up comes first.
        V2_6_33 => ByGroup /// Class RT is safe, other groups are distinguished.
        V4_20 => ByAncestry
            /// Ancestors count as the same group; an empty queue that should not idle gives way.
    }
    /// A request of metadata preempts a queue that has none. By mistake it did not, and kept others
    /// from it, in 2.6.32-rc5.
    meta_preempts: bool [V2_6_32_RC5 => false, V2_6_32 | V2_6_33 => true]
    /// A queue whose request is close preempts the active one, which is waited for, always; or if
    /// it has not jumped in before (it is marked, `coop_preempt`), or no other queue is busy.
    close_preemption: ClosePreemption { V2_6_32_RC5 => Plain, V2_6_32 => Marks }
    /// When a request of the queue that is waited for arrives, it must be dispatched next in any
    /// case, and the queue counts as waited for until it expires; or the wait is over if the queue
    /// is run at once, and must_dispatch is set only if not (cfq_rq_enqueued()).
    awaited: AwaitedArrival { V2_6_32_RC5 => KeepsWaiting, V2_6_33 => EndsWaiting }
    /// The queues that are waited for when they are empty (cfq_should_idle()).
    idling: SliceIdling {
        V2_6_32_RC5 => ByWindow
            /// A queue with an idle window, shorter if it seeks, while nothing at all is with the
            /// driver.
        V2_6_33 => ByTree
            /// The last queue of a tree, too, and a group that has only this one.
        V4_20 => ByTreeAndGroup
            /// The same by the think time of trees and groups; a group has a wait of its own
            /// (`group_idle`).
    }
    /// The drive queues commands initially, which is decided again every 51 samples; or that is not
    /// known at first, and for good once it does (hw_tag, cfq_update_hw_tag()).
    queueing: QueueingGuess { V2_6_32_RC5 => Renewed, V2_6_33 => Sticks }
    /// The search for the request after the dispatched one begins at the head, or at the start of
    /// the request that leaves (cfq_find_next_rq()).
    next_from: NextFrom { V2_6_32_RC5 => Head, V2_6_33 => Leaving }
    /// A request that starts where a queued one of its queue does.
    same_start: SameStart [V2_6_32_RC5 => SameStart::HandsOver, V4_20 => SameStart::SortedAfter]
    /// How all requests go to the driver at once (cfq_forced_dispatch()).
    drain: SliceDrain {
        V2_6_32_RC5 => ExpiresActive /// Queue by queue, and the active one expires after all.
        V2_6_33 => ExpiresEach /// Each expires, active or not.
        V2_6_35 => ActivatesEach
            /// The active one expires, then each is made active and expires (2.6.34).
    }
    /// A task is raised to best effort, level 4, while it allocates a request, if it holds a
    /// resource of a file system (has_fs_excl()), which no task does here; or if the request is of
    /// metadata (REQ_PRIO, 3.2).
    boost: SliceBoost { V2_6_32_RC5 => Exclusive, V4_20 => Meta }
    /// A process whose priority has changed gets the asynchronous queue of the priority that it had
    /// before (check_ioprio_changed()).
    async_of_old_priority: bool [V2_6_32_RC5 => false, V4_20 => true]
    /// A queue of class IDLE goes some time after the last one of its tree. From 4.14 on that much
    /// time after the present, since rb_rightmost of these trees is never set
    /// (cfq_service_tree_add()).
    idle_class_follows: bool [V2_6_32_RC5 => true, V4_20 => false]
    /// Class IDLE has no cooperator.
    idle_class_alone: bool [V2_6_32_RC5 => false, V2_6_35 => true]
    /// Requests that come from a plug are merged before they are inserted (2.6.39).
    insert_merges: bool [V2_6_32_RC5 => false, V4_20 => true]
    /// Without idling on a drive that queues, groups are charged for requests instead of time, and
    /// a drive without seeks begins so (2.6.36, 4.5).
    charges_requests: bool [V2_6_32_RC5 => false, V4_20 => true]
    /// Default of `quantum`.
    quantum: u32 [V2_6_32_RC5 => 4, V2_6_35 => 8]
    /// Beside those of all kernels, queue/iosched has no attributes, group_isolation (up to
    /// 2.6.37), or group_idle, target_latency, and spans in us.
    attributes: SliceAttributes { V2_6_32_RC5 => First, V2_6_33 => Isolation, V4_20 => Targets }
    /// How lines in blktrace name a queue (cfq_log_cfqq()), and their further contents.
    ///
    /// Lines of groups are those of a kernel that was built with CONFIG_CFQ_GROUP_IOSCHED and
    /// CONFIG_DEBUG_CFQ_IOSCHED, which write the paths of groups.
    log: SliceLog {
        V2_6_32_RC5 => Process /// By the process.
        V2_6_33 => Path
            /// By the process, sync or async, and the path of the group; groups have lines of their
            /// own.
        V2_6_35 => PathAndWork
            /// The same, with the workload that is served, and why there is no wait.
        V4_20 => Kind
            /// By the process, sync or async, and whether it does not idle; the group is a field of
            /// the record.
    }
    /// How queues of cooperating processes merge.
    merge: QueueMerge [
        V2_6_32_RC5 => QueueMerge::NONE,
        V2_6_32_RC5_COOP => QueueMerge::POSTED,
        V2_6_33 => QueueMerge::V2_6_33,
        V2_6_35 => QueueMerge::V2_6_35,
        V4_20 => QueueMerge::V4_20,
    ]
}

impl SliceLog {
    /// Workloads and waits are logged (2.6.35).
    pub(crate) fn tells_work(self) -> bool {
        matches!(self, SliceLog::PathAndWork | SliceLog::Kind)
    }
}
