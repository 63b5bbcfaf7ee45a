//! Fixes of stalls. Presets have all fixes; without one of them a run shows its stall.
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
