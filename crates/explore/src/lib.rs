//! Exhaustive and random exploration of the block layer's step machines: can a request be lost or
//! wait for ever, can a tag leak?
//!
//! The code is the same as in the simulator, without the clock: every order of steps, every answer
//! of the device. [`exhaustive`] visits all states of a [`Config`], breadth first, so that a
//! violation comes with a shortest schedule; [`walk`] follows one random order of a larger
//! configuration and drains it. Read next: `world.rs` for the steps, `oracle.rs` for the
//! invariants.
//!
//! [`spec`] explores specifications below `specs/` with the real paths ([`restart`], [`dispatch`])
//! and the real merge code ([`cfq_merge`], [`bfq_merge`]). [`run_recorder`] writes runs of the
//! simulator as schedules of these specifications, [`tlc`] reads and writes the files of their
//! checker.
#![forbid(unsafe_code)]

pub mod bfq_merge;
pub mod cfq_merge;
mod column;
mod config;
pub mod dispatch;
mod exhaustive;
mod fingerprint;
mod guard;
pub mod merging;
mod oracle;
mod report;
mod resources;
pub mod restart;
pub mod run_recorder;
mod search;
mod seen;
pub mod spec;
pub mod tlc;
mod walk;
mod world;

pub use config::{Config, Mutant, Paths, Promises, Refusal, Stops, Task};
pub use exhaustive::exhaustive;
pub use report::{Report, Step, Verdict};

pub use resources::{Halt, OpenFile, Progress, Resources, Spill};
pub use walk::{soak, walk};
