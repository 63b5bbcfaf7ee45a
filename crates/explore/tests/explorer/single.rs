//! The single-queue path, exhaustively: no request is lost, no task sleeps for ever, and each
//! mechanism that runs the queue is missed if it is taken away.

use crate::clean::exhaustive;
use blkmq::elevator::SchedulerKind;
use blkmq::path::ThenUnplug;
use blkmq::rules::Rules;
use explore::{Config, Mutant, Report, Task};

/// Schedulers that never idle; the others have files of their own.
fn schedulers() -> impl Iterator<Item = SchedulerKind> {
    SchedulerKind::of_path(true).filter(|kind| {
        let info = kind.info();
        info.is_some_and(|info| info.timers.is_empty())
    })
}

/// So many tasks on two CPUs, and a driver that takes one request at a time.
fn config(name: &str, rules: Rules, scheduler: SchedulerKind, tasks: u16) -> Config {
    Config {
        cpus: 2,
        tasks: (0..tasks).map(|task| Task::read(task % 2)).collect(),
        nr_requests: 2,
        must_end: true,
        ..Config::new(name, rules, scheduler, usize::from(tasks))
    }
}

fn explored(config: &Config) -> Report {
    let report = exhaustive(config);
    println!("{report}");
    report
}

#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "ten seconds or more: cargo xtask ci --full"
)]
fn two_requests_on_two_cpus_end_whatever_happens() {
    for rules in Rules::SINGLE_QUEUE {
        for scheduler in schedulers() {
            for then in [ThenUnplug::Nobody, ThenUnplug::Bio, ThenUnplug::Task] {
                let mut config = config("two requests", rules, scheduler, 2);
                config.then = then;
                let report = explored(&config);
                assert_eq!(report.verdict.word(), "clean", "{then:?}: {report}");
            }
        }
    }
}

#[test]
fn a_driver_that_refuses_or_gives_back_gets_them_again() {
    for scheduler in schedulers() {
        let mut config = config("refusals", Rules::v2_6_32(), scheduler, 2);
        config.tags = 2;
        config.completers = 2;
        config.refusals = 1;
        let report = explored(&config);
        assert_eq!(report.verdict.word(), "clean", "{report}");
        (config.refusals, config.requeues) = (0, 1);
        let report = explored(&config);
        assert_eq!(report.verdict.word(), "clean", "{report}");
    }
}

/// One request of each kind: the second task sleeps until the first one's is free.
#[test]
fn who_sleeps_for_a_request_is_woken() {
    for scheduler in schedulers() {
        let mut config = config("one request", Rules::v2_6_32(), scheduler, 2);
        config.nr_requests = 1;
        let report = explored(&config);
        assert_eq!(report.verdict.word(), "clean", "{report}");
    }
}

/// A plug without timer, an end that runs nothing, a sleeper that is not woken.
#[test]
fn what_is_missing_is_missed() {
    for scheduler in schedulers() {
        for (mutant, nr_requests) in [
            (Mutant::LostTimer, 2),
            (Mutant::NoRestartRun, 2),
            (Mutant::NoWake, 1),
        ] {
            let mut config = config("mutant", Rules::v2_6_32(), scheduler, 2);
            config.must_end = false;
            config.nr_requests = nr_requests;
            config.mutant = Some(mutant);
            let report = explored(&config);
            assert_eq!(report.verdict.word(), "stall", "{mutant:?}: {report}");
        }
    }
}

/// A task that waits for its own pages flushes the plug: no timer is needed.
#[test]
fn a_task_that_unplugs_needs_no_timer() {
    for scheduler in schedulers() {
        let mut config = config("unplugs", Rules::v2_6_32(), scheduler, 2);
        config.must_end = false;
        config.mutant = Some(Mutant::LostTimer);
        config.then = ThenUnplug::Task;
        let report = explored(&config);
        assert_eq!(report.verdict.word(), "clean", "{report}");
    }
}
