//! Captures of `traces/`, as they are and with one file changed.

use std::fs;
use std::path::{Path, PathBuf};

use blkmq::rules::Rules;
use conform::{Error, Mode, Options, Verdict};
use tempfile::TempDir;
use trace::capture::CaptureDir;
use trace::text::Lines;

pub(crate) fn traces(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces")
        .join(name)
}

pub(crate) fn run_in(dir: &Path, mode: Mode, rules: Option<Rules>) -> Result<Verdict, Error> {
    let options = Options {
        mode: Some(mode),
        trace_device: None,
        rules,
        rotational_when_chosen: None,
    };
    conform::run(&CaptureDir::open(dir)?, &options)
}

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
