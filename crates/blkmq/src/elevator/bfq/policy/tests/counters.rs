//! Readings for plots: the ideal shares of all queues add up to the sectors served.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::device::{Device, Mutant, Setup};
use super::service::{Backlog, SECTORS, backlog, backlogged, config, ioprio, submit};
use super::{Action, actions, setup};
use crate::elevator::Scheduler;
use crate::env::Which;
use crate::request::{IoClass, IoPrio};
use crate::time::Duration;

/// Parts of a sector that shares are kept in.
const PARTS: u64 = 1 << 20;

/// Sectors served since the last call, and the share of each queue in them.
fn curves(device: &mut Device) -> (u64, Vec<(Which, u64)>) {
    let (mut service, mut shares) = (0, Vec::new());
    device
        .bfq
        .take_readings(&mut |reading| match reading.counter.name {
            "service received" => service += reading.value,
            "ideal share" => shares.push((reading.which, reading.value)),
            _ => {}
        });
    (service, shares)
}

/// The unshown parts of sectors of each queue, by its address.
fn kept(device: &Device) -> Vec<(u64, u64)> {
    let all = device.bfq.queues.iter();
    all.map(|(_, queue)| (queue.address, queue.share_rest))
        .collect()
}

/// Under any actions, sectors are shared out to the last part.
fn nothing_is_left_over(setup: &Setup, actions: &[Action]) -> Result<(), TestCaseError> {
    let mut device = Device::new(setup, None);
    for action in actions {
        let before = kept(&device);
        if !matches!(action, Action::Dispatch) {
            device.apply(action);
            continue;
        }
        device.dispatch();
        let (service, shares) = curves(&mut device);
        let shares: u64 = shares.iter().map(|(_, share)| share).sum();
        let after = kept(&device);
        // The unshown parts of a freed queue are lost.
        let stays = |address: u64| after.iter().any(|&(other, _)| other == address);
        let before = before.iter().filter(|&&(address, _)| stays(address));
        let before: u64 = before.map(|(_, rest)| rest).sum();
        let after: u64 = after.iter().map(|(_, rest)| rest).sum();
        prop_assert_eq!(shares * PARTS + after, service * PARTS + before);
    }
    Ok(())
}

/// While all queues are busy, the share of each follows its weight and its group's, to a sector.
fn shares_are_those_of_weights(
    backlog: &Backlog,
    mutant: Option<Mutant>,
) -> Result<(), TestCaseError> {
    let task = |&(level, group): &(u8, u16)| (ioprio(IoClass::BestEffort, level), group);
    let tasks: Vec<(IoPrio, u16)> = backlog.tasks.iter().map(task).collect();
    let (mut device, mut next) = backlogged(backlog.rules, &tasks, mutant);
    device.apply(&Action::Store("max_budget", backlog.max_budget));
    let mut ideal = vec![0; tasks.len()];
    for _ in 0..backlog.requests {
        for (which, share) in serve(&mut device, &mut next)? {
            let Which::Queue { pid, .. } = which else {
                panic!("a share of no queue");
            };
            ideal[pid as usize - 1] += share;
        }
    }
    let total = u64::from(backlog.requests) * u64::from(SECTORS);
    let all: u64 = ideal.iter().sum();
    let most = ideal.len() as u64;
    prop_assert!(
        all <= total && total - all < most,
        "{all} of {total} sectors are shared out"
    );
    for (at, &share) in ideal.iter().enumerate() {
        let own = (total as f64 * backlog.ideal(at)) as u64;
        prop_assert!(
            own.abs_diff(share) <= 1,
            "{share} sectors of {total}, not {own}"
        );
    }
    Ok(())
}

/// Serves one request, and submits the next one of its task. Returns the shares in it.
fn serve(device: &mut Device, next: &mut [u64]) -> Result<Vec<(Which, u64)>, TestCaseError> {
    prop_assert!(device.dispatch(), "all have requests");
    let (_, shares) = curves(device);
    let rq = device.with_driver.pop().expect("one was dispatched");
    let at = device.pool[rq].io_context.0 as usize - 1;
    device.wait(Duration::from_micros(1));
    device.finish(rq);
    submit(device, next, at);
    device.spoil();
    Ok(shares)
}

proptest! {
    #[test]
    fn what_is_served_is_shared_out(setup in setup(), actions in actions()) {
        nothing_is_left_over(&setup, &actions)?;
    }
}

/// No queue gets weight raising, so weights stay the same.
fn unraised() -> impl Strategy<Value = Backlog> {
    backlog().prop_map(|backlog| Backlog {
        wr: false,
        ..backlog
    })
}

proptest! {
    #![proptest_config(config(24))]
    #[test]
    fn ideal_shares_are_those_of_weights(backlog in unraised()) {
        shares_are_those_of_weights(&backlog, None)?;
    }
}

#[test]
fn parts_of_sectors_that_are_forgotten_are_caught() {
    let mutant = Mutant::ForgetsRest;
    let result = TestRunner::new(config(64)).run(&unraised(), |backlog| {
        shares_are_those_of_weights(&backlog, Some(mutant))
    });
    super::says(result, mutant, "are shared out");
}

/// Two busy queues, then only one: it gets all, the other one nothing.
#[test]
fn who_is_not_busy_has_no_share() {
    let prios = [
        (ioprio(IoClass::BestEffort, 4), 0),
        (ioprio(IoClass::BestEffort, 0), 0),
    ];
    let (mut device, _) = backlogged(crate::rules::Rules::v6_1(), &prios, None);
    device.apply(&Action::Store("slice_idle", 0));
    let mut served = Vec::new();
    while device.dispatch() {
        let (service, shares) = curves(&mut device);
        let rq = device.with_driver.pop().expect("one was dispatched");
        device.finish(rq);
        assert_eq!(service, u64::from(SECTORS));
        served.push(shares.iter().map(|&(_, share)| share).collect::<Vec<_>>());
    }
    // Weights 40 and 80, three requests each; both queues are busy until one of them is empty.
    assert_eq!(served.len(), 6);
    assert_eq!(served[0], [85, 170], "a third and two thirds");
    assert_eq!(served[5], [256], "the last one");
}
