//! Runs of the simulator are behaviours of `specs/Dispatch`, label by label: the explorer's paths
//! follow them. `blksim check Dispatch --run` asks TLC the same; `cargo xtask specs` does it.
//!
//! `FOLLOWED_COUNT` and `FOLLOWED_SEED` choose other runs.

use std::collections::BTreeSet;

use blkmq::schedule::Schedule;
use explore::dispatch::follow;
use explore::spec::Replayed;
use explore::tlc::{Corruption, corruptions};
use sim::rng::Rng;

use crate::defect::Wrong;
use crate::followed::{PROFILE, one, run, setting, unseen_left_out};

/// Random runs.
const COUNT: u64 = 100;

/// All that insertion and dispatch may be.
const SERIES: [&str; 7] = [
    "stock",
    "serialise-only",
    "poc",
    "v1",
    "v2",
    "v2-repaired",
    "v3",
];

/// Readers and writers of one disk under mq-deadline, each CPU with a bucket of its own.
fn scenario(seed: u64, series: &str) -> String {
    let mut rng = Rng::stream(seed, "dispatched");
    let rng = &mut rng;
    let cpus = 1 + rng.below(6);
    let buckets = match series {
        "poc" | "v1" | "v2" | "v2-repaired" => {
            format!("dd_cpu_buckets = {}\n", cpus + rng.below(2))
        }
        _ => String::new(),
    };
    let mut text = format!(
        "seed = {seed}\n[machine]\nprofile = \"{PROFILE}\"\ncpus = {cpus}\n[queue]\n\
         rules = \"{}\"\nscheduler = \"mq-deadline\"\nnr_requests = 64\nseries = \"{series}\"\n\
         lone_plug = \"never\"\nnomerges = {}\ninline_runs = {}\n{buckets}\
         [device]\ntype = \"null_blk\"\nsubmit_queues = 1\nhw_queue_depth = 64\nirqmode = {}\n",
        one(rng, &["v6.1", "v6.12"]),
        rng.below(3),
        one(rng, &["false", "true"]),
        // By timer most of the time: requests are in the device for a while.
        match rng.below(4) {
            2.. => format!("2\ncompletion_nsec = {}", 300 + rng.below(3_000)),
            mode => mode.to_string(),
        },
    );
    for _ in 0..=rng.below(cpus + 2) {
        let engine = one(rng, &["psync", "io_uring", "libaio"]);
        let depth = if engine == "psync" {
            1
        } else {
            1 + rng.below(6)
        };
        text += &format!(
            "[[job]]\nrw = \"{}\"\nbs = 512\nioengine = \"{engine}\"\niodepth = {depth}\n\
             iodepth_batch_submit = {depth}\ndirect = 1\nnumber_ios = {}\ncpus_allowed = \"{}\"\n",
            one(rng, &["randread", "randwrite"]),
            1 + rng.below(12),
            rng.below(cpus),
        );
    }
    text
}

fn series(seed: u64) -> &'static str {
    SERIES[(seed % SERIES.len() as u64) as usize]
}

fn followed(schedule: &Schedule) -> Replayed {
    // As a file holds it.
    let written = Schedule::parse(&schedule.to_string()).expect("a schedule file");
    assert_eq!(*schedule, written);
    follow(schedule).expect("constants of the specification")
}

#[test]
fn every_run_is_a_behaviour() {
    let (first, count) = (
        setting("FOLLOWED_SEED", 1),
        setting("FOLLOWED_COUNT", COUNT),
    );
    let (mut actions, mut stalled) = (BTreeSet::new(), BTreeSet::new());
    for seed in first..first + count {
        let series = series(seed);
        let text = scenario(seed, series);
        let schedule = run(&text, None).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let replayed = followed(&schedule);
        let taken = replayed.steps.len();
        if let Some(why) = replayed.rejected {
            panic!("step {} is rejected: {why}\n{text}", taken + 1);
        }
        assert_eq!(replayed.verdict.to_string(), schedule.shows, "{text}");
        if schedule.shows == "NoStall violated" {
            stalled.insert(series);
        }
        actions.extend(schedule.steps.into_iter().map(|step| step.action));
    }
    let lossy = BTreeSet::from(["poc", "v1", "v2"]);
    if count < COUNT {
        assert!(stalled.is_subset(&lossy), "{stalled:?}");
        return;
    }
    // That of v2 is narrow: here is a run that is in it.
    let (_, of_v2) = lost();
    assert_eq!(followed(&of_v2).verdict.to_string(), "NoStall violated");
    stalled.insert("v2");
    assert_eq!(stalled, lossy, "who loses requests");
    let never: Vec<&str> = ACTIONS
        .into_iter()
        .filter(|action| !actions.contains(*action))
        .collect();
    assert!(never.is_empty(), "never taken: {never:?}");
}

/// Actions of `DispatchLabels`, but for `Recheck`: between an insertion and the look behind it
/// somebody else has to pick all there is, which one run of some hundred has.
const ACTIONS: [&str; 42] = [
    "Submit",
    "MergeAsk",
    "MergeLock",
    "Merge",
    "AppendSide",
    "Note",
    "TryLock",
    "TryLate",
    "Busy",
    "Count",
    "Marked",
    "Mark",
    "Fill",
    "Recount",
    "Still",
    "Lock",
    "Begin",
    "Insert",
    "Filled",
    "Claim",
    "Look",
    "Collect",
    "End",
    "Again",
    "Unlock",
    "LateEnd",
    "Glance",
    "GlanceSide",
    "LeaveRun",
    "HasWork",
    "HasSide",
    "Gate",
    "ShutGate",
    "PickLock",
    "TakeSide",
    "InsertSide",
    "Pick",
    "OpenGate",
    "Offer",
    "DelayRuns",
    "Fire",
    "Complete",
];

/// v2's loss: a CPU sets the mark, fills its bucket and leaves it to an inserter that has taken the
/// mark down and looked meanwhile. With the mark behind the filling both come to their end.
#[test]
fn a_request_lost_in_a_bucket_is_a_behaviour_to_its_end() {
    let (seed, lost) = lost();
    let replayed = followed(&lost);
    assert_eq!(replayed.rejected, None);
    assert_eq!(replayed.verdict.to_string(), lost.shows);
    let left = replayed.left.join("; ");
    assert!(left.contains("queued = <<>>"), "{left}");
    assert!(left.contains("device = {}"), "{left}");
    let ended = run(&scenario(seed, "v2-repaired"), None).expect("a run");
    assert_eq!(ended.shows, "NeverAllDone violated");
    assert_eq!(followed(&ended).verdict.to_string(), ended.shows);
}

/// Seeds of which several have a run in which v2 loses a request. Which these are hangs on
/// nanoseconds between threads whose first I/Os all begin at zero.
const LOST: core::ops::Range<u64> = 0..300;

/// The first run of them in which v2 loses a request, and its seed.
fn lost() -> (u64, Schedule) {
    let runs = LOST.map(|seed| (seed, run(&scenario(seed, "v2"), None).expect("a run")));
    let mut lossy = runs.filter(|(_, run)| run.shows == "NoStall violated");
    lossy.next().expect("v2 loses under one of these seeds")
}

#[test]
fn corrupted_runs_are_rejected_where_they_are_corrupted() {
    let (mut runs, mut tried) = (BTreeSet::new(), 0);
    for seed in 1..=300 {
        let text = scenario(seed, series(seed));
        let schedule = run(&text, None).expect("a run");
        if schedule.steps.len() > 120 {
            continue;
        }
        let mut wrong = corruptions(&schedule.steps);
        // The lock may be had without asking before, and a pass need pick no more than it has.
        let told = |c: &Corruption| match c.what.as_str() {
            "MergeAsk left out" => false,
            "HasWork left out" => c.steps[c.step - 1].action != "Offer",
            _ => true,
        };
        wrong.extend(unseen_left_out(&schedule.steps).into_iter().filter(told));
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
        runs.insert(series(seed));
    }
    assert_eq!(runs.len(), SERIES.len(), "{runs:?}");
    assert!(tried > 1_000, "{tried} corruptions");
}

#[test]
fn runs_of_a_wrong_block_layer_are_rejected() {
    let all = [
        (Wrong::GateLeftOpen, "serialise-only", "dispatching"),
        (Wrong::LostFill, "v2-repaired", "Look"),
        (Wrong::ForgottenMark, "v2-repaired", "buckets"),
        (Wrong::ForgottenDelay, "v2-repaired", "armed"),
    ];
    for (wrong, series, tells) in all {
        let (mut caught, mut differ) = (0, 0);
        for seed in 1..=60 {
            let text = scenario(seed, series);
            let right = run(&text, None).expect("a run");
            let defect = run(&text, Some(wrong)).expect("a run");
            if defect == right {
                continue;
            }
            differ += 1;
            let why = followed(&defect).rejected;
            let why = why.unwrap_or_else(|| panic!("{wrong:?} is accepted\n{text}"));
            caught += usize::from(why.contains(tells));
        }
        assert!(
            differ >= 3 && caught >= 1,
            "{wrong:?}: {caught} of {differ}"
        );
    }
}

/// One error says what either specification needs, or what happened that it has not.
#[test]
fn a_run_of_neither_specification_is_refused() {
    let text = scenario(1, "stock");
    for (from, to, what) in [
        (
            "scheduler = \"mq-deadline\"",
            "scheduler = \"none\"",
            "for specs/Restart: 2 to 8 disks that share one tag set; or for specs/Dispatch: \
             scheduler mq-deadline",
        ),
        (
            "submit_queues = 1",
            "submit_queues = 2",
            "for specs/Dispatch: one hardware queue",
        ),
        (
            "nr_requests = 64",
            "nr_requests = 64\nseries = \"v2\"\ndd_cpu_buckets = 1",
            "a bucket for each CPU",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let text = text.replace("series = \"stock\"\n", "").replace(from, to);
        let why = run(&text, None).expect_err(what);
        assert!(why.contains(what), "{to}: {why}");
    }
    // Who has one tag needs another one sooner or later.
    let with_one_tag = |seed| scenario(seed, "v2").replace("queue_depth = 64", "queue_depth = 1");
    let errors = (1..=20).filter_map(|seed| run(&with_one_tag(seed), None).err());
    let errors: BTreeSet<String> = errors.collect();
    let told = "the driver's tags ran out (device queue depth)";
    assert!(errors.contains(told), "{errors:?}");
}
