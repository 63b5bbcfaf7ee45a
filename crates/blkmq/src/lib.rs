//! The reference Linux multi-queue block layer.
//!
//! No clock, no cost, no threads, no I/O: four drivers bring those (docs/architecture.md).
//!
//! * values: [`time`], [`request`], [`rules`]
//! * containers: [`list`], [`sort`]
//! * schedulers: [`elevator`]
#![forbid(unsafe_code)]

pub mod elevator;
pub mod list;
pub mod merge;
pub mod request;
pub mod rules;
pub mod sort;
pub mod time;
