//! The Python package: its wheel, and its tests in an environment of their own.
//!
//! Cargo unifies features over the chosen packages, and maturin chooses one. As the package's own
//! dependencies have all features that those of the tests have, a wheel of the release build takes
//! what the tests' build has made, and seconds.

use std::fs;
use std::path::{Path, PathBuf};

use crate::build::Build;
use crate::paths;
use crate::step::{Failure, Outcome, Result, Run, missing_tool};

const TESTS: &str = "crates/python/tests";
/// Packages of the tests of every change, and of the longer ones.
const PACKAGES: &str = "requirements.txt";
const PACKAGES_FULL: &str = "requirements-full.txt";

/// The wheel to install.
pub(crate) fn dist() -> Result {
    let Some(python) = environment(&[PACKAGES])? else {
        return no_python();
    };
    println!("{}", wheel(&python, Build::Dist)?.display());
    Ok(Outcome::Passed)
}

/// Installs a wheel and runs its tests; `full`: also the notebooks, and those with a cluster.
pub(crate) fn test(full: bool) -> Result {
    let packages: &[&str] = match full {
        true => &[PACKAGES, PACKAGES_FULL],
        false => &[PACKAGES],
    };
    let Some(python) = environment(packages)? else {
        return no_python();
    };
    let wheel = wheel(&python, Build::Release)?;
    let install = Run::words(
        &python,
        "-m pip install --quiet --no-deps --force-reinstall",
    );
    let install = install.arg("--disable-pip-version-check").arg(wheel);
    install.passes()?;
    let blksim = Build::Release.blksim()?;
    let run = |files: &str| {
        let run = Run::words(&python, "-m unittest discover --pattern").arg(files);
        let run = run.arg("--start-directory").arg(TESTS);
        run.env("BLKSIM", &blksim).passes()
    };
    run("test_*.py")?;
    match full {
        true => run("full_*.py"),
        false => Ok(Outcome::Passed),
    }
}

/// Fetches what the tests of every change use.
pub(crate) fn fetch() -> Result {
    match environment(&[PACKAGES])? {
        Some(_) => Ok(Outcome::Passed),
        None => no_python(),
    }
}

/// Makes the wheel, the only one in its folder.
fn wheel(python: &Path, build: Build) -> Result<PathBuf> {
    let out = paths::target_dir().join("wheels").join(build.profile());
    for old in paths::files_under(&out) {
        fs::remove_file(&old).map_err(|e| Failure(format!("{}: {e}", old.display())))?;
    }
    let run = Run::words(
        python,
        "-m maturin build --manifest-path crates/python/Cargo.toml",
    );
    let run = run.arg("--profile").arg(build.profile());
    run.arg("--out").arg(&out).passes()?;
    let made = paths::files_under(&out).into_iter().next();
    made.ok_or_else(|| Failure(format!("maturin made no wheel in {}", out.display())))
}

/// The interpreter of a virtual environment with the packages of some lists; nothing if there is
/// no Python here, or no network.
fn environment(lists: &[&str]) -> Result<Option<PathBuf>> {
    let name = lists.last().unwrap_or(&PACKAGES).trim_end_matches(".txt");
    let dir = paths::target_dir().join("python").join(name);
    let python = dir.join("bin/python");
    // Written last: what was interrupted is made again.
    let (complete, mut wanted) = (dir.join("complete"), String::new());
    for list in lists {
        let file = paths::root().join(TESTS).join(list);
        let text = fs::read_to_string(&file);
        wanted += &text.map_err(|error| Failure(format!("{}: {error}", file.display())))?;
    }
    if fs::read_to_string(&complete).is_ok_and(|have| have == wanted) {
        return Ok(Some(python));
    }
    let make = Run::words("python3", "-m venv --clear").arg(&dir).printed();
    if !make.is_ok_and(|made| made.success) {
        return Ok(None);
    }
    let mut install = Run::words(
        &python,
        "-m pip install --quiet --disable-pip-version-check",
    );
    for list in lists {
        install = install.arg("-r").arg(format!("{TESTS}/{list}"));
    }
    let installed = install.printed()?;
    if !installed.success {
        print!("{}", installed.stderr);
        return Ok(None);
    }
    let kept = fs::write(&complete, wanted);
    kept.map_err(|error| Failure(format!("{}: {error}", complete.display())))?;
    Ok(Some(python))
}

fn no_python() -> Result {
    missing_tool("no python3 with venv, or no network for its packages")
}
