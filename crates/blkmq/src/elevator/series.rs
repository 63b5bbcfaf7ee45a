//! A scheduler with one lock and the January 2024 series: one CPU at a time in dispatch, insertion
//! outside the lock, look-ups for a merge only if the lock is free.
//!
//! * [`shared`]: the lock, and the words and lists beside it that only the series has
//! * [`insert`], [`dispatch`]: the paths of `locked.rs`, with the labels of the series
//!
//! `rules/series.rs` selects the parts that a queue has; without the series the paths are those of
//! `locked.rs`. Posted for mq-deadline, and with v3 for bfq: linux-block, 18 to 23 January 2024.

pub mod dispatch;
pub mod insert;
pub mod shared;

pub(crate) use super::locked::{HookPath, MergePath};
pub(crate) use dispatch::DispatchPath;
pub(crate) use insert::InsertPath;
pub use shared::WithSeries;

/// Number of the lock of an insertion bucket.
pub(crate) const BUCKET: u8 = 1;
/// Number of insert_lock (v3).
pub(crate) const INSERTED: u8 = 2;
