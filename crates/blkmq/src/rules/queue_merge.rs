//! How CFQ merges queues whose processes read close to each other, and splits them again.
//!
//! Kernel: block/cfq-iosched.c, from the patch of October 2009 to 4.20.

/// Which queue may look for one to cooperate with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Current {
    /// Any for which a request has been dispatched since it became active (2.6.32).
    AnyServed,
    /// Any (df5fe3e8e138).
    Any,
    /// A synchronous one that does not seek (e6c5bc737ab7).
    SyncNotSeeky,
    /// The same, not the only queue in its group (2.6.33); from 2.6.35 on not of class IDLE.
    SyncNotSeekyInCompany,
}

/// Which queue may be the one that cooperates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Candidate {
    /// One that has not jumped in before (2.6.32).
    NotJumped,
    /// A synchronous one that has not (the patch, df5fe3e8e138).
    SyncNotJumped,
    /// A synchronous one that does not seek (e6c5bc737ab7).
    SyncNotSeeky,
    /// The same, of the same group, both or none of class RT (2.6.33).
    SyncNotSeekyAlike,
}

/// Which of two queues is merged into the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergeDirection {
    /// Processes of the active queue (the patch, df5fe3e8e138).
    ToCandidate,
    /// Those of the queue that has fewer references of processes (e6c5bc737ab7).
    ToMoreProcesses,
}

/// Which slot of the process a redirection fills.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RedirectedSlot {
    /// That of the request (the patch).
    Own,
    /// The synchronous one, whatever the request is (df5fe3e8e138).
    Sync,
}

/// Queues that no process refers to when a merge is set up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unreferenced {
    /// Only the active one is looked at.
    CurrentChecked,
    /// Neither is merged, and no chain is followed from one (c10b61f09104, 2.6.35; stable kernels).
    AllChecked,
}

/// When a queue that is shared is broken apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Split {
    /// Never.
    Never,
    /// When it has been seeky for a second (first form, e6c5bc737ab7).
    AfterSecond,
    /// When it is seeky as it expires (v2.6.33).
    AtExpiry,
}

/// Merging of queues, one axis for each step of its history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueMerge {
    /// Cooperating queues are merged at all.
    pub merges: bool,
    /// Which queue looks for a cooperator.
    pub current: Current,
    pub candidate: Candidate,
    pub direction: MergeDirection,
    pub redirected_slot: RedirectedSlot,
    /// Queues without processes.
    pub unreferenced: Unreferenced,
    pub split: Split,
    /// A process that leaves by a split drops its reservations along the chain (d02a2c077fb8,
    /// 2.6.35).
    pub split_drops_chain: bool,
    /// So does one that changes its group. No kernel: they are lost (up to v4.20).
    pub group_change_drops_chain: bool,
    /// So does a process whose asynchronous queue is replaced. No kernel; it matters only to the
    /// patch.
    pub ioprio_change_drops_chain: bool,
    /// A change of group drops the asynchronous queue, too (late).
    pub group_change_drops_async: bool,
    /// The reference on the queue for want of memory is put when a process gets its own
    /// (2984ff38ccf6, v4.3).
    pub puts_fallback: bool,
    /// That queue never gets into the table of asynchronous ones (d93a11f1cd89, v4.3).
    pub fallback_is_nobodys: bool,
}

impl QueueMerge {
    /// 2.6.32: none.
    pub const NONE: QueueMerge = QueueMerge {
        merges: false,
        current: Current::AnyServed,
        candidate: Candidate::NotJumped,
        direction: MergeDirection::ToCandidate,
        redirected_slot: RedirectedSlot::Own,
        unreferenced: Unreferenced::CurrentChecked,
        split: Split::Never,
        split_drops_chain: false,
        group_change_drops_chain: false,
        ioprio_change_drops_chain: false,
        group_change_drops_async: false,
        puts_fallback: false,
        fallback_is_nobodys: false,
    };

    /// The patch as posted.
    pub const POSTED: QueueMerge = QueueMerge {
        merges: true,
        candidate: Candidate::SyncNotJumped,
        ..QueueMerge::NONE
    };

    /// As committed (df5fe3e8e138).
    pub const COMMITTED: QueueMerge = QueueMerge {
        current: Current::Any,
        redirected_slot: RedirectedSlot::Sync,
        ..QueueMerge::POSTED
    };

    /// With the first split, and by direction (e6c5bc737ab7).
    pub const FIRST_SPLIT: QueueMerge = QueueMerge {
        current: Current::SyncNotSeeky,
        candidate: Candidate::SyncNotSeeky,
        direction: MergeDirection::ToMoreProcesses,
        split: Split::AfterSecond,
        ..QueueMerge::COMMITTED
    };

    /// v2.6.33.
    pub const V2_6_33: QueueMerge = QueueMerge {
        current: Current::SyncNotSeekyInCompany,
        candidate: Candidate::SyncNotSeekyAlike,
        split: Split::AtExpiry,
        ..QueueMerge::FIRST_SPLIT
    };

    /// v2.6.35: with what was found missing.
    pub const V2_6_35: QueueMerge = QueueMerge {
        unreferenced: Unreferenced::AllChecked,
        split_drops_chain: true,
        ..QueueMerge::V2_6_33
    };

    /// v4.20.
    pub const V4_20: QueueMerge = QueueMerge {
        group_change_drops_async: true,
        puts_fallback: true,
        fallback_is_nobodys: true,
        ..QueueMerge::V2_6_35
    };

    /// A mark means that the queue is shared (b3b6d0408c95), not that it has jumped in.
    pub const fn marks_shared(&self) -> bool {
        matches!(
            self.candidate,
            Candidate::SyncNotSeeky | Candidate::SyncNotSeekyAlike
        )
    }
}
