//! The reference Linux multi-queue block layer.
//!
//! No clock, no cost, no threads, no I/O: four drivers bring those. Read first:
//! docs/internals/architecture.md.
//!
//! To run it, begin with the simulator (the front page of `blksim-scenario`). To drive it by
//! yourself: [`BlkMq::new`](queue::BlkMq::new) makes a queue with its tags, a
//! [`Frame`](path::Frame) is a call of the kernel, and [`drive`] steps frames over a
//! [`Driver`](drive::Driver) and a [`Machine`](drive::Machine) of yours. A scheduler of your own is
//! a policy: `crates/cli/examples/own-scheduler.rs`.
//!
//! * values: [`time`], [`request`], [`waiter`], [`rules`]
//! * containers: [`list`], [`rbtree`], [`sort`], [`sbitmap`]
//! * schedulers: [`elevator`], [`merge`]
//! * devices over others: [`dm`]
//! * a task's plug, and calls of paths: [`plug`], [`call`]
//! * the seam: [`env`](mod@env), [`path`], [`drive`]
//! * state: [`queue`], [`tags`]
//! * orders of steps: [`schedule`]
#![forbid(unsafe_code)]

pub mod call;
pub mod dm;
pub mod drive;
pub mod elevator;
pub mod env;
pub mod list;
pub mod merge;
mod names;
mod not_state;
pub mod path;
pub mod plug;
pub mod queue;
pub mod rbtree;
pub mod request;
pub mod rules;
pub mod sbitmap;
pub mod schedule;
pub mod sort;
mod step;
pub mod tags;
pub mod time;
pub mod waiter;
