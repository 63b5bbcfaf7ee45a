//! `blksim plot`: pictures of runs, from reports or from runs that it makes itself.
//!
//! Read next: `plot/figures.rs` for the figures, `plot/panel.rs` for drawing. Runs:
//! `combinations.rs`.

pub(crate) mod figures;
mod font;
pub(crate) mod group;
pub(crate) mod input;
pub(crate) mod panel;
pub(crate) mod published;
pub(crate) mod render;
pub(crate) mod scale;
pub(crate) mod scene;
mod table;

use std::path::Path;

use scenario::report::Report;
use study::fleet::Fleet;
use study::sweep::{Collect, run_all};

use crate::args::PlotArgs;
use crate::combinations::Combinations;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile, Written};
use crate::scenario::Input;
use crate::{OK, STALLED};
use figures::Figure;
use group::Groups;
use input::Run;
use published::Published;

/// Draws. All files appear at the end, or none.
pub(crate) fn plot(args: &PlotArgs) -> Result<u8, Error> {
    if args.png {
        let what = "pictures are SVG only; `rsvg-convert` makes a PNG of one";
        return Err(Error::usage("--png", what));
    }
    let names = figures::names();
    if let Some(name) = args
        .figures
        .iter()
        .find(|name| !names.contains(&name.as_str()))
    {
        let what = format!("no figure `{name}`; expected some of {}", names.join(", "));
        return Err(Error::usage("--figures", what));
    }
    let ends = |name: &str, ending| Path::new(name).extension().is_some_and(|e| e == ending);
    let inputs = args.inputs.iter();
    let (tables, inputs): (Vec<&String>, Vec<&String>) =
        inputs.partition(|name| ends(name, "parquet"));
    if !tables.is_empty() {
        return plot_tables(args, &tables, inputs.is_empty());
    }
    let of_tables = [("--x", args.x.is_some()), ("--by", !args.by.is_empty())];
    let mut of_tables = of_tables.into_iter().chain([("--y", !args.y.is_empty())]);
    if let Some((option, _)) = of_tables.find(|(_, given)| *given) {
        return Err(Error::usage(
            option,
            "is for the table of a sweep: results.parquet",
        ));
    }
    let (reports, scenarios): (Vec<&String>, Vec<&String>) =
        inputs.into_iter().partition(|name| ends(name, "json"));
    let mut runs = Vec::new();
    for file in &reports {
        runs.extend(Run::read(Path::new(file))?);
    }
    if scenarios.is_empty() {
        no_runs_to_change(args)?;
    }
    let mut csv = None;
    if !scenarios.is_empty() {
        let named = |name: &String| Input::Named(vec![name.clone()]);
        let inputs: Vec<Input> = scenarios.into_iter().map(named).collect();
        let combinations = Combinations::new(&args.sweep, &inputs, 1)?;
        let interrupt = Interrupt::install()?;
        let jobs = combinations.jobs()?;
        let collect = Collect {
            details: true,
            ..Collect::default()
        };
        let run = |fleet: &Fleet| run_all(&jobs, collect, fleet);
        let made = with_fleet(&args.sweep.jobs, &interrupt, run)?;
        if let Some(stall) = made.iter().find_map(|ran| ran.stall.as_ref()) {
            output::print_stderr(stall);
            return Ok(STALLED);
        }
        for ran in &made {
            let run = Run::of(&ran.report);
            runs.push(run.map_err(|what| Error::usage("report", what))?);
        }
        csv = Some(Report::csv_of_all(made.iter().map(|ran| &ran.report)));
    }
    let mut groups = Groups::new(&runs, args.linear).map_err(|what| Error::usage("plot", what))?;
    if args.published {
        groups.published = Published::of(&runs)?;
    }
    let (figures, notes) = figures::all(&groups, &args.figures);
    write(args, &figures, csv.as_deref(), &notes)?;
    Ok(OK)
}

/// Draws tables of sweeps, a figure of each.
fn plot_tables(args: &PlotArgs, tables: &[&String], alone: bool) -> Result<u8, Error> {
    if !alone {
        let what = "expected tables alone, not beside reports and scenarios";
        return Err(Error::usage(tables[0].as_str(), what));
    }
    no_runs_to_change(args)?;
    let (mut figures, mut notes) = (Vec::new(), Vec::new());
    for file in tables {
        let (figure, of_file) = table::draw(Path::new(file), args)?;
        if figures
            .iter()
            .any(|other: &Figure| other.name == figure.name)
        {
            let what = "another table has this name; expected one of each name";
            return Err(Error::usage(file.as_str(), what));
        }
        figures.push(figure);
        notes.extend(of_file);
    }
    write(args, &figures, None, &notes)?;
    Ok(OK)
}

/// Options that change runs mean nothing where only reports are drawn.
fn no_runs_to_change(args: &PlotArgs) -> Result<(), Error> {
    let sweep = &args.sweep;
    let given = [
        ("--threads", sweep.threads.is_some()),
        ("--seed", sweep.seed.is_some()),
        ("--seeds", sweep.seeds.is_some()),
        ("--scheduler", !sweep.scheduler.is_empty()),
        ("--rules", !sweep.rules.is_empty()),
        ("--machine", !sweep.machine.is_empty()),
        ("--set", !sweep.set.is_empty()),
        ("--device", sweep.device.is_some()),
        ("--drive", sweep.drive.is_some()),
        ("--without", !sweep.without.is_empty()),
        ("--runtime", sweep.runtime.is_some()),
        ("--ramp-time", sweep.ramp_time.is_some()),
        ("--jobs", sweep.jobs.jobs.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Error::usage(
            *option,
            "reports are of runs that are over; expected a SCENARIO to run",
        )),
        None => Ok(()),
    }
}

/// Writes figures into a directory, which is made if it is missing.
pub(crate) fn put(dir: &Path, figures: &[Figure]) -> Result<Vec<Written>, Error> {
    let made = std::fs::create_dir_all(dir);
    made.map_err(|source| Error::output(dir.display().to_string(), source))?;
    let file = |figure: &Figure| {
        let path = dir.join(format!("{}.svg", figure.name));
        OutputFile::open(&path)?.put(&render::svg(&figure.scene))
    };
    figures.iter().map(file).collect()
}

fn write(
    args: &PlotArgs,
    figures: &[Figure],
    csv: Option<&str>,
    notes: &[String],
) -> Result<(), Error> {
    let mut written = put(&args.output, figures)?;
    let name = |figure: &Figure| format!("{}.svg", figure.name);
    let mut names: Vec<String> = figures.iter().map(name).collect();
    if let Some(csv) = csv {
        names.push("runs.csv".to_owned());
        written.push(OutputFile::open(&args.output.join("runs.csv"))?.put(csv)?);
    }
    for file in written {
        file.keep()?;
    }
    for name in &mut names {
        *name = args.output.join(&name).display().to_string();
    }
    for note in notes {
        output::print_note(&format!("note: {note}\n"));
    }
    output::print(&(names.join("\n") + "\n"))
}
