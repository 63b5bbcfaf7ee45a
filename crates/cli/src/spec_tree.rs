//! The folders below `specs/`: their places and their contents.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blkmq::schedule::Schedule;
use explore::tlc::{Edit, Expectations, Mutants, Recorded};
use tempfile::TempDir;

use crate::error::Error;
use crate::text::read_written;

/// Suffix of the modules that follow runs label by label.
pub(crate) const BY_LABELS: &str = "Labels";
/// Suffix of those that follow runs by the schedulers' events.
const RUNS: &str = "Runs";
/// All files of `specs/` when the binary was built, by their paths below it.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/specs.rs"));

#[derive(Debug)]
pub(crate) struct Spec {
    /// Its name, and that of its module.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) expectations: Expectations,
    pub(crate) mutants: Mutants,
    /// All modules, by file name.
    pub(crate) modules: Vec<(String, String)>,
    /// Keeps the folder, if it is a copy of the built-in one.
    _copy: Option<Arc<TempDir>>,
}

/// Reads all of them, or the one that was named.
pub(crate) fn read(given: Option<&Path>, name: Option<&str>) -> Result<Vec<Spec>, Error> {
    let (top, copy) = top(given)?;
    let mut names: Vec<String> = folders(&top)?;
    if let Some(name) = name {
        if !names.iter().any(|known| known == name) {
            let known = names.join(", ");
            let what = format!("no such specification; there are {known}");
            return Err(Error::usage(name, what));
        }
        names = vec![name.to_owned()];
    }
    let read = |name: &String| Spec::read(&top, name, copy.clone());
    names.iter().map(read).collect()
}

/// `--specs`, or the folder in or above the current directory, or a copy of the built-in one.
fn top(given: Option<&Path>) -> Result<(PathBuf, Option<Arc<TempDir>>), Error> {
    if let Some(given) = given {
        return Ok((given.to_path_buf(), None));
    }
    let here = std::env::current_dir().unwrap_or_default();
    let mut above = here.ancestors().map(|dir| dir.join("specs"));
    let is_one = |dir: &PathBuf| folders(dir).is_ok_and(|names| !names.is_empty());
    if let Some(found) = above.find(is_one) {
        return Ok((found, None));
    }
    let copy = copy_of_built_in().map_err(|e| Error::output("a copy of the specifications", e))?;
    Ok((copy.path().to_path_buf(), Some(Arc::new(copy))))
}

fn copy_of_built_in() -> std::io::Result<TempDir> {
    let copy = TempDir::with_prefix("blksim-specs-")?;
    for (path, text) in BUILT_IN {
        let path = copy.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(copy.path()))?;
        fs::write(path, text)?;
    }
    Ok(copy)
}

/// Names of the folders with an `expect.toml`, sorted.
fn folders(top: &Path) -> Result<Vec<String>, Error> {
    let unreadable = |e: std::io::Error| Error::input(top, format!("cannot be read: {e}"));
    let mut names = Vec::new();
    for entry in fs::read_dir(top).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.path().join("expect.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

impl Spec {
    fn read(top: &Path, name: &str, copy: Option<Arc<TempDir>>) -> Result<Spec, Error> {
        let folder = top.join(name);
        let expect = folder.join("expect.toml");
        let expectations = Expectations::parse(&read_written(&expect)?)
            .map_err(|error| Error::input(&expect, error.to_string()))?;
        let file = folder.join("mutants.toml");
        let mutants = Mutants::parse(&read_written(&file)?)
            .map_err(|error| Error::input(&file, error.to_string()))?;
        let modules = ["", "MC", "Trace"].map(|kind| format!("{kind}{name}.tla"));
        // And of specifications of which runs are followed, those modules.
        let of_runs = [BY_LABELS, RUNS]
            .into_iter()
            .flat_map(|suffix| ["", "MC", "Trace"].map(|kind| format!("{kind}{name}{suffix}.tla")));
        let of_runs = of_runs.filter(|m| folder.join(m).is_file());
        let modules = modules.into_iter().chain(of_runs).map(|module| {
            let text = read_written(&folder.join(&module))?;
            Ok((module, text))
        });
        Ok(Spec {
            name: name.to_owned(),
            expectations,
            mutants,
            modules: modules.collect::<Result<_, Error>>()?,
            _copy: copy,
            folder,
        })
    }

    pub(crate) fn configuration(&self, variant: &str) -> Result<String, Error> {
        read_written(&self.folder.join("variants").join(format!("{variant}.cfg")))
    }

    pub(crate) fn trace(&self, recorded: &Recorded) -> Result<Schedule, Error> {
        let path = self.folder.join("traces").join(&recorded.file);
        let schedule = schedule(&path)?;
        let own = [&self.name, &self.of_runs()].contains(&&schedule.spec);
        if !own || schedule.steps.is_empty() {
            let what = format!("expected steps of spec {}", self.name);
            return Err(Error::input(&path, what));
        }
        Ok(schedule)
    }

    /// The specification of schedules of simulated runs.
    pub(crate) fn of_runs(&self) -> String {
        let runs = format!("{}{RUNS}", self.name);
        let module = format!("Trace{runs}.tla");
        match self.modules.iter().any(|(name, _)| *name == module) {
            true => runs,
            false => format!("{}{BY_LABELS}", self.name),
        }
    }

    pub(crate) fn mutated(&self, edit: &Edit) -> Result<Vec<(String, String)>, Error> {
        let mut modules = self.modules.clone();
        let place = modules.iter_mut().find(|(name, _)| *name == edit.file);
        let file = self.folder.join("mutants.toml");
        let (_, text) = place.ok_or_else(|| {
            let what = format!("mutant {}: there is no {}", edit.name, edit.file);
            Error::input(&file, what)
        })?;
        let changed = edit.apply(text);
        *text = changed.map_err(|error| Error::input(&file, error.to_string()))?;
        Ok(modules)
    }
}

/// True if a schedule is of a run of the simulator.
pub(crate) fn is_run(schedule: &Schedule) -> bool {
    [BY_LABELS, RUNS]
        .iter()
        .any(|suffix| schedule.spec.ends_with(suffix))
}

pub(crate) fn schedule(path: &Path) -> Result<Schedule, Error> {
    Schedule::parse(&read_written(path)?).map_err(|error| Error::input(path, error.to_string()))
}
