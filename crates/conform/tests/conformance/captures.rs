//! The reference against captured kernels: every dispatch of unchanged captures.
//!
//! Disagreements that must be found: `disagree.rs`. Contents of a verdict: `verdict.rs`.

use crate::common::traces;
use crate::whole::{assert_conforms, run};
use conform::{Mode, Options};
use trace::capture::CaptureDir;

const DETERMINISTIC: [&str; 14] = [
    "dd01-defaults",
    "dd02-batch1",
    "dd03-expiry",
    "dd04-starved8",
    "dd05-prio-aging",
    "dd06-prio",
    "dd07-merges",
    "dd08-nofront",
    "dd09-waves",
    "dd10-bigsizes",
    "dd16-asyncdepth-stale",
    "dd21-k612-defaults",
    "dd22-k612-prio",
    "dd23-k612-merges",
];

const WITHOUT_SCHEDULER: [&str; 10] = [
    "no01-burst",
    "no02-waves",
    "m2-k612-none",
    "m2-mix7030-none",
    "m2-randread-none",
    "m2-seqmerge-none",
    "m4-sq4-none",
    "sd-fua-none",
    "sd-rand-none",
    "sd-trim-none",
];

#[test]
fn every_call_of_the_deterministic_captures_is_predicted() {
    for name in DETERMINISTIC {
        assert_conforms(name, Mode::Calls);
    }
}

#[test]
fn every_record_of_the_deterministic_captures_is_predicted() {
    for name in DETERMINISTIC {
        assert_conforms(name, Mode::Records);
    }
}

#[test]
fn every_record_without_scheduler_is_predicted() {
    for name in WITHOUT_SCHEDULER {
        assert_conforms(name, Mode::Records);
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn calls_on_several_cpus_are_predicted() {
    for name in [
        "m2-prio-mq-deadline",
        "m2-randread-mq-deadline",
        "m2-k612-irq1-mq-deadline",
        "m2-k612-mq-deadline",
        "m4-shared3-mq-deadline",
        "m4-sq4-mq-deadline",
        "sd-fsync-mq-deadline",
        "sd-fua-mq-deadline",
    ] {
        assert_conforms(name, Mode::Calls);
    }
}

/// Ctx queues, hctxs and tokens on several CPUs: from calls, and only from records.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_scheduler_with_several_locks_is_predicted_on_several_cpus() {
    for name in [
        "m2-randread-kyber",
        "m4-sq4-kyber",
        "sd-fsync-kyber",
        "sd-rand-kyber",
    ] {
        let verdict = run(name, Mode::Calls);
        assert_eq!(verdict.predicted, verdict.total, "{verdict}");
    }
    for name in [
        "m2-mix7030-kyber",
        "m2-randread-kyber",
        "m2-seqmerge-kyber",
        "m4-sq4-kyber",
        "sd-fsync-kyber",
        "sd-rand-kyber",
        "sd-trim-kyber",
    ] {
        let verdict = run(name, Mode::Records);
        assert_eq!(verdict.predicted, verdict.total, "{verdict}");
    }
    let name = "mp-service-time-kyber";
    let verdict = run(name, Mode::Records);
    assert_eq!(verdict.unjudged(), 0, "{verdict}");
    assert!(verdict.predicted >= 1489, "{verdict}");
    let options = Options {
        mode: Some(Mode::Calls),
        trace_device: Some("dm-0".to_owned()),
        rules: None,
        ..Options::default()
    };
    let verdict = conform::run(&CaptureDir::open(&traces(name)).unwrap(), &options).unwrap();
    assert_eq!((verdict.predicted, verdict.total), (600, 600), "{verdict}");
}

/// Of a scheduler that writes a log: captures whose order is only its decision, with their lines.
const LOG_LINES: [(&str, u64); 20] = [
    ("bf01-seq2", 3671),
    ("bf02-seq2-lowlat", 4060),
    ("bf03-noidle", 8835),
    ("bf04-weights", 26_928),
    ("bf05-budget", 6581),
    ("bf06-burst10", 4587),
    ("bf07-classes", 11_385),
    ("bf08-dump", 4998),
    ("bf09-nonrot", 5099),
    ("bf10-think", 2214),
    ("bf11-one", 1096),
    ("bf21-k612-seq2", 2758),
    ("bf31-coop-split", 7632),
    ("bf32-stable-delayed", 11_236),
    ("bf33-waker", 7252),
    ("bf34-async", 6672),
    ("bf35-groups", 8784),
    ("bf36-autobudget", 9831),
    ("bf37-largeburst", 10_621),
    ("bf38-k612-softrt", 10_060),
];

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn every_line_of_a_scheduler_that_writes_a_log_is_predicted() {
    for (name, lines) in LOG_LINES {
        let verdict = run(name, Mode::Log);
        assert!(verdict.total > 0 && verdict.conforms(), "{verdict}");
        let log = verdict.log.as_ref().expect("the blktrace files have it");
        assert_eq!(
            (log.total, log.predicted, log.alone),
            (lines, lines, 0),
            "{verdict}"
        );
    }
}

/// On several CPUs the tick at which a section reads its clock is not recorded: lines with a time
/// in ticks may differ, and so may the order of sections. At least so many lines are predicted, and
/// every dispatch.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn dispatches_of_a_scheduler_that_writes_a_log_are_predicted_on_several_cpus() {
    for (name, lines) in [
        ("m2-prio-bfq", 12_897),
        ("m2-randread-bfq", 11_058),
        ("m2-randwrite-d64-bfq", 14_944),
        ("m2-seqmerge-bfq", 1332),
        ("m4-shared4-bfq", 13_016),
        ("m4-sq4-bfq", 10_867),
        ("sd-fsync-bfq", 5484),
        ("sd-rand-bfq", 8338),
    ] {
        let verdict = run(name, Mode::Log);
        assert_eq!(verdict.predicted, verdict.total, "{verdict}");
        let log = verdict.log.as_ref().expect("the blktrace files have it");
        assert!(log.predicted >= lines, "{name}: {verdict}");
    }
}

/// Orders that records do not have are searched for. The others are races: at least so many are
/// predicted.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn records_on_several_cpus_are_predicted_but_for_races() {
    for (name, least) in [
        ("m2-k612-irq1-mq-deadline", 800),
        ("m2-k612-mq-deadline", 693),
        ("m2-mix7030-mq-deadline", 986),
        ("m2-prio-mq-deadline", 900),
        ("m2-randread-mq-deadline", 999),
        ("m2-seqmerge-mq-deadline", 125),
        ("m4-shared3-mq-deadline", 898),
        ("m4-sq4-mq-deadline", 969),
        ("mp-service-time-mq-deadline", 1484),
        ("sd-fsync-mq-deadline", 499),
        ("sd-fua-mq-deadline", 176),
        ("sd-trim-mq-deadline", 300),
    ] {
        let verdict = run(name, Mode::Records);
        assert!(verdict.predicted >= least, "{name}: {verdict}");
    }
}

/// An empty return is a dispatch, too: there is one in this capture and none of it has a D.
#[test]
fn empty_calls_count() {
    let calls = run("dd05-prio-aging", Mode::Calls);
    let records = run("dd05-prio-aging", Mode::Records);
    assert_eq!((calls.total, records.total), (130, 129));
}

/// A note reports that the records lack data to decide, and hides no other difference.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn what_records_cannot_decide_is_neither_right_nor_wrong() {
    let name = "mp-service-time-mq-deadline";
    let all = run(name, Mode::Records);
    assert_eq!((all.predicted, all.total), (1484, 1484), "{all}");
    // For a path without the device above, nothing gives its requests.
    let options = Options {
        mode: Some(Mode::Records),
        trace_device: Some("sda".to_owned()),
        ..Options::default()
    };
    let clones = conform::run(&CaptureDir::open(&traces(name)).unwrap(), &options).unwrap();
    assert_eq!((clones.diverged(), clones.predicted), (0, 0), "{clones}");
    let text = clones.to_string();
    assert!(text.contains(", clones of a stacked device"), "{text}");

    let races = run("m4-shared3-mq-deadline", Mode::Records);
    assert_eq!(races.predicted, 898, "{races}");
    assert!(races.unjudged() > 0, "{races}");
}
