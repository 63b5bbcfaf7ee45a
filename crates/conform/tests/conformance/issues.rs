//! Captures of `traces/` with other dispatches.

use tempfile::TempDir;
use trace::blktrace::{self, Action};

use crate::rewritten::with_records;

/// A copy of a capture with its blktrace changed: `change` sees the D events, in order.
pub(crate) fn with_issues(name: &str, change: impl Fn(&mut Vec<blktrace::Event>)) -> TempDir {
    with_records(name, None, |events| {
        let is_issue = |event: &&mut blktrace::Event| event.action == Action::Issue;
        let mut issues: Vec<blktrace::Event> =
            events.iter_mut().filter(is_issue).map(|e| *e).collect();
        change(&mut issues);
        for (event, changed) in events.iter_mut().filter(is_issue).zip(issues) {
            *event = changed;
        }
    })
}
