//! From arguments to a scenario, a plan and the machine it runs on.

use std::path::{Path, PathBuf};

use scenario::Scenario;
use scenario::report::{Origin, digest};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use trace::fio::{Treatment, lookup};

use crate::args::{FioFormats, ReportArgs, SweepArgs, TextTo, Tune};
use crate::builtin;
use crate::changes::{Changes, Machines};
use crate::elevator;
use crate::error::Error;
use crate::inside::Inside;
use crate::text::{is_job, parse, read_text, reading};
use crate::trace_out::Written;
use crate::without;

/// What a run is made of: a scenario, job files, or fio's command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// Several are job files, one after the other.
    Named(Vec<String>),
    Fio(Vec<String>),
}

impl Input {
    /// As it was written.
    pub(crate) fn name(&self) -> String {
        match self {
            Input::Named(names) => names.join(" "),
            Input::Fio(_) => trace::fio::COMMAND_LINE.to_owned(),
        }
    }
}

/// The changes of a run to its scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Point {
    /// Of the command's inputs, by index.
    pub(crate) input: usize,
    /// NAME or NAME+SERIES.
    pub(crate) scheduler: Option<String>,
    pub(crate) rules: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) threads: Option<u32>,
    /// `KEY=VALUE`, one of each `--set`.
    pub(crate) set: Vec<String>,
    pub(crate) seed: Option<u64>,
    /// Positions follow the seed.
    pub(crate) vary: bool,
}

/// A run that can start.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) profile: MachineProfile,
    pub(crate) origin: Origin,
    /// For the folder of `--blktrace`.
    pub(crate) written: Written,
}

/// Changes and checks a scenario, which was read from this input and text.
pub(crate) fn prepare(
    (mut scenario, text): (Scenario, &str),
    input: &Input,
    point: &Point,
    args: &SweepArgs,
) -> Result<Prepared, Error> {
    let tune = Tune {
        machine: point.machine.clone(),
        rules: point.rules.clone(),
        set: point.set.clone(),
        seed: point.seed,
    };
    let machines = Machines::of(&tune)?;
    if let Some(device) = &args.device {
        scenario = scenario.set_device(device)?;
    }
    if let Some(drive) = &args.drive {
        scenario = with_drive(scenario, drive)?;
    }
    let (scenario, plan, changed) = planned(scenario, point, args, &tune)?;
    let mut options: Vec<String> = args
        .device
        .iter()
        .map(|d| format!("--device {d}"))
        .collect();
    options.extend(args.drive.iter().map(|drive| format!("--drive {drive}")));
    options.extend(changed);
    options.extend(args.without.iter().map(|name| format!("--without {name}")));
    if args.ignore_unmodelled {
        options.push("--ignore-unmodelled".to_owned());
    }
    let names: &[String] = match input {
        Input::Named(names) => names,
        Input::Fio(arguments) => {
            options.push(format!("-- {}", arguments.join(" ")));
            &[]
        }
    };
    let written = Written {
        parameters: scenario.module_parameters(),
        tables: scenario.mapped.iter().map(|of| of.table.clone()).collect(),
        arguments: names.iter().chain(&options).cloned().collect(),
    };
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_hash: digest(text),
        options,
        varied: Vec::new(),
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

/// The changed scenario, its plan, and the options that say so.
fn planned(
    scenario: Scenario,
    point: &Point,
    args: &SweepArgs,
    tune: &Tune,
) -> Result<(Scenario, Plan, Vec<String>), Error> {
    let machines = Machines::of(tune)?;
    let changes = |scheduler: Option<&str>| {
        let of_options = [
            ("--scheduler", "queue.scheduler", scheduler),
            ("--runtime", "job.runtime", args.runtime.as_deref()),
            ("--ramp-time", "job.ramp_time", args.ramp_time.as_deref()),
            ("--precision", "precision", args.precision.as_deref()),
        ];
        Changes::of(tune, &machines, &of_options)
    };
    let name = point.scheduler.as_deref();
    let Some(file) = name.filter(|name| elevator::is_file(name)) else {
        let changes = changes(name)?;
        let (scenario, plan) = changes.apply(scenario, &machines)?;
        return Ok((scenario, plan, changes.options().collect()));
    };
    // HZ is a constant of the kernel's C.
    let (_, plan) = changes(None)?.apply(scenario.clone(), &machines)?;
    let library = elevator::library(file, args.linux.as_deref(), plan.machine.hz)?;
    let of_model = changes(Some(elevator::in_place_of(&library).name()))?;
    let (scenario, mut plan) = of_model.apply(scenario, &machines)?;
    elevator::replace(&mut plan, &library)?;
    let mut options: Vec<String> = changes(None)?.options().collect();
    options.push(format!("--elevator {file}"));
    options.extend(
        args.linux
            .iter()
            .map(|dir| format!("--linux {}", dir.display())),
    );
    Ok((scenario, plan, options))
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

/// Lines about outputs of fio that are asked for and not written.
pub(crate) fn unwritten(scenario: &Scenario) -> String {
    let mut notes = Vec::new();
    for option in scenario.job.iter().flat_map(|job| job.keys()) {
        if let Some(Treatment::Unwritten(why)) = lookup(option).map(|known| known.treatment) {
            notes.push(format!("note: {option}: {why}\n"));
        }
    }
    for setting in scenario.fio_program() {
        match lookup(&setting.option).map(|known| (known.name, known.treatment)) {
            Some(("output" | "output-format" | "minimal" | "append-terse", _)) => {}
            Some((name, Treatment::Program(why))) if !why.is_empty() => {
                notes.push(format!("note: --{name}: {why}\n"));
            }
            _ => {}
        }
    }
    notes.sort();
    notes.dedup();
    notes.concat()
}

/// The reports, to which options of fio add.
pub(crate) fn reports(scenario: &Scenario, mut reports: ReportArgs) -> Result<ReportArgs, Error> {
    let last = |name: &str| {
        let mut settings = scenario.fio_program().iter().rev();
        settings.find(|of| lookup(&of.option).is_some_and(|known| known.name == name))
    };
    let value = |name: &str| last(name).and_then(|of| of.value.clone());
    let file = value("output").map(PathBuf::from);
    let mut formats = FioFormats::default();
    let named = value("output-format");
    for format in named.iter().flat_map(|list| list.split(',')) {
        match format {
            "json" => formats.json = true,
            "json+" => (formats.json, formats.bins) = (true, true),
            "normal" => formats.normal = true,
            "terse" | "minimal" => formats.terse = true,
            _ => {
                let what = format!("`{format}` is none of normal, json, json+, terse");
                return Err(Error::usage("-- --output-format", what));
            }
        }
    }
    let (minimal, appended) = (last("minimal").is_some(), last("append-terse").is_some());
    if named.is_none() && !minimal && !appended {
        if let Some(file) = file {
            reports.text = TextTo::File(file);
        }
        return Ok(reports);
    }
    // fio's text is `normal` unless another format is named.
    formats.normal |= named.is_none() && !minimal;
    formats.terse |= minimal || appended;
    formats.to = file.unwrap_or_else(|| PathBuf::from("-"));
    reports.text = TextTo::Nowhere;
    reports.fio = Some(formats);
    Ok(reports)
}

/// The scenario of an input, and its text.
pub(crate) fn read(input: &Input, ignore: bool) -> Result<(Scenario, String), Error> {
    let names = match input {
        Input::Named(names) => names,
        Input::Fio(arguments) => {
            let scenario = Scenario::from_fio_arguments(arguments, &reading(ignore))?;
            return Ok((scenario, arguments.join("\n")));
        }
    };
    match names.as_slice() {
        [name] => load_as(name, ignore),
        names => {
            let mut files = Vec::new();
            for name in names {
                let (file, text) = (PathBuf::from(name), read_text(Path::new(name))?);
                if !is_job(&file, &text) {
                    let what = "a scenario is run by itself; several files are all fio jobs";
                    return Err(Error::input(file, what));
                }
                files.push((file, text));
            }
            let text: Vec<&str> = files.iter().map(|(_, text)| text.as_str()).collect();
            let text = text.concat();
            Ok((Scenario::from_fio_files(&files, &reading(ignore))?, text))
        }
    }
}

/// The scenario of this name or file, and its text.
pub(crate) fn load(name: &str) -> Result<(Scenario, String), Error> {
    load_as(name, false)
}

fn load_as(name: &str, ignore: bool) -> Result<(Scenario, String), Error> {
    if name == "-"
        && let Some(text) = Inside::with(|inside| inside.input.clone()).flatten()
    {
        return Ok((parse(Path::new("scenario"), &text, ignore)?, text));
    }
    let file = Path::new(name);
    let ending = file.extension().and_then(|ending| ending.to_str());
    let is_file = matches!(ending, Some("toml" | "fio")) || file.components().count() > 1;
    if !is_file && name != "-" {
        match builtin::find(name) {
            Ok(built_in) => return Ok((built_in.scenario()?, built_in.text.to_owned())),
            Err(error) if !file.exists() => return Err(error),
            Err(_) => {}
        }
    }
    let what = match ending {
        Some("toml" | "fio") => None,
        _ if file.is_dir() => {
            Some("expected a scenario or a fio job; for a capture `blksim replay`")
        }
        Some("json") => Some("expected a scenario or a fio job; for `plot` also *.json"),
        _ => None,
    };
    if let Some(what) = what {
        return Err(Error::input(file, what));
    }
    let text = read_text(file)?;
    Ok((parse(file, &text, ignore)?, text))
}

/// [`load`] for studies.
pub(crate) fn loaded(name: &str) -> Result<(Scenario, String), study::error::Error> {
    load(name).map_err(|error| study::error::Error::Scenario(error.to_string()))
}
