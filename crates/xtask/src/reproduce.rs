//! Published tables: no figure that was within its tolerance may leave it.
//!
//! The figures are listed in `crates/study/tables/within.txt`.

use crate::build::Build;
use crate::step::{Result, Run};

/// `blksim reproduce` against the list.
pub(crate) fn run() -> Result {
    let blksim = Build::Release.blksim()?;
    let list = crate::paths::root().join("crates/study/tables/within.txt");
    let list = list.display().to_string();
    Run::new(&blksim, &["reproduce", "--expect", &list]).passes()
}
