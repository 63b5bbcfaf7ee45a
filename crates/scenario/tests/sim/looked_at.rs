//! A run with details is the same as one without: details do not change the simulation. Without a
//! ramp: at its end a few ns of work in progress may be counted differently.

use std::path::Path;

use scenario::report::{Origin, Report};
use scenario::{ProfileFacts, Scenario};
use sim::machine::Simulator;
use sim::plan::Plan;

use crate::runs;

/// The plan of a built-in scenario, changed by assignments, on the machine of the published runs.
fn plan(name: &str, set: &[&str]) -> Plan {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/scenarios");
    let file = dir.join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&file).unwrap();
    let mut scenario = Scenario::from_toml(&file, &text);
    for assignment in ["machine.profile=ryzen-7950x"].iter().chain(set) {
        scenario = scenario.and_then(|scenario| scenario.set(assignment));
    }
    let info = ProfileFacts {
        name: "ryzen-7950x",
        cpus: runs::machine().cpus(),
    };
    scenario
        .and_then(|scenario| scenario.plan(&[info]))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The report of a run, and the number of time series in its details.
fn report(plan: &Plan, closely: bool) -> (Report, usize) {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    if closely {
        simulator.collect_details();
    } else {
        simulator.collect_counts();
    }
    if let Some(stall) = runs::to_its_end(&mut simulator) {
        panic!("{stall}");
    }
    simulator.settle();
    let origin = Origin {
        version: String::new(),
        scenario_hash: String::new(),
        options: Vec::new(),
    };
    let mut report = Report::new(origin, plan, &runs::machine(), simulator.recorder(), None);
    let details = report.details.take();
    (report, details.map_or(0, |details| details.scheduler.len()))
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn details_change_no_figure() {
    let runs: &[(&str, &[&str])] = &[
        ("bfq-burst", &["job.runtime=60ms", "job.ramp_time=0"]),
        (
            "bfq-burst",
            &["job.runtime=60ms", "job.ramp_time=0", "queue.series=v3"],
        ),
        ("kyber-latency", &["job.runtime=300ms", "job.ramp_time=0"]),
        ("cfq-cooperators", &["interleaved.runtime=300ms"]),
        ("mq-deadline-scaling", &["job.runtime=2ms"]),
    ];
    for (name, set) in runs {
        let plan = plan(name, set);
        let (unseen, none) = report(&plan, false);
        let (seen, counters) = report(&plan, true);
        assert_eq!(none, 0);
        let shows = *name != "mq-deadline-scaling";
        assert_eq!(counters > 0, shows, "{name} {set:?}: {counters} gauges");
        assert_eq!(seen, unseen, "{name} {set:?}");
        let reads: u64 = seen.jobs.iter().map(|job| job.read.total_ios).sum();
        assert!(reads > 0, "{name} {set:?}: nothing was read");
    }
}
