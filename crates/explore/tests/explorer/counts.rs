//! Tables of counts beside this file: `UPDATE_COUNTS=1` writes them.

use std::fs;
use std::path::{Path, PathBuf};

/// Compares some lines of a table with those on file.
pub(crate) fn compare_part(name: &str, got: &str) {
    let expected = fs::read_to_string(folder().join(name)).expect("a table for each test");
    let expected: Vec<&str> = expected.lines().collect();
    assert!(!got.is_empty(), "no line of {name}");
    for line in got.lines() {
        assert!(
            expected.contains(&line),
            "other counts than in {name}: {line}"
        );
    }
}

/// Compares a table with the one on file.
pub(crate) fn compare(name: &str, got: &str) {
    let path = folder().join(name);
    if std::env::var_os("UPDATE_COUNTS").is_some() {
        fs::write(&path, got).expect("a writable table");
    }
    let expected = fs::read_to_string(&path).expect("a table for each test");
    assert_eq!(got, expected, "other counts than in {name}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counts")
}
