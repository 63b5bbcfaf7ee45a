//! Published tables next to the results of the machine profiles.
//!
//! Read next: `reproduce/tables.rs` for the content of a table and its tolerances.

mod tables;

pub use tables::{Figure, Row, Table, Tables, TimeRatio, published};

use scenario::ProfileFacts;
use scenario::profile;
use scenario::report::{FunctionReport, Origin, Report, digest};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;

use crate::error::Error;
use crate::fleet::Fleet;
use crate::sweep::Load;

/// Length of a short run, unless the row gives its own.
const QUICK: [&str; 2] = ["job.runtime=10ms", "job.ramp_time=2ms"];

/// A table and the results of its rows.
#[derive(Clone, Debug)]
pub struct Done {
    pub table: Table,
    /// For each row; none while it waits for something.
    pub reports: Vec<Option<Report>>,
}

impl Done {
    /// Figures of each row, then those of pairs of rows.
    pub fn figures(&self) -> Vec<Figure> {
        let rows = self.table.rows.iter().zip(&self.reports);
        let pairs = rows.filter_map(|(row, report)| Some((row, report.as_ref()?)));
        self.table.judge(&pairs.collect::<Vec<_>>())
    }
}

/// All figures, each with the name of its table.
pub fn named(done: &[Done]) -> Vec<(String, Figure)> {
    let of = |one: &Done| {
        let name = one.table.name.clone();
        let figures = one.figures().into_iter();
        figures
            .map(|figure| (name.clone(), figure))
            .collect::<Vec<_>>()
    };
    done.iter().flat_map(of).collect()
}

/// The profiles that come with the program.
pub fn built_in() -> Result<Vec<MachineProfile>, Error> {
    let known = profile::names().into_iter().map(profile::built_in);
    let known = known.collect::<Result<Vec<_>, String>>();
    known.map_err(|what| Error::wrong("machine", what))
}

/// Runs all rows of all tables, once with each of these sets of profiles.
pub fn run_all(
    sets: &[Vec<MachineProfile>],
    quick: bool,
    load: Load<'_>,
    fleet: &Fleet,
) -> Result<Vec<Vec<Done>>, Error> {
    let tables = published().tables;
    let rows = || tables.iter().flat_map(|table| &table.rows);
    let runs = sets
        .iter()
        .flat_map(|set| rows().map(move |row| (row, set)));
    let runs: Vec<(&Row, &Vec<MachineProfile>)> = runs.collect();
    let reports = fleet.map(&runs, |(row, set)| report_of(row, set, quick, load, fleet))?;
    let mut reports = reports.into_iter();
    let done = |table: &Table| Done {
        reports: reports.by_ref().take(table.rows.len()).collect(),
        table: table.clone(),
    };
    let all: Vec<Done> = sets.iter().flat_map(|_| &tables).map(done).collect();
    Ok(all.chunks(tables.len()).map(<[Done]>::to_vec).collect())
}

/// The report of a row's run; none while it waits for something.
fn report_of(
    row: &Row,
    profiles: &[MachineProfile],
    quick: bool,
    load: Load<'_>,
    fleet: &Fleet,
) -> Result<Option<Report>, Error> {
    let Some((plan, profile, text)) = plan_of(row, profiles, quick, load)? else {
        return Ok(None);
    };
    let wrong = |what: String| Error::wrong(format!("machine {}", profile.name), what);
    let mut simulator = Simulator::new(&plan, profile).map_err(wrong)?;
    if let Outcome::Stalled(stall) = fleet.run(&mut simulator)? {
        return Err(Error::wrong(&row.name, stall.to_string()));
    }
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_hash: digest(&text),
        options: row.set.clone(),
        varied: Vec::new(),
    };
    let mut report = Report::new(origin, &plan, profile, simulator.recorder(), None);
    report.functions = Some(FunctionReport::all(simulator.recorder()));
    Ok(Some(report))
}

/// The plan of a row, its profile, and the text of its scenario.
pub fn plan_of<'a>(
    row: &Row,
    profiles: &'a [MachineProfile],
    quick: bool,
    load: Load<'_>,
) -> Result<Option<(Plan, &'a MachineProfile, String)>, Error> {
    let Some(name) = &row.scenario else {
        return Ok(None);
    };
    let (mut scenario, text) = load(name)?;
    for assignment in &row.set {
        scenario = scenario.set(assignment)?;
    }
    if quick {
        let usual = || QUICK.map(str::to_owned).to_vec();
        for assignment in row.quick.clone().unwrap_or_else(usual) {
            scenario = scenario.set(&assignment)?;
        }
    }
    let plan = scenario.plan(&info(profiles))?;
    let chosen = profiles
        .iter()
        .find(|profile| profile.name == plan.machine.profile);
    let chosen = chosen.expect("the plan chose among these");
    Ok(Some((plan, chosen, text)))
}

/// The facts about machines that a plan needs.
pub(crate) fn info(profiles: &[MachineProfile]) -> Vec<ProfileFacts<'_>> {
    let info = profiles.iter().map(|profile| ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    });
    info.collect()
}
