//! A scheduler with tokens under the explorer: an hctx without a token is in a wait queue and runs
//! when one is put; nothing is lost. Without 3 ms runs, so that a stall is for ever.
//!
//! Counts as in `exhaustive.rs`: `UPDATE_COUNTS=1` writes them.

use crate::clean;
use crate::clean::{all_clean, exhaustive};
use crate::counts::{compare, compare_part};
use crate::throttle::{Throttle, info, tokens};
use blkmq::elevator::{ElevatorTokens, SchedulerInfo, SchedulerKind};
use blkmq::request::Op;
use blkmq::rules::Rules;
use explore::Config;

const ONE_EACH: &[ElevatorTokens] = &tokens(1, 1);
const THROTTLE: SchedulerInfo = info(ONE_EACH);

/// `tasks` reads over so many hctxs, one of which may be in the device.
fn config(rules: Rules, hctxs: u16, tasks: usize) -> Config {
    let name = format!("{}, {hctxs} hctxs, {tasks} reads", rules.name);
    let own = Throttle::custom(&THROTTLE, false);
    let mut config = Config::of_own(&name, rules, own, tasks);
    config.tags = 2;
    config.nr_requests = 4;
    config.hctxs = hctxs;
    config.states_max = 2_000_000;
    config.cpus = hctxs;
    for (cpu, task) in (0..hctxs).cycle().zip(&mut config.tasks) {
        task.cpu = cpu;
    }
    config
}

/// Configurations of one hctx.
fn small(rules: Rules) -> Vec<Config> {
    let two = config(rules, 1, 2);
    let mut mixed = two.clone();
    mixed.name += ", one of them a write";
    mixed.tasks[1].op = Op::Write;
    let mut requeues = config(rules, 1, 1);
    requeues.name += ", 2 requeues";
    requeues.requeues = 2;
    let mut changed = config(rules, 1, 1);
    changed.name += ", to none and back";
    changed.changes = vec![SchedulerKind::None, SchedulerKind::Custom(&THROTTLE)];
    vec![two, mixed, requeues, changed]
}

#[test]
fn small_configurations_with_tokens_lose_nothing() {
    compare_part("tokens.txt", &all_clean(&small(Rules::v6_12())));
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn configurations_with_tokens_lose_nothing() {
    let mut configs = Vec::new();
    for rules in [Rules::v6_1(), Rules::v6_12()] {
        configs.extend(small(rules));
        configs.insert(configs.len() - 3, config(rules, 2, 2));
    }
    compare("tokens.txt", &all_clean(&configs));
}

#[test]
fn what_waiting_for_a_token_must_not_forget_is_found() {
    clean::forgotten_tokens_are_found(&config(Rules::v6_12(), 1, 2));
}

#[test]
fn a_token_that_is_not_given_back_is_found() {
    let mut config = config(Rules::v6_12(), 1, 2);
    config.own = Some(Throttle::custom(&THROTTLE, true));
    let report = exhaustive(&config);
    assert_eq!(report.verdict.word(), "stall", "{report}");
    // With one request no task waits; the token is still taken at the end.
    config.tasks.truncate(1);
    let report = exhaustive(&config);
    let text = report.verdict.to_string();
    assert!(text.contains("tokens are taken"), "{report}");
}
