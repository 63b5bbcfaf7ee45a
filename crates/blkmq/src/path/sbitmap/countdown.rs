//! Waking before v6.2: a free counts down the next wait queue that has waiters, which is woken at
//! zero. In the successive forms of the mainline, defects included.
//!
//! Kernel: sbq_wake_ptr(), __sbq_wake_up() of lib/sbitmap.c, v4.8 to v6.1, at the commits that
//! [`Countdown`] names, and bt_clear_tag() of 4.6.2; the forms were read, no such tree was run.

use super::TagMap;
use super::put::{At, next_queue, wake_queue};
use crate::rules::{Countdown, WakeScan};
use crate::step::Cx;
use steps::steps;

/// __sbq_wake_up(), again while it says so.
#[steps(stages)]
pub(super) fn sbq_wake_up(cx: &mut Cx<'_>, tags: TagMap, wake_batch: u32) {
    while let Some(queue) = sub!(sbq_wake_ptr(tags)) {
        let queue: u32 = queue;
        match form(cx) {
            Countdown::CountsBack => {
                at!(Down);
                let mut count: i32 = tags.of(cx).countdowns[queue as usize].add_return(cx.cpu, -1);
                if count < 0 {
                    /// Take the count back (to v4.7).
                    at!(Back);
                    count = tags.of(cx).countdowns[queue as usize].add_return(cx.cpu, 1);
                }
                if count == 0 {
                    at!(Reset);
                    let batch = tags.of(cx).wake_batch.get() as i32;
                    tags.of(cx).countdowns[queue as usize].add(cx.cpu, batch);
                    sub!(advance_index(tags));
                    sub!(wake_queue(tags, queue, wake_batch));
                }
                return;
            }
            Countdown::Adds | Countdown::Resets => {
                /// Count down.
                at!(Down);
                let count: i32 = tags.of(cx).countdowns[queue as usize].add_return(cx.cpu, -1);
                if count > 0 {
                    return;
                }
                /// Store the batch, unless the count was changed (before v6.1).
                at!(Reset);
                let batch = tags.of(cx).wake_batch.get() as i32;
                let adds = form(cx) == Countdown::Adds;
                let next = if adds { count + batch } else { batch };
                let wait_cnt = &tags.of(cx).countdowns[queue as usize];
                if wait_cnt.compare_exchange(cx.cpu, count, next) || adds {
                    sub!(advance_index(tags));
                    sub!(wake_queue(tags, queue, wake_batch));
                    return;
                }
            }
            Countdown::LeavesZero => {
                at!(Down);
                let count: i32 = tags.of(cx).countdowns[queue as usize].add_return(cx.cpu, -1);
                if count >= 0 {
                    /// Has the queue entries left (v6.1-rc)?
                    at!(Left);
                    if tags.of(cx).wait[queue as usize].active.test(cx.cpu) {
                        if count == 0 {
                            sub!(wake_and_refill(tags, queue, wake_batch));
                        }
                        return;
                    }
                }
            }
            Countdown::Spins | Countdown::PassesOver => loop {
                /// Read the count (4acb83417cad and later).
                at!(Read);
                let count: i32 = tags.of(cx).countdowns[queue as usize].read(cx.cpu);
                if count == 0 {
                    break;
                }
                /// Take one, unless the count was changed.
                at!(Take);
                let wait_cnt = &tags.of(cx).countdowns[queue as usize];
                if wait_cnt.compare_exchange(cx.cpu, count, count - 1) {
                    if count == 1 {
                        sub!(wake_and_refill(tags, queue, wake_batch));
                    }
                    return;
                }
            },
        }
        at!(Index);
    }
}

/// sbq_wake_ptr(): a queue that has waiters, and with v6.1 is not at zero.
#[steps(stages)]
pub(super) fn sbq_wake_ptr(cx: &mut Cx<'_>, tags: TagMap) -> Option<u32> {
    let mut queue: u32 = tags.of(cx).wake_index.read(cx.cpu) as u32;
    let mut looked: u32 = 0;
    while (looked as usize) < tags.of(cx).wait.len() {
        at!(Peek);
        let mut found: bool = tags.of(cx).wait[queue as usize].active.test(cx.cpu);
        if found && form(cx) == Countdown::PassesOver {
            /// Before v6.2: is the queue's count above zero (v6.1)?
            at!(Above);
            found = tags.of(cx).countdowns[queue as usize].read(cx.cpu) != 0;
        }
        if found {
            if looked > 0 {
                /// The index was further back: store the queue that was found.
                at!(Point);
                tags.of(cx).wake_index.write(cx.cpu, queue as i32);
            }
            return Some(queue);
        }
        looked += 1;
        queue = next_queue(cx, tags, queue);
    }
    None
}

/// From v6.1-rc on: the batch is stored after the wake-up, and after the index.
#[steps(stages)]
pub(super) fn wake_and_refill(cx: &mut Cx<'_>, tags: TagMap, queue: u32, wake_batch: u32) {
    sub!(wake_queue(tags, queue, wake_batch));
    sub!(advance_index(tags));
    /// Store the batch (v6.1).
    at!(Refill);
    let batch = tags.of(cx).wake_batch.get() as i32;
    tags.of(cx).countdowns[queue as usize].write(cx.cpu, batch);
}

#[steps(stages)]
pub(super) fn advance_index(cx: &mut Cx<'_>, tags: TagMap) {
    /// Read the index.
    at!(Ahead);
    let old: i32 = tags.of(cx).wake_index.read(cx.cpu);
    /// Move it on, unless it was moved.
    at!(Advance);
    let map = tags.of(cx);
    let next = (old + 1) % map.wait.len() as i32;
    map.wake_index.compare_exchange(cx.cpu, old, next);
}

fn form(cx: &Cx<'_>) -> Countdown {
    match cx.rules().wake_scan {
        WakeScan::Countdown(form) => form,
        _ => unreachable!("queues are counted down before v6.2 only"),
    }
}

#[cfg(test)]
mod tests;
