//! S5a and S5e of the stall corpus: a batch that shrinks, and a free that interrupts a free.

use super::{Put, PutStep, Sbitmap, Woken};
use crate::env::{Cpu, Effect};
use crate::request::CpuId;
use crate::rules::{Countdown, Rules, ShallowDepth, WakeScan};
use crate::waiter::{Waiter, WaiterId};

/// A map whose first bits are all taken.
fn map(form: Countdown, depth: u32) -> Sbitmap {
    let mut map: Sbitmap = Sbitmap::new(depth, 1, ShallowDepth::Total, None, 4, || 0);
    map.follow(&Rules {
        wake_scan: WakeScan::Countdown(form),
        ..Rules::v6_1()
    });
    let mut cpu = Cpu::new(CpuId(0));
    for (index, word) in map.words.iter().enumerate() {
        cpu.begin_label();
        word.word
            .fetch_or(&mut cpu, u64::MAX >> (64 - map.bits_of(index)));
    }
    map
}

/// Adds a task to each of the first `count` wait queues.
fn enqueue(map: &Sbitmap, count: u32) {
    let mut cpu = Cpu::new(CpuId(0));
    for task in 0..count {
        let ws = &map.wait[task as usize];
        ws.queue.acquire(&mut cpu);
        ws.edit(&mut cpu, |entries| {
            entries.push(Waiter::Task(WaiterId(task)));
        });
        ws.queue.release(&mut cpu);
        cpu.begin_label();
        map.ws_active.add(&mut cpu, 1);
    }
}

/// One step of a free, with the lock that it needs next. True at its end.
fn step(map: &Sbitmap, form: Countdown, put: &mut Put, cpu: &mut Cpu) -> bool {
    cpu.begin_label();
    match put.step(map, WakeScan::Countdown(form), cpu, |_, _| Woken::Dequeued) {
        PutStep::Step => false,
        PutStep::Lock(queue) => {
            map.wait[queue as usize].queue.acquire(cpu);
            false
        }
        PutStep::Done => true,
    }
}

/// Runs a free to its end; returns its number of steps, none if it takes more than `most`.
fn free(map: &Sbitmap, form: Countdown, bit: u32, cpu: &mut Cpu, most: u32) -> Option<u32> {
    let mut put = Put::one(bit, CpuId(0));
    (1..=most).find(|_| step(map, form, &mut put, cpu))
}

fn woken(cpu: &Cpu) -> usize {
    let wakes = |index| matches!(cpu.outbox.clone().take(index), Some(Effect::Wake(_)));
    (0..16).take_while(|&index| wakes(index)).count()
}

/// S5a, before 6c0ca7ae292a (v4.11): a smaller batch left the counts of the larger one.
#[test]
fn counts_begin_anew_with_another_batch() {
    for (keeps, wakes) in [(false, 4), (true, 0)] {
        let mut map = map(Countdown::Adds, 64);
        assert_eq!(map.countdowns[0].peek(), 8);
        map.set_wake_batch(1);
        if keeps {
            map.countdowns.iter().for_each(|count| {
                count.add(&mut Cpu::new(CpuId(0)), 7);
            });
        }
        enqueue(&map, 4);
        let mut cpu = Cpu::new(CpuId(0));
        for bit in 0..4 {
            free(&map, Countdown::Adds, bit, &mut cpu, 100).expect("it ends");
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
            let mut map = map(form, 8);
            map.keep_wait_queues(2);
            // Two sleep at the first queue: it still has one when the first is woken.
            enqueue(&map, 1);
            let mut cpu = Cpu::new(CpuId(0));
            let ws = &map.wait[0];
            ws.queue.acquire(&mut cpu);
            ws.edit(&mut cpu, |entries| entries.push(Waiter::Task(WaiterId(9))));
            ws.queue.release(&mut cpu);
            let mut put = Put::one(0, CpuId(0));
            let over = (0..at).any(|_| step(&map, form, &mut put, &mut cpu));
            if over {
                break;
            }
            // The wait queue's lock is held with interrupts off.
            if cpu.locks_held() == 0 && free(&map, form, 1, &mut cpu, 1_000).is_none() {
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
