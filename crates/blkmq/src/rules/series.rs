//! The series of January 2024 against contention on mq-deadline's lock: no kernel has it.
//!
//! Every change is a switch of its own; a preset combines those of one posting. Source:
//! linux-block, 18 to 23 January 2024 (proof of concept, v1, RFC v2, v3), as described in words;
//! where a posting's text is not available, the comment describes our choice.

/// What of the series a queue's mq-deadline has. Without that scheduler it decides nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Series {
    /// Name of the preset, for reports.
    pub name: &'static str,
    /// Whether several CPUs may be in dispatch at once.
    pub dispatch: DispatchGate,
    /// How requests come into the scheduler.
    pub insertion: Insertion,
    /// What a bio does that finds the scheduler's lock taken when it looks for a merge.
    pub merge_lookup: MergeLookup,
    /// What has_work looks at besides the scheduler's lists.
    pub side_work: SideWork,
    /// DD_CPU_BUCKETS: insertion buckets, 1 to [`Series::BUCKETS_MAX`]; CPU c uses bucket c mod n.
    pub buckets: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DispatchGate {
    /// Everybody, one after another under the lock (all kernels).
    Open,
    /// The CPU that sets DD_DISPATCHING; the others get no request. The bit is cleared inside the
    /// lock.
    OneAtATime,
    /// The same with the bit cleared after the unlock. Never posted: it loses requests.
    ClearedAfterUnlock,
}

/// How requests come into the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Insertion {
    /// Under its lock (all kernels).
    UnderLock,
    /// While somebody else inserts, into a bucket of the CPU's that the inserter empties.
    Buckets(BucketSignal),
    /// Onto one of two lists under `insert_lock`; dispatch empties them (v3).
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

/// What dd_has_work() looks at besides the scheduler's own lists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SideWork {
    /// Nothing (all kernels; the postings with buckets).
    Unseen,
    /// The side lists (v3), or the buckets, which nobody posted: a run then finds work that it
    /// cannot get.
    Seen,
}

/// A bio's look for a merge in the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergeLookup {
    /// Waits for the lock (all kernels).
    WaitsForLock,
    /// Only if the lock is free: spin_trylock().
    IfLockIsFree,
}

impl Series {
    /// DD_CPU_BUCKETS as posted.
    pub const BUCKETS: u16 = 32;
    pub const BUCKETS_MAX: u16 = 1024;

    /// Nothing of it: what every kernel has.
    pub const STOCK: Series = Series {
        name: "stock",
        dispatch: DispatchGate::Open,
        insertion: Insertion::UnderLock,
        merge_lookup: MergeLookup::WaitsForLock,
        side_work: SideWork::Unseen,
        buckets: Series::BUCKETS,
    };

    const fn new(name: &'static str, insertion: Insertion, merge_lookup: MergeLookup) -> Series {
        Series {
            name,
            dispatch: DispatchGate::OneAtATime,
            insertion,
            merge_lookup,
            ..Series::STOCK
        }
    }

    /// All presets: stock, the postings in their order, and single patches.
    pub const PRESETS: [Series; 8] = {
        use BucketSignal::{CountAround, CountAtEntry, MarkAfter, MarkBefore};
        use Insertion::{Buckets, SideLists, UnderLock};
        use MergeLookup::{IfLockIsFree, WaitsForLock};
        [
            Series::STOCK,
            Series::new("poc", Buckets(CountAtEntry), WaitsForLock),
            Series::new("v1", Buckets(CountAround), WaitsForLock),
            Series::new("v2", Buckets(MarkBefore), IfLockIsFree),
            Series::new("v2-repaired", Buckets(MarkAfter), IfLockIsFree),
            Series {
                side_work: SideWork::Seen,
                ..Series::new("v3", SideLists, IfLockIsFree)
            },
            Series::new("serialise-only", UnderLock, WaitsForLock),
            Series {
                name: "skip-merge",
                merge_lookup: IfLockIsFree,
                ..Series::STOCK
            },
        ]
    };

    /// The preset of this name.
    pub fn by_name(name: &str) -> Option<Series> {
        let mut all = Series::PRESETS.into_iter();
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
