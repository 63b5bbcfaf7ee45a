//! fio job files and command lines: the whole grammar, and a typed subset of the options.
//!
//! An option is modelled (a field of [`FioJob`]), ignored (it cannot matter to a model of the block
//! layer; listed), or refused with the reason. Not a scenario: a job does not describe the device.
//! Written after the behaviour of fio 3.33. Read next: `options.rs`, `job.rs`.

use std::path::Path;

use crate::{Error, Result};

mod build;
mod check;
mod cmdline;
mod draw;
mod ini;
mod job;
mod options;
mod settle;
mod suggest;
pub mod t_io_uring;
mod value;

pub use cmdline::OTHER_BUSINESS;
pub use draw::{Decimal, Distribution, Shape, SizeShare, Skew, Zone};
pub use job::{
    BlockSizes, ContinueOnError, CpusPolicy, Extent, FadviseHint, FileService, FioEngine, FioJob,
    PerDirection, RateProcess, ReadWrite, Sequencer, SizeRange, ThinktimeBlocks,
};
pub use options::{Known, Treatment, known_options, lookup};
pub use suggest::nearest;

/// The file name in errors about a command line; the "line" is then the number of the argument, the
/// first after `fio` being 1.
pub const COMMAND_LINE: &str = "command line";

/// The jobs of a file or of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// In order; `numjobs` not unrolled.
    pub jobs: Vec<FioJob>,
    /// Options that were accepted and change nothing, each once for each section that sets it.
    pub ignored: Vec<Ignored>,
}

/// An option that changes nothing here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// Line, or number of the argument.
    pub line: u64,
    /// The option as fio spells it.
    pub option: String,
    pub why: String,
}

/// One `option=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The option as it was written (maybe an alias).
    pub option: String,
    /// The value as it was written; none for a bare flag.
    pub value: Option<String>,
    /// Line, or number of the argument.
    pub line: u64,
    /// Set in `[global]` (or before the first `--name`).
    pub global: bool,
}

/// A job with its settings as written: the result of both grammars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name in brackets, or value of `--name`.
    pub name: String,
    pub line: u64,
    /// The global settings of that point, then its own.
    pub settings: Vec<Setting>,
}

/// Reads a job file. `file` is the name for errors.
pub fn parse_file(file: &Path, text: &str) -> Result<JobFile> {
    let sections = ini::sections(file, text)?;
    t_io_uring::refuse(file, &sections)?;
    from_sections(file, &sections)
}

/// Reads fio's command line without the program's name, or that of t/io_uring with it.
pub fn parse_command_line<S: AsRef<str>>(arguments: &[S]) -> Result<JobFile> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let file = Path::new(COMMAND_LINE);
    let is_small = |first: &&str| t_io_uring::is_command(first);
    if arguments.first().is_some_and(is_small) {
        let section = t_io_uring::section(&arguments)?;
        let parsed = from_sections(file, &[section]);
        return parsed.map_err(|error| t_io_uring::about(&arguments, error));
    }
    let sections = cmdline::sections(&arguments)?;
    t_io_uring::refuse(file, &sections)?;
    from_sections(file, &sections)
}

/// Types sections from another source (a scenario's `[[job]]` tables).
pub fn from_sections(file: &Path, sections: &[Section]) -> Result<JobFile> {
    if sections.is_empty() {
        return Err(Error::input(
            file,
            "no job in it: a job begins with [name] (or --name=NAME)",
        ));
    }
    let mut ignored = Vec::new();
    let mut jobs = Vec::with_capacity(sections.len());
    for section in sections {
        let (job, notes) = build::build(file, section)?;
        check::contradictions(file, &job)?;
        jobs.push(job);
        ignored.extend(notes);
    }
    ignored.sort();
    ignored.dedup();
    Ok(JobFile { jobs, ignored })
}

#[cfg(test)]
mod tests;
