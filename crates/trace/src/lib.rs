//! File formats: blktrace, ftrace, fio jobs, capture folders; matching of I/Os.
//!
//! A leaf crate: reads and writes bytes and records. No simulation, no printing, no wall clock.
//! Read next: `blktrace.rs` for the binary format, `matching.rs` for the life of an I/O.
#![forbid(unsafe_code)]

mod analyze;
pub mod blkparse;
pub mod blktrace;
pub mod capture;
pub mod cgroup;
mod error;
pub mod fio;
pub mod ftrace;
pub mod io_txt;
mod line_format;
pub mod matching;
pub mod meta;
mod packed;
pub mod priorities;
pub mod processes;
pub mod queue_txt;
pub mod text;

pub use analyze::{
    Analysis, Bin, DeviceAnalysis, Group, Groups, Offsets, OverTime, analyze, direction,
};
pub use error::{Error, Result};
