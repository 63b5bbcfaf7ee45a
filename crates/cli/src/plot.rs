//! `blksim plot`: pictures of runs, from reports or from runs that it makes itself.
//!
//! Read next: `plot/figures.rs` for the figures, `plot/panel.rs` for drawing. Runs: `sweep.rs`.

mod figures;
mod font;
mod group;
mod input;
mod panel;
mod published;
mod render;
mod scale;
mod scene;

use std::path::Path;

use study::fleet::Fleet;
use study::sweep::run_all;

use crate::args::PlotArgs;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile, Written};
use crate::sweep::{self, Point};
use crate::{OK, STALLED};
use group::Groups;
use input::Run;
use published::Published;

/// Largest number of threads of a job that a scenario may have.
const THREADS_MAX: u32 = 4096;

/// Draws. All files appear at the end, or none.
pub(crate) fn plot(args: &PlotArgs) -> Result<u8, Error> {
    if args.png {
        let what = "pictures are SVG only; `rsvg-convert` makes a PNG of one";
        return Err(Error::usage("--png", what));
    }
    let (reports, scenarios): (Vec<&String>, Vec<&String>) = args
        .inputs
        .iter()
        .partition(|name| Path::new(name).extension().is_some_and(|e| e == "json"));
    let threads = threads(args.threads.as_deref())?;
    let mut runs = Vec::new();
    for file in &reports {
        runs.push(Run::read(Path::new(file))?);
    }
    if scenarios.is_empty() {
        no_runs_to_change(args)?;
    }
    let mut csv = None;
    if !scenarios.is_empty() {
        let scenarios: Vec<String> = scenarios.into_iter().cloned().collect();
        let points = points(args, &scenarios, &threads)?;
        let interrupt = Interrupt::install()?;
        let jobs = sweep::jobs(&args.sweep, &points)?;
        let run = |fleet: &Fleet| run_all(&jobs, true, fleet);
        let reports = match with_fleet(&args.sweep.jobs, &interrupt, run)? {
            Ok(reports) => reports,
            Err(stall) => {
                output::print_stderr(&stall);
                return Ok(STALLED);
            }
        };
        let mut rows = String::new();
        for report in &reports {
            let text = report.to_csv();
            let body = text.split_once('\n').map_or("", |(_, body)| body);
            rows.push_str(if rows.is_empty() { &text } else { body });
            let run = Run::parse(&report.to_json());
            runs.push(run.map_err(|what| Error::usage("report", what))?);
        }
        csv = Some(rows);
    }
    let mut groups = Groups::new(&runs).map_err(|what| Error::usage("plot", what))?;
    if args.published {
        groups.published = Published::of(&runs)?;
    }
    let (figures, notes) = figures::all(&groups);
    write(args, &figures, csv.as_deref(), &notes)?;
    Ok(OK)
}

/// Options that change runs mean nothing where only reports are drawn.
fn no_runs_to_change(args: &PlotArgs) -> Result<(), Error> {
    let sweep = &args.sweep;
    let given = [
        ("--threads", args.threads.is_some()),
        ("--seed", args.seed.is_some()),
        ("--scheduler", !sweep.scheduler.is_empty()),
        ("--rules", !sweep.rules.is_empty()),
        ("--machine", !sweep.machine.is_empty()),
        ("--set", !sweep.set.is_empty()),
        ("--device", sweep.device.is_some()),
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

fn points(
    args: &PlotArgs,
    scenarios: &[String],
    threads: &[Option<u32>],
) -> Result<Vec<Point>, Error> {
    let mut points = Vec::new();
    for variant in sweep::variants(&args.sweep, scenarios)? {
        for &threads in threads {
            points.push(Point {
                variant: variant.clone(),
                threads,
                seed: args.seed,
                vary: false,
            });
        }
    }
    Ok(points)
}

/// `1,2,4` and `1..8`; nothing leaves the scenario's own.
fn threads(text: Option<&str>) -> Result<Vec<Option<u32>>, Error> {
    let Some(text) = text else {
        return Ok(vec![None]);
    };
    let refuse = |part: &str| {
        let what = format!("`{part}`; expected numbers from 1 to {THREADS_MAX}: 1,2,4,8 or 1..8");
        Error::usage("--threads", what)
    };
    let number = |part: &str| -> Result<u32, Error> {
        let number = part.trim().parse().ok();
        number
            .filter(|n| (1..=THREADS_MAX).contains(n))
            .ok_or_else(|| refuse(part))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                if from > to {
                    return Err(refuse(part));
                }
                all.extend((from..=to).map(Some));
            }
            None => all.push(Some(number(part)?)),
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn write(
    args: &PlotArgs,
    figures: &[figures::Figure],
    csv: Option<&str>,
    notes: &[String],
) -> Result<(), Error> {
    let dir = &args.output;
    let made = std::fs::create_dir_all(dir);
    made.map_err(|source| Error::output(dir.display().to_string(), source))?;
    let mut written: Vec<Written> = Vec::new();
    let mut names = Vec::new();
    let mut put = |name: String, bytes: &[u8]| -> Result<(), Error> {
        let path = dir.join(&name);
        written.push(OutputFile::open(&path)?.put_bytes(bytes)?);
        names.push(path.display().to_string());
        Ok(())
    };
    for figure in figures {
        let svg = render::svg(&figure.scene);
        put(format!("{}.svg", figure.name), svg.as_bytes())?;
    }
    if let Some(csv) = csv {
        put("runs.csv".to_owned(), csv.as_bytes())?;
    }
    for file in written {
        file.keep()?;
    }
    for note in notes {
        output::print_stderr(&format!("note: {note}\n"));
    }
    output::print(&(names.join("\n") + "\n"))
}
