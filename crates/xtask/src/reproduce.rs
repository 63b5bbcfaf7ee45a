//! Published tables in short runs: no figure that was within its tolerance may leave it.
//!
//! The figures are listed in `crates/study/tables/within.txt`, for runs of this length. In full and
//! against all figures: `blksim reproduce`.

use crate::determinism;
use crate::step::{Result, Run};

/// `blksim reproduce --quick` against the list.
pub(crate) fn run() -> Result {
    let args = ["build", "--package", "blksim", "--locked", "--release"];
    let blksim = determinism::build("release", &args)?;
    let list = crate::paths::root().join("crates/study/tables/within.txt");
    let list = list.display().to_string();
    Run::new(&blksim, &["reproduce", "--quick", "--expect", &list]).passes()
}
