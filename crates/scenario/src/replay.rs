//! Replays: captures read, the scenario of a capture, captured and simulated side by side.
//!
//! The map: `read.rs` makes `Arrivals` (`sim/src/replay.rs`) of a capture, `priority.rs` adds what
//! blktrace does not record, `setup.rs` makes the scenario, `sim/src/machine/replay.rs` plays,
//! `compare.rs` puts the numbers side by side. Not here: the scheduler's decisions call by call,
//! which are the crate `conform`.

mod compare;
mod plugs;
mod priority;
mod read;
mod setup;

pub use compare::{Agreement, CLOSED_LOOP, Column, Comparison, OPEN_LOOP, Spread};
pub use priority::{PrioritySource, prioritise};
pub use read::{ReadError, read};
pub use setup::{CAPTURED, Captured, SetupError, Wanted, drive_file, fit, scenario};
