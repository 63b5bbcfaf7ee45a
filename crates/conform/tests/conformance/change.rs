//! Captures of `traces/` with one file changed.

use std::fs;

use tempfile::TempDir;
use trace::capture::CaptureDir;
use trace::text::Lines;

use crate::common::traces;

/// A copy of a capture, unpacked, with one text changed.
pub(crate) fn changed(name: &str, file: &str, change: impl Fn(&str) -> String) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let source = CaptureDir::open(&traces(name)).unwrap();
    for (bare, path) in &source.files {
        if bare == file {
            let mut lines = Lines::open(path).unwrap();
            let mut text = String::new();
            while lines.advance().unwrap() {
                text.push_str(lines.line());
                text.push('\n');
            }
            fs::write(copy.path().join(bare), change(&text)).unwrap();
        } else {
            let packed = path.file_name().unwrap();
            fs::copy(path, copy.path().join(packed)).unwrap();
        }
    }
    copy
}
