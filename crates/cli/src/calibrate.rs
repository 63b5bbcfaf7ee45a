//! `blksim calibrate`: measurements in, a profile and its residuals out.

use std::fmt::Write as _;
use std::path::Path;

use scenario::profile;
use scenario::table::csv_of;
use sim::cost::Component;
use sim::profile::MachineProfile;
use study::calibrate::{
    self, Calibration, MeasuredRun, Measurements, Run, Samples, Shares, Symbols,
};

use crate::OK;
use crate::args::CalibrateArgs;
use crate::changes::{in_one_line, machine_of};
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile, Written};
use crate::scenario::load;
use crate::text::{read_samples, read_text};

/// Symbols of no component that are listed by name.
const LISTED: usize = 12;

/// Fits and prints. The profile is written whole or not at all.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<u8, Error> {
    let mut measurements = measurements(args)?;
    let mut base = base(&measurements.base)?;
    base.clock_mhz = measurements.clock_mhz.unwrap_or(base.clock_mhz);
    let checked = base.check_clock();
    checked.map_err(|what| Error::usage("calibrate", what))?;
    let mut text = String::new();
    let mut runs = Vec::new();
    for measured in &mut measurements.runs {
        if let Some(perf) = measured.perf.clone() {
            text += &sample(measured, Path::new(&perf), args, base.clock_mhz)?;
        }
        let (scenario, _) = load(&measured.scenario)?;
        runs.push(Run::new(measured, scenario, &base)?);
    }
    let interrupt = Interrupt::install()?;
    let output = args.output.as_deref().map(OutputFile::open).transpose()?;
    let csv = args.csv.as_deref().map(OutputFile::open).transpose()?;
    if let Some(name) = &measurements.name {
        base.name.clone_from(name);
    }
    if let Some(description) = &measurements.description {
        base.description.clone_from(description);
    }
    let file = args.file.display().to_string();
    let fitted = with_fleet(&args.jobs, &interrupt, |fleet| {
        calibrate::calibrate(&base, &runs, &file, fleet)
    })?;
    // The text goes to standard output unless the CSV does.
    let in_place = csv.as_ref().is_some_and(OutputFile::is_stdout);
    let csv = csv
        .map(|file| file.put(&residuals_csv(&fitted)))
        .transpose()?;
    if !in_place {
        output::print(&(text + &residuals(&fitted)))?;
    }
    if let Some(output) = output {
        let note = format!(
            "# Made by blksim {} calibrate from {}.\n",
            env!("CARGO_PKG_VERSION"),
            args.file.display()
        );
        output
            .put(&(note + &profile::to_toml(&fitted.profile)))?
            .keep()?;
    }
    csv.map_or(Ok(()), Written::keep)?;
    Ok(OK)
}

/// Those of the file, or of the one run that options describe.
fn measurements(args: &CalibrateArgs) -> Result<Measurements, Error> {
    let file = &args.file;
    let mut measurements = match (&args.base, &args.scenario) {
        (Some(base), Some(scenario)) => {
            let mut run = MeasuredRun::of_perf(file.display().to_string(), scenario.clone());
            if let Some(name) = file.file_name() {
                run.name = name.display().to_string();
            }
            (run.iops, run.busy_cpus) = (args.iops, args.busy_cpus);
            run.set.clone_from(&args.set);
            Measurements::new(base.clone(), run)
        }
        _ => {
            let text = read_text(file)?;
            Measurements::parse(&text).map_err(|what| match Samples::parse(&text) {
                Ok(samples) => {
                    let what = format!("{} needs --base, --run and --iops", samples.format);
                    Error::input(file, what)
                }
                Err(_) => in_one_line(file, &what),
            })?
        }
    };
    measurements.name = args.name.clone().or(measurements.name);
    measurements.clock_mhz = args.clock_mhz.or(measurements.clock_mhz);
    let checked = measurements.check();
    checked.map_err(|what| Error::usage("calibrate", what))?;
    Ok(measurements)
}

/// Takes a run's cycles from perf's samples, and says which of them count for nothing.
fn sample(
    run: &mut MeasuredRun,
    file: &Path,
    args: &CalibrateArgs,
    clock_mhz: u64,
) -> Result<String, Error> {
    let mut symbols = Symbols::built_in().map_err(|what| Error::usage("symbols", what))?;
    if let Some(more) = &args.symbols {
        let added = symbols.add(&read_text(more)?);
        added.map_err(|what| in_one_line(more, &what))?;
    }
    let text = read_samples(file)?;
    let samples = Samples::parse(&text).map_err(|what| Error::input(file, what))?;
    let shares = Shares::of(&samples, &symbols);
    let taken = run.sampled(&shares, clock_mhz);
    taken.map_err(|what| Error::input(file, what))?;
    let about = format!("{}: {}", file.display(), samples.format);
    Ok(about + &account(run, &samples, &shares))
}

/// The rest of a line about the samples, and lines about those that count for nothing.
fn account(run: &MeasuredRun, samples: &Samples, shares: &Shares) -> String {
    let share = |weight: f64| 100.0 * weight / shares.busy();
    let mut text = String::new();
    if samples.listed_percent < 99.0 {
        let _ = write!(text, " of {:.1} % of its samples", samples.listed_percent);
    }
    let _ = writeln!(
        text,
        "; {:.1} % idle, not counted; of the others {:.1} % by a caller's symbol, {:.1} % waiting \
         for locks",
        100.0 * shares.idle / (shares.busy() + shares.idle),
        share(shares.by_caller),
        share(shares.waiting)
    );
    let mut unknown: Vec<(&String, f64)> = shares.unknown.iter().map(|(s, &w)| (s, w)).collect();
    unknown.sort_by(|a, b| b.1.total_cmp(&a.1));
    if !unknown.is_empty() {
        let sum: f64 = unknown.iter().map(|(_, weight)| weight).sum();
        let listed = unknown.iter().take(LISTED);
        let mut listed: Vec<String> = listed
            .map(|&(symbol, weight)| format!("{symbol} {:.1} %", share(weight)))
            .collect();
        if unknown.len() > LISTED {
            listed.push(format!("{} more", unknown.len() - LISTED));
        }
        let _ = writeln!(
            text,
            "  {:.1} % of the samples are in symbols of no component: {}; add them to a file \
             for --symbols",
            share(sum),
            listed.join(", ")
        );
    }
    let names = Component::ALL.map(Component::name).into_iter();
    let without: Vec<&str> = names
        .filter(|name| !run.cycles_per_io.contains_key(*name))
        .collect();
    if !without.is_empty() {
        let without = without.join(", ");
        let _ = writeln!(
            text,
            "  no sample, prices stay those of the base: {without}"
        );
    }
    text + "\n"
}

/// A built-in profile or one in a file.
fn base(name: &str) -> Result<MachineProfile, Error> {
    let file = Path::new(name);
    if file.extension().is_some_and(|ending| ending == "toml") {
        return machine_of(file);
    }
    profile::built_in(name).map_err(|what| Error::usage("base", what))
}

fn residuals_csv(fitted: &Calibration) -> String {
    let mut rows = vec![["run", "figure", "measured", "simulated"].map(str::to_owned)];
    rows.extend(fitted.residuals.iter().map(|residual| {
        let figures = [residual.measured, residual.simulated].map(|figure| figure.to_string());
        let [measured, simulated] = figures;
        [
            residual.run.clone(),
            residual.figure.clone(),
            measured,
            simulated,
        ]
    }));
    csv_of(&rows)
}

fn residuals(fitted: &Calibration) -> String {
    let mut text = format!(
        "{:<28} {:<10} {:>12} {:>12} {:>7}\n",
        "run", "figure", "measured", "simulated", "ratio"
    );
    for residual in &fitted.residuals {
        let ratio = residual.simulated / residual.measured;
        let ratio = if ratio.is_finite() {
            format!("{ratio:.3}")
        } else {
            "-".to_owned()
        };
        let _ = writeln!(
            text,
            "{:<28} {:<10} {:>12.0} {:>12.0} {ratio:>7}",
            residual.run, residual.figure, residual.measured, residual.simulated
        );
    }
    text
}
