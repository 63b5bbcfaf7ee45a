//! Operations of a kernel path besides computing: words shared without a lock, locks, barriers,
//! effects on the machine. The cells of the simulator, the explorer and conformance are in
//! `solo.rs`, which documents each operation; under `cfg(loom)` the same types use loom's words
//! (`threads.rs`).
//!
//! A release ends its label: work after it in the same label would be priced, and visible to other
//! CPUs, as if the lock were still held. In debug builds cells refuse, until the next label begins,
//! every access to a word, a glance, a cache line, guarded data (also of a lock that is still
//! held), a trace point and an effect. Allowed are the release of a further lock, a barrier, which
//! accesses nothing, and the pool: a path uses it only for requests that it owns.

mod cpu;
mod line;
#[cfg(not(loom))]
mod solo;
#[cfg(loom)]
mod threads;
mod value;

pub use cpu::{
    Answer, Counter, CounterForm, CounterUnit, Cpu, Effect, OUTBOX_LIMIT, Outbox, Percentile,
    Probe, Reading, TURN_AWAITED, TURN_OVER, TURN_SERVED, TraceAction, TraceMsg, TracePoint,
    TracedRequest, Which,
};
pub use line::{CPUS_MAX, Line, Meter, Misses, Near, Numbering, Overlap, Room, Tariff};
#[cfg(not(loom))]
pub use solo::{Bit, CacheLine, Count, Held, Hint, Lock, Shared, Slab, SpinLock, Word, mb};
#[cfg(loom)]
pub use threads::{Bit, CacheLine, Count, Hint, Lock, Slab, SpinLock, Word, mb, omit_barriers};
pub(crate) use value::value;

pub use crate::not_state::NotState;
use crate::request::CpuId;

/// Data that records which CPU borrows it.
pub trait Toucher {
    /// `cpu` touches the data from now on.
    fn touched_by(&mut self, _cpu: CpuId) {}
}

impl Toucher for crate::request::RequestPool {
    fn touched_by(&mut self, cpu: CpuId) {
        self.toucher = cpu;
    }
}

/// First zero bit of `word` and the mask of `count` bits from there, if they fit below `depth`.
fn run_at(word: u64, count: u32, depth: u32) -> Option<(u32, u64)> {
    let first = (!word).trailing_zeros();
    let mask = u64::MAX >> (64 - count);
    (first + count <= depth).then(|| (first, mask << first))
}

/// The first zero bit of `word` among `candidates`, from `start` upward, then from 0 if `wrap`.
fn first_zero(word: u64, start: u32, candidates: u64, wrap: bool) -> Option<u32> {
    let free = !word & candidates;
    let above = free & (u64::MAX << start);
    let pick = if above != 0 || !wrap { above } else { free };
    (pick != 0).then(|| pick.trailing_zeros())
}
