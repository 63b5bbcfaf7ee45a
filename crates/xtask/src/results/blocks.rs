//! The blocks that are `calculated = true` in docs/results/*.toml.

use super::runs::Blksim;
use super::{readme, specifications};
use crate::btt;
use crate::step::{Failure, Result};

/// The result of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Made {
    /// The text between the markers: whole lines.
    pub(super) body: String,
    /// Files beside it, from the top of the workspace, with their text.
    pub(super) files: Vec<(String, String)>,
}

/// Makes a block's text. Nothing if a tool is missing.
pub(super) fn calculated(name: &str, blksim: &Blksim) -> Result<Option<String>> {
    match name {
        "btt" => btt::agreement(&blksim.path),
        "specifications" => specifications::verdicts().map(Some),
        "accuracy" => readme::accuracy().map(Some),
        _ => Err(Failure(format!("`{name}`: nothing calculates it"))),
    }
}
