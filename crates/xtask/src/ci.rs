//! `cargo xtask ci`: every check in order, cheapest first, with the seconds each took.
//!
//! Stops at the first failure. Needs no network once the dependencies are fetched.

use std::process::ExitCode;
use std::time::Instant;

use crate::step::{Outcome, Result};
use crate::{btt, checks, deny, determinism, reproduce, specs, tidy};

type Step = (&'static str, fn() -> Result);

const STEPS: &[Step] = &[
    ("fmt", checks::fmt),
    ("tidy", tidy::run),
    ("clippy", checks::clippy),
    ("deny", deny::run),
    ("test", checks::test),
    ("scripts", || checks::scripts(false)),
    ("determinism", determinism::run),
    ("reproduce", reproduce::run),
    ("explore", checks::explore),
    ("loom", checks::loom),
    ("specs", || specs::check(false)),
    ("mutants", specs::mutants),
    ("bench --smoke", || checks::bench(true)),
    ("btt", btt::run),
];

/// Run all steps and print a table of them.
#[expect(
    clippy::disallowed_methods,
    reason = "seconds of our own steps, not of a simulation"
)]
pub(crate) fn run() -> ExitCode {
    let start = Instant::now();
    let mut table = Vec::new();
    for (name, step) in STEPS {
        println!("\n== {name}");
        let start = Instant::now();
        let result = step();
        let seconds = start.elapsed().as_secs_f64();
        let verdict = match &result {
            Ok(Outcome::Passed) => "ok".to_owned(),
            Ok(Outcome::Skipped(reason)) => format!("skip: {reason}"),
            Err(failure) => format!("FAILED: {failure}"),
        };
        println!("-- {name}: {verdict} ({seconds:.1} s)");
        table.push(format!("{name:<14} {seconds:>7.1} s  {verdict}"));
        if result.is_err() {
            break;
        }
    }
    let done = table.len() == STEPS.len() && !table.iter().any(|row| row.contains("FAILED: "));
    println!("\n{}", table.join("\n"));
    println!(
        "{:<14} {:>7.1} s  {}",
        "ci",
        start.elapsed().as_secs_f64(),
        verdict(done)
    );
    if done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn verdict(done: bool) -> &'static str {
    if done {
        "all steps passed or said why they were skipped"
    } else {
        "FAILED"
    }
}
