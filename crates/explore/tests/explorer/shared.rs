//! Queues that share a tag set, under a kernel's whole rules, one step per shared access: together
//! what `specs/Restart` covers in parts, the old rules' walk over the set and the second attempt
//! under the wait queue's lock. Without 3 ms runs, so that a stall is for ever.
//!
//! Counts as in `exhaustive.rs`: `UPDATE_COUNTS=1` writes them.

use crate::clean::{all_clean, exhaustive, line};
use crate::counts::compare;
use blkmq::elevator::SchedulerKind;
use blkmq::request::QueueId;
use blkmq::rules::{Recheck, Restart, Rules, TagWait};
use explore::{Config, Mutant, Task, walk};

const NONE: SchedulerKind = SchedulerKind::None;
const DEADLINE: SchedulerKind = SchedulerKind::MqDeadline;

/// `tasks` by queue: `r` reads, `p` sends a passthrough request. With a scheduler all tasks have
/// submitted before the exploration begins.
fn shared(rules: Rules, kind: SchedulerKind, tags: u32, tasks: &[&str]) -> Config {
    let name = format!(
        "{}, {}, {}, {tags} {} for {}",
        rules.name,
        rules.restart.name,
        kind.name(),
        if tags == 1 { "tag" } else { "tags" },
        tasks.join(" and ")
    );
    let mut config = Config::new(&name, rules, kind, 0);
    config.queues = tasks.len() as u8;
    config.tags = tags;
    config.nr_requests = 4;
    for (queue, ways) in (0..).zip(tasks) {
        config.tasks.extend(ways.chars().map(|way| Task {
            queue: QueueId(queue),
            passthrough: way == 'p',
            ..Task::read(0)
        }));
    }
    config.in_order = false;
    if kind == DEADLINE {
        config.prefilled = config.tasks.len();
    }
    config
}

/// Kernels with presets for the rules that restart queues of one set.
const KERNELS: [Rules; 2] = [Rules::v6_1(), Rules::v6_12()];

#[test]
fn whole_presets_leave_nothing_on_a_shared_set() {
    let mut configs = Vec::new();
    for rules in KERNELS {
        for preset in Restart::PRESETS {
            let rules = rules.with_restart(preset);
            configs.push(shared(rules, DEADLINE, 1, &["r", "r"]));
        }
        configs.push(shared(rules, NONE, 1, &["r", "r"]));
    }
    compare("shared.txt", &all_clean(&configs));
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn repaired_presets_leave_nothing_of_three_requests() {
    let mut configs = Vec::new();
    for preset in [Restart::V4_15, Restart::V4_19, Restart::V5_9] {
        let rules = Rules::v6_12().with_restart(preset);
        configs.push(shared(rules, DEADLINE, 2, &["rr", "r"]));
    }
    configs.push(shared(Rules::v6_12(), DEADLINE, 1, &["rp", "r"]));
    compare("shared-three.txt", &all_clean(&configs));
}

/// An hctx in no wait queue that only sets its mark waits for the end of its own requests, although
/// the other queue has the tag.
#[test]
fn without_a_line_the_other_queue_waits_for_ever() {
    let mut table = String::new();
    for preset in [Restart::V4_14, Restart::V4_19, Restart::V5_9] {
        let restart = Restart {
            wait: TagWait::Nowhere,
            recheck: Recheck::Unpromised,
            ..preset
        };
        let rules = Rules::v6_12().with_restart(restart);
        let report = exhaustive(&shared(rules, DEADLINE, 1, &["r", "r"]));
        assert_eq!(report.verdict.word(), "stall", "{report}");
        let shown = report.to_string();
        assert!(shown.contains("in Dispatch, RESTART of hctx 0"), "{shown}");
        table += &line(&report);
    }
    compare("shared-no-line.txt", &table);
}

#[test]
fn a_forgotten_place_in_line_is_found() {
    let mut config = shared(Rules::v6_12(), DEADLINE, 1, &["r", "r"]);
    config.mutant = Some(Mutant::ForgottenLine);
    assert_eq!(exhaustive(&config).verdict.word(), "broken");
}

/// Steps of a walk before it is drained.
const STEPS: u64 = 300;

/// A read in the scheduler and a passthrough request on the dispatch list of each queue: the
/// six-step stall of v4.12 to v4.14 (S20), and whole presets that do not have it.
#[test]
fn walks_stall_under_the_counter_of_the_queue_and_under_no_other_rule() {
    walks_stall(300);
}

#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn many_walks_stall_under_no_other_rule() {
    walks_stall(5_000);
}

fn walks_stall(walks: u64) {
    let tasks = ["rp", "rp"];
    let first = |preset: Restart, rules: Rules| {
        let config = shared(rules.with_restart(preset), DEADLINE, 2, &tasks);
        (0..walks).find_map(|seed| {
            let report = walk(&config, seed, STEPS);
            (report.verdict.word() != "clean").then_some(report)
        })
    };
    for rules in KERNELS {
        for preset in Restart::PRESETS {
            let found = first(preset, rules);
            let word = found.as_ref().map(|report| report.verdict.word());
            let expected = (preset == Restart::V4_14).then_some("stall");
            let shown = found.map(|report| report.to_string());
            assert_eq!(word, expected, "{} {}: {shown:?}", rules.name, preset.name);
        }
    }
}
