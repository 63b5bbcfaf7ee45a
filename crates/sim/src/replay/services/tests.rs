//! Times by place and turn.

use blkmq::request::{Op, Sector};
use blkmq::time::{Duration, SimTime};

use super::{Lookup, Services};
use crate::rng::Rng;

fn services(all: &[(Op, u64, u64, u64, u64)]) -> Services {
    let mut services = Services::default();
    for &(op, sector, sectors, issued, took) in all {
        services.add(
            op,
            (sector, sector + sectors),
            (SimTime(issued), SimTime(issued + took)),
            1,
        );
    }
    services.finish();
    services
}

#[test]
fn the_kth_request_for_a_place_gets_its_kth_time() {
    let mut s = services(&[
        (Op::Read, 100, 8, 50, 7),
        (Op::Read, 100, 8, 10, 5),
        (Op::Write, 100, 8, 20, 9),
        (Op::Read, 108, 8, 30, 11),
    ]);
    assert_eq!(
        s.take(Op::Read, (Sector(100), 8), 1),
        Lookup::Exact(Duration(5))
    );
    assert_eq!(
        s.take(Op::Write, (Sector(100), 8), 1),
        Lookup::Exact(Duration(9))
    );
    assert_eq!(
        s.take(Op::Read, (Sector(100), 8), 1),
        Lookup::Exact(Duration(7))
    );
    assert_eq!(
        s.take(Op::Read, (Sector(100), 8), 1),
        Lookup::Near(Duration(7))
    );
    assert_eq!(
        s.take(Op::Read, (Sector(108), 8), 1),
        Lookup::Exact(Duration(11))
    );
}

#[test]
fn a_piece_of_a_captured_request_takes_its_time_and_a_stranger_the_mean() {
    let mut s = services(&[
        (Op::Read, 100, 64, 10, 40),
        (Op::Read, 300, 8, 20, 20),
        (Op::Write, 100, 8, 30, 90),
    ]);
    assert_eq!(
        s.take(Op::Read, (Sector(132), 8), 1),
        Lookup::Near(Duration(40))
    );
    assert_eq!(
        s.take(Op::Read, (Sector(164), 8), 1),
        Lookup::Mean(Duration(30))
    );
    assert_eq!(
        s.take(Op::Write, (Sector(132), 8), 1),
        Lookup::Mean(Duration(90))
    );
    // No discard was captured: the mean of all.
    assert_eq!(
        s.take(Op::Discard, (Sector(100), 8), 1),
        Lookup::Mean(Duration(50))
    );
}

#[test]
fn nothing_captured_takes_no_time() {
    let mut s = services(&[]);
    assert!(s.is_empty());
    assert_eq!(
        s.take(Op::Read, (Sector(0), 8), 1),
        Lookup::Mean(Duration::ZERO)
    );
}

/// Every second request is kept, reads and writes apart, and a depth that was not seen gets the
/// times of the nearest one.
#[test]
fn a_fitted_device_draws_from_requests_of_the_kind_size_and_depth() {
    let mut s = Services::default();
    for number in 0..64_u64 {
        let (op, depth) = if number < 32 {
            (Op::Read, 1)
        } else {
            (Op::Write, 4)
        };
        let took = if number % 2 == 0 { 100 } else { 900 } + u64::from(depth);
        let at = SimTime(number * 10_000);
        s.add(
            op,
            (number * 8, number * 8 + 8),
            (at, at + Duration(took)),
            depth,
        );
    }
    s.finish();
    let drawn = |half| {
        let times = s.times(|place| place % 2 == half, true);
        Services::drawn(&times, Rng::stream(1, "test"))
    };
    let (mut even, mut odd) = (drawn(0), drawn(1));
    for _ in 0..100 {
        let of = |s: &mut Services, op, depth| s.take(op, (Sector(7), 8), depth).time().0;
        assert_eq!(of(&mut even, Op::Read, 1), 101);
        assert_eq!(of(&mut even, Op::Write, 16), 104);
        assert_eq!(of(&mut odd, Op::Read, 2), 901);
    }
    // A kind that was not seen has the times of all.
    assert_eq!(
        even.take(Op::Discard, (Sector(7), 8), 4).time(),
        Duration(104)
    );
}

/// Runs of slow requests stay together: a host that stops delays all that are in flight.
#[test]
fn slow_times_come_in_runs_as_captured() {
    let mut s = Services::default();
    for number in 0..1000_u64 {
        let took = if number % 100 < 10 { 5000 } else { 10 };
        let at = SimTime(number * 10_000);
        s.add(
            Op::Read,
            (number * 8, number * 8 + 8),
            (at, at + Duration(took)),
            1,
        );
    }
    s.finish();
    let mut drawn = Services::drawn(&s.times(|_| true, false), Rng::stream(7, "test"));
    let times: Vec<u64> = (0..10_000)
        .map(|_| drawn.take(Op::Read, (Sector(0), 8), 1).time().0)
        .collect();
    let slow = times.iter().filter(|time| **time == 5000).count();
    let after_slow = times.windows(2).filter(|two| two == &[5000, 5000]).count();
    assert!((700..1300).contains(&slow), "{slow}");
    assert!(after_slow * 10 > slow * 8, "{after_slow} of {slow}");
}

/// Every second request is a read: a run has as many of them as it is long, no more.
#[test]
fn times_of_one_kind_are_all_drawn_before_one_comes_often() {
    let mut s = Services::default();
    for number in 0..64_u64 {
        let op = if number % 2 == 0 { Op::Read } else { Op::Write };
        let at = SimTime(number * 10_000);
        let sectors = (number * 8, number * 8 + 8);
        s.add(op, sectors, (at, at + Duration(100 + number)), 1);
    }
    s.finish();
    let mut drawn = Services::drawn(&s.times(|_| true, false), Rng::stream(7, "test"));
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..330 {
        let time = drawn.take(Op::Read, (Sector(0), 8), 1).time();
        *counts.entry(time.0).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 32, "{counts:?}");
    assert!(
        counts.values().all(|count| (9..=20).contains(count)),
        "{counts:?}"
    );
}
