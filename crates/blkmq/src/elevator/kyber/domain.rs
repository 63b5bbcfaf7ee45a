//! The scheduling domains: the domain of an operation, and the constants of each.
//!
//! Kernel: kyber_sched_domain(), kyber_depth, kyber_latency_targets, kyber_batch_size in
//! block/kyber-iosched.c (6.1.192, 6.12.117).

use crate::request::Op;

/// A scheduling domain (KYBER_READ and so on).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Domain {
    #[default]
    Read,
    /// Writes, an empty flush of fsync(2) among them: that is a write with PREFLUSH.
    Write,
    Discard,
    /// Everything else: never measured, never resized.
    Other,
}

/// KYBER_NUM_DOMAINS.
pub const DOMAINS: usize = 4;
/// Domains whose latency is measured: those before `Other`.
pub const MEASURED: usize = 3;

impl Domain {
    /// In the order of their numbers.
    pub const ALL: [Domain; DOMAINS] =
        [Domain::Read, Domain::Write, Domain::Discard, Domain::Other];

    pub const fn of(op: Op) -> Domain {
        match op {
            Op::Read => Domain::Read,
            Op::Write => Domain::Write,
            Op::Discard => Domain::Discard,
            Op::Flush | Op::WriteZeroes => Domain::Other,
        }
    }

    /// Its number, and that of its map of tokens.
    pub const fn index(self) -> usize {
        self as usize
    }

    pub const fn next(self) -> Domain {
        match self {
            Domain::Read => Domain::Write,
            Domain::Write => Domain::Discard,
            Domain::Discard => Domain::Other,
            Domain::Other => Domain::Read,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Domain::Read => "READ",
            Domain::Write => "WRITE",
            Domain::Discard => "DISCARD",
            Domain::Other => "OTHER",
        }
    }

    /// The number of tokens at first, and at most.
    pub const fn depth_max(self) -> u32 {
        match self {
            Domain::Read => 256,
            Domain::Write => 128,
            Domain::Discard => 64,
            Domain::Other => 16,
        }
    }

    pub const fn batch(self) -> u32 {
        match self {
            Domain::Read => 16,
            Domain::Write => 8,
            Domain::Discard | Domain::Other => 1,
        }
    }

    /// Default target latency, ns; none of a domain that is not measured.
    pub const fn target_ns(self) -> Option<u64> {
        match self {
            Domain::Read => Some(2_000_000),
            Domain::Write => Some(10_000_000),
            Domain::Discard => Some(5_000_000_000),
            Domain::Other => None,
        }
    }
}
