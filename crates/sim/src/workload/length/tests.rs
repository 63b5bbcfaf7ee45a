use crate::plan::{BlockSize, PerDirection, SizeShare, ThreadPlan};
use crate::workload::tests::{mix, same, take, thread};

/// Sizes in sectors with their shares.
pub(in crate::workload) fn split(sizes: &[(u32, u8)]) -> Vec<SizeShare> {
    let share = |&(sectors, percent)| SizeShare { sectors, percent };
    sizes.iter().map(share).collect()
}

/// A thread of these sizes in all directions, over a region of 16 MiB.
fn of_sizes(sizes: &[(u32, u8)]) -> ThreadPlan {
    let mut plan = thread();
    let sectors = || sizes.iter().map(|(sectors, _)| *sectors);
    plan.block = same(BlockSize {
        min_sectors: sectors().min().unwrap(),
        max_sectors: sectors().max().unwrap(),
    });
    plan.splits = same(split(sizes));
    plan.files[0].region_sectors = 1 << 15;
    plan
}

/// How many of `count` I/Os have each size.
fn counted(plan: &ThreadPlan, count: usize, sizes: &[(u32, u8)]) -> Vec<usize> {
    let ios = take(plan, count);
    assert_eq!(ios.len(), count);
    let of = |sectors: u32| ios.iter().filter(|io| io.sectors.0 == sectors).count();
    sizes.iter().map(|(sectors, _)| of(*sectors)).collect()
}

/// The job of a storage server; its shares add up to 98, and the most frequent size, which fio has
/// last, takes the rest.
#[test]
fn sizes_have_their_shares() {
    let sizes = [
        (128, 4),
        (64, 8),
        (4, 9),
        (32, 10),
        (8, 12),
        (2, 16),
        (16, 19),
        (1, 20),
    ];
    let counts = counted(&of_sizes(&sizes), 100_000, &sizes);
    assert_eq!(counts.iter().sum::<usize>(), 100_000);
    for ((sectors, percent), count) in sizes.iter().zip(counts) {
        let want = 1000
            * if *sectors == 1 {
                22
            } else {
                usize::from(*percent)
            };
        // Five standard deviations are 650.
        assert!(count.abs_diff(want) < 650, "{sectors} sectors: {count}");
    }
}

#[test]
fn directions_have_sizes_of_their_own() {
    let mut plan = of_sizes(&[(8, 50), (16, 50)]);
    plan.mix = mix(50, 50, 0);
    plan.splits = PerDirection {
        read: split(&[(8, 50), (16, 50)]),
        write: split(&[(16, 10), (8, 90)]),
        trim: Vec::new(),
    };
    let ios = take(&plan, 20_000);
    for (op, large) in [
        (blkmq::request::Op::Read, 50),
        (blkmq::request::Op::Write, 10),
    ] {
        let mine: Vec<u32> = ios
            .iter()
            .filter(|io| io.op == op)
            .map(|io| io.sectors.0)
            .collect();
        let percent = 100 * mine.iter().filter(|s| **s == 16).count() / mine.len();
        assert!(percent.abs_diff(large) <= 2, "{op:?}: {percent}");
    }
}

/// At the end of the region the share of a size that does not fit goes to the next size that does,
/// or the draw is repeated: no I/O is cut, and no draw hangs.
#[test]
fn what_does_not_fit_is_drawn_again() {
    let sizes = [(8, 1), (24, 99)];
    let mut plan = of_sizes(&sizes);
    // Three blocks: the last two positions have no room for three.
    plan.files[0].region_sectors = 24;
    let ios = take(&plan, 3000);
    for io in &ios {
        let room = 1024 - io.sector.0;
        assert!(u64::from(io.sectors.0) <= room);
        assert!(room == 24 || io.sectors.0 == 8, "{io:?}");
    }
    let first: Vec<u32> = ios
        .iter()
        .filter(|io| io.sector.0 == 1000)
        .map(|io| io.sectors.0)
        .collect();
    assert_eq!(first.len(), 1000);
    assert!(first.iter().filter(|s| **s == 24).count() > 970);
}

#[test]
fn a_range_is_drawn_again_too() {
    let mut plan = thread();
    plan.block = same(BlockSize {
        min_sectors: 8,
        max_sectors: 64,
    });
    plan.files[0].region_sectors = 64;
    let ios = take(&plan, 4000);
    let at = |block: u64| ios.iter().filter(move |io| io.sector.0 == 1000 + 8 * block);
    // Half of the sizes fit after the fourth block, each as often as the others.
    let full = at(4).filter(|io| io.sectors.0 == 32).count();
    assert!((90..160).contains(&full), "{full}");
}

#[test]
fn drawing_sizes_allocates_nothing() {
    let plan = of_sizes(&[(8, 30), (16, 70)]);
    let mut stream = crate::workload::Stream::new(&plan);
    let counted = allocation_counter::measure(|| {
        for _ in 0..10_000 {
            assert!(stream.next(blkmq::time::Duration::ZERO).is_some());
        }
    });
    assert_eq!(counted.count_total, 0);
}
