//! Time and machine: what the block layer of `blkmq` runs on in a simulation.
//!
//! The map: `event_queue` orders what happens, `rng` draws what is random.
#![forbid(unsafe_code)]

pub mod conform;
pub mod device;
pub mod event_queue;
pub mod plan;
pub mod rng;
pub mod scenario;
