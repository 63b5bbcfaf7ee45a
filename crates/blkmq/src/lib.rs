//! The reference Linux multi-queue block layer.
//!
//! No clock, no cost, no threads, no I/O: four drivers bring those. Read first:
//! docs/internals/architecture.md.
//!
//! * values: [`time`], [`request`], [`rules`]
//! * containers: [`list`], [`rbtree`], [`sort`], [`sbitmap`]
//! * schedulers: [`elevator`], [`merge`]
//! * devices over others: [`dm`]
//! * the seam: [`env`](mod@env), [`path`], [`drive`]
//! * state: [`queue`], [`tags`]
//! * orders of steps: [`schedule`]
#![forbid(unsafe_code)]

pub mod dm;
pub mod drive;
pub mod elevator;
pub mod env;
pub mod list;
pub mod merge;
mod names;
pub mod path;
pub mod queue;
pub mod rbtree;
pub mod request;
pub mod rules;
pub mod sbitmap;
pub mod schedule;
pub mod sort;
pub mod tags;
pub mod time;
