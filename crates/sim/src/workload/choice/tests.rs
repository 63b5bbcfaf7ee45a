use std::collections::BTreeMap;

use crate::plan::{
    Decimal, Distribution, Extent, FileService, Order, PerDirection, Shape, Skew, ThreadPlan, Zone,
};
use crate::workload::NextIo;
use crate::workload::tests::{mix, same, take, thread};
use blkmq::request::Op;

fn drawn_by(distribution: Distribution) -> ThreadPlan {
    let mut plan = thread();
    plan.order = Order::Random;
    plan.distribution = distribution;
    plan.files[0].region_sectors = 8000;
    plan
}

fn zipf(billionths: u64, center: Option<u64>) -> Skew {
    Skew {
        shape: Shape::Zipf(Decimal { billionths }),
        center: center.map(|billionths| Decimal { billionths }),
    }
}

/// Hits of each block, the most frequent first.
fn hits(ios: &[NextIo]) -> Vec<(usize, u64)> {
    let mut hits: BTreeMap<u64, usize> = BTreeMap::new();
    for io in ios {
        *hits.entry((io.sector.0 - 1000) / 8).or_default() += 1;
    }
    let mut hits: Vec<(usize, u64)> = hits.into_iter().map(|(block, n)| (n, block)).collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    hits
}

/// The hot blocks are spread by fio's hash, not adjacent, and differ from those of another thread.
#[test]
fn the_hot_blocks_are_strewn() {
    let plan = drawn_by(Distribution::Skewed(zipf(1_200_000_000, Some(0))));
    let hot = hits(&take(&plan, 50_000));
    let golden = |rank: u64| rank.wrapping_mul(0x61c8_8646_80b5_83eb) % 1000;
    let places: Vec<u64> = hot[..3].iter().map(|(_, block)| *block).collect();
    assert_eq!(places, [golden(0), golden(1), golden(2)]);
    // 1 / zeta of the draws, 0.24 of a thousand blocks.
    assert!((11_000..12_600).contains(&hot[0].0), "{}", hot[0].0);
    let mut anywhere = drawn_by(Distribution::Skewed(zipf(1_200_000_000, None)));
    let first = hits(&take(&anywhere, 1000))[0].1;
    anywhere.clone += 1;
    assert_ne!(hits(&take(&anywhere, 1000))[0].1, first);
}

/// Blocks that are read often are written often.
#[test]
fn directions_share_the_hot_blocks() {
    let mut plan = drawn_by(Distribution::Skewed(zipf(1_200_000_000, None)));
    plan.mix = mix(50, 50, 0);
    let ios = take(&plan, 10_000);
    let of = |op: Op| {
        let mine: Vec<NextIo> = ios.iter().copied().filter(|io| io.op == op).collect();
        hits(&mine)[0].1
    };
    assert_eq!(of(Op::Read), of(Op::Write));
}

fn zone(percent: u8, size: Extent) -> Zone {
    Zone { percent, size }
}

/// random_distribution=zoned:60/10:30/20:8/30:2/40, the manual's.
#[test]
fn zones_have_their_shares() {
    let zones = [(60, 10), (30, 20), (8, 30), (2, 40)];
    let zones: Vec<Zone> = zones
        .iter()
        .map(|&(access, size)| zone(access, Extent::Percent(size)))
        .collect();
    let plan = drawn_by(Distribution::Zoned(same(zones)));
    let ios = take(&plan, 50_000);
    let within = |from: u64, to: u64| {
        let blocks = ios.iter().map(|io| (io.sector.0 - 1000) / 8);
        blocks.filter(|block| (from..to).contains(block)).count() as i64
    };
    for (from, to, want) in [
        (0, 100, 30_000),
        (100, 300, 15_000),
        (300, 600, 4_000),
        (600, 1000, 1_000),
    ] {
        let count = within(from, to);
        assert!((count - want).abs() < 500, "{from} to {to}: {count}");
        // Inside a zone all are alike.
        let half = within(from, from.midpoint(to));
        assert!(
            (2 * half - want).abs() < want / 10,
            "{from} to {to}: {half}"
        );
    }
}

/// Absolute zones end at their written end, and directions may have their own or none.
#[test]
fn zones_in_bytes() {
    let zones = vec![
        zone(90, Extent::Bytes(10 * 4096)),
        zone(10, Extent::Bytes(40 * 4096)),
    ];
    let mut plan = drawn_by(Distribution::Zoned(PerDirection {
        read: zones,
        write: Vec::new(),
        trim: Vec::new(),
    }));
    plan.mix = mix(50, 50, 0);
    let ios = take(&plan, 20_000);
    let of = |op: Op| {
        let mine = ios.iter().filter(move |io| io.op == op);
        mine.map(|io| (io.sector.0 - 1000) / 8)
    };
    assert_eq!(of(Op::Read).max(), Some(49));
    let first = of(Op::Read).filter(|block| *block < 10).count();
    let all = of(Op::Read).count();
    assert!((88..92).contains(&(100 * first / all)), "{first} of {all}");
    assert!(of(Op::Write).max() > Some(980));
}

/// file_service_type=zipf: the first files have most of the I/Os.
#[test]
fn files_may_be_skewed() {
    let mut plan = thread();
    let file = plan.files[0];
    plan.files = (0..4)
        .map(|disk| crate::plan::FilePlan {
            disk: crate::plan::DiskId(disk),
            ..file
        })
        .collect();
    plan.file_service = FileService::Skewed(zipf(1_200_000_000, Some(0)));
    let ios = take(&plan, 10_000);
    let count = |disk: u16| ios.iter().filter(|io| io.disk.0 == disk).count();
    // Ranks 0 to 1023 of 4096.
    assert!(count(0) > 8_500, "{}", count(0));
    assert!(count(0) > count(1) && count(1) > count(3) && count(3) > 0);
}

#[test]
fn a_skewed_io_allocates_nothing() {
    let zones = vec![zone(100, Extent::Percent(50))];
    for distribution in [
        Distribution::Skewed(zipf(1_200_000_000, None)),
        Distribution::Zoned(same(zones)),
    ] {
        let mut plan = drawn_by(distribution);
        plan.new_every = 2;
        plan.random_percent = same(50);
        let mut stream = crate::workload::Stream::new(&plan);
        let counted = allocation_counter::measure(|| {
            for _ in 0..10_000 {
                assert!(stream.next(blkmq::time::Duration::ZERO).is_some());
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}
