//! A scheduler with tokens: dispatches, and its own events.

use crate::change::changed;
use crate::common::run_in;
use crate::whole::{assert_conforms, run};
use conform::Mode;

/// Tokens, histograms and depths: captures whose order is only the scheduler's decision, each with
/// as many events of its timer as its trace has.
const TOKENS: [(&str, u64); 9] = [
    ("ky01-burst", 0),
    ("ky02-waves", 0),
    ("ky03-tightlat", 4),
    ("ky04-writeheavy", 5),
    ("ky07-throttle-writes", 11),
    ("ky08-throttle-reads", 12),
    ("ky21-k612-burst", 0),
    ("ky31-throttled-adjust", 5),
    ("ky32-k612-throttled", 2),
];

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn every_call_and_every_event_of_a_scheduler_with_tokens_is_predicted() {
    for (name, scheduler_events) in TOKENS {
        let verdict = run(name, Mode::Calls);
        assert!(verdict.total > 0 && verdict.conforms(), "{verdict}");
        let seen = verdict
            .scheduler_events
            .as_ref()
            .expect("ftrace.txt has them");
        assert_eq!(
            (seen.total, seen.predicted, seen.alone),
            (scheduler_events, scheduler_events, 0)
        );
        // A request that ends in a call may free a token before an attempt or after it: once in
        // ky31.
        let undecided = u64::from(name == "ky31-throttled-adjust");
        let counts = (seen.throttled_undecided, seen.throttled_model_only);
        assert_eq!(counts, (undecided, 0), "{verdict}");
        assert_eq!(
            seen.throttled_alike + undecided,
            seen.throttled,
            "{verdict}"
        );
        let known = |note: &String| note.contains("no probe at the entry of dispatch calls");
        assert!(verdict.notes.iter().all(known), "{verdict}");
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn every_record_of_a_scheduler_with_tokens_is_predicted() {
    for (name, _) in TOKENS {
        assert_conforms(name, Mode::Records);
    }
}

/// Events of timers on several CPUs, each capture with as many as its trace has. A timer's function
/// runs after its tick: in sd-fsync a request that ends meanwhile decides when the next one runs.
#[test]
fn every_event_of_a_timer_is_predicted_on_several_cpus() {
    for (name, scheduler_events) in [
        ("m2-randread-kyber", 2),
        ("m4-sq4-kyber", 2),
        ("mp-service-time-kyber", 0),
        ("sd-fsync-kyber", 4),
        ("sd-rand-kyber", 0),
    ] {
        let verdict = run(name, Mode::Calls);
        let seen = verdict
            .scheduler_events
            .as_ref()
            .expect("ftrace.txt has them");
        assert_eq!(
            (seen.total, seen.predicted, seen.alone),
            (scheduler_events, scheduler_events, 0)
        );
        assert_eq!(
            (seen.throttled, seen.throttled_model_only),
            (0, 0),
            "{verdict}"
        );
    }
}

/// Failed attempts to get a token are compared where nothing ended in their call: an extra one of
/// the kernel, and all of the kernel's in a group with fewer.
#[test]
fn a_look_for_a_token_that_differs_is_a_divergence() {
    let more = changed("ky32-k612-throttled", "ftrace.txt", |text| {
        let at = text.find("kyber_throttled").expect("it has some");
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = at + text[at..].find('\n').expect("a line") + 1;
        [&text[..end], &text[line..]].concat()
    });
    let verdict = run_in(more.path(), Mode::Calls, None).unwrap();
    let scheduler_events = verdict
        .scheduler_events
        .as_ref()
        .expect("ftrace.txt has them");
    assert_eq!(
        (scheduler_events.throttled, scheduler_events.throttled_alike),
        (168, 167)
    );
    assert!(
        scheduler_events.first_divergence.is_some() && !verdict.conforms(),
        "{verdict}"
    );

    let fewer = changed("ky32-k612-throttled", "ftrace.txt", |text| {
        let line = |line: &&str| !(line.contains("kyber_throttled") && line.contains("DISCARD"));
        let kept = text.lines().filter(line).map(|line| format!("{line}\n"));
        kept.collect()
    });
    let verdict = run_in(fewer.path(), Mode::Calls, None).unwrap();
    let scheduler_events = verdict
        .scheduler_events
        .as_ref()
        .expect("ftrace.txt has them");
    assert!(scheduler_events.throttled_model_only > 0, "{verdict}");
    // One of the 73 is in a call in which a request ended.
    let counts = (
        scheduler_events.throttled,
        scheduler_events.throttled_model_only,
    );
    assert_eq!(counts, (167 - 73, 72), "{verdict}");
    assert!(!verdict.conforms(), "{verdict}");
}

/// Without any such event they may not have been traced: a note, and no divergence.
#[test]
fn looks_for_a_token_that_were_not_traced_are_named() {
    let none = changed("ky32-k612-throttled", "ftrace.txt", |text| {
        let line = |line: &&str| !line.contains("kyber_throttled");
        let kept = text.lines().filter(line).map(|line| format!("{line}\n"));
        kept.collect()
    });
    let verdict = run_in(none.path(), Mode::Calls, None).unwrap();
    assert!(verdict.conforms(), "{verdict}");
    let scheduler_events = |note: &String| note.contains("finds no token 166 times");
    assert!(verdict.notes.iter().any(scheduler_events), "{verdict}");
}

/// Events of the kernel are compared: another number in one event is found, with both queues.
#[test]
fn an_event_that_says_something_else_is_a_divergence() {
    let other = changed("ky07-throttle-writes", "ftrace.txt", |text| {
        text.replacen(
            "kyber_adjust: 252,0 WRITE 32",
            "kyber_adjust: 252,0 WRITE 64",
            1,
        )
    });
    let verdict = run_in(other.path(), Mode::Calls, None).unwrap();
    let scheduler_events = verdict
        .scheduler_events
        .as_ref()
        .expect("ftrace.txt has them");
    assert!(!verdict.conforms(), "{verdict}");
    let first = scheduler_events
        .first_divergence
        .as_ref()
        .expect("one differs");
    assert_eq!(
        (&*first.kernel, &*first.model),
        ("WRITE depth 64", "WRITE depth 32")
    );
    assert!(first.text.contains("cur_domain"), "{}", first.text);
}
