//! Wake-ups of tasks and hctxs that wait for a tag.
//!
//! Kernel: lib/sbitmap.c (the commits named, 6.1.192, 6.12.117).

use super::BatchRule;

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

/// Wake-ups before v6.2: each wait queue counts down from the wake batch by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Countdown {
    /// A count below zero is taken back; at zero the batch is added (to v4.7).
    CountsBack,
    /// At zero or below the batch is added to what was seen, if nobody else changed it meanwhile
    /// (v4.8 to v4.17).
    Adds,
    /// At zero or below the batch is stored; a CPU that loses that race starts again. The index
    /// advances after it (c854ab5773be, v4.18 to v6.0).
    Resets,
    /// At zero the queue is woken first, then the index moves on, then the batch is stored; a
    /// queue that was left meanwhile stays at zero (040b83fcecfb, v6.1-rc).
    LeavesZero,
    /// A count is taken by compare-exchange; a CPU that finds zero starts again with the same queue
    /// (4acb83417cad, v6.1-rc).
    Spins,
    /// The same, but queues at zero are passed over (30514bd2dd4e, v6.1).
    PassesOver,
}

/// SBQ_WAKE_BATCH: the most.
const BATCH_MAX: u32 = 8;
/// Least share of a user, and least batch of the two rules of v5.17.
const LEAST: u32 = 4;

impl BatchRule {
    /// The wake batch of a map of `depth` tags with so many wait queues and `users` users, at
    /// least 1 of each (sbitmap_queue_recalculate_wake_batch).
    pub fn batch(self, wait_queues: u32, depth: u32, users: u32) -> u32 {
        let share = depth.div_ceil(users);
        let (wanted, least) = match self {
            BatchRule::WholeDepth => (depth / wait_queues, 1),
            BatchRule::Share => (share, LEAST),
            BatchRule::ShareFour if depth >= LEAST * wait_queues => (share / wait_queues, LEAST),
            BatchRule::ShareFour | BatchRule::ShareOne => (share / wait_queues, 1),
        };
        wanted.clamp(least, BATCH_MAX)
    }
}
