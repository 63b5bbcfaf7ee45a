//! Time and machine: what the block layer of `blkmq` runs on in a simulation.
//!
//! The map: `event_queue` orders what happens, `rng` draws what is random.
#![forbid(unsafe_code)]

pub mod cost;
pub mod device;
pub mod event_queue;
pub mod machine;
pub mod plan;
pub mod profile;
pub mod recorder;
pub mod replay;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod workload;
