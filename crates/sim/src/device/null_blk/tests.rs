//! null_blk: each completion mode, the poll list, the bandwidth limit of both kernels.

use crate::device::Action;
use crate::device::bench::{Bench, Io, null_blk, plan, random_ios, reads};
use crate::device::command_timers::CommandTimers;
use crate::plan::{DeviceId, DeviceKind, DevicePlan, IrqMode, NullBlkPlan};
use blkmq::request::{CpuId, HctxId, Op, RequestId, Status};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};
use proptest::prelude::*;

fn device(null_blk: NullBlkPlan) -> DevicePlan {
    plan(DeviceKind::NullBlk(null_blk))
}

fn first_action(irqmode: IrqMode) -> Action {
    let mut bench = Bench::new(&device(null_blk(irqmode)), &Rules::v6_12(), 1);
    bench.run(&reads(1)).expect("drains");
    assert_eq!(bench.actions.len(), 1);
    assert_eq!(bench.ended.len(), 1);
    bench.actions[0].1
}

#[test]
fn each_irqmode_asks_for_its_own_completion() {
    let (rq, status) = (RequestId(0), Status::Ok);
    assert_eq!(first_action(IrqMode::None), Action::End { rq, status });
    assert_eq!(
        first_action(IrqMode::Softirq),
        Action::Complete { rq, status }
    );
    assert_eq!(
        first_action(IrqMode::Timer),
        Action::Interrupt {
            after: Duration::from_micros(10),
            cpu: CpuId(0),
            vector: 0
        }
    );
}

#[test]
fn a_timer_serves_all_side_by_side() {
    let mut bench = Bench::new(&device(null_blk(IrqMode::Timer)), &Rules::v6_12(), 1);
    bench.run(&reads(64)).expect("drains");
    assert_eq!(bench.in_flight_max, 64);
    for ended in &bench.ended {
        assert_eq!(ended.at.since(ended.issued), Duration::from_micros(10));
    }
}

#[test]
fn times_of_commands_may_differ() {
    let mut shaky = null_blk(IrqMode::Timer);
    shaky.jitter_percent = 50;
    let mut bench = Bench::new(&device(shaky), &Rules::v6_12(), 1);
    bench.run(&reads(64)).expect("drains");
    let times = bench.ended.iter().map(|e| e.at.since(e.issued).0);
    let times: Vec<u64> = times.collect();
    let bounds = 5_000..=15_000;
    assert!(times.iter().all(|ns| bounds.contains(ns)), "{times:?}");
    assert!(times.iter().any(|ns| *ns < 8_000), "{times:?}");
    assert!(times.iter().any(|ns| *ns > 12_000), "{times:?}");
}

#[test]
fn a_handler_does_not_take_the_next_command_of_its_slot() {
    // One slot: the next command reuses it while the handler still looks.
    let mut one = device(null_blk(IrqMode::Timer));
    one.queue_depth = 1;
    let mut bench = Bench::new(&one, &Rules::v6_12(), 1);
    bench.run(&reads(5)).expect("drains");
    let times: Vec<u64> = bench.ended.iter().map(|ended| ended.at.0).collect();
    assert_eq!(times, [10_000, 20_000, 30_000, 40_000, 50_000]);
}

#[test]
fn an_interrupt_is_trusted_before_the_clock() {
    let mut timers = CommandTimers::new(1);
    let rq = RequestId(0);
    // Armed by a CPU whose clock is ahead of the handler's.
    timers.arm(rq, SimTime(100));
    assert!(timers.take(rq, SimTime(90)));
    // Issued again before that handler looks a second time.
    timers.arm(rq, SimTime(200));
    assert!(!timers.take(rq, SimTime(95)));
    assert!(timers.take(rq, SimTime(190)));
    assert!(!timers.take(rq, SimTime(195)));
    assert!(!timers.take(rq, SimTime(1000)), "nothing is armed");
}

#[test]
fn a_poller_takes_what_the_list_held_when_it_came() {
    let mut polled = device(null_blk(IrqMode::Softirq));
    polled.poll_queues = 1;
    let mut bench = Bench::new(&polled, &Rules::v6_12(), 1);
    let hctx = HctxId(1);
    let issue = |bench: &mut Bench, slot: u32| {
        let mut out = Vec::new();
        let command = crate::device::Command {
            unit: 0,
            rq: RequestId(slot),
            hctx,
            cpu: CpuId(0),
            op: Op::Read,
            flags: blkmq::request::OpFlags::default(),
            sector: blkmq::request::Sector(0),
            sectors: blkmq::request::Sectors(8),
            polled: true,
            last: true,
            of_plug: false,
            budget: None,
            since_start: Duration::ZERO,
        };
        bench.device.queue_rq(&command, SimTime::ZERO, &mut out);
        assert_eq!(out, []);
    };
    let poll = |bench: &mut Bench| {
        let found = bench.device.poll(hctx, SimTime::ZERO, &mut Vec::new());
        found.map(|found| found.rq.0)
    };
    issue(&mut bench, 64);
    issue(&mut bench, 65);
    assert_eq!(poll(&mut bench), Some(64));
    issue(&mut bench, 66);
    assert_eq!(poll(&mut bench), Some(65));
    assert_eq!(poll(&mut bench), None);
    assert_eq!(bench.device.in_flight(), 1);
    assert_eq!(poll(&mut bench), Some(66));
    assert_eq!(poll(&mut bench), None);
    assert_eq!(
        bench.device.poll(HctxId(0), SimTime::ZERO, &mut vec![]),
        None
    );
}

fn throttled(mbps: u32) -> DevicePlan {
    let mut plan = null_blk(IrqMode::Softirq);
    plan.mbps = mbps;
    device(plan)
}

#[test]
fn a_limit_of_1_mib_lets_5_blocks_pass_a_tick() {
    // 20971 bytes a tick: five blocks of 4 KiB, and the sixth stops the queues.
    for rules in Rules::PRESETS {
        let mut bench = Bench::new(&throttled(1), &rules, 1);
        bench.run(&reads(15)).expect("drains");
        let in_tick = |tick: u64| {
            let ticks = bench
                .ended
                .iter()
                .map(|ended| ended.issued.0.div_ceil(20_000_000));
            ticks.filter(|t| *t == tick).count()
        };
        // The stopped timer expires at once when the first command wakes it: two budgets at zero.
        assert_eq!((in_tick(0), in_tick(1)), (10, 5), "{}", rules.name);
        assert_eq!(bench.refusals, 2);
    }
}

#[test]
fn v6_1_starts_a_request_that_it_then_refuses() {
    let refusal = |rules: Rules| {
        let mut device = crate::device::make(&crate::device::DeviceSetup {
            plan: &throttled(1),
            rules: &rules,
            io_timeout: Duration::from_secs(5),
            seed: 1,
            device: DeviceId(0),
            vector_cpus: &[CpuId(0)],
            requests: 64,
            units: 1,
        });
        let command = crate::device::Command {
            unit: 0,
            rq: RequestId(0),
            hctx: HctxId(0),
            cpu: CpuId(0),
            op: Op::Write,
            flags: blkmq::request::OpFlags::default(),
            sector: blkmq::request::Sector(0),
            sectors: blkmq::request::Sectors(64),
            polled: false,
            last: true,
            of_plug: false,
            budget: None,
            since_start: Duration::ZERO,
        };
        device.queue_rq(&command, SimTime::ZERO, &mut Vec::new())
    };
    assert!(refusal(Rules::v6_1()).started);
    assert!(!refusal(Rules::v6_12()).started);
}

#[test]
fn v6_1_does_not_limit_polled_commands() {
    let count = |rules: Rules| {
        let mut plan = throttled(1);
        plan.poll_queues = 1;
        let mut bench = Bench::new(&plan, &rules, 1);
        let ios: Vec<Io> = reads(20)
            .into_iter()
            .map(|io| Io { hctx: 1, ..io })
            .collect();
        bench.run(&ios).expect("drains");
        bench.refusals
    };
    assert_eq!(count(Rules::v6_1()), 0);
    assert!(count(Rules::v6_12()) > 0);
}

#[test]
fn the_tick_stops_when_a_whole_tick_brought_no_command() {
    let mut bench = Bench::new(&throttled(100), &Rules::v6_12(), 1);
    bench.run(&reads(1)).expect("drains");
    let timers: Vec<u64> = bench
        .actions
        .iter()
        .filter(|(_, action)| matches!(action, Action::Timer { .. }))
        .map(|(at, _)| at.0)
        .collect();
    assert_eq!(timers, [0, 0], "woken, filled up, then stopped at 20 ms");
    assert_eq!(bench.now, SimTime(20_000_000));
}

proptest! {
    /// Every accepted request is reported once (the bench panics on a second report), and the
    /// throttled rate is kept: requests issued in n ticks fit n + 1 budgets.
    #[test]
    fn everything_drains(
        seed in 0u64..1000,
        mode in 0usize..3,
        mbps in prop::sample::select(vec![0u32, 2, 16, 200]),
        v6_12: bool,
        depth in 1u32..20,
    ) {
        let irqmode = [IrqMode::None, IrqMode::Softirq, IrqMode::Timer][mode];
        let mut plan = null_blk(irqmode);
        plan.mbps = mbps;
        let mut plan = device(plan);
        plan.default_queues = 2;
        plan.poll_queues = 1;
        plan.queue_depth = depth;
        let rules = if v6_12 { Rules::v6_12() } else { Rules::v6_1() };
        let ios = random_ios(seed, 200, 3, 5_000);
        let mut bench = Bench::new(&plan, &rules, seed);
        prop_assert_eq!(bench.run(&ios), Ok(()));
        if mbps > 0 {
            let limited = |io: usize| v6_12 || ios[io].hctx < 2;
            let bytes: u64 = bench.ended.iter().filter(|ended| limited(ended.io))
                .map(|ended| u64::from(ios[ended.io].sectors) * 512).sum();
            let last = bench.ended.iter().map(|ended| ended.issued.0).max().unwrap_or(0);
            let budgets = last / 20_000_000 + 2;
            prop_assert!(bytes <= budgets * 20_971 * u64::from(mbps));
        }
    }
}
