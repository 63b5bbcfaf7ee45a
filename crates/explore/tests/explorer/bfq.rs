//! BFQ under the explorer: its idle timer against insertion, dispatch and completion. Idling for a
//! queue always ends, and the requests that others have queued meanwhile are dispatched. Without 3
//! ms runs, so that a stall is for ever; the timer may expire at any time. Counts as in
//! `exhaustive.rs`: `UPDATE_COUNTS=1` writes them.

use crate::clean::{all_clean, exhaustive};
use crate::counts::compare;
use blkmq::elevator::SchedulerKind;
use blkmq::request::{IoClass, IoPrio};
use blkmq::rules::{Rules, StableMerge};
use explore::{Config, Mutant, Task, walk};

const fn best_effort(level: u8) -> IoPrio {
    IoPrio {
        class: IoClass::BestEffort,
        level,
    }
}

/// Two processes, the second with less weight: while the device idles for the first one, the second
/// one's request is kept back, as otherwise the first would not get its share. `bios` of the first.
fn config(rules: Rules, bios: u32) -> Config {
    let rules = rules.with_stable_merge(StableMerge::Never);
    let name = format!("{}, {bios} and 1 reads of two processes", rules.name);
    let mut config = Config::new(&name, rules, SchedulerKind::Bfq, 2);
    config.tags = 1;
    config.nr_requests = 4;
    config.cpus = 2;
    config.states_max = 4_000_000;
    config.tasks = vec![
        Task {
            bios,
            ioprio: best_effort(0),
            ..Task::read(0)
        },
        Task {
            ioprio: best_effort(7),
            ..Task::read(1)
        },
    ];
    config
}

#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn no_queue_is_waited_for_without_an_end() {
    let mut configs: Vec<Config> = [Rules::v5_11(), Rules::v6_1(), Rules::v6_12()]
        .map(|rules| config(rules, 1))
        .into();
    let mut merged = config(Rules::v6_12(), 1);
    merged.rules = Rules::v6_12();
    merged.tasks[0].ioprio = best_effort(7);
    merged.name = "v6.12, two processes that share a queue".to_owned();
    configs.push(merged);
    compare("bfq.txt", &all_clean(&configs));
}

/// Random orders, for more than one read of each process: all orders are too many (4 million states
/// are not enough for two reads and one).
#[test]
fn random_orders_of_more_reads_end() {
    for rules in Rules::of_path(false) {
        for bios in [2, 3] {
            let config = config(rules, bios);
            for seed in 0..200 {
                let report = walk(&config, seed, 2_000);
                assert_eq!(report.verdict.word(), "clean", "seed {seed}: {report}");
            }
        }
    }
    let mut lost = config(Rules::v6_12(), 2);
    lost.mutant = Some(Mutant::LostTimer);
    let stalls = (0..200).filter(|&seed| walk(&lost, seed, 2_000).verdict.word() == "stall");
    assert!(stalls.count() > 0, "a timer that is lost goes by");
}

/// The timer and the run that it asks for, without which an idling queue would never continue.
#[test]
fn a_timer_that_is_lost_or_runs_nothing_is_found() {
    for mutant in [Mutant::LostTimer, Mutant::NoHookRun] {
        let mut config = config(Rules::v6_12(), 1);
        config.mutant = Some(mutant);
        let report = exhaustive(&config);
        assert_eq!(report.verdict.word(), "stall", "{mutant:?}: {report}");
    }
}
