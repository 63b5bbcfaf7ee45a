//! Runs of the simulator are behaviours of `specs/CfqMerge` and `specs/BfqMerge`, by the events of
//! the schedulers: the merge code takes the same steps. `blksim check CfqMerge --run` and
//! `BfqMerge` ask TLC the same; `cargo xtask specs` does it.
//!
//! `MERGED_COUNT` and `MERGED_SEED` choose other runs.

use std::collections::BTreeSet;

use blkmq::elevator::cfq::merge::Account;
use blkmq::schedule::Schedule;
use explore::spec::{Replayed, Specification, replay};
use explore::{bfq_merge, cfq_merge};
use sim::rng::Rng;

use crate::defect::Wrong;
use crate::followed::{one, run_on, setting};

/// Random runs of each scheduler.
const COUNT: u64 = 12;

/// Processes that read a drive in turn, and one that writes or seeks, under cfq.
fn cooperators(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "cooperators");
    let rng = &mut rng;
    let rules = ["v2.6.32-rc5-coop", "v2.6.33", "v2.6.35", "v4.20"];
    let (rules, processes) = (one(rng, &rules), 2 + rng.below(3));
    let mut text = format!(
        "seed = {seed}\n[machine]\nprofile = \"quadcore\"\nhz = 1000\n[queue]\n\
         rules = \"{rules}\"\nscheduler = \"cfq\"\n[device]\ndrive = \"sata2009\"\n\
         [[interleaved]]\nprocesses = {processes}\npiece = \"{}\"\nhand_over = \"none\"\n\
         offset = \"250g\"\nsize = \"{}k\"\n",
        one(rng, &["16k", "32k"]),
        64 * (2 + rng.below(10)),
    );
    if rng.below(2) == 0 {
        text += &format!(
            "[[job]]\nrw = \"{}\"\nbs = \"4k\"\nioengine = \"psync\"\ndirect = 1\n\
             offset = \"100g\"\nsize = \"1g\"\nnumber_ios = {}\n",
            one(rng, &["randread", "write", "randwrite"]),
            1 + rng.below(12),
        );
    }
    text
}

/// Readers that start together next to each other, and go on at random, under bfq.
fn burst(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "burst");
    let rng = &mut rng;
    let rules = one(rng, &["v5.13", "v6.1", "v6.12"]);
    let slow = "completion_nsec = 90000\nrotational = 1\nhw_queue_depth = 1";
    let queueing = "completion_nsec = 20000\nhw_queue_depth = 32";
    let device = one(rng, &[slow, slow, queueing]);
    let mut text = format!(
        "seed = {seed}\n[machine]\nprofile = \"quadcore\"\n[queue]\nrules = \"{rules}\"\n\
         scheduler = \"bfq\"\nnr_requests = 64\n[device]\ntype = \"null_blk\"\nirqmode = 2\n\
         submit_queues = 1\npoll_queues = 0\n{device}\n",
    );
    for job in 0..2 + rng.below(3) {
        text += &format!(
            "[[job]]\nrw = \"{}\"\nbs = \"4k\"\nioengine = \"{}\"\niodepth = 2\ndirect = 1\n\
             offset = \"{}k\"\nsize = \"{}\"\nnumber_ios = {}\n",
            one(rng, &["read", "read", "randread"]),
            one(rng, &["psync", "libaio"]),
            job * 8,
            one(rng, &["64k", "8m"]),
            4 + rng.below(12),
        );
    }
    text
}

fn run(text: &str, wrong: Option<Wrong>) -> Result<Schedule, String> {
    run_on("quadcore", text, wrong)
}

/// None: more than the merge code is walked with.
fn followed(schedule: &Schedule) -> Option<Replayed> {
    let written = Schedule::parse(&schedule.to_string()).expect("a schedule file");
    assert_eq!(*schedule, written);
    Some(match schedule.spec.as_str() {
        cfq_merge::RUNS => replay(
            &cfq_merge::Setting::parse(&schedule.settings).ok()?,
            schedule,
        ),
        bfq_merge::RUNS => replay(
            &bfq_merge::Setting::parse(&schedule.settings).ok()?,
            schedule,
        ),
        other => panic!("spec {other}"),
    })
}

/// Why a run may be refused here.
const REFUSED: [&str; 3] = [
    "several asynchronous queues",
    "at once and later",
    "lost its asynchronous queue",
];

/// Actions that the runs of all seeds take; each must be a behaviour.
fn actions_of(scenario: fn(u64) -> String) -> (BTreeSet<String>, u64) {
    let first = setting("MERGED_SEED", 1);
    let count = setting("MERGED_COUNT", COUNT);
    let mut actions = BTreeSet::new();
    let mut runs = 0;
    for seed in first..first + count {
        let text = scenario(seed);
        let schedule = match run(&text, None) {
            Ok(schedule) => schedule,
            Err(why) if REFUSED.iter().any(|known| why.contains(known)) => continue,
            Err(why) => panic!("{why}\n{text}"),
        };
        let Some(replayed) = followed(&schedule) else {
            continue;
        };
        runs += 1;
        let taken = replayed.steps.len();
        if let Some(why) = replayed.rejected {
            let step = &schedule.steps[taken];
            panic!("step {} is rejected: {step}: {why}\n{text}", taken + 1);
        }
        let leaks = ["rc5-coop", "2.6.33"]
            .iter()
            .any(|rules| text.contains(rules));
        if !leaks {
            assert_eq!(replayed.verdict.to_string(), schedule.shows, "{text}");
        }
        actions.extend(schedule.steps.into_iter().map(|step| step.action));
    }
    (actions, runs)
}

fn are_taken(actions: &BTreeSet<String>, expected: &[&str]) {
    let never: Vec<&&str> = expected
        .iter()
        .filter(|action| !actions.contains(**action))
        .collect();
    assert!(never.is_empty(), "never taken: {never:?}");
}

#[test]
fn every_run_of_cfq_is_a_behaviour() {
    let (actions, runs) = actions_of(cooperators);
    assert!(runs * 2 >= setting("MERGED_COUNT", COUNT), "{runs} runs");
    are_taken(
        &actions,
        &["Create", "Submit", "Complete", "Merge", "Redirect", "Exit"],
    );
}

#[test]
fn every_run_of_bfq_is_a_behaviour() {
    let (actions, runs) = actions_of(burst);
    assert!(runs * 2 >= setting("MERGED_COUNT", COUNT), "{runs} runs");
    are_taken(
        &actions,
        &["CreateLast", "Submit", "Complete", "Merge", "Carry", "Exit"],
    );
}

/// The first run that a defect makes another one of, and that is rejected: the step, and why.
fn rejected(scenario: fn(u64) -> String, wrong: Wrong, variables: &[&str]) -> Option<String> {
    for seed in 1..=COUNT {
        let text = scenario(seed);
        let Ok(schedule) = run(&text, Some(wrong)) else {
            continue;
        };
        let replayed = followed(&schedule);
        let Some((replayed, why)) = replayed.and_then(|r| Some((r.steps.len(), r.rejected?)))
        else {
            continue;
        };
        assert!(variables.iter().any(|v| why.starts_with(v)), "{why}");
        return Some(schedule.steps[replayed].action.clone());
    }
    None
}

#[test]
fn a_dropped_put_of_cfq_is_rejected_at_its_step() {
    for (account, action) in [
        (Account::RequestEnd, "Complete"),
        (Account::Redirection, "Redirect"),
        (Account::Exit, "Exit"),
    ] {
        // A queue that is not freed keeps where its processes are to go.
        let step = rejected(cooperators, Wrong::Forgets(account), &["ref", "new"]);
        assert_eq!(step.as_deref(), Some(action), "{account:?}");
    }
}

#[test]
fn a_reference_of_bfq_that_nobody_has_is_rejected() {
    for after in [400, 900] {
        let step = rejected(burst, Wrong::Keeps(after), &["ref"]);
        assert!(step.is_some(), "after label {after}");
    }
}

#[test]
fn corrupted_runs_of_merging_are_rejected_where_they_are_corrupted() {
    let mut tried = 0;
    for scenario in [cooperators as fn(u64) -> String, burst] {
        let shortest = (1..=COUNT).filter_map(|seed| run(&scenario(seed), None).ok());
        let shortest = shortest.filter(|schedule| followed(schedule).is_some());
        let schedule = shortest.min_by_key(|schedule| schedule.steps.len());
        let schedule = schedule.expect("some run is short");
        for corruption in explore::tlc::corruptions(&schedule.steps) {
            let (at, what) = (corruption.step, &corruption.what);
            let steps = corruption.steps.clone();
            let wrong = Schedule {
                steps,
                ..schedule.clone()
            };
            let replayed = followed(&wrong).expect("it has the same constants");
            assert_eq!(replayed.steps.len() + 1, at, "{what}\n{wrong}");
            tried += 1;
        }
    }
    assert!(tried > 60, "only {tried} corruptions");
}
