//! `blksim reproduce`: published tables beside what the committed profiles give.
//!
//! Read next: `reproduce/ablation.rs` (profiles without a mechanism), `reproduce/expected.rs`
//! (figures that must stay within their tolerance).

mod ablation;
mod expected;

use std::fmt::Write as _;

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::report::{FunctionReport, Origin, Report, digest};
use sim::reproduce::{Figure, Row, Table, published};
use sim::scenario::ProfileFacts;

use crate::args::ReproduceArgs;
use crate::error::Error;
use crate::scenario::load;
use crate::{DIFFERENT, OK, output};

/// A table and what its rows gave.
struct Done {
    table: Table,
    /// For each row; none while it waits for something.
    reports: Vec<Option<Report>>,
}

impl Done {
    /// Figures of each row, then those of pairs of rows.
    fn figures(&self) -> Vec<Figure> {
        self.table.judge(&self.pairs())
    }

    fn pairs(&self) -> Vec<(&Row, &Report)> {
        let rows = self.table.rows.iter().zip(&self.reports);
        rows.filter_map(|(row, report)| Some((row, report.as_ref()?)))
            .collect()
    }
}

/// Runs every row and prints every figure. Exit code 1 if one is out of its tolerance, or, with a
/// list of those that are known to be in, if one of them is.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<u8, Error> {
    if args.ablations {
        return ablation::print_all(args.quick);
    }
    let expected = args.expect.as_deref().map(expected::read);
    let expected = expected.transpose()?;
    let profiles = match &args.without {
        Some(name) => ablation::profiles_without(name)?,
        None => built_in()?,
    };
    let done = run_all(&profiles, args.quick)?;
    for one in &done {
        output::print(&text_of(one))?;
    }
    let figures: Vec<(String, Figure)> = named(&done);
    let within = figures.iter().filter(|(_, figure)| figure.within).count();
    let all = figures.len();
    output::print(&format!("{within} of {all} within tolerance\n"))?;
    if let (Some(file), Some(expected)) = (&args.expect, &expected) {
        return expected::compare(file, expected, &figures);
    }
    Ok(if within == all { OK } else { DIFFERENT })
}

/// All figures, each with the name of its table.
fn named(done: &[Done]) -> Vec<(String, Figure)> {
    let of = |one: &Done| {
        let name = one.table.name.clone();
        let figures = one.figures().into_iter();
        figures
            .map(|figure| (name.clone(), figure))
            .collect::<Vec<_>>()
    };
    done.iter().flat_map(of).collect()
}

fn built_in() -> Result<Vec<MachineProfile>, Error> {
    let known = MachineProfile::names()
        .into_iter()
        .map(MachineProfile::built_in);
    let known = known.collect::<Result<Vec<_>, String>>();
    known.map_err(|what| Error::usage("machine", what))
}

/// Runs all rows of all tables, side by side.
fn run_all(profiles: &[MachineProfile], quick: bool) -> Result<Vec<Done>, Error> {
    let tables = published().tables;
    let rows: Vec<&Row> = tables.iter().flat_map(|table| &table.rows).collect();
    let reports: Vec<Result<Option<Report>, Error>> = rows
        .par_iter()
        .map(|row| report_of(row, profiles, quick))
        .collect();
    let mut reports = reports.into_iter();
    let mut done = Vec::new();
    for table in tables {
        let own = reports.by_ref().take(table.rows.len());
        let reports = own.collect::<Result<Vec<_>, Error>>()?;
        done.push(Done { table, reports });
    }
    Ok(done)
}

fn text_of(done: &Done) -> String {
    let table = &done.table;
    let mut text = format!("{}: {}\n", table.name, table.title);
    for (row, report) in table.rows.iter().zip(&done.reports) {
        if report.is_none() {
            let what = row.waits_for.as_deref().unwrap_or_default();
            let _ = writeln!(text, "  {:<36} not modelled yet: {what}", row.name);
        }
    }
    text + &lines(&done.figures()) + "\n"
}

/// The report of a row's run; none while it waits for something.
fn report_of(row: &Row, profiles: &[MachineProfile], quick: bool) -> Result<Option<Report>, Error> {
    let Some((plan, profile, text)) = plan_of(row, profiles, quick)? else {
        return Ok(None);
    };
    let wrong = |what: String| Error::usage(format!("machine {}", profile.name), what);
    let mut simulator = Simulator::new(&plan, profile).map_err(wrong)?;
    if let Outcome::Stalled(stall) = simulator.run(|_| true) {
        return Err(Error::usage(row.name.clone(), stall.to_string()));
    }
    simulator.settle();
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_hash: digest(&text),
        options: row.set.clone(),
    };
    let mut report = Report::new(origin, &plan, profile, simulator.recorder(), None);
    report.functions = Some(FunctionReport::all(simulator.recorder()));
    Ok(Some(report))
}

/// What a row runs, on which of the profiles, and the text of its scenario.
pub(crate) fn plan_of<'a>(
    row: &Row,
    profiles: &'a [MachineProfile],
    quick: bool,
) -> Result<Option<(Plan, &'a MachineProfile, String)>, Error> {
    let Some(name) = &row.scenario else {
        return Ok(None);
    };
    let (mut scenario, text) = load(name)?;
    for assignment in &row.set {
        scenario = scenario.set(assignment)?;
    }
    if quick {
        let own = row.quick.clone();
        let usual = || {
            ["job.runtime=10ms", "job.ramp_time=2ms"]
                .map(str::to_owned)
                .to_vec()
        };
        for assignment in own.unwrap_or_else(usual) {
            scenario = scenario.set(&assignment)?;
        }
    }
    let facts: Vec<ProfileFacts<'_>> = profiles
        .iter()
        .map(|profile| ProfileFacts {
            name: &profile.name,
            cpus: profile.cpus(),
        })
        .collect();
    let plan = scenario.plan(&facts)?;
    let chosen = profiles
        .iter()
        .find(|profile| profile.name == plan.machine.profile);
    let chosen = chosen.expect("the plan chose among these");
    Ok(Some((plan, chosen, text)))
}

fn lines(figures: &[Figure]) -> String {
    let mut text = String::new();
    for f in figures {
        let digits = if f.figure.contains("ratio") { 3 } else { 1 };
        let _ = writeln!(
            text,
            "  {:<36} {:<9} {:>12.digits$} {:>12.digits$} {:>6.2} {:>9}  {}",
            f.row,
            f.figure,
            f.published,
            f.simulated,
            f.simulated / f.published,
            f.tolerance,
            if f.within { "in" } else { "out" }
        );
    }
    text
}
