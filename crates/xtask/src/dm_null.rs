//! Variants of the scenario `dm-null`, as files that a command line can name.

use std::fs;

use crate::paths;
use crate::step::{Failure, Result};

const SCENARIO: &str = "crates/cli/scenarios/dm-null.toml";

/// The scenario with other text: its file.
pub(crate) fn variant(name: &str, change: impl Fn(String) -> Result<String>) -> Result<String> {
    let text = fs::read_to_string(paths::root().join(SCENARIO));
    let text = text.map_err(|e| Failure(format!("{SCENARIO}: cannot read: {e}")))?;
    let text = change(text)?;
    let folder = paths::target_dir().join("results");
    let file = folder.join(format!("{name}.toml"));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text));
    written.map_err(|e| Failure(format!("{}: cannot write: {e}", file.display())))?;
    Ok(file.display().to_string())
}

/// null_blk without dm on top.
pub(crate) fn null_alone() -> Result<String> {
    variant("null-alone", |text| {
        let without = text.split_once("[mapped]").and_then(|(before, rest)| {
            let (_, after) = rest.split_once("[[job]]")?;
            Some(format!("{before}[[job]]{after}"))
        });
        without.ok_or_else(|| Failure(format!("{SCENARIO}: no [mapped] before [[job]]")))
    })
}

/// Replaces words that the text must have: else a row would be of the unchanged scenario.
pub(crate) fn replaced(text: &str, from: &str, to: &str) -> Result<String> {
    match text.contains(from) {
        true => Ok(text.replace(from, to)),
        false => Err(Failure(format!("{SCENARIO}: expected `{}`", from.trim()))),
    }
}
