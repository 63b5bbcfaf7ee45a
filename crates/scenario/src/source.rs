//! The place of each value of a scenario, so that a late error can still name the line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::{Table, Value};
use trace::fio::Setting;

use super::drive::DriveFile;
use super::mapped::table_name;
use super::{Result, Scenario, ScenarioError};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Line(PathBuf, u64),
    /// On the command line: the whole option.
    Option(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(file, line) => f.write_str(&trace::fio::place(file, *line)),
            Place::Option(option) => f.write_str(option),
        }
    }
}

/// The untyped scenario with its places.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    pub(super) name: String,
    /// The file it came from.
    pub(super) file: PathBuf,
    /// The tables as written, after all `--set` and `--device`.
    pub(super) table: Table,
    /// The same with the keys of drives in the tables that name one.
    pub(super) whole: Table,
    /// A drive of a file, in addition to the built-in ones.
    pub(super) drive: Option<DriveFile>,
    /// What was left out of fio's jobs since it is not modelled, with place and reason.
    pub(super) left_out: Vec<String>,
    /// Options of jobs as they were written that run with another value since that is not modelled,
    /// by dotted name.
    pub(super) replaced: BTreeMap<String, Option<String>>,
    /// Names of fio's sections; empty if it was read from TOML.
    pub(super) sections: Vec<String>,
    /// Options of fio itself, from its command line.
    pub(super) program: Vec<Setting>,
    /// Options of jobs that `[global]` has, by dotted name: `job.0.bs`.
    pub(super) global: BTreeSet<String>,
    /// By dotted name: `queue.fifo_batch`, `job.0.iodepth`, `job.0`.
    pub(super) places: BTreeMap<String, Place>,
}

impl Source {
    /// Only `table` has content.
    pub(super) fn new(file: &Path, table: Table) -> Source {
        let name = file
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Source {
            name,
            file: file.to_path_buf(),
            table,
            ..Source::default()
        }
    }

    /// Types the tables. They were read from a correct file or changed by an option that was just
    /// checked, so an error here is about that option; see `read.rs`.
    pub(super) fn scenario(mut self) -> Result<Scenario> {
        let (whole, places) = self.with_drives()?;
        let mut scenario =
            Scenario::deserialize(whole.clone()).map_err(|e| ScenarioError::Syntax {
                place: self.file.display().to_string(),
                what: super::read::sentence(e.message()),
            })?;
        self.whole = whole;
        self.places.extend(places);
        let one = self.table("mapped").is_some();
        for (number, mapped) in scenario.mapped.iter_mut().enumerate() {
            let table = table_name((!one).then_some(number));
            let written = mapped.write_words();
            written.map_err(|(key, what)| self.error(&format!("{table}.{key}"), what))?;
        }
        scenario.source = self;
        Ok(scenario)
    }

    /// The table of this dotted name, e.g. `device` or `device.1.queue`, if it is written.
    pub(super) fn table(&self, field: &str) -> Option<&Table> {
        let mut parts = field.split('.');
        let mut value = self.whole.get(parts.next()?)?;
        for part in parts {
            value = match value {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
                Value::Table(table) => table.get(part)?,
                _ => return None,
            };
        }
        value.as_table()
    }

    /// Names of the keys written in a table.
    pub(super) fn keys(&self, field: &str) -> impl Iterator<Item = &String> {
        self.table(field).into_iter().flat_map(Table::keys)
    }

    /// The place of a field; that of the table around it, or the file, if it is not written.
    pub(super) fn place(&self, field: &str) -> String {
        let file = || self.file.display().to_string();
        self.written_at(field)
            .map_or_else(file, ToString::to_string)
    }

    /// The same; none if it is not written.
    pub(super) fn written_at(&self, field: &str) -> Option<&Place> {
        let mut name = field;
        loop {
            if let Some(place) = self.places.get(name) {
                return Some(place);
            }
            name = name.rsplit_once('.')?.0;
        }
    }

    pub(super) fn error(&self, field: &str, what: impl Into<String>) -> ScenarioError {
        ScenarioError::Field {
            place: self.place(field),
            field: self.shown(field),
            what: what.into(),
        }
    }

    /// `[section] option` of fio's jobs, which have no tables by number.
    fn shown(&self, field: &str) -> String {
        let of_section = || {
            let job = field.strip_prefix("job.")?;
            let (number, option) = job.split_once('.').unwrap_or((job, ""));
            let section = self.sections.get(number.parse::<usize>().ok()?)?;
            Some(format!("[{section}] {option}").trim_end().to_owned())
        };
        of_section().unwrap_or_else(|| field.to_owned())
    }
}
