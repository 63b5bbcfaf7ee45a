//! Same scenario, seed and version give the same bytes: debug against optimised, run against run.
//!
//! Compares the JSON report of the built binary from outside; tests inside one build cannot see the
//! other build.

use std::path::Path;

use crate::build::{Build, of_tests};
use crate::paths;
use crate::step::{Failure, Outcome, Result, Run};

/// Arguments of the runs that are compared: both schedulers, both kinds of device, thousands of
/// I/Os with random addresses and directions.
const RUNS: &[&str] = &[
    "run --json --seed 1 --scheduler mq-deadline --device null_blk,irqmode=1,hw_queue_depth=64 \
     -- --name=a --rw=randrw --bs=4k --iodepth=8 --numjobs=4 --number_ios=2000 --size=1g",
    "run --json --seed 2 --scheduler none --device nvme \
     -- --name=b --rw=randread --bs=4k --iodepth=32 --numjobs=2 --number_ios=2000 --size=1g",
];

/// Build both profiles, run each scenario twice in debug and once optimised.
pub(crate) fn run() -> Result {
    of_tests("build").arg("--bin").arg("blksim").passes()?;
    let debug = paths::target_dir().join("debug/blksim");
    if !knows(&debug, "run")? {
        return Ok(Outcome::Skipped(
            "blksim has no command `run` yet".to_owned(),
        ));
    }
    let release = Build::Release.blksim()?;
    for line in RUNS {
        let args: Vec<&str> = line.split_whitespace().collect();
        let args = args.as_slice();
        let first = report(&debug, args)?;
        let runs = [("a second run", &debug), ("the release build", &release)];
        for (what, binary) in runs {
            if report(binary, args)? != first {
                return Err(Failure(format!(
                    "`blksim {line}`: {what} prints other bytes"
                )));
            }
        }
        println!("blksim {}: {} equal bytes in 3 runs", line, first.len());
    }
    Ok(Outcome::Passed)
}

/// True if the binary has that command. A program that ignores its arguments does not count.
pub(crate) fn knows(blksim: &Path, command: &str) -> Result<bool> {
    let help = Run::new(blksim, &[command, "--help"]).printed()?;
    Ok(help.success && help.stdout.contains(command))
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
