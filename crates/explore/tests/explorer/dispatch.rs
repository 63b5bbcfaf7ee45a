//! The real paths against `specs/Dispatch`: equal verdicts and equal counts, configuration by
//! configuration.

use crate::spec;
use blkmq::rules::{BucketSignal, DispatchGate, Insertion, SideWork};
use blkmq::schedule::Schedule;
use explore::dispatch::Setting;
use explore::spec::{Specification, replay};
use explore::tlc::{Expected, Verdict};

fn setting(variant: &str) -> Setting {
    spec::setting(variant)
}

#[test]
fn every_variant_has_the_verdict_and_the_counts_of_tlc() {
    let (most, least) = match cfg!(debug_assertions) {
        true => (100_000, 17),
        false => (u64::MAX, 21),
    };
    let equal = spec::equal_to_tlc::<Setting>(0..most);
    assert!(equal >= least, "only {equal} configurations");
}

/// Machines that differ from the specification: each must show in verdict or counts.
#[test]
fn another_machine_has_other_counts() {
    type Change = fn(&mut Setting);
    let machines: [(&str, &str, Change); 7] = [
        ("the mark before the filling", "repaired-inside-2x1", |s| {
            s.insertion = Insertion::Buckets(BucketSignal::MarkBefore);
        }),
        ("the mark after the filling", "v2-inside-2x1", |s| {
            s.insertion = Insertion::Buckets(BucketSignal::MarkAfter);
        }),
        (
            "counted around the filling",
            "poc-inside-2x1-reruns-delayed",
            |s| {
                s.insertion = Insertion::Buckets(BucketSignal::CountAround);
            },
        ),
        ("the gate opens after the unlock", "lock-inside-2x1", |s| {
            s.gate = DispatchGate::ClearedAfterUnlock;
        }),
        ("no gate", "lock-after-2x1", |s| s.gate = DispatchGate::Open),
        (
            "side lists that no run checks",
            "lists-inside-2x1-sees",
            |s| {
                s.side_work = SideWork::Unseen;
            },
        ),
        ("no delayed runs", "v2-inside-2x1-sees-delayed", |s| {
            s.delayed = false;
        }),
    ];
    for (what, name, change) in machines {
        spec::shows(what, name, change);
    }
}

#[test]
fn recorded_schedules_end_with_the_verdict_that_they_show() {
    spec::replays_recorded::<Setting>();
}

#[test]
fn corrupted_schedules_are_rejected_at_their_step() {
    spec::rejects_corrupted::<Setting>();
}

#[test]
fn found_schedules_replay_with_their_verdict() {
    for name in [
        "v2-inside-2x1",
        "v1-inside-2x1-reruns-delayed",
        "poc-inside-2x1-reruns-delayed",
        "lists-inside-2x1",
        "lock-after-2x2",
    ] {
        spec::found_replays(&setting(name), name);
    }
}

/// The request of v2 that is left for ever. With the mark set after the filling, another path is
/// taken at the check of the mark.
#[test]
fn the_repaired_order_does_not_take_the_steps_of_the_loss() {
    let lost = spec::found_replays(&setting("v2-inside-2x1"), "v2-inside-2x1");
    let mark = lost.steps.iter().position(|step| step.action == "Marked");
    let mark = mark.expect("v2 looks at its mark before it fills");
    let mut blind = lost;
    for step in &mut blind.steps {
        step.observed.clear();
    }
    let repaired = setting("repaired-inside-2x1");
    let replayed = replay(&repaired, &blind);
    assert_eq!(replayed.steps.len(), mark, "{replayed:?}");
    let why = replayed.rejected.expect("a step that is not possible");
    assert!(why.contains("`Marked process="), "{why}");
    assert!(
        why.contains("possible: ") && why.contains("Fill process="),
        "{why}"
    );
    assert_eq!(replayed.verdict, Verdict::Holds);
}

/// The stall of the late gate. With the bit cleared inside the lock, the sequence ends at the first
/// unlock.
#[test]
fn the_gate_inside_the_lock_goes_elsewhere() {
    let mut late = spec::found_replays(&setting("lock-after-2x2"), "lock-after-2x2");
    for step in &mut late.steps {
        step.observed.clear();
    }
    let dropped = late.steps.iter().position(|s| s.action == "PickUnlock");
    let replayed = replay(&setting("lock-inside-2x2"), &late);
    assert_eq!(Some(replayed.steps.len()), dropped, "{replayed:?}");
    let why = replayed.rejected.expect("a step that is not possible");
    assert!(why.contains("OpenGate process="), "{why}");
}

/// Weak fairness for the processes under way, for the delayed run and for the end of each request;
/// none for submission.
#[test]
fn every_request_ends_where_tlc_says_so_and_not_where_one_is_left() {
    let mut live = 0;
    for variant in &spec::variants::<Setting>() {
        if !variant.name.ends_with("-live") {
            continue;
        }
        let holds = matches!(variant.verdict, Expected::Holds);
        let all_end = spec::all_end::<Setting>(&variant.name);
        assert_eq!(all_end, holds, "{}", variant.name);
        live += 1;
    }
    assert!(live >= 4, "only {live} variants");
    // A request that is left for ever is the shortest way to wait for ever.
    for name in ["v2-inside-2x1", "lists-inside-2x1"] {
        assert!(!spec::all_end::<Setting>(name), "{name}");
    }
}

/// Repeated steps must lead back, and violate liveness only if they are fair.
#[test]
fn what_is_repeated_for_ever_leads_back_and_is_fair() {
    let text = spec::text::<Setting>("traces/rearmed-for-ever.schedule");
    let right = Schedule::parse(&text).expect("a right file");
    let setting = Setting::parse(&right.settings).expect("right constants");
    let from = right.repeats_from.expect("a way round");
    assert_eq!(replay(&setting, &right).rejected, None);
    for wrong in (1..=right.steps.len()).filter(|&number| number != from) {
        let schedule = Schedule {
            repeats_from: Some(wrong),
            ..right.clone()
        };
        let why = replay(&setting, &schedule).rejected;
        let why = why.unwrap_or_else(|| panic!("round from step {wrong}"));
        assert!(why.contains("leads elsewhere"), "{why}");
    }
    // Without a repetition the same steps prove nothing.
    let ends = Schedule {
        repeats_from: None,
        ..right
    };
    assert_eq!(replay(&setting, &ends).verdict, Verdict::Holds);
    // Process 1 asks for dd->lock and never gets it, though it is free again and again.
    let starved = include_str!("../schedules/starved-of-a-lock.schedule");
    let starved = Schedule::parse(starved).expect("a right file");
    let replayed = replay(&setting, &starved);
    assert_eq!(replayed.rejected, None);
    assert_eq!(replayed.verdict, Verdict::Holds);
}
