//! A bio-based device over queues of blk-mq: bios that are flushed, held, deferred, or given up.

use super::bench::{Bench, TOP, read};
use crate::call::BioWork;
use crate::dm::PathId;
use crate::dm::multipath::Message;
use crate::drive::Stack;
use crate::elevator::SchedulerKind;
use crate::path::{BioWorkPath, Frame, SuspendPath, Suspends};
use crate::queue::{EndRuns, QueueConfig, SingleSettings};
use crate::request::{Bio, Op, OpFlags, Sectors, Status};
use crate::rules::{DeviceMapper, EmptyRun, Rules};
use crate::waiter::WaiterId;

/// Two paths; without them bios are held.
const HOLDS: &str =
    "0 8 multipath 3 queue_if_no_path queue_mode bio 0 1 1 queue-length 0 2 1 a 1 b 1";
/// The same; without paths bios fail.
const FAILS: &str = "0 8 multipath 2 queue_mode bio 0 1 1 queue-length 0 2 1 a 1 b 1";

/// Kernels that map bios differently.
fn kernels() -> [Rules; 3] {
    let v4_20 = Rules {
        name: "v4.20",
        device_mapper: DeviceMapper::V4_20,
        empty_run: EmptyRun::Return,
        ..Rules::v4_12()
    };
    [Rules::v4_12(), v4_20, Rules::v6_1()]
}

/// After a first bio, so that a path is the current one; only the device above needs flushes.
fn over(rules: Rules, line: &str) -> Bench {
    over_paths(rules, line, |_| {})
}

/// The same, with a change of the paths' queues.
fn over_paths(rules: Rules, line: &str, change: impl Fn(&mut QueueConfig)) -> Bench {
    let mut bench = Bench::over(rules, line, |queue, config| {
        config.settings.limits.write_cache = queue == TOP;
        if queue != TOP {
            change(config);
        }
    });
    bench.send(read(0));
    if bench.on.in_device.is_empty() {
        // Up to 5.10 the first one is held until something calls the worker.
        bench.message(Message::QueueIfNoPath(false));
        bench.work();
        bench.message(Message::QueueIfNoPath(line == HOLDS));
    }
    bench.end_below(Status::Ok);
    bench.on.ended.clear();
    bench.on.work.clear();
    bench
}

/// The path that has the first bio.
fn path_of_first(bench: &Bench) -> PathId {
    PathId(bench.on.in_device[0].0.0 - 1)
}

fn no_path(bench: &mut Bench) {
    for path in [0, 1].map(PathId) {
        bench.message(Message::Fail(path));
    }
}

fn suspends() -> Stack {
    let what = Suspends::Begin { noflush: true };
    Stack::of(Frame::Suspend(SuspendPath::new(TOP, what)))
}

fn flush(sectors: u32) -> Bio {
    Bio {
        op: Op::Write,
        sectors: Sectors(sectors),
        segments: (sectors > 0).into(),
        flags: OpFlags {
            preflush: true,
            ..OpFlags::default()
        },
        ..read(0)
    }
}

/// Without a volatile write cache above nothing comes to a path.
#[test]
fn a_flush_ends_at_once_without_write_cache() {
    for rules in kernels() {
        let mut bench = Bench::over(rules, HOLDS, |_, _| {});
        let mut stack = bench.begin(flush(0));
        assert_eq!(bench.go_on(&mut stack), "", "{}", rules.name);
        assert_eq!(bench.on.ended, [Status::Ok], "{}", rules.name);
    }
}

/// The queue of a path, here of the single-queue kind, has no cache: the clone of a flush ends
/// there, and with it the flush.
#[test]
fn the_clone_of_a_flush_ends_at_once_without_write_cache() {
    for rules in kernels() {
        let mut bench = over_paths(rules, HOLDS, |config| {
            config.settings.single = Some(SingleSettings {
                depth: 4,
                end_runs: EndRuns::Always,
            });
            config.settings.scheduler = SchedulerKind::Noop;
            config.elevator = SchedulerKind::Noop.defaults(250, 4);
        });
        let mut stack = bench.begin(flush(0));
        assert_eq!(bench.go_on(&mut stack), "Q a C", "{}", rules.name);
        assert_eq!(bench.on.ended, [Status::Ok], "{}", rules.name);
    }
}

/// The flush is a bio of its own, and the data waits for kdmflush.
#[test]
fn data_follows_its_flush() {
    for rules in kernels() {
        let mut bench = over(rules, HOLDS);
        bench.send(flush(8));
        assert!(
            bench.on.ended.is_empty(),
            "{}: its data follows",
            rules.name
        );
        assert_eq!(bench.on.work, [BioWork::Deferred], "{}", rules.name);
        let letters = bench.work();
        assert!(letters.starts_with("a q g"), "{}: {letters}", rules.name);
        bench.end_below(Status::Ok);
        assert_eq!(bench.on.ended, [Status::Ok], "{}", rules.name);
    }
}

/// The state of the bio that had the slot before is none of its own.
#[test]
fn a_bio_that_gets_no_path_was_never_counted() {
    for rules in kernels() {
        let mut bench = over(rules, HOLDS);
        no_path(&mut bench);
        assert_eq!(bench.send(read(80)), "Q ", "{}: it is held", rules.name);
        bench.on.work.clear();
        bench.message(Message::QueueIfNoPath(false));
        assert_eq!(bench.on.work, [BioWork::Held], "{}", rules.name);
        assert_eq!(bench.work(), "C ", "{}", rules.name);
        assert_eq!(bench.on.ended, [Status::IoError]);
        let top = bench.mq.queue(TOP).own_mapped();
        let empty = top.with_state(|state| state.target.accounts_are_empty());
        assert!(empty, "{}: {}", rules.name, bench.counts(HOLDS));
    }
}

/// Up to 4.19 the end of a bio that is held reads its path after the worker may have mapped it
/// again: the count of that path is decreased, and that of the path that failed stays.
#[test]
fn a_held_bio_may_be_counted_out_of_its_next_path() {
    for rules in kernels() {
        let mut bench = over(rules, HOLDS);
        bench.send(read(0));
        let failed = path_of_first(&bench);
        let mut end = bench.ends(Status::Transport);
        bench.go_to(&mut end, "bio-end.account");
        bench.work();
        assert_ne!(path_of_first(&bench), failed, "{}", rules.name);
        bench.go_on(&mut end);
        let line = bench.counts(HOLDS);
        // DEVICE STATE FAILURES COUNT
        let words: Vec<&str> = line.split(' ').collect();
        let count = |path: usize| {
            let place = words.iter().position(|&word| word == ["a", "b"][path]);
            words[place.expect("a path") + 3]
        };
        let counts = [count(failed.index()), count(1 - failed.index())];
        let expected = match rules.name {
            "v4.12" => ["1", "0"],
            _ => ["0", "1"],
        };
        assert_eq!(counts, expected, "{}: {line}", rules.name);
    }
}

/// multipath_end_io_bio() of 6.1: the path fails, whether another one is left, the bio is held.
#[test]
fn labels_that_share_the_line_of_the_target_at_the_end_of_a_bio() {
    let mut bench = over(Rules::v6_1(), HOLDS);
    let mut missed = String::new();
    for _ in 0..2 {
        bench.send(read(0));
        let path = path_of_first(&bench);
        let mut end = bench.ends(Status::Transport);
        bench.missed();
        bench.on.contended = Some(|mapped| &mapped.fields);
        bench.go_on(&mut end);
        missed = bench.missed();
        bench.on.contended = None;
        bench.message(Message::Reinstate(path));
        bench.work();
        bench.end_below(Status::Ok);
    }
    assert_eq!(missed, "bio-end.fail bio-end.valid bio-end.hold");
}

/// Without a path, while the device is about to be suspended without flush: the bio waits for the
/// resume, and the suspension waits no longer for the bio. In 4.12 it is held and waited for.
#[test]
fn the_last_deferred_bio_wakes_the_suspension() {
    for rules in kernels().into_iter().skip(1) {
        let mut bench = over(rules, HOLDS);
        bench.send(read(0));
        let other = PathId(1 - path_of_first(&bench).0);
        bench.message(Message::Fail(other));
        let mut suspension = suspends();
        bench.go_on(&mut suspension);
        assert!(bench.on.parked, "{}", rules.name);
        bench.end_below(Status::Transport);
        assert!(bench.on.ended.is_empty(), "{}", rules.name);
        assert_eq!(bench.on.woken, [WaiterId(0)], "{}", rules.name);
        bench.go_on(&mut suspension);
        assert!(!bench.on.parked, "{}", rules.name);
    }
}

/// must_push_back() of 4.12 is the flag queue_if_no_path, which a message may set after it was
/// read: a bio that is then not held fails, unless the device is about to be suspended.
#[test]
fn a_bio_that_need_not_be_deferred_fails() {
    let mut bench = over(Rules::v4_12(), FAILS);
    no_path(&mut bench);
    let mut stack = bench.begin(read(0));
    let asks = |stack: &Stack| match stack.last() {
        Some(Frame::MapBio(map)) => map.finds_no_path().is_some(),
        _ => false,
    };
    while !asks(&stack) {
        bench.step(&mut stack);
    }
    bench.step(&mut stack);
    assert!(asks(&stack), "must it be deferred?");
    bench.message(Message::QueueIfNoPath(true));
    bench.go_on(&mut stack);
    assert_eq!(bench.on.ended, [Status::IoError]);
}

/// dm_wq_work() has taken a bio off its list, and the device is suspended again: up to 5.10 it is
/// mapped, since the worker holds the table; later it is submitted again, and waits again.
#[test]
fn a_deferred_bio_looks_again_in_6_1() {
    for rules in kernels() {
        let mut bench = over(rules, HOLDS);
        let mut suspension = suspends();
        bench.go_on(&mut suspension);
        assert_eq!(bench.send(read(0)), "Q ", "{}", rules.name);
        bench.run(Frame::Suspend(SuspendPath::new(TOP, Suspends::End)));
        let mut worker = Stack::of(Frame::BioWork(BioWorkPath::new(TOP, BioWork::Deferred)));
        bench.go_to(&mut worker, "map-bio.enter");
        bench.on.work.clear();
        bench.go_to(&mut suspends(), "suspend.grace");
        bench.go_on(&mut worker);
        bench.kblockd();
        let waits = rules.name == "v6.1";
        assert_eq!(bench.on.in_device.is_empty(), waits, "{}", rules.name);
        let deferred = bench.on.work.contains(&BioWork::Deferred);
        assert_eq!(deferred, waits, "{}", rules.name);
    }
}
