//! From arguments to a scenario, a plan and the machine it runs on.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::report::{Origin, digest};
use sim::scenario::{Scenario, ScenarioError};

use crate::args::RunArgs;
use crate::builtin;
use crate::changes::{Changes, Machines};
use crate::error::Error;
use crate::trace_out::Written;

/// Longest file that is read as a scenario or a profile. The longest sensible one is far shorter;
/// `/dev/zero` is far longer.
const TEXT_MAX: u64 = 1 << 20;

/// A run that can start.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What to simulate.
    pub(crate) plan: Plan,
    /// On what.
    pub(crate) profile: MachineProfile,
    /// For the report.
    pub(crate) origin: Origin,
    /// For the folder of `--blktrace`.
    pub(crate) written: Written,
}

/// Reads, changes and checks what the arguments ask for.
pub(crate) fn prepare(args: &RunArgs) -> Result<Prepared, Error> {
    let (mut scenario, text) = read(args)?;
    let machines = Machines::of(&args.tune)?;
    let changes = Changes::of(
        &args.tune,
        &machines,
        &[
            ("--scheduler", "queue.scheduler", args.scheduler.as_deref()),
            ("--runtime", "job.runtime", args.runtime.as_deref()),
            ("--ramp-time", "job.ramp_time", args.ramp_time.as_deref()),
        ],
    )?;
    if let Some(device) = &args.device {
        scenario = scenario.set_device(device)?;
    }
    let (scenario, plan) = changes.apply(scenario, &machines)?;
    let mut options: Vec<String> = args
        .device
        .iter()
        .map(|d| format!("--device {d}"))
        .collect();
    options.extend(changes.options());
    if !args.fio.is_empty() {
        options.push(format!("-- {}", args.fio.join(" ")));
    }
    let written = Written {
        parameters: scenario.module_parameters(),
        arguments: args.scenario.iter().chain(&options).cloned().collect(),
    };
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_hash: digest(&text),
        options,
    };
    let profile = machines.get(&plan.machine.profile).clone();
    Ok(Prepared {
        plan,
        profile,
        origin,
        written,
    })
}

/// Reads a scenario's text by the kind that the file's name tells.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Scenario, ScenarioError> {
    if file.extension().is_some_and(|ending| ending == "fio") {
        Scenario::from_fio(file, text)
    } else {
        Scenario::from_toml(file, text)
    }
}

/// The scenario and its text.
fn read(args: &RunArgs) -> Result<(Scenario, String), Error> {
    let Some(name) = &args.scenario else {
        return Ok((
            Scenario::from_fio_arguments(&args.fio)?,
            args.fio.join("\n"),
        ));
    };
    load(name)
}

/// The scenario of this name or file, and its text.
pub(crate) fn load(name: &str) -> Result<(Scenario, String), Error> {
    let file = Path::new(name);
    let ending = file.extension().and_then(|ending| ending.to_str());
    if !matches!(ending, Some("toml" | "fio")) {
        if file.components().count() > 1 || file.exists() {
            let what = "the name tells what it is: expected FILE.toml or FILE.fio";
            return Err(Error::input(file, what));
        }
        let built_in = builtin::find(name)?;
        return Ok((built_in.scenario()?, built_in.text.to_owned()));
    }
    let text = read_text(file)?;
    Ok((parse(file, &text)?, text))
}

/// [`load`] for studies.
pub(crate) fn loaded(name: &str) -> Result<(Scenario, String), study::error::Error> {
    load(name).map_err(|error| study::error::Error::Scenario(error.to_string()))
}

/// Longest text that a program wrote: a report with details of every kind is a hundredth of it.
const WRITTEN_MAX: u64 = 64 << 20;

/// Reads a scenario or a profile.
pub(crate) fn read_text(file: &Path) -> Result<String, Error> {
    read_up_to(file, TEXT_MAX)
}

/// Reads a report, a schedule or what belongs to a specification.
pub(crate) fn read_written(file: &Path) -> Result<String, Error> {
    read_up_to(file, WRITTEN_MAX)
}

fn read_up_to(file: &Path, most: u64) -> Result<String, Error> {
    let refuse = |error: std::io::Error| Error::input(file, format!("cannot read: {error}"));
    let mut bytes = Vec::new();
    let mut opened = File::open(file).map_err(refuse)?;
    opened
        .by_ref()
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(refuse)?;
    if bytes.len() as u64 > most {
        return Err(Error::input(
            file,
            format!("longer than {most} bytes: too long to be read"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::input(file, format!("byte {at}: no UTF-8 text, as it should be"))
    })
}
