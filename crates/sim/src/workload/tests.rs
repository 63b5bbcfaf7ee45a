//! Streams of a fio thread: order, mix, sizes, rates, flushes, ends.

use super::{NextIo, Permutation, Stream};
use crate::plan::{
    BlockSize, CmdPrio, ControlPlan, DiskId, Distribution, Engine, FilePlan, FileService, Mix,
    Order, PerDirection, RateProcess, Rounds, Sequencer, Submitter, ThinktimeBlocks, ThreadPlan,
    WritesPlan,
};
use crate::rng::Rng;
use blkmq::request::{IoPrio, Op, Sector, Sectors};
use blkmq::time::Duration;
use proptest::prelude::*;
use std::collections::BTreeSet;

const UNLIMITED: u64 = u64::MAX;

pub(super) fn same<T: Clone>(value: T) -> PerDirection<T> {
    PerDirection {
        read: value.clone(),
        write: value.clone(),
        trim: value,
    }
}

pub(super) fn fixed(sectors: u32) -> PerDirection<BlockSize> {
    same(BlockSize {
        min_sectors: sectors,
        max_sectors: sectors,
    })
}

const FILE: FilePlan = FilePlan {
    disk: DiskId(0),
    block_sectors: 1,
    first_sector: 1000,
    region_sectors: 800,
    has_rest: false,
};

/// Random reads of 4 KiB over 100 blocks from sector 1000 on.
pub(crate) fn thread() -> ThreadPlan {
    ThreadPlan {
        name: String::from("job"),
        job: 0,
        entry: 0,
        clone: 3,
        phase: 0,
        cpus: vec![0],
        submitter: Submitter::Fio,
        buffered: None,
        hands_over: false,
        shares_context: false,
        server: None,
        engine: Engine::IoUring,
        order: Order::RandomOnce,
        distribution: Distribution::Uniform,
        new_every: 1,
        keeps_map: false,
        sequencer: Sequencer::Sequential,
        random_percent: same(100),
        gap_sectors: 0,
        zones: None,
        mix: mix(100, 0, 0),
        block: fixed(8),
        splits: same(Vec::new()),
        files: vec![FILE],
        file_service: FileService::RoundRobin(1),
        iodepth: 1,
        batch_submit: 1,
        batch_complete_min: 1,
        batch_complete_max: 1,
        iodepth_low: 1,
        polled: false,
        fixed_buffers: false,
        passthrough: false,
        force_async: 0,
        offload: false,
        registered_files: false,
        thread: false,
        gtod_reduce: false,
        group: 0,
        priority: IoPrio::default(),
        fsync: 0,
        fdatasync: 0,
        thinktime: Duration::ZERO,
        thinktime_blocks: 1,
        thinktime_counts: ThinktimeBlocks::Complete,
        rate_bytes: same(0),
        rate_process: RateProcess::Linear,
        survives_read: false,
        survives_write: false,
        random_seed: 7,
        startdelay: Duration::ZERO,
        ramp_time: Duration::ZERO,
        runtime: Duration(u64::MAX),
        counts_tail: false,
        number_ios: UNLIMITED,
        io_bytes: UNLIMITED,
        rounds: Rounds {
            bytes: UNLIMITED,
            after_end: true,
            loops: 1,
            alike: true,
        },
        align_sectors: same(0),
        writes: WritesPlan::default(),
        cmdprio: CmdPrio::default(),
        control: ControlPlan::default(),
    }
}

pub(super) fn mix(read_percent: u8, write_percent: u8, trim_percent: u8) -> Mix {
    Mix {
        read_percent,
        write_percent,
        trim_percent,
    }
}

/// An I/O that is complete.
fn done(op: Op) -> NextIo {
    NextIo {
        op,
        disk: DiskId(0),
        prio: IoPrio::default(),
        sector: Sector(0),
        sectors: Sectors(0),
        not_before: Duration::ZERO,
    }
}

pub(super) fn take(plan: &ThreadPlan, count: usize) -> Vec<NextIo> {
    let mut stream = Stream::new(plan);
    let next = || loop {
        let io = stream.next(Duration::ZERO);
        if io.is_some() || !stream.starts_over() {
            return io;
        }
    };
    std::iter::from_fn(next).take(count).collect()
}

pub(super) fn sectors_of(ios: &[NextIo]) -> Vec<u64> {
    ios.iter().map(|io| io.sector.0).collect()
}

#[test]
fn sequential_wraps_where_no_block_fits() {
    let mut plan = thread();
    plan.order = Order::Sequential;
    for region_sectors in [16, 20, 23] {
        plan.files[0].region_sectors = region_sectors;
        let ios = take(&plan, 5);
        assert_eq!(sectors_of(&ios), [1000, 1008, 1000, 1008, 1000]);
    }
}

#[test]
fn each_direction_has_its_own_position() {
    let mut plan = thread();
    plan.order = Order::Sequential;
    plan.mix = mix(50, 50, 0);
    let ios = take(&plan, 60);
    for op in [Op::Read, Op::Write] {
        let mine: Vec<NextIo> = ios.iter().copied().filter(|io| io.op == op).collect();
        let expected: Vec<u64> = (0..mine.len() as u64).map(|i| 1000 + 8 * i).collect();
        assert_eq!(sectors_of(&mine), expected);
        assert!(mine.len() > 15);
    }
}

#[test]
fn a_pass_hits_every_block_once_and_the_next_in_another_order() {
    let ios = sectors_of(&take(&thread(), 200));
    let (first, second) = ios.split_at(100);
    let all: BTreeSet<u64> = (0..100).map(|i| 1000 + 8 * i).collect();
    assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), all);
    assert_eq!(second.iter().copied().collect::<BTreeSet<_>>(), all);
    assert_ne!(first, second);
    assert!(first.windows(2).filter(|w| w[1] == w[0] + 8).count() < 10);
}

#[test]
fn reads_and_writes_share_a_pass() {
    let mut plan = thread();
    plan.mix = mix(30, 70, 0);
    let ios = take(&plan, 100);
    let blocks: BTreeSet<u64> = sectors_of(&ios).into_iter().collect();
    assert_eq!(blocks.len(), 100);
    // With blocks of different sizes each direction has its own.
    plan.block.write.min_sectors = 16;
    plan.block.write.max_sectors = 16;
    let ios = take(&plan, 60);
    let written: Vec<u64> = sectors_of(
        &ios.into_iter()
            .filter(|io| io.op == Op::Write)
            .collect::<Vec<_>>(),
    );
    assert_eq!(written.iter().collect::<BTreeSet<_>>().len(), written.len());
    assert!(
        written
            .iter()
            .all(|sector| (sector - 1000).is_multiple_of(16))
    );
}

#[test]
fn without_a_map_draws_repeat() {
    let mut plan = thread();
    plan.order = Order::Random;
    let blocks: BTreeSet<u64> = sectors_of(&take(&plan, 100)).into_iter().collect();
    // 100 draws of 100 hit 63 on average.
    assert!((50..80).contains(&blocks.len()), "{}", blocks.len());
}

#[test]
fn shares_are_kept() {
    let mut plan = thread();
    plan.mix = mix(30, 70, 0);
    let ios = take(&plan, 10_000);
    let reads = ios.iter().filter(|io| io.op == Op::Read).count();
    assert!((2_850..3_150).contains(&reads), "{reads}");
}

#[test]
fn a_trimwrite_trims_each_block_and_then_writes_it() {
    let mut plan = thread();
    plan.mix = mix(0, 50, 50);
    plan.io_bytes = 800 * 512;
    let ios = take(&plan, 1000);
    assert_eq!(ios.len(), 200, "only the writes count");
    for pair in ios.chunks(2) {
        assert_eq!((pair[0].op, pair[1].op), (Op::Discard, Op::Write));
        assert_eq!(pair[0].sector, pair[1].sector);
    }
}

#[test]
fn sizes_are_steps_of_the_smallest() {
    let mut plan = thread();
    plan.block = same(BlockSize {
        min_sectors: 8,
        max_sectors: 32,
    });
    let ios = take(&plan, 1000);
    let sizes: BTreeSet<u32> = ios.iter().map(|io| io.sectors.0).collect();
    assert_eq!(sizes, BTreeSet::from([8, 16, 24, 32]));
    for io in &ios {
        assert!(io.sector.0 + u64::from(io.sectors.0) <= 1800);
    }
}

#[test]
fn it_ends_after_number_ios_or_io_bytes() {
    let mut plan = thread();
    plan.number_ios = 17;
    assert_eq!(take(&plan, 1000).len(), 17);
    plan.number_ios = UNLIMITED;
    plan.files[0].region_sectors = 803;
    plan.io_bytes = 803 * 512;
    plan.rounds.bytes = 803 * 512;
    plan.rounds.after_end = false;
    assert_eq!(take(&plan, 1000).len(), 100, "three sectors hold no block");
    // As in fio, the last one of independent draws is whole.
    plan.order = Order::Random;
    assert_eq!(take(&plan, 1000).len(), 101);
}

/// A sequential mix of fio that reaches a rest of less than a block goes back in both directions,
/// with the order of the mix; without a rest only the direction that is at the end does.
#[test]
fn a_mix_starts_over_in_both_directions_after_a_rest() {
    let mut plan = thread();
    plan.order = Order::Sequential;
    plan.mix = mix(70, 30, 0);
    let at_start = |region_sectors: u64, has_rest: bool| {
        let mut plan = plan.clone();
        plan.files[0].region_sectors = region_sectors;
        plan.files[0].has_rest = has_rest;
        let ios = take(&plan, 300);
        let firsts = ios.iter().enumerate().filter(|(_, io)| io.sector.0 == 1000);
        firsts.map(|(at, io)| (at, io.op)).collect::<Vec<_>>()
    };
    let whole = at_start(256, false);
    let count = |op: Op| whole.iter().filter(|first| first.1 == op).count();
    assert!(count(Op::Read) > count(Op::Write) + 2, "{whole:?}");
    for (sectors, has_rest) in [(260, false), (256, true)] {
        let firsts = at_start(sectors, has_rest);
        let [a, b, c, d, ..] = firsts[..] else {
            panic!("{firsts:?}")
        };
        assert_eq!((a.1, b.1), (c.1, d.1), "{firsts:?}");
        assert_eq!(
            b.0 - a.0,
            d.0 - c.0,
            "the same order of the mix: {firsts:?}"
        );
    }
}

/// fio 3.33: size=64k, io_size=100k starts over after 16 blocks, and after 25 it is done.
#[test]
fn more_io_than_the_size_starts_over() {
    let mut plan = thread();
    plan.order = Order::Sequential;
    plan.files[0].region_sectors = 128;
    plan.io_bytes = 100 << 10;
    plan.rounds.bytes = 64 << 10;
    let blocks: Vec<u64> = take(&plan, 1000)
        .iter()
        .map(|io| (io.sector.0 - 1000) / 8)
        .collect();
    assert_eq!(blocks, (0..16).chain(0..9).collect::<Vec<u64>>());
    plan.rounds.after_end = false;
    plan.rounds.bytes = 128 << 10;
    assert_eq!(take(&plan, 1000).len(), 16, "the end of the file ends it");
}

/// With a map no block is done twice in a pass, whatever the lengths.
#[test]
fn an_io_ends_before_blocks_that_are_done() {
    for read_percent in [100, 50] {
        let mut plan = thread();
        plan.keeps_map = true;
        plan.mix = mix(read_percent, 100 - read_percent, 0);
        plan.block = same(BlockSize {
            min_sectors: 2,
            max_sectors: 32,
        });
        plan.files[0].region_sectors = 2048;
        plan.io_bytes = 2048 * 512;
        let ios = take(&plan, 10_000);
        let all = ios.iter();
        let sectors: Vec<u64> = all
            .flat_map(|io| io.sector.0..io.sector.0 + u64::from(io.sectors.0))
            .collect();
        assert_eq!(sectors.len(), 2048);
        assert_eq!(sectors.iter().collect::<BTreeSet<_>>().len(), 2048);
        // fio 3.33: 172 I/Os; 120 without a map.
        assert!((145..200).contains(&ios.len()), "{}", ios.len());
        plan.io_bytes = UNLIMITED;
        let again = take(&plan, 1000);
        assert_eq!(again.len(), 1000, "the next pass begins");
    }
}

#[test]
fn a_flush_follows_every_third_write_but_the_last() {
    let mut plan = thread();
    plan.mix = mix(0, 100, 0);
    plan.fsync = 3;
    plan.fdatasync = 6;
    plan.number_ios = 9;
    let ops: String = take(&plan, 100)
        .iter()
        .map(|io| if io.op == Op::Flush { 'F' } else { 'W' })
        .collect();
    assert_eq!(ops, "WWWFWWWFWWW");
}

#[test]
fn reads_bring_no_second_flush() {
    let mut plan = thread();
    plan.mix = mix(50, 50, 0);
    plan.fsync = 1;
    let ios = take(&plan, 400);
    let count = |op: Op| ios.iter().filter(|io| io.op == op).count();
    assert!(count(Op::Flush) > 50);
    assert!(count(Op::Flush).abs_diff(count(Op::Write)) <= 1);
}

#[test]
fn a_rate_spaces_ios_and_lets_late_ones_catch_up() {
    let mut plan = thread();
    plan.rate_bytes = same(3_000 * 4096);
    let times: Vec<u64> = take(&plan, 7).iter().map(|io| io.not_before.0).collect();
    assert_eq!(
        times,
        [
            0, 333_333, 666_666, 1_000_000, 1_333_333, 1_666_666, 2_000_000
        ]
    );
}

#[test]
fn the_direction_that_may_go_goes() {
    let mut plan = thread();
    plan.mix = mix(50, 50, 0);
    plan.rate_bytes.read = 10 * 4096;
    let mut stream = Stream::new(&plan);
    let mut reads = 0;
    // In 0.9 s the rate allows nine reads; writes are not limited.
    for i in 0..10_000 {
        let elapsed = Duration(i * 90_000);
        let io = stream.next(elapsed).expect("no end");
        assert!(io.not_before <= elapsed);
        reads += u32::from(io.op == Op::Read);
    }
    assert_eq!(reads, 9);
}

#[test]
fn it_pauses_after_each_group() {
    let mut plan = thread();
    plan.thinktime = Duration(5_000);
    plan.thinktime_blocks = 4;
    let mut stream = Stream::new(&plan);
    let mut turn = |completed: usize| {
        stream.next(Duration::ZERO).expect("no end");
        for _ in 0..completed {
            stream.completed(&done(Op::Read));
        }
        stream.pause(Duration::ZERO).is_some()
    };
    let pauses: Vec<bool> = (0..9).map(|_| turn(1)).collect();
    let pauses: Vec<usize> = (0..9).filter(|&i| pauses[i]).collect();
    assert_eq!(pauses, [3, 7]);
    // Completions while it waits for the pause count for the next one.
    assert!(turn(6));
    assert!(!turn(0));
    assert!(turn(4));
    // There is one check after each I/O.
    for _ in 0..6 {
        stream.completed(&done(Op::Read));
    }
    assert_eq!(stream.pause(Duration::ZERO), None);
    stream.next(Duration::ZERO).expect("no end");
    assert_eq!(stream.pause(Duration::ZERO), Some(Duration(5_000)));
}

#[test]
fn pauses_count_what_was_issued_if_asked() {
    let mut plan = thread();
    plan.thinktime = Duration(5_000);
    plan.thinktime_blocks = 3;
    plan.thinktime_counts = ThinktimeBlocks::Issue;
    let mut stream = Stream::new(&plan);
    let pauses: String = (0..7)
        .map(|_| {
            stream.next(Duration::ZERO).expect("no end");
            if stream.pause(Duration::ZERO).is_some() {
                'P'
            } else {
                '.'
            }
        })
        .collect();
    assert_eq!(pauses, "..P..P.");
}

#[test]
fn flushes_bring_no_pause() {
    let mut plan = thread();
    plan.thinktime = Duration(5_000);
    let mut stream = Stream::new(&plan);
    stream.next(Duration::ZERO).expect("no end");
    stream.completed(&done(Op::Flush));
    assert_eq!(stream.pause(Duration::ZERO), None);
    stream.next(Duration::ZERO).expect("no end");
    stream.completed(&done(Op::Write));
    assert_eq!(stream.pause(Duration::ZERO), Some(Duration(5_000)));
}

#[test]
#[should_panic(expected = "9 sectors on a disk of 8")]
fn a_block_that_the_device_does_not_know_is_our_mistake() {
    let mut plan = thread();
    plan.block = fixed(9);
    plan.files[0].block_sectors = 8;
    Stream::new(&plan);
}

#[test]
fn clones_differ_and_repeat() {
    let plan = thread();
    let mut clone = thread();
    clone.clone = 4;
    assert_ne!(take(&plan, 50), take(&clone, 50));
    assert_eq!(take(&plan, 50), take(&plan, 50));
}

#[test]
fn sizes_do_not_move_positions() {
    let positions = |max_sectors: u32| {
        let mut plan = thread();
        plan.order = Order::Random;
        plan.block.read.max_sectors = max_sectors;
        sectors_of(&take(&plan, 50))
    };
    assert_eq!(positions(8), positions(64));
}

#[test]
fn an_io_allocates_nothing() {
    let orders = [Order::Sequential, Order::RandomOnce, Order::Random];
    for (order, keeps_map) in orders
        .map(|order| (order, false))
        .into_iter()
        .chain([(Order::RandomOnce, true)])
    {
        let mut plan = thread();
        plan.order = order;
        plan.keeps_map = keeps_map;
        plan.mix = mix(50, 50, 0);
        plan.rate_bytes = same(1000 * 4096);
        plan.fsync = 3;
        let mut stream = Stream::new(&plan);
        let counted = allocation_counter::measure(|| {
            for _ in 0..10_000 {
                assert!(stream.next(Duration::ZERO).is_some());
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}

#[test]
fn a_permutation_of_a_large_disk_has_no_pattern() {
    let n = (1u64 << 31) - 5;
    let permutation = Permutation::new(n, &mut Rng::stream(1, "test"));
    let sample: Vec<u64> = (0..4000).map(|i| permutation.at(i)).collect();
    assert_eq!(sample.iter().collect::<BTreeSet<_>>().len(), 4000);
    // A quarter of them in each quarter, and no direction.
    for quarter in 0..4 {
        let inside = sample.iter().filter(|x| *x * 4 / n == quarter).count();
        assert!((880..1120).contains(&inside), "{inside}");
    }
    let rising = sample.windows(2).filter(|w| w[0] < w[1]).count();
    assert!((1880..2120).contains(&rising), "{rising}");
}

proptest! {
    /// A permutation maps 0..n onto itself.
    #[test]
    fn a_permutation_hits_everything_once(n in 1u64..3000, seed: u64) {
        let mut rng = Rng::stream(seed, "test");
        let mut permutation = Permutation::new(n, &mut rng);
        for _ in 0..2 {
            let hit: BTreeSet<u64> = (0..n).map(|i| permutation.at(i)).collect();
            prop_assert_eq!(hit.len() as u64, n);
            prop_assert!(hit.last() < Some(&n));
            permutation.renew(&mut rng);
        }
    }

    /// Everything lies inside the region, in whole and aligned blocks, and limits are kept.
    #[test]
    fn streams_stay_inside(
        order in prop::sample::select(vec![Order::Sequential, Order::RandomOnce, Order::Random]),
        read_percent in 0u8..=100,
        read_min in 1u32..10,
        read_steps in 1u32..5,
        write_min in 1u32..10,
        write_steps in 1u32..5,
        region_sectors in 40u64..500,
        io_kib in prop::sample::select(vec![0u64, 50, 1000, 1 << 40]),
        number_ios in 0u64..300,
        fsync in 0u32..4,
        random_seed: u64,
    ) {
        let mut plan = thread();
        plan.order = order;
        plan.mix = mix(read_percent, 100 - read_percent, 0);
        plan.block.read = BlockSize { min_sectors: read_min, max_sectors: read_min * read_steps };
        plan.block.write.min_sectors = write_min;
        plan.block.write.max_sectors = write_min * write_steps;
        // Its size counts for the largest I/O even where nothing is trimmed.
        plan.block.trim = plan.block.read;
        plan.files[0].region_sectors = region_sectors;
        plan.io_bytes = io_kib << 10;
        plan.number_ios = number_ios;
        plan.fsync = fsync;
        plan.random_seed = random_seed;
        let ios = take(&plan, 2000);
        let data: Vec<&NextIo> = ios.iter().filter(|io| io.op != Op::Flush).collect();
        prop_assert!(data.len() as u64 <= number_ios);
        let sectors: u64 = data.iter().map(|io| u64::from(io.sectors.0)).sum();
        let largest = u64::from((read_min * read_steps).max(write_min * write_steps));
        prop_assert!(sectors < io_kib * 2 + largest);
        // fio begins no round for less than the largest I/O.
        let least = u64::from(read_min.min(write_min));
        let complete = data.len() as u64 == number_ios || sectors + largest > io_kib * 2;
        prop_assert!(complete, "{} I/Os, {} sectors, least {}", data.len(), sectors, least);
        for io in data {
            let min = if io.op == Op::Read { read_min } else { write_min };
            let offset = io.sector.0 - 1000;
            prop_assert!(io.sectors.0 > 0);
            prop_assert!(io.sectors.0.is_multiple_of(min));
            prop_assert!(offset.is_multiple_of(u64::from(min)));
            prop_assert!(offset + u64::from(io.sectors.0) <= region_sectors);
        }
        // A round begins with another flush.
        let one_round = sectors <= region_sectors;
        for pair in ios.windows(2).filter(|_| one_round) {
            prop_assert!(pair[0].op != Op::Flush || pair[1].op != Op::Flush);
        }
    }
}
