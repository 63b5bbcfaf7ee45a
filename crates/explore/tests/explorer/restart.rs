//! The real paths against `specs/Restart`: equal verdicts and equal counts, configuration by
//! configuration. TLC's results are in `specs/Restart/expect.toml`, which `blksim check` verifies.

use crate::spec;
use blkmq::rules::{AskAfter, Recheck, RestartRule, TagWait, WaitEntry, WokenRun};
use explore::restart::Setting;
use explore::tlc::Expected;

/// Above so many generated states a variant is checked with `--full` only.
const LARGE: u64 = 100_000;

fn setting(variant: &str) -> Setting {
    spec::setting(variant)
}

#[test]
fn every_variant_has_the_verdict_and_the_counts_of_tlc() {
    let (most, least) = match cfg!(debug_assertions) {
        true => (30_000, 6),
        false => (LARGE, 46),
    };
    let equal = spec::equal_to_tlc::<Setting>(0..most);
    assert!(equal >= least, "only {equal} configurations");
}

/// Up to 3,138,709 generated states.
#[test]
#[ignore = "a minute of an optimised build: cargo xtask ci --full"]
fn the_large_ones_have_the_counts_of_tlc() {
    let equal = spec::equal_to_tlc::<Setting>(LARGE..u64::MAX);
    assert_eq!(equal, 39, "configurations");
}

/// Machines that differ from the specification: each must show in verdict or counts.
#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "ten seconds or more: cargo xtask ci --full"
)]
fn another_machine_has_other_counts() {
    type Change = fn(&mut Setting);
    let machines: [(&str, &str, Change); 11] = [
        ("R1 for R2", "r2-rc4-3x2-one-kept-4.14", |s| {
            s.restart.rule = RestartRule::RoundRobin;
        }),
        ("all for R1", "r1-rc4-3x2-one-kept-4.14-limit1", |s| {
            s.restart.rule = RestartRule::WholeSet;
        }),
        ("another question", "r4-later-3x1-all-second-4.15", |s| {
            s.restart.ask = AskAfter::NoneIssued;
        }),
        ("another re-check", "r4-later-3x1-all-second-4.14", |s| {
            s.restart.recheck = Recheck::LeftWaitQueue;
        }),
        ("woken, so run", "r4-later-3x1-all-second-4.15-look", |s| {
            s.restart.woken = WokenRun::Always;
        }),
        ("all are woken", "r4-later-3x1-one-any-4.15", |s| {
            s.restart.wait = TagWait::WakeAll;
        }),
        ("another entry", "r4-later-3x1-one-any-4.15", |s| {
            s.restart.entry = WaitEntry::SecondAttempt;
        }),
        ("no line", "r4-later-3x1-all-second-4.15", |s| {
            s.restart.wait = TagWait::Nowhere;
        }),
        (
            "a driver that runs",
            "r1-later-3x2-one-kept-4.14-limit1",
            |s| {
                s.driver_reruns = true;
            },
        ),
        (
            "mark and count in one",
            "r2p-rc4-2x1-all-second-4.15-split",
            |s| {
                s.mark_split = false;
            },
        ),
        (
            "a device without limit",
            "r1-rc4-3x2-one-kept-4.14-limit1",
            |s| {
                s.limit = 0;
            },
        ),
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
fn a_found_schedule_replays_with_its_verdict() {
    for name in [
        "r2-rc4-4x2-one-kept-4.14",
        "r4-later-3x2-one-kept-4.14-limit1",
    ] {
        spec::found_replays(&setting(name), name);
    }
}

/// Weak fairness for contexts and completions, none for insertion.
#[test]
fn every_request_ends_where_tlc_says_so_and_not_where_one_stalls() {
    let mut live = 0;
    for variant in &spec::expectations::<Setting>().variant {
        if !variant.name.ends_with("-live") {
            continue;
        }
        let holds = matches!(variant.verdict, Expected::Holds);
        let all_end = spec::all_end::<Setting>(&variant.name);
        assert_eq!(all_end, holds, "{}", variant.name);
        live += 1;
    }
    assert!(live >= 2, "only {live} variants");
    // A stall is the shortest way to wait for ever.
    for name in [
        "r4-later-3x2-one-kept-4.14-limit1",
        "r4-later-3x1-none-4.14",
    ] {
        assert!(!spec::all_end::<Setting>(name), "{name}");
    }
}
