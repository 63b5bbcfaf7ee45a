//! A `Scenario`: an experiment as written, in TOML, as a fio job or as command-line options.
//!
//! Everything may be left out; what it then is stands with each field. Keys are the names of sysfs
//! files, module parameters and fio options. `Scenario::plan` fills in the rest and checks the
//! whole. Read next: `queue.rs` and `device.rs` for the fields, `plan/` for what becomes of them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

mod build;
mod device;
mod error;
mod jobs;
mod queue;
mod read;
mod source;

pub use build::ProfileFacts;
pub use device::{Device, Fault};
pub use error::ScenarioError;
pub use queue::{Machine, Queue};

use source::Source;

use crate::plan::Plan;

type Result<T> = std::result::Result<T, ScenarioError>;

/// An experiment as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// One line about it. Default empty.
    pub description: String,
    /// Seed of all random streams. Default 1.
    pub seed: Option<u64>,
    /// CPUs and their prices.
    pub machine: Machine,
    /// The request queue: files of queue/ and queue/iosched/.
    pub queue: Queue,
    /// The device: parameters of its module.
    pub device: Device,
    /// Jobs: options of fio, each as in a job file. At least one.
    pub job: Vec<BTreeMap<String, Value>>,
    /// Where everything was written.
    #[serde(skip)]
    source: Source,
}

impl Scenario {
    /// Reads a TOML file. `file` names it in errors; its stem becomes the scenario's name.
    pub fn from_toml(file: &Path, text: &str) -> Result<Scenario> {
        // Read twice: typed from the text, which tells lines, and untyped for `set`.
        let typed: std::result::Result<Scenario, _> = toml::from_str(text);
        typed.map_err(|e| read::toml_error(file, text, &e))?;
        let table: Table = toml::from_str(text).map_err(|e| read::toml_error(file, text, &e))?;
        let mut source = Source::new(file, table);
        source.places = read::places(file, text);
        source.scenario()
    }

    /// Reads a fio job file. Its device is that of `filename`, unless `set_device` tells another.
    pub fn from_fio(file: &Path, text: &str) -> Result<Scenario> {
        Scenario::from_jobs(file, &trace::fio::parse_file(file, text)?)
    }

    /// Reads fio's command line, without the program's name.
    pub fn from_fio_arguments<S: AsRef<str>>(arguments: &[S]) -> Result<Scenario> {
        let jobs = trace::fio::parse_command_line(arguments)?;
        Scenario::from_jobs(Path::new(trace::fio::COMMAND_LINE), &jobs)
    }

    /// Takes parsed jobs over.
    pub fn from_jobs(file: &Path, jobs: &trace::fio::JobFile) -> Result<Scenario> {
        jobs::source(file, jobs).scenario()
    }

    /// `--set KEY=VALUE`: changes one value, e.g. `queue.fifo_batch=1`, `device.fault.busy=1/100`;
    /// `job.iodepth=32` changes all jobs. The value is TOML, or else a string.
    pub fn set(self, assignment: &str) -> Result<Scenario> {
        let mut source = self.source;
        read::assign(&mut source, assignment)?;
        source.scenario()
    }

    /// `--device null_blk,irqmode=1,hw_queue_depth=64`: replaces the device.
    pub fn set_device(self, text: &str) -> Result<Scenario> {
        let mut source = self.source;
        read::assign_device(&mut source, text)?;
        source.scenario()
    }

    /// Checks the scenario as a whole and fills in every default. `profiles` are the machines that
    /// exist.
    pub fn plan(&self, profiles: &[ProfileFacts<'_>]) -> Result<Plan> {
        build::plan(self, profiles)
    }

    /// Parameters of the device's module as they are written, by name. Not `type`, not faults.
    pub fn module_parameters(&self) -> Vec<(String, String)> {
        let device = self.source.table.get("device").and_then(Value::as_table);
        let written = device.into_iter().flatten();
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Boolean(on) => u8::from(*on).to_string(),
            other => other.to_string(),
        };
        written
            .filter(|(name, value)| *name != "type" && !value.is_table())
            .map(|(name, value)| (name.clone(), text(value)))
            .collect()
    }

    /// Name: the file's stem.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// An error about a field, at the place where it was written.
    fn error(&self, field: &str, what: impl Into<String>) -> ScenarioError {
        self.source.error(field, what)
    }
}

#[cfg(test)]
mod tests;
