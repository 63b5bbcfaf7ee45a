//! Several runs of TLC at a time, each with one worker and a folder of its own.
//!
//! One worker, because counts and counterexamples of a violated run repeat only then. The longest
//! runs begin first. Ctrl-C ends the children and removes their files.

use std::fs::{self, File};
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::tools::Tools;
use crate::error::Error;
use crate::interrupt::Interrupt;

/// How often the end of a run, and Ctrl-C, are looked for.
const LOOK: Duration = Duration::from_millis(20);
/// A run of more seconds is worth the better one of Java's compilers.
const LONG_RUN: f64 = 25.0;

#[derive(Debug)]
pub(crate) struct Job {
    /// For the progress bar.
    pub(crate) label: String,
    /// Name of the module, without `.tla`.
    pub(crate) module: String,
    pub(crate) configuration: String,
    pub(crate) files: Vec<(String, String)>,
    /// Continues after a violation.
    pub(crate) whole: bool,
    /// Prints how often each action was taken.
    pub(crate) coverage: bool,
    /// How long it takes, by experience.
    pub(crate) seconds: f64,
}

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) output: String,
    /// How long it took.
    pub(crate) seconds: f64,
}

type Message = (usize, Result<Done, String>);

struct Shared<'a> {
    tools: &'a Tools,
    jobs: &'a [Job],
    /// Numbers of the jobs, the longest first.
    order: Vec<usize>,
    /// How many of them are taken; none when no other is to begin.
    taken: Mutex<Option<usize>>,
    scratch: &'a Path,
}

impl Shared<'_> {
    fn take(&self) -> Option<usize> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let index = *self.order.get((*taken)?)?;
        *taken = taken.map(|count| count + 1);
        Some(index)
    }

    /// No run begins any more, and those in progress end.
    fn stop(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn stopped(&self) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.is_none()
    }
}

/// Runs all jobs; their results in their order, and the seconds of the whole.
pub(crate) fn run(
    tools: &Tools,
    jobs: &[Job],
    workers: Option<usize>,
    interrupt: &Interrupt,
) -> Result<(Vec<Done>, f64), Error> {
    let scratch = tempfile::Builder::new().prefix("blksim-check-").tempdir();
    let scratch = scratch.map_err(|e| Error::output("a temporary folder", e))?;
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|a, b| jobs[*b].seconds.total_cmp(&jobs[*a].seconds));
    let shared = Shared {
        tools,
        jobs,
        order,
        taken: Mutex::new(Some(0)),
        scratch: scratch.path(),
    };
    let start = now();
    let (sender, receiver) = channel();
    let mut done: Vec<Option<Done>> = jobs.iter().map(|_| None).collect();
    let bar = bar(jobs.len());
    let ended = thread::scope(|scope| {
        for _ in 0..workers.unwrap_or(cores).clamp(1, jobs.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                work(&shared, &sender);
            });
        }
        drop(sender);
        loop {
            let message: Message = match receiver.recv_timeout(LOOK) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) if interrupt.came() => {
                    shared.stop();
                    return Err(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let (index, result) = message;
            bar.inc(1);
            bar.set_message(jobs[index].label.clone());
            match result {
                Ok(result) => done[index] = Some(result),
                Err(what) => {
                    shared.stop();
                    return Err(Error::usage(&jobs[index].label, what));
                }
            }
        }
    });
    bar.finish_and_clear();
    ended?;
    let done: Option<Vec<Done>> = done.into_iter().collect();
    let done = done.ok_or(Error::Interrupted)?;
    Ok((done, start.elapsed().as_secs_f64()))
}

fn bar(jobs: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs of TLC, {elapsed} {msg}");
    let bar = ProgressBar::new(jobs as u64);
    bar.set_style(style.expect("the template is a correct one"));
    bar
}

fn work(shared: &Shared<'_>, sender: &Sender<Message>) {
    while let Some(index) = shared.take() {
        let folder = shared.scratch.join(index.to_string());
        let result = one(shared, &shared.jobs[index], &folder);
        let Some(result) = result
            .map_err(|e| format!("TLC cannot be run: {e}"))
            .transpose()
        else {
            return;
        };
        // A receiver that is gone has failed already.
        if sender.send((index, result)).is_err() {
            return;
        }
    }
}

/// One run; nothing if it was stopped.
fn one(shared: &Shared<'_>, job: &Job, folder: &Path) -> std::io::Result<Option<Done>> {
    fs::create_dir(folder)?;
    for (name, text) in &job.files {
        fs::write(folder.join(name), text)?;
    }
    fs::write(folder.join("run.cfg"), &job.configuration)?;
    let printed = folder.join("printed.txt");
    let out = File::create(&printed)?;
    let mut command = Command::new("java");
    if job.seconds < LONG_RUN {
        command.arg("-XX:TieredStopAtLevel=1");
    }
    command
        .arg("-XX:+UseSerialGC")
        // TLC unpacks its standard modules there.
        .arg(format!("-Djava.io.tmpdir={}", folder.display()))
        .arg("-cp")
        .arg(&shared.tools.jar)
        .args(["tlc2.TLC", "-workers", "1", "-metadir", "states"])
        .args(["-config", "run.cfg"]);
    if job.whole {
        command.arg("-continue");
    }
    if job.coverage {
        command.args(["-coverage", "1"]);
    }
    command
        .arg(format!("{}.tla", job.module))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out);
    let start = now();
    if !wait(&mut command.spawn()?, shared)? {
        return Ok(None);
    }
    let seconds = start.elapsed().as_secs_f64();
    let output = String::from_utf8_lossy(&fs::read(&printed)?).into_owned();
    fs::remove_dir_all(folder)?;
    Ok(Some(Done { output, seconds }))
}

/// True if it ended by itself. Its output has the meaning of its exit code, too.
fn wait(child: &mut Child, shared: &Shared<'_>) -> std::io::Result<bool> {
    loop {
        if child.try_wait()?.is_some() {
            return Ok(!shared.stopped());
        }
        if shared.stopped() {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::park_timeout(LOOK);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the checker takes is part of the table"
)]
fn now() -> Instant {
    Instant::now()
}
