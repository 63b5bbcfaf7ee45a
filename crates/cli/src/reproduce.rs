//! `blksim reproduce`: published tables beside what the committed profiles give.

use std::fmt::Write as _;

use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::report::{Origin, Report, digest};
use sim::reproduce::{Figure, Row, Table, published, ratios};
use sim::scenario::ProfileFacts;

use crate::args::ReproduceArgs;
use crate::error::Error;
use crate::scenario::load;
use crate::{DIFFERENT, OK, output};

/// Runs every row and prints every figure. Exit code 1 if one is out of its tolerance.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<u8, Error> {
    let (mut within, mut all) = (0, 0);
    for table in published().tables {
        let figures = table_of(&table, args)?;
        within += figures.iter().filter(|figure| figure.within).count();
        all += figures.len();
    }
    output::print(&format!("{within} of {all} within tolerance\n"))?;
    Ok(if within == all { OK } else { DIFFERENT })
}

fn table_of(table: &Table, args: &ReproduceArgs) -> Result<Vec<Figure>, Error> {
    output::print(&format!("{}: {}\n", table.name, table.title))?;
    let (mut figures, mut ran) = (Vec::new(), Vec::new());
    for row in &table.rows {
        let Some(report) = report_of(row, args)? else {
            let what = row.waits_for.as_deref().unwrap_or_default();
            output::print(&format!("  {:<28} not modelled yet: {what}\n", row.name))?;
            continue;
        };
        let new = row.judge(&report);
        output::print(&lines(&new))?;
        figures.extend(new);
        ran.push((row, report));
    }
    let pairs: Vec<(&Row, &Report)> = ran.iter().map(|(row, report)| (*row, report)).collect();
    let new = ratios(&pairs);
    output::print(&(lines(&new) + "\n"))?;
    figures.extend(new);
    Ok(figures)
}

/// The report of a row's run; none while it waits for something.
fn report_of(row: &Row, args: &ReproduceArgs) -> Result<Option<Report>, Error> {
    let Some(name) = &row.scenario else {
        return Ok(None);
    };
    let (mut scenario, text) = load(name)?;
    for assignment in &row.set {
        scenario = scenario.set(assignment)?;
    }
    if args.quick {
        scenario = scenario.set("job.runtime=10ms")?.set("job.ramp_time=2ms")?;
    }
    let (plan, profile) = planned(&scenario)?;
    let wrong = |what: String| Error::usage(format!("machine {}", profile.name), what);
    let mut simulator = Simulator::new(&plan, &profile).map_err(wrong)?;
    if let Outcome::Stalled(stall) = simulator.run(|_| true) {
        return Err(Error::usage(row.name.clone(), stall.to_string()));
    }
    simulator.settle();
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_hash: digest(&text),
        options: row.set.clone(),
    };
    let report = Report::new(origin, &plan, &profile, simulator.recorder(), None);
    Ok(Some(report))
}

fn planned(scenario: &sim::scenario::Scenario) -> Result<(Plan, MachineProfile), Error> {
    let known = MachineProfile::names()
        .into_iter()
        .map(MachineProfile::built_in);
    let known = known.collect::<Result<Vec<_>, String>>();
    let known = known.map_err(|what| Error::usage("machine", what))?;
    let facts = known.iter().map(|profile| ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    });
    let plan = scenario.clone().plan(&facts.collect::<Vec<_>>())?;
    let chosen = known
        .into_iter()
        .find(|profile| profile.name == plan.machine.profile);
    Ok((plan, chosen.expect("the plan chose among these")))
}

fn lines(figures: &[Figure]) -> String {
    let mut text = String::new();
    for f in figures {
        let digits = if f.figure == "ratio" { 3 } else { 1 };
        let _ = writeln!(
            text,
            "  {:<28} {:<7} {:>12.digits$} {:>12.digits$} {:>6.2} {:>9}  {}",
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
