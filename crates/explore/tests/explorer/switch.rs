//! The scheduler of a live queue is changed: whatever happens meanwhile, no request is lost, and no
//! context uses a scheduler that is being removed. Without 3 ms runs, so that a stall is for ever.
//!
//! Counts as in `exhaustive.rs`: `UPDATE_COUNTS=1` writes them.

use crate::clean::{all_clean, exhaustive};
use crate::counts::{compare, compare_part};
use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use explore::{Config, Mutant, Task};

const NONE: SchedulerKind = SchedulerKind::None;
const DEADLINE: SchedulerKind = SchedulerKind::MqDeadline;

/// `tasks` reads on one tag, and these changes by another task.
fn config(rules: Rules, from: SchedulerKind, changes: &[SchedulerKind], tasks: usize) -> Config {
    let to: Vec<&str> = changes.iter().map(|kind| kind.name()).collect();
    let (from_name, to) = (from.name(), to.join(", "));
    let name = format!("{}, {from_name} to {to}, {tasks} tasks", rules.name);
    Config {
        changes: changes.to_vec(),
        ..Config::new(&name, rules, from, tasks)
    }
}

#[test]
fn a_change_loses_nothing() {
    let mut configs = Vec::new();
    for rules in [Rules::v6_1(), Rules::v6_12()] {
        for (from, to) in [(DEADLINE, NONE), (NONE, DEADLINE), (DEADLINE, DEADLINE)] {
            configs.push(config(rules, from, &[to], 1));
        }
        configs.push(config(rules, DEADLINE, &[NONE, DEADLINE], 1));
    }
    compare("switch.txt", &all_clean(&configs));
}

#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn a_change_between_two_tasks_loses_nothing() {
    let table = all_clean(&[config(Rules::v6_12(), NONE, &[DEADLINE], 2)]);
    compare("switch-two.txt", &table);
}

fn flush(rules: Rules) -> Config {
    let mut config = config(rules, DEADLINE, &[NONE], 0);
    config.name += ", flush";
    config.tasks.push(Task {
        flush: true,
        op: blkmq::request::Op::Write,
        ..Task::read(0)
    });
    config
}

#[test]
#[cfg_attr(debug_assertions, ignore = "long without optimisation")]
fn a_flush_ends_around_a_change() {
    compare_part("switch-plugs.txt", &all_clean(&[flush(Rules::v6_1())]));
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn plugs_and_flushes_end_around_a_change() {
    let mut configs = Vec::new();
    for rules in [Rules::v6_1(), Rules::v6_12()] {
        let mut plugged = config(rules, DEADLINE, &[NONE], 0);
        plugged.name += ", plugged";
        plugged.nr_requests = 4;
        plugged.tasks.push(Task {
            bios: 2,
            plugged: 2,
            ..Task::read(0)
        });
        configs.extend([plugged, flush(rules)]);
    }
    compare("switch-plugs.txt", &all_clean(&configs));
}

#[test]
fn what_a_change_must_not_forget_is_found() {
    for (mutant, tasks, verdict, says) in [
        (Mutant::NoDrain, 1, "panic", "somebody uses the queue"),
        (Mutant::NoQuiesce, 1, "panic", "not quiesced"),
        (Mutant::NoGrace, 1, "panic", "another context uses it"),
        (Mutant::NoThawWake, 1, "stall", "0 of 1 bios have ended"),
    ] {
        let mut config = config(Rules::v6_1(), DEADLINE, &[NONE], tasks);
        config.mutant = Some(mutant);
        let report = exhaustive(&config);
        assert_eq!(report.verdict.word(), verdict, "{mutant:?}: {report}");
        let said = report.verdict.to_string();
        assert!(said.contains(says), "{mutant:?}: {said}");
    }
}
