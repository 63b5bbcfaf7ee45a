//! Many runs, a report each.

use scenario::Scenario;
use scenario::report::{Early, FunctionReport, Origin, Report};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;

use crate::error::Error;
use crate::fleet::Fleet;

/// Gives the scenario of a name, and its text.
pub type Load<'a> = &'a (dyn Fn(&str) -> Result<(Scenario, String), Error> + Sync);

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Job {
    pub plan: Plan,
    pub profile: MachineProfile,
    pub origin: Origin,
}

/// What the reports have besides the sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Collect {
    /// Work by component.
    pub counts: bool,
    /// Distributions and time series, and counts.
    pub details: bool,
    /// Calls of kernel functions.
    pub functions: bool,
    /// Members of fio's report.
    pub fio: bool,
}

/// A run that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Ran {
    pub report: Report,
    /// Reason why it stalled, after the options of the run.
    pub stall: Option<String>,
}

/// Makes all runs, in their order.
pub fn run_all(jobs: &[Job], collect: Collect, fleet: &Fleet) -> Result<Vec<Ran>, Error> {
    fleet.map(jobs, |job| run_one(job, collect, fleet))
}

/// The same; none of the runs that a stop ends.
pub fn run_ended(jobs: &[Job], collect: Collect, fleet: &Fleet) -> Result<Vec<Option<Ran>>, Error> {
    fleet.map_ended(jobs, |job| run_one(job, collect, fleet))
}

/// Makes one run.
pub fn run_one(job: &Job, collect: Collect, fleet: &Fleet) -> Result<Ran, Error> {
    let Job {
        plan,
        profile,
        origin,
    } = job;
    let mut simulator = Simulator::new(plan, profile)
        .map_err(|what| Error::wrong(format!("machine {}", profile.name), what))?;
    if collect.counts {
        simulator.collect_counts();
    }
    if collect.details {
        simulator.collect_details();
    }
    if collect.fio {
        simulator.collect_fio();
    }
    let outcome = fleet.run(&mut simulator)?;
    let stall = match &outcome {
        Outcome::Finished => None,
        Outcome::Stalled(stall) => Some(stall.as_ref()),
    };
    let recorder = simulator.recorder();
    let mut report = Report::new(
        origin.clone(),
        plan,
        profile,
        recorder,
        stall.map(Early::Stall),
    );
    if collect.functions {
        report.functions = Some(FunctionReport::all(recorder));
    }
    let stall = stall.map(|stall| format!("{} {}: {stall}", plan.name, origin.options.join(" ")));
    Ok(Ran { report, stall })
}
