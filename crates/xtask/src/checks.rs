//! The checks that are one cargo command each.
//!
//! A check whose tests are not written yet is skipped with that reason.

use std::fs;
use std::path::Path;

use crate::paths;
use crate::step::{Failure, Outcome, Result, Run};

/// Sources are formatted.
pub(crate) fn fmt() -> Result {
    Run::cargo(&["fmt", "--all", "--", "--check"]).passes()
}

/// No warning from the compiler or clippy, in any target.
pub(crate) fn clippy() -> Result {
    Run::cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ])
    .passes()
}

/// The same of what only `loom` compiles.
pub(crate) fn clippy_loom() -> Result {
    under_loom("clippy")
        .arg("--")
        .arg("-D")
        .arg("warnings")
        .passes()
}

/// Unit, integration and documentation tests in a debug build; those of the explorer's
/// configurations have a build of their own, in `explore`, and benchmarks in `bench`.
pub(crate) fn test() -> Result {
    of_tests("test").passes()
}

/// The tests that `test` leaves out as they take longer than all they could be about alone.
pub(crate) fn test_long() -> Result {
    of_tests("test").arg("--").arg("--ignored").passes()
}

/// A cargo command over what `test` builds. Features of dependencies hang on the selection: another
/// one would build all of them once more.
pub(crate) fn of_tests(command: &str) -> Run {
    let run = [
        command,
        "--workspace",
        "--exclude",
        "blksim-explore",
        "--exclude",
        "blksim-benches",
        "--locked",
    ];
    Run::cargo(&run)
}

/// The small configurations of the explorer with the assertions of a debug build.
pub(crate) fn explore_debug() -> Result {
    Run::cargo(&["test", "--package", "blksim-explore", "--locked"]).passes()
}

/// Scheduler scripts, or their expectations written anew.
pub(crate) fn scripts(rewrite: bool) -> Result {
    if let Some(skip) = absent("crates/blkmq/tests/scripts.rs") {
        return Ok(skip);
    }
    let run = Run::cargo(&[
        "test",
        "--package",
        "blkmq",
        "--test",
        "scripts",
        "--locked",
    ]);
    if rewrite {
        run.env("UPDATE_SCRIPTS", "1").passes()
    } else {
        run.passes()
    }
}

/// The exploration that fits into minutes, or also the tests that are ignored as they take longer.
pub(crate) fn explore(full: bool) -> Result {
    let dir = paths::root().join("crates/explore");
    if !paths::rust_files(&dir).iter().any(|path| has_test(path)) {
        return Ok(Outcome::Skipped(
            "crates/explore has no test yet".to_owned(),
        ));
    }
    explorer().passes()?;
    if full {
        explore_long()
    } else {
        Ok(Outcome::Passed)
    }
}

/// What the exploration leaves out as it takes minutes: the tests that are ignored, whatever the
/// build.
pub(crate) fn explore_long() -> Result {
    explorer().arg("--").arg("--ignored").passes()
}

/// Changed copies of all captures, where the tests take some of them.
pub(crate) fn fuzz_long() -> Result {
    let run = [
        "test",
        "--package",
        "blksim-conform",
        "--test",
        "fuzz",
        "--locked",
    ];
    Run::cargo(&run).env("FUZZ_ROUNDS", "2").passes()
}

/// A cargo command over the tests of the explorer, in their own profile.
fn explorer() -> Run {
    Run::cargo(&[
        "test",
        "--package",
        "blksim-explore",
        "--profile",
        "explore",
        "--locked",
    ])
}

/// Programs that use the library: they are built and run, and print what their lines begin with.
pub(crate) fn examples() -> Result {
    const PRINTS: &[(&str, &[&str])] = &[(
        "own-scheduler",
        &["scheduler", "mq-deadline", "reads-first"],
    )];
    for (example, lines) in PRINTS {
        let run = of_tests("build").arg("--example").arg(example);
        run.passes()?;
        let program = paths::target_dir().join("debug/examples").join(example);
        let out = Run::new(&program, &[]).stdout()?;
        let out = String::from_utf8_lossy(&out);
        let begins: Vec<&str> = out
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        if begins != *lines {
            return Err(Failure(format!(
                "{example}: expected {lines:?}, got\n{out}"
            )));
        }
        print!("{out}");
    }
    Ok(Outcome::Passed)
}

/// The step machines on loom's threads, in a target directory of their own.
pub(crate) fn loom() -> Result {
    if let Some(skip) = absent("crates/blkmq/tests/loom.rs") {
        return Ok(skip);
    }
    under_loom("test").passes()
}

/// A cargo command over the loom tests.
fn under_loom(command: &str) -> Run {
    // The flag would otherwise rebuild every dependency, twice per run of ci. Not the release
    // build: its large inlined frames overflow the small stacks that loom gives its threads.
    Run::cargo(&[command, "--package", "blkmq", "--test", "loom", "--locked"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", paths::target_dir().join("loom"))
}

/// Tests in which a defect of a step machine must be found, and its repaired form clean: those of
/// the explorer, those of the walks, and those under loom.
pub(crate) fn machine_mutants() -> Result {
    const TESTS: &[&str] = &[
        "exhaustive",
        "restart",
        "corpus",
        "series",
        "dispatch",
        "shared",
        "soak",
        "switch",
        "tokens",
        "kyber",
        "bfq",
    ];
    let mut run = explorer();
    for test in TESTS {
        run = run.arg("--test").arg(test);
    }
    // Clean spaces without a defect beside them are left to `explore`.
    run.arg("--")
        .arg("--skip")
        .arg("configurations")
        .arg("--skip")
        .arg("walks_end")
        .arg("--skip")
        .arg("every_variant")
        .arg("--include-ignored")
        .arg("--skip")
        .arg("loses_nothing_of_two_tasks")
        .arg("--skip")
        .arg("leave_nothing_of_three")
        .passes()?;
    under_loom("test").passes()
}

/// Benchmarks in full, or each once in a debug build: what they measure is not judged then, and
/// their libraries are built already.
pub(crate) fn bench(smoke: bool) -> Result {
    let dir = paths::root().join("benches/benches");
    if paths::rust_files(&dir).is_empty() {
        return Ok(Outcome::Skipped("benches/benches is empty".to_owned()));
    }
    if !smoke {
        let all = [
            "bench",
            "--package",
            "blksim-benches",
            "--benches",
            "--locked",
        ];
        return Run::cargo(&all).passes();
    }
    // Named one by one in the whole workspace: so the libraries are those that `test` has built,
    // with the same features.
    let mut run = Run::cargo(&["bench", "--workspace", "--locked", "--profile", "dev"]);
    for bench in paths::rust_files(&dir) {
        let Some(name) = bench.file_stem() else {
            continue;
        };
        run = run.arg("--bench").arg(name);
    }
    run.arg("--").arg("--test").passes()
}

/// Random exploration round after round, each with a seed that repeats it.
pub(crate) fn soak(seed: u64, rounds: Option<u64>) -> Result {
    if let Some(skip) = absent("crates/explore/tests/soak.rs") {
        return Ok(skip);
    }
    let last = rounds.map_or(u64::MAX, |rounds| seed.saturating_add(rounds));
    for seed in seed..last {
        println!("soak --seed {seed} --rounds 1");
        explorer()
            .arg("--quiet")
            .arg("--test")
            .arg("soak")
            .env("SOAK_SEED", seed.to_string())
            .passes()?;
    }
    Ok(Outcome::Passed)
}

fn absent(file: &str) -> Option<Outcome> {
    let there = paths::root().join(file).is_file();
    (!there).then(|| Outcome::Skipped(format!("{file} is not written yet")))
}

fn has_test(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.contains("#[test]"))
}
