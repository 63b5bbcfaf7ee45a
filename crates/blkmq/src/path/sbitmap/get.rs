//! The allocation of a bit, word by word. Kernel: sbitmap_get(), sbitmap_deferred_clear(),
//! __sbitmap_queue_get_batch() (6.1.192, 6.12.117).

use super::TagMap;
use crate::names::stages;
use crate::rules::FreedBits;
use crate::step::Cx;
use steps::steps;

/// sbitmap_get(), with `shallow` sbitmap_get_shallow(): a search that begins in the word of `hint`,
/// this CPU's.
#[steps(stages, inline)]
pub(in crate::path) fn sbitmap_get(
    cx: &mut Cx<'_>,
    tags: TagMap,
    hint: u32,
    shallow: Option<u32>,
) -> Option<u32> {
    let map = tags.of(cx);
    let mut index: u32 = hint >> map.shift;
    let mut start: u32 = if map.round_robin || shallow.is_some() {
        hint & ((1 << map.shift) - 1)
    } else {
        0
    };
    let mut tried: u32 = 0;
    loop {
        let map = tags.of(cx);
        if let Some(bit) = map.get_in_word(cx.cpu, index, start, shallow) {
            map.hint_after(cx.cpu, hint, Some(bit));
            return Some(bit);
        }
        let mut again: bool = false;
        if map.freed_bits == FreedBits::Deferred && map.word_depth(index, shallow) > 0 {
            if map.swap_lock {
                /// Under swap_lock: are there freed bits to merge back?
                lock!(Merge, tags.swap_lock(cx, index));
                let map = tags.of(cx);
                let usable = Some(map.usable(index, start, shallow));
                again = map.deferred_clear(cx.cpu, index, usable);
            } else {
                again = sub!(deferred_clear_unlocked(tags, index));
            }
        }
        if !again {
            let count = tags.of(cx).word_count();
            tried += 1;
            if tried >= count {
                tags.of(cx).hint_after(cx.cpu, hint, None);
                return None;
            }
            start = 0;
            index = if index + 1 < count { index + 1 } else { 0 };
        }
        /// Search for a zero bit in the current word.
        at!(Search);
    }
}

/// sbitmap_deferred_clear() of v5.11 to v6.10: whether there were freed bits. Between two of its
/// steps another CPU sees them in neither word.
#[steps(stages)]
pub(super) fn deferred_clear_unlocked(cx: &mut Cx<'_>, tags: TagMap, index: u32) -> bool {
    /// Without that lock: are there?
    at!(Freed);
    if tags.of(cx).words[index as usize].cleared.load(cx.cpu) == 0 {
        return false;
    }
    /// Without the lock: take them out of the cleared word.
    at!(Seize);
    let cleared = &tags.of(cx).words[index as usize].cleared;
    let freed: u64 = cleared.swap(cx.cpu, 0);
    /// Without it: take them out of the word.
    at!(Release);
    let word = &tags.of(cx).words[index as usize].word;
    word.fetch_and(cx.cpu, !freed);
    true
}

/// __sbitmap_queue_get_batch() of up to `count` bits in a row, from the word of `hint` on: a bit of
/// the map, and the bits from there that were free. Without a run the hint stays.
#[steps(stages)]
pub(in crate::path) fn sbitmap_queue_get_batch(
    cx: &mut Cx<'_>,
    tags: TagMap,
    hint: u32,
    count: u32,
) -> Option<(u32, u64)> {
    let mut index: u32 = hint >> tags.of(cx).shift;
    let mut tried: u32 = 0;
    loop {
        if tags.of(cx).freed_bits == FreedBits::Deferred {
            /// Batch: under swap_lock, merge freed bits back first.
            lock!(RunMerge, tags.swap_lock(cx, index));
            tags.of(cx).deferred_clear(cx.cpu, index, None);
        }
        /// Batch: take a run of bits.
        at!(Run);
        let map = tags.of(cx);
        let (word, depth) = (&map.words[index as usize].word, map.bits_of(index as usize));
        if let Some((first, bits)) = word.acquire_run(cx.cpu, count, depth) {
            debug_assert_ne!(bits, 0, "a run of bits that were all taken");
            debug_assert_eq!(
                word.peek() >> first & bits,
                bits,
                "one of them is not taken"
            );
            let first = first + (index << map.shift);
            debug_assert!(first + count <= map.depth(), "a run beyond the map");
            map.hint_after(cx.cpu, hint, Some(first + count - 1));
            return Some((first, bits));
        }
        tried += 1;
        if tried >= map.word_count() {
            return None;
        }
        index = if index + 1 < map.word_count() {
            index + 1
        } else {
            0
        };
        at!(Search);
    }
}

stages! {
    pub(in crate::path) enum At in "tag-get" of
        sbitmap_get deferred_clear_unlocked sbitmap_queue_get_batch
}
