//! The January 2024 series for a scheduler with one lock: one CPU at a time in dispatch, insertion
//! outside the lock, look-ups for a merge only if the lock is free.
//!
//! * [`shared`]: the words and lists beside the lock
//! * [`insert`], [`dispatch`]: the functions of `locked/`, with the labels of the series
//!
//! `rules/series.rs` selects the parts that a queue has; without the series the labels are those of
//! `locked/`. Posted for mq-deadline, and with v3 for bfq: linux-block, 18 to 23 January 2024.

pub mod dispatch;
pub mod insert;
pub mod shared;

pub(crate) use super::locked::{bio_merge, call_hook};
pub(crate) use dispatch::dispatch_request;
pub(crate) use insert::insert_requests;
pub use shared::Series;

/// Number of the lock of an insertion bucket.
pub(crate) const BUCKET: u8 = 1;
/// Number of insert_lock (v3).
pub(crate) const INSERTED: u8 = 2;
