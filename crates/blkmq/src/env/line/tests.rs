//! The price of a miss, by where the copies are, and overlap.

use proptest::prelude::*;

use super::{CPUS_MAX, Line, Meter, Misses, Near, Numbering, Overlap, Room, Tariff};
use crate::request::CpuId;

const PAIRS: Numbering = Numbering {
    cores: CPUS_MAX,
    threads: 1,
    adjacent: [2, 4, 8],
};

/// CPU 0 of: a core of CPUs 0 and 1, a last-level cache of 0 to 3, a socket of 0 to 7, then others.
fn near() -> Near {
    near_of(0)
}

/// The same prices on another CPU of that core.
fn near_of(cpu: u16) -> Near {
    Near::new(CpuId(cpu), PAIRS, [1, 10, 100, 1000])
}

#[test]
fn a_read_comes_from_the_nearest_copy_and_a_write_takes_the_farthest_away() {
    let (line, near) = (Line::default(), near());
    // No CPU has a copy: memory is not priced.
    assert_eq!(line.read(CpuId(8), &near), 0);
    assert_eq!(line.read(CpuId(2), &near), 1000, "only CPU 8 has it");
    assert_eq!(line.read(CpuId(0), &near), 10, "CPU 2 is nearer than 8");
    assert_eq!(line.read(CpuId(0), &near), 0, "it has a copy now");
    assert_eq!(line.write(CpuId(0), &near), 1000, "CPU 8 loses its copy");
    assert_eq!(line.write(CpuId(0), &near), 0, "nobody else has one");
    assert_eq!(line.read(CpuId(1), &near_of(1)), 1);
    assert_eq!(line.write(CpuId(0), &near), 1, "the sibling loses its copy");
}

#[test]
fn loads_overlap_and_stores_follow_and_atomics_wait() {
    let mut meter = Meter {
        tariff: Tariff {
            atomic: 5,
            container_op: 2,
            blind_tries: false,
            overlap: Overlap::Together,
            caches: Some(Room {
                own: 2,
                last_level: 4,
                from_last_level: 7,
                from_memory: 30,
            }),
            near: near(),
        },
        ..Meter::default()
    };
    let lines: [Line; 4] = core::array::from_fn(|_| Line::default());
    for (line, cpu) in lines.iter().zip([2, 4, 8, 4]) {
        line.write(CpuId(cpu), &Near::default());
    }
    // CPUs 1 and 4 have copies: loads come from the nearest, stores reach the farthest.
    lines[1].read(CpuId(1), &Near::default());
    meter.load(&lines[0], CpuId(0));
    meter.update(&lines[1], CpuId(0));
    assert_eq!(meter.misses.together, 10, "two loads under way together");
    assert_eq!(meter.misses.stores, 100, "after them");
    meter.container_ops(3);
    // Then two atomics, one by one, each after all before it.
    meter.atomic(&lines[2], CpuId(0), 0);
    meter.atomic(&lines[3], CpuId(0), 0);
    let (work, misses) = meter.take();
    assert_eq!(work, 16);
    assert_eq!(misses.chain, 10 + 100 + 1000 + 100);
    assert_eq!((misses.together, misses.stores), (0, 0));
    assert_eq!(meter.take(), (0, Misses::default()));
}

#[test]
fn lines_of_a_table_that_is_too_large_leave_the_caches() {
    let mut meter = Meter {
        tariff: Tariff {
            caches: Some(Room {
                own: 2,
                last_level: 4,
                from_last_level: 7,
                from_memory: 30,
            }),
            near: near(),
            ..Tariff::default()
        },
        ..Meter::default()
    };
    let line = Line::default();
    line.write(CpuId(4), &Near::default());
    let mut load = |lines| {
        meter.load_among(lines, &line, CpuId(0));
        meter.take().1.alone()
    };
    assert_eq!(load(2), 100, "another CPU has it");
    assert_eq!(load(2), 0, "two lines stay");
    assert_eq!(load(3), 7, "it has gone on to the last-level cache");
    assert_eq!(load(4), 7, "which has room for four");
    assert_eq!(load(5), 30, "it has gone on to memory");
    line.write(CpuId(8), &Near::default());
    meter.load_among(3, &line, CpuId(0));
    assert_eq!(
        meter.take().1.alone(),
        1000,
        "taken away, it comes from there"
    );
    meter.tariff.caches = None;
    meter.load_among(8192, &line, CpuId(0));
    assert_eq!(meter.take().1.alone(), 0, "caches without a size hold all");
}

#[test]
fn what_two_count_for_one_label_overlaps() {
    let a = Misses {
        chain: 1,
        together: 10,
        stores: 3,
    };
    let b = Misses {
        chain: 2,
        together: 7,
        stores: 4,
    };
    assert_eq!(a.with(b, Overlap::Together).alone(), 3 + 10 + 4);
    assert_eq!(a.with(b, Overlap::OneByOne).alone(), 3 + 17 + 7);
}

#[test]
fn atomics_on_one_line_stand_in_line() {
    // Prices and times in the unit in which lines keep time.
    const UNIT: u64 = 64;
    let line = Line::default();
    let near = Near::new(CpuId(0), PAIRS, [1, 10, 100, 1000 * UNIT]);
    let mut meter = Meter {
        tariff: Tariff {
            near,
            ..Tariff::default()
        },
        ..Meter::default()
    };
    // Each time a distant CPU had the line meanwhile. The wait of CPU 0 before its transfer.
    let mut waits = |at: u64| {
        line.write(CpuId(9), &Near::default());
        meter.atomic(&line, CpuId(0), at * UNIT);
        meter.take().1.alone() / UNIT - 1000
    };
    assert_eq!(waits(1_000_000), 0);
    assert_eq!(waits(1_000_400), 600);
    assert_eq!(waits(1_000_400), 1600);
    // A CPU that lags, at the time of the first: all others came before it.
    assert_eq!(waits(1_000_100), 2900);
    // Before them all, by less than the transfer takes: the next ones come after it, too.
    assert_eq!(waits(999_500), 0);
    assert_eq!(waits(1_004_000), 500);
    // Long before: the line was free, and the next transfer does not wait.
    assert_eq!(waits(900_000), 0);
    assert_eq!(waits(1_005_000), 500);
    // After them all, and after a wrap of the clock.
    assert_eq!(waits(1_100_000), 0);
    assert_eq!(waits(1_100_000 + (1 << 32) + 1), 999);
    assert_eq!(waits(1_200_000_000), 0);
    // Sixty at one time wait for each other, and the next one, before the last is complete, too.
    for before in 0..60 {
        assert_eq!(waits(1_300_000_000), before * 1000);
    }
    assert_eq!(waits(1_300_020_000), 40_000);
    // One each time a transfer is complete, after those that are left, and so on for long.
    for round in 0..1000 {
        assert_eq!(waits(1_300_021_000 + round * 1000), 40_000);
    }
}

/// A line by a plain list of the CPUs that have copies, and prices by their distance.
struct Naive {
    copies: Vec<u16>,
    exclusive: bool,
}

impl Naive {
    fn distance(of: Numbering, a: u16, b: u16) -> usize {
        let apart = |count: u16| a % of.cores / count != b % of.cores / count;
        match a == b {
            true => 0,
            false => {
                1 + of
                    .adjacent
                    .map(apart)
                    .map(usize::from)
                    .iter()
                    .sum::<usize>()
            }
        }
    }

    /// The nearest and the farthest copy but the CPU's own; 0 if there is none.
    fn reach(&self, of: Numbering, cpu: u16) -> [usize; 2] {
        let others = self.copies.iter().filter(|&&other| other != cpu);
        let distances: Vec<usize> = others
            .map(|&other| Naive::distance(of, cpu, other))
            .collect();
        let far = distances.iter().copied().max().unwrap_or(0);
        [distances.into_iter().min().unwrap_or(0), far]
    }

    fn has(&self, cpu: u16) -> bool {
        self.copies.contains(&cpu)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    /// On machines of up to 1,024 CPUs copies are where they are without any packing: few and many,
    /// in one group of 64 CPUs and across groups.
    #[test]
    fn lines_know_their_cpus(
        sockets in 1_u16..=16,
        dies in 1_u16..=4,
        threads in 1_u16..=2,
        touches in prop::collection::vec((0_u16..3, any::<u16>(), 0_u16..8), 1..120),
    ) {
        let cores_per_die = 8;
        let of = Numbering {
            cores: sockets * dies * cores_per_die,
            threads,
            adjacent: [1, cores_per_die, dies * cores_per_die],
        };
        let cpus = of.cores * threads;
        let prices = [1, 10, 100, 1000];
        let price = |distance: usize| if distance == 0 { 0 } else { prices[distance - 1] };
        let line = Line::default();
        let mut naive = Naive { copies: Vec::new(), exclusive: false };
        for (what, whom, narrow) in touches {
            // Some runs of touches come from few CPUs.
            let whom = if narrow < 4 { whom % 5 * 67 } else { whom };
            let cpu = whom % cpus;
            let near = Near::new(CpuId(cpu), of, prices);
            prop_assert_eq!(line.is_at(CpuId(cpu)), naive.has(cpu));
            prop_assert_eq!(line.is_of(CpuId(cpu)), naive.exclusive && naive.has(cpu));
            let [nearest, farthest] = naive.reach(of, cpu).map(price);
            let had = naive.has(cpu);
            match what {
                0 => {
                    let read = if had { 0 } else { nearest };
                    prop_assert_eq!(line.read(CpuId(cpu), &near), read);
                    if !had {
                        naive.exclusive = false;
                        naive.copies.push(cpu);
                    }
                    continue;
                }
                1 => prop_assert_eq!(line.write(CpuId(cpu), &near), farthest),
                _ => {
                    let load = if had { 0 } else { nearest };
                    let both = match line.is_of(CpuId(cpu)) {
                        true => (0, 0),
                        false => line.claim(CpuId(cpu), &near),
                    };
                    prop_assert_eq!(both, (load, farthest));
                }
            }
            naive = Naive { copies: vec![cpu], exclusive: true };
        }
    }
}
