//! Stores as sysfs takes them.

use super::MqDeadlineSettings;
use crate::elevator::{Attributes, StoreError};
use crate::time::Jiffies;

fn settings() -> MqDeadlineSettings {
    MqDeadlineSettings::defaults(250, 128)
}

fn stored(name: &str, text: &str) -> i128 {
    let mut settings = settings();
    settings.store(name, text).expect("a valid store");
    let shown = settings.shown();
    let found = shown.into_iter().find(|&(known, _)| known == name);
    found.expect("an attribute").1
}

#[test]
fn defaults_are_those_of_the_kernel() {
    let shown: Vec<i128> = settings()
        .shown()
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    assert_eq!(shown, [500, 5000, 10000, 2, 16, 1, 128]);
    assert_eq!(settings().read_expire, Jiffies(125));
}

#[test]
fn stores_are_clamped() {
    assert_eq!(stored("read_expire", "-5"), 0);
    assert_eq!(stored("fifo_batch", "-1"), 0);
    assert_eq!(stored("front_merges", "7"), 1);
    assert_eq!(stored("front_merges", "-1"), 0);
    assert_eq!(stored("async_depth", "0"), 1);
    assert_eq!(stored("async_depth", "-3"), 1);
    assert_eq!(stored("writes_starved", "-3"), -3);
}

#[test]
fn milliseconds_round_up_to_ticks() {
    assert_eq!(stored("write_expire", "1"), 4);
    assert_eq!(stored("write_expire", "4"), 4);
    assert_eq!(stored("write_expire", "5"), 8);
    assert_eq!(stored("write_expire", "2147483647"), 2_147_483_648);
}

#[test]
fn numbers_are_read_as_the_kernel_reads_them() {
    assert_eq!(stored("fifo_batch", "0x10\n"), 16);
    assert_eq!(stored("fifo_batch", "010"), 8);
    assert_eq!(stored("fifo_batch", "+3"), 3);
    assert_eq!(stored("fifo_batch", "0"), 0);
    assert_eq!(stored("writes_starved", "-0x2"), -2);
}

#[test]
fn what_is_no_int_is_refused() {
    let refusal = |text: &str| settings().store("fifo_batch", text).expect_err("a refusal");
    let text = |text: &str| text.to_owned();
    for wrong in ["", "four", "1 ", "--1", "+-1", "0x", "08", "1.5"] {
        assert_eq!(
            refusal(wrong),
            StoreError::NotANumber {
                name: "fifo_batch",
                text: text(wrong)
            }
        );
    }
    for wrong in ["2147483648", "-2147483649", "99999999999999999999"] {
        assert_eq!(
            refusal(wrong),
            StoreError::OutOfRange {
                name: "fifo_batch",
                text: text(wrong),
                range: "-2147483648 to 2147483647",
            }
        );
    }
    let unknown = settings().store("quantum", "1").expect_err("a refusal");
    assert!(
        unknown
            .to_string()
            .contains("it has read_expire, write_expire"),
        "{unknown}"
    );
}
