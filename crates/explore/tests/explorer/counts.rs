//! Tables of counts beside this file: `UPDATE_COUNTS=1` writes them.

use std::fs;
use std::path::Path;

/// Compares a table with the one on file.
pub(crate) fn compare(name: &str, got: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counts");
    let path = folder.join(name);
    if std::env::var_os("UPDATE_COUNTS").is_some() {
        fs::write(&path, got).expect("a writable table");
    }
    let expected = fs::read_to_string(&path).expect("a table for each test");
    assert_eq!(got, expected, "other counts than in {name}");
}
