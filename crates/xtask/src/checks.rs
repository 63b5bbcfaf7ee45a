//! The checks that are one cargo command each.

use crate::build::{Build, of_tests};
use crate::paths;
use crate::step::{Failure, Outcome, Result, Run, missing_tool};

/// Sources are formatted.
pub(crate) fn fmt() -> Result {
    Run::cargo("fmt --all -- --check").passes()
}

/// No warning from the compiler or clippy, in any target.
fn clippy() -> Result {
    let run = Run::cargo("clippy --workspace --all-targets --locked");
    run.args("-- -D warnings").passes()
}

/// The same for code that only `loom` compiles.
pub(crate) fn clippy_loom() -> Result {
    under_loom("clippy").args("-- -D warnings").passes()
}

/// Builds everything for the steps after it, both cores busy: lints and the debug build of the unit
/// tests next to the release build of the program and of all other tests.
pub(crate) fn build() -> Result {
    std::thread::scope(|scope| {
        let release = scope.spawn(|| integration_tests().arg("--no-run").passes());
        clippy()?;
        unit_tests().arg("--no-run").passes()?;
        let release = release.join();
        release.unwrap_or_else(|_| Err(Failure("the release build ended".to_owned())))
    })
}

/// Unit tests, with the assertions of a debug build.
pub(crate) fn test() -> Result {
    unit_tests().passes()
}

fn unit_tests() -> Run {
    of_tests("test").arg("--lib").arg("--bins")
}

/// Tests of whole runs, captures, command lines and small explorations, in a release build.
pub(crate) fn integration() -> Result {
    integration_tests().passes()
}

fn integration_tests() -> Run {
    of_tests("test").arg("--release").arg("--test").arg("*")
}

/// The tests that `integration` leaves out as they take minutes.
pub(crate) fn integration_long() -> Result {
    integration_tests().args("-- --ignored").passes()
}

/// All tests with the assertions of a debug build, which look at every label; those of the explorer
/// are `explore_debug`.
pub(crate) fn test_debug() -> Result {
    let run = of_tests("test").arg("--exclude").arg("blksim-explore");
    run.args("-- --include-ignored").passes()
}

/// Runs the scheduler scripts, or rewrites their expectations.
pub(crate) fn scripts(rewrite: bool) -> Result {
    let run = Run::cargo("test --package blkmq --test scripts --locked");
    if rewrite {
        run.env("UPDATE_SCRIPTS", "1").passes()
    } else {
        run.passes()
    }
}

/// Runs the explorer's configurations that take seconds, with the assertions of a debug build.
pub(crate) fn explore_debug() -> Result {
    Run::cargo("test --package blksim-explore --locked").passes()
}

/// Changed copies of all captures, where the tests take some of them, and of formats' samples.
pub(crate) fn fuzz_long() -> Result {
    let run = of_tests("test").args("--release --test conformance fuzz::");
    run.env("FUZZ_ROUNDS", "2").passes()?;
    let run = of_tests("test").args("--release --test formats fuzz::");
    run.env("FUZZ_SECONDS", "60").passes()?;
    let run = of_tests("test").args("--release --lib samples::tests::fuzz");
    run.env("FUZZ_SECONDS", "20").passes()
}

/// Programs that use the library: they are built and run, and their output begins with these lines.
pub(crate) fn examples() -> Result {
    const PRINTS: &[(&str, &[&str])] = &[(
        "own-scheduler",
        &["scheduler", "mq-deadline", "few-writes", "reads-first"],
    )];
    for (example, lines) in PRINTS {
        Build::Release.blksim()?;
        let program = paths::target_dir().join("release/examples").join(example);
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
    // The programs in the documentation.
    of_tests("test").args("--release --doc").passes()
}

/// The documentation of all crates, without a warning.
pub(crate) fn doc() -> Result {
    let run = Run::cargo("doc --workspace --no-deps --locked");
    run.env("RUSTDOCFLAGS", "-D warnings").passes()
}

/// The site of the pages under docs/.
pub(crate) fn book() -> Result {
    if Run::new("mdbook", &["--version"]).printed().is_err() {
        return missing_tool("mdbook is not installed: `cargo install mdbook`");
    }
    Run::new("mdbook", &["build", "docs"]).passes()
}

/// The step machines on loom's threads, in a target directory of their own.
pub(crate) fn loom() -> Result {
    under_loom("test").passes()
}

/// A cargo command over the loom tests.
fn under_loom(command: &str) -> Run {
    // The flag would otherwise rebuild every dependency, twice per run of ci. Not the release
    // build: its large inlined frames overflow the small stacks that loom gives its threads.
    Run::cargo(command)
        .args("--package blkmq --test loom --locked")
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", paths::target_dir().join("loom"))
}

/// Benchmarks in full, or each once in a debug build: the measurements are not judged then, and
/// their libraries are built already.
pub(crate) fn bench(smoke: bool) -> Result {
    if !smoke {
        return Run::cargo("bench --package blksim-benches --benches --locked").passes();
    }
    // Named one by one in the whole workspace: so the libraries are those that `test` has built,
    // with the same features.
    let mut run = Run::cargo("bench --workspace --locked --profile dev");
    for bench in paths::rust_files(&paths::root().join("benches/benches")) {
        let Some(name) = bench.file_stem() else {
            continue;
        };
        run = run.arg("--bench").arg(name);
    }
    run.args("-- --test").passes()
}

/// Random exploration round after round, each with a seed that repeats it.
pub(crate) fn soak(seed: u64, rounds: Option<u64>) -> Result {
    let last = rounds.map_or(u64::MAX, |rounds| seed.saturating_add(rounds));
    for seed in seed..last {
        println!("soak --seed {seed} --rounds 1");
        of_tests("test")
            .args("--release --test explorer soak::")
            .env("SOAK_SEED", seed.to_string())
            .passes()?;
    }
    Ok(Outcome::Passed)
}
