//! `--engine slurm`: a shard for each task of a job array.
//!
//! The folder of the results has the script and the number of the array's job. Whether a point is
//! done is read from the logs alone, so that nothing depends on accounting. Read first: sbatch(1),
//! squeue(1).

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use super::{Sweep, shards};
use crate::args::SweepFileArgs;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile};

/// Work of a task, seconds, unless --shards says how many there are.
const TASK: f64 = 60.0;
/// Times that tasks are submitted without a further point.
const TRIES: u32 = 3;
/// Between two looks at the queue, at first and at last.
const LOOK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// Submits what is missing until nothing is.
pub(super) fn run(
    sweep: &Sweep,
    args: &SweepFileArgs,
    interrupt: &Interrupt,
    seconds: impl Fn() -> Result<f64, Error>,
) -> Result<(), Error> {
    let points = sweep.points.design.len();
    let kept = sweep.kept(true)?;
    let job_file = sweep.dir.join("slurm.job");
    let mut count = None;
    if let Some((job, shards)) = submitted(&job_file)? {
        note(&format!("array job {job} of {shards} tasks goes on"));
        wait(&job, interrupt)?;
        count = Some(shards);
    }
    let (mut left, mut tries) = (usize::MAX, 0);
    loop {
        let all = kept.all(points)?;
        let missing = all.missing();
        if missing == 0 {
            return Ok(());
        }
        tries = if missing < left { 1 } else { tries + 1 };
        left = missing;
        if tries > TRIES {
            let what =
                format!("{missing} points are missing after {TRIES} tries; slurm-*.out has why");
            return Err(Error::input(&sweep.dir, what));
        }
        let tasks = match (args.engine.shards, count) {
            (Some(shards), _) => shards as usize,
            (None, Some(shards)) => shards,
            (None, None) => {
                let (_, runs) = sweep.points.design.runs();
                shards(seconds()? * runs as f64, TASK) as usize
            }
        };
        let tasks = tasks.min(points);
        count = Some(tasks);
        let job = submit(sweep, args, tasks, &all.unfinished(tasks))?;
        OutputFile::open(&job_file)?
            .put(&format!("{job} {tasks}\n"))?
            .keep()?;
        wait(&job, interrupt)?;
    }
}

fn note(text: &str) {
    output::print_note(&format!("note: {text}\n"));
}

/// The job that was submitted before, and its number of shards.
fn submitted(file: &Path) -> Result<Option<(String, usize)>, Error> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::input(file, format!("cannot read: {error}"))),
    };
    let job = text.trim().split_once(' ').and_then(|(job, shards)| {
        let shards = shards.parse().ok().filter(|shards| *shards > 0);
        Some((job.to_owned(), shards?))
    });
    let what = "expected the number of a job and of its tasks";
    job.map(Some).ok_or_else(|| Error::input(file, what))
}

/// Submits some tasks of an array. The number of its job.
fn submit(
    sweep: &Sweep,
    args: &SweepFileArgs,
    shards: usize,
    tasks: &[usize],
) -> Result<String, Error> {
    let whole = |path: &Path| {
        let whole = path.canonicalize();
        whole.map_err(|error| Error::input(path, format!("cannot be found: {error}")))
    };
    let program = std::env::current_exe();
    let program = program.map_err(|error| Error::usage("blksim", error.to_string()))?;
    let (file, dir) = (whole(&sweep.file)?, whole(&sweep.dir)?);
    let jobs = args.jobs.jobs.unwrap_or(1);
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    let script = format!(
        "#!/bin/sh\n# A shard of the sweep: task I is shard I of {shards}.\nexec {} sweep run {} \
         --output {} \\\n    --shard \"$SLURM_ARRAY_TASK_ID/{shards}\" --jobs \
         \"${{SLURM_CPUS_PER_TASK:-{jobs}}}\" --quiet\n",
        quoted(&program),
        quoted(&file),
        quoted(&dir),
    );
    let script_file = sweep.dir.join("slurm.sh");
    OutputFile::open(&script_file)?.put(&script)?.keep()?;
    let mut command = Command::new("sbatch");
    command.args(["--parsable", "--job-name=blksim-sweep"]);
    command.arg(format!("--cpus-per-task={jobs}"));
    command.arg(format!("--output={}/slurm-%a.out", dir.display()));
    command.args(args.engine.sbatch.split_whitespace());
    command.arg(format!("--array={}", ranges(tasks)));
    let made = ask(command.arg(&script_file))?;
    let text = String::from_utf8_lossy(&made.stdout);
    // `job` or `job;cluster`.
    let job = text.trim().split(';').next().unwrap_or_default().to_owned();
    if !made.status.success() || job.is_empty() {
        let what = String::from_utf8_lossy(&made.stderr);
        return Err(Error::usage("sbatch", what.trim()));
    }
    let tasks = tasks.len();
    note(&format!(
        "array job {job}: {tasks} of {shards} shards; scancel {job} ends it"
    ));
    Ok(job)
}

/// Waits until no task is in the queue.
#[expect(
    clippy::disallowed_methods,
    reason = "another program's queue can only be looked at"
)]
fn wait(job: &str, interrupt: &Interrupt) -> Result<(), Error> {
    let mut look = LOOK.0;
    let mut left = None;
    loop {
        let mut command = Command::new("squeue");
        let shown = ask(command.args(["-h", "-r", "-o", "%i", "-j", job]))?;
        let refused = String::from_utf8_lossy(&shown.stderr);
        // A job that has ended is forgotten after some time.
        if !shown.status.success() && !refused.contains("Invalid job id") {
            return Err(Error::usage("squeue", refused.trim()));
        }
        let tasks = String::from_utf8_lossy(&shown.stdout).lines().count();
        if tasks == 0 {
            return Ok(());
        }
        if left.replace(tasks) != Some(tasks) {
            note(&format!("array job {job}: {tasks} tasks left"));
        }
        let mut slept = Duration::ZERO;
        while slept < look {
            if interrupt.came() {
                note(&format!(
                    "array job {job} goes on; the same command waits for it again"
                ));
                return Err(Error::Interrupted);
            }
            std::thread::sleep(LOOK.0 / 5);
            slept += LOOK.0 / 5;
        }
        look = (look * 2).min(LOOK.1);
    }
}

fn ask(command: &mut Command) -> Result<Output, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let made = command.output();
    made.map_err(|error| Error::usage(name, format!("cannot be started: {error}; is it Slurm's?")))
}

/// `1-4,7`, as sbatch takes them.
fn ranges(tasks: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &task in tasks {
        match ranges.last_mut().filter(|(_, last)| *last + 1 == task) {
            Some((_, last)) => *last = task,
            None => ranges.push((task, task)),
        }
    }
    let text = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}
