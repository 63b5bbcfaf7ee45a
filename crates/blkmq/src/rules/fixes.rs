//! Fixes of stalls, and older ways of waking a tag's waiter: kernels before v6.1 lack them or
//! differ. Presets have all fixes; without one of them a run shows the stall that it fixes.
//!
//! Kernel: the commits named. Which checker finds which stall: docs/internals/verification.md.

/// One repair, which v6.1 and v6.12 stable both have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fix {
    /// Freed bits are merged back under `swap_lock` (72d04bdcf3f7, v6.11). Without it a search
    /// between two steps of a competitor's merge sees none.
    SwapLock,
    /// A task that was woken and finds itself at another map wakes another one of those it stood
    /// with (e6fc46498784, v4.18).
    PassedOnWake,
    /// BLK_MQ_S_STOPPED is read again after a barrier, and a barrier follows its clearing
    /// (96a9fe64bfd4, v6.13 and stable).
    StoppedBarrier,
    /// A plug whose request is refused runs the queue, also if others follow (d3b38596875d, v6.0).
    RefusedRun,
    /// A pass that gives its budget back because the scheduler had nothing has the queue run 3 ms
    /// later (a0823421a4d7, v5.8).
    DelayRun,
    /// The users of a tag map are counted, and its wake batch set, under one lock (4f1731df60f9,
    /// v6.5 and stable).
    UsersLock,
    /// Passthrough requests go to the dispatch list, around the scheduler (01e99aeca397, v5.6).
    PassthroughAround,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fixes(u8);

impl Fixes {
    pub const ALL: Fixes = Fixes(u8::MAX);

    /// These but one.
    pub const fn without(self, fix: Fix) -> Fixes {
        Fixes(self.0 & !(1 << fix as u8))
    }

    #[inline]
    pub const fn has(self, fix: Fix) -> bool {
        self.0 >> fix as u8 & 1 == 1
    }
}

/// Wake-ups before v6.2: each wait queue counts down from the wake batch by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Countdown {
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

/// How many freed tags make a wake-up, where several queues share a map: four formulas.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BatchRule {
    /// From the whole depth (before v5.17).
    WholeDepth,
    /// The share of one user, 4 at least (180dccb0dba4, v5.17).
    Share,
    /// The share spread over the wait queues, 4 at least in a map of 32 (10825410b956, v5.17).
    ShareFour,
    /// The share spread over the wait queues (b5fcf7871acb, v6.3 and stable).
    ShareOne,
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
