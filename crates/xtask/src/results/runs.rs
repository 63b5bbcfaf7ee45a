//! Runs of the program, and their output. Each command line is run once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::{Map, Value};

use crate::build::Build;
use crate::paths;
use crate::step::{Failure, Printed, Result, Run};

/// The program, and the runs that it has done.
#[derive(Debug)]
pub(super) struct Blksim {
    pub(super) path: PathBuf,
    done: Mutex<BTreeMap<String, Arc<Done>>>,
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) printed: Printed,
    pub(super) seconds: f64,
    /// Files of `blksim plot`.
    folder: Option<PathBuf>,
}

/// The report of a run, or the message with which the program refuses it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Report {
    Json(Value),
    Refused(String),
}

impl Blksim {
    /// A build of the tree.
    pub(super) fn built() -> Result<Blksim> {
        Ok(Blksim::at(Build::Release.blksim()?))
    }

    fn at(path: PathBuf) -> Blksim {
        let done = Mutex::default();
        Blksim { path, done }
    }

    /// One that has done these command lines, with their output and their error messages.
    #[cfg(test)]
    pub(super) fn recorded(lines: &[(&str, &str, &str)]) -> Blksim {
        let blksim = Blksim::at(PathBuf::from("no-such-program"));
        for (line, stdout, stderr) in lines {
            let (stdout, stderr) = ((*stdout).to_owned(), (*stderr).to_owned());
            let printed = Printed {
                success: stderr.is_empty(),
                stdout,
                stderr,
            };
            let done = Done {
                printed,
                seconds: 0.0,
                folder: None,
            };
            blksim.all().insert((*line).to_owned(), Arc::new(done));
        }
        blksim
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Done>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs these command lines, one a core at a time and each once.
    pub(super) fn run_all(&self, lines: &[String]) -> Result<()> {
        let mut known = BTreeSet::new();
        let lines = lines.iter().filter(|line| known.insert(line.as_str()));
        let lines: Vec<&String> = lines.collect();
        println!("{} runs", lines.len());
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let next = Mutex::new(lines.iter());
        let worker = || {
            loop {
                let line = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                match line {
                    Some(line) => self.done(line)?,
                    None => return Ok(()),
                };
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
            let lost = |_| Err(Failure("a thread ended".to_owned()));
            let ends = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(lost));
            ends.collect()
        })
    }

    /// The run of a command line, whether it succeeds or not. Arguments are separated by blanks.
    #[expect(
        clippy::disallowed_methods,
        reason = "seconds of our own steps, not of a simulation"
    )]
    pub(super) fn done(&self, line: &str) -> Result<Arc<Done>> {
        if let Some(done) = self.all().get(line) {
            return Ok(Arc::clone(done));
        }
        let start = Instant::now();
        let mut run = Run::words(&self.path, line);
        let folder = line.starts_with("plot ").then(|| folder(line));
        if let Some(folder) = &folder {
            let _ = fs::remove_dir_all(folder);
            run = run.arg("-o").arg(folder);
        }
        let done = Arc::new(Done {
            printed: run.printed()?,
            seconds: start.elapsed().as_secs_f64(),
            folder,
        });
        self.all().insert(line.to_owned(), Arc::clone(&done));
        Ok(done)
    }

    /// Its standard output. Exit code 1 means that figures are out of their tolerance, which a
    /// table may show; another failure has nothing on standard output.
    pub(super) fn text(&self, line: &str) -> Result<String> {
        let done = self.done(line)?;
        match done.printed.stdout.is_empty() {
            true => Err(Failure(format!("`blksim {line}`: {}", done.message()))),
            false => Ok(done.printed.stdout.clone()),
        }
    }

    /// Its report as JSON; of `plot`, an array with the rows of runs.csv.
    pub(super) fn report(&self, line: &str) -> Result<Report> {
        let done = self.done(line)?;
        if done.folder.is_some() {
            return Ok(Report::Json(rows(&self.drawn(line, "runs.csv")?)));
        }
        if done.printed.stdout.is_empty() {
            return Ok(Report::Refused(done.message().to_owned()));
        }
        let json = serde_json::from_str(&done.printed.stdout);
        let json = json.map_err(|e| Failure(format!("`blksim {line}`: no JSON: {e}")));
        json.map(Report::Json)
    }

    /// A file of `blksim plot`.
    pub(super) fn drawn(&self, line: &str, file: &str) -> Result<String> {
        self.text(line)?;
        let done = self.done(line)?;
        let folder = done.folder.as_deref().unwrap_or(Path::new(""));
        let text = fs::read_to_string(folder.join(file));
        text.map_err(|e| Failure(format!("`blksim {line}`: {file}: {e}")))
    }
}

impl Done {
    fn message(&self) -> &str {
        self.printed.stderr.trim_end().trim_start_matches("error: ")
    }
}

/// A folder for the files of a command line.
fn folder(line: &str) -> PathBuf {
    let sum = line.bytes().fold(0_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    paths::target_dir().join(format!("results/plot-{sum:x}"))
}

/// Rows of CSV as objects.
fn rows(csv: &str) -> Value {
    let mut lines = csv.lines().map(|line| line.split(','));
    let head: Vec<&str> = lines.next().map(Iterator::collect).unwrap_or_default();
    let cell = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    let row = |cells: std::str::Split<'_, char>| {
        let cells = head.iter().zip(cells);
        Value::from_iter(
            cells
                .map(|(name, text)| ((*name).to_owned(), cell(text)))
                .collect::<Map<_, _>>(),
        )
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_csv_are_objects_with_numbers() {
        let json = rows("job,iops,lock\nscaling,4937.5,q->queue_lock\nb,7,-\n");
        assert_eq!(json[0]["iops"].as_f64(), Some(4937.5));
        assert_eq!(json[0]["lock"], "q->queue_lock");
        assert_eq!(json[1]["job"], "b");
        assert_eq!(json.as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_message_on_an_empty_output_is_a_refusal() {
        let blksim = Blksim::recorded(&[
            ("a", "{\"n\": 1}", "a warning"),
            ("b", "", "error: t: damaged\n"),
            ("c", "{", ""),
        ]);
        assert_eq!(
            blksim.report("a").unwrap(),
            Report::Json(serde_json::json!({"n": 1}))
        );
        assert_eq!(
            blksim.report("b").unwrap(),
            Report::Refused("t: damaged".to_owned())
        );
        assert_eq!(blksim.text("b").unwrap_err().0, "`blksim b`: t: damaged");
        assert!(
            blksim
                .report("c")
                .unwrap_err()
                .0
                .starts_with("`blksim c`: no JSON")
        );
        let failure = blksim
            .run_all(&["a".to_owned(), "d".to_owned()])
            .unwrap_err();
        assert!(failure.0.contains("no-such-program d"), "{failure}");
    }
}
