//! The contents of a verdict, and the error where none can be given.

use std::fs;

use crate::change::changed;
use crate::common::{run_in, traces};
use crate::issues::with_issues;
use blkmq::rules::Rules;
use conform::{Error, Mode, Options, Verdict};
use trace::capture::CaptureDir;

#[test]
fn damage_is_one_clear_error() {
    let garbage = changed("dd01-defaults", "ftrace.txt", |text| {
        text.replacen("prio=0x4004", "prio=often", 1)
    });
    let error = run_in(garbage.path(), Mode::Calls, None).unwrap_err();
    assert!(matches!(error, Error::Trace(_)), "{error}");
    assert!(error.to_string().contains("ftrace.txt:"), "{error}");

    // A file that was cut to nothing is no reason to take a weaker mode.
    for left in ["", "# tracer: nop\n"] {
        let empty = changed("dd01-defaults", "ftrace.txt", |_| left.to_owned());
        let dir = CaptureDir::open(empty.path()).unwrap();
        let error = conform::run(&dir, &Options::default()).unwrap_err();
        assert!(
            error.to_string().contains("ftrace.txt has no event"),
            "{error}"
        );
    }

    let negative = changed("dd01-defaults", "queue.txt", |text| {
        text.replace("queue/nr_requests=256", "queue/nr_requests=-1")
    });
    let error = run_in(negative.path(), Mode::Records, None).unwrap_err();
    assert!(error.to_string().contains("queue/nr_requests"), "{error}");

    let cut = with_issues("dd01-defaults", |_| {});
    let file = cut.path().join("nullb0.blktrace.0");
    let mut bytes = fs::read(&file).unwrap();
    bytes[48 * 100..48 * 101].fill(0);
    fs::write(&file, bytes).unwrap();
    let error = run_in(cut.path(), Mode::Records, None).unwrap_err();
    assert!(error.to_string().contains("blktrace.0: byte"), "{error}");
}

#[test]
fn events_that_are_not_read_are_named() {
    let renamed = changed("dd01-defaults", "ftrace.txt", |text| {
        text.replacen(" ddfin: ", " ddfim: ", 3)
    });
    let verdict = run_in(renamed.path(), Mode::Calls, None).unwrap();
    let message = "ftrace.txt: 3 events that are not read: ddfim";
    assert!(
        verdict.notes.iter().any(|note| note == message),
        "{verdict}"
    );
}

#[test]
fn what_cannot_be_compared_says_so() {
    let other = changed("dd01-defaults", "queue.txt", |text| {
        text.replace("mq-deadline", "cfq")
    });
    let error = run_in(other.path(), Mode::Records, None).unwrap_err();
    assert!(matches!(error, Error::NotModelled { .. }), "{error}");
    assert!(
        error.to_string().contains("cfq is not modelled yet"),
        "{error}"
    );

    let error = run_in(&traces("no01-burst"), Mode::Calls, None).unwrap_err();
    assert!(error.to_string().contains("mode records"), "{error}");

    let error = run_in(&traces("m2-mix7030-mq-deadline"), Mode::Calls, None).unwrap_err();
    assert!(error.to_string().contains("ftrace.txt"), "{error}");

    let other = changed("dd01-defaults", "meta.txt", |text| {
        text.replace("6.1.0-56-amd64", "5.4.0-1-amd64")
    });
    let error = run_in(other.path(), Mode::Calls, None).unwrap_err();
    assert!(matches!(error, Error::Kernel { .. }), "{error}");
}

/// A call whose entry the probes missed is judged only at its return.
#[test]
fn a_missing_probe_is_no_divergence() {
    let copy = changed("dd09-waves", "ftrace.txt", |text| {
        let mut number = 0;
        let keeps = |line: &&str| {
            number += usize::from(line.contains(" dde: "));
            !line.contains(" dde: ") || number % 10 != 0
        };
        text.lines()
            .filter(keeps)
            .map(|line| format!("{line}\n"))
            .collect()
    });
    let verdict = run_in(copy.path(), Mode::Calls, None).unwrap();
    assert_eq!(verdict.diverged(), 0, "{verdict}");
}

#[test]
fn the_text_ends_with_the_count_and_shows_both_queues() {
    let verdict = run_in(&traces("dd04-starved8"), Mode::Calls, None)
        .unwrap()
        .to_string();
    assert_eq!(verdict.lines().last(), Some("predicted 129/129 dispatches"));

    let wrong = Some(Rules::v6_12());
    let verdict = run_in(&traces("dd04-starved8"), Mode::Calls, wrong).unwrap();
    let text = verdict.to_string();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("predicted ") && last.ends_with("/129 dispatches"));
    assert!(text.contains("first divergence: dispatch "), "{text}");
    assert!(text.contains("\nkernel's queue:\n"), "{text}");
    assert!(text.contains("\nmodel's queue:\n"), "{text}");
    assert!(text.contains("last_dir="), "{text}");
}

#[test]
fn the_json_has_exactly_the_promised_fields() {
    let keys = |verdict: &Verdict| -> Vec<String> {
        let json = serde_json::to_value(verdict).unwrap();
        json.as_object().unwrap().keys().cloned().collect()
    };
    let mut promised = vec![
        "capture",
        "rules",
        "scheduler",
        "mode",
        "total",
        "predicted",
        "diverged",
        "unjudged",
        "unjudged_reasons",
        "first_divergence",
        "told",
        "log",
        "choices",
        "targets",
        "unjudged_targets",
        "clones",
    ];
    promised.sort_unstable();
    let good = run_in(&traces("dd07-merges"), Mode::Records, None).unwrap();
    let mut found = keys(&good);
    found.sort();
    assert_eq!(found, promised);
    let json = serde_json::to_value(&good).unwrap();
    assert_eq!(json["capture"], "dd07-merges");
    assert_eq!(json["mode"], "records");
    assert_eq!(json["scheduler"], "mq-deadline");
    assert_eq!(json["rules"], "v6.1");
    assert_eq!(json["total"], 22);
    assert!(json["first_divergence"].is_null());

    let wrong = Some(Rules::v6_12());
    let bad = run_in(&traces("dd07-merges"), Mode::Records, wrong).unwrap();
    let json = serde_json::to_value(&bad).unwrap();
    assert!(json["first_divergence"]["index"].as_u64().unwrap() > 0);
    assert!(json["first_divergence"]["kernel"].is_string());
}

#[test]
fn the_default_is_the_strongest_mode_and_says_why() {
    for (name, mode, why) in [
        ("dd01-defaults", Mode::Calls, "has the dispatch calls"),
        ("no01-burst", Mode::Records, "makes no dispatch calls"),
        ("m2-seqmerge-mq-deadline", Mode::Records, "no ftrace.txt"),
    ] {
        let options = Options::default();
        let dir = CaptureDir::open(&traces(name)).unwrap();
        let verdict = conform::run(&dir, &options).unwrap();
        assert_eq!(verdict.mode, mode, "{name}");
        assert!(verdict.to_string().contains(why), "{verdict}");
    }
}
