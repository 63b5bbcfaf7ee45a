//! Processes at one lock: after a few, each further one makes all of them slower.
//!
//! Published for the machine and the drive of this scenario: 310, 505, 569, 499, 488 thousand IOPS
//! of one to five processes. With hand-offs of equal cost the rate would rise to the drive's limit.

use std::path::Path;

use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};

const SCENARIO: &str = include_str!("../../../cli/scenarios/nvme-one-process.toml");

/// IOPS of so many processes, one CPU each.
fn iops(processes: u32, scheduler: &str) -> u64 {
    let machine = profile::built_in("xeon-10c").unwrap();
    let info = ProfileFacts {
        name: "xeon-10c",
        cpus: machine.cpus(),
    };
    let text = SCENARIO
        .replace("runtime = \"100ms\"", "runtime = \"20ms\"")
        .replace("ramp_time = \"10ms\"", "ramp_time = \"5ms\"")
        .replace(
            "cpus_allowed = \"0\"",
            &format!(
                "numjobs = {processes}\ncpus_allowed = \"0-9\"\ncpus_allowed_policy = \"split\""
            ),
        )
        .replace("[queue]", &format!("[queue]\nscheduler = \"{scheduler}\""));
    let scenario = Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
    let plan = scenario.plan(&[info]).unwrap();
    let mut simulator = Simulator::new(&plan, &machine).unwrap();
    assert!(matches!(simulator.run(|_| true), Outcome::Finished));
    let jobs = &simulator.recorder().jobs;
    let directions = jobs.iter().flat_map(|job| &job.directions);
    directions.map(|direction| direction.ios).sum::<u64>() * 50
}

#[test]
fn five_processes_are_slower_than_four_with_a_lock_and_not_without() {
    let [two, three, four, five] = [2, 3, 4, 5].map(|n| iops(n, "mq-deadline"));
    assert!(two < three, "{two} and {three}: the lock has room");
    assert!(five * 100 < four * 96, "{three}, {four}, then {five}");
    let [three, five] = [3, 5].map(|n| iops(n, "none"));
    assert!(five * 1000 >= three * 995, "without: {three} and {five}");
}
