//! NVMe: doorbells, arbitration, service limits, coalescing, polling.

use super::Nvme;
use super::pace::Pacer;
use super::service::Service;
use crate::device::bench::{Bench, Io, nvme, plan, random_ios, reads};
use crate::device::{Action, Command, Device, DeviceSetup};
use crate::plan::{DeviceId, DeviceKind, Jitter, NvmePlan};
use crate::rng::Rng;
use blkmq::request::{CpuId, HctxId, Op, OpFlags, RequestId, Sector, Sectors};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};
use proptest::prelude::*;

fn bench_of(nvme: NvmePlan, queues: u16, depth: u32) -> Bench {
    let mut plan = plan(DeviceKind::Nvme(nvme));
    plan.default_queues = queues;
    plan.queue_depth = depth;
    Bench::new(&plan, &Rules::v6_12(), 1)
}

fn last_end(bench: &Bench) -> u64 {
    bench
        .ended
        .iter()
        .map(|ended| ended.at.0)
        .max()
        .unwrap_or(0)
}

#[test]
fn without_a_doorbell_the_drive_sees_nothing() {
    let mut bench = bench_of(nvme(8), 1, 4);
    bench.mute = true;
    let left = bench.run(&reads(3)).expect_err("no doorbell is written");
    assert!(left.contains("3 without a doorbell"), "{left}");
}

/// Requests in the order in which a drive of one channel serves them: two CPUs each submit a plug
/// of three at the same time; the core refuses one before it reaches the drive.
fn served(rules: &Rules, of_plug: bool, refused: Option<u32>) -> Vec<u32> {
    let mut plan = plan(DeviceKind::Nvme(nvme(1)));
    (plan.default_queues, plan.queue_depth) = (1, 64);
    let setup = DeviceSetup {
        plan: &plan,
        rules,
        io_timeout: Duration::from_secs(30),
        seed: 1,
        device: DeviceId(0),
        vector_cpus: &[CpuId(0)],
        requests: 64,
        units: 1,
    };
    let mut drive = Nvme::new(&nvme(1), &setup);
    let mut out = Vec::new();
    for rq in [0, 10, 1, 11, 2, 12] {
        let cpu = CpuId((rq / 10) as u16);
        if refused == Some(rq) {
            drive.commit_rqs(HctxId(0), cpu, SimTime::ZERO, &mut out);
            continue;
        }
        let command = Command {
            unit: 0,
            rq: RequestId(rq),
            hctx: HctxId(0),
            cpu,
            op: Op::Read,
            flags: OpFlags::default(),
            sector: Sector(0),
            sectors: Sectors(8),
            polled: false,
            last: rq % 10 == 2,
            of_plug,
            budget: None,
            since_start: Duration::ZERO,
        };
        assert!(drive.queue_rq(&command, SimTime::ZERO, &mut out).started);
    }
    let mut served = Vec::new();
    while let Some(action) = out.pop() {
        let Action::Timer { mark, .. } = action else {
            continue;
        };
        served.push(mark as u32);
        drive.timer(mark, SimTime::ZERO, &mut out);
    }
    served
}

/// Off a stack the newest is prepared first and submitted last, the rest of its plug before it;
/// from a list, first in, first out.
#[test]
fn what_comes_off_a_stack_is_turned_round() {
    let (old, new) = (Rules::v6_1(), Rules::v6_12());
    assert_eq!(served(&old, true, None), [2, 1, 0, 12, 11, 10]);
    for as_they_come in [served(&old, false, None), served(&new, true, None)] {
        assert_eq!(as_they_come, [0, 10, 1, 11, 2, 12]);
    }
    // Without its last one a plug is submitted, and no other CPU's.
    assert_eq!(served(&old, true, Some(2)), [1, 0, 12, 11, 10]);
}

#[test]
fn a_tail_about_to_reach_the_published_one_rings_by_itself() {
    let mut bench = bench_of(nvme(8), 1, 4);
    bench.mute = true;
    bench.run(&reads(4)).expect("five slots, four commands");
    assert_eq!(last_end(&bench), 10_000 + 3 * 70);
}

#[test]
fn channels_bound_what_is_served() {
    let mut bench = bench_of(nvme(4), 1, 64);
    bench.run(&reads(40)).expect("drains");
    // Ten rounds of four; the last interrupt's handler finds the four of its round.
    assert_eq!(last_end(&bench), 100_000 + 3 * 70);
}

#[test]
fn reads_wait_for_a_die_that_another_has() {
    let ends = |dies: u32, ios: &[Io]| {
        let mut drive = nvme(64);
        (drive.dies, drive.die_time) = (dies, Duration(4_000));
        let mut bench = bench_of(drive, 1, 64);
        bench.run(ios).expect("drains");
        last_end(&bench)
    };
    // One die: each begins when the one before it has left the die, 4 us later.
    assert_eq!(ends(1, &reads(5)), 4 * 4_000 + 10_000);
    // A read of 64 KiB needs four pages, one after the other; the last one begins 12 us later.
    let large = Io {
        sectors: 128,
        ..reads(1)[0]
    };
    assert_eq!(ends(1, &[large]), 3 * 4_000 + 10_000);
    // So many dies that reads hardly ever share one: no read waits for long.
    assert!(ends(1 << 16, &reads(5)) < 3 * 4_000 + 10_000);
    let writes: Vec<Io> = reads(5)
        .into_iter()
        .map(|io| Io {
            op: Op::Write,
            ..io
        })
        .collect();
    let written = ends(1, &writes);
    assert!(
        written < 4_000 + 10_000,
        "{written}: writes end in the buffer"
    );
}

#[test]
fn queues_take_turns() {
    let mut bench = bench_of(nvme(1), 2, 64);
    let mut ios = reads(4);
    ios.extend(reads(2).into_iter().map(|io| Io { hctx: 1, ..io }));
    bench.run(&ios).expect("drains");
    let order: Vec<usize> = bench.ended.iter().map(|ended| ended.io).collect();
    // 0 starts at once; then each queue in turn while both have some.
    assert_eq!(order, [0, 1, 4, 2, 5, 3]);
}

#[test]
fn iops_max_spaces_starts_exactly() {
    let mut slow = nvme(64);
    slow.iops_max = 300_000;
    let mut bench = bench_of(slow, 1, 64);
    bench.run(&reads(3001)).expect("drains");
    // 3000 gaps of 3333 1/3 ns: the thirds add up.
    assert_eq!(last_end(&bench), 10_000_000 + 10_000);
}

#[test]
fn bandwidth_counts_data_only() {
    let mut slow = nvme(64);
    slow.mbps = 8;
    let mut bench = bench_of(slow, 1, 64);
    bench.run(&reads(257)).expect("drains");
    // 256 times 4 KiB are 1 MiB: an eighth of a second.
    assert_eq!(last_end(&bench), 125_000_000 + 10_000);
    let mut bench = bench_of(slow, 1, 64);
    let trims: Vec<Io> = reads(257)
        .into_iter()
        .map(|io| Io {
            op: blkmq::request::Op::Discard,
            ..io
        })
        .collect();
    bench.run(&trims).expect("drains");
    assert!(last_end(&bench) < 1_000_000);
}

#[test]
fn a_direction_has_a_limit_of_its_own_that_small_ios_do_not_meet() {
    let mut limited = nvme(64);
    (limited.read_mbps, limited.write_mbps) = (0, 1000);
    let end = |count: usize, op: Op| {
        let mut bench = bench_of(limited, 1, 64);
        let ios: Vec<Io> = reads(count).into_iter().map(|io| Io { op, ..io }).collect();
        bench.run(&ios).expect("drains");
        last_end(&bench)
    };
    // 26 times 4 KiB take the 100 us that pass ahead at 1000 MiB/s; the others wait for their time.
    let at_once = end(26, Op::Write);
    assert!(
        at_once < 13_000,
        "served in 10 us, and interrupts: {at_once}"
    );
    let megabytes_100 = 25_600;
    assert_eq!(end(megabytes_100 + 26, Op::Write) / 1000, 100_007);
    assert!(end(megabytes_100, Op::Read) < 10_000_000);
}

#[test]
fn a_pacer_keeps_no_credit() {
    let mut pacer = Pacer::per_second(1000);
    pacer.charge(1, SimTime(0));
    assert_eq!(pacer.open_at(), SimTime(1_000_000));
    pacer.charge(1, SimTime(50_000_000));
    assert_eq!(pacer.open_at(), SimTime(51_000_000));
    pacer.charge(3, SimTime(51_000_000));
    assert_eq!(pacer.open_at(), SimTime(54_000_000));
}

#[test]
fn completions_are_gathered_by_count() {
    let mut gathering = nvme(64);
    gathering.coalesce_count = 4;
    gathering.coalesce_time = Duration::from_micros(100);
    gathering.irq_delay = Duration(500);
    let mut bench = bench_of(gathering, 1, 64);
    bench.run(&reads(4)).expect("drains");
    assert_eq!((bench.interrupts, bench.ended[0].at.0), (1, 10_500));
}

#[test]
fn a_lone_completion_waits_for_the_coalescing_time() {
    let mut gathering = nvme(64);
    gathering.coalesce_count = 4;
    gathering.coalesce_time = Duration::from_micros(100);
    let mut bench = bench_of(gathering, 1, 64);
    bench.run(&reads(3)).expect("drains");
    assert_eq!((bench.interrupts, bench.ended[0].at.0), (1, 110_000));
}

#[test]
fn an_old_coalescing_timer_does_not_cut_the_next_wait_short() {
    let mut gathering = nvme(64);
    gathering.coalesce_count = 2;
    gathering.coalesce_time = Duration::from_micros(100);
    let mut bench = bench_of(gathering, 1, 64);
    // Two at 10 us interrupt by count; the third, at 60 us, waits until 160 us, though the timer
    // of the first expires at 110 us.
    let mut ios = reads(3);
    ios[1].at = SimTime(1);
    ios[2].at = SimTime(50_000);
    bench.run(&ios).expect("drains");
    assert_eq!((bench.interrupts, bench.ended[2].at.0), (2, 160_000));
}

#[test]
fn a_late_handler_finds_all_that_came_meanwhile() {
    let mut bench = bench_of(nvme(1), 1, 64);
    bench.late_ns = 1_000_000;
    bench.run(&reads(20)).expect("drains");
    assert_eq!(bench.interrupts, 1);
}

#[test]
fn a_handler_that_leaves_early_loses_completions() {
    let mut bench = bench_of(nvme(64), 1, 64);
    bench.takes_one = true;
    assert!(bench.run(&reads(20)).is_err());
}

#[test]
fn a_dropped_pace_timer_is_a_stall() {
    let mut slow = nvme(64);
    slow.iops_max = 1000;
    let mut bench = bench_of(slow, 1, 64);
    bench.forgets = |action| matches!(action, Action::Timer { mark, .. } if mark >> 32 == 1);
    assert!(bench.run(&reads(2)).is_err());
}

#[test]
fn polled_queues_have_no_interrupt() {
    let mut plan = plan(DeviceKind::Nvme(nvme(8)));
    plan.poll_queues = 1;
    let mut bench = Bench::new(&plan, &Rules::v6_1(), 1);
    let ios: Vec<Io> = reads(30)
        .into_iter()
        .map(|io| Io { hctx: 1, ..io })
        .collect();
    bench.run(&ios).expect("drains");
    assert_eq!(bench.interrupts, 0);
    let found = bench
        .device
        .poll(blkmq::request::HctxId(0), bench.now, &mut vec![]);
    assert_eq!(found, None, "an interrupt queue is not polled");
}

#[test]
fn jitter_stays_in_its_bounds_and_repeats() {
    let mut shaky = nvme(1);
    shaky.jitter = Jitter::Percent(30);
    let run = |plan: NvmePlan| {
        let mut bench = bench_of(plan, 1, 1);
        bench.run(&reads(2000)).expect("drains");
        bench.ended
    };
    let ended = run(shaky);
    let times: Vec<u64> = ended.iter().map(|e| e.at.since(e.issued).0).collect();
    let (least, most) = (times.iter().min().copied(), times.iter().max().copied());
    assert!(least >= Some(7_000) && least < Some(7_050), "{least:?}");
    assert!(most <= Some(13_000) && most > Some(12_950), "{most:?}");
    let mean = times.iter().sum::<u64>() / 2000;
    assert!((9_900..10_100).contains(&mean), "{mean}");
    assert_eq!(ended, run(shaky));
}

/// Times of commands that a drive of flash takes one after another.
fn flash_times(drive: NvmePlan, op: Op, kib: u32) -> Vec<u64> {
    let mut service = Service::new(&drive, Rng::stream(1, "flash"));
    let mut now = SimTime::ZERO;
    let mut times: Vec<u64> = (0..20_000)
        .map(|_| {
            let takes = service.time(op, Sectors(2 * kib), now);
            now = now + takes;
            takes.0
        })
        .collect();
    times.sort_unstable();
    times
}

/// A drive with reads of 60 us, writes of 20 us and a link of 7000 MB/s.
fn flash() -> NvmePlan {
    let mut drive = nvme(1);
    drive.jitter = Jitter::Flash;
    drive.latency.read = Duration::from_micros(60);
    drive.latency.write = Duration::from_micros(20);
    (drive.read_mbps, drive.write_mbps) = (6675, 4768);
    drive
}

fn mean(times: &[u64]) -> u64 {
    times.iter().sum::<u64>() / times.len() as u64
}

/// Two kinds of pages are sensed twice, one three times: 38.6 and 57.9 us of the array's 45.
#[test]
fn reads_of_flash_keep_their_mean_and_differ_by_the_page() {
    for drive in [
        flash(),
        NvmePlan {
            dies: 64,
            die_time: Duration::from_micros(45),
            ..flash()
        },
    ] {
        let times = flash_times(drive, Op::Read, 4);
        assert!(mean(&times).abs_diff(60_000) < 300, "{}", mean(&times));
        let (two, three) = (38_571, 57_857);
        let edges = [two * 9, two * 11, three * 9, three * 11].map(|tenths| 15_000 + tenths / 10);
        let [least, two_most, three_least, most] = edges;
        assert!(times[0].abs_diff(least) < 50, "{}", times[0]);
        assert!(times[19_999].abs_diff(most) < 50, "{}", times[19_999]);
        let twice = times.iter().filter(|time| **time <= two_most + 50).count();
        assert!(twice.abs_diff(13_333) < 250, "{twice}");
        assert!(times[twice] + 50 > three_least, "{}", times[twice]);
    }
}

/// The slowest of four pages, the rest of a page over the flash channel, and the rest of the data
/// over the link.
#[test]
fn larger_commands_take_longer() {
    let (small, large) = (
        flash_times(flash(), Op::Read, 4),
        flash_times(flash(), Op::Read, 64),
    );
    let data = 12 * 1024 * 1000 / 1400 + 60 * 1_000_000_000 / (6675 * 1024);
    assert!(large[0] >= small[0] + data, "{} {}", large[0], small[0]);
    assert!(large[19_999].abs_diff(small[19_999] + data) < 50);
    let all_twice = large.iter().filter(|time| **time < 66_500 + data).count();
    assert!(all_twice.abs_diff(20_000 * 16 / 81) < 200, "{all_twice}");
    let (small, large) = (
        flash_times(flash(), Op::Write, 4),
        flash_times(flash(), Op::Write, 64),
    );
    assert!(mean(&small).abs_diff(20_000) < 100, "{}", mean(&small));
    assert!((18_000..18_050).contains(&small[0]), "{}", small[0]);
    assert!(small[19_999] <= 22_000, "{}", small[19_999]);
    let data = 60 * 1_000_000_000 / (6675 * 1024);
    assert!(mean(&large).abs_diff(mean(&small) + data) < 5);
    assert_eq!(
        flash_times(flash(), Op::Read, 4),
        flash_times(flash(), Op::Read, 1),
        "a sector is read with its 4 KiB"
    );
}

/// The second read of a die waits for the array, not for the controller or the data of the first.
#[test]
fn reads_of_one_die_wait_for_each_other_as_long_as_the_array_takes() {
    let mut drive = flash();
    (drive.dies, drive.die_time) = (1, Duration::from_micros(45));
    let mut service = Service::new(&drive, Rng::stream(1, "flash"));
    let mut at_once = || service.time(Op::Read, Sectors(8), SimTime::ZERO).0;
    let mut before = at_once();
    let arrays: Vec<u64> = (0..3_000)
        .map(|_| {
            let next = at_once();
            let array = next - before;
            before = next;
            array
        })
        .collect();
    assert!(mean(&arrays).abs_diff(45_000) < 450, "{}", mean(&arrays));
    assert!(arrays.iter().all(|time| (34_000..64_000).contains(time)));
}

proptest! {
    /// With any settings of the drive, every accepted request is reported once and no interrupt is
    /// lost; the rate of starts keeps to its limit.
    #[test]
    fn everything_drains(
        seed in 0u64..1000,
        channels in 1u32..20,
        jitter in prop_oneof![(0u8..=100).prop_map(Jitter::Percent), Just(Jitter::Flash)],
        iops_max in prop::sample::select(vec![0u32, 50_000, 1_000_000]),
        mbps in prop::sample::select(vec![0u32, 100, 3000]),
        coalesce_count in 1u32..9,
        coalesce_us in 0u64..200,
        irq_delay in 0u64..3000,
        late_ns in 0u64..30_000,
        depth in 1u32..20,
    ) {
        let drive = NvmePlan {
            jitter,
            iops_max,
            mbps,
            coalesce_count,
            coalesce_time: Duration::from_micros(coalesce_us),
            irq_delay: Duration(irq_delay),
            ..nvme(channels)
        };
        let mut plan = plan(DeviceKind::Nvme(drive));
        plan.default_queues = 2;
        plan.read_queues = 1;
        plan.poll_queues = 1;
        plan.queue_depth = depth;
        let ios = random_ios(seed, 300, 4, 3_000);
        let mut bench = Bench::new(&plan, &Rules::v6_1(), seed);
        bench.late_ns = late_ns;
        prop_assert_eq!(bench.run(&ios), Ok(()));
        if iops_max > 0 {
            let least = 299 * 1_000_000_000 / u64::from(iops_max);
            prop_assert!(last_end(&bench) >= least);
        }
        prop_assert!(bench.in_flight_max <= 4 * depth);
    }
}
