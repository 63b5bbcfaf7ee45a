//! The specifications below `specs/` under TLC: `blksim check` does it, here it is started.
//!
//! TLC needs Java, and Maven to be fetched; without them the check is skipped, except where
//! CI=true.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::build::Build;
use crate::paths;
use crate::step::{self, Failure, Outcome, Result, Run};

const NEEDED: &[(&str, &str)] = &[("java", "default-jre-headless"), ("mvn", "maven")];

/// The digest of `specs/` with which the quick variants and the mutants last passed. They depend on
/// these files alone, so that ci need not repeat them while the files stay as they are.
const CHECKED: &str = "crates/xtask/specs.sha256";

/// Verdicts and counts of the variants, recorded traces, and runs of the simulator: of the runs one
/// in three, or all. Two thirds of TLC's time are variants of over 40 s, 50 minutes: after an edit
/// of their specification they are checked with `blksim check SPEC --full`.
pub(crate) fn check(full: bool) -> Result {
    const FULL: &[&str] = &["check", "--full", "--max-seconds", "40"];
    with_tlc(|blksim| {
        match full {
            true => Run::new(blksim, FULL).passes().map(drop)?,
            false if is_checked() => println!("specs/ is as it was when TLC last took it"),
            false => quick(blksim)?,
        }
        runs(blksim, if full { 1 } else { 3 })
    })
}

/// Wrong specifications, all of which TLC must find out; with `always` also of unchanged files.
pub(crate) fn mutants(always: bool) -> Result {
    if !always && is_checked() {
        println!("specs/ is as it was when TLC last found out its mutants");
        return Ok(Outcome::Passed);
    }
    with_tlc(|blksim| Run::new(blksim, &["check", "--mutants"]).passes())
}

/// Both, whatever was there, and writes the digest.
pub(crate) fn write() -> Result {
    with_tlc(|blksim| quick(blksim).map(|()| Outcome::Passed))?;
    mutants(true)?;
    let file = paths::root().join(CHECKED);
    fs::write(&file, digest() + "\n").map_err(|e| failed(&file, &e))?;
    Ok(Outcome::Passed)
}

fn quick(blksim: &Path) -> Result<()> {
    Run::new(blksim, &["check", "--quick"]).passes().map(drop)
}

fn is_checked() -> bool {
    let written = fs::read_to_string(paths::root().join(CHECKED));
    written.is_ok_and(|written| written.trim() == digest())
}

/// Of all files below `specs/` but the digest itself, with their names.
fn digest() -> String {
    let root = paths::root();
    let files = paths::files_under(&root.join("specs")).into_iter();
    let mut sum = Sha256::new();
    for file in files.filter(|file| *file != root.join(CHECKED)) {
        let content = fs::read(&file).unwrap_or_default();
        let name = file
            .strip_prefix(&root)
            .unwrap_or(&file)
            .display()
            .to_string();
        sum.update(format!("{name} {}\n", content.len()));
        sum.update(content);
    }
    sum.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn with_tlc(check: impl FnOnce(&Path) -> Result) -> Result {
    for (program, package) in NEEDED {
        if !paths::has_program(program) {
            return step::missing_tool(&format!("{program} is missing: apt-get install {package}"));
        }
    }
    check(&Build::Release.blksim()?)
}

/// Runs of the scenario of the stall, or of one with so many I/Os a thread, under a restart rule.
const RUNS: [(&str, &str, &str); 10] = [
    ("stall", "v4.14", "R2"),
    ("stall", "v4.14", "R2p"),
    ("1", "v4.14", "R0"),
    ("1", "v4.11", "R1"),
    ("stall", "v4.15", "R4"),
    ("1", "v4.14", "R2"),
    ("3", "v4.14", "all"),
    ("3", "v4.15", "R0"),
    ("3", "v4.15", "R2"),
    ("3", "v4.14", "R2p"),
];

/// Readers and a flusher on two disks with one tag.
const SHORT: &str = "\
[machine]
profile = \"ryzen-7950x\"
cpus = 3
[queue]
scheduler = \"mq-deadline\"
nr_requests = 64
lone_plug = \"never\"
[device]
type = \"null_blk\"
nr_devices = 2
shared_tags = 1
submit_queues = 1
hw_queue_depth = 1
irqmode = 2
completion_nsec = 900
memory_backed = 1
cache_size = 16
[[job]]
filename = \"/dev/nullb0\"
rw = \"randread\"
bs = \"4k\"
ioengine = \"psync\"
direct = 1
number_ios = IOS
cpus_allowed = \"0\"
[[job]]
filename = \"/dev/nullb1\"
rw = \"randread\"
bs = \"4k\"
ioengine = \"psync\"
direct = 1
number_ios = IOS
cpus_allowed = \"1\"
[[job]]
filename = \"/dev/nullb1\"
rw = \"randwrite\"
bs = \"4k\"
ioengine = \"psync\"
direct = 1
fsync = 1
number_ios = IOS
cpus_allowed = \"2\"
";

/// Runs of one disk by the parts of the January 2024 series that they have. A lost request is in
/// the recorded traces, and in the tests `followed`.
const SERIES: [&str; 7] = [
    "stock",
    "serialise-only",
    "poc",
    "v2-repaired",
    "v1",
    "v2",
    "v3",
];

/// Runs of the simulator are behaviours of their specification, and corrupted ones are not.
fn runs(blksim: &Path, one_in: usize) -> Result {
    let folder = paths::target_dir().join("xtask/runs");
    fs::create_dir_all(&folder).map_err(|e| failed(&folder, &e))?;
    restart_runs(blksim, &folder, one_in)?;
    dispatch_runs(blksim, &folder, one_in)?;
    merging_runs(blksim, &folder, one_in)?;
    Ok(Outcome::Passed)
}

fn failed(path: &Path, e: &std::io::Error) -> Failure {
    Failure(format!("{}: {e}", path.display()))
}

fn restart_runs(blksim: &Path, folder: &Path, one_in: usize) -> Result {
    let mut check = Run::new(blksim, &["check", "Restart", "--run"]);
    for (scenario, restart, rule) in RUNS.into_iter().step_by(one_in) {
        let file = folder.join(format!("{scenario}-{restart}-{rule}.schedule"));
        let stall = scenario == "stall";
        let short = folder.join(format!("{scenario}.toml"));
        fs::write(&short, SHORT.replace("IOS", scenario)).map_err(|e| failed(&short, &e))?;
        let scenario = match stall {
            true => Path::new("shared-restart-stall"),
            false => &short,
        };
        let (base, rule_set) = (
            format!("queue.restart={restart}"),
            format!("queue.restart_rule={rule}"),
        );
        let run = Run::new(blksim, &["run"]).arg(scenario);
        let run = run.arg("--set").arg(base).arg("--set").arg(rule_set);
        let stalls = stall && (restart, rule) == ("v4.14", "R2");
        recorded(run, &file, stalls)?;
        check = check.arg(&file);
    }
    check.passes()
}

fn dispatch_runs(blksim: &Path, folder: &Path, one_in: usize) -> Result {
    let mut check = Run::new(blksim, &["check", "Dispatch", "--run"]);
    for series in SERIES.into_iter().step_by(one_in) {
        let file = folder.join(format!("scaling-{series}.schedule"));
        let run = Run::words(
            blksim,
            "run mq-deadline-scaling --runtime=20us --ramp-time=0",
        );
        let run = run.arg("--device=null_blk,hw_queue_depth=128");
        let run = run.arg("--set").arg(format!("queue.series={series}"));
        recorded(run, &file, false)?;
        check = check.arg(&file);
    }
    check.passes()
}

/// Runs whose queues merge: of which specification, under which rules, and for how long.
const MERGING: [(&str, &str, &str, &str); 5] = [
    ("CfqMerge", "cfq-cooperators", "v2.6.32-rc5-coop", "300ms"),
    ("CfqMerge", "cfq-cooperators", "v2.6.35", "300ms"),
    ("CfqMerge", "cfq-nfsd", "v2.6.35", "1s"),
    ("BfqMerge", "bfq-burst", "v5.13", "5ms"),
    ("BfqMerge", "bfq-burst", "v6.12", "5ms"),
];

fn merging_runs(blksim: &Path, folder: &Path, one_in: usize) -> core::result::Result<(), Failure> {
    for (spec, scenario, rules, runtime) in MERGING.into_iter().step_by(one_in) {
        let file = folder.join(format!("{scenario}-{rules}.schedule"));
        let rules = format!("queue.rules={rules}");
        let run = Run::new(blksim, &["run", scenario, "--runtime", runtime]);
        let run = run.arg("--ramp-time=0").arg("--set").arg(rules);
        run.arg("--schedule").arg(&file).printed()?;
        let check = Run::new(blksim, &["check", spec, "--run"]);
        check.arg(&file).passes()?;
    }
    Ok(())
}

/// Writes a run as a schedule. `stalls`: how it must end.
fn recorded(run: Run, file: &Path, stalls: bool) -> core::result::Result<(), Failure> {
    run.arg("--schedule").arg(file).printed()?;
    let schedule = fs::read_to_string(file)
        .map_err(|e| Failure(format!("no schedule {}: {e}", file.display())))?;
    if schedule.contains("\nshows NoStall violated\n") != stalls {
        let what = if stalls { "does not stall" } else { "stalls" };
        return Err(Failure(format!("{}: the run {what}", file.display())));
    }
    Ok(())
}
