//! A verdict as text, in reading order: the assumptions, the first difference, and in the last line
//! the count.

use std::fmt;

use super::{Divergence, Verdict};

/// Assumptions and notes first, then the first divergence with both queues, last the count.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} under rules {}, mode {}",
            self.capture,
            self.scheduler,
            self.rules,
            self.mode.name()
        )?;
        if let Some(why) = self.chosen {
            writeln!(f, "mode {}: {why}", self.mode.name())?;
        }
        for taken in &self.taken {
            writeln!(f, "taken: {taken}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let (events, log) = (&self.scheduler_events, &self.log);
        let (choices, clones) = (&self.choices, &self.clones);
        let firsts = [
            ("dispatch", self.first_divergence.as_ref()),
            (
                "event",
                events.as_ref().and_then(|of| of.first_divergence.as_ref()),
            ),
            (
                "line",
                log.as_ref().and_then(|of| of.first_divergence.as_ref()),
            ),
            (
                "path choice",
                choices.as_ref().and_then(|of| of.first_divergence.as_ref()),
            ),
            (
                "clone",
                clones.as_ref().and_then(|of| of.first_divergence.as_ref()),
            ),
        ];
        for (what, first) in firsts {
            first.map_or(Ok(()), |first| write_first(f, what, first))?;
        }
        for target in &self.unjudged_targets {
            writeln!(f, "cannot be judged: {target}")?;
        }
        for (reason, count) in &self.unjudged {
            writeln!(f, "cannot be judged: {count}, {reason}")?;
        }
        if let Some(events) = events {
            events.write(f)?;
        }
        if let Some(log) = log {
            log.write(f)?;
        }
        for target in self.targets.iter().filter(|_| self.targets.len() > 1) {
            write!(f, "{}: ", target.device)?;
            target.choices.write(f, "path choices")?;
        }
        if let Some(choices) = choices {
            choices.write(f, "path choices")?;
        }
        if let Some(clones) = clones.as_ref().filter(|clones| clones.total > 0) {
            clones.write(f, "clones with a tag or back for want of one")?;
        }
        write!(f, "predicted {}/{} dispatches", self.predicted, self.total)
    }
}

fn write_first(f: &mut fmt::Formatter<'_>, what: &str, first: &Divergence) -> fmt::Result {
    writeln!(
        f,
        "first divergence: {what} {} of {} at {}",
        first.index, first.device, first.time
    )?;
    writeln!(f, "kernel: {}", first.kernel)?;
    writeln!(f, "model:  {}", first.model)?;
    writeln!(f, "{}", first.text.trim_end())
}

/// The end of a line of counts: those that the model has and the kernel has not.
pub(super) fn write_alone(f: &mut fmt::Formatter<'_>, alone: u64) -> fmt::Result {
    match alone {
        0 => writeln!(f),
        alone => writeln!(f, ", {alone} only of the model"),
    }
}
