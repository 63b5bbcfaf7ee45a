//! The specifications below `specs/` under TLC: `blksim check` does it, here it is started.
//!
//! TLC needs Java, and Maven to be fetched; without them the check is skipped, except where
//! CI=true.

use crate::step::{self, Outcome, Result, Run};
use crate::{checks, determinism, paths};

const NEEDED: &[(&str, &str)] = &[("java", "default-jre-headless"), ("mvn", "maven")];

/// Verdicts and counts of the variants, and recorded traces.
pub(crate) fn check(full: bool) -> Result {
    run(if full { "--full" } else { "--quick" })
}

/// Every mutant is found out: wrong step machines, then wrong specifications.
pub(crate) fn mutants() -> Result {
    checks::machine_mutants()?;
    run("--mutants")
}

fn run(what: &str) -> Result {
    for (program, package) in NEEDED {
        if !paths::has_program(program) {
            return step::missing_tool(&format!("{program} is missing: apt-get install {package}"));
        }
    }
    let blksim = determinism::build("release", &["build", "--package", "blksim", "--release"])?;
    Run::new(blksim, &["check", what]).passes()?;
    Ok(Outcome::Passed)
}
