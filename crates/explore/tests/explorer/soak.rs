//! Random walks through larger configurations, each drained at its end.
//!
//! `SOAK_SEED` gives the first seed (`cargo xtask soak --seed N`); it is printed first, and the
//! same seed takes the same walks.

use blkmq::elevator::SchedulerKind;
use blkmq::request::{IoPrio, Op, QueueId};
use blkmq::rules::Rules;
use explore::{Config, Mutant, Refusal, Task, Verdict, walk};

/// Steps until no more bios are submitted.
const STEPS: u64 = 20_000;

/// A machine with four CPUs, plugs, flushes and a device that refuses.
fn busy(rules: Rules, scheduler: SchedulerKind, hctxs: u16, tags: u32) -> Config {
    let name = format!(
        "{} {} with {hctxs} hctxs of {tags} tags",
        rules.name,
        scheduler.name()
    );
    let mut config = Config::new(&name, rules, scheduler, 0);
    let task = |cpu: u16, plugged, op, flush| Task {
        queue: QueueId(0),
        cpu,
        bios: 200,
        plugged,
        op,
        flush,
        passthrough: false,
        ioprio: IoPrio::default(),
    };
    config.tasks = vec![
        task(0, 0, Op::Read, false),
        task(1, 3, Op::Write, false),
        task(2, 0, Op::Write, true),
        task(3, 7, Op::Read, false),
        task(0, 2, Op::Write, false),
        task(1, 0, Op::Read, false),
    ];
    config.in_order = false;
    config.cpus = 4;
    config.hctxs = hctxs;
    config.tags = tags;
    config.nr_requests = 2 * tags.max(2);
    config.completers = 2;
    config.device_limit = tags.div_ceil(2) + 1;
    config.when_full = Refusal::Resource;
    config.refusals = 40;
    config.delayed_runs = true;
    config
}

fn all() -> Vec<Config> {
    let mut configs = Vec::new();
    for rules in Rules::PRESETS {
        for scheduler in [SchedulerKind::None, SchedulerKind::MqDeadline] {
            for (hctxs, tags) in [(1, 1), (1, 5), (2, 3), (4, 2), (1, 32)] {
                configs.push(busy(rules, scheduler, hctxs, tags));
            }
        }
    }
    configs
}

#[test]
fn walks_end_with_nothing_left() {
    let first = std::env::var("SOAK_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("seed {first}");
    for (offset, config) in all().iter().enumerate() {
        let report = walk(config, first + offset as u64, STEPS);
        assert_eq!(report.verdict, Verdict::Clean, "{report}");
        assert!(report.generated > STEPS, "{report}");
    }
}

#[test]
fn the_same_seed_takes_the_same_walk() {
    let config = busy(Rules::v6_12(), SchedulerKind::MqDeadline, 2, 3);
    let first = walk(&config, 7, 3_000);
    assert_eq!(first, walk(&config, 7, 3_000));
    assert_ne!(first.generated, walk(&config, 8, 3_000).generated);
}

#[test]
fn walks_find_mutants() {
    for (mutant, scheduler) in [
        (Mutant::NoRecheck, SchedulerKind::None),
        (Mutant::NoRestartRun, SchedulerKind::MqDeadline),
        (Mutant::NoWake, SchedulerKind::None),
        (Mutant::LeakedTag, SchedulerKind::MqDeadline),
        (Mutant::CompletedTwice, SchedulerKind::None),
    ] {
        let mut config = Config::new(&format!("{mutant:?}"), Rules::v6_12(), scheduler, 3);
        config.mutant = Some(mutant);
        config.in_order = false;
        if mutant == Mutant::NoRecheck {
            config.tags = 2;
            config.device_limit = 1;
        }
        for task in &mut config.tasks {
            task.bios = 3;
        }
        let found = (1..=500).find(|&seed| walk(&config, seed, 400).verdict != Verdict::Clean);
        let seed = found.unwrap_or_else(|| panic!("500 walks do not find {mutant:?}"));
        let report = walk(&config, seed, 400);
        assert!(!report.schedule.is_empty(), "{report}");
    }
}
