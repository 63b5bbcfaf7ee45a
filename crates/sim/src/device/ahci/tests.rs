//! The disk under a test bench: order of service, caches, and no lost command.

use super::arm::{Arm, Task, Waiting};
use super::geometry::Geometry;
use crate::device::bench::{Bench, plan, random_ios, reads};
use crate::plan::{AhciPlan, DeviceKind, DevicePlan, NcqOrder};
use blkmq::request::{Op, RequestId, Sector};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};
use proptest::prelude::*;

/// The drive `sata2009`.
pub(super) fn disk() -> AhciPlan {
    AhciPlan {
        queue_depth: 31,
        order: NcqOrder::Shortest,
        rpm: 7200,
        cylinders: 150_000,
        heads: 4,
        zones: 16,
        outer_bytes: 120_000_000,
        inner_bytes: 60_000_000,
        seek_track: Duration::from_micros(800),
        seek_third: Duration::from_micros(8500),
        seek_full: Duration::from_micros(17_000),
        head_switch: Duration::from_micros(800),
        overhead: Duration::from_micros(100),
        link_bytes: 300_000_000,
        segments: 16,
        segment_sectors: 2048,
        write_cache_sectors: 16_384,
    }
}

pub(super) fn with(change: impl FnOnce(&mut AhciPlan)) -> AhciPlan {
    let mut plan = disk();
    change(&mut plan);
    plan
}

fn device(disk: AhciPlan) -> DevicePlan {
    let mut plan = plan(DeviceKind::Ahci(disk));
    plan.queue_depth = 32;
    plan.budget = disk.queue_depth;
    plan
}

fn waiting(number: u32, task: fn(RequestId) -> Task, sector: u64, count: u64) -> Waiting {
    Waiting {
        task: task(RequestId(number)),
        sector: Sector(sector),
        end: Sector(sector + count),
        since: SimTime::ZERO,
        ready: SimTime::ZERO,
    }
}

/// Serves all commands that wait; returns their order.
fn order(arm: &mut Arm) -> Vec<u32> {
    let (mut now, mut served) = (SimTime(5_000_000), Vec::new());
    loop {
        while let Some(hit) = arm.take_hit(now) {
            served.push(hit.task.request().expect("a command").0);
        }
        let Some(free) = arm.start(false, now) else {
            return served;
        };
        now = free;
        let done = arm.finish(now);
        served.extend(done.task.request().map(|rq| rq.0));
    }
}

#[test]
fn the_shortest_way_first_or_as_they_came() {
    let sectors = [400_000_000u64, 1000, 399_000_000, 2_000_000, 398_000_000];
    let serve = |order_of: NcqOrder| {
        let mut arm = Arm::new(&with(|plan| plan.order = order_of), 32);
        for (number, sector) in sectors.into_iter().enumerate() {
            arm.add(waiting(number as u32, Task::Read, sector, 8));
        }
        order(&mut arm)
    };
    assert_eq!(serve(NcqOrder::Arrival), [0, 1, 2, 3, 4]);
    let mut first = serve(NcqOrder::Shortest)[..2].to_vec();
    first.sort_unstable();
    assert_eq!(first, [1, 3], "the arm begins at the outside");
}

#[test]
fn what_was_overtaken_for_half_a_second_is_served() {
    // Without a cache, which would answer repeated reads.
    let mut arm = Arm::new(&with(|plan| plan.segments = 0), 64);
    arm.add(waiting(99, Task::Read, 940_000_000, 8));
    let (mut now, mut next, mut served) = (SimTime::ZERO, 0u32, 0u32);
    loop {
        // There is always something nearer.
        let mut near = waiting(next, Task::Read, u64::from(next % 7) * 300_000, 8);
        near.since = now;
        next += 1;
        arm.add(near);
        while arm.take_hit(now).is_some() {}
        let Some(free) = arm.start(false, now) else {
            continue;
        };
        now = free;
        served += 1;
        if arm.finish(now).task == Task::Read(RequestId(99)) {
            break;
        }
    }
    assert!(served > 50, "{served}: the shortest way does go first");
    assert!(now.0 < 700_000_000, "{now:?}: but not for ever");
}

#[test]
fn a_reader_in_step_finds_what_the_disk_has_read_on() {
    let mut arm = Arm::new(&disk(), 32);
    let mut now = SimTime::ZERO;
    for piece in 0..50u64 {
        arm.add(waiting(piece as u32, Task::Read, piece * 256, 256));
        if arm.take_hit(now).is_none() {
            now = arm.start(false, now).expect("it is idle");
            arm.finish(now);
        }
    }
    // 6.5 MB at 120 MB/s, and the way to the first sector: no turn is lost between pieces.
    assert!(now.0 < 54_600_000 + 17_000_000, "{now:?}");

    // The same with 3 ms between pieces, in which the disk reads ahead: they are served at once.
    let mut now = SimTime::ZERO;
    let mut arm = Arm::new(&disk(), 32);
    let (mut hits, mut without) = (0, Arm::new(&with(|plan| plan.segments = 0), 32));
    let mut later = SimTime::ZERO;
    for piece in 0..50u64 {
        let one = waiting(piece as u32, Task::Read, piece * 256, 256);
        arm.add(one);
        if arm.take_hit(now).is_some() {
            hits += 1;
        } else {
            now = arm.start(false, now).expect("it is idle");
            arm.finish(now);
        }
        now = now + Duration::from_millis(3);
        without.add(one);
        assert_eq!(without.take_hit(later), None, "it has no cache");
        later = without.start(false, later).expect("it is idle");
        without.finish(later);
        later = later + Duration::from_millis(3);
    }
    assert!(hits > 45, "{hits}");
    assert!(
        later.0 > 50 * 8_333_333,
        "{later:?}: each piece comes round again"
    );
}

/// The drive has to decode a command, even if its sector passes meanwhile.
#[test]
fn no_command_is_done_before_the_drive_knows_it() {
    let mut arm = Arm::new(&disk(), 32);
    let (mut now, mut served) = (SimTime::ZERO, 0);
    for piece in 0..2_000u64 {
        let mut one = waiting(piece as u32, Task::Read, piece * 8, 8);
        (one.since, one.ready) = (now, now + Duration::from_micros(100));
        arm.add(one);
        let Some(hit) = arm.take_hit(now) else {
            let done = arm.start(false, now).expect("it is idle");
            assert!(done >= one.ready, "piece {piece}: {done:?} of {one:?}");
            now = done;
            arm.finish(now);
            served += 1;
            continue;
        };
        now = now.max(hit.ready);
    }
    assert!(served > 0, "the arm was never asked");
    // 8 MB at 120 MB/s take 68 ms, 2000 commands 200 ms and the way to the first sector.
    let commands = 200_000_000..220_000_000;
    assert!(commands.contains(&now.0), "{now:?}");
}

/// Streaming pieces that end where tracks do: the way to the next track is not free.
#[test]
fn pieces_as_long_as_a_track_take_as_long_as_the_whole() {
    let geometry = Geometry::new(&disk());
    let first = |sector: &u64| geometry.locate(Sector(*sector)).head == 0;
    let track = (0..100_000).take_while(first).count() as u64;
    let read = |pieces: u64| {
        let mut arm = Arm::new(&disk(), 32);
        let (mut now, of) = (SimTime::ZERO, 40 / pieces * track);
        for piece in 0..pieces {
            let one = waiting(piece as u32, Task::Read, piece * of, of);
            arm.add(one);
            if arm.take_hit(now).is_none() {
                now = arm.start(false, now).expect("it is idle");
                arm.finish(now);
            }
        }
        now
    };
    assert_eq!(read(40), read(1));
}

#[test]
fn writes_go_to_the_platters_after_their_end_and_a_flush_waits_for_that() {
    let mut bench = Bench::new(&device(disk()), &Rules::v6_12(), 1);
    let ios: Vec<_> = reads(9)
        .into_iter()
        .enumerate()
        .map(|(number, mut io)| {
            io.op = if number < 8 { Op::Write } else { Op::Flush };
            io.at = SimTime(number as u64 * 1000);
            io
        })
        .collect();
    bench.run(&ios).expect("drains");
    let took = |io: usize| {
        let ended = bench.ended.iter().find(|ended| ended.io == io);
        let ended = ended.expect("all end");
        ended.at.since(ended.issued).0
    };
    assert!((0..8).all(|io| took(io) < 500_000), "into the cache");
    assert!(took(8) > 1_000_000, "{}: the arm has to move", took(8));
}

#[test]
fn without_a_write_cache_writes_wait_for_the_platters() {
    let mut bench = Bench::new(
        &device(with(|plan| plan.write_cache_sectors = 0)),
        &Rules::v6_12(),
        1,
    );
    let ios: Vec<_> = reads(3)
        .into_iter()
        .map(|mut io| {
            io.op = Op::Write;
            io
        })
        .collect();
    bench.run(&ios).expect("drains");
    assert!(
        bench
            .ended
            .iter()
            .any(|e| e.at.since(e.issued).0 > 1_000_000)
    );
}

#[test]
fn a_lost_interrupt_is_noticed() {
    let mut bench = Bench::new(&device(disk()), &Rules::v6_12(), 1);
    bench.forgets = |action| matches!(action, crate::device::Action::Interrupt { .. });
    bench.run(&reads(4)).expect_err("no handler looks");
}

proptest! {
    /// No command is lost, whatever the depth and the order; never more than the disk takes.
    #[test]
    fn everything_drains(
        seed in 0u64..1000,
        depth in 1u32..=32,
        arrival: bool,
        segments in 0u32..4,
        write_cache_sectors in prop::sample::select(vec![0u64, 64, 16_384]),
    ) {
        let disk = with(|plan| {
            plan.queue_depth = depth;
            plan.segments = segments;
            plan.write_cache_sectors = write_cache_sectors;
            if arrival {
                plan.order = NcqOrder::Arrival;
            }
        });
        let mut bench = Bench::new(&device(disk), &Rules::v6_1(), seed);
        let ios: Vec<_> = random_ios(seed, 150, 1, 500_000)
            .into_iter()
            .filter(|io| matches!(io.op, Op::Read | Op::Write | Op::Flush))
            .collect();
        prop_assert_eq!(bench.run(&ios), Ok(()));
        prop_assert!(bench.in_flight_max <= depth);
        prop_assert_eq!(bench.ended.len(), ios.len());
    }
}

#[test]
fn its_size_follows_from_its_tracks() {
    // 112 GB a surface: 150,000 tracks that hold 90 MB/s times a turn and a switch on average.
    let bytes = disk().layout().1 * 512;
    assert!(
        (470_000_000_000..520_000_000_000).contains(&bytes),
        "{bytes}"
    );
}
