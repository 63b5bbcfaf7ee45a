//! What kernels with a single-queue request path do differently on it.
//!
//! Kernel: block/blk-core.c, elevator.c, deadline-iosched.c (2.6.32.2, 4.20).

/// The single-queue path of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SingleQueueRules {
    /// Who holds requests back until there are several.
    pub plug: QueuePlug,
    /// deadline: a request that starts where a queued one does.
    pub same_start: SameStart,
    /// deadline: from when on a request is late.
    pub late: Late,
}

/// Who holds requests back until there are several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueuePlug {
    /// The queue, for all tasks: it is plugged when it was empty, and unplugged by so many
    /// requests, by a timer or by who waits (2.6.32). Nothing merges at insertion.
    OfQueue,
    /// Tasks have plugs of their own, and those of the tasks here end with each I/O: what is
    /// inserted may merge, and the queue runs at once (4.20).
    OfTask,
}

/// A request that starts where a queued one of its direction (deadline) or queue (cfq) does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SameStart {
    /// The queued one goes to the driver (2.6.32, up to 3.0).
    HandsOver,
    /// It is filed behind the queued one (796d5116c407, 3.1).
    Behind,
}

/// From when on a request is late.
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
