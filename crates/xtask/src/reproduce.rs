//! Published tables: no figure that was within its tolerance may leave it.
//!
//! The figures are listed in `crates/study/tables/within.txt`.

use crate::determinism;
use crate::step::{Result, Run};

/// `blksim reproduce` against the list.
pub(crate) fn run() -> Result {
    let args = ["build", "--package", "blksim", "--locked", "--release"];
    let blksim = determinism::build("release", &args)?;
    let list = crate::paths::root().join("crates/study/tables/within.txt");
    let list = list.display().to_string();
    Run::new(&blksim, &["reproduce", "--expect", &list]).passes()
}
