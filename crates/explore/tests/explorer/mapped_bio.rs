//! A bio-based mapped device over the queues of two paths: whatever happens to the paths, each bio
//! ends once, none stays held, and all counters return to 0.
//!
//! Counts as in `exhaustive.rs`: `UPDATE_COUNTS=1` writes them.

use crate::clean::exhaustive;
use crate::counts::{compare, compare_part};
use crate::two_paths::{
    FIRST, Found, Row, SECOND, both_fail_one_comes_back, config, table, under_way,
};
use blkmq::dm::multipath::Message;
use blkmq::elevator::SchedulerKind;
use blkmq::request::Op;
use blkmq::rules::{DeviceMapper, EmptyRun, Rules};
use explore::{Config, Mutant, Paths};

/// Kernels that map bios differently.
fn kernels_of_bios() -> [Rules; 4] {
    let v4_20 = Rules {
        name: "v4.20",
        device_mapper: DeviceMapper::V4_20,
        empty_run: EmptyRun::Return,
        ..Rules::v4_12()
    };
    [Rules::v4_12(), v4_20, Rules::v6_1(), Rules::v6_12()]
}

/// The same without 4.12, which has ten times as many states after the end of a first bio.
fn later_kernels_of_bios() -> [Rules; 3] {
    let [_, later @ ..] = kernels_of_bios();
    later
}

/// Two paths of a bio-based device that holds bios when no path is left.
fn bios(paths: &mut Paths) {
    "0 8 multipath 3 queue_if_no_path queue_mode bio 0 1 1 queue-length 0 2 1 a 1 b 1"
        .clone_into(&mut paths.table);
}

/// Two paths of a bio-based device that fails bios when no path is left.
fn bios_not_held(paths: &mut Paths) {
    "0 8 multipath 2 queue_mode bio 0 1 1 queue-length 0 2 1 a 1 b 1".clone_into(&mut paths.table);
}

/// One bio of a bio-based device, submitted at any time after another one has ended: one path is
/// the current one.
const ONE_BIO: &[Row] = &[
    ("bio: both fail, held, one comes back", |_, p| {
        bios(p);
        p.messages = both_fail_one_comes_back();
    }),
    ("bio: an error, a path fails and comes back", |_, p| {
        bios(p);
        p.errors = 1;
        p.messages = vec![Message::Fail(FIRST), Message::Reinstate(FIRST)];
    }),
    ("bio: a driver may refuse, mq-deadline", |c, p| {
        bios(p);
        (c.scheduler, c.refusals) = (SchedulerKind::MqDeadline, 1);
        p.errors = 1;
    }),
];

/// Two bios; at the beginning both are with their devices.
const BIOS_IN_FLIGHT: &[Row] = &[
    ("bio: both fail_path, held, one comes back", |_, p| {
        bios(p);
        p.messages = both_fail_one_comes_back();
    }),
    ("bio: an error, the other fails and comes back", |_, p| {
        bios(p);
        p.errors = 1;
        p.messages = vec![Message::Fail(SECOND), Message::Reinstate(SECOND)];
    }),
    ("bio: an error, two that end requests", |c, p| {
        bios(p);
        c.completers = 2;
        p.errors = 1;
    }),
];

/// The device is suspended and resumed, each at any time.
const BIO_SUSPENDED: Row = ("bio: suspended, an error", |_, p| {
    bios_not_held(p);
    p.errors = 1;
    p.suspensions = vec![false];
});

/// The same without flush.
const BIO_NOFLUSH: Row = ("bio: no flush, both fail, one comes back", |_, p| {
    bios(p);
    p.suspensions = vec![true];
    p.messages = both_fail_one_comes_back();
});

/// One bio after another one that has ended.
fn behind_another(row: Row, rules: Rules) -> Config {
    let mut config = config(rules, 2, row);
    (config.prefilled, config.ended) = (1, 1);
    config
}

/// A write with a preflush becomes two bios below: the worker maps the data after the flush.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation")]
fn the_data_of_a_bio_follows_its_flush() {
    let row: Row = ("bio: a flush with data, an error", |c, p| {
        bios(p);
        p.errors = 1;
        (c.tasks[0].op, c.tasks[0].flush) = (Op::Write, true);
    });
    let lines = table(&[row], &later_kernels_of_bios(), under_way(1, 0));
    compare("mapped-bio-flush.txt", &lines);
    assert!(lines.lines().all(|line| line.contains("clean")), "{lines}");
}

#[test]
fn one_bio_ends_once_whatever_happens_to_its_paths() {
    let lines = table(ONE_BIO, &later_kernels_of_bios(), behind_another);
    compare("mapped-bio.txt", &lines);
    assert!(lines.lines().all(|line| line.contains("clean")), "{lines}");
}

#[test]
fn two_bios_in_flight_end_once_in_6_12() {
    let lines = table(BIOS_IN_FLIGHT, &[Rules::v6_12()], under_way(2, 2));
    compare_part("mapped-bios.txt", &lines);
}

/// 4.12 reports the end of a held bio to the path that the bio has by then: another one, if the
/// worker was quick.
#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn two_bios_in_flight_end_once() {
    let lines = table(BIOS_IN_FLIGHT, &kernels_of_bios(), under_way(2, 2));
    compare("mapped-bios.txt", &lines);
    let (wrong, right): (Vec<&str>, Vec<&str>) =
        (lines.lines()).partition(|line| line.contains("an error") && line.contains("v4.12"));
    assert!(right.iter().all(|line| line.contains("clean")), "{lines}");
    assert!(wrong.iter().all(|line| line.contains("broken")), "{lines}");
}

#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn a_suspended_device_maps_no_bio() {
    let lines = table(&[BIO_SUSPENDED], &later_kernels_of_bios(), behind_another)
        + &table(&[BIO_NOFLUSH], &[Rules::v6_1()], behind_another);
    compare("mapped-bio-suspended.txt", &lines);
    assert!(lines.lines().all(|line| line.contains("clean")), "{lines}");
}

/// Until a first bio has got a path, bios wait for the initialisation of a group even without a
/// handler. A bio that finds no path then is held, and no worker is queued: if a path came back
/// just before, the bio waits until the worker is queued for another reason. After the first path
/// this cannot happen.
#[test]
fn the_first_bio_of_a_device_may_be_left_held() {
    let row: Row = ("bio: the first, both fail, one comes back", |_, p| {
        bios(p);
        p.messages = both_fail_one_comes_back();
    });
    let lines = table(&[row], &kernels_of_bios(), under_way(1, 0));
    compare("mapped-bio-first.txt", &lines);
    let words = ["stall", "clean", "stall", "stall"];
    for (line, word) in lines.lines().zip(words) {
        assert!(line.contains(word), "{line}");
    }
}

/// A bio that failed on a path, was held, and gets no other path ends in the worker. Its end is
/// reported to the selector of its last path: once too often, in every kernel.
#[test]
fn a_held_bio_that_gets_no_path_is_taken_off_its_path_twice() {
    let row: Row = ("bio: an error, then both paths fail", |_, p| {
        bios_not_held(p);
        p.errors = 1;
        p.messages = vec![Message::Fail(FIRST), Message::Fail(SECOND)];
    });
    let lines = table(&[row], &later_kernels_of_bios(), behind_another);
    compare("mapped-bio-twice.txt", &lines);
    assert!(lines.lines().all(|line| line.contains("broken")), "{lines}");
    let report = exhaustive(&behind_another(row, Rules::v6_12()));
    let text = report.verdict.to_string();
    assert!(
        text.contains("a selector counts what is not in flight"),
        "{text}"
    );
}

/// Mutants that must be found in a bio-based device.
#[test]
fn defects_of_a_bio_based_device_are_found() {
    let mutants: &[Found] = &[
        (Mutant::NoRequeueKick, Rules::v6_12(), ONE_BIO[1], "stall"),
        (Mutant::NoBringBack, Rules::v4_12(), ONE_BIO[0], "panic"),
        (Mutant::CountedTwice, Rules::v6_12(), ONE_BIO[1], "broken"),
        (Mutant::LostBio, Rules::v6_12(), ONE_BIO[1], "broken"),
        (Mutant::NotBlocked, Rules::v6_12(), BIO_SUSPENDED, "broken"),
        (Mutant::NoGrace, Rules::v6_12(), BIO_SUSPENDED, "broken"),
        (Mutant::NoDrain, Rules::v6_12(), BIO_SUSPENDED, "broken"),
        (Mutant::NoResumeRun, Rules::v6_12(), BIO_SUSPENDED, "stall"),
        (Mutant::NoWake, Rules::v6_12(), BIO_SUSPENDED, "broken"),
    ];
    for &(mutant, rules, row, word) in mutants {
        let mut config = behind_another(row, rules);
        config.mutant = Some(mutant);
        let report = exhaustive(&config);
        assert_eq!(report.verdict.word(), word, "{mutant:?}: {report}");
    }
}
