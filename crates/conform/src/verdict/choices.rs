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

/// What one multipath device decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetVerdict {
    /// Its name.
    pub device: String,
    /// Paths.
    pub choices: ChoiceVerdict,
    /// What became of its clones.
    pub clones: ChoiceVerdict,
}

impl ChoiceVerdict {
    /// Counts those of another device with these.
    pub(crate) fn add(&mut self, other: &ChoiceVerdict) {
        self.total += other.total;
        self.predicted += other.predicted;
        self.open += other.open;
        let firsts = [self.first_divergence.take(), other.first_divergence.clone()];
        let firsts = firsts.into_iter().flatten();
        self.first_divergence = firsts.min_by_key(|first| first.time);
    }

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

impl Serialize for TargetVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("TargetVerdict", 3)?;
        object.serialize_field("device", &self.device)?;
        object.serialize_field("choices", &self.choices)?;
        object.serialize_field("clones", &self.clones)?;
        object.end()
    }
}
