//! The real paths against `specs/Restart`: equal verdicts and equal counts, configuration by
//! configuration. What TLC says is in `specs/Restart/expect.toml`, which `blksim check` holds
//! against it.

use std::fs;
use std::path::PathBuf;

use blkmq::schedule::Schedule;
use explore::restart::{Explored, Options, Setting, explore, liveness, replay, walks};
use explore::tlc::{Expectations, Expected, Variant, Verdict, corruptions};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/Restart")
}

fn text(path: &str) -> String {
    let path = folder().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn expectations() -> Expectations {
    Expectations::parse(&text("expect.toml")).expect("a right file")
}

fn setting(variant: &Variant) -> Setting {
    let text = text(&format!("variants/{}.cfg", variant.name));
    Setting::of_configuration(&text).unwrap_or_else(|e| panic!("{}: {e}", variant.name))
}

/// Runs that a debug build has time for.
fn is_small(variant: &Variant) -> bool {
    !cfg!(debug_assertions) || variant.generated < 30_000
}

/// Variants that the invariants judge; liveness and the end are others' business. Left out is the
/// one with two hctxs a queue: in the specification a request is issued on the hctx that asked the
/// scheduler, with mq-deadline on the one that it was allocated for.
fn judged(variant: &Variant) -> bool {
    let apart = ["-live", "-ends", "-2hctxs"];
    !apart.iter().any(|end| variant.name.ends_with(end))
}

fn run(variant: &Variant, options: Options) -> Explored {
    explore(
        &setting(variant),
        Options {
            whole: variant.whole,
            ..options
        },
    )
}

/// The verdict, and what of the counts is exact, as TLC has them.
fn differences(variant: &Variant, found: &Explored) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, here: &dyn std::fmt::Debug, there: &dyn std::fmt::Debug| {
        let (here, there) = (format!("{here:?}"), format!("{there:?}"));
        if here != there {
            wrong.push(format!("{}: {what} {here}, TLC {there}", variant.name));
        }
    };
    let verdict = match (&variant.verdict, &variant.property) {
        (Expected::Violated, Some(property)) => Verdict::Violated(property.clone()),
        _ => Verdict::Holds,
    };
    compare("verdict", &found.verdict, &verdict);
    if let Some(length) = variant.length {
        compare("length", &(found.schedule.len() + 1), &length);
    }
    if verdict == Verdict::Holds || variant.whole {
        compare("generated", &found.generated, &variant.generated);
        compare("distinct", &found.distinct, &variant.distinct);
    }
    wrong
}

#[test]
fn every_variant_has_the_verdict_and_the_counts_of_tlc() {
    let mut wrong = Vec::new();
    let (mut equal, mut large) = (0, 0);
    for variant in &expectations().variant {
        if !judged(variant) || !is_small(variant) {
            continue;
        }
        // Each state that differs from another with its projection, or one in some of them.
        let test_one_in = variant.generated / 20_000 + 1;
        let found = run(
            variant,
            Options {
                test_one_in,
                ..Options::default()
            },
        );
        assert!(found.tested > 0, "{}: no projection tested", variant.name);
        wrong.extend(differences(variant, &found));
        equal += 1;
        large += usize::from(found.generated > 1_000_000);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(equal >= 6, "only {equal} configurations");
    assert!(
        cfg!(debug_assertions) || large >= 2,
        "only {large} large ones"
    );
}

#[test]
fn depth_first_visits_the_same_states() {
    let mut visited = 0;
    for variant in &expectations().variant {
        let plain = variant.name.ends_with("-plain");
        if !plain || (cfg!(debug_assertions) && variant.generated > 60_000) {
            continue;
        }
        let options = Options {
            depth_first: true,
            test_one_in: 0,
            ..Options::default()
        };
        let found = run(variant, options);
        assert_eq!(found.generated, variant.generated, "{}", variant.name);
        assert_eq!(found.distinct, variant.distinct, "{}", variant.name);
        visited += 1;
    }
    assert!(visited > 0, "no variant");
}

fn schedules() -> Vec<(String, Schedule)> {
    let recorded = expectations().trace.into_iter().map(|recorded| {
        let text = text(&format!("traces/{}", recorded.file));
        let schedule = Schedule::parse(&text).expect("a right file");
        (recorded.file, schedule)
    });
    recorded.collect()
}

#[test]
fn recorded_schedules_end_with_the_verdict_that_they_show() {
    for (file, schedule) in schedules() {
        let setting = Setting::parse(&schedule.settings).expect("right constants");
        let replayed = replay(&setting, &schedule);
        assert_eq!(replayed.rejected, None, "{file}");
        assert_eq!(replayed.verdict.to_string(), schedule.shows, "{file}");
    }
}

/// A wrong schedule is rejected at the step that is wrong.
#[test]
fn corrupted_schedules_are_rejected_at_their_step() {
    let mut rejected = 0;
    for (file, schedule) in schedules() {
        let setting = Setting::parse(&schedule.settings).expect("right constants");
        for corruption in corruptions(&schedule.steps) {
            let wrong = Schedule {
                steps: corruption.steps.clone(),
                ..schedule.clone()
            };
            let replayed = replay(&setting, &wrong);
            let step = replayed.steps.len() + 1;
            assert_eq!(step, corruption.step, "{file}: {}", corruption.what);
            assert!(replayed.rejected.is_some(), "{file}: {}", corruption.what);
            rejected += 1;
        }
    }
    assert!(rejected > 20, "only {rejected} corruptions");
}

/// What an exploration finds is a schedule that replays.
#[test]
fn a_found_schedule_replays_with_its_verdict() {
    let expectations = expectations();
    let stalls = [
        "r2-rc4-4x2-one-kept-4.14",
        "r4-later-3x2-one-kept-4.14-limit1",
    ];
    for name in stalls {
        let variant = expectations.variant.iter().find(|v| v.name == name);
        let variant = variant.expect("a variant");
        let setting = setting(variant);
        let found = run(variant, Options::default());
        let constants = explore::tlc::settings(&text(&format!("variants/{name}.cfg")));
        let file = found.schedule_file(name, &constants, &expectations.observed);
        let read = Schedule::parse(&file.to_string()).expect("a right file");
        let replayed = replay(&setting, &read);
        assert_eq!(replayed.rejected, None, "{name}");
        assert_eq!(replayed.verdict.to_string(), read.shows, "{name}");
        assert!(!replayed.left.is_empty(), "{name}");
    }
}

fn named(name: &str) -> Setting {
    let text = text(&format!("variants/{name}.cfg"));
    Setting::of_configuration(&text).expect("a right configuration")
}

/// Weak fairness for contexts and completions, none for insertion.
#[test]
fn every_request_ends_where_tlc_says_so_and_not_where_one_stalls() {
    let mut live = 0;
    for variant in &expectations().variant {
        if !variant.name.ends_with("-live") {
            continue;
        }
        let found = liveness(&setting(variant));
        let holds = matches!(variant.verdict, Expected::Holds);
        assert_eq!(found.waits.is_none(), holds, "{}: {found:?}", variant.name);
        live += 1;
    }
    assert!(live >= 2, "only {live} variants");
    // A stall is the shortest way of waiting for ever.
    for name in [
        "r4-later-3x2-one-kept-4.14-limit1",
        "r4-later-3x1-none-4.14",
    ] {
        let found = liveness(&named(name));
        assert!(found.waits.is_some(), "{name}: {found:?}");
    }
}

/// "Within a few walks": S20 on two queues with scheduled and bypass requests.
#[test]
fn random_walks_find_the_stall_and_nothing_where_it_is_repaired() {
    let setting = named("r2-rc4-4x2-one-kept-4.14");
    for seed in 0..5 {
        let found = walks(&setting, seed, 2_000).expect("a stall");
        assert_eq!(found.invariant, "NoStall");
        assert_eq!(walks(&setting, seed, 2_000), Some(found), "seed {seed}");
    }
    assert_eq!(walks(&named("r1-rc4-4x2-one-kept-4.14"), 1, 2_000), None);
}
