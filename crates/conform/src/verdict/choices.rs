//! Path choices of a multipath target, and what became of its clones, by count: the kernel's
//! against the model's.
//!
//! Not here: in which order they were made (`choices/order.rs`).

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Divergence;

/// Decisions of one kind: path choices of a multipath target, or what became of its clones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoiceVerdict {
    /// The kernel's.
    pub total: u64,
    /// Those that the model made, too.
    pub predicted: u64,
    /// Of those the ones that hang on an order that no record tells: in another one, which the
    /// records allow as well, the model would have chosen otherwise.
    pub open: u64,
    /// The first that it did not make.
    pub first_divergence: Option<Divergence>,
}

impl ChoiceVerdict {
    /// Every choice of the kernel.
    pub fn alike(&self) -> bool {
        self.predicted == self.total
    }

    /// The counts, in one line.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let (predicted, total) = (self.predicted, self.total);
        write!(f, "predicted {predicted}/{total} {what}")?;
        match self.open {
            0 => writeln!(f),
            open => writeln!(f, ", {open} hang on an order that no record tells"),
        }
    }
}

impl Serialize for ChoiceVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ChoiceVerdict", 4)?;
        object.serialize_field("total", &self.total)?;
        object.serialize_field("predicted", &self.predicted)?;
        object.serialize_field("open", &self.open)?;
        object.serialize_field("first_divergence", &self.first_divergence)?;
        object.end()
    }
}
