//! The reference Linux multi-queue block layer.
//!
//! No clock, no cost, no threads, no I/O: four drivers bring those (docs/architecture.md).
#![forbid(unsafe_code)]

pub mod time;
