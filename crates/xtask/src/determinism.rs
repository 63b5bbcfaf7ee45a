//! Same scenario, seed and version give the same bytes: debug against release, run against run.
//!
//! Compares the JSON report of the built binary from outside; tests inside one build cannot see
//! what the other build does.

use std::path::{Path, PathBuf};

use crate::paths;
use crate::step::{Failure, Outcome, Result, Run};

/// Arguments of the runs that are compared: short, and of every kind of workload we ship.
const RUNS: &[&[&str]] = &[&["run", "smoke", "--json", "--seed", "1"]];

/// Build both profiles, run each scenario twice in debug and once in release.
pub(crate) fn run() -> Result {
    if !paths::root().join("crates/cli/scenarios").is_dir() {
        return Ok(Outcome::Skipped(
            "blksim has no built-in scenario yet".to_owned(),
        ));
    }
    let debug = build("debug", &["build", "--package", "blksim", "--locked"])?;
    let release = build(
        "release",
        &["build", "--package", "blksim", "--locked", "--release"],
    )?;
    for args in RUNS {
        let first = report(&debug, args)?;
        let runs = [("a second run", &debug), ("a release build", &release)];
        for (what, binary) in runs {
            if report(binary, args)? != first {
                let line = args.join(" ");
                return Err(Failure(format!(
                    "`blksim {line}`: {what} prints other bytes"
                )));
            }
        }
        println!(
            "blksim {}: {} equal bytes in 3 runs",
            args.join(" "),
            first.len()
        );
    }
    Ok(Outcome::Passed)
}

/// Build the binary; `profile` is the folder it ends up in.
pub(crate) fn build(profile: &str, args: &[&str]) -> Result<PathBuf> {
    Run::cargo(args).passes()?;
    Ok(paths::target_dir().join(profile).join("blksim"))
}

fn report(binary: &Path, args: &[&str]) -> Result<String> {
    let run = Run::new(binary, args);
    let line = run.line();
    let printed = run.printed()?;
    if !printed.success || printed.stdout.is_empty() {
        return Err(Failure(format!(
            "`{line}` gave no report:\n{}",
            printed.stderr
        )));
    }
    Ok(printed.stdout)
}
