//! Runs of the simulator are behaviours of `specs/Restart`, label by label: the explorer's paths
//! follow them. `blksim check Restart --run` asks TLC the same; `cargo xtask specs` does it.
//!
//! `FOLLOWED_COUNT` and `FOLLOWED_SEED` choose other runs.

use std::any::Any;
use std::collections::BTreeSet;
use std::path::Path;

use blkmq::schedule::{Schedule, Step};
use explore::restart::{Setting, follow};
use explore::runs::Recording;
use explore::spec::{Replayed, Specification};
use explore::tlc::{Corruption, corruptions};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::rng::Rng;
use sim::scenario::{ProfileFacts, Scenario};

use crate::defect::{Defect, Wrong};

pub(crate) const PROFILE: &str = "ryzen-7950x";

/// Random runs.
const COUNT: u64 = 100;

/// One of `choices`.
pub(crate) fn one<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// Readers, and writers whose flushes go past the scheduler, on disks with shared tags.
fn scenario(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "followed");
    let rng = &mut rng;
    let disks = 2 + rng.below(2);
    let cpus = 1 + rng.below(6);
    let mut text = format!(
        "seed = {seed}\n[machine]\nprofile = \"{PROFILE}\"\ncpus = {cpus}\n[queue]\n\
         rules = \"{}\"\nscheduler = \"mq-deadline\"\nnr_requests = 64\nlone_plug = \"never\"\nrestart = \"{}\"\nrestart_rule = \"{}\"\n\
         [device]\ntype = \"null_blk\"\nnr_devices = {disks}\nshared_tags = 1\n\
         submit_queues = 1\npoll_queues = 0\nhw_queue_depth = {}\nirqmode = {}\n\
         memory_backed = 1\ncache_size = 16\n",
        one(rng, &["v6.1", "v6.12"]),
        one(rng, &["v4.11", "v4.14", "v4.14-map-count", "v4.15"]),
        one(rng, &["R0", "R1", "R2", "R2p", "R4", "all"]),
        1 + rng.below(2),
        // By timer most of the time: requests are in the device for a while.
        match rng.below(4) {
            2.. => format!("2\ncompletion_nsec = {}", 300 + rng.below(3_000)),
            mode => mode.to_string(),
        },
    );
    let mut flushed = BTreeSet::new();
    for job in 0..2 + rng.below(2 * disks - 1) {
        let disk = if job < disks { job } else { rng.below(disks) };
        let cpu = rng.below(cpus);
        let rw = one(rng, &["randread", "randwrite"]);
        // One flush may end the sequences of several threads, but for the first without a step.
        let fsync = match rw == "randwrite" && flushed.insert(disk) {
            true => "fsync = 1\n",
            false => "",
        };
        text += &format!(
            "[[job]]\nfilename = \"/dev/nullb{disk}\"\nrw = \"{rw}\"\nbs = \"4k\"\n\
             ioengine = \"psync\"\ndirect = 1\nsize = \"64m\"\nnumber_ios = {}\n\
             cpus_allowed = \"{cpu}\"\n{fsync}",
            1 + rng.below(12),
        );
    }
    text
}

/// What a scenario on a built-in machine means.
pub(crate) fn plan_on(text: &str, name: &str) -> Result<(Plan, MachineProfile), String> {
    let profile = MachineProfile::built_in(name).expect("a built-in profile");
    let facts = [ProfileFacts {
        name,
        cpus: profile.cpus(),
    }];
    let scenario = Scenario::from_toml(Path::new("random.toml"), text);
    let plan = scenario.and_then(|scenario| scenario.plan(&facts));
    Ok((plan.map_err(|why| why.to_string())?, profile))
}

/// The schedule of a run.
pub(crate) fn run(text: &str, wrong: Option<Wrong>) -> Result<Schedule, String> {
    let (plan, profile) = plan_on(text, PROFILE)?;
    let mut simulator = Simulator::new(&plan, &profile)?;
    let recording = Recording::new(simulator.block_layer(), &plan.name)?;
    simulator.follow(Box::new(Defect {
        recording,
        wrong,
        hidden: false,
    }));
    let stalled = matches!(simulator.run(|_| true), Outcome::Stalled(_));
    let followed: Box<dyn Any> = simulator.take_follower();
    let followed: Box<Defect> = followed.downcast().expect("it was given so");
    let mut recording = followed.recording;
    recording.schedule(simulator.block_layer(), stalled)
}

/// The same; none of a run with something that the specification has not. Left to chance are only
/// passes that end early, as another task wants the CPU, and writers that may not have all of the
/// scheduler's tags.
fn within(text: &str, wrong: Option<Wrong>) -> Option<Schedule> {
    match run(text, wrong) {
        Ok(schedule) => Some(schedule),
        Err(why) if why.contains("cut short") || why.contains("a scheduler tag") => None,
        Err(why) => panic!("{why}\n{text}"),
    }
}

fn followed(schedule: &Schedule) -> Replayed {
    let setting = Setting::parse(&schedule.settings).expect("constants of the specification");
    // As a file holds it.
    let written = Schedule::parse(&schedule.to_string()).expect("a schedule file");
    assert_eq!(*schedule, written);
    follow(&setting, schedule)
}

/// From the environment, or `default`.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn every_run_is_a_behaviour() {
    let (first, count) = (
        setting("FOLLOWED_SEED", 1),
        setting("FOLLOWED_COUNT", COUNT),
    );
    let mut actions = BTreeSet::new();
    let (mut contexts, mut runs) = (BTreeSet::new(), 0);
    for seed in first..first + count {
        let text = scenario(seed);
        let Some(schedule) = within(&text, None) else {
            continue;
        };
        runs += 1;
        let replayed = followed(&schedule);
        let taken = replayed.steps.len();
        if let Some(why) = replayed.rejected {
            panic!("step {} is rejected: {why}\n{text}", taken + 1);
        }
        assert_eq!(replayed.verdict.to_string(), schedule.shows, "{text}");
        contexts.extend(constant(&schedule, "Contexts"));
        actions.extend(schedule.steps.into_iter().map(|step| step.action));
    }
    assert!(runs * 10 >= count * 9, "only {runs} of {count} are within");
    if count < COUNT {
        return;
    }
    let never: Vec<&str> = ACTIONS
        .into_iter()
        .filter(|action| !actions.contains(*action))
        .collect();
    assert!(never.is_empty(), "never taken: {never:?}");
    assert!(contexts.contains("2"), "{contexts:?}");
}

/// The stall that was looked for, up to its end, and the same under rules that have it repaired.
#[test]
fn the_stall_is_a_behaviour_to_its_end() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = crate_folder.join("scenarios/shared-restart-stall.toml");
    let text = std::fs::read_to_string(file).expect("a built-in scenario");
    let rules = ["R0", "R1", "R2", "R2p", "R4", "all"];
    let rules = rules.map(|rule| ("v4.14", rule));
    for (restart, rule) in rules.into_iter().chain([("v4.15", "R2"), ("v4.15", "R4")]) {
        let axes = format!("restart = \"{restart}\"\nrestart_rule = \"{rule}\"");
        let text = text.replace("restart = \"v4.14\"", &axes);
        let schedule = run(&text, None).expect("a run");
        let stalls = (restart, rule) == ("v4.14", "R2");
        let shows = if stalls {
            "NoStall violated"
        } else {
            "NeverAllDone violated"
        };
        assert_eq!(schedule.shows, shows, "{restart} {rule}");
        let replayed = followed(&schedule);
        assert_eq!(replayed.rejected, None, "{restart} {rule}");
        assert_eq!(replayed.verdict.to_string(), shows, "{restart} {rule}");
        assert!(schedule.steps.len() > 4_000, "{restart} {rule}");
    }
}

fn constant(schedule: &Schedule, name: &str) -> Option<String> {
    let found = schedule.settings.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone())
}

/// Actions of `RestartLabels`, but for `Stale` and `Leave`: a CPU makes both its attempts to get a
/// tag within the time that it may run ahead of others: the second finds what the first did.
const ACTIONS: [&str; 27] = [
    "InsertSched",
    "InsertBypass",
    "Start",
    "StartOne",
    "Mark",
    "SetMark",
    "Count",
    "Issue",
    "Miss",
    "InLine",
    "Line",
    "Retry",
    "PutBack",
    "Recheck",
    "StillInLine",
    "Ask",
    "Free",
    "Waking",
    "Wake",
    "Gate",
    "Clear",
    "ClearFlag",
    "Visit",
    "Unmark",
    "Uncount",
    "SeesDispatch",
    "SeesWork",
];

/// Steps left out that show nothing: the next one of the same context finds it elsewhere.
pub(crate) fn unseen_left_out(steps: &[Step]) -> Vec<Corruption> {
    let mut wrong = Vec::new();
    for (index, pair) in steps.windows(2).enumerate() {
        let goes_on = pair[0].arguments == pair[1].arguments && pair[0].action != pair[1].action;
        if pair[0].observed.is_empty() && goes_on {
            let mut steps = steps.to_vec();
            steps.remove(index);
            wrong.push(Corruption {
                step: index + 1,
                what: format!("{} left out", pair[0].action),
                steps,
            });
        }
    }
    wrong
}

#[test]
fn corrupted_runs_are_rejected_where_they_are_corrupted() {
    let (mut runs, mut tried) = (0, 0);
    for seed in 1..=30 {
        let text = scenario(seed);
        let schedule = within(&text, None).filter(|schedule| schedule.steps.len() <= 250);
        let Some(schedule) = schedule else {
            continue;
        };
        let mut wrong = corruptions(&schedule.steps);
        wrong.extend(unseen_left_out(&schedule.steps));
        for Corruption { step, what, steps } in wrong {
            let corrupted = Schedule {
                steps,
                ..schedule.clone()
            };
            let replayed = followed(&corrupted);
            let taken = replayed.steps.len();
            assert!(
                replayed.rejected.is_some() && taken + 1 == step,
                "corrupted at step {step} ({what}): {taken} steps taken\n{text}\n{corrupted}"
            );
            tried += 1;
        }
        runs += 1;
    }
    assert!(
        runs >= 5 && tried > 1_000,
        "{runs} runs, {tried} corruptions"
    );
}

#[test]
fn runs_of_a_wrong_block_layer_are_rejected() {
    let all = [
        (Wrong::StaysCounted, "qcount"),
        (Wrong::ForgottenRestart, "restart"),
        (Wrong::ForgottenWake, "pending"),
        (Wrong::ForgottenRun, "pending"),
    ];
    for (wrong, variable) in all {
        let (mut caught, mut differ, mut rejected) = (false, 0, 0);
        for seed in 1..=40 {
            let text = scenario(seed).replace("restart_rule = \"R4\"", "restart_rule = \"R2\"");
            let (right, defect) = (within(&text, None), within(&text, Some(wrong)));
            let Some(defect) = defect.filter(|defect| Some(defect) != right.as_ref()) else {
                continue;
            };
            differ += 1;
            if let Some(why) = followed(&defect).rejected {
                rejected += 1;
                caught |= why.contains(variable);
            }
        }
        // A wake that is lost while another run is to come looks like two that became one.
        assert!(
            rejected * 4 >= differ * 3,
            "{wrong:?}: {rejected} of {differ}"
        );
        assert!(caught, "{wrong:?}: {variable} is never what tells");
    }
}
