//! CFQ's real merge code against `specs/CfqMerge`: equal verdicts and equal counts, configuration
//! by configuration.

use crate::spec;
use blkmq::elevator::cfq::merge::Account;
use explore::cfq_merge::{Leaving, Oom, Setting, Table};
use explore::spec::{Options, Specification, replay};
use explore::tlc::Verdict;

fn setting(variant: &str) -> Setting {
    spec::setting(variant)
}

fn violated(property: &str) -> Verdict {
    Verdict::Violated(property.to_owned())
}

#[test]
fn every_variant_has_the_verdict_and_the_counts_of_tlc() {
    let (most, least) = match cfg!(debug_assertions) {
        true => (100_000, 20),
        false => (600_000, 25),
    };
    let equal = spec::equal_to_tlc::<Setting>(0..most);
    assert!(equal >= least, "only {equal} configurations");
}

/// 2,426,321 to 3,348,567 generated states.
#[test]
#[ignore = "a minute of an optimised build: cargo xtask ci --full"]
fn the_large_ones_have_the_counts_of_tlc() {
    let equal = spec::equal_to_tlc::<Setting>(600_000..10_000_000);
    assert_eq!(equal, 4, "configurations");
}

/// A setting with other rules must differ from the variant in verdict or counts.
#[test]
fn another_rule_has_other_counts() {
    spec::shows::<Setting>("no zero checks", "zero-direction-3x1", |s| {
        s.zero_checks = false;
    });
    spec::shows::<Setting>("no direction", "zero-direction-3x1", |s| {
        s.direction = false;
    });
    spec::shows::<Setting>("the queue alone", "zero-regroup-chain-2x2", |s| {
        s.regroup = Leaving::Queue;
    });
    spec::shows::<Setting>("no split", "zero-all-2x2-leaks", |s| {
        s.split = Leaving::None;
    });
    spec::shows::<Setting>("a reference is lost", "oom-put-2x2", |s| s.oom = Oom::Lost);
    spec::shows::<Setting>("any queue in the table", "oom-table-own-2x2", |s| {
        s.table = Table::Any;
    });
    spec::shows::<Setting>("across groups", "groups-same-3x1", |s| s.same_group = false);
}

/// The result if one account is miscounted, and only one property is checked.
fn found(account: Account, more: i32, property: &str) -> Verdict {
    // Three processes and four queues are needed for a chain that another process leaves.
    let variant = match account {
        Account::SplitChain => "zero-split-chain-3x2",
        _ => "zero-all-2x2-leaks",
    };
    let text = spec::configuration::<Setting>(variant);
    let constants = text.split("INVARIANTS").next().unwrap_or(&text);
    let text = format!("{constants}INVARIANTS\n  {property}\n");
    let mut wrong = Setting::of_configuration(&text).expect("a right configuration");
    wrong.wrong = Some((account, more));
    spec::explored(&wrong, Options::default()).verdict
}

/// All places that put a reference.
const PUTS: [Account; 7] = [
    Account::RequestEnd,
    Account::Redirection,
    Account::Split,
    Account::SplitChain,
    Account::Exit,
    Account::ExitChain,
    Account::GroupChange,
];

/// Places that take a reference.
const GETS: [Account; 3] = [Account::Slot, Account::Request, Account::Reservation];

#[test]
fn a_put_that_is_dropped_is_a_leak() {
    for account in PUTS {
        // This leak is 14 states deep, among 400,000.
        let small = account == Account::SplitChain && cfg!(debug_assertions);
        let property = if small { "RefExact" } else { "NoLeak" };
        let leak = found(account, -1, property);
        assert_eq!(leak, violated(property), "{account:?}");
    }
}

#[test]
fn a_put_too_many_is_a_use_after_free() {
    for account in PUTS {
        let used = found(account, 1, "LiveDeref");
        assert_eq!(used, violated("LiveDeref"), "{account:?}");
    }
}

#[test]
fn a_get_that_is_dropped_is_a_use_after_free_and_one_too_many_a_leak() {
    for account in GETS {
        let used = found(account, -1, "LiveDeref");
        assert_eq!(used, violated("LiveDeref"), "{account:?}");
        let leak = found(account, 1, "NoLeak");
        assert_eq!(leak, violated("NoLeak"), "{account:?}");
    }
}

#[test]
fn recorded_schedules_end_with_the_verdict_that_they_show() {
    spec::replays_recorded::<Setting>();
}

#[test]
fn corrupted_schedules_are_rejected() {
    spec::rejects_corrupted::<Setting>();
}

#[test]
fn found_schedules_replay_with_their_verdict() {
    for name in ["v1-3x1", "direction-3x1", "zero-split-queue-3x2-exact"] {
        spec::found_replays(&setting(name), name);
    }
}

/// The use after free of the posted patch: with the checks of 2.6.35 the last merge has no effect.
#[test]
fn the_repaired_rule_takes_the_same_steps_and_uses_nothing_that_is_freed() {
    let mut lost = spec::found_replays(&setting("v1-3x1"), "v1-3x1");
    assert_eq!(lost.steps.len(), 8, "nine states");
    for step in &mut lost.steps {
        step.observed.clear();
    }
    let outcome = replay(&setting("zero-3x2"), &lost);
    assert_eq!(outcome.rejected, None);
    assert_eq!(outcome.verdict, Verdict::Holds);
}
