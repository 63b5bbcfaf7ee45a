//! scsi_debug and the mid-layer: budgets, restarts, blocked states, polling.

use super::super::mid_layer::MidLayer;
use crate::device::Action;
use crate::device::bench::{Bench, Io, random_ios, reads, scsi_debug};
use crate::plan::{BusyKind, DeviceKind, DevicePlan};
use blkmq::request::{CpuId, Op, RequestId, Status};
use blkmq::rules::Rules;
use blkmq::time::Duration;
use proptest::prelude::*;

fn with_delay(mut plan: DevicePlan, delay: Duration, random: bool) -> DevicePlan {
    let DeviceKind::ScsiDebug(kind) = &mut plan.kind else {
        panic!("it is scsi_debug");
    };
    kind.delay = delay;
    kind.random = random;
    plan
}

const RUN_NOW: Action = Action::RunQueues {
    unit: Some(0),
    delay: Duration::ZERO,
};
const RUN_LATER: Action = Action::RunQueues {
    unit: Some(0),
    delay: Duration(3_000_000),
};

#[test]
fn a_command_is_answered_by_a_timer_of_its_cpu() {
    let mut bench = Bench::new(&scsi_debug(4), &Rules::v6_12(), 1);
    bench.run(&reads(1)).expect("drains");
    let expected = Action::Interrupt {
        after: Duration::from_micros(10),
        cpu: CpuId(0),
        vector: 0,
    };
    assert_eq!(bench.actions[0].1, expected);
    assert_eq!(bench.ended[0].at.0, 10_000);
}

#[test]
fn no_delay_answers_in_the_submitting_thread() {
    let plan = with_delay(scsi_debug(4), Duration::ZERO, false);
    let mut bench = Bench::new(&plan, &Rules::v6_12(), 1);
    bench.run(&reads(1)).expect("drains");
    let (rq, status) = (RequestId(0), Status::Ok);
    assert_eq!(bench.actions[0].1, Action::Complete { rq, status });
}

/// Writes and flushes, when each was answered, in microseconds.
fn answered(ops: &[Op]) -> Vec<u64> {
    let mut plan = scsi_debug(1);
    let DeviceKind::ScsiDebug(kind) = &mut plan.kind else {
        panic!("it is scsi_debug");
    };
    kind.sync_delay = Duration::from_micros(100);
    let io = |&op: &Op| Io { op, ..reads(1)[0] };
    let ios: Vec<Io> = ops.iter().map(io).collect();
    let mut bench = Bench::new(&plan, &Rules::v6_12(), 1);
    bench.run(&ios).expect("drains");
    bench.ended.iter().map(|end| end.at.0 / 1000).collect()
}

#[test]
fn a_cache_is_synchronized_for_long_if_something_was_written() {
    let (write, flush) = (Op::Write, Op::Flush);
    // One at a time, and a microsecond or so from one to the next.
    let about = |ops: &[Op], expected: &[u64]| {
        let answered = answered(ops);
        assert_eq!(answered.len(), expected.len());
        for (at, expected) in answered.iter().zip(expected) {
            assert!((*expected..expected + 5).contains(at), "{answered:?}");
        }
    };
    about(&[write, flush], &[10, 110]);
    about(&[flush, write, flush, flush], &[0, 10, 110, 110]);
    about(&[Op::Read, flush], &[10, 10]);
}

#[test]
fn the_unit_takes_its_depth_and_completions_restart_the_rest() {
    let mut bench = Bench::new(&scsi_debug(4), &Rules::v6_12(), 1);
    bench.run(&reads(40)).expect("drains");
    assert_eq!(bench.in_flight_max, 4);
    let runs = bench
        .actions
        .iter()
        .filter(|(_, action)| *action == RUN_NOW);
    assert!(runs.count() >= 9);
}

#[test]
fn without_the_restarts_a_queue_hangs() {
    let mut bench = Bench::new(&scsi_debug(4), &Rules::v6_12(), 1);
    bench.forgets = |action| *action == RUN_NOW;
    let left = bench.run(&reads(40)).expect_err("the queue is not run");
    assert!(left.contains("0 of 4 budgets used"), "{left}");
}

#[test]
fn a_failure_with_nothing_in_flight_comes_back_after_3_ms() {
    let mut layer = MidLayer::new(1, 1, 2);
    let mut out = Vec::new();
    let token = layer.get_budget(0, &mut out).expect("it is free");
    assert!(layer.admit(RequestId(0), token));
    layer.reject(RequestId(0), BusyKind::DevResource);
    // The blocked unit counts its three looks down, each 3 ms after the one before.
    assert_eq!(layer.get_budget(0, &mut out), None);
    assert_eq!(layer.get_budget(0, &mut out), None);
    assert_eq!(out, [RUN_LATER, RUN_LATER]);
    assert!(layer.get_budget(0, &mut out).is_some());
}

#[test]
fn a_completion_unblocks_and_runs_once_for_all_failures() {
    let mut layer = MidLayer::new(1, 2, 2);
    let mut out = Vec::new();
    let first = layer.get_budget(0, &mut out).expect("free");
    assert!(layer.admit(RequestId(0), first));
    let second = layer.get_budget(0, &mut out).expect("free");
    assert!(layer.admit(RequestId(1), second));
    layer.reject(RequestId(1), BusyKind::DevResource);
    // Blocked with a command in flight: its completion will see the two failures.
    assert_eq!(layer.get_budget(0, &mut out), None);
    assert_eq!(layer.get_budget(0, &mut out), None);
    assert_eq!(out, []);
    layer.ended(RequestId(0), &mut out);
    assert_eq!(out, [RUN_NOW]);
    assert!(layer.get_budget(0, &mut out).is_some());
    assert!(layer.get_budget(0, &mut out).is_some());
}

#[test]
fn a_blocked_host_starves_the_unit_until_a_completion() {
    let mut layer = MidLayer::new(1, 3, 3);
    let mut out = Vec::new();
    let get = |layer: &mut MidLayer| layer.get_budget(0, &mut Vec::new()).expect("free");
    let token = get(&mut layer);
    assert!(layer.admit(RequestId(0), token));
    let token = get(&mut layer);
    assert!(layer.admit(RequestId(1), token));
    layer.reject(RequestId(1), BusyKind::Resource);
    let token = get(&mut layer);
    assert!(
        !layer.admit(RequestId(1), token),
        "the host has one in flight"
    );
    layer.ended(RequestId(0), &mut out);
    assert_eq!(out, [RUN_NOW], "for the starved list");
    let token = get(&mut layer);
    assert!(layer.admit(RequestId(1), token));
    // Rejected again, now with an idle host: seven offers count it down.
    layer.reject(RequestId(1), BusyKind::Resource);
    for _ in 0..6 {
        let token = get(&mut layer);
        assert!(!layer.admit(RequestId(1), token));
    }
    let token = get(&mut layer);
    assert!(layer.admit(RequestId(1), token));
}

/// Each unit has its depth; the host's limit and its blocked state are common.
#[test]
fn units_have_budgets_of_their_own() {
    let mut layer = MidLayer::new(2, 1, 4);
    let mut out = Vec::new();
    let first = layer.get_budget(0, &mut out).expect("free");
    assert_eq!(layer.get_budget(0, &mut out), None);
    let second = layer.get_budget(1, &mut out).expect("free");
    assert!(layer.admit(RequestId(0), first));
    assert!(layer.admit(RequestId(2), second));
    assert_eq!(layer.host_busy(), 2);
    assert_eq!(out, []);
    // No hctx waits for a budget of unit 1.
    layer.ended(RequestId(2), &mut out);
    assert_eq!(out, []);
    layer.ended(RequestId(0), &mut out);
    assert_eq!(out, [RUN_NOW]);
    assert!(layer.describe().contains("unit 1: 0 of 1 budgets used"));
}

/// A host that was busy for one unit runs that unit's queue when another unit's command ends.
#[test]
fn a_starved_unit_is_run_by_the_end_of_another() {
    let mut layer = MidLayer::new(2, 2, 8);
    let mut out = Vec::new();
    let get = |layer: &mut MidLayer, unit| layer.get_budget(unit, &mut Vec::new()).expect("free");
    let token = get(&mut layer, 0);
    assert!(layer.admit(RequestId(0), token));
    let token = get(&mut layer, 1);
    assert!(layer.admit(RequestId(4), token));
    layer.reject(RequestId(4), BusyKind::Resource);
    let token = get(&mut layer, 1);
    assert!(!layer.admit(RequestId(4), token));
    layer.ended(RequestId(0), &mut out);
    let run = |unit| Action::RunQueues {
        unit: Some(unit),
        delay: Duration::ZERO,
    };
    assert_eq!(out, [run(1), run(0)]);
}

#[test]
#[should_panic(expected = "came back twice")]
fn a_token_returned_twice_is_noticed() {
    let mut layer = MidLayer::new(1, 1, 1);
    let token = layer.get_budget(0, &mut Vec::new()).expect("free");
    layer.put_budget(token);
    layer.put_budget(token);
}

#[test]
fn polled_commands_are_found_when_due() {
    let mut plan = scsi_debug(64);
    plan.poll_queues = 1;
    let mut bench = Bench::new(&plan, &Rules::v6_12(), 1);
    let ios: Vec<Io> = reads(10)
        .into_iter()
        .map(|io| Io { hctx: 1, ..io })
        .collect();
    bench.run(&ios).expect("drains");
    assert_eq!(bench.interrupts, 0);
    assert!(bench.ended.iter().all(|ended| ended.at.0 >= 10_000));
    let found = bench
        .device
        .poll(blkmq::request::HctxId(0), bench.now, &mut vec![]);
    assert_eq!(found, None);
}

proptest! {
    /// No command is lost, whatever the depth; never more in flight than the unit takes.
    #[test]
    fn everything_drains(
        seed in 0u64..1000,
        lun_depth in 1u32..30,
        depth in 1u32..20,
        delay in prop::sample::select(vec![0u64, 1, 700, 20_000]),
        random: bool,
        late_ns in 0u64..30_000,
    ) {
        let mut plan = with_delay(scsi_debug(lun_depth), Duration(delay), random);
        plan.default_queues = 2;
        plan.poll_queues = 1;
        plan.queue_depth = depth;
        let mut bench = Bench::new(&plan, &Rules::v6_1(), seed);
        bench.late_ns = late_ns;
        let ios = random_ios(seed, 300, 3, 2_000);
        prop_assert_eq!(bench.run(&ios), Ok(()));
        prop_assert!(bench.in_flight_max <= lun_depth);
        for ended in &bench.ended {
            let took = ended.at.since(ended.issued).0;
            let at_once = ios[ended.io].op == Op::Flush;
            prop_assert!(random || at_once || took >= delay);
        }
    }
}
