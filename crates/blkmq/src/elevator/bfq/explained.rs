//! Decisions with lasting effect, as sentences for a report: merges for good, and a wrong count of
//! raised queues.
//!
//! Not here: all steps of merges (`merge_event.rs`), messages of blktrace (`log.rs`).

use core::fmt;

use super::Bfq;
use super::ids::QId;

/// The most sentences that are kept.
const KEPT: usize = 8;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Explained {
    first: Vec<String>,
    further: u32,
}

impl Explained {
    pub(super) fn all(&self, each: &mut dyn FnMut(&str)) {
        for line in &self.first {
            each(line);
        }
        if self.further > 0 {
            each(&format!("and {} more such decisions", self.further));
        }
    }
}

impl Bfq {
    pub(super) fn explain(&mut self, what: fmt::Arguments<'_>) {
        if self.explained.0.first.len() == KEPT {
            self.explained.0.further += 1;
            return;
        }
        let ms = self.now.0 / 1_000_000;
        let line = format!("{}.{:03} s: {what}", ms / 1000, ms % 1000);
        self.explained.0.first.push(line);
    }

    /// A stable merge of `q` into `new` is decided.
    pub(super) fn explain_merge(&mut self, q: QId, new: QId) {
        let (from, to) = (self.line_name(q), self.line_name(new));
        let pattern = |q: QId| match &self.queues[q] {
            queue if queue.flags.just_created => "new",
            queue if queue.is_seeky() => "random",
            _ => "sequential",
        };
        let (own, other, raised) = (pattern(q), pattern(new), self.wr_busy_queues);
        self.explain(format_args!(
            "{from} ({own}) is merged into {to} ({other}) for good, as both were created within \
             180 ms; raised queues that are busy: {raised}"
        ));
    }
}
