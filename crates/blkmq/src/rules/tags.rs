//! Tag maps and their waiters: what differs between kernels.
//!
//! Kernel: lib/sbitmap.c, block/blk-mq-tag.c, block/kyber-iosched.c (6.1.192, 6.12.117).

use super::Countdown;

/// When a request counts among those with tags of a map that several queues share (nr_active).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ActiveCount {
    /// In blk_mq_get_driver_tag(), marked by RQF_MQ_INFLIGHT: without scheduler only when it is
    /// issued, so that plugs may hold more than a share (v6.1).
    AtIssue,
    /// From the allocation of its tag to its free (v6.12).
    WithTag,
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
    /// From the current depth of the map (v6.1).
    OfMap,
    /// From the nr_requests before the last write: kyber_depth_updated() is called before the new
    /// value is stored (v6.12).
    BeforeChange,
}

/// Reach of `__sbitmap_queue_wake_up`, and its predecessors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WakeScan {
    /// The next wait queue, counted down by itself (before v6.2).
    Countdown(Countdown),
    /// The next wait queue that seems to have waiters, whether they are still there or not
    /// (4f8126bb2308, v6.2-rc).
    OneQueue,
    /// Stops at the first wait queue with a waiter that it wakes (v6.1).
    FirstQueue,
    /// Continues until the whole batch is spent (v6.12).
    UntilSpent,
}

/// Where a freed bit goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FreedBits {
    /// Into a second word, merged back when a search finds the map full (ea86ea2cdced, v5.0).
    Deferred,
    /// Out of the word itself.
    AtOnce,
}
