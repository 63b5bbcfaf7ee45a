//! What the tests of all specifications share: folders, `expect.toml`, comparisons.
//!
//! TLC's results are in `specs/*/expect.toml`, which `blksim check` verifies.

use std::cmp::Reverse;
use std::fmt::Debug;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use blkmq::schedule::Schedule;
use explore::Resources;
use explore::spec::{Explored, Options, Replayed, Specification, explore, liveness, replay};
use explore::tlc::{Expectations, Expected, Variant, Verdict, corruptions};
use rayon::prelude::*;

/// A file of a specification's folder.
pub(crate) fn text<S: Specification>(path: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    let path = folder.join(S::NAME).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn expectations<S: Specification>() -> Expectations {
    Expectations::parse(&text::<S>("expect.toml")).expect("a right file")
}

pub(crate) fn configuration<S: Specification>(variant: &str) -> String {
    text::<S>(&format!("variants/{variant}.cfg"))
}

pub(crate) fn setting<S: Specification>(variant: &str) -> S {
    let text = configuration::<S>(variant);
    S::of_configuration(&text).unwrap_or_else(|e| panic!("{variant}: {e}"))
}

/// Differences from TLC's verdict, and from the counts as far as they are exact.
pub(crate) fn differences(variant: &Variant, found: &Explored) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, here: &dyn Debug, there: &dyn Debug| {
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
        compare("depth", &Some(found.depth), &variant.depth);
    }
    wrong
}

/// Variants that the explorer covers.
pub(crate) fn variants<S: Specification>() -> Vec<Variant> {
    let mut variants = expectations::<S>().variant;
    variants.retain(|variant| {
        let configuration = configuration::<S>(&variant.name);
        setting::<S>(&variant.name).beyond(&configuration).is_none()
    });
    variants
}

/// One thread, as tests share both CPUs.
pub(crate) fn explored<S: Specification>(setting: &S, options: Options) -> Explored {
    explore(setting, options, &Resources::ALONE).expect("nothing stops it")
}

/// Compares variants with so many generated states with TLC's verdict and counts; returns their
/// number. Variants of behaviours are left out.
pub(crate) fn equal_to_tlc<S: Specification>(generated: Range<u64>) -> usize {
    let mut variants = variants::<S>();
    variants.retain(|variant| {
        !variant.name.ends_with("-live") && generated.contains(&variant.generated)
    });
    // The largest first, so that none is left to wait for at the end.
    variants.sort_by_key(|variant| Reverse(variant.generated));
    let one = |variant: &Variant| {
        let found = explored(&setting::<S>(&variant.name), options(variant));
        // Merge code has little state that its specification does not have.
        let tested = found.tested > 0 || S::NAME.ends_with("Merge");
        assert!(tested, "{}: no projection tested", variant.name);
        differences(variant, &found)
    };
    let wrong: Vec<String> = variants
        .par_iter()
        .with_max_len(1)
        .flat_map_iter(one)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    variants.len()
}

/// A setting that differs from the variant must show in verdict or counts.
pub(crate) fn shows<S: Specification>(what: &str, variant: &str, change: impl Fn(&mut S)) {
    let expectations = expectations::<S>();
    let variants = expectations.variant.iter();
    let mut variants = variants.filter(|known| known.name == variant);
    let variant = variants.next().expect("a variant");
    let mut machine = setting::<S>(&variant.name);
    change(&mut machine);
    let found = explored(&machine, options(variant));
    let differences = differences(variant, &found);
    assert!(!differences.is_empty(), "{what}: as in {}", variant.name);
    assert!(
        !matches!(found.verdict, Verdict::Failed(_)),
        "{what}: {differences:?}"
    );
}

/// The test of projections for a variant: each state that differs from another one with its
/// projection, or one in some of them.
pub(crate) fn options(variant: &Variant) -> Options {
    Options {
        whole: variant.whole,
        test_one_in: variant.generated / 20_000 + 1,
    }
}

/// Recorded schedules without runs whose steps are labels: only TLC takes those.
pub(crate) fn schedules<S: Specification>() -> Vec<(String, Schedule)> {
    let recorded = expectations::<S>().trace.into_iter().map(|recorded| {
        let text = text::<S>(&format!("traces/{}", recorded.file));
        let schedule = Schedule::parse(&text).expect("a right file");
        (recorded.file, schedule)
    });
    let by_labels = format!("{}Labels", S::NAME);
    recorded
        .filter(|(_, schedule)| schedule.spec != by_labels)
        .collect()
}

/// Replays a recorded schedule with the real paths.
fn replayed<S: Specification>(schedule: &Schedule) -> Replayed {
    let setting = S::parse(&schedule.settings).expect("right constants");
    replay(&setting, schedule)
}

/// Recorded schedules end with the verdict that they claim.
pub(crate) fn replays_recorded<S: Specification>() {
    for (file, schedule) in schedules::<S>() {
        let replayed = replayed::<S>(&schedule);
        assert_eq!(replayed.rejected, None, "{file}");
        assert_eq!(replayed.verdict.to_string(), schedule.shows, "{file}");
    }
}

/// A corrupted schedule is rejected at its wrong step.
pub(crate) fn rejects_corrupted<S: Specification>() {
    let mut rejected = 0;
    for (file, schedule) in schedules::<S>() {
        for corruption in corruptions(&schedule.steps) {
            let wrong = Schedule {
                steps: corruption.steps.clone(),
                ..schedule.clone()
            };
            let replayed = replayed::<S>(&wrong);
            let step = replayed.steps.len() + 1;
            assert_eq!(step, corruption.step, "{file}: {}", corruption.what);
            assert!(replayed.rejected.is_some(), "{file}: {}", corruption.what);
            rejected += 1;
        }
    }
    assert!(rejected > 20, "only {rejected} corruptions");
}

/// The schedule of an exploration replays. Returns it.
pub(crate) fn found_replays<S: Specification>(setting: &S, variant: &str) -> Schedule {
    let found = explored(setting, Options::default());
    let constants = explore::tlc::settings(&configuration::<S>(variant));
    let observed = expectations::<S>().observed;
    let file = found.schedule_file(variant, &constants, &observed);
    let read = Schedule::parse(&file.to_string()).expect("a right file");
    let replayed = replay(setting, &read);
    assert_eq!(replayed.rejected, None, "{variant}");
    assert_eq!(replayed.verdict.to_string(), read.shows, "{variant}");
    assert!(!replayed.left.is_empty(), "{variant}");
    read
}

/// Whether every request ends; if one may not, the schedule of its endless wait replays.
pub(crate) fn all_end<S: Specification>(variant: &str) -> bool {
    let setting = setting::<S>(variant);
    let Some(waits) = liveness(&setting).waits else {
        return true;
    };
    let constants = explore::tlc::settings(&configuration::<S>(variant));
    let file = waits.schedule_file::<S>(variant, &constants, &expectations::<S>().observed);
    let read = Schedule::parse(&file.to_string()).expect("a right file");
    let replayed = replay(&setting, &read);
    assert_eq!(replayed.rejected, None, "{variant}");
    assert_eq!(replayed.verdict.to_string(), read.shows, "{variant}");
    false
}
