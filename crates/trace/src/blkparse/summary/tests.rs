use super::version_order;
use std::cmp::Ordering::{Equal, Greater, Less};

/// Pairs and their order by strverscmp(3) of glibc.
#[test]
fn names_are_in_the_order_of_the_c_library() {
    for (a, b, order) in [
        ("fio", "fio", Equal),
        ("fio9", "fio10", Less),
        ("kworker/10:1", "kworker/9:1", Greater),
        ("000", "00", Less),
        ("00", "01", Less),
        ("01", "010", Less),
        ("010", "09", Less),
        ("09", "0", Less),
        ("0", "1", Less),
        ("1a", "1", Greater),
        ("a", "a1", Less),
        ("a01", "a1", Less),
    ] {
        assert_eq!(version_order(a.as_bytes(), b.as_bytes()), order, "{a} {b}");
        assert_eq!(version_order(b.as_bytes(), a.as_bytes()), order.reverse());
    }
}
