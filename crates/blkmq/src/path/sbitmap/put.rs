//! The free of a bit, and the wake-up of those who wait for one. Kernel: blk_mq_put_tag(),
//! sbitmap_queue_clear(), sbitmap_queue_wake_up(), __sbitmap_queue_wake_up(),
//! sbitmap_queue_wake_all() (6.1.192, 6.12.117).

use super::TagMap;
use super::countdown::sbq_wake_up;
use crate::env::{Cpu, Effect, mb};
use crate::names::stages;
use crate::path::run::wake;
use crate::path::token::dequeued;
use crate::path::{OwnedTags, may_queue};
use crate::request::CpuId;
use crate::rules::{FreedBits, TagWaiters, WakeScan};
use crate::sbitmap::Sbitmap;
use crate::step::{Cx, Steps};
use crate::time::Duration;
use crate::waiter::Waiter;
use steps::steps;

/// What a wake-up does to an entry of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::path) enum Woken {
    /// A task that runs: it is passed over.
    AlreadyRunning,
    /// It leaves the wait queue: a task wakes up, an hctx is run.
    Dequeued,
    /// An hctx that leaves the wait queue, and needs no run.
    Idle,
}

/// A tag to be freed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::path) struct Put {
    pub(in crate::path) bit: u32,
    /// The CPU that allocated it.
    pub(in crate::path) owner: CpuId,
    pub(in crate::path) counted: Counted,
}

/// Whether the request of a driver tag counts among those with tags (sets that queues share), and
/// until when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::path) enum Counted {
    /// It does not, or not any more.
    #[default]
    No,
    /// Until its tag is freed.
    Before,
    /// Until after the free of its tag and the wake-ups.
    After,
}

/// blk_mq_put_tag(), with __blk_mq_dec_active_requests() before or after it; sbitmap_queue_clear()
/// of a token.
#[steps(stages)]
pub(in crate::path) fn put_tag(cx: &mut Cx<'_>, tags: TagMap, put: Put) {
    let counted: Counted = match tags {
        TagMap::Driver(_) if cx.set().queue_shared() => put.counted,
        _ => Counted::No,
    };
    if counted == Counted::Before {
        uncount(cx, tags);
        /// Set the bit in `cleared`, or clear it in its word (`Rules::freed_bits`).
        at!(Clear);
    }
    clear_bit(tags.of(cx), put.bit, cx.cpu);
    /// Are there waiters?
    at!(Active);
    sub!(sbitmap_queue_wake_up(tags, 1));
    // A woken task searches from the old hint.
    tags.of(cx).hint_freed(put.owner, put.bit);
    if counted == Counted::After {
        /// Count the request out of those with tags (v6.1).
        at!(Uncount);
        uncount(cx, tags);
    }
}

impl put_tag::State {
    /// The tag that this path frees, while its bit is set.
    pub(in crate::path) fn freed_by(path: &impl Steps) -> Option<OwnedTags> {
        let state = path.find::<put_tag::State>()?;
        let bit = (state.stage() == Some(At::Clear.name())).then_some(state.put.bit)?;
        match state.tags {
            TagMap::Driver(hctx) => Some(OwnedTags {
                hctx,
                driver: Some(bit),
                sched: None,
            }),
            // Nothing comes before the free of its bit.
            TagMap::Sched(_) | TagMap::Token(_) => None,
        }
    }
}

/// sbitmap_queue_wake_up() for `nr` bits that are free.
#[steps(stages, inline)]
pub(in crate::path) fn sbitmap_queue_wake_up(cx: &mut Cx<'_>, tags: TagMap, nr: u32) {
    // Read once: a batch that changes meanwhile belongs to another free.
    let map = tags.of(cx);
    let wake_batch: u32 = map.wake_batch.get();
    if map.ws_active.read(cx.cpu) == 0 {
        return;
    }
    if matches!(cx.rules().wake_scan, WakeScan::Countdown(_)) {
        at!(Index);
        sub!(sbq_wake_up(tags, wake_batch));
        return;
    }
    /// Count the freed tags.
    at!(Add);
    tags.of(cx).completion_cnt.add(cx.cpu, nr as i32);
    loop {
        /// How many wake-ups are promised?
        at!(Promised);
        let promised: i32 = tags.of(cx).wakeup_cnt.read(cx.cpu);
        /// Is a whole batch due?
        at!(Due);
        let completed = tags.of(cx).completion_cnt.read(cx.cpu);
        if completed.wrapping_sub(promised) < wake_batch as i32 {
            return;
        }
        /// Promise one more batch.
        at!(Promise);
        let next = promised.wrapping_add(wake_batch as i32);
        let count = &tags.of(cx).wakeup_cnt;
        if count.compare_exchange(cx.cpu, promised, next) {
            break;
        }
    }
    // __sbitmap_queue_wake_up()
    /// Which queue is next?
    at!(Index);
    let mut queue: u32 = tags.of(cx).wake_index.read(cx.cpu) as u32;
    let mut looked: u32 = 0;
    let mut left: u32 = wake_batch;
    loop {
        /// Does wait queue `queue` have entries?
        at!(Peek);
        let mut woken: u32 = 0;
        let mut active: bool = tags.of(cx).wait[queue as usize].active.test(cx.cpu);
        if active {
            woken = sub!(wake_queue(tags, queue, left));
        }
        left -= woken;
        queue = next_queue(cx, tags, queue);
        looked += 1;
        let spent = match cx.rules().wake_scan {
            WakeScan::OneQueue => active,
            WakeScan::FirstQueue => woken > 0,
            WakeScan::UntilSpent => left == 0,
            WakeScan::Countdown(_) => unreachable!("each queue counts down"),
        };
        if spent || looked as usize == tags.of(cx).wait.len() {
            break;
        }
    }
    /// Store the next queue.
    at!(Store);
    tags.of(cx).wake_index.write(cx.cpu, queue as i32);
}

/// sbitmap_queue_wake_all(): one of each wait queue, whether bits are free or not. The index stays.
#[steps(stages)]
pub(in crate::path) fn sbitmap_queue_wake_all(cx: &mut Cx<'_>, tags: TagMap) {
    cx.mb();
    let mut queue: u32 = tags.of(cx).wake_index.read(cx.cpu) as u32;
    let mut looked: u32 = 0;
    while (looked as usize) < tags.of(cx).wait.len() {
        at!(Peek);
        if tags.of(cx).wait[queue as usize].active.test(cx.cpu) {
            sub!(wake_queue(tags, queue, 1));
        }
        queue = next_queue(cx, tags, queue);
        looked += 1;
    }
}

/// wake_up_nr(): wakes up to `nr` exclusive waiters of a queue, and the others on the way. Returns
/// the number of exclusive ones, with which tasks count in any case.
#[steps(stages)]
pub(super) fn wake_queue(cx: &mut Cx<'_>, tags: TagMap, queue: u32, nr: u32) -> u32 {
    let mut woken: u32 = 0;
    /// Under the lock of wait queue `queue`: wake.
    lock!(Wake, tags.wait_lock(cx, queue));
    let exclusive = cx.rules().tag_waiters == TagWaiters::Batch;
    let most: u32 = if exclusive { nr } else { u32::MAX };
    while !wake_some(cx, tags, queue, most, &mut woken) {
        at!(Wake);
    }
    woken
}

stages! {
    pub enum At in "tag-put" of
        put_tag sbitmap_queue_wake_up sbitmap_queue_wake_all wake_queue
        sbq_wake_up sbq_wake_ptr wake_and_refill advance_index
}

/// __blk_mq_dec_active_requests().
fn uncount(cx: &mut Cx<'_>, tags: TagMap) {
    if let TagMap::Driver(hctx) = tags {
        may_queue::count(cx, hctx, -1);
    }
}

fn clear_bit(map: &Sbitmap, bit: u32, cpu: &mut Cpu) {
    mb(cpu);
    let word = &map.words[map.word_of(bit)];
    let mask = map.mask_of(bit);
    let taken = word.word.peek() & mask != 0 || map.given_twice;
    debug_assert!(taken, "tag {bit} is nobody's");
    let first = match map.freed_bits {
        FreedBits::Deferred => word.cleared.fetch_or(cpu, mask) & mask == 0,
        FreedBits::AtOnce => word.word.fetch_and(cpu, !mask) & mask != 0,
    };
    assert!(first || map.given_twice, "tag {bit} given back twice");
    mb(cpu);
}

pub(super) fn next_queue(cx: &Cx<'_>, tags: TagMap, queue: u32) -> u32 {
    (queue + 1) % tags.of(cx).wait.len() as u32
}

/// Under the lock of the queue, which it releases, unless it leaves more than one label may do.
fn wake_some(cx: &mut Cx<'_>, tags: TagMap, queue: u32, nr: u32, woken: &mut u32) -> bool {
    let map = tags.of(cx);
    let state = &map.wait[queue as usize];
    let mut passed_over = 0;
    while *woken < nr {
        if cx.cpu.outbox.is_full() {
            return false;
        }
        let Some(waiter) = state.entry(cx.cpu, passed_over) else {
            break;
        };
        let how = wake_function(cx, tags, waiter);
        if how == Woken::AlreadyRunning {
            passed_over += 1;
            continue;
        }
        state.edit(cx.cpu, |entries| entries.remove(passed_over));
        match waiter {
            Waiter::Task(task) => {
                // The task itself lowers ws_active when it runs (sbitmap_finish_wait).
                *woken += 1;
                cx.cpu.outbox.push(Effect::Wake(task));
            }
            Waiter::Hctx {
                queue,
                hctx,
                exclusive,
            } => {
                *woken += u32::from(exclusive);
                map.ws_active.add(cx.cpu, -1);
                debug_assert!(map.ws_active.peek() >= 0, "fewer waiters than were woken");
                if how == Woken::Dequeued {
                    let delay = Duration::ZERO;
                    cx.cpu.outbox.push(Effect::Kick { queue, hctx, delay });
                }
            }
        }
    }
    state.queue.release(cx.cpu);
    true
}

/// The entry's own function: autoremove_wake_function(), blk_mq_dispatch_wake(),
/// kyber_domain_wake().
fn wake_function(cx: &mut Cx<'_>, tags: TagMap, waiter: Waiter) -> Woken {
    match waiter {
        // A task that has found a tag runs, though it may still have an entry.
        Waiter::Task(task) => match cx.mq.task_waits(task).test_and_clear(cx.cpu) {
            true => Woken::Dequeued,
            false => Woken::AlreadyRunning,
        },
        Waiter::Hctx { queue, hctx, .. } => {
            let q = cx.mq.queue(queue);
            if let TagMap::Token(map) = tags {
                let wait = &q.tokens[usize::from(map)].waits[usize::from(hctx.0)];
                dequeued(wait, cx.cpu);
            } else {
                q.dirty_tags_line(hctx, cx.cpu);
                q.hctx(hctx).dispatch_wait.clear(cx.cpu);
            }
            wake(q, hctx, cx.cpu)
        }
    }
}

#[cfg(test)]
mod tests;
