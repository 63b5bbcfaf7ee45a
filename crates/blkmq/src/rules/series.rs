//! The series of January 2024 against contention on mq-deadline's lock: no kernel has it.
//!
//! Every change is a switch of its own; a preset combines those of one posting. Source:
//! linux-block, 18 to 23 January 2024 (proof of concept, v1, RFC v2, v3), as described in words;
//! where a posting's text is not available, the comment describes our choice.

crate::axes! {
    /// The part of the series that a queue's mq-deadline has. Without that scheduler it decides
    /// nothing.
    pub struct Series(name), const {
        /// Nothing of it: what every kernel has.
        STOCK "stock",
        POC "poc" = SERIALISE_ONLY,
        V1 "v1" = SERIALISE_ONLY,
        V2 "v2" = SERIALISE_ONLY,
        V2_REPAIRED "v2-repaired" = V2,
        V3 "v3" = SERIALISE_ONLY,
        /// One patch.
        SERIALISE_ONLY "serialise-only" = STOCK,
        /// One patch.
        SKIP_MERGE "skip-merge" = STOCK,
    }

    /// The CPUs that may be in dispatch at once (dd_dispatch_request()).
    dispatch: DispatchGate {
        STOCK => Open /// All, one after another under the lock.
        SERIALISE_ONLY => OneAtATime
            /// The CPU that sets DD_DISPATCHING; the others get no request. The bit is cleared
            /// inside the lock.
        - => ClearedAfterUnlock
            /// The same with the bit cleared after the unlock. Never posted: it loses requests.
    }
    /// How requests come into the scheduler (dd_insert_requests()).
    insertion: Insertion [
        STOCK => Insertion::UnderLock,
        POC => Insertion::Buckets(BucketSignal::CountAtEntry),
        V1 => Insertion::Buckets(BucketSignal::CountAround),
        V2 => Insertion::Buckets(BucketSignal::MarkBefore),
        V2_REPAIRED => Insertion::Buckets(BucketSignal::MarkAfter),
        V3 => Insertion::SideLists,
    ]
    /// A bio that finds the scheduler's lock taken when it looks for a merge waits for it, or goes
    /// on without a merge: spin_trylock() (dd_bio_merge()).
    merge_lookup: MergeLookup { STOCK => WaitsForLock, V2 | V3 | SKIP_MERGE => IfLockIsFree }
    /// Besides the scheduler's own lists dd_has_work() looks at nothing, or at the side lists or
    /// the buckets; nobody posted that for buckets: a run then finds work that it cannot get.
    side_work: SideWork { STOCK => Unseen, V3 => Seen }
    /// DD_CPU_BUCKETS: insertion buckets, 1 to [`Series::BUCKETS_MAX`]; CPU c uses bucket c mod n.
    buckets: u16 [STOCK => Series::BUCKETS]
}

/// How requests come into the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Insertion {
    /// Under its lock (all kernels).
    UnderLock,
    /// While another CPU inserts, into a bucket of the CPU's that the inserter empties.
    Buckets(BucketSignal),
    /// Onto one of two lists under `insert_lock`; dispatch empties them.
    SideLists,
}

/// How the inserter learns that a bucket was filled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BucketSignal {
    /// `insert_seq` counts callers when they come; DD_INSERTING is cleared after the unlock (proof
    /// of concept).
    CountAtEntry,
    /// `insert_seq` counts before and after the filling, and each round of the inserter; the bit is
    /// cleared as there (v1).
    CountAround,
    /// DD_BUCKETS is set before the filling (RFC v2).
    MarkBefore,
    /// DD_BUCKETS is set after the filling, with a full barrier between (ours). Needs both bits in
    /// one word: in two words it would need barriers around the looks as well.
    MarkAfter,
}

impl Series {
    /// DD_CPU_BUCKETS as posted.
    pub const BUCKETS: u16 = 32;
    pub const BUCKETS_MAX: u16 = 1024;

    /// The preset of this name.
    pub fn by_name(name: &str) -> Option<Series> {
        let mut all = Series::ALL.into_iter();
        all.find(|series| series.name == name)
    }

    /// Buckets that a queue has room for: none unless they are used.
    pub fn bucket_count(&self) -> usize {
        match self.insertion {
            Insertion::Buckets(_) => usize::from(self.buckets),
            Insertion::UnderLock | Insertion::SideLists => 0,
        }
    }
}
