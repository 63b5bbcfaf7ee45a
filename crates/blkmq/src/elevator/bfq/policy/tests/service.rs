//! Shares: while all queues have requests, each gets what its weight gives it, and nobody starves.
//!
//! Kernel: B-WF2Q+ in block/bfq-wf2q.c; Valente, Checconi: High Throughput Disk Scheduling with
//! Fair Bandwidth Distribution.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::device::{Device, Mutant, Setup};
use super::{Action, Shape};
use crate::request::{IoClass, IoPrio, Op};
use crate::rules::Rules;
use crate::time::Duration;

/// Sectors of each request.
const SECTORS: u32 = 256;
/// Sectors of the largest budget that a queue ever has here.
const BUDGET_MAX: u64 = 16 * 1024;

/// Queues that always have requests.
#[derive(Clone, Debug)]
struct Backlog {
    rules: Rules,
    levels: Vec<u8>,
    max_budget: u32,
    requests: u32,
}

fn backlog() -> impl Strategy<Value = Backlog> {
    let rules = prop::sample::select(vec![Rules::v5_11(), Rules::v6_1(), Rules::v6_12()]);
    let levels = prop::collection::vec(0u8..8, 2..6);
    (rules, levels, 512u32..16384, 1000u32..4000).prop_map(
        |(rules, levels, max_budget, requests)| Backlog {
            rules,
            levels,
            max_budget,
            requests,
        },
    )
}

fn ioprio(class: IoClass, level: u8) -> IoPrio {
    IoPrio { class, level }
}

/// A device with three requests of each task, all of them started 700 ms apart so that nobody
/// merges.
fn backlogged(rules: Rules, prios: &[IoPrio], mutant: Option<Mutant>) -> (Device, Vec<u64>) {
    let setup = Setup {
        rules,
        rotational: false,
        arms: false,
    };
    let mut device = Device::new(&setup, mutant);
    device.apply(&Action::Store("low_latency", 0));
    device.apply(&Action::Store("timeout_sync", 100_000));
    let mut next = vec![0; prios.len()];
    for (at, &prio) in prios.iter().enumerate() {
        device.apply(&Action::IoPrio(at as u32 + 1, prio));
        for _ in 0..3 {
            submit(&mut device, &mut next, at);
        }
        device.wait(Duration::from_millis(700));
    }
    (device, next)
}

/// The next sequential request of a task, not adjacent to the one before.
fn submit(device: &mut Device, next: &mut [u64], at: usize) {
    next[at] += 1;
    device.apply(&Action::Insert(Shape {
        task: at as u32 + 1,
        op: Op::Read,
        sector: (at as u64 + 1) * 1_000_000_000 + next[at] * 300,
        sectors: SECTORS,
        sync: false,
        meta: false,
        bare: false,
    }));
}

/// Serves one request, that long, and submits the next one of its task. Answers who it was.
fn serve(device: &mut Device, next: &mut [u64], us: u64) -> Result<usize, TestCaseError> {
    prop_assert!(device.dispatch(), "all have requests");
    let rq = device.with_driver.pop().expect("one was dispatched");
    let at = device.pool[rq].io_context.0 as usize - 1;
    device.wait(Duration::from_micros(us));
    device.finish(rq);
    submit(device, next, at);
    device.spoil();
    Ok(at)
}

impl Device {
    /// What mutants of the service do.
    fn spoil(&mut self) {
        let tick = self.clocks().tick;
        let mutant = self.mutant();
        let bfq = &mut self.bfq;
        match mutant {
            Some(Mutant::ForgetsCharge) => {
                let first = bfq.slot(crate::request::IoContextId(1), true, 0);
                if let Some(q) = first.filter(|&q| bfq.in_service == Some(q)) {
                    let e = bfq.entities.of(q);
                    bfq.entities[e].service = 0;
                }
            }
            Some(Mutant::KeepsQueue) => {
                if let Some(q) = bfq.in_service {
                    let e = bfq.entities.of(q);
                    bfq.entities[e].budget = i32::MAX / 2;
                }
            }
            Some(Mutant::IdleNever) => {
                for group in &mut bfq.groups {
                    group.idle_class_served = tick.0.cast_signed();
                }
            }
            _ => {}
        }
    }
}

/// Of what all have got, each has its weight's share, give or take its largest budget and a
/// request; that of the others may be what it waits for.
fn shares(backlog: &Backlog, mutant: Option<Mutant>) -> Result<(), TestCaseError> {
    let prios: Vec<IoPrio> = backlog
        .levels
        .iter()
        .map(|&level| ioprio(IoClass::BestEffort, level))
        .collect();
    let (mut device, mut next) = backlogged(backlog.rules, &prios, mutant);
    device.apply(&Action::Store("max_budget", backlog.max_budget));
    let weights: Vec<u64> = backlog
        .levels
        .iter()
        .map(|&level| (8 - u64::from(level)) * 10)
        .collect();
    let sum: u64 = weights.iter().sum();
    let mut served = vec![0u64; weights.len()];
    for _ in 0..backlog.requests {
        let at = serve(&mut device, &mut next, 1)?;
        served[at] += u64::from(SECTORS);
        let total: u64 = served.iter().sum();
        for (at, &weight) in weights.iter().enumerate() {
            let ideal = total * weight / sum;
            let slack = BUDGET_MAX + u64::from(SECTORS);
            prop_assert!(
                served[at].abs_diff(ideal) <= slack,
                "task {} of weight {} has {} of {} sectors, ideally {}",
                at + 1,
                weight,
                served[at],
                total,
                ideal
            );
        }
    }
    Ok(())
}

/// Nobody waits for ever: best effort and idle classes beside each other.
fn everybody_is_served(
    levels: &[u8],
    idle: usize,
    mutant: Option<Mutant>,
) -> Result<(), TestCaseError> {
    let mut prios: Vec<IoPrio> = levels
        .iter()
        .map(|&level| ioprio(IoClass::BestEffort, level))
        .collect();
    prios.resize(levels.len() + idle, ioprio(IoClass::Idle, 7));
    let (mut device, mut next) = backlogged(Rules::v6_1(), &prios, mutant);
    device.apply(&Action::Store("timeout_sync", 124));
    let mut last = vec![device.now; prios.len()];
    // 124 ms a slot, ten times as many of the heaviest as of the lightest, and IDLE every 200 ms.
    let bound = Duration::from_millis(350 * 10 * prios.len() as u64);
    for _ in 0..20_000 {
        let at = serve(&mut device, &mut next, 1000)?;
        last[at] = device.now;
        for (at, &last) in last.iter().enumerate() {
            prop_assert!(
                device.now.since(last) <= bound,
                "task {} starves since {}",
                at + 1,
                last
            );
        }
    }
    Ok(())
}

fn config(cases: u32) -> Config {
    Config {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::with_cases(cases)
    }
}

fn shares_are_caught(mutant: Mutant) {
    let result = TestRunner::new(config(64)).run(&backlog(), |b| shares(&b, Some(mutant)));
    super::says(result, mutant, "ideally");
}

proptest! {
    #![proptest_config(Config::with_cases(48))]
    #[test]
    fn each_queue_is_within_a_budget_of_its_share(backlog in backlog()) {
        shares(&backlog, None)?;
    }
}

proptest! {
    #![proptest_config(Config::with_cases(8))]
    #[test]
    fn nobody_starves(levels in prop::collection::vec(0u8..8, 1..4), idle in 1usize..3) {
        everybody_is_served(&levels, idle, None)?;
    }
}

#[test]
fn service_that_is_not_charged_is_caught() {
    shares_are_caught(Mutant::ForgetsCharge);
}

#[test]
fn a_queue_that_stays_in_service_is_caught() {
    shares_are_caught(Mutant::KeepsQueue);
}

#[test]
fn a_class_that_is_forgotten_is_caught() {
    let starved = everybody_is_served(&[4], 1, Some(Mutant::IdleNever));
    let said = starved.expect_err("nobody noticed").to_string();
    assert!(said.contains("starves"), "{said}");
}
