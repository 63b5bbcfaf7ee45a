//! `--engine slurm`: a shard for each task of a job array.
//!
//! The array is known by its name, which has the digest of the sweep; the folder of the results has
//! the script and the number of tasks. Whether a point is done is read from the logs alone, so that
//! nothing depends on accounting. Read first: sbatch(1), squeue(1).

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
/// Tasks at most, unless --shards says more: Slurm's usual MaxArraySize.
const TASKS_MAX: u32 = 1000;
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
    let name = format!("blksim-{}", kept.key);
    let tasks_file = sweep.dir.join("slurm.tasks");
    let mut count = submitted(&tasks_file)?;
    if let Some(shards) = count.filter(|_| sweep.dir.join("slurm.sh").exists())
        && queued(&name)? > 0
    {
        note(&format!("the array of {shards} tasks goes on"));
        wait(&name, interrupt)?;
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
                shards(seconds()? * runs as f64, TASK).min(TASKS_MAX) as usize
            }
        };
        let tasks = tasks.min(points);
        count = Some(tasks);
        // Before the array, so that the same command knows its shards.
        OutputFile::open(&tasks_file)?
            .put(&format!("{tasks}\n"))?
            .keep()?;
        submit(sweep, args, &name, tasks, &all.unfinished(tasks))?;
        wait(&name, interrupt)?;
    }
}

fn note(text: &str) {
    output::print_note(&format!("note: {text}\n"));
}

/// Tasks of the array that was submitted before.
fn submitted(file: &Path) -> Result<Option<usize>, Error> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::input(file, format!("cannot read: {error}"))),
    };
    let tasks = text.trim().parse().ok().filter(|tasks| *tasks > 0);
    tasks
        .map(Some)
        .ok_or_else(|| Error::input(file, "expected a number of tasks"))
}

/// Submits some tasks of an array.
fn submit(
    sweep: &Sweep,
    args: &SweepFileArgs,
    name: &str,
    shards: usize,
    tasks: &[usize],
) -> Result<(), Error> {
    // Links stay: files that the sweep names are beside the link.
    let whole = |path: &Path| {
        let whole = std::path::absolute(path);
        whole.map_err(|error| Error::input(path, error.to_string()))
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
    command.arg("--parsable").arg(format!("--job-name={name}"));
    command.arg(format!("--cpus-per-task={jobs}"));
    let folder = dir.display().to_string().replace('%', "%%");
    command.arg(format!("--output={folder}/slurm-%a.out"));
    command.args(args.engine.sbatch.split_whitespace());
    command.arg(format!("--array={}", ranges(tasks)));
    let made = ask(command.arg(&script_file))?;
    if !made.status.success() {
        let what = String::from_utf8_lossy(&made.stderr);
        return Err(Error::usage("sbatch", what.trim()));
    }
    let (text, tasks) = (String::from_utf8_lossy(&made.stdout), tasks.len());
    // `job` or `job;cluster`.
    let job = text.trim().split(';').next().unwrap_or_default();
    note(&format!(
        "array job {job}: {tasks} of {shards} shards; scancel {job} ends it"
    ));
    Ok(())
}

/// Tasks of the array in the queue.
fn queued(name: &str) -> Result<usize, Error> {
    let mut command = Command::new("squeue");
    let shown = ask(command.args(["--me", "-h", "-r", "-o", "%i", "-n", name]))?;
    if !shown.status.success() {
        let what = String::from_utf8_lossy(&shown.stderr);
        return Err(Error::usage("squeue", what.trim()));
    }
    Ok(String::from_utf8_lossy(&shown.stdout).lines().count())
}

/// Waits until no task is in the queue.
#[expect(
    clippy::disallowed_methods,
    reason = "another program's queue can only be looked at"
)]
fn wait(name: &str, interrupt: &Interrupt) -> Result<(), Error> {
    let mut look = LOOK.0;
    let mut left = None;
    loop {
        let tasks = queued(name)?;
        if tasks == 0 {
            return Ok(());
        }
        if left.replace(tasks) != Some(tasks) {
            note(&format!("{tasks} tasks left"));
        }
        let mut slept = Duration::ZERO;
        while slept < look {
            if interrupt.came() {
                note("the array goes on; the same command waits for it again");
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
