//! `cargo xtask bench explore`: the explorer against TLC on the same configurations, in one run,
//! in wall-clock time with the start of the JVM, one thread against one worker.

use std::time::Instant;

use crate::build::Build;
use crate::step::{Failure, Outcome, Result, Run};
use crate::{paths, step};

/// Variants of specs/Restart without symmetry, each of more than a million generated states.
const VARIANTS: &[&str] = &[
    "r2p-rc4-4x2-one-kept-4.14-plain",
    "r4-later-4x1-all-second-4.15-plain",
];

/// How many times faster the explorer has to be.
const FASTER: f64 = 15.0;

/// Runs both on each variant; both must come to the counts of expect.toml.
pub(crate) fn run() -> Result {
    for program in ["java", "mvn"] {
        if !paths::has_program(program) {
            return step::missing_tool(&format!("{program} is missing"));
        }
    }
    let blksim = Build::Release.blksim()?;
    let mut slow = Vec::new();
    for variant in VARIANTS {
        // Twice each, in turns: the shorter time counts, as others may be running.
        let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
        let mut counts = String::new();
        for _ in 0..2 {
            let (seconds, printed) = timed(Run::new(
                &blksim,
                &["explore", variant, "--jobs", "1", "--no-test"],
            ))?;
            ours = ours.min(seconds);
            let line = printed.lines().nth(1).unwrap_or("");
            let of = line.rsplit_once(", depth").map_or(line, |(of, _)| of);
            of.clone_into(&mut counts);
            // `check` fails if TLC's counts are not those of expect.toml.
            let (seconds, printed) = timed(Run::new(
                &blksim,
                &["check", "Restart", variant, "--jobs", "1"],
            ))?;
            theirs = theirs.min(seconds);
            let row = printed.lines().find(|line| line.contains(variant));
            let mut columns = row.unwrap_or("").split_whitespace().skip(2);
            let (generated, distinct) = (columns.next(), columns.next());
            let tlc = format!(
                "{} generated, {} distinct",
                generated.unwrap_or("?"),
                distinct.unwrap_or("?")
            );
            if tlc != counts {
                let what = format!("{variant}: the explorer has {counts}, TLC {tlc}");
                return Err(Failure(what));
            }
        }
        let ratio = theirs / ours;
        println!("{variant}: {counts}; explorer {ours:.2} s, TLC {theirs:.2} s: {ratio:.1} times");
        if ratio < FASTER {
            slow.push(format!("{variant} {ratio:.1}"));
        }
    }
    match slow.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(Failure(format!(
            "less than {FASTER} times faster than TLC: {}",
            slow.join(", ")
        ))),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "seconds of programs, not of a simulation"
)]
fn timed(run: Run) -> Result<(f64, String)> {
    let start = Instant::now();
    let printed = run.stdout()?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, String::from_utf8_lossy(&printed).into_owned()))
}
