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
    let release = Build::Release.blksim()?;
    for line in RUNS {
        let first = report(&debug, line)?;
        let runs = [("a second run", &debug), ("the release build", &release)];
        for (what, binary) in runs {
            if report(binary, line)? != first {
                return Err(Failure(format!(
                    "`blksim {line}`: {what} prints other bytes"
                )));
            }
        }
        println!("blksim {}: {} equal bytes in 3 runs", line, first.len());
    }
    Ok(Outcome::Passed)
}

fn report(binary: &Path, line: &str) -> Result<String> {
    let run = Run::words(binary, line);
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
