//! fio job files and command lines: the whole grammar, and a typed subset of the options.
//!
//! An option is modelled (a field of [`FioJob`]), ignored (it cannot matter to a model of the block
//! layer; listed), or refused with the reason. Not a scenario: a job does not describe the device.
//! Written after the behaviour of fio 3.33. Read next: `options.rs`, `job.rs`.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

mod build;
mod check;
mod cmdline;
mod cmdprio;
mod control;
mod draw;
mod engines;
mod ini;
mod job;
mod options;
mod output;
mod problem;
mod settle;
mod suggest;
pub mod t_io_uring;
mod value;
mod writes;
mod zones;

pub use cmdline::OTHER_BUSINESS;
pub use cmdprio::{CmdPrio, SizePriority};
pub use control::{Control, ExitWhat, SteadyState};
pub use draw::{Decimal, Distribution, Shape, SizeShare, Skew, Zone};
pub use engines::{Fate, known_engines};
pub use job::{
    BlockSizes, ContinueOnError, CpusPolicy, Extent, FadviseHint, FileService, FioEngine, FioJob,
    PerDirection, RateProcess, ReadWrite, Sequencer, SizeRange, ThinktimeBlocks,
};
pub use options::{DIFFERENCES, Known, Treatment, known_options, lookup};
pub use output::{Head, LogOptions, Output};
pub use problem::{Problem, Problems, Sources, place};
pub use suggest::nearest;
pub use writes::Writes;
pub use zones::Zones;

/// The file name in errors about a command line; the "line" is then the number of the argument, the
/// first after `fio` being 1.
pub const COMMAND_LINE: &str = "command line";

/// The jobs of files or of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// In order; `numjobs` not unrolled.
    pub jobs: Vec<FioJob>,
    /// Options that were accepted and change nothing, each once for each section that sets it.
    pub ignored: Vec<Ignored>,
    /// What is not modelled and was left out; see [`Reading::ignore_unmodelled`].
    pub left_out: Vec<Ignored>,
    /// Settings as they were written that have another value for that reason.
    replaced: Vec<Setting>,
    /// Options of fio itself, from a command line.
    pub program: Vec<Setting>,
    /// The files of the lines of all these.
    pub sources: Sources,
}

impl JobFile {
    /// The value that a setting of a job was written with, if that is not modelled.
    pub fn as_written(&self, setting: &Setting) -> Option<Option<String>> {
        let same = |of: &&Setting| (of.line, &of.option) == (setting.line, &setting.option);
        Some(self.replaced.iter().find(same)?.value.clone())
    }
}

/// An option that changes nothing here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// Line, or number of the argument; see [`Sources`].
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
    /// Line, or number of the argument; see [`Sources`].
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

/// What jobs may refer to, and what becomes of options that are not modelled.
pub struct Reading<'a> {
    /// Reads a file: one of `include`, or a job file on a command line. The error is a sentence.
    pub read: &'a dyn Fn(&Path) -> std::result::Result<String, String>,
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Leaves out what is not modelled, and lists it, instead of refusing the jobs.
    pub ignore_unmodelled: bool,
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Reading");
        shown
            .field("ignore_unmodelled", &self.ignore_unmodelled)
            .finish_non_exhaustive()
    }
}

fn no_file(_: &Path) -> std::result::Result<String, String> {
    Err("no file is read here".to_owned())
}

fn no_variable(_: &str) -> Option<String> {
    None
}

impl Reading<'static> {
    /// No files, no variables, and everything must be modelled.
    pub fn plain() -> Reading<'static> {
        Reading {
            read: &no_file,
            variable: &no_variable,
            ignore_unmodelled: false,
        }
    }
}

/// What was read so far.
#[derive(Default)]
struct Gathered {
    sources: Sources,
    /// Settings of `[global]`, which those of all further files follow.
    global: Vec<Setting>,
    sections: Vec<Section>,
    program: Vec<Setting>,
    problems: Vec<Problem>,
}

impl Gathered {
    /// Adds job file number `number`. fio separates those of several files by a stonewall.
    fn add_file(&mut self, number: usize, file: &Path, text: &str, reading: &Reading<'_>) {
        let before = self.sections.len();
        ini::read(self, file, text, reading);
        if let Some(section) = self.sections.get_mut(before).filter(|_| number > 0) {
            section.settings.push(Setting {
                option: "stonewall".to_owned(),
                value: None,
                line: section.line,
                global: false,
            });
        }
    }
}

/// Reads a job file that refers to nothing else. `file` is the name for errors.
pub fn parse_file(file: &Path, text: &str) -> Result<JobFile> {
    let files = [(file.to_path_buf(), text.to_owned())];
    parse_files(&files, &Reading::plain())
}

/// Reads job files, of which there is at least one: names and texts.
pub fn parse_files(files: &[(PathBuf, String)], reading: &Reading<'_>) -> Result<JobFile> {
    let mut gathered = Gathered::default();
    for (number, (file, text)) in files.iter().enumerate() {
        gathered.add_file(number, file, text, reading);
    }
    gathered
        .problems
        .extend(t_io_uring::refuse(&gathered.sections));
    let no_job = || {
        let what = "no job in it: a job begins with [name] (or --name=NAME)";
        Error::input(files.first().map_or(Path::new(""), |(file, _)| file), what)
    };
    typed(gathered, reading.ignore_unmodelled, no_job)
}

/// Reads fio's command line without the program's name, or that of t/io_uring with it.
pub fn parse_command_line<S: AsRef<str>>(arguments: &[S]) -> Result<JobFile> {
    parse_arguments(arguments, &Reading::plain())
}

/// The same, with job files and with options that are not modelled.
pub fn parse_arguments<S: AsRef<str>>(arguments: &[S], reading: &Reading<'_>) -> Result<JobFile> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let file = Path::new(COMMAND_LINE);
    let is_small = |first: &&str| t_io_uring::is_command(first);
    if arguments.first().is_some_and(is_small) {
        let section = t_io_uring::section(&arguments).map_err(|problem| {
            let (sources, list) = (Sources::of(file), vec![problem]);
            Error::Jobs(Problems { sources, list })
        });
        let parsed = from_sections(file, &[section?]);
        return parsed.map_err(|error| t_io_uring::about(&arguments, error));
    }
    let mut gathered = Gathered::default();
    cmdline::read(&mut gathered, &arguments, reading);
    gathered
        .problems
        .extend(t_io_uring::refuse(&gathered.sections));
    let no_job = || {
        Error::input(
            file,
            "no --name=NAME among the arguments, so there is no job",
        )
    };
    typed(gathered, reading.ignore_unmodelled, no_job)
}

/// Types sections from another source (a scenario's `[[job]]` tables).
pub fn from_sections(file: &Path, sections: &[Section]) -> Result<JobFile> {
    let gathered = Gathered {
        sources: Sources::of(file),
        sections: sections.to_vec(),
        ..Gathered::default()
    };
    typed(gathered, false, || Error::input(file, "no job in it"))
}

fn typed(gathered: Gathered, ignore: bool, no_job: impl Fn() -> Error) -> Result<JobFile> {
    let mut all = JobFile {
        jobs: Vec::with_capacity(gathered.sections.len()),
        ignored: Vec::new(),
        left_out: Vec::new(),
        replaced: Vec::new(),
        program: gathered.program,
        sources: gathered.sources,
    };
    let mut problems = gathered.problems;
    let mut names: Vec<String> = Vec::new();
    for section in &gathered.sections {
        let mut built = build::build(section);
        problems.extend(control::awaited(&built.job, &names));
        problems.extend(cmdline::read_only(&built.job, &all.program));
        names.push(built.job.name.clone());
        let without_io = ignore && built.without_io;
        let unmodelled = |of: &Problem| of.unmodelled && ignore;
        // What is left out may hide that something else is not modelled.
        while built.problems.iter().any(unmodelled) {
            let list: Vec<Problem> = built.problems.extract_if(.., |of| of.unmodelled).collect();
            problems.append(&mut built.problems);
            let left_out = build::leave_out(&mut built.job, &list, &mut all.replaced);
            all.left_out.extend(left_out);
            built = build::build(&Section {
                settings: built.job.written,
                ..section.clone()
            });
        }
        problems.extend(built.problems);
        if !without_io {
            all.jobs.push(built.job);
            all.ignored.extend(built.notes);
        }
    }
    problems.sort();
    problems.dedup();
    if !problems.is_empty() {
        let (sources, list) = (all.sources, problems);
        return Err(Error::Jobs(Problems { sources, list }));
    }
    if gathered.sections.is_empty() {
        return Err(no_job());
    }
    if all.jobs.is_empty() {
        let file = all.sources.place(0).0;
        return Err(Error::input(
            file,
            "none of its jobs reads or writes a device",
        ));
    }
    for notes in [&mut all.ignored, &mut all.left_out] {
        notes.sort();
        notes.dedup();
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
