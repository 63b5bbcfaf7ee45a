//! Captures of `traces/` as they are.

use conform::{Mode, Verdict};

use crate::common::{run_in, traces};

/// An unchanged capture.
pub(crate) fn run(name: &str, mode: Mode) -> Verdict {
    run_in(&traces(name), mode, None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every dispatch of a capture, and nothing that could not be explained.
#[track_caller]
pub(crate) fn assert_conforms(name: &str, mode: Mode) {
    let verdict = run(name, mode);
    assert!(verdict.total > 0, "{name}: nothing was compared");
    assert!(verdict.conforms(), "{verdict}");
    assert_eq!(verdict.first_divergence, None);
    assert!(verdict.notes.is_empty(), "{verdict}");
}
