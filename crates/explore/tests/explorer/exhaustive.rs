//! Verdicts and exact counts of small configurations.
//!
//! A changed count means that the paths have other labels or other states than before: look at the
//! difference before you accept the new number (`UPDATE_COUNTS=1` writes it).

use crate::clean::exhaustive;
use crate::counts::compare;
use blkmq::elevator::SchedulerKind;
use blkmq::request::Op;
use blkmq::rules::Rules;
use explore::{Config, Mutant, Promises, Report, Task, Verdict};

const NONE: SchedulerKind = SchedulerKind::None;
const DEADLINE: SchedulerKind = SchedulerKind::MqDeadline;

const BOTH: &[SchedulerKind] = &[NONE, DEADLINE];

/// The name, schedulers, tasks, and the changes to the configuration.
type Row = (
    &'static str,
    &'static [SchedulerKind],
    usize,
    fn(&mut Config),
);

const SMALL: &[Row] = &[
    ("one read", BOTH, 1, |_| {}),
    ("two reads, one tag", BOTH, 2, |_| {}),
    ("two reads, two tags, two completers", BOTH, 2, |c| {
        c.tags = 2;
        c.completers = 2;
    }),
    ("two reads, one may be refused, 3 ms runs", BOTH, 2, |c| {
        c.refusals = 1;
        c.delayed_runs = true;
    }),
    (
        "two reads, one may be refused, no 3 ms runs",
        BOTH,
        2,
        |c| {
            c.refusals = 1;
        },
    ),
    ("three reads, two queued, one tag", BOTH, 3, |c| {
        c.prefilled = 2;
        c.nr_requests = 4;
    }),
    ("three reads queued, two tags", BOTH, 3, |c| {
        c.prefilled = 3;
        c.nr_requests = 4;
        c.tags = 2;
        c.completers = 2;
    }),
    ("a plug of two, two tags", BOTH, 1, |c| {
        c.tags = 2;
        c.tasks[0].bios = 2;
        c.tasks[0].plugged = 2;
    }),
    ("a flushed FUA write", BOTH, 1, |c| flushes(c)),
    ("one read, two requeues", BOTH, 1, |c| c.requeues = 2),
    ("two reads, one may be requeued", &[NONE], 2, |c| {
        c.requeues = 1;
    }),
    ("a flushed FUA write, two requeues", BOTH, 1, |c| {
        flushes(c);
        c.requeues = 2;
    }),
    ("two wait for a tag and may migrate", &[NONE], 3, |c| {
        two_hctxs(c);
        migrating(c);
    }),
];

/// Explored in release builds only.
const LARGE: &[Row] = &[
    ("two reads, a device of one", BOTH, 2, |c| {
        c.tags = 2;
        c.device_limit = 1;
    }),
    ("two hctxs", BOTH, 2, two_hctxs),
    ("two hctxs, one tag for both", &[DEADLINE], 2, |c| {
        two_hctxs(c);
        c.shared_tags = true;
        c.prefilled = 1;
    }),
    ("S14: promises for others, no 3 ms runs", &[NONE], 2, |c| {
        two_hctxs(c);
        c.device_limit = 1;
        c.promises = Promises::AnyHctx;
    }),
    (
        "the same, promises for the own hctx, 3 ms runs",
        &[NONE],
        2,
        |c| {
            two_hctxs(c);
            c.device_limit = 1;
            c.delayed_runs = true;
        },
    ),
    ("two flushed FUA writes, two tags", BOTH, 2, |c| {
        c.tags = 2;
        c.nr_requests = 4;
        flushes(c);
    }),
];

fn two_hctxs(config: &mut Config) {
    config.cpus = 2;
    config.hctxs = 2;
    config.in_order = false;
    config.tasks = vec![Task::read(0), Task::read(1)];
}

/// A read in the device has the tag that two other tasks of its CPU wait for.
fn migrating(config: &mut Config) {
    config.tasks = vec![Task::read(0); 3];
    config.prefilled = 1;
    config.in_order = true;
    config.migrates = true;
}

fn flushes(config: &mut Config) {
    for task in &mut config.tasks {
        task.op = Op::Write;
        task.flush = true;
    }
}

/// Later ones differ from the last in nothing that these worlds have.
const KERNELS: [Rules; 3] = [Rules::v6_1(), Rules::v6_6(), Rules::v6_12()];

fn table(rows: &[Row]) -> String {
    let mut lines = String::new();
    for &(name, schedulers, tasks, change) in rows {
        for rules in KERNELS {
            for &scheduler in schedulers {
                let mut config = Config::new(name, rules, scheduler, tasks);
                change(&mut config);
                lines += &line(&config, &exhaustive(&config));
            }
        }
    }
    lines
}

fn line(config: &Config, report: &Report) -> String {
    format!(
        "{:<48}{:<6}{:<12}{:<7}{:>8} generated {:>7} distinct  depth {}\n",
        report.name,
        config.rules.name,
        config.scheduler.name(),
        report.verdict.word(),
        report.generated,
        report.distinct,
        report.depth
    )
}

#[test]
fn small_configurations() {
    compare("small.txt", &table(SMALL));
}

#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn larger_configurations() {
    if cfg!(debug_assertions) {
        println!("skipped: only in release builds");
        return;
    }
    compare("large.txt", &table(LARGE));
}

/// Schedulers that no table above has.
fn further() -> impl Iterator<Item = SchedulerKind> {
    let all = SchedulerKind::of_path(false);
    all.filter(|kind| !BOTH.contains(kind))
}

/// Explores these rows under a scheduler: no request is lost.
fn loses_nothing(scheduler: SchedulerKind, rows: impl Fn(&Row) -> bool) {
    let mut explored = 0;
    for &(name, _, tasks, change) in SMALL.iter().filter(|row| row.1 == BOTH && rows(row)) {
        let mut config = Config::new(name, Rules::v6_12(), scheduler, tasks);
        change(&mut config);
        let report = exhaustive(&config);
        let stalls = name.ends_with("no 3 ms runs");
        let expected = if stalls { "stall" } else { "clean" };
        assert_eq!(report.verdict.word(), expected, "{report}");
        explored += 1;
    }
    assert!(explored > 2, "only {explored} rows");
}

/// A timer may expire at any time: with two tasks state spaces are a hundred times as large. The
/// file of such a scheduler, as `kyber.rs`, has smaller cases with two tasks.
fn has_timers(scheduler: SchedulerKind) -> bool {
    let info = scheduler.info();
    info.is_some_and(|info| !info.timers.is_empty())
}

#[test]
#[ignore = "ten seconds or more of an optimised build: cargo xtask ci --full"]
fn each_further_scheduler_loses_nothing() {
    for scheduler in further() {
        let small = |row: &Row| row.2 == 1 || !has_timers(scheduler);
        loses_nothing(scheduler, small);
    }
}

#[test]
#[ignore = "gigabytes and minutes: cargo xtask ci --full"]
fn each_further_scheduler_loses_nothing_of_two_tasks() {
    for scheduler in further().filter(|&kind| has_timers(kind)) {
        loses_nothing(scheduler, |row| row.2 > 1);
    }
}

/// Mutants are found under a scheduler that no table names.
#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn mutants_are_found_around_each_further_scheduler() {
    for scheduler in further() {
        let mutants = MUTANTS.iter().filter(|row| row.1 == DEADLINE);
        for &(mutant, _, verdict) in mutants {
            let mut config = Config::new(scheduler.name(), Rules::v6_12(), scheduler, 2);
            config.mutant = Some(mutant);
            if mutant == Mutant::ForgottenLine {
                two_hctxs(&mut config);
                config.shared_tags = true;
            }
            let report = exhaustive(&config);
            assert_eq!(report.verdict.word(), verdict, "{mutant:?}: {report}");
        }
    }
}

/// Without the 3 ms run a refusal with RESTART set is for ever; the schedule shows it.
#[test]
fn a_stall_comes_with_a_schedule() {
    let mut config = Config::new("stall", Rules::v6_12(), DEADLINE, 2);
    config.refusals = 1;
    let report = exhaustive(&config);
    let Verdict::Stall(why) = &report.verdict else {
        panic!("{report}");
    };
    assert_eq!(
        why,
        "1 of 2 bios have ended, request 1 in Dispatch, RESTART of hctx 0 set"
    );
    let shown: Vec<String> = report.schedule.iter().map(ToString::to_string).collect();
    let refused = "run work 0: the device answers Resource to request 1";
    assert!(shown.iter().any(|step| step == refused), "{report}");
    assert_eq!(shown.len() as u32, report.depth - 1, "{report}");
}

/// A mutant, the scheduler under which it must be found, and the verdict.
const MUTANTS: &[(Mutant, SchedulerKind, &str)] = &[
    (Mutant::LateMark, DEADLINE, "stall"),
    (Mutant::NoRecheck, DEADLINE, "stall"),
    (Mutant::NoRestartRun, DEADLINE, "stall"),
    (Mutant::NoWake, NONE, "stall"),
    (Mutant::UnseenLine, NONE, "broken"),
    (Mutant::ForgottenEntry, NONE, "broken"),
    (Mutant::ForgottenLine, DEADLINE, "broken"),
    (Mutant::LeakedTag, NONE, "broken"),
    (Mutant::LeakedTag, DEADLINE, "broken"),
    (Mutant::CompletedTwice, NONE, "broken"),
];

#[test]
fn every_mutant_is_found() {
    let mut found = String::new();
    for &(mutant, scheduler, verdict) in MUTANTS {
        let name = format!("{mutant:?}");
        let mut config = Config::new(&name, Rules::v6_12(), scheduler, 2);
        config.mutant = Some(mutant);
        if mutant == Mutant::ForgottenLine {
            two_hctxs(&mut config);
            config.shared_tags = true;
        }
        let report = exhaustive(&config);
        assert_eq!(report.verdict.word(), verdict, "{report}");
        found += &format!(
            "{name:<16}{:<12}{:>3} steps, {}\n",
            scheduler.name(),
            report.schedule.len(),
            report.verdict
        );
    }
    compare("mutants.txt", &found);
}

/// Leaving out steps that touch nothing shared changes counts, never verdicts.
#[test]
fn fusing_labels_changes_no_verdict() {
    for mutant in [None, Some(Mutant::NoRecheck), Some(Mutant::NoRestartRun)] {
        for rules in Rules::PRESETS {
            let mut config = Config::new("fused", rules, DEADLINE, 2);
            config.prefilled = 1;
            config.mutant = mutant;
            let fused = exhaustive(&config);
            config.every_label = true;
            let each = exhaustive(&config);
            assert_eq!(fused.verdict, each.verdict, "{mutant:?}");
            let more = mutant.is_some() || each.distinct > fused.distinct;
            assert!(more, "{} against {}", each.distinct, fused.distinct);
        }
    }
}
