//! Same scenario, seed and version give the same bytes: debug against optimised, run against run,
//! one thread against two.
//!
//! Compares the JSON report of the built binary from outside, and the table of a sweep of drawn
//! scenarios; tests inside one build cannot see the other build.

use std::fs;
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

/// Devices of drawn scenarios, each with fewer I/Os than a run of its own would have.
const DEVICES: [&str; 4] = [
    "type = \"null_blk\"\nirqmode = 2\ncompletion_nsec = 20000\nhw_queue_depth = 32",
    "type = \"nvme\"\nchannels = 8\njitter = true",
    "type = \"scsi_debug\"\nndelay = 5000",
    "type = \"ahci\"",
];
/// What the jobs are, and what is drawn.
const JOBS: &str = r#"
[[job]]
name = "a"
direct = 1
number_ios = 200
size = "8m"
"#;
const DRAWN: &str = r#"
scenario = ["0.toml", "1.toml", "2.toml", "3.toml"]
seeds = 1
seed = 7
[latin_hypercube]
samples = {samples}
scheduler = ["none", "mq-deadline", "kyber", "bfq"]
rules = ["v6.1", "v6.12"]
machine = ["ryzen-7950x", "xeon-10c", "quadcore"]
threads = { from = 1, to = 6 }
job.rw = ["randread", "randwrite", "randrw", "read", "write", "rw"]
job.bs = ["512", "4k", "16k", "128k"]
job.iodepth = { from = 1, to = 32, scale = "log" }
job.ioengine = ["io_uring", "libaio", "psync", "posixaio"]
job.iodepth_batch_submit = [1, 4]
job.thinktime = [0, 20]
"#;

/// Build both profiles, run each scenario twice in debug and once optimised, then so many drawn
/// scenarios of each device with one and two threads.
pub(crate) fn run(samples: usize) -> Result {
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
    drawn(samples, [&debug, &release])
}

fn drawn(samples: usize, builds: [&Path; 2]) -> Result {
    let dir = paths::target_dir().join("sweeps/drawn");
    let failed = |e: std::io::Error| Failure(format!("{}: {e}", dir.display()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(failed)?;
    for (index, device) in DEVICES.iter().enumerate() {
        let text = format!("[device]\n{device}\n{JOBS}");
        fs::write(dir.join(format!("{index}.toml")), text).map_err(failed)?;
    }
    let text = DRAWN.replace("{samples}", &samples.to_string());
    fs::write(dir.join("drawn.toml"), text).map_err(failed)?;
    let mut tables: Vec<Vec<u8>> = Vec::new();
    for (index, build) in builds.into_iter().enumerate() {
        for jobs in [1, 2] {
            let output = format!("{index}-{jobs}");
            let line = format!("--quiet sweep drawn.toml --jobs {jobs} -o {output}");
            Run::words(build, &line).current_dir(&dir).passes()?;
            tables.push(fs::read(dir.join(output).join("results.csv")).map_err(failed)?);
        }
    }
    if let Some(index) = tables.iter().position(|table| *table != tables[0]) {
        let (build, jobs) = (["debug", "release"][index / 2], index % 2 + 1);
        let what = format!(
            "{}: {build} with {jobs} threads has another table",
            dir.display()
        );
        return Err(Failure(what));
    }
    let (rows, bytes) = (
        tables[0].split(|byte| *byte == b'\n').count() - 2,
        tables[0].len(),
    );
    println!("{rows} drawn scenarios: {bytes} equal bytes in 2 builds with 1 and 2 threads");
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
