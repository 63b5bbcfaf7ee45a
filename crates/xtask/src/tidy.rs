//! House rules that no compiler checks.

use std::fs;

use crate::paths;
use crate::step::{Failure, Outcome, Result};

/// Check the tree.
pub(crate) fn run() -> Result {
    for path in paths::rust_files(&paths::root().join("crates")) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if let Some(line) = text.lines().position(|line| line.chars().count() > 100) {
            return Err(Failure(format!(
                "{}:{}: over 100 columns",
                path.display(),
                line + 1
            )));
        }
    }
    Ok(Outcome::Passed)
}
