//! The counting of wake-ups, and who is woken.

use super::super::tests::{MAP, device_with, put, step, woken};
use super::{sbitmap_queue_wake_all, sbitmap_queue_wake_up};
use crate::env::{Cpu, OUTBOX_LIMIT};
use crate::queue::BlkMq;
use crate::request::{CpuId, HctxId, QueueId};
use crate::rules::{ShallowDepth, WakeScan};
use crate::sbitmap::tests::map;
use crate::sbitmap::{Sbitmap, WAIT_QUEUES};
use crate::step::Steps as _;
use crate::waiter::{Waiter, WaiterId};
use proptest::prelude::*;

const HCTXS: u16 = OUTBOX_LIMIT as u16 * 2 + 5;

fn device(depth: u32, scan: WakeScan) -> BlkMq {
    device_with(map(depth, ShallowDepth::Total, None), scan, HCTXS)
}

fn tags(mq: &BlkMq) -> &Sbitmap {
    &mq.sets[0].driver[0]
}

fn wake_up(nr: u32) -> sbitmap_queue_wake_up::State {
    sbitmap_queue_wake_up::State::new(MAP, nr)
}

/// Puts waiters into wait queues and counts them. Tasks sleep.
fn enqueue(mq: &BlkMq, cpu: &mut Cpu, all: impl IntoIterator<Item = (usize, Waiter)>) {
    let map = tags(mq);
    for (queue, waiter) in all {
        let queue = &map.wait[queue];
        queue.queue.acquire(cpu);
        queue.edit(cpu, |entries| entries.push(waiter));
        queue.queue.release(cpu);
        cpu.begin_label();
        map.ws_active.add(cpu, 1);
        if let Waiter::Task(task) = waiter {
            cpu.begin_label();
            mq.task_waits(task).set(cpu);
        }
        cpu.begin_label();
    }
}

fn task(number: u32) -> Waiter {
    Waiter::Task(WaiterId(number))
}

fn hctx(number: u16) -> Waiter {
    Waiter::Hctx {
        queue: QueueId(0),
        hctx: HctxId(number),
        exclusive: false,
    }
}

fn waiting(mq: &BlkMq, queue: usize) -> usize {
    tags(mq).wait[queue].queue.inspect(|q| q.entries.len())
}

proptest! {
    /// Each batch of frees promises one wake-up, in any order of CPUs.
    #[test]
    fn wake_ups_are_promised_batch_by_batch(
        depth in 1..200_u32,
        frees in 0..100_u32,
        sleepers in 1..60_u32,
        first_queue: bool,
    ) {
        let scan = if first_queue { WakeScan::FirstQueue } else { WakeScan::UntilSpent };
        let (mq, mut cpu) = (device(depth, scan), Cpu::new(CpuId(0)));
        let all = (0..sleepers).map(|number| (number as usize % WAIT_QUEUES, task(number)));
        enqueue(&mq, &mut cpu, all);
        let mut awake = 0;
        for _ in 0..frees {
            // Woken tasks leave later: they stay counted in ws_active here.
            awake += woken(&mq, &mut cpu, wake_up(1)).len() as u32;
        }
        let map = tags(&mq);
        let batches = frees / map.wake_batch.get();
        prop_assert_eq!(map.wakeup_cnt.peek() as u32, batches * map.wake_batch.get());
        prop_assert_eq!(map.completion_cnt.peek() as u32, frees);
        prop_assert!(awake >= batches.min(sleepers), "a batch wakes at least one");
        let most = batches * map.wake_batch.get();
        if first_queue {
            prop_assert!(awake <= most);
        } else {
            prop_assert_eq!(awake, sleepers.min(most));
        }
    }
}

/// Two sleepers on two queues, a batch of two: v6.1 stops at the first queue, v6.12 continues.
#[test]
fn the_reach_of_one_batch() {
    for (scan, expected, next) in [
        (WakeScan::FirstQueue, vec![10], 2),
        (WakeScan::UntilSpent, vec![10, 11], 4),
    ] {
        let (mq, mut cpu) = (device(16, scan), Cpu::new(CpuId(0)));
        assert_eq!(tags(&mq).wake_batch.get(), 2);
        enqueue(&mq, &mut cpu, [(1, task(10)), (3, task(11))]);
        assert!(woken(&mq, &mut cpu, wake_up(1)).is_empty());
        assert_eq!(woken(&mq, &mut cpu, wake_up(1)), expected, "{scan:?}");
        // v6.1 continues after the queue that it stopped at.
        assert_eq!(tags(&mq).wake_index.peek(), next, "{scan:?}");
    }
}

/// A waker takes no lock of an empty wait queue.
#[test]
fn empty_queues_are_passed_without_their_lock() {
    let (mq, mut cpu) = (device(8, WakeScan::UntilSpent), Cpu::new(CpuId(0)));
    enqueue(&mq, &mut cpu, [(2, task(5)), (6, task(7))]);
    tags(&mq).wake_index.write(&mut cpu, 1);
    let (mut free, mut locked) = (wake_up(1), Vec::new());
    while step(&mq, &mut cpu, &mut free).is_none() {
        let held = |&queue: &usize| !tags(&mq).wait[queue].queue.is_free();
        locked.extend((0..WAIT_QUEUES).filter(held));
    }
    assert_eq!(locked, [2]);
    assert!(!tags(&mq).wait[2].active.peek() && tags(&mq).wait[6].active.peek());
    assert_eq!(tags(&mq).wake_index.peek(), 3);
}

/// An hctx in a queue is woken in passing and does not use up the batch.
#[test]
fn an_hctx_that_waits_does_not_count_as_woken() {
    let (mq, mut cpu) = (device(8, WakeScan::FirstQueue), Cpu::new(CpuId(0)));
    enqueue(&mq, &mut cpu, [(2, task(5)), (0, hctx(3))]);
    assert_eq!(woken(&mq, &mut cpu, wake_up(1)), [1003, 5]);
    let left = tags(&mq).ws_active.peek();
    assert_eq!(left, 1, "the hctx is out of the line, the task not yet");
}

/// A free sets the hint of the tag's CPU after its wake-ups.
#[test]
fn a_free_leaves_its_hint_after_the_wake_ups() {
    let (mq, mut cpu) = (device(8, WakeScan::UntilSpent), Cpu::new(CpuId(0)));
    let map = tags(&mq);
    map.words[2].word.fetch_or(&mut cpu, 1);
    map.hint_freed(CpuId(1), 6);
    cpu.begin_label();
    enqueue(&mq, &mut cpu, [(2, task(5))]);
    let bit = 2 << map.shift;
    let mut free = put(bit, 1);
    while step(&mq, &mut cpu, &mut free).is_none() {
        assert_eq!(map.hints[1].get(), 6, "at {:?}", free.stage());
    }
    assert_eq!(map.hints[1].get(), bit);
}

/// A wait queue may hold more hctxs than one label may wake: the lock is kept for the rest.
#[test]
fn a_queue_longer_than_a_labels_effects_is_woken_under_one_lock() {
    let (mq, mut cpu) = (device(8, WakeScan::UntilSpent), Cpu::new(CpuId(0)));
    enqueue(&mq, &mut cpu, (0..HCTXS).map(|number| (0, hctx(number))));
    let all: Vec<u32> = (1000..1000 + u32::from(HCTXS)).collect();
    assert_eq!(woken(&mq, &mut cpu, wake_up(1)), all);
    assert_eq!(tags(&mq).ws_active.peek(), 0);
    assert!(tags(&mq).wait[0].queue.is_free() && !tags(&mq).wait[0].active.peek());
}

/// Waiters woken before the label was full count against the batch after it.
#[test]
fn a_batch_goes_on_where_a_label_was_full() {
    let (mq, mut cpu) = (device(16, WakeScan::UntilSpent), Cpu::new(CpuId(0)));
    assert_eq!(tags(&mq).wake_batch.get(), 2);
    let hctxs = OUTBOX_LIMIT as u16 + 4;
    let mut all = vec![task(1)];
    all.extend((0..hctxs).map(hctx));
    all.extend([task(2), task(3)]);
    enqueue(&mq, &mut cpu, all.into_iter().map(|waiter| (0, waiter)));
    let awake = woken(&mq, &mut cpu, wake_up(2));
    assert_eq!((awake.first(), awake.last()), (Some(&1), Some(&2)));
    assert_eq!(
        awake.len(),
        usize::from(hctxs) + 2,
        "the third task sleeps on"
    );
}

/// A task that has found a tag runs while its entry is still queued (finish_wait()): the wake-up
/// goes to a sleeper after it, in the same queue or in the next one.
#[test]
fn a_task_that_runs_is_passed_over() {
    for scan in [WakeScan::FirstQueue, WakeScan::UntilSpent] {
        for (first, second, still) in [(0, 0, [2, 0]), (0, 1, [1, 1])] {
            let (mq, mut cpu) = (device(8, scan), Cpu::new(CpuId(0)));
            let all = [(first, task(1)), (second, task(2)), (second, task(3))];
            enqueue(&mq, &mut cpu, all);
            mq.task_waits(WaiterId(1)).clear(&mut cpu);
            assert_eq!(woken(&mq, &mut cpu, wake_up(1)), [2], "{scan:?}");
            assert_eq!([waiting(&mq, 0), waiting(&mq, 1)], still, "{scan:?}");
        }
    }
}

/// No task sleeps: the wake-up has no receiver, and no entry is removed.
#[test]
fn where_all_run_nobody_is_woken() {
    let (mq, mut cpu) = (device(8, WakeScan::UntilSpent), Cpu::new(CpuId(0)));
    enqueue(&mq, &mut cpu, [(0, task(1)), (0, task(2))]);
    for number in [1, 2] {
        cpu.begin_label();
        mq.task_waits(WaiterId(number)).clear(&mut cpu);
    }
    assert_eq!(woken(&mq, &mut cpu, wake_up(1)), []);
    assert_eq!(waiting(&mq, 0), 2);
    assert!(tags(&mq).wait[0].queue.is_free() && tags(&mq).wait[0].active.peek());
}

/// sbitmap_queue_wake_all() wakes one of each queue, and leaves the index.
#[test]
fn one_of_each_queue_is_woken() {
    let (mq, mut cpu) = (device(64, WakeScan::OneQueue), Cpu::new(CpuId(0)));
    enqueue(&mq, &mut cpu, [(1, task(1)), (1, task(2)), (6, task(3))]);
    tags(&mq).wake_index.write(&mut cpu, 5);
    let all = sbitmap_queue_wake_all::State::new(MAP);
    assert_eq!(woken(&mq, &mut cpu, all), [3, 1]);
    assert_eq!(tags(&mq).wake_index.peek(), 5);
}
