//! `[[change]]`: what is written to a file of queue/ while the run goes on.

use serde::Deserialize;

/// A write to queue/scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, us from the start of the run. A write that comes while an earlier one is still under
    /// way follows it.
    pub at_us: u64,
    /// A scheduler's name, or `none`. Its attributes and nr_requests are then the defaults.
    pub scheduler: String,
    /// Name of the device. Default: all devices, one after another.
    pub device: Option<String>,
}
