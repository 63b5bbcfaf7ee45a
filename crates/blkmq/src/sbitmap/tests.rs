//! The counting of wake-ups.

use super::{Put, PutStep, Sbitmap, WAIT_QUEUES, Woken, shift_for};
use crate::env::{Cpu, Effect};
use crate::request::{CpuId, QueueId};
use crate::rules::{FreedBits, ShallowDepth, WakeScan};
use crate::waiter::{Waiter, WaiterId};
use proptest::prelude::*;

pub(crate) const CPUS: usize = 3;

pub(crate) fn map(depth: u32, rule: ShallowDepth, min_shallow: Option<u32>) -> Sbitmap {
    let mut next = 0;
    Sbitmap::new(depth, CPUS, rule, min_shallow, 8, || {
        next += 7;
        next
    })
}

/// Runs a free to its end; returns the woken waiters.
pub(crate) fn put(map: &Sbitmap, scan: WakeScan, cpu: &mut Cpu, free: Put) -> Vec<u32> {
    put_asking(map, scan, cpu, free, |_| false)
}

/// The same where some of the waiters already run.
pub(super) fn put_asking(
    map: &Sbitmap,
    scan: WakeScan,
    cpu: &mut Cpu,
    mut free: Put,
    runs: impl Fn(Waiter) -> bool,
) -> Vec<u32> {
    let mut woken = Vec::new();
    for _ in 0..10_000 {
        cpu.begin_label();
        let step = free.step(map, scan, cpu, |_, waiter| match runs(waiter) {
            true => Woken::AlreadyRunning,
            false => Woken::Dequeued,
        });
        let mut index = 0;
        while let Some(effect) = cpu.outbox.take(index) {
            index += 1;
            match effect {
                Effect::Wake(WaiterId(task)) => woken.push(task),
                Effect::Kick { hctx, .. } => woken.push(1000 + u32::from(hctx.0)),
                other => panic!("a free asks for {other:?}"),
            }
        }
        match step {
            PutStep::Step => {}
            PutStep::Lock(ws) => map.wait[ws as usize].queue.acquire(cpu),
            PutStep::Done => return woken,
        }
    }
    panic!("a free that never ends");
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
        let map = map(depth, ShallowDepth::Total, None);
        let mut cpu = Cpu::new(CpuId(0));
        enqueue(&map, &mut cpu, (0..sleepers).map(|task| (task as usize % WAIT_QUEUES, task)));
        let mut woken = 0;
        for _ in 0..frees {
            // Woken tasks leave later: they stay counted in ws_active here.
            woken += put(&map, scan, &mut cpu, Put::wake(1)).len() as u32;
        }
        let batches = frees / map.wake_batch.get();
        prop_assert_eq!(map.wakeup_cnt.peek() as u32, batches * map.wake_batch.get());
        prop_assert_eq!(map.completion_cnt.peek() as u32, frees);
        prop_assert!(woken >= batches.min(sleepers), "a batch wakes at least one");
        match scan {
            WakeScan::UntilSpent => {
                prop_assert_eq!(woken, sleepers.min(batches * map.wake_batch.get()));
            }
            WakeScan::Countdown(_) | WakeScan::OneQueue => unreachable!("not drawn here"),
            WakeScan::FirstQueue => prop_assert!(woken <= batches * map.wake_batch.get()),
        }
    }
}

/// Puts tasks into wait queues and counts them.
fn enqueue(map: &Sbitmap, cpu: &mut Cpu, tasks: impl IntoIterator<Item = (usize, u32)>) {
    for (queue, task) in tasks {
        map.wait[queue].queue.acquire(cpu);
        let waiter = Waiter::Task(WaiterId(task));
        map.wait[queue].edit(cpu, |entries| entries.push(waiter));
        map.wait[queue].queue.release(cpu);
        cpu.begin_label();
        map.ws_active.add(cpu, 1);
    }
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

/// Two sleepers on two queues, a batch of two: v6.1 stops at the first queue, v6.12 continues.
#[test]
fn the_reach_of_one_batch() {
    for (scan, expected) in [
        (WakeScan::FirstQueue, vec![10]),
        (WakeScan::UntilSpent, vec![10, 11]),
    ] {
        let map = map(16, ShallowDepth::Total, None);
        assert_eq!(map.wake_batch.get(), 2);
        let mut cpu = Cpu::new(CpuId(0));
        enqueue(&map, &mut cpu, [(1, 10), (3, 11)]);
        assert!(put(&map, scan, &mut cpu, Put::wake(1)).is_empty());
        assert_eq!(
            put(&map, scan, &mut cpu, Put::wake(1)),
            expected,
            "{scan:?}"
        );
        // v6.1 continues after the queue that it stopped at.
        let next = if scan == WakeScan::FirstQueue { 2 } else { 4 };
        assert_eq!(map.wake_index.peek(), next, "{scan:?}");
    }
}

/// A waker takes no lock of an empty wait queue.
#[test]
fn empty_queues_are_passed_without_their_lock() {
    let map = map(8, ShallowDepth::Total, None);
    let mut cpu = Cpu::new(CpuId(0));
    enqueue(&map, &mut cpu, [(2, 5), (6, 7)]);
    cpu.begin_label();
    map.wake_index.write(&mut cpu, 1);
    let mut wake = Put::wake(1);
    let mut locked = Vec::new();
    loop {
        cpu.begin_label();
        match wake.step(&map, WakeScan::UntilSpent, &mut cpu, |_, _| Woken::Dequeued) {
            PutStep::Step => {}
            PutStep::Lock(queue) => {
                locked.push(queue);
                map.wait[queue as usize].queue.acquire(&mut cpu);
            }
            PutStep::Done => break,
        }
    }
    assert_eq!(locked, [2]);
    assert!(!map.wait[2].active.peek() && map.wait[6].active.peek());
    assert_eq!(map.wake_index.peek(), 3);
}

/// An hctx in a queue is woken in passing and does not use up the batch.
#[test]
fn an_hctx_that_waits_does_not_count_as_woken() {
    let map = map(8, ShallowDepth::Total, None);
    let mut cpu = Cpu::new(CpuId(0));
    enqueue(&map, &mut cpu, [(2, 5)]);
    let entry = Waiter::Hctx {
        queue: QueueId(0),
        hctx: crate::request::HctxId(3),
        exclusive: false,
    };
    map.wait[0].queue.acquire(&mut cpu);
    map.wait[0].edit(&mut cpu, |entries| entries.push(entry));
    map.wait[0].queue.release(&mut cpu);
    cpu.begin_label();
    map.ws_active.add(&mut cpu, 1);
    let woken = put(&map, WakeScan::FirstQueue, &mut cpu, Put::wake(1));
    assert_eq!(woken, [1003, 5]);
    assert_eq!(
        map.ws_active.peek(),
        1,
        "the hctx is out of the line, the task not yet"
    );
}

/// The CPU that frees a batch sets its hint after its wake-ups.
#[test]
fn a_batch_leaves_its_hint_after_the_wake_ups() {
    let map = map(8, ShallowDepth::Total, None);
    let mut cpu = Cpu::new(CpuId(1));
    map.hint_freed(cpu.id, 6);
    enqueue(&map, &mut cpu, [(2, 5)]);
    let mut wake = Put::wake_batch(3, 4);
    loop {
        cpu.begin_label();
        assert_eq!(map.hints[1].get(), 6, "at {:?}", wake.stage());
        match wake.step(&map, WakeScan::UntilSpent, &mut cpu, |_, _| Woken::Dequeued) {
            PutStep::Step => {}
            PutStep::Lock(queue) => map.wait[queue as usize].queue.acquire(&mut cpu),
            PutStep::Done => break,
        }
    }
    assert_eq!(map.hints[1].get(), 4);
}

#[test]
#[should_panic(expected = "tag 9")]
fn a_bit_that_left_is_nobodys_to_give_back() {
    let mut of = map(16, ShallowDepth::PerWord, None);
    of.freed_bits = FreedBits::AtOnce;
    put(
        &of,
        WakeScan::UntilSpent,
        &mut Cpu::new(CpuId(0)),
        Put::one(9, CpuId(0)),
    );
}
