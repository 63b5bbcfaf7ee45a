//! The real merge code against `specs/BfqMerge`: equal verdicts and equal counts, configuration by
//! configuration.

use crate::spec;
use explore::bfq_merge::{Setting, Wrong};
use explore::spec::{Options, Specification, replay};
use explore::tlc::Verdict;

fn setting(variant: &str) -> Setting {
    spec::setting(variant)
}

#[test]
fn every_variant_has_the_verdict_and_the_counts_of_tlc() {
    let (most, least) = match cfg!(debug_assertions) {
        true => (100_000, 9),
        false => (200_000, 11),
    };
    let equal = spec::equal_to_tlc::<Setting>(0..most);
    assert!(equal >= least, "only {equal} configurations");
}

/// Three processes and four queues; together 3,125,110 generated states.
#[test]
#[ignore = "a minute of an optimised build: cargo xtask ci --full"]
fn the_large_ones_have_the_counts_of_tlc() {
    let equal = spec::equal_to_tlc::<Setting>(200_000..10_000_000);
    assert!(equal >= 8, "only {equal} configurations");
}

/// A setting with other rules must differ from the variant in verdict or counts.
#[test]
fn another_rule_has_other_counts() {
    spec::shows::<Setting>("no redirection first", "planned-3x3-uses", |s| {
        s.chain_to_tail = false;
    });
    spec::shows::<Setting>("early merging", "planned-2x3", |s| {
        (s.later, s.early) = (false, true);
    });
    spec::shows::<Setting>("no stable merging", "early-2x3", |s| s.early = false);
    spec::shows::<Setting>("one group", "planned-move-2x3-leaks", |s| s.groups = 1);
}

/// The result if one put is miscounted in one kind of action, and only one property is checked.
fn found(action: &'static str, drops: bool) -> Verdict {
    let variant = if drops {
        "planned-move-2x3-leaks"
    } else {
        "planned-move-2x3-uses"
    };
    let mut wrong = setting(variant);
    wrong.wrong = Some(Wrong { action, drops });
    spec::explored(&wrong, Options::default()).verdict
}

/// All kinds of action that put a reference.
const PUTS: [&str; 7] = [
    "Complete",
    "Merge",
    "MergeLater",
    "Abort",
    "Leave",
    "Exit",
    "Move",
];

#[test]
fn a_put_that_is_dropped_is_a_leak() {
    for action in PUTS {
        let leak = Verdict::Violated("NoLeak".to_owned());
        assert_eq!(found(action, true), leak, "{action}");
    }
}

#[test]
fn a_put_too_many_is_a_use_after_free() {
    for action in PUTS {
        let used = Verdict::Violated("LiveDeref".to_owned());
        assert_eq!(found(action, false), used, "{action}");
    }
}

/// Recorded schedules of rules that the code has end as they did in TLC; the others are left to
/// TLC.
#[test]
fn recorded_schedules_end_with_the_verdict_that_they_show() {
    let mut replayed = Vec::new();
    for (file, schedule) in spec::schedules::<Setting>() {
        let setting = Setting::parse(&schedule.settings).expect("right constants");
        if setting.only_specified {
            assert!(setting.beyond("").is_some(), "{file}");
            continue;
        }
        let outcome = replay(&setting, &schedule);
        assert_eq!(outcome.rejected, None, "{file}");
        assert_eq!(outcome.verdict.to_string(), schedule.shows, "{file}");
        replayed.push(file);
    }
    let real = [
        "plan-overwritten.schedule",
        "candidate-overwritten.schedule",
        "all-done.schedule",
        "run-of-the-simulator.schedule",
    ];
    assert_eq!(replayed, real);
}

#[test]
fn found_schedules_replay_with_their_verdict() {
    for name in ["cancel-3x4-exact", "planned-move-2x4-exact"] {
        spec::found_replays(&setting(name), name);
    }
}

/// The overwritten plan: if a redirection takes precedence, the same sequence ends before it.
#[test]
fn the_repaired_rule_does_not_take_the_step_of_the_loss() {
    let mut lost = spec::found_replays(&setting("cancel-3x4-exact"), "cancel-3x4-exact");
    for step in &mut lost.steps {
        step.observed.clear();
    }
    let outcome = replay(&setting("planned-3x4"), &lost);
    assert!(outcome.rejected.is_some(), "{outcome:?}");
    assert_eq!(outcome.verdict, Verdict::Holds);
}
