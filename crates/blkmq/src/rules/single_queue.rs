//! Differences between kernels on the single-queue request path.
//!
//! Kernel: block/blk-core.c, elevator.c, deadline-iosched.c (2.6.32.2, 4.20).

/// The single-queue path of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SingleQueueRules {
    /// The plug that holds requests back until there are several.
    pub plug: QueuePlug,
    /// deadline: a request that starts where a queued one does.
    pub same_start: SameStart,
    /// deadline: when a request has expired.
    pub late: Late,
}

/// The plug that holds requests back until there are several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueuePlug {
    /// The queue's, for all tasks: it is plugged when it was empty, and unplugged by so many
    /// requests, by a timer or by a waiter (2.6.32). Nothing merges at insertion.
    OfQueue,
    /// That of each task, and those of the tasks here end with each bio: an inserted request may
    /// merge, and the queue runs at once (4.20).
    OfTask,
}

/// A request that starts where a queued one of its direction (deadline) or queue (cfq) does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SameStart {
    /// The queued one goes to the driver (2.6.32, up to 3.0).
    HandsOver,
    /// The new one is sorted after the queued one (796d5116c407, 3.1).
    Behind,
}

/// When a request has expired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Late {
    /// Once its time is over (2.6.32, time_after()).
    After,
    /// When its time has come (4.20, time_after_eq()).
    AtTime,
}

impl SingleQueueRules {
    /// Linux 2.6.32.
    pub const V2_6_32: SingleQueueRules = SingleQueueRules {
        plug: QueuePlug::OfQueue,
        same_start: SameStart::HandsOver,
        late: Late::After,
    };

    /// Linux 4.20.
    pub const V4_20: SingleQueueRules = SingleQueueRules {
        plug: QueuePlug::OfTask,
        same_start: SameStart::Behind,
        late: Late::AtTime,
    };
}
