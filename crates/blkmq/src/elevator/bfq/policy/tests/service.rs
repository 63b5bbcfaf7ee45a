//! Shares: while all queues have requests, each gets the share of its weight, and none starves.
//!
//! Kernel: B-WF2Q+ in block/bfq-wf2q.c; Valente, Checconi: High Throughput Disk Scheduling with
//! Fair Bandwidth Distribution.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::device::{Device, Mutant, Setup};
use super::{Action, Shape};
use crate::elevator::bfq::ids::QId;
use crate::request::{IoClass, IoPrio, Op};
use crate::rules::Rules;
use crate::time::Duration;

/// The factor of weight raising (bfq_wr_coeff).
const WR: u32 = crate::elevator::bfq::wr::COEFF;
pub(super) const SECTORS: u32 = 256;
/// Sectors of the largest budget that a queue gets in these tests.
const BUDGET_MAX: u64 = 16 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Backlog {
    pub(super) rules: Rules,
    /// The priority and group of each task: in the root (0), x in the root (1), y in x (2).
    pub(super) tasks: Vec<(u8, u16)>,
    pub(super) wr: bool,
    pub(super) max_budget: u32,
    pub(super) requests: u32,
}

/// Weights of the groups: none of the root, x, y.
const GROUP_WEIGHTS: [u64; 3] = [0, 200, 100];

pub(super) fn backlog() -> impl Strategy<Value = Backlog> {
    let flat = prop::collection::vec((0u8..8, Just(0u16)), 2..6);
    let nested = prop::collection::vec((0u8..8, 0u16..3), 2..6);
    let tasks = prop_oneof![flat, nested];
    let wr = prop::bool::weighted(0.3);
    (super::all_rules(), tasks, wr, 512u32..16384, 1000u32..4000).prop_map(
        |(rules, tasks, wr, max_budget, requests)| Backlog {
            rules,
            tasks,
            wr,
            max_budget,
            requests,
        },
    )
}

impl Backlog {
    fn weight(&self, at: usize) -> u64 {
        let own = (8 - u64::from(self.tasks[at].0)) * 10;
        match at == 0 && self.wr {
            true => own * u64::from(WR),
            false => own,
        }
    }

    /// Some task is in the group, or below it.
    fn lives(&self, group: u16) -> bool {
        self.tasks.iter().any(|&(_, of)| of >= group)
    }

    /// The part of a task or group in its parent's weight, over all levels.
    pub(super) fn ideal(&self, at: usize) -> f64 {
        let of = self.tasks[at].1;
        let mut share = self.weight(at) as f64 / self.weights_in(of) as f64;
        for group in (1..=of).rev() {
            share *= GROUP_WEIGHTS[usize::from(group)] as f64 / self.weights_in(group - 1) as f64;
        }
        share
    }

    /// Sum of the weights of tasks and of the child group in a group.
    fn weights_in(&self, group: u16) -> u64 {
        let tasks = (0..self.tasks.len()).filter(|&at| self.tasks[at].1 == group);
        let below = GROUP_WEIGHTS.get(usize::from(group) + 1);
        let below = below.filter(|_| self.lives(group + 1)).unwrap_or(&0);
        tasks.map(|at| self.weight(at)).sum::<u64>() + below
    }
}

pub(super) fn ioprio(class: IoClass, level: u8) -> IoPrio {
    IoPrio { class, level }
}

/// A device with three requests of each task, with its priority and group; the tasks start 700 ms
/// apart so that their queues are not merged.
pub(super) fn backlogged(
    rules: Rules,
    tasks: &[(IoPrio, u16)],
    mutant: Option<Mutant>,
) -> (Device, Vec<u64>) {
    let setup = Setup {
        rules,
        rotational: false,
        arms: false,
    };
    let mut device = Device::new(&setup, mutant);
    device.apply(&Action::Store("low_latency", 0));
    device.apply(&Action::Store("timeout_sync", 100_000));
    let mut next = vec![0; tasks.len()];
    for (at, &(prio, group)) in tasks.iter().enumerate() {
        device.apply(&Action::IoPrio(at as u32 + 1, prio));
        device.apply(&Action::Group(at as u32 + 1, group));
        for _ in 0..3 {
            submit(&mut device, &mut next, at);
        }
        device.wait(Duration::from_millis(700));
    }
    (device, next)
}

/// The next sequential request of a task, not adjacent to the last one.
pub(super) fn submit(device: &mut Device, next: &mut [u64], at: usize) {
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

/// Serves one request for so long, and submits the next one of its task. Returns the task.
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
    /// The first task gets weight raising that never ends. True if its weight shows it.
    fn keeps_wr(&mut self) -> bool {
        let tick = self.clocks().tick.0.cast_signed();
        let bfq = &mut self.bfq;
        let first = bfq.slot(crate::request::IoContextId(1), true, 0);
        let q = first.expect("the first task has a queue");
        let queue = &mut bfq.queues[q];
        if !queue.is_wr() {
            bfq.wr_busy_queues += i32::from(queue.flags.busy);
            queue.wr.coeff = WR;
            let e = bfq.entities.of(q);
            bfq.entities[e].prio_changed = true;
        }
        let wr = &mut bfq.queues[q].wr;
        wr.cur_max_time = 1 << 30;
        wr.last_start_finish = tick;
        wr.service = 0;
        let entity = &bfq.entities[bfq.entities.of(q)];
        entity.weight == entity.orig_weight * WR
    }

    /// Applies mutants of the service.
    pub(super) fn spoil(&mut self) {
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
            Some(Mutant::ForgetsRest) => {
                for q in 0..bfq.queues.len() as u32 {
                    bfq.queues[QId(q)].share_rest = 0;
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

/// Starts weight raising for the first task. The weight changes when its queue is activated the
/// next time; service that it is owed by then counts at the new weight, until all others had their
/// turn.
fn raise(device: &mut Device, next: &mut [u64]) -> Result<(), TestCaseError> {
    device.apply(&Action::Store("low_latency", 1));
    let mut had = vec![false; next.len()];
    let mut served = 0;
    while had[1..].contains(&false) {
        let wr = device.keeps_wr();
        let at = serve(device, next, 1)?;
        had[at] |= wr;
        served += 1;
        prop_assert!(
            served < 100_000,
            "only the task with weight raising is served"
        );
    }
    Ok(())
}

/// Of the total service each task has its weight's share, within its largest budget and one request
/// per level of groups; the budgets of the others may come before.
fn shares(backlog: &Backlog, mutant: Option<Mutant>) -> Result<(), TestCaseError> {
    let class = |&(level, group): &(u8, u16)| (ioprio(IoClass::BestEffort, level), group);
    let tasks: Vec<(IoPrio, u16)> = backlog.tasks.iter().map(class).collect();
    let (mut device, mut next) = backlogged(backlog.rules, &tasks, mutant);
    device.apply(&Action::Store("max_budget", backlog.max_budget));
    if backlog.wr {
        raise(&mut device, &mut next)?;
    }
    let mut served = vec![0u64; tasks.len()];
    // With weight raising the count starts between slots: a task that was ahead may be late
    // afterwards, each by what it was owed at its old weight as well (2.04 budgets were seen).
    let budgets = |group: u16| (1 + u64::from(group)) * (1 + 2 * u64::from(backlog.wr));
    for _ in 0..backlog.requests {
        if backlog.wr {
            device.keeps_wr();
        }
        let at = serve(&mut device, &mut next, 1)?;
        served[at] += u64::from(SECTORS);
        let total: u64 = served.iter().sum();
        for (at, &(level, group)) in backlog.tasks.iter().enumerate() {
            let ideal = (total as f64 * backlog.ideal(at)) as u64;
            let slack = (BUDGET_MAX + u64::from(SECTORS)) * budgets(group);
            prop_assert!(
                served[at].abs_diff(ideal) <= slack,
                "task {} of level {} in group {} has {} of {} sectors, ideally {}",
                at + 1,
                level,
                group,
                served[at],
                total,
                ideal
            );
        }
    }
    Ok(())
}

/// No task starves, with best effort and idle classes together.
fn everybody_is_served(
    rules: Rules,
    levels: &[u8],
    idle: usize,
    mutant: Option<Mutant>,
) -> Result<(), TestCaseError> {
    let best_effort = |&level: &u8| (ioprio(IoClass::BestEffort, level), 0);
    let mut prios: Vec<(IoPrio, u16)> = levels.iter().map(best_effort).collect();
    prios.resize(levels.len() + idle, (ioprio(IoClass::Idle, 7), 0));
    let (mut device, mut next) = backlogged(rules, &prios, mutant);
    device.apply(&Action::Store("timeout_sync", 124));
    let mut last = vec![device.now; prios.len()];
    // 124 ms per slot, ten times as many of the heaviest task as of the lightest, and IDLE every
    // 200 ms.
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

pub(super) fn config(cases: u32) -> Config {
    Config {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::with_cases(cases)
    }
}

fn shares_are_caught(mutant: Mutant) {
    let flat = backlog().prop_map(|backlog| Backlog {
        wr: false,
        ..backlog
    });
    let result = TestRunner::new(config(64)).run(&flat, |b| shares(&b, Some(mutant)));
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
    fn nobody_starves(
        rules in prop::sample::select(Rules::of_path(false).collect::<Vec<_>>()),
        levels in prop::collection::vec(0u8..8, 1..4),
        idle in 1usize..3,
    ) {
        everybody_is_served(rules, &levels, idle, None)?;
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
    let starved = everybody_is_served(Rules::v6_1(), &[4], 1, Some(Mutant::IdleNever));
    let said = starved.expect_err("the mutant was not found").to_string();
    assert!(said.contains("starves"), "{said}");
}
