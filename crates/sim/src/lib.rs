//! Time and machine: what the block layer of `blkmq` runs on in a simulation.
//!
//! The layers, each of which uses only those above it (`cargo xtask tidy` looks for circles):
//!
//! | Layer | What |
//! |---|---|
//! | `rng`, `event_queue` | what is random; the order of what happens |
//! | `step`, `profile`, `cost` | what is done outside the block layer; facts and prices; times |
//! | `page_cache`, `readahead` | pages of a file, and which are read before they are asked for |
//! | `plan` | what is run, all of it decided (crate `scenario`: what was asked for) |
//! | `recorder` | what happened |
//! | `workload`, `replay` | sources of I/O: jobs; the arrivals of a capture |
//! | `device` | null_blk, NVMe, scsi_debug, fc, disk, captured, mapped; faults around any of them |
//! | `machine` | CPUs, tasks, locks, workers: the run itself |
#![forbid(unsafe_code)]

pub mod cost;
pub mod device;
pub mod event_queue;
pub mod machine;
pub mod page_cache;
pub mod plan;
pub mod profile;
pub mod readahead;
pub mod recorder;
pub mod replay;
pub mod rng;
pub mod step;
pub mod workload;
