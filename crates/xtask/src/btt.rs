//! Q2C and D2C of the captures, by `blksim import-stats` and by btt: count, mean and maximum agree.
//!
//! btt is Debian's package `blktrace`; without it the check is skipped, except where CI=true.

use crate::paths;
use crate::step::{self, Outcome, Result};

/// Compare every binary capture under `traces/`.
pub(crate) fn run() -> Result {
    if !paths::has_program("btt") {
        return step::missing_tool("btt is missing: apt-get install blktrace");
    }
    Ok(Outcome::Skipped(
        "blksim import-stats is not written yet".to_owned(),
    ))
}
