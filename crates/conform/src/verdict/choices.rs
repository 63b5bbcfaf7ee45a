//! Path choices of a multipath target, and results of its clones, by count: the kernel's compared
//! with the model's.
//!
//! Not here: their order (`choices/order.rs`).

use std::fmt;

use serde::Serialize;

use super::Divergence;

/// Decisions of one kind: path choices of a multipath target, or results of its clones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChoiceVerdict {
    pub total: u64,
    /// Those that the model made, too.
    pub predicted: u64,
    /// Of those the ones that depend on an order without a record: in another order, which the
    /// records allow as well, the model would have chosen otherwise.
    pub open: u64,
    /// The choices that distinguish them from rivals. None of clones.
    #[serde(rename = "distinguishing")]
    pub rivals: Option<Rivals>,
    /// The first that it did not make.
    pub first_divergence: Option<Divergence>,
}

/// Choices that distinguish the selector from others: one of both makes them in no order that the
/// records allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rivals {
    /// Those that distinguish it from any other.
    pub total: u64,
    /// Those of them that the model made.
    pub predicted: u64,
    /// Each other selector, and the other rotation.
    pub each: Vec<RivalVerdict>,
}

/// Another selector, or the other rotation of its paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RivalVerdict {
    pub name: &'static str,
    /// Choices that distinguish them.
    pub total: u64,
    /// Those of them that the model made, and not the rival.
    pub predicted: u64,
}

/// Decisions of one multipath device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetVerdict {
    pub device: String,
    pub choices: ChoiceVerdict,
    /// Results of its clones.
    pub clones: ChoiceVerdict,
}

impl ChoiceVerdict {
    /// Counts those of another device with these.
    pub(crate) fn add(&mut self, other: &ChoiceVerdict) {
        self.total += other.total;
        self.predicted += other.predicted;
        self.open += other.open;
        if let Some(rivals) = &other.rivals {
            self.rivals.get_or_insert_default().add(rivals);
        }
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
            0 => writeln!(f)?,
            open => writeln!(f, ", {open} depend on an order that no record shows")?,
        }
        self.rivals
            .as_ref()
            .map_or(Ok(()), |rivals| rivals.write(f))
    }
}

impl Rivals {
    fn add(&mut self, other: &Rivals) {
        self.total += other.total;
        self.predicted += other.predicted;
        for rival in &other.each {
            match self.each.iter_mut().find(|of| of.name == rival.name) {
                Some(of) => {
                    of.total += rival.total;
                    of.predicted += rival.predicted;
                }
                None => self.each.push(rival.clone()),
            }
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rival in &self.each {
            let (predicted, total, name) = (rival.predicted, rival.total, rival.name);
            match total {
                0 => writeln!(f, "  none distinguishes it from {name}")?,
                _ => writeln!(
                    f,
                    "  predicted {predicted}/{total} of those that distinguish it from {name}"
                )?,
            }
        }
        Ok(())
    }
}
