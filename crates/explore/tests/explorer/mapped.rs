//! A mapped queue over the queues of two paths: whatever happens to the paths, each bio ends once,
//! with success or with the failure that the policy prescribes, and all counters return to 0.
//!
//! Counts as in `exhaustive.rs`: `UPDATE_COUNTS=1` writes them.

use crate::clean::exhaustive;
use crate::counts::{compare, compare_part};
use crate::two_paths::{
    FIRST, Found, Row, SECOND, both_fail_one_comes_back, config, table, under_way,
};
use blkmq::dm::multipath::{InitResult, Message};
use blkmq::elevator::SchedulerKind;
use blkmq::request::Op;
use blkmq::rules::{DeviceMapper, EmptyRun, Rules, StoppedIssue};
use explore::{Config, Mutant, Paths, Task};

/// Two paths in one group; requests are held when no path is left.
const HELD: &str = "0 8 multipath 1 queue_if_no_path 0 1 1 queue-length 0 2 1 a 1 b 1";

/// A group for each path, which a hardware handler initialises.
const HANDLED: &str = "0 8 multipath 1 queue_if_no_path 1 alua \
                       2 1 queue-length 0 1 1 a 1 queue-length 0 1 1 b 1";

const ONE_PATH: &str = "0 8 multipath 0 0 1 1 queue-length 0 1 1 a 1";

fn kernels() -> [Rules; 5] {
    [
        Rules::v4_5(),
        Rules::v4_6(),
        Rules::v4_12(),
        Rules::v6_1(),
        Rules::v6_12(),
    ]
}

fn held(paths: &mut Paths) {
    HELD.clone_into(&mut paths.table);
}

fn handled(paths: &mut Paths) {
    HANDLED.clone_into(&mut paths.table);
}

/// Explored for each kernel, one request.
const ONE: &[Row] = &[
    ("nothing fails", |_, _| {}),
    ("both paths fail their I/O", |_, p| p.errors = 2),
    ("a path fails and comes back", |_, p| {
        p.messages = vec![Message::Fail(FIRST), Message::Reinstate(FIRST)];
    }),
    ("the driver of a path may refuse", |c, _| c.refusals = 1),
    ("an error, two that end requests", |c, p| {
        c.completers = 2;
        p.errors = 1;
    }),
    ("an error, mq-deadline", |c, p| {
        c.scheduler = SchedulerKind::MqDeadline;
        p.errors = 1;
    }),
];

/// Only in optimised builds. If no path comes back nothing ends, as 4.12 has no timer: a loop.
const ONE_LARGE: &[Row] = &[
    ("both fail, held, no path ever", |_, p| {
        held(p);
        p.messages = vec![Message::Fail(FIRST), Message::Fail(SECOND)];
    }),
    ("both fail, held, one comes back", |_, p| {
        held(p);
        p.messages = both_fail_one_comes_back();
    }),
    ("both fail, held, fail_if_no_path", |_, p| {
        held(p);
        p.messages = vec![
            Message::Fail(FIRST),
            Message::Fail(SECOND),
            Message::QueueIfNoPath(false),
        ];
    }),
    ("both fail, held, the timer expires", |_, p| {
        held(p);
        p.no_path_timer = true;
        p.messages = vec![Message::Fail(FIRST), Message::Fail(SECOND)];
    }),
    ("a group is initialised", |_, p| handled(p)),
];

/// A preflush, the data and a postflush, each a request of a path: the bio ends with the last.
const FLUSHED: &[Row] = &[
    ("a FUA write after a flush", |c, _| {
        (c.tasks[0].op, c.tasks[0].flush) = (Op::Write, true);
    }),
    ("the same, an error", |c, p| {
        p.errors = 1;
        (c.tasks[0].op, c.tasks[0].flush) = (Op::Write, true);
    }),
    ("the same, mq-deadline", |c, _| {
        (c.scheduler, c.nr_requests) = (SchedulerKind::MqDeadline, 4);
        (c.tasks[0].op, c.tasks[0].flush) = (Op::Write, true);
    }),
];

/// One request that waits for its group at the beginning.
const UNREADY: &[Row] = &[
    ("its initialisation ends well", |_, p| handled(p)),
    ("it fails", |_, p| {
        handled(p);
        p.inits = vec![InitResult::Failed];
    }),
    ("fail_path meanwhile", |_, p| {
        handled(p);
        p.messages = vec![Message::Fail(FIRST)];
    }),
];

/// Two requests; at the beginning both are with their devices.
const IN_FLIGHT: &[Row] = &[
    ("an error", |_, p| p.errors = 1),
    ("both fail", |_, p| p.errors = 2),
    ("an error, two that end requests", |c, p| {
        c.completers = 2;
        p.errors = 1;
    }),
    ("an error, a softirq of its own", |c, p| {
        (c.cpus, c.tasks[1].cpu) = (2, 1);
        p.errors = 1;
    }),
    ("an error, mq-deadline", |c, p| {
        (c.scheduler, c.nr_requests) = (SchedulerKind::MqDeadline, 4);
        p.errors = 1;
    }),
    ("fail_path, reinstate_path", |_, p| {
        p.messages = vec![Message::Fail(FIRST), Message::Reinstate(FIRST)];
    }),
    ("an error, one tag below", |_, p| {
        p.errors = 1;
        p.tags = 1;
    }),
    ("both fail_path, held, one comes back", |_, p| {
        held(p);
        p.messages = both_fail_one_comes_back();
    }),
    // A failed request comes back and is mapped again: by then no path may be left.
    ("an error, the other path fails and comes back", |_, p| {
        held(p);
        p.errors = 1;
        p.messages = vec![Message::Fail(SECOND), Message::Reinstate(SECOND)];
    }),
    ("an error, both fail_path, held, fail_if_no_path", |_, p| {
        held(p);
        p.errors = 1;
        p.messages = vec![
            Message::Fail(FIRST),
            Message::Fail(SECOND),
            Message::QueueIfNoPath(false),
        ];
    }),
];

/// The device is suspended and resumed, each at any time: one request.
const SUSPENDED: Row = ("suspended", |_, p| p.suspensions = vec![false]);

/// The same with a request that waits for its group at the beginning.
const SUSPENDED_UNREADY: Row = ("suspended, its group is initialised", |_, p| {
    handled(p);
    p.suspensions = vec![false];
});

/// The same with two requests that are with their devices at the beginning.
const SUSPENDED_IN_FLIGHT: &[Row] = &[
    ("suspended, an error", |_, p| {
        p.suspensions = vec![false];
        p.errors = 1;
    }),
    // Both are with their devices and end well; the suspension must wait for them.
    ("no flush, both fail_path, one comes back", |_, p| {
        held(p);
        p.suspensions = vec![true];
        p.messages = both_fail_one_comes_back();
    }),
    ("flush, both fail_path, one comes back", |_, p| {
        held(p);
        p.suspensions = vec![false];
        p.messages = both_fail_one_comes_back();
    }),
];

/// Two requests, each at any time.
const TWO: &[Row] = &[("nothing fails", |_, _| {})];

const TWO_LARGE: &[Row] = &[
    ("fail_path, reinstate_path", |_, p| {
        p.messages = vec![Message::Fail(FIRST), Message::Reinstate(FIRST)];
    }),
    ("an error", |_, p| p.errors = 1),
];

#[test]
fn one_request_ends_once_whatever_happens_to_its_paths() {
    compare("mapped-one.txt", &table(ONE, &kernels(), under_way(1, 0)));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation")]
fn one_request_is_held_and_comes_back() {
    let kernels = [Rules::v4_12(), Rules::v6_12()];
    compare(
        "mapped-one-large.txt",
        &table(ONE_LARGE, &kernels, under_way(1, 0)),
    );
}

#[test]
fn the_bio_of_a_flush_sequence_ends_with_its_last_flush() {
    let lines = table(FLUSHED, &kernels(), under_way(1, 0));
    compare("mapped-flush.txt", &lines);
    assert!(lines.lines().all(|line| line.contains("clean")), "{lines}");
}

#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "ten seconds or more: cargo xtask ci --full"
)]
fn two_requests_in_flight_end_once() {
    let kernels = [Rules::v6_12()];
    compare_part(
        "mapped-in-flight.txt",
        &table(IN_FLIGHT, &kernels, under_way(2, 2)),
    );
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn two_requests_in_flight_end_once_whatever_happens_to_their_paths() {
    compare(
        "mapped-in-flight.txt",
        &table(IN_FLIGHT, &kernels(), under_way(2, 2)),
    );
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation")]
fn a_request_waits_for_its_group_whatever_becomes_of_that() {
    let kernels = [Rules::v4_12(), Rules::v6_12()];
    compare(
        "mapped-unready.txt",
        &table(UNREADY, &kernels, under_way(1, 1)),
    );
}

/// From 4.12 on nothing is in flight while the device is suspended, and everything ends after the
/// resume. Up to 4.6 a suspension does not wait for runs that are under way, and direct issue does
/// not check whether the hctx is stopped.
#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn a_suspended_device_has_nothing_in_flight() {
    let lines = table(SUSPENDED_IN_FLIGHT, &kernels(), under_way(2, 2));
    compare("mapped-suspended.txt", &lines);
    let (early, later): (Vec<&str>, Vec<&str>) = lines
        .lines()
        .partition(|line| line.contains("v4.5") || line.contains("v4.6"));
    assert!(later.iter().all(|line| line.contains("clean")), "{lines}");
    let broken = early.iter().filter(|line| line.contains("broken"));
    assert_eq!(broken.count(), 2, "{lines}");
}

/// A direct issue that finds the queue stopped or quiesced leaves its request in a software queue
/// after the resume has found nothing to run. v6.12.117 runs the queue then.
#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "ten seconds or more: cargo xtask ci --full"
)]
fn a_request_may_be_left_where_nobody_runs_it_up_to_6_1() {
    let mended = Rules {
        stopped_issue: StoppedIssue::InsertAndRun,
        ..Rules::v6_1()
    };
    let kernels = kernels().into_iter().chain([mended]);
    let kernels: Vec<Rules> = kernels.collect();
    let lines = table(&[SUSPENDED], &kernels, under_way(1, 0));
    compare("mapped-left.txt", &lines);
    let words = ["broken", "broken", "clean", "stall", "clean", "clean"];
    for (line, word) in lines.lines().zip(words) {
        assert!(line.contains(word), "{line}");
    }
    let left = exhaustive(&config(Rules::v6_1(), 1, SUSPENDED));
    let verdict = "stall: 0 of 1 bios have ended, request 0 in Ctx";
    assert_eq!(left.verdict.to_string(), verdict, "{left}");
}

#[test]
fn two_requests_end_once() {
    compare("mapped-two.txt", &table(TWO, &kernels(), under_way(2, 0)));
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn a_suspended_device_has_nothing_in_flight_while_its_group_is_initialised() {
    let kernels = [Rules::v4_12(), Rules::v6_12()];
    let lines = table(&[SUSPENDED_UNREADY], &kernels, under_way(1, 1));
    compare("mapped-suspended-unready.txt", &lines);
    assert!(lines.lines().all(|line| line.contains("clean")), "{lines}");
}

#[test]
#[ignore = "gigabytes and minutes: cargo xtask ci --full"]
fn two_requests_end_once_whatever_happens_to_their_paths() {
    for &row in TWO_LARGE {
        for rules in [Rules::v4_6(), Rules::v4_12(), Rules::v6_12()] {
            let report = exhaustive(&config(rules, 2, row));
            assert_eq!(report.verdict.word(), "clean", "{}: {report}", rules.name);
        }
    }
}

/// Up to 4.20 a selector counts a clone for good that was not issued after all: because no memory
/// was left for its bios, or because the driver of the path refused it. Later kernels undo the
/// count.
#[test]
fn the_count_of_a_clone_that_was_given_up_leaks_up_to_4_20() {
    let v4_20 = Rules {
        name: "v4.20",
        device_mapper: DeviceMapper::V4_20,
        empty_run: EmptyRun::Return,
        ..Rules::v4_12()
    };
    let refused: Row = ("the driver of a path refuses", |c, _| c.refusals = 1);
    let (leaks, later) = (&[v4_20][..], &[Rules::v6_1(), Rules::v6_12()][..]);
    let mut lines =
        table(&[refused], leaks, under_way(1, 0)) + &table(&[refused], later, under_way(1, 0));
    let memory: Row = ("no memory for the second clone", |_, p| {
        ONE_PATH.clone_into(&mut p.table);
        p.bios = 1;
    });
    lines += &table(&[memory], &[Rules::v4_6(), v4_20], under_way(2, 1));
    compare("mapped-leak.txt", &lines);
    let later = lines.lines().filter(|line| line.contains("v6."));
    assert_eq!(later.clone().count(), 2);
    assert!(later.clone().all(|line| line.contains("clean")), "{lines}");
    let earlier = lines.lines().filter(|line| line.contains("v4."));
    assert!(
        earlier.clone().all(|line| line.contains("broken")),
        "{lines}"
    );
}

/// A driver that has a request of the queue promises to run the queue when that request ends; the
/// promise does not extend to the queue above.
#[test]
fn what_the_driver_of_a_path_promises_is_no_promise_above() {
    let row: Row = ("the driver of a path may refuse", |c, p| {
        ONE_PATH.clone_into(&mut p.table);
        (c.refusals, p.tags) = (1, 2);
    });
    let lines = table(&[row], &kernels(), under_way(2, 1));
    compare("mapped-promise.txt", &lines);
    assert!(lines.lines().all(|line| line.contains("clean")), "{lines}");
}

/// Two requests for one tag, and no run of a queue after a delay.
fn one_tag(config: &mut Config, paths: &mut Paths) {
    ONE_PATH.clone_into(&mut paths.table);
    paths.tags = 1;
    config.tasks = vec![Task::read(0); 2];
    config.delayed_runs = false;
}

/// Rules of a device that counts requests in flight, over queues of today.
const COUNTED: Rules = Rules {
    device_mapper: DeviceMapper::V4_20,
    ..Rules::v6_12()
};

const MUTANTS: &[Found] = &[
    (
        Mutant::NoRequeueKick,
        Rules::v6_12(),
        ("an error", |_, p| p.errors = 1),
        "stall",
    ),
    (
        Mutant::LostDelay,
        Rules::v4_12(),
        ("two requests, one path of one tag", one_tag),
        "stall",
    ),
    (
        Mutant::NoRestartRun,
        Rules::v6_12(),
        ("two requests, one path of one tag", one_tag),
        "stall",
    ),
    (
        Mutant::CountedTwice,
        Rules::v6_12(),
        ("nothing fails", |_, _| {}),
        "broken",
    ),
    (
        Mutant::LeakedClone,
        Rules::v6_12(),
        ("nothing fails", |_, _| {}),
        "broken",
    ),
    (
        Mutant::FreedTwice,
        Rules::v6_12(),
        ("nothing fails", |_, _| {}),
        "panic",
    ),
    (
        Mutant::CompletedTwice,
        Rules::v6_12(),
        ("nothing fails", |_, _| {}),
        "broken",
    ),
    (
        Mutant::NoFailover,
        Rules::v6_12(),
        ("an error", |_, p| p.errors = 1),
        "panic",
    ),
    (
        Mutant::NoBringBack,
        Rules::v6_12(),
        ("both fail, held, one comes back", |_, p| {
            held(p);
            p.messages = both_fail_one_comes_back();
        }),
        "panic",
    ),
    (
        Mutant::NoBringBack,
        Rules::v6_12(),
        ("a group is initialised", |_, p| handled(p)),
        "panic",
    ),
    (
        Mutant::LostActivation,
        Rules::v6_12(),
        ("a group is initialised", |_, p| handled(p)),
        "loop",
    ),
    (Mutant::NoGrace, Rules::v6_12(), SUSPENDED, "broken"),
    (Mutant::NoQuiesce, Rules::v6_12(), SUSPENDED, "broken"),
    (Mutant::NoTagsLook, Rules::v6_12(), SUSPENDED, "broken"),
    (Mutant::NoDrain, COUNTED, SUSPENDED, "broken"),
    (Mutant::NoResumeRun, Rules::v6_12(), SUSPENDED, "stall"),
    (Mutant::EarlyBioEnd, Rules::v4_5(), FLUSHED[0], "broken"),
    (Mutant::EarlyBioEnd, Rules::v6_12(), FLUSHED[0], "broken"),
];

#[test]
fn every_mutant_is_found() {
    let mut found = String::new();
    for &(mutant, rules, row, verdict) in MUTANTS {
        let mut config = config(rules, 1, row);
        config.mutant = Some(mutant);
        let report = exhaustive(&config);
        // Assertions in the paths exist only in a debug build.
        let said = match mutant {
            Mutant::FreedTwice => report.verdict.word().to_owned(),
            _ => report.verdict.to_string(),
        };
        found += &format!(
            "{:<16}{:<36}{:>3} steps, {}\n",
            format!("{mutant:?}"),
            row.0,
            report.schedule.len(),
            said
        );
        assert_eq!(report.verdict.word(), verdict, "{mutant:?}: {report}");
    }
    compare("mapped-mutants.txt", &found);
}

/// In 4.12 a busy target causes no later run. The run at the end of an initialisation may come
/// before the put-back of the request that found the initialisation under way; that request then
/// waits for the next run from elsewhere.
#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn a_request_that_found_its_target_busy_may_be_left_in_4_12() {
    let row: Row = ("a group is initialised, fail_path", |_, p| {
        handled(p);
        p.messages = vec![Message::Fail(FIRST)];
    });
    let mut config = config(Rules::v4_12(), 1, row);
    config.one_worker = false;
    let report = exhaustive(&config);
    let left = "stall: 0 of 1 bios have ended, request 0 in Dispatch, RESTART of hctx 0 set";
    assert_eq!(report.verdict.to_string(), left, "{report}");
}
