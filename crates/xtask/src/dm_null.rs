//! Variants of the scenario `dm-null`, as files that a command line can name.

use std::fs;

use crate::paths;
use crate::step::{Failure, Result};

const SCENARIO: &str = "crates/cli/scenarios/dm-null.toml";

/// The scenario with other text: its file.
pub(crate) fn variant(name: &str, change: impl Fn(String) -> String) -> Result<String> {
    let text = fs::read_to_string(paths::root().join(SCENARIO));
    let text = text.map_err(|e| Failure(format!("{SCENARIO}: cannot read: {e}")))?;
    let folder = paths::target_dir().join("results");
    let file = folder.join(format!("{name}.toml"));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, change(text)));
    written.map_err(|e| Failure(format!("{}: cannot write: {e}", file.display())))?;
    Ok(file.display().to_string())
}

/// null_blk without dm on top.
pub(crate) fn null_alone() -> Result<String> {
    variant("null-alone", |text| {
        let (before, rest) = text.split_once("[mapped]").expect("a mapped device");
        let (_, behind) = rest.split_once("[[job]]").expect("a job");
        format!("{before}[[job]]{behind}")
    })
}
