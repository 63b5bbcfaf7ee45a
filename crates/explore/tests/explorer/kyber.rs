//! Kyber under the explorer: ctx queues, hctxs and tokens, each with its own lock. No token is lost
//! or doubled and no request is stranded if a token is put between the failed attempt and the entry
//! in the wait queue. Without 3 ms runs, so that a stall is for ever; the timer may expire at any
//! time. Counts as in `exhaustive.rs`: `UPDATE_COUNTS=1` writes them.

use crate::clean;
use crate::clean::{all_clean, exhaustive};
use crate::counts::{compare, compare_part};
use blkmq::elevator::SchedulerKind;
use blkmq::request::Op;
use blkmq::rules::Rules;
use explore::{Config, Mutant};

/// `tasks` bios over so many hctxs, and one token of each kind. Latencies are not measured unless a
/// case turns that on: without samples and timer state spaces are a hundredth as large. With a
/// batch of one, a call asks for its token only once.
fn config(rules: Rules, hctxs: u16, tasks: usize) -> Config {
    let name = format!("{}, {hctxs} hctxs, {tasks} writes of zeroes", rules.name);
    let mut config = Config::new(&name, rules, SchedulerKind::Kyber, tasks);
    config.tags = 2;
    config.nr_requests = 4;
    config.hctxs = hctxs;
    config.states_max = 4_000_000;
    config.cpus = hctxs;
    config.tokens = Some(1);
    for (cpu, task) in (0..hctxs).cycle().zip(&mut config.tasks) {
        task.cpu = cpu;
        task.op = Op::WriteZeroes;
    }
    config
}

fn one_hctx(rules: Rules) -> [Config; 3] {
    let mut measured = config(rules, 1, 1);
    measured.name += ", or rather a read";
    measured.tasks[0].op = Op::Read;
    let mut requeues = config(rules, 1, 1);
    requeues.name += ", 1 requeue";
    requeues.requeues = 1;
    [config(rules, 1, 2), measured, requeues]
}

#[test]
#[cfg_attr(debug_assertions, ignore = "long without optimisation")]
fn two_hctxs_with_one_token_lose_nothing() {
    let [_, measured, requeues] = one_hctx(Rules::v6_12());
    let configs = [measured, requeues, config(Rules::v6_12(), 2, 2)];
    compare_part("kyber.txt", &all_clean(&configs));
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn configurations_with_one_token_lose_nothing() {
    let mut configs = Vec::from(one_hctx(Rules::v6_1()));
    configs.extend(one_hctx(Rules::v6_12()));
    configs.push(config(Rules::v6_12(), 2, 2));
    compare("kyber.txt", &all_clean(&configs));
}

#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "ten seconds or more: cargo xtask ci --full"
)]
fn what_waiting_for_a_token_must_not_forget_is_found() {
    clean::forgotten_tokens_are_found(&config(Rules::v6_12(), 1, 2));
}

#[test]
fn a_token_that_is_lost_or_doubled_is_found() {
    let mut lost = config(Rules::v6_12(), 1, 1);
    lost.mutant = Some(Mutant::LostToken);
    let report = exhaustive(&lost);
    let text = report.verdict.to_string();
    assert!(text.contains("tokens are taken"), "{report}");

    let mut doubled = config(Rules::v6_12(), 1, 2);
    doubled.mutant = Some(Mutant::DoubledToken);
    let report = exhaustive(&doubled);
    let text = report.verdict.to_string();
    // A build with assertions stops where the token is put a second time.
    let found = match cfg!(debug_assertions) {
        true => "tag 0 is nobody's",
        false => "tag 0 given back twice",
    };
    assert!(text.contains(found), "{report}");
}
