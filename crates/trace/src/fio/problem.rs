//! What is wrong in jobs, or not modelled: all of it at once, each with its place.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{COMMAND_LINE, FioJob, Setting};

/// Bits of a line below the number of its source.
const LINE_BITS: u32 = 32;

/// The files that jobs were read from, in order of reading. A line of theirs has the number of its
/// source above its 32 bits: settings of several files differ in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(Vec<PathBuf>);

impl Sources {
    pub(super) fn of(file: &Path) -> Sources {
        Sources(vec![file.to_path_buf()])
    }

    /// Adds a file; what its line numbers begin at, which is to be added to them.
    pub(super) fn add(&mut self, file: &Path) -> u64 {
        self.0.push(file.to_path_buf());
        (self.0.len() as u64 - 1) << LINE_BITS
    }

    /// The file of a line, and its number there.
    pub fn place(&self, line: u64) -> (&Path, u64) {
        let file = self.0.get((line >> LINE_BITS) as usize);
        (
            file.map_or(Path::new(""), PathBuf::as_path),
            line & u64::from(u32::MAX),
        )
    }
}

/// `FILE:LINE`, or the number of an argument.
pub fn place(file: &Path, line: u64) -> String {
    match file == Path::new(COMMAND_LINE) {
        true => format!("{COMMAND_LINE}, argument {line}"),
        false => format!("{}:{line}", file.display()),
    }
}

/// An option that is wrong or not modelled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Line, or number of the argument; see [`Sources`].
    pub line: u64,
    /// The option as it was written.
    pub option: String,
    pub what: String,
    /// The job runs without it, as another job.
    pub unmodelled: bool,
}

impl Problem {
    pub(super) fn new(line: u64, option: &str, what: impl Into<String>) -> Problem {
        Problem {
            line,
            option: option.to_owned(),
            what: what.into(),
            unmodelled: false,
        }
    }

    pub(super) fn of(setting: &Setting, what: impl Into<String>) -> Problem {
        Problem::new(setting.line, &setting.option, what)
    }

    /// About an option by its name, where the job sets it.
    pub(super) fn of_job(job: &FioJob, option: &str, what: impl Into<String>) -> Problem {
        Problem::new(job.line_of(option), option, what)
    }

    pub(super) fn unmodelled(setting: &Setting, what: &str) -> Problem {
        Problem {
            unmodelled: true,
            ..Problem::of(setting, format!("not modelled: {what}"))
        }
    }
}

/// All problems of jobs, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    pub sources: Sources,
    pub list: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.list.iter().enumerate() {
            let end = if number > 0 { "\n" } else { "" };
            let (file, line) = self.sources.place(problem.line);
            let place = place(file, line);
            write!(f, "{end}{place}: {}: {}", problem.option, problem.what)?;
        }
        Ok(())
    }
}

impl Problems {
    /// How many of them are options that are not modelled.
    pub fn unmodelled(&self) -> usize {
        self.list
            .iter()
            .filter(|problem| problem.unmodelled)
            .count()
    }
}

/// Why a value cannot be used.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) unmodelled: bool,
}

impl Fault {
    pub(super) fn unmodelled(what: &str) -> Fault {
        Fault {
            what: format!("not modelled: {what}"),
            unmodelled: true,
        }
    }

    pub(super) fn at(self, setting: &Setting) -> Problem {
        Problem {
            unmodelled: self.unmodelled,
            ..Problem::of(setting, self.what)
        }
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault {
            what,
            unmodelled: false,
        }
    }
}
