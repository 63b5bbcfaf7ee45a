//! From single events to the life of an I/O.
//!
//! `Matcher` follows bios and requests through merges, splits, requeues and remaps, and returns one
//! `Io` for each bio; `Btt` counts spans as the tool btt does.

mod activity;
mod btt;
mod flushes;
mod io;
mod latencies;
pub(crate) mod latency;
mod live;
mod matcher;
mod requests;
mod table;

pub use activity::{Activity, Periods, Plugs, Seeks};
pub use btt::{Btt, BttDevice, BttTable};
pub use io::{Io, Join, Origin};
pub use latencies::Latencies;
pub use latency::Latency;
pub use matcher::Matcher;

/// Unfinished bios kept for each device: bios that never complete must not exhaust memory.
const LIMIT: usize = 1 << 18;
