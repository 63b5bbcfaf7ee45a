//! From an experiment as written to a run and its report: the crate with which to embed the
//! simulator.
//!
//! ```
//! use std::path::Path;
//!
//! # extern crate sim as blksim_sim;
//! use blksim_scenario::report::{Origin, Report};
//! use blksim_scenario::{ProfileFacts, Scenario, profile};
//! use blksim_sim::machine::{Outcome, Simulator};
//!
//! let profile = profile::built_in("ryzen-7950x")?;
//! let facts = ProfileFacts {
//!     name: &profile.name,
//!     cpus: profile.cpus(),
//! };
//! let text = r#"
//!     [device]
//!     type = "null_blk"
//!     [[job]]
//!     rw = "randread"
//!     direct = 1
//!     number_ios = 100
//! "#;
//! let plan = Scenario::from_toml(Path::new("reads.toml"), text)?.plan(&[facts])?;
//! let mut simulator = Simulator::new(&plan, &profile)?;
//! if let Outcome::Stalled(stall) = simulator.run(|_now| true) {
//!     panic!("{stall}");
//! }
//! simulator.settle();
//! let recorder = simulator.recorder();
//! let report = Report::new(Origin::default(), &plan, &profile, recorder, None);
//! assert_eq!(report.jobs[0].read.total_ios, 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `crates/cli/examples/own-scheduler.rs` brings a scheduler of its own. Versions:
//! docs/internals/library.md.
//!
//! A `Scenario` is an experiment in TOML, as a fio job or as command-line options.
//! All keys are optional; each field documents its default. Keys are the names of sysfs files,
//! module parameters and fio options. `Scenario::plan` fills in the rest and checks the whole.
//! Read next: `queue.rs` and `device.rs` for the fields, `sim/src/plan/` for the resulting plan.
//!
//! The crate is everything of a run except the machine: its input and its output
//! (docs/decisions/0034).
//!
//! | Module | Contents |
//! |---|---|
//! | `build`, `read`, `device` ... | from a scenario to a `sim::plan::Plan`; private |
//! | `profile` | machine profiles: built in, from files |
//! | `replay` | captures: reading, their scenario, comparison with their replay |
//! | `report` | figures of a run: text, JSON, CSV |
//! | `table` | rows as CSV |
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

mod build;
mod change;
mod device;
mod drive;
mod error;
mod jobs;
mod mapped;
mod parameter;
pub mod profile;
mod queue;
mod read;
pub mod replay;
pub mod report;
mod source;
mod split;
pub mod table;
mod text;

pub use build::{ProfileFacts, device_types};
pub use change::Change;
pub use device::{Device, Fault};
pub use drive::{drive_names, drives};
pub use error::ScenarioError;
pub use mapped::{Mapped, Message, NoPathRetry, Outage};
pub use parameter::{Parameter, Usual, Values};
pub use queue::{Machine, Queue};
pub use text::FioText;

use source::Source;

use sim::plan::Plan;
use trace::fio::{Reading, Setting};

type Result<T> = std::result::Result<T, ScenarioError>;

/// An experiment as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// One line about it. Default empty.
    pub description: String,
    /// Seed of all random streams. Default 1.
    pub seed: Option<u64>,
    /// I/Os in flight when `runtime` is over count and make the job's measured time longer, a pause
    /// is slept out, and a job that is time_based does not end after number_ios, as in fio. False:
    /// what ends after `runtime` does not count. Default true of fio's job files and command lines,
    /// false of a scenario.
    pub count_tail: Option<bool>,
    /// Half the length of 95 % intervals at which the run ends before its time, in percent of the
    /// figure: `1%` of IOPS, or `iops=1%,p99=5%`, with the names iops, bw, mean, and p50 or any
    /// other percentile that a report has. IOPS, bandwidth and the mean are of all jobs together, a
    /// percentile is of each direction of each job. Default: it does not.
    pub precision: Option<FioText>,
    /// CPUs and costs.
    pub machine: Machine,
    /// Settings of the request queue of every device: files of queue/ and queue/iosched/.
    pub queue: Queue,
    /// The devices. One table `[device]`, or several `[[device]]`.
    #[serde(deserialize_with = "device::one_or_more")]
    pub device: Vec<Device>,
    /// Options of all jobs that do not give their own, as `[global]` of a job file.
    pub global: BTreeMap<String, Value>,
    /// Jobs: options of fio, as in a job file. At least one, unless there are other readers.
    pub job: Vec<BTreeMap<String, Value>>,
    /// Processes that read a region in turns, as dump(8) does: see above. Default: none.
    pub interleaved: Vec<BTreeMap<String, Value>>,
    /// NFS servers with streaming clients: see above. Default: none.
    pub nfsd: Vec<BTreeMap<String, Value>>,
    /// Control groups by path below the root: `[group."a/b"]` with weights, `io.bfq.weight` or for
    /// cfq `blkio.weight`, 1 to 1000, default 100. Jobs name their group in `cgroup`. Default:
    /// none.
    pub group: BTreeMap<String, BTreeMap<String, u64>>,
    /// Multipath devices over devices: one table `[mapped]`, or several `[[mapped]]`. Default none.
    #[serde(deserialize_with = "mapped::one_or_more")]
    pub mapped: Vec<Mapped>,
    /// Changes of the scheduler during the run. Default: none.
    pub change: Vec<Change>,
    /// Where everything was written.
    #[serde(skip)]
    source: Source,
}

impl Scenario {
    /// Reads a TOML file. `file` names it in errors; its stem becomes the scenario's name.
    pub fn from_toml(file: &Path, text: &str) -> Result<Scenario> {
        // Read twice: typed from the text, which has lines, and untyped for `set`.
        let typed: std::result::Result<Scenario, _> = toml::from_str(text);
        typed.map_err(|e| read::toml_error(file, text, &e))?;
        let table: Table = toml::from_str(text).map_err(|e| read::toml_error(file, text, &e))?;
        let mut source = Source::new(file, table);
        source.places = read::places(file, text);
        jobs::spread_global(&mut source)?;
        source.scenario()
    }

    /// Reads a fio job file. Its device is that of `filename`, unless `set_device` replaces it.
    pub fn from_fio(file: &Path, text: &str) -> Result<Scenario> {
        Scenario::from_jobs(file, &trace::fio::parse_file(file, text)?)
    }

    /// Reads fio job files, names and texts. The scenario has the name of the first.
    pub fn from_fio_files(files: &[(PathBuf, String)], reading: &Reading<'_>) -> Result<Scenario> {
        let first = files.first().map_or(Path::new(""), |(file, _)| file);
        Scenario::from_jobs(first, &trace::fio::parse_files(files, reading)?)
    }

    /// Reads fio's command line without the program's name, or that of t/io_uring with it.
    pub fn from_fio_arguments<S: AsRef<str>>(
        arguments: &[S],
        reading: &Reading<'_>,
    ) -> Result<Scenario> {
        let jobs = trace::fio::parse_arguments(arguments, reading)?;
        let mut source = jobs::source(Path::new(trace::fio::COMMAND_LINE), &jobs)?;
        jobs::name_arguments(&mut source, &jobs, arguments);
        source.scenario()
    }

    pub fn from_jobs(file: &Path, jobs: &trace::fio::JobFile) -> Result<Scenario> {
        jobs::source(file, jobs)?.scenario()
    }

    /// True if the text is a scenario in TOML rather than a fio job file: it is TOML, and has a
    /// table of scenarios.
    pub fn is_toml(text: &str) -> bool {
        const TABLES: [&str; 6] = [
            "queue",
            "device",
            "machine",
            "mapped",
            "nfsd",
            "interleaved",
        ];
        let table: std::result::Result<Table, _> = toml::from_str(text);
        table.is_ok_and(|table| {
            let lists = table.get("job").is_some_and(Value::is_array);
            lists || TABLES.iter().any(|name| table.contains_key(*name))
        })
    }

    /// Options of fio itself, from its command line.
    pub fn fio_program(&self) -> &[Setting] {
        &self.source.program
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

    /// `--drive`: a drive of this name, built in or read from a file with this text, in place of
    /// the scenario's drive. Each of several devices becomes such a drive.
    pub fn set_drive(self, name: &str, file: Option<(&Path, &str)>) -> Result<Scenario> {
        let mut source = self.source;
        let drive = match file {
            None => drive::DriveFile::of_name(name)?,
            Some((file, text)) => drive::DriveFile::parse(name, file, text)?,
        };
        source.replace_drive(drive);
        source.scenario()
    }

    /// Checks the scenario as a whole and fills in every default. `profiles` are the machines that
    /// exist.
    pub fn plan(&self, profiles: &[ProfileFacts<'_>]) -> Result<Plan> {
        build::plan(self, profiles)
    }

    /// Parameters of the devices' module as written, by name. Not `type`, not faults. `None` if
    /// there are several devices that differ in them.
    pub fn module_parameters(&self) -> Option<Vec<(String, String)>> {
        let devices = match self.source.whole.get("device") {
            Some(Value::Array(devices)) => devices.as_slice(),
            Some(device) => std::slice::from_ref(device),
            None => &[],
        };
        let mut of_each = devices.iter().filter_map(Value::as_table);
        let Some(first) = of_each.next() else {
            return Some(Vec::new());
        };
        let type_and_parameters = (first.get("type"), written_parameters(first));
        let alike = of_each
            .all(|other| (other.get("type"), written_parameters(other)) == type_and_parameters);
        alike.then_some(type_and_parameters.1)
    }

    /// Name: the file's stem.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The scenario has jobs of fio, whose I/O may be random.
    pub fn has_jobs(&self) -> bool {
        !self.job.is_empty()
    }

    /// The scenario has readers other than fio's jobs.
    pub(crate) fn has_readers(&self) -> bool {
        !self.interleaved.is_empty() || !self.nfsd.is_empty()
    }

    /// Dotted name of an option of a job of the plan: jobs of readers follow those of fio.
    pub(crate) fn job_field(&self, index: usize, option: &str) -> String {
        let mut number = index;
        let tables = [
            ("job", self.job.len()),
            ("interleaved", self.interleaved.len()),
            ("nfsd", self.nfsd.len()),
        ];
        for (table, count) in tables {
            if number < count {
                return format!("{table}.{number}.{option}");
            }
            number -= count;
        }
        format!("job.{index}.{option}")
    }

    /// An error about a field, at the place where it was written.
    pub(crate) fn error(&self, field: &str, what: impl Into<String>) -> ScenarioError {
        self.source.error(field, what)
    }
}

/// Parameters of a device's table as text.
fn written_parameters(device: &Table) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Boolean(on) => u8::from(*on).to_string(),
        other => other.to_string(),
    };
    let is_parameter = |name: &str| !["type", "name", "drive", "service_times"].contains(&name);
    device
        .iter()
        .filter(|(name, value)| is_parameter(name) && !value.is_table())
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}
