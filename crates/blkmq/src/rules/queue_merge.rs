//! How CFQ merges queues whose processes read close to each other, and splits them again.
//!
//! Kernel: block/cfq-iosched.c, from the patch of October 2009 to 4.20.

crate::axes! {
    /// Merging of queues, one axis for each step of its history.
    pub struct QueueMerge, const {
        /// 2.6.32: none.
        NONE "v2.6.32",
        /// The patch as posted.
        POSTED "posted" = NONE,
        /// The patch as committed (df5fe3e8e138).
        COMMITTED "df5fe3e8e138" = POSTED,
        /// With the first split, and by direction.
        FIRST_SPLIT "e6c5bc737ab7" = COMMITTED,
        V2_6_33 "v2.6.33" = FIRST_SPLIT,
        /// With what was found missing.
        V2_6_35 "v2.6.35" = V2_6_33,
        V4_20 "v4.20" = V2_6_35,
    }

    /// Cooperating queues are merged at all.
    merges: bool [NONE => false, POSTED => true]
    /// The queue that may look for a cooperator (cfq_close_cooperator()).
    current: Current {
        NONE => AnyServed
            /// Any for which a request has been dispatched since it became active.
        COMMITTED => Any /// Any.
        FIRST_SPLIT => SyncNotSeeky /// A synchronous one that does not seek.
        V2_6_33 => SyncNotSeekyInCompany
            /// The same, not the only queue in its group; from 2.6.35 on not of class IDLE.
    }
    /// The queue that may be the cooperator.
    candidate: Candidate {
        NONE => NotJumped /// One that has not jumped in before.
        POSTED => SyncNotJumped /// A synchronous one that has not.
        FIRST_SPLIT => SyncNotSeeky /// A synchronous one that does not seek.
        V2_6_33 => SyncNotSeekyAlike /// The same, of the same group, both or none of class RT.
    }
    /// Processes of the active queue move to the cooperator's, or those of the queue that has fewer
    /// references of processes move to the other one (cfq_setup_merge()).
    direction: MergeDirection { NONE => ToCandidate, FIRST_SPLIT => ToMoreProcesses }
    /// A redirection fills the slot of the request, or the synchronous one, whatever the request
    /// is.
    redirected_slot: RedirectedSlot { NONE => Own, COMMITTED => Sync }
    /// Only the active queue is checked for processes that refer to it when a merge is set up; or
    /// none without is merged, and no chain is followed from one (c10b61f09104; stable kernels).
    unreferenced: Unreferenced { NONE => CurrentChecked, V2_6_35 => AllChecked }
    /// When a queue that is shared is broken apart (split_cfqq()).
    split: Split {
        NONE => Never /// Never.
        FIRST_SPLIT => AfterSecond /// When it has been seeky for a second.
        V2_6_33 => AtExpiry /// When it is seeky as it expires.
    }
    /// A process that leaves by a split drops its reservations along the chain (d02a2c077fb8).
    split_drops_chain: bool [NONE => false, V2_6_35 => true]
    /// So does a process that changes its group. No kernel: they are lost (up to v4.20).
    group_change_drops_chain: bool [NONE => false]
    /// So does a process whose asynchronous queue is replaced. No kernel; it matters only to the
    /// patch.
    ioprio_change_drops_chain: bool [NONE => false]
    /// A change of group drops the asynchronous queue, too (late).
    group_change_drops_async: bool [NONE => false, V4_20 => true]
    /// The reference on the queue for want of memory is put when a process gets its own
    /// (2984ff38ccf6, v4.3).
    puts_fallback: bool [NONE => false, V4_20 => true]
    /// That queue never gets into the table of asynchronous queues (d93a11f1cd89, v4.3).
    fallback_is_nobodys: bool [NONE => false, V4_20 => true]
}

impl QueueMerge {
    /// A mark means that the queue is shared (b3b6d0408c95), not that it has jumped in.
    pub const fn marks_shared(&self) -> bool {
        matches!(
            self.candidate,
            Candidate::SyncNotSeeky | Candidate::SyncNotSeekyAlike
        )
    }
}
