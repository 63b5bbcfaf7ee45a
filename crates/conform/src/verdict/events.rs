//! Events of a scheduler with tokens, by count: the kernel's compared with the model's.
//!
//! Events of its timer are one count, failed attempts to get a token another: those come inside a
//! dispatch call, and the records may not show the state that the call saw. Read first:
//! `scheduler_event.rs` of the crate, which has the events.

use std::fmt;

use serde::Serialize;

use super::Divergence;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SchedulerEvents {
    pub total: u64,
    /// Events of both.
    pub predicted: u64,
    /// Events of the model only.
    pub alone: u64,
    /// Looks for a token that found none, of the kernel. Not among `total`.
    pub throttled: u64,
    /// Attempts that failed in the model, too.
    pub throttled_alike: u64,
    /// Those that did not, in calls in which a request ended: no record shows whether its token
    /// came back before or after the attempt.
    pub throttled_undecided: u64,
    /// Attempts that failed only in the model.
    #[serde(rename = "throttled_alone")]
    pub throttled_model_only: u64,
    /// The first event that the model lacks or has otherwise.
    pub first_divergence: Option<Divergence>,
}

impl SchedulerEvents {
    /// Every event of the kernel that the capture can decide about, and no other.
    pub fn alike(&self) -> bool {
        let decided = self.throttled - self.throttled_undecided;
        self.predicted == self.total
            && self.alone == 0
            && self.throttled_alike == decided
            && self.throttled_model_only == 0
    }

    /// The kernel and the model have the same event.
    pub(crate) fn have(&mut self, of_timer: bool) {
        let (all, alike) = match of_timer {
            true => (&mut self.total, &mut self.predicted),
            false => (&mut self.throttled, &mut self.throttled_alike),
        };
        *all += 1;
        *alike += 1;
    }

    /// Whether events of failed attempts were traced shows only where there is one. If not, those
    /// of the model do not count, and this returns a note.
    pub(crate) fn without_untraced(&mut self) -> Option<String> {
        if self.throttled > 0 || self.throttled_model_only == 0 {
            return None;
        }
        let alone = std::mem::take(&mut self.throttled_model_only);
        Some(format!(
            "the model finds no token {alone} times, the capture has no such event: perhaps \
             untraced"
        ))
    }

    /// Both counts, a line each.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (predicted, total) = (self.predicted, self.total);
        write!(f, "predicted {predicted}/{total} events of the scheduler")?;
        super::text::write_alone(f, self.alone)?;
        if self.throttled == 0 {
            return Ok(());
        }
        let (alike, all) = (self.throttled_alike, self.throttled);
        write!(
            f,
            "without a token for a request in both: {alike} of {all} times"
        )?;
        if self.throttled_undecided > 0 {
            let undecided = self.throttled_undecided;
            write!(
                f,
                ", {undecided} not decidable: a request ended in the same call"
            )?;
        }
        super::text::write_alone(f, self.throttled_model_only)
    }
}
