//! The log that a scheduler writes to blktrace, by count: the kernel's lines compared with the
//! model's.
//!
//! `hypothesis/log.rs` compares lines.

use std::fmt;

use serde::Serialize;

use super::Divergence;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogVerdict {
    pub total: u64,
    /// Those that the model wrote, too, in this order.
    pub predicted: u64,
    /// Lines of the model only.
    pub alone: u64,
    /// The first that it did not write, or wrote otherwise.
    pub first_divergence: Option<Divergence>,
}

impl LogVerdict {
    /// Every line of the kernel, and no other.
    pub fn alike(&self) -> bool {
        self.predicted == self.total && self.alone == 0
    }

    /// The counts, in one line.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "predicted {} of {} log lines",
            self.predicted, self.total
        )?;
        super::text::write_alone(f, self.alone)
    }
}
