use crate::plan::{Order, Sequencer, ThreadPlan};
use crate::workload::tests::{mix, same, sectors_of, take, thread};
use blkmq::request::Op;

/// Blocks of the region, counted from its start.
fn blocks(plan: &ThreadPlan, count: usize) -> Vec<u64> {
    let ios = take(plan, count);
    sectors_of(&ios).iter().map(|s| (s - 1000) / 8).collect()
}

fn random() -> ThreadPlan {
    let mut plan = thread();
    plan.order = Order::Random;
    plan
}

/// rw=randread:4: a random position, then three after it.
#[test]
fn a_new_position_comes_every_few_ios() {
    let mut plan = random();
    plan.files[0].region_sectors = 800_000;
    plan.new_every = 4;
    let drawn = blocks(&plan, 4000);
    let jumps: Vec<usize> = (1..4000)
        .filter(|&i| drawn[i] != drawn[i - 1] + 1)
        .collect();
    assert!(jumps.iter().all(|i| i % 4 == 0), "{jumps:?}");
    assert!(jumps.len() > 990);
}

#[test]
fn or_the_last_one_is_hit_again() {
    let mut plan = random();
    plan.new_every = 3;
    plan.sequencer = Sequencer::Identical;
    let drawn = blocks(&plan, 300);
    for run in drawn.chunks(3) {
        assert_eq!((run[0], run[0]), (run[1], run[2]));
    }
    assert!(drawn.chunks(3).any(|run| run[0] != drawn[0]));
}

/// The count spans both directions, and the next position is after the last one of its own
/// direction (last_pos is kept by direction, ddir_seq_nr by thread).
#[test]
fn mixed_streams_count_together_and_go_on_apart() {
    let mut plan = random();
    plan.files[0].region_sectors = 800_000;
    plan.new_every = 2;
    plan.mix = mix(50, 50, 0);
    let ios = take(&plan, 2000);
    let mut end = [1000, 1000];
    for (i, io) in ios.iter().enumerate() {
        let direction = usize::from(io.op == Op::Write);
        if i % 2 == 1 {
            assert_eq!(io.sector.0, end[direction], "I/O {i}");
        }
        end[direction] = io.sector.0 + 8;
    }
}

/// fio turns back to the start if it is time_based, else it takes a new position.
#[test]
fn the_end_of_the_region_ends_a_run() {
    let mut plan = random();
    plan.files[0].region_sectors = 16;
    plan.new_every = 1000;
    let turning = blocks(&plan, 8);
    let first = turning[0] as usize;
    let want: Vec<u64> = (0..8).map(|i| ((first + i) % 2) as u64).collect();
    assert_eq!(turning, want);
    plan.io_bytes = 1 << 40;
    plan.files[0].region_sectors = 80;
    let drawn = blocks(&plan, 500);
    let after_the_end = drawn.windows(2).filter(|w| w[0] == 9).map(|w| w[1]);
    let after_the_end: std::collections::BTreeSet<u64> = after_the_end.collect();
    assert!(after_the_end.len() > 4, "{after_the_end:?}");
}

/// percentage_random=30: seven of ten continue after the last one.
#[test]
fn a_part_of_a_random_stream_is_sequential() {
    for percent in [0, 30, 90] {
        let mut plan = random();
        plan.files[0].region_sectors = 8_000_000;
        plan.random_percent = same(percent);
        let drawn = blocks(&plan, 10_000);
        let jumps = drawn.windows(2).filter(|w| w[1] != w[0] + 1).count();
        let off = jumps.abs_diff(100 * usize::from(percent));
        assert!(off < 150, "{percent} %: {jumps} jumps");
    }
}

/// Sequential I/Os in between do not use up the map.
#[test]
fn a_map_is_of_the_random_ones() {
    let mut plan = thread();
    plan.new_every = 2;
    let drawn = blocks(&plan, 200);
    let mut random: Vec<u64> = drawn.iter().copied().step_by(2).collect();
    random.sort_unstable();
    assert_eq!(random, (0..100).collect::<Vec<u64>>());
}

/// rw=read:4k, rw=read:-8k: get_next_seq_offset(), by hand.
#[test]
fn sequential_streams_with_gaps() {
    let mut plan = thread();
    plan.order = Order::Sequential;
    plan.files[0].region_sectors = 40;
    let with_gap = |gap: i64| {
        let mut plan = plan.clone();
        plan.gap_sectors = gap;
        blocks(&plan, 8)
    };
    assert_eq!(with_gap(0), [0, 1, 2, 3, 4, 0, 1, 2]);
    assert_eq!(with_gap(8), [0, 2, 4, 0, 2, 4, 0, 2]);
    assert_eq!(with_gap(16), [0, 3, 0, 3, 0, 3, 0, 3]);
    // Backwards with an offset, fio begins at the end, less the gap.
    assert_eq!(with_gap(-16), [3, 2, 1, 0, 3, 2, 1, 0]);
    assert_eq!(with_gap(-8), [4, 4, 4, 4, 4, 4, 4, 4]);
    assert_eq!(with_gap(-800), []);
}

/// blockalign=8k with I/Os of 512 bytes to 4 KiB.
#[test]
fn positions_are_multiples_of_their_own_unit() {
    let mut plan = random();
    plan.block = same(crate::plan::BlockSize {
        min_sectors: 1,
        max_sectors: 8,
    });
    plan.align_sectors = same(16);
    let drawn: std::collections::BTreeSet<u64> =
        sectors_of(&take(&plan, 2000)).into_iter().collect();
    let want: Vec<u64> = (0..800 / 16).map(|unit| 1000 + 16 * unit).collect();
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), want);
}
