//! A plan from a scenario's text, and its run to the end, on the machine of the published runs.

use std::path::Path;

use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator, Stall};
use sim::plan::Plan;
use sim::profile::MachineProfile;

const PROFILE: &str = "ryzen-7950x";

pub(crate) fn machine() -> MachineProfile {
    profile::built_in(PROFILE).unwrap()
}

/// The plan of a scenario without a profile of its own.
pub(crate) fn plan_of(text: &str) -> Plan {
    let info = ProfileFacts {
        name: PROFILE,
        cpus: machine().cpus(),
    };
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap();
    let plan = scenario.plan(&[info]);
    plan.unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Runs to the end, or to the stall.
pub(crate) fn to_its_end(simulator: &mut Simulator) -> Option<Box<Stall>> {
    match simulator.run(|_| true) {
        Outcome::Finished => None,
        Outcome::Stalled(stall) => Some(stall),
    }
}
