//! Times by place and turn.

use blkmq::request::{Op, Sector};
use blkmq::time::{Duration, SimTime};

use super::{Services, Taken};

fn services(all: &[(Op, u64, u64, u64, u64)]) -> Services {
    let mut services = Services::default();
    for &(op, sector, sectors, issued, took) in all {
        services.add(
            op,
            (sector, sector + sectors),
            SimTime(issued),
            SimTime(issued + took),
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
    assert_eq!(s.take(Op::Read, Sector(100)), Taken::Exact(Duration(5)));
    assert_eq!(s.take(Op::Write, Sector(100)), Taken::Exact(Duration(9)));
    assert_eq!(s.take(Op::Read, Sector(100)), Taken::Exact(Duration(7)));
    assert_eq!(s.take(Op::Read, Sector(100)), Taken::Near(Duration(7)));
    assert_eq!(s.take(Op::Read, Sector(108)), Taken::Exact(Duration(11)));
}

#[test]
fn a_piece_of_a_captured_request_takes_its_time_and_a_stranger_the_mean() {
    let mut s = services(&[
        (Op::Read, 100, 64, 10, 40),
        (Op::Read, 300, 8, 20, 20),
        (Op::Write, 100, 8, 30, 90),
    ]);
    assert_eq!(s.take(Op::Read, Sector(132)), Taken::Near(Duration(40)));
    assert_eq!(s.take(Op::Read, Sector(164)), Taken::Mean(Duration(30)));
    assert_eq!(s.take(Op::Write, Sector(132)), Taken::Mean(Duration(90)));
    // No discard was captured: the mean of all.
    assert_eq!(s.take(Op::Discard, Sector(100)), Taken::Mean(Duration(50)));
}

#[test]
fn nothing_captured_takes_no_time() {
    let mut s = services(&[]);
    assert!(s.is_empty());
    assert_eq!(s.take(Op::Read, Sector(0)), Taken::Mean(Duration::ZERO));
}
