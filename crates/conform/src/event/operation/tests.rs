//! Operations from letters and numbers.

use blkmq::request::Op;

use super::{op_of_flags, op_of_rwbs};

#[test]
fn letters_name_the_operation() {
    for (rwbs, sectors, op) in [
        ("R", 8, Op::Read),
        ("RA", 8, Op::Read),
        ("WS", 8, Op::Write),
        ("FWS", 8, Op::Write),
        ("WFS", 8, Op::Write),
        ("D", 8, Op::Discard),
        ("DS", 8, Op::Discard),
        ("DE", 8, Op::WriteZeroes),
        ("N", 8, Op::WriteZeroes),
        ("NS", 8, Op::WriteZeroes),
        // A flush, and every other letter without a length.
        ("FN", 0, Op::Flush),
        ("FF", 0, Op::Flush),
        ("N", 0, Op::Read),
    ] {
        assert_eq!(op_of_rwbs(rwbs, sectors).0, op, "{rwbs} {sectors}");
    }
    assert!(op_of_rwbs("FWFSM", 8).1.preflush && op_of_rwbs("FWFSM", 8).1.fua);
}

/// include/linux/blk_types.h; odd unknown operations write.
#[test]
fn numbers_name_the_operation() {
    let sync_and_more = 0x0800;
    for (number, op) in [
        (0, Op::Read),
        (1, Op::Write),
        (2, Op::Flush),
        (3, Op::Discard),
        (5, Op::WriteZeroes),
        (9, Op::WriteZeroes),
        (7, Op::Write),
    ] {
        assert_eq!(op_of_flags(sync_and_more | number), op, "{number}");
    }
}
