//! The optimised builds of the program, and where they are.

use std::fs;
use std::path::PathBuf;

use crate::paths;
use crate::step::{Failure, Outcome, Result, Run};

/// An optimised build of `blksim`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Build {
    /// The build of users and of `ci`: quick to build.
    Release,
    /// Optimised across crates and stripped: for published figures and for installing.
    Dist,
}

impl Build {
    /// The profile, as Cargo.toml and the folder under `target` have it.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Build::Release => "release",
            Build::Dist => "dist",
        }
    }

    /// Builds it and returns its path.
    pub(crate) fn blksim(self) -> Result<PathBuf> {
        // Cargo unifies the features of dependencies over all chosen targets: with the examples
        // they are those of the tests, and a check does not build the tree twice.
        let build = match self {
            Build::Release => of_tests("build").arg("--examples"),
            Build::Dist => Run::cargo("build --locked --package blksim"),
        };
        let build = build.arg("--bin").arg("blksim").arg("--profile");
        build.arg(self.profile()).passes()?;
        Ok(paths::target_dir().join(self.profile()).join("blksim"))
    }
}

/// A cargo command over all packages that `ci` tests. Cargo unifies the features of dependencies
/// over the chosen packages: another choice would build all of them once more.
pub(crate) fn of_tests(command: &str) -> Run {
    Run::cargo(command).args("--workspace --exclude blksim-benches --locked")
}

/// `cargo xtask dist`: the program to install.
pub(crate) fn dist() -> Result {
    let blksim = Build::Dist.blksim()?;
    let bytes = fs::metadata(&blksim).map_err(|e| Failure(format!("{}: {e}", blksim.display())))?;
    println!("{}: {} KiB", blksim.display(), bytes.len() / 1024);
    Ok(Outcome::Passed)
}
