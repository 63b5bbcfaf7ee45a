//! What differs between kernels on the single-queue path.
//!
//! Kernel: block/blk-core.c, elevator.c, deadline-iosched.c (2.6.32.2, 4.20).

crate::axes! {
    /// The single-queue path of one kernel.
    pub struct SingleQueueRules, const {
        V2_6_32 "v2.6.32",
        V4_20 "v4.20" = V2_6_32,
    }

    /// The plug that holds requests back until there are several.
    plug: QueuePlug {
        V2_6_32 => OfQueue
            /// The queue's, for all tasks: it is plugged when it was empty, and unplugged by so
            /// many requests, by a timer or by a waiter. Nothing merges at insertion.
        V4_20 => OfTask
            /// That of each task, and those of the tasks here end with each bio: an inserted
            /// request may merge, and the queue runs at once.
    }
    /// If a request starts where a queued one of its direction (deadline) or queue (cfq) does, the
    /// queued one goes to the driver (up to 3.0), or the new one is sorted after it (796d5116c407,
    /// 3.1).
    same_start: SameStart { V2_6_32 => HandsOver, V4_20 => SortedAfter }
    /// A request of deadline has expired once its time is over (time_after()), or when its time has
    /// come (time_after_eq(), deadline_check_fifo()).
    late: Late { V2_6_32 => After, V4_20 => AtTime }
}
