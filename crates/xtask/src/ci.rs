//! `cargo xtask ci`: every check in order, cheapest first, with the seconds each took.
//!
//! Stops at the first failure. Needs no network once the dependencies are fetched.

use std::process::ExitCode;
use std::time::Instant;

use crate::step::{Outcome, Result};
use crate::{
    bench_explore, btt, checks, deny, determinism, growth, kernel, mutants, reference, reproduce,
    results, specs, speed, sweeps, tidy, wheel,
};

type Step = (&'static str, fn() -> Result);

const STEPS: &[Step] = &[
    ("fmt", checks::fmt),
    ("tidy", tidy::run),
    ("build", checks::build),
    ("test", checks::test),
    ("integration", checks::integration),
    ("examples", checks::examples),
    ("wheel", || wheel::test(false)),
    ("reference", || reference::run(true)),
    ("determinism", || determinism::run(25)),
    ("reproduce", reproduce::run),
    ("loom", checks::loom),
    ("specs", || specs::check(false)),
    ("specs, mutants", || specs::mutants(false)),
    ("speed", speed::quick),
    ("btt", btt::run),
    ("differential", || kernel::differential(20_000)),
    ("kills", || sweeps::kills(12, 100)),
    ("slurm", sweeps::slurm),
    ("results --quick", || results(true)),
];

/// Steps that take too long for every change: `--full` runs them as well, before an issue is
/// resolved.
const LONG_STEPS: &[Step] = &[
    ("deny", deny::run),
    ("clippy, loom", checks::clippy_loom),
    ("doc", checks::doc),
    ("tests, debug", checks::test_debug),
    ("explore, debug", checks::explore_debug),
    ("tests, long", checks::integration_long),
    ("specs --full", || specs::check(true)),
    ("specs, mutants, all", || specs::mutants(true)),
    ("mutants, one in 16", mutants::some),
    ("fuzz", checks::fuzz_long),
    ("determinism, long", || determinism::run(250)),
    ("kills --full", || sweeps::kills(200, 1000)),
    ("wheel --full", || wheel::test(true)),
    ("soak", || checks::soak(SOAK_SEED, Some(3))),
    ("bench --smoke", || checks::bench(true)),
    ("bench explore", bench_explore::run),
    ("speed, dist", speed::run),
    ("speed, mapped", speed::run_mapped),
    ("differential, long", || kernel::differential(1_000_000)),
    ("growth", || growth::run(false)),
    ("results", || results(false)),
];

/// The figures of README.md and docs/ are those of their runs: all of them, or the quick ones.
fn results(quick: bool) -> Result {
    let args = results::ResultsArgs {
        check: true,
        quick,
        only: Vec::new(),
    };
    results::run(&args)
}

/// Seed of the first of the rounds.
const SOAK_SEED: u64 = 1;

/// Run all steps and print a table of them.
#[expect(
    clippy::disallowed_methods,
    reason = "seconds of our own steps, not of a simulation"
)]
pub(crate) fn run(full: bool, only: &[String]) -> ExitCode {
    let start = Instant::now();
    let steps = match chosen(full, only) {
        Ok(steps) => steps,
        Err(message) => {
            eprintln!("failed: {message}");
            return ExitCode::FAILURE;
        }
    };
    let mut table = Vec::new();
    for (name, step) in &steps {
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
    let done = table.len() == steps.len() && !table.iter().any(|row| row.contains("FAILED: "));
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

/// The steps of a run, in their order; `only` may name long ones as well.
fn chosen(full: bool, only: &[String]) -> std::result::Result<Vec<&'static Step>, String> {
    let all = || STEPS.iter().chain(LONG_STEPS);
    if only.is_empty() {
        return Ok(all()
            .take(if full { usize::MAX } else { STEPS.len() })
            .collect());
    }
    if let Some(name) = only.iter().find(|name| !all().any(|step| step.0 == **name)) {
        let names: Vec<&str> = all().map(|step| step.0).collect();
        return Err(format!("no step `{name}`; there are: {}", names.join("; ")));
    }
    Ok(all()
        .filter(|step| only.iter().any(|name| name == step.0))
        .collect())
}

fn verdict(done: bool) -> &'static str {
    if done {
        "all steps passed or said why they were skipped"
    } else {
        "FAILED"
    }
}
