//! From arguments to a scenario, a plan and the machine it runs on.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::report::{Origin, digest};
use sim::scenario::{ProfileFacts, Scenario, ScenarioError};

use crate::args::RunArgs;
use crate::builtin;
use crate::error::Error;

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
}

/// Reads, changes and checks what the arguments ask for.
pub(crate) fn prepare(args: &RunArgs) -> Result<Prepared, Error> {
    let (mut scenario, text) = read(args)?;
    let profiles = profiles(args)?;
    let changes = changes(args, &profiles)?;
    if let Some(device) = &args.device {
        scenario = scenario.set_device(device)?;
    }
    for change in &changes {
        let set = scenario.set(&change.assignment);
        scenario = set.map_err(|error| in_words_of(&changes, &error))?;
    }
    let facts: Vec<ProfileFacts<'_>> = profiles
        .iter()
        .map(|profile| ProfileFacts {
            name: &profile.name,
            cpus: profile.cpus(),
        })
        .collect();
    let plan = scenario
        .plan(&facts)
        .map_err(|error| in_words_of(&changes, &error))?;
    let profile = profiles
        .into_iter()
        .rfind(|profile| profile.name == plan.machine.profile);
    let profile = profile.expect("the plan chose among these");
    let mut options: Vec<String> = args
        .device
        .iter()
        .map(|d| format!("--device {d}"))
        .collect();
    options.extend(changes.into_iter().map(|change| change.option));
    if !args.fio.is_empty() {
        options.push(format!("-- {}", args.fio.join(" ")));
    }
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_hash: digest(&text),
        options,
    };
    Ok(Prepared {
        plan,
        profile,
        origin,
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

/// Reads a small text file.
fn read_text(file: &Path) -> Result<String, Error> {
    let refuse = |error: std::io::Error| Error::input(file, format!("cannot read: {error}"));
    let mut bytes = Vec::new();
    let mut opened = File::open(file).map_err(refuse)?;
    opened
        .by_ref()
        .take(TEXT_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(refuse)?;
    if bytes.len() as u64 > TEXT_MAX {
        return Err(Error::input(
            file,
            format!("longer than {TEXT_MAX} bytes, so no such file"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::input(
            file,
            format!("byte {at}: no UTF-8 text, which scenarios are"),
        )
    })
}

/// The built-in machines, and the one of `--machine FILE.toml`.
fn profiles(args: &RunArgs) -> Result<Vec<MachineProfile>, Error> {
    let mut profiles = Vec::new();
    for name in MachineProfile::names() {
        profiles.push(MachineProfile::built_in(name).map_err(|what| Error::usage(name, what))?);
    }
    if let Some(file) = machine_file(args) {
        let text = read_text(file)?;
        profiles.push(MachineProfile::parse(&text).map_err(|what| in_one_line(file, &what))?);
    }
    Ok(profiles)
}

/// The TOML reader draws its errors over several lines, the first with the place, the last with
/// the reason.
fn in_one_line(file: &Path, what: &str) -> Error {
    let what = what.trim_end();
    let reason = what.lines().last().unwrap_or(what);
    let line = what
        .strip_prefix("TOML parse error at line ")
        .and_then(|rest| rest.split_once(','));
    match line {
        Some((line, _)) => Error::Usage {
            option: format!("{}:{line}", file.display()),
            what: reason.to_owned(),
        },
        None => Error::input(file, what),
    }
}

fn machine_file(args: &RunArgs) -> Option<&Path> {
    let file = Path::new(args.machine.as_deref()?);
    file.extension()
        .is_some_and(|ending| ending == "toml")
        .then_some(file)
}

/// A change of the scenario by an option.
#[derive(Debug)]
struct Change {
    /// As the user wrote it.
    option: String,
    /// As `Scenario::set` takes it.
    assignment: String,
}

/// All changes in the order of application; an error if two change the same value.
fn changes(args: &RunArgs, profiles: &[MachineProfile]) -> Result<Vec<Change>, Error> {
    let machine = match machine_file(args) {
        Some(_) => profiles.last().map(|profile| profile.name.as_str()),
        None => args.machine.as_deref(),
    };
    let seed = args.seed.map(|seed| seed.to_string());
    let short: [(&str, &str, Option<&str>, Option<&str>); 6] = [
        (
            "--machine",
            "machine.profile",
            args.machine.as_deref(),
            machine,
        ),
        (
            "--scheduler",
            "queue.scheduler",
            args.scheduler.as_deref(),
            args.scheduler.as_deref(),
        ),
        (
            "--rules",
            "queue.rules",
            args.rules.as_deref(),
            args.rules.as_deref(),
        ),
        ("--seed", "seed", seed.as_deref(), seed.as_deref()),
        (
            "--runtime",
            "job.runtime",
            args.runtime.as_deref(),
            args.runtime.as_deref(),
        ),
        (
            "--ramp-time",
            "job.ramp_time",
            args.ramp_time.as_deref(),
            args.ramp_time.as_deref(),
        ),
    ];
    let mut changes = Vec::new();
    for (option, key, written, value) in short {
        if let (Some(written), Some(value)) = (written, value) {
            let option = format!("{option} {written}");
            changes.push(Change {
                option,
                assignment: format!("{key}={value}"),
            });
        }
    }
    for set in &args.set {
        changes.push(Change {
            option: format!("--set {set}"),
            assignment: set.clone(),
        });
    }
    for (index, change) in changes.iter().enumerate() {
        let key = key(&change.assignment);
        if let Some(other) = changes[..index]
            .iter()
            .find(|other| self::key(&other.assignment) == key)
        {
            let what = format!("{} sets {key} as well; expected one of them", other.option);
            return Err(Error::usage(&change.option, what));
        }
    }
    Ok(changes)
}

fn key(assignment: &str) -> &str {
    assignment
        .split_once('=')
        .map_or(assignment, |(key, _)| key)
        .trim()
}

/// `--scheduler` is written as an assignment for the scenario, which knows only those. The user
/// reads the option back as it was given.
fn in_words_of(changes: &[Change], error: &ScenarioError) -> Error {
    let text = error.to_string();
    for change in changes {
        let place = format!("--set {}: ", change.assignment);
        if let Some(rest) = text.strip_prefix(&place) {
            return Error::Scenario(format!("{}: {rest}", change.option));
        }
    }
    Error::Scenario(text)
}
