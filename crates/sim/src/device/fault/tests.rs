//! Faults: each kind by itself, over every device; no kind changes the draws of another.

use crate::device::bench::{Bench, Io, null_blk, nvme, plan, random_ios, reads, scsi_debug};
use crate::device::fault::Faulty;
use crate::device::{Action, Actions, Command, Device, DeviceSetup, Found, Reply};
use crate::plan::{BusyKind, DeviceId, DeviceKind, DevicePlan, IrqMode, Jitter, Ratio};
use blkmq::request::{CpuId, HctxId, Op, OpFlags, RequestId, Sector, Sectors, Status};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};
use proptest::prelude::*;
use std::collections::BTreeSet;

const ALWAYS: Ratio = one_in(1);

const fn one_in(denominator: u32) -> Ratio {
    Ratio {
        numerator: 1,
        denominator,
    }
}

fn devices() -> Vec<DevicePlan> {
    let null = |irqmode| plan(DeviceKind::NullBlk(null_blk(irqmode)));
    let mut all = vec![
        null(IrqMode::None),
        null(IrqMode::Softirq),
        null(IrqMode::Timer),
        plan(DeviceKind::Nvme(nvme(4))),
        scsi_debug(7),
    ];
    for plan in &mut all {
        plan.default_queues = 2;
        plan.poll_queues = 1;
        plan.queue_depth = 10;
    }
    all
}

fn ios(seed: u64) -> Vec<Io> {
    random_ios(seed, 300, 3, 4_000)
}

fn with_status(bench: &Bench, status: Status) -> BTreeSet<usize> {
    let hit = bench.ended.iter().filter(|ended| ended.status == status);
    hit.map(|ended| ended.io).collect()
}

/// A read of 4 KiB on hctx 0.
fn read(slot: u32, last: bool) -> Command {
    Command {
        rq: RequestId(slot),
        unit: 0,
        hctx: HctxId(0),
        cpu: CpuId(0),
        op: Op::Read,
        flags: OpFlags::default(),
        sector: Sector(0),
        sectors: Sectors(8),
        polled: false,
        last,
        of_plug: false,
        budget: None,
        since_start: Duration::ZERO,
    }
}

fn timer_null_blk() -> DevicePlan {
    plan(DeviceKind::NullBlk(null_blk(IrqMode::Timer)))
}

#[test]
fn busy_is_drawn_at_each_offer_and_comes_back() {
    for mut plan in devices() {
        plan.fault.busy = one_in(3);
        for busy_kind in [BusyKind::Resource, BusyKind::DevResource] {
            plan.fault.busy_kind = busy_kind;
            let mut bench = Bench::new(&plan, &Rules::v6_12(), 7);
            assert_eq!(bench.run(&ios(7)), Ok(()), "{:?}", plan.kind);
            assert!(bench.refusals > 20, "{:?}: {}", plan.kind, bench.refusals);
        }
    }
}

#[test]
fn requeue_is_drawn_at_each_offer_and_comes_back() {
    for mut plan in devices() {
        plan.fault.requeue = one_in(3);
        let mut bench = Bench::new(&plan, &Rules::v6_12(), 7);
        assert_eq!(bench.run(&ios(7)), Ok(()), "{:?}", plan.kind);
        assert!(bench.refusals > 20, "{:?}: {}", plan.kind, bench.refusals);
    }
}

#[test]
fn errors_come_with_the_completion() {
    for mut plan in devices() {
        plan.fault.error = one_in(10);
        let mut bench = Bench::new(&plan, &Rules::v6_12(), 7);
        bench.run(&ios(7)).expect("drains");
        let failed = with_status(&bench, Status::IoError).len();
        assert!((15..=50).contains(&failed), "{:?}: {failed}", plan.kind);
        assert_eq!(failed + with_status(&bench, Status::Ok).len(), 300);
    }
}

#[test]
fn a_timeout_ends_a_command_after_io_timeout() {
    for mut plan in devices() {
        plan.fault.timeout = one_in(10);
        let mut bench = Bench::new(&plan, &Rules::v6_12(), 7);
        bench.run(&ios(7)).expect("drains");
        let timed_out = with_status(&bench, Status::Timeout);
        assert!(timed_out.len() > 10, "{:?}", plan.kind);
        for ended in &bench.ended {
            let waited = ended.at.since(ended.issued).0 == 5_000_000_000;
            assert_eq!(waited, timed_out.contains(&ended.io), "{ended:?}");
        }
    }
}

#[test]
fn a_lost_completion_is_a_stall_that_is_reported() {
    for mut plan in devices() {
        plan.fault.lost_completion = one_in(50);
        let mut bench = Bench::new(&plan, &Rules::v6_12(), 7);
        let left = bench.run(&ios(7)).expect_err("some are never answered");
        assert!(left.contains("lost for good"), "{left}");
        assert!(bench.device.in_flight() > 0);
    }
}

#[test]
fn the_first_commands_are_spared() {
    let mut plan = timer_null_blk();
    plan.fault.error = ALWAYS;
    plan.fault.after_commands = 100;
    let mut bench = Bench::new(&plan, &Rules::v6_12(), 7);
    bench.run(&reads(150)).expect("drains");
    assert_eq!(with_status(&bench, Status::IoError), (100..150).collect());
}

#[test]
fn dev_resource_needs_a_command_that_will_be_answered() {
    // Always busy after the first, which is lost: only RESOURCE gets another look, so that the run
    // offers for ever; with DEV_RESOURCE it would stall.
    let mut plan = timer_null_blk();
    plan.fault.busy = one_in(2);
    plan.fault.busy_kind = BusyKind::DevResource;
    for seed in 0..50 {
        let mut bench = Bench::new(&plan, &Rules::v6_12(), seed);
        // One at a time: no command is in flight when the next is offered.
        let mut ios = reads(5);
        for (index, io) in ios.iter_mut().enumerate() {
            io.at = SimTime(index as u64 * 50_000_000);
        }
        assert_eq!(bench.run(&ios), Ok(()), "seed {seed}");
    }
}

#[test]
fn one_kind_of_fault_moves_no_other() {
    let run = |timeout: Ratio, busy: Ratio| {
        let mut plan = timer_null_blk();
        plan.fault.error = one_in(5);
        plan.fault.timeout = timeout;
        plan.fault.busy = busy;
        let mut bench = Bench::new(&plan, &Rules::v6_12(), 3);
        bench.run(&reads(64)).expect("drains");
        bench
    };
    let alone = with_status(&run(Ratio::NEVER, Ratio::NEVER), Status::IoError);
    let busy = with_status(&run(Ratio::NEVER, one_in(4)), Status::IoError);
    assert_eq!(alone, busy);
    let both = run(one_in(6), Ratio::NEVER);
    let timed_out = with_status(&both, Status::Timeout);
    let failed = with_status(&both, Status::IoError);
    assert!(!timed_out.is_empty());
    assert_eq!(failed, alone.difference(&timed_out).copied().collect());
}

#[test]
fn a_refused_command_keeps_its_fate() {
    let run = |mbps: u32| {
        let mut kind = null_blk(IrqMode::Softirq);
        kind.mbps = mbps;
        let mut plan = plan(DeviceKind::NullBlk(kind));
        plan.fault.error = one_in(5);
        let mut bench = Bench::new(&plan, &Rules::v6_12(), 3);
        bench.run(&reads(64)).expect("drains");
        (with_status(&bench, Status::IoError), bench.refusals)
    };
    let ((free, none), (limited, some)) = (run(0), run(1));
    assert_eq!(free, limited);
    assert!(none == 0 && some > 5, "{none}, {some}");
}

#[test]
fn the_service_times_do_not_move_either() {
    let run = |error: Ratio| {
        let mut drive = nvme(2);
        drive.jitter = Jitter::Percent(50);
        let mut plan = plan(DeviceKind::Nvme(drive));
        plan.fault.error = error;
        let mut bench = Bench::new(&plan, &Rules::v6_12(), 3);
        bench.run(&reads(200)).expect("drains");
        bench
            .ended
            .iter()
            .map(|ended| (ended.io, ended.at))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(Ratio::NEVER), run(one_in(3)));
}

#[test]
fn v6_1_null_blk_starts_what_it_refuses() {
    for (rules, started) in [(Rules::v6_1(), true), (Rules::v6_12(), false)] {
        let mut plan = timer_null_blk();
        plan.fault.busy = ALWAYS;
        let mut bench = Bench::new(&plan, &rules, 1);
        let reply = bench
            .device
            .queue_rq(&read(0, true), bench.now, &mut Vec::new());
        assert_eq!(reply.started, started);
    }
}

#[test]
fn a_swallowed_last_command_still_rings_for_those_before_it() {
    let mut plan = plan(DeviceKind::Nvme(nvme(4)));
    plan.fault.timeout = ALWAYS;
    plan.fault.after_commands = 1;
    let mut device = Bench::new(&plan, &Rules::v6_12(), 1).device;
    let mut out = Vec::new();
    device.queue_rq(&read(0, false), SimTime::ZERO, &mut out);
    assert_eq!(out, [], "more was to follow");
    device.queue_rq(&read(1, true), SimTime::ZERO, &mut out);
    let after: Vec<u64> = out
        .iter()
        .map(|action| match action {
            Action::Timer { after, .. } => after.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(after, [10_000, 5_000_000_000], "service, then the timeout");
}

#[test]
fn a_forgotten_timeout_timer_is_a_stall() {
    let mut plan = timer_null_blk();
    plan.fault.timeout = ALWAYS;
    let mut bench = Bench::new(&plan, &Rules::v6_12(), 1);
    bench.forgets = |action| matches!(action, Action::Timer { .. });
    assert!(bench.run(&reads(1)).is_err());
}

/// A device of no kernel, written without faults in mind: it ends each command after a microsecond.
#[derive(Debug, Default)]
struct Plain {
    in_flight: u32,
}

impl Device for Plain {
    fn get_budget(&mut self, _unit: u16, _now: SimTime, _out: &mut Actions) -> Option<u32> {
        None
    }

    fn put_budget(&mut self, _token: u32) {}

    fn queue_rq(&mut self, command: &Command, _now: SimTime, out: &mut Actions) -> Reply {
        self.in_flight += 1;
        out.push(Action::Timer {
            after: Duration(1_000),
            mark: u64::from(command.rq.0),
        });
        Reply::ACCEPTED
    }

    fn commit_rqs(&mut self, _hctx: HctxId, _cpu: CpuId, _now: SimTime, _out: &mut Actions) {}

    fn timer(&mut self, mark: u64, _now: SimTime, out: &mut Actions) {
        self.in_flight -= 1;
        out.push(Action::Complete {
            rq: RequestId(mark as u32),
            status: Status::Ok,
        });
    }

    fn interrupt(&mut self, _: u32, _: SimTime, _: &mut Actions) -> Option<Found> {
        None
    }

    fn poll(&mut self, _: HctxId, _: SimTime, _: &mut Actions) -> Option<Found> {
        None
    }

    fn due_after(&self, _now: SimTime) -> Option<SimTime> {
        None
    }

    fn ended(&mut self, _rq: RequestId, _now: SimTime, _out: &mut Actions) {}

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn describe(&self) -> String {
        format!("plain: {} in flight", self.in_flight)
    }
}

#[test]
fn any_device_can_be_faulty() {
    let mut plan = timer_null_blk();
    plan.fault.busy = one_in(3);
    plan.fault.requeue = one_in(5);
    plan.fault.error = one_in(7);
    plan.fault.timeout = one_in(9);
    let setup = DeviceSetup {
        plan: &plan,
        rules: &Rules::v6_12(),
        io_timeout: Duration::from_secs(5),
        seed: 7,
        device: DeviceId(0),
        vector_cpus: &[CpuId(0)],
        requests: plan.queue_depth,
        units: 1,
    };
    let mut bench = Bench::new(&plan, &Rules::v6_12(), 7);
    bench.device = Box::new(Faulty::new(Plain::default(), &setup));
    assert_eq!(bench.run(&reads(300)), Ok(()));
    assert!(bench.refusals > 20, "{}", bench.refusals);
    for status in [Status::IoError, Status::Timeout] {
        assert!(with_status(&bench, status).len() > 5, "{status:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// All faults but lost completions at once: every command ends, once.
    #[test]
    fn everything_drains(
        seed in 0u64..1000,
        which in 0usize..5,
        busy in 2u32..20,
        dev_resource: bool,
        error in 1u32..20,
        timeout in 1u32..20,
        after_commands in 0u64..200,
        v6_12: bool,
    ) {
        let mut plan = devices().swap_remove(which);
        plan.fault.busy = one_in(busy);
        if dev_resource {
            plan.fault.busy_kind = BusyKind::DevResource;
        }
        plan.fault.error = one_in(error);
        plan.fault.timeout = one_in(timeout);
        plan.fault.after_commands = after_commands;
        let rules = if v6_12 { Rules::v6_12() } else { Rules::v6_1() };
        let mut bench = Bench::new(&plan, &rules, seed);
        prop_assert_eq!(bench.run(&ios(seed)), Ok(()));
        let faults = bench.ended.iter().filter(|e| e.status != Status::Ok);
        if let Some(at) = faults.map(|e| e.issued).min() {
            let before = bench.ended.iter().filter(|e| e.issued <= at).count();
            prop_assert!(before as u64 > after_commands);
        }
    }
}
