//! `[[change]]`: writes to files of queue/ during a run.

use serde::Deserialize;

/// A write to queue/scheduler, or to a file of queue/iosched/, during the run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Time, us from the start of the run. A write during an earlier one follows it.
    pub at_us: u64,
    /// Name of the scheduler, or `none`. Its attributes and nr_requests have their defaults.
    pub scheduler: Option<String>,
    /// Instead of `scheduler`: an attribute of the scheduler that the queue then has.
    pub attribute: Option<String>,
    /// The attribute's value.
    pub value: Option<i64>,
    /// Name of the device. Default: all devices, one after another.
    pub device: Option<String>,
}
