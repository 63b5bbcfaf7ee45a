//! Records of built-in scenarios are in causal order.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use blkmq::request::QueueId;

use scenario::{ProfileFacts, Scenario, profile};
use sim::machine::{Outcome, Simulator};
use sim::plan::{Distribution, Plan};
use sim::profile::MachineProfile;

#[path = "../../../sim/tests/common/order.rs"]
mod oracle;

use oracle::{Order, Record};

/// A built-in scenario under a scheduler, cut short; `None` if it sets an attribute that the
/// scheduler does not have.
fn plan(file: &Path, scheduler: &str, profiles: &[MachineProfile]) -> Option<Plan> {
    let text = std::fs::read_to_string(file).expect("a built-in scenario");
    let scenario = match file.extension().and_then(|e| e.to_str()) {
        Some("fio") => Scenario::from_fio(file, &text),
        _ => Scenario::from_toml(file, &text),
    };
    let info: Vec<ProfileFacts<'_>> = profiles
        .iter()
        .map(|profile| ProfileFacts {
            name: &profile.name,
            cpus: profile.cpus(),
        })
        .collect();
    let scenario = scenario.unwrap_or_else(|why| panic!("{why}"));
    let scheduled = scenario.set(&format!("queue.scheduler={scheduler}"));
    let mut plan = scheduled.ok()?.plan(&info).ok()?;
    for thread in &mut plan.threads {
        thread.ramp_time = thread.ramp_time.min(RUNTIME);
        thread.runtime = thread.runtime.min(RUNTIME);
        // Bios are found by their sectors: hot blocks would have several at one place.
        thread.distribution = Distribution::Uniform;
    }
    Some(plan)
}

const RUNTIME: blkmq::time::Duration = blkmq::time::Duration::from_millis(2);

fn profiles() -> Vec<MachineProfile> {
    let names = profile::names();
    let built_in = |name| profile::built_in(name).expect("a built-in profile");
    names.into_iter().map(built_in).collect()
}

fn simulator(plan: &Plan, profiles: &[MachineProfile]) -> Simulator {
    let mut named = profiles.iter();
    let profile = named.find(|profile| profile.name == plan.machine.profile);
    let profile = profile.expect("the plan chose among them");
    Simulator::new(plan, profile).expect("a machine")
}

fn recorded(simulator: &mut Simulator) -> (Outcome, Vec<Record>) {
    simulator.trace();
    let outcome = simulator.run(|_| true);
    (outcome, simulator.take_trace())
}

fn scenarios() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/scenarios");
    let entries = std::fs::read_dir(dir).expect("the built-in scenarios");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn records_of_every_scenario_are_in_causal_order() {
    let profiles = profiles();
    let (mut runs, mut ended) = (0, 0);
    for file in scenarios() {
        for scheduler in ["none", "mq-deadline"] {
            let Some(plan) = plan(&file, scheduler, &profiles) else {
                continue;
            };
            runs += 1;
            let (outcome, records) = recorded(&mut simulator(&plan, &profiles));
            let order = Order::of(&records);
            let name = format!("{} under {scheduler}", plan.name);
            assert_eq!(order.wrong.first(), None, "{name}: {}", order.wrong.len());
            let left: usize = order.lives.values().map(VecDeque::len).sum();
            if matches!(outcome, Outcome::Finished) {
                assert_eq!(left, 0, "{name}: bios without an end");
            }
            for set in plan.disks.iter().map(|disk| disk.set) {
                let of_set = |(index, _): (usize, _)| QueueId(index as u16);
                let disks = plan.disks.iter().enumerate();
                let queues: Vec<QueueId> =
                    disks.filter(|(_, d)| d.set == set).map(of_set).collect();
                let disk = &plan.disks[queues[0].index()];
                let tags = disk.capacity.driver_tags;
                assert!(
                    order.depth(&queues) <= tags as i32,
                    "{name}: more than tags"
                );
            }
            ended += order.ended;
        }
    }
    assert!(runs > 35, "{runs} runs");
    assert!(ended > 20_000, "{ended} bios");
}

#[test]
fn two_records_of_one_time_are_noticed() {
    let profiles = profiles();
    let file = scenarios()
        .into_iter()
        .find(|file| file.ends_with("seq-merge.toml"));
    let plan = plan(&file.expect("built in"), "none", &profiles).expect("a plan");
    let (_, mut records) = recorded(&mut simulator(&plan, &profiles));
    assert!(Order::of(&records).wrong.is_empty());
    let index = records.len() / 2;
    records[index].0 = records[index - 1].0;
    assert!(!Order::of(&records).wrong.is_empty());
}
