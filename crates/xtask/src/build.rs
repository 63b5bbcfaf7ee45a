//! The program as its checks run it: in which profile, and where it is then.

use std::path::PathBuf;

use crate::paths;
use crate::step::{Result, Run};

/// An optimised build of `blksim`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Build {
    /// As it is used: long to build, so that what takes one belongs to `ci --full`.
    Release,
    /// In the profile of the explorer, whose dependencies it shares: without optimisation across
    /// crates, and what overflows is an error. Prints the same bytes, with more instructions.
    Checks,
}

impl Build {
    /// The profile, as Cargo.toml and the folder under `target` have it.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Build::Release => "release",
            Build::Checks => "explore",
        }
    }

    /// Builds it and tells where it is.
    pub(crate) fn blksim(self) -> Result<PathBuf> {
        let args = ["build", "--package", "blksim", "--locked", "--profile"];
        Run::cargo(&args).arg(self.profile()).passes()?;
        Ok(paths::target_dir().join(self.profile()).join("blksim"))
    }
}
