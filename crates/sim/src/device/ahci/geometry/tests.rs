use super::*;
use crate::device::ahci::tests::{disk, with};
use proptest::prelude::*;

fn sata2009() -> Geometry {
    Geometry::new(&disk())
}

/// In tenths of a percent.
fn off_by(is: u64, should_be: u64) -> u64 {
    is.abs_diff(should_be) * 1000 / should_be
}

#[test]
fn seeks_take_what_the_disk_says() {
    let disk = disk();
    assert_eq!(disk.seek(0).0, 0);
    assert_eq!(disk.seek(50_000).0, 8_500_000);
    assert_eq!(disk.seek(149_999).0, 17_000_000);
    // 0.8 + 0.0344 ms: the root of one cylinder.
    assert!(off_by(disk.seek(1).0, 834_400) < 2);
    // The mean over all pairs, each distance weighted by how many pairs have it.
    let (mut sum, mut pairs) = (0u128, 0u128);
    for distance in (1..150_000u32).step_by(7) {
        let of = u128::from(150_000 - distance);
        sum += of * u128::from(disk.seek(distance).0);
        pairs += of;
    }
    assert!(off_by((sum / pairs) as u64, 8_200_000) < 20);
}

#[test]
fn zones_stream_at_their_rate() {
    let g = sata2009();
    for (part, rate) in [(0, 120), (1, 90), (2, 60)] {
        let sector = (g.sectors() / 2 * part).min(g.sectors() - 200_000);
        let end = Sector(sector + 100_000);
        let spot = g.locate(Sector(sector));
        let begin = g.arrives(spot, spot, SimTime::ZERO);
        let takes = g.passes(Sector(sector), end, begin).since(begin);
        let bytes_a_ms = 100_000 * 512 * 1_000_000 / takes.0;
        // The middle of the capacity lies further out than that of the cylinders.
        let least = if part == 1 { rate * 1000 } else { rate * 980 };
        let most = if part == 1 { rate * 1080 } else { rate * 1020 };
        assert!(
            (least..=most).contains(&bytes_a_ms),
            "{rate} MB/s: {bytes_a_ms}"
        );
    }
}

#[test]
fn a_sector_comes_round_once_a_turn() {
    let g = sata2009();
    let spot = g.locate(Sector(4_000_000));
    let first = g.arrives(spot, spot, SimTime(1_000_000));
    let again = g.arrives(spot, spot, first + Duration(1));
    assert_eq!(again.since(first), g.turn());
    assert_eq!(g.turn().0, 8_333_333);
}

#[test]
fn a_change_of_track_loses_no_turn() {
    let g = sata2009();
    let zone = g.zones[0];
    let last = Sector(u64::from(zone.per_track) - 1);
    let begin = g.arrives(g.locate(Sector(0)), g.locate(last), SimTime::ZERO);
    let takes = g.passes(last, Sector(last.0 + 2), begin).since(begin).0;
    let sector = g.turn / u64::from(zone.per_track);
    assert!(takes.abs_diff(g.head_switch + 2 * sector) <= 2, "{takes}");
}

proptest! {
    /// Each sector has one place, and places are in the order of sectors.
    #[test]
    fn places_are_in_order(
        a in 0u64..1_000_000_000,
        b in 0u64..1_000_000_000,
        heads in 1u32..9,
        zones in 1u32..40,
    ) {
        let g = Geometry::new(&with(|plan| {
            plan.heads = heads;
            plan.zones = zones;
        }));
        let (a, b) = (a % g.sectors(), b % g.sectors());
        let key = |sector| {
            let spot = g.locate(Sector(sector));
            assert!(spot.index < spot.per_track);
            assert!(spot.head < heads);
            assert!(spot.cylinder < 150_000);
            (spot.cylinder, spot.head, spot.index)
        };
        prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
    }

    #[test]
    fn seeks_grow(a in 0u32..150_000, b in 0u32..150_000) {
        let disk = disk();
        prop_assert!(disk.seek(a.min(b)) <= disk.seek(a.max(b)));
    }

    /// The arm is at a sector within a turn of getting there, and always at the same angle.
    #[test]
    fn waits_are_less_than_a_turn(
        from in 0u64..800_000_000,
        to in 0u64..800_000_000,
        at in 0u64..1 << 40,
    ) {
        let g = sata2009();
        let (from, to) = (g.locate(Sector(from)), g.locate(Sector(to)));
        let there = g.moved(from, to, SimTime(at));
        let begins = g.arrives(from, to, SimTime(at));
        prop_assert!(begins.since(there).0 < g.turn);
        prop_assert_eq!(begins.0 % g.turn, g.angle(to));
    }

    /// How far the head comes by a time agrees with when it arrives there.
    #[test]
    fn how_far_and_when_agree(
        sector in 0u64..800_000_000,
        count in 1u64..20_000,
        by in 0u64..60_000_000,
    ) {
        let g = sata2009();
        let (sector, end) = (Sector(sector), Sector(sector + count));
        let start = SimTime(1_000_000_000);
        let (come, at) = g.comes_to(sector, end, start, start + Duration(by));
        prop_assert!(come >= sector && come <= end);
        // Or it is on its way to the next track.
        prop_assert!(at <= start + Duration(by) || come == sector || g.locate(come).index == 0);
        let between = come == sector || g.locate(come).index == 0;
        prop_assert!(g.passes(sector, come, start) == at || between);
        if come < end {
            let next = g.passes(sector, Sector(come.0 + 1), start);
            prop_assert!(next.0 + 1 >= start.0 + by, "it could have come further");
        }
    }
}
