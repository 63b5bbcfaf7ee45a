//! Wake-ups of more waiters than one label may leave effects for.

use super::super::tests::{map, put, put_asking};
use super::Put;
use crate::env::{Cpu, OUTBOX_LIMIT};
use crate::request::{CpuId, QueueId};
use crate::rules::{ShallowDepth, WakeScan};
use crate::waiter::{Waiter, WaiterId};

/// A wait queue may hold more hctxs than one label may wake: the lock is kept for the rest.
#[test]
fn a_queue_longer_than_a_labels_effects_is_woken_under_one_lock() {
    let map = map(8, ShallowDepth::Total, None);
    let mut cpu = Cpu::new(CpuId(0));
    let entries = OUTBOX_LIMIT as u16 * 2 + 5;
    map.wait[0].queue.acquire(&mut cpu);
    for hctx in 0..entries {
        let entry = Waiter::Hctx {
            queue: QueueId(0),
            hctx: crate::request::HctxId(hctx),
            exclusive: false,
        };
        map.wait[0].edit(&mut cpu, |list| list.push(entry));
    }
    map.wait[0].queue.release(&mut cpu);
    cpu.begin_label();
    map.ws_active.add(&mut cpu, i32::from(entries));
    let woken = put(&map, WakeScan::UntilSpent, &mut cpu, Put::wake(1));
    let all: Vec<u32> = (1000..1000 + u32::from(entries)).collect();
    assert_eq!(woken, all);
    assert_eq!(map.ws_active.peek(), 0);
    assert!(map.wait[0].queue.is_free() && !map.wait[0].active.peek());
}

/// Waiters woken before the label was full count against the batch after it.
#[test]
fn a_batch_goes_on_where_a_label_was_full() {
    let map = map(16, ShallowDepth::Total, None);
    assert_eq!(map.wake_batch.get(), 2);
    let mut cpu = Cpu::new(CpuId(0));
    let hctxs = OUTBOX_LIMIT as u16 + 4;
    map.wait[0].queue.acquire(&mut cpu);
    let passed_by = (0..hctxs).map(|hctx| Waiter::Hctx {
        queue: QueueId(0),
        hctx: crate::request::HctxId(hctx),
        exclusive: false,
    });
    let task = |number| Waiter::Task(WaiterId(number));
    let mut all = vec![task(1)];
    all.extend(passed_by);
    all.extend([task(2), task(3)]);
    map.wait[0].edit(&mut cpu, |list| list.extend(all));
    map.wait[0].queue.release(&mut cpu);
    cpu.begin_label();
    map.ws_active.add(&mut cpu, i32::from(hctxs) + 3);
    let woken = put(&map, WakeScan::UntilSpent, &mut cpu, Put::wake(2));
    assert_eq!((woken.first(), woken.last()), (Some(&1), Some(&2)));
    assert_eq!(
        woken.len(),
        usize::from(hctxs) + 2,
        "the third task sleeps on"
    );
}

/// A task that has found a tag runs while its entry is still queued (finish_wait()): the wake-up
/// goes to a sleeper after it, in the same queue or in the next one.
#[test]
fn whoever_runs_already_is_passed_over() {
    let task = |number| Waiter::Task(WaiterId(number));
    for scan in [WakeScan::FirstQueue, WakeScan::UntilSpent] {
        for (first, second, still) in [(0, 0, [2, 0]), (0, 1, [1, 1])] {
            let map = map(8, ShallowDepth::Total, None);
            let mut cpu = Cpu::new(CpuId(0));
            for (queue, entry) in [(first, task(1)), (second, task(2)), (second, task(3))] {
                map.wait[queue].queue.acquire(&mut cpu);
                map.wait[queue].edit(&mut cpu, |list| list.push(entry));
                map.wait[queue].queue.release(&mut cpu);
                cpu.begin_label();
                map.ws_active.add(&mut cpu, 1);
            }
            let runs = |waiter| waiter == task(1);
            let woken = put_asking(&map, scan, &mut cpu, Put::wake(1), runs);
            assert_eq!(woken, [2], "{scan:?}");
            let left = |queue: usize| map.wait[queue].queue.inspect(|q| q.entries.len());
            assert_eq!([left(0), left(1)], still, "{scan:?}");
        }
    }
}

/// No task sleeps: the wake-up has no receiver, and no entry is removed.
#[test]
fn where_all_run_nobody_is_woken() {
    let map = map(8, ShallowDepth::Total, None);
    let mut cpu = Cpu::new(CpuId(0));
    map.wait[0].queue.acquire(&mut cpu);
    let entries = [1, 2].map(|number| Waiter::Task(WaiterId(number)));
    map.wait[0].edit(&mut cpu, |list| list.extend(entries));
    map.wait[0].queue.release(&mut cpu);
    cpu.begin_label();
    map.ws_active.add(&mut cpu, 2);
    let woken = put_asking(&map, WakeScan::UntilSpent, &mut cpu, Put::wake(1), |_| true);
    assert!(woken.is_empty(), "{woken:?}");
    assert_eq!(map.wait[0].queue.inspect(|q| q.entries.len()), 2);
    assert!(map.wait[0].queue.is_free() && map.wait[0].active.peek());
}
