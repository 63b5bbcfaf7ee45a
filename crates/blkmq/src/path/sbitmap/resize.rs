//! Another depth of a map in use: freed bits are merged back first, the words keep their size, and
//! bits above the new depth stay taken until they are freed.
//!
//! Kernel: sbitmap_queue_resize(), sbitmap_resize(), sbitmap_queue_update_wake_batch() in
//! lib/sbitmap.c (6.1.192, 6.12.117; 5.11 for queues that count down by themselves).

use super::TagMap;
use super::get::deferred_clear_unlocked;
use crate::names::stages;
use crate::step::Cx;
use steps::steps;

/// sbitmap_queue_resize().
#[steps(stages)]
pub(in crate::path) fn sbitmap_queue_resize(cx: &mut Cx<'_>, tags: TagMap, depth: u32) {
    let mut index: u32 = 0;
    // sbitmap_queue_update_wake_batch()
    let map = tags.of(cx);
    let batch = map.batch_of(depth);
    if batch != map.wake_batch.get() {
        map.wake_batch.put(batch);
        while (index as usize) < tags.of(cx).countdowns.len() {
            /// A queue that counts by itself starts again: the next free wakes it (before v6.2).
            at!(Reset);
            tags.of(cx).countdowns[index as usize].write(cx.cpu, 1);
            index += 1;
        }
        index = 0;
    }
    // sbitmap_resize()
    while index < tags.of(cx).word_count() {
        if tags.of(cx).swap_lock {
            /// Under swap_lock of the next word: merge freed bits back.
            lock!(Merge, tags.swap_lock(cx, index));
            tags.of(cx).deferred_clear(cx.cpu, index, None);
        } else {
            sub!(deferred_clear_unlocked(tags, index));
        }
        index += 1;
    }
    /// The new depth.
    at!(Depth);
    tags.of(cx).set_depth(depth);
}

stages! {
    enum At in "tag-resize" of sbitmap_queue_resize
}

#[cfg(test)]
mod tests;
