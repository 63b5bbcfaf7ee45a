//! The sizes of words and wake batches.

use super::{Sbitmap, shift_for};
use crate::rules::ShallowDepth;

pub(crate) const CPUS: usize = 3;

pub(crate) fn map(depth: u32, rule: ShallowDepth, min_shallow: Option<u32>) -> Sbitmap {
    let mut next = 0;
    Sbitmap::new(depth, CPUS, rule, min_shallow, 8, || {
        next += 7;
        next
    })
}

#[test]
fn bits_spread_over_at_least_four_words_where_they_can() {
    let words = |depth: u32| (1 << shift_for(depth), depth.div_ceil(1 << shift_for(depth)));
    assert_eq!(words(1), (64, 1));
    assert_eq!(words(3), (64, 1));
    assert_eq!(words(4), (1, 4));
    assert_eq!(words(31), (4, 8));
    assert_eq!(words(64), (16, 4));
    assert_eq!(words(128), (32, 4));
    assert_eq!(words(256), (64, 4));
    assert_eq!(words(1023), (64, 16));
}

#[test]
fn wake_batches_of_known_devices() {
    let batch = |depth, rule, shallow| map(depth, rule, shallow).wake_batch.get();
    let (total, per_word) = (ShallowDepth::Total, ShallowDepth::PerWord);
    assert_eq!(batch(1, total, None), 1);
    assert_eq!(batch(32, total, None), 4);
    assert_eq!(batch(64, per_word, None), 8);
    assert_eq!(batch(1023, total, None), 8);
    // mq-deadline: min_shallow_depth 1. v6.1 counts one bit of each of four words.
    assert_eq!(batch(256, total, Some(1)), 1);
    assert_eq!(batch(256, per_word, Some(1)), 1);
    assert_eq!(batch(256, per_word, Some(16)), 8);
    assert_eq!(batch(256, total, Some(16)), 2);
}
