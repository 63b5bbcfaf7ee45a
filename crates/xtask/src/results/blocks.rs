//! The blocks that are `calculated = true` in docs/results/*.toml.

use super::runs::Blksim;
use super::{by_size, readme, specifications};
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

/// Makes a block. Nothing if a tool is missing.
pub(super) fn calculated(name: &str, blksim: &Blksim) -> Result<Option<Made>> {
    let mut files = Vec::new();
    let body = match name {
        "btt" => btt::agreement(&blksim.path)?,
        "specifications" => Some(specifications::verdicts()?),
        "accuracy" => Some(readme::accuracy()?),
        "growth" => {
            files.push((by_size::PICTURE.to_owned(), by_size::drawn()?));
            Some(by_size::table()?)
        }
        _ => return Err(Failure(format!("`{name}`: nothing calculates it"))),
    };
    Ok(body.map(|body| Made { body, files }))
}
