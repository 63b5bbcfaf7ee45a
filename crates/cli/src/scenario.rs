//! From arguments to a scenario, a plan and the machine it runs on.

use std::path::Path;

use scenario::Scenario;
use scenario::report::{Origin, digest};
use sim::plan::Plan;
use sim::profile::MachineProfile;

use crate::args::RunArgs;
use crate::builtin;
use crate::changes::{Changes, Machines};
use crate::error::Error;
use crate::text::{parse, read_text};
use crate::trace_out::Written;
use crate::without;

/// A run that can start.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) profile: MachineProfile,
    pub(crate) origin: Origin,
    /// For the folder of `--blktrace`.
    pub(crate) written: Written,
}

/// Reads, changes and checks the scenario of the arguments.
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
    if let Some(drive) = &args.drive {
        scenario = with_drive(scenario, drive)?;
    }
    let (scenario, plan) = changes.apply(scenario, &machines)?;
    let mut options: Vec<String> = args
        .device
        .iter()
        .map(|d| format!("--device {d}"))
        .collect();
    options.extend(args.drive.iter().map(|drive| format!("--drive {drive}")));
    options.extend(changes.options());
    options.extend(args.without.iter().map(|name| format!("--without {name}")));
    if !args.fio.is_empty() {
        options.push(format!("-- {}", args.fio.join(" ")));
    }
    let written = Written {
        parameters: scenario.module_parameters(),
        tables: scenario.mapped.iter().map(|of| of.table.clone()).collect(),
        arguments: args.scenario.iter().chain(&options).cloned().collect(),
    };
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_hash: digest(&text),
        options,
    };
    let mut profile = machines.get(&plan.machine.profile).clone();
    for mechanism in without::distinct(&args.without)? {
        mechanism.switch_off(&mut profile);
    }
    Ok(Prepared {
        plan,
        profile,
        origin,
        written,
    })
}

/// The scenario with a built-in drive, or one of a file.
fn with_drive(scenario: Scenario, drive: &str) -> Result<Scenario, Error> {
    let file = Path::new(drive);
    if file.extension().is_none_or(|ending| ending != "toml") {
        return Ok(scenario.set_drive(drive, None)?);
    }
    let text = read_text(file)?;
    Ok(scenario.set_drive(drive, Some((file, &text)))?)
}

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
            let what = match file.is_dir() {
                true => "expected a file named *.toml or *.fio; for a capture `blksim replay`",
                false => "expected a file named *.toml or *.fio; for `plot` also *.json",
            };
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
