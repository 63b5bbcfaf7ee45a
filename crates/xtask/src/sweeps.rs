//! Sweeps that are killed, and sweeps under a real Slurm: their results are byte for byte those of
//! one process that nothing disturbs, and no point is made twice.

mod slurm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::build::Build;
use crate::paths;
use crate::step::{Failure, Outcome, Result, Run};

pub(crate) use slurm::run as slurm;

/// Short runs with values that are drawn; `{points}` of them.
const SWEEP: &str = r#"
scenario = "null-blk-one-thread"
[set]
runtime = "{runtime}"
ramp_time = "0"
[latin_hypercube]
samples = {points}
job.iodepth = { from = 1, to = 64, scale = "log" }
queue.nr_requests = { from = 16, to = 60 }
scheduler = ["none", "mq-deadline", "kyber", "bfq"]
"#;

/// Longest life of a process that is killed, ms.
const LIFE_MS: u64 = 900;

/// A sweep, the program that makes it, and the results of one process.
#[derive(Debug)]
struct Sweep {
    blksim: PathBuf,
    dir: PathBuf,
    points: usize,
    expected: Vec<u8>,
}

impl Sweep {
    /// Makes it once, undisturbed, in a new folder.
    fn new(name: &str, points: usize, runtime: &str) -> Result<Sweep> {
        let dir = paths::target_dir().join("sweeps").join(name);
        let _ = fs::remove_dir_all(&dir);
        let failed = |e: std::io::Error| Failure(format!("{}: {e}", dir.display()));
        fs::create_dir_all(&dir).map_err(failed)?;
        let text = SWEEP.replace("{points}", &points.to_string());
        fs::write(dir.join("s.toml"), text.replace("{runtime}", runtime)).map_err(failed)?;
        let mut sweep = Sweep {
            blksim: Build::Release.blksim()?,
            dir,
            points,
            expected: Vec::new(),
        };
        sweep.run("", "whole").passes()?;
        sweep.expected = sweep.results("whole")?;
        Ok(sweep)
    }

    /// `blksim sweep` with these words, into a folder.
    fn run(&self, words: &str, output: &str) -> Run {
        let run = Run::words(&self.blksim, "--quiet sweep").args(words);
        run.args(&format!("s.toml -o {output}"))
            .current_dir(&self.dir)
    }

    fn results(&self, output: &str) -> Result<Vec<u8>> {
        let read = |name: &str| {
            let file = self.dir.join(output).join(name);
            fs::read(&file).map_err(|e| Failure(format!("{}: {e}", file.display())))
        };
        Ok([read("results.parquet")?, read("results.csv")?].concat())
    }

    /// Records in all logs of a folder.
    fn records(&self, output: &str) -> usize {
        let logs = paths::files_under(&self.dir.join(output)).into_iter();
        let logs = logs.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
        let lines = |path: PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            bytes.split(|byte| *byte == b'\n').count() - 1
        };
        logs.map(lines).sum()
    }

    /// The results are those of the undisturbed process, and no point is there twice.
    fn check(&self, output: &str) -> Result<()> {
        let records = self.records(output);
        if records != self.points {
            let what = format!("{output}: {records} records of {} points", self.points);
            return Err(Failure(what));
        }
        if self.results(output)? != self.expected {
            let what = format!("{output}: other bytes than of one process");
            return Err(Failure(what));
        }
        let left = paths::files_under(&self.dir.join(output)).into_iter();
        let mut left = left.filter(|path| shown(path).contains("/.blksim-"));
        match left.next() {
            Some(left) => Err(Failure(format!("{}: left by a merge", left.display()))),
            None => Ok(()),
        }
    }
}

/// Kills a sweep at random moments, in one process and in shards, until it is done; so often.
pub(crate) fn kills(kills: u32, points: usize) -> Result {
    let sweep = Sweep::new("kills", points, "10ms")?;
    // A sequence of our own: the moments differ from run to run anyway.
    let mut state = 1_u64;
    let mut below = |count: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % count
    };
    let (mut killed, mut rounds, mut kept) = (0, 0, 0);
    while killed < kills {
        let output = format!("killed-{rounds}");
        let count = 1 + below(3);
        // One in four is the whole, which also merges.
        let part = match below(4) {
            0 => String::from("--jobs 2"),
            _ => format!("run --shard {}/{count}", 1 + below(count)),
        };
        let mut child = started(&sweep, &part, &output, &[])?;
        pause(Duration::from_millis(below(LIFE_MS)));
        killed += u32::from(matches!(child.try_wait(), Ok(None)));
        let _ = child.kill();
        let _ = child.wait();
        let records = sweep.records(&output);
        if records < kept {
            return Err(Failure(format!("{output}: {kept} records, then {records}")));
        }
        kept = records;
        if kept == points || killed == kills {
            sweep.run("", &output).passes()?;
            sweep.check(&output)?;
            (rounds, kept) = (rounds + 1, 0);
        }
    }
    println!("{killed} kills in {rounds} sweeps of {points} points: same bytes, none twice");
    Ok(Outcome::Passed)
}

fn started(
    sweep: &Sweep,
    words: &str,
    output: &str,
    environment: &[(&str, &PathBuf)],
) -> Result<Child> {
    let child = Command::new(&sweep.blksim)
        .envs(environment.iter().copied())
        .args("--quiet sweep".split(' ').chain(words.split(' ')))
        .args(["s.toml", "-o", output])
        .current_dir(&sweep.dir)
        .stdin(Stdio::null())
        .spawn();
    child.map_err(|e| Failure(format!("{}: {e}", sweep.blksim.display())))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a process dies at a moment that it cannot know"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// True once the condition holds; false if it does not within so many seconds.
fn until(seconds: u32, mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..seconds * 20 {
        if holds() {
            return true;
        }
        pause(Duration::from_millis(50));
    }
    false
}

/// The folder of a step, as an argument.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
