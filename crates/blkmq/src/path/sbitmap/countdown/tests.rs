//! S5a and S5e of the stall corpus: a batch that shrinks, and a free that interrupts a free.

use super::super::tests::{device_with, put, step};
use crate::env::{Cpu, Effect};
use crate::queue::BlkMq;
use crate::request::CpuId;
use crate::rules::{Countdown, Rules, ShallowDepth, WakeScan};
use crate::sbitmap::Sbitmap;
use crate::waiter::{Waiter, WaiterId};

/// A device whose first tags are all taken, with the map as `change` leaves it.
fn device(form: Countdown, depth: u32, change: impl FnOnce(&mut Sbitmap)) -> BlkMq {
    let mut map: Sbitmap = Sbitmap::new(depth, 1, ShallowDepth::Total, None, 4, || 0);
    let wake_scan = WakeScan::Countdown(form);
    map.follow(&Rules {
        wake_scan,
        ..Rules::v6_1()
    });
    let mut cpu = Cpu::new(CpuId(0));
    for (index, word) in map.words.iter().enumerate() {
        cpu.begin_label();
        word.word
            .fetch_or(&mut cpu, u64::MAX >> (64 - map.bits_of(index)));
    }
    change(&mut map);
    device_with(map, wake_scan, 1)
}

/// Adds a sleeping task to a wait queue.
fn enqueue(mq: &BlkMq, queue: usize, task: u32) {
    let (map, mut cpu) = (&mq.sets[0].driver[0], Cpu::new(CpuId(0)));
    let (ws, task) = (&map.wait[queue], WaiterId(task));
    ws.queue.acquire(&mut cpu);
    ws.edit(&mut cpu, |entries| entries.push(Waiter::Task(task)));
    ws.queue.release(&mut cpu);
    cpu.begin_label();
    map.ws_active.add(&mut cpu, 1);
    cpu.begin_label();
    mq.task_waits(task).set(&mut cpu);
}

/// Runs a free to its end; returns its number of steps, none if it takes more than `most`.
fn free(mq: &BlkMq, bit: u32, cpu: &mut Cpu, most: u32) -> Option<u32> {
    let mut free = put(bit, 0);
    (1..=most).find(|_| step(mq, cpu, &mut free).is_some())
}

fn woken(cpu: &Cpu) -> usize {
    let wakes = |index| matches!(cpu.outbox.clone().take(index), Some(Effect::Wake(_)));
    (0..16).take_while(|&index| wakes(index)).count()
}

/// S5a, before 6c0ca7ae292a (v4.11): a smaller batch left the counts of the larger one.
#[test]
fn counts_begin_anew_with_another_batch() {
    for (keeps, wakes) in [(false, 4), (true, 0)] {
        let mq = device(Countdown::Adds, 64, |map| {
            assert_eq!(map.countdowns[0].peek(), 8);
            map.set_wake_batch(1);
            if keeps {
                map.countdowns.iter().for_each(|count| {
                    count.add(&mut Cpu::new(CpuId(0)), 7);
                });
            }
        });
        (0..4).for_each(|task| enqueue(&mq, task as usize, task));
        let mut cpu = Cpu::new(CpuId(0));
        for bit in 0..4 {
            free(&mq, bit, &mut cpu, 100).expect("it ends");
        }
        assert_eq!(woken(&cpu), wakes, "the counts were kept: {keeps}");
    }
}

/// S5e, before 30514bd2dd4e (v6.1): an interrupt that frees a tag comes between two steps of a free
/// on its CPU, wherever that holds no lock, and has to end before that continues.
#[test]
fn a_free_that_interrupts_a_free_ends() {
    for (form, ends) in [(Countdown::Spins, false), (Countdown::PassesOver, true)] {
        let mut stuck = Vec::new();
        for at in 0.. {
            let mq = device(form, 8, |map| map.keep_wait_queues(2));
            // Two sleep at the first queue: it still has one when the first is woken.
            enqueue(&mq, 0, 0);
            enqueue(&mq, 0, 9);
            let (mut cpu, mut first) = (Cpu::new(CpuId(0)), put(0, 0));
            let over = (0..at).any(|_| step(&mq, &mut cpu, &mut first).is_some());
            if over {
                break;
            }
            // The wait queue's lock is held with interrupts off.
            if cpu.locks_held() == 0 && free(&mq, 1, &mut cpu, 1_000).is_none() {
                stuck.push(at);
            }
        }
        assert_eq!(
            stuck.is_empty(),
            ends,
            "{form:?} never ends after {stuck:?}"
        );
    }
}

/// bt_clear_tag(), to v4.7: of two frees that count below one, each finds zero and adds the batch.
#[test]
fn two_frees_below_one_add_the_batch_twice() {
    for (form, left) in [(Countdown::CountsBack, 2), (Countdown::Adds, 1)] {
        let mq = device(form, 8, |map| map.keep_wait_queues(1));
        let map = &mq.sets[0].driver[0];
        assert_eq!(map.countdowns[0].peek(), 1);
        (0..4).for_each(|task| enqueue(&mq, 0, task));
        let (mut cpu, mut first) = (Cpu::new(CpuId(0)), put(0, 0));
        while map.countdowns[0].peek() == 1 {
            assert!(step(&mq, &mut cpu, &mut first).is_none());
        }
        let mut other = Cpu::new(CpuId(1));
        free(&mq, 1, &mut other, 100).expect("it ends");
        while step(&mq, &mut cpu, &mut first).is_none() {}
        assert_eq!(map.countdowns[0].peek(), left, "{form:?}");
        assert_eq!((woken(&other), woken(&cpu)), (1, 1), "{form:?}");
    }
}
