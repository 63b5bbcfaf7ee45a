//! Many runs, a report each.

use scenario::Scenario;
use scenario::report::{Origin, Report};
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

/// Makes all runs. `Err` of the inner result: the first of them, in their order, that stalled.
pub fn run_all(
    jobs: &[Job],
    details: bool,
    fleet: &Fleet,
) -> Result<Result<Vec<Report>, String>, Error> {
    let done = fleet.map(jobs, |job| run_one(job, details, fleet))?;
    Ok(done.into_iter().collect())
}

fn run_one(job: &Job, details: bool, fleet: &Fleet) -> Result<Result<Report, String>, Error> {
    let Job {
        plan,
        profile,
        origin,
    } = job;
    let mut simulator = Simulator::new(plan, profile)
        .map_err(|what| Error::wrong(format!("machine {}", profile.name), what))?;
    if details {
        simulator.collect_details();
    }
    let outcome = fleet.run(&mut simulator)?;
    let origin = origin.clone();
    Ok(match outcome {
        Outcome::Finished => Ok(Report::new(
            origin,
            plan,
            profile,
            simulator.recorder(),
            None,
        )),
        Outcome::Stalled(stall) => {
            let options = origin.options.join(" ");
            Err(format!("{} {options}: {stall}", plan.name))
        }
    })
}
