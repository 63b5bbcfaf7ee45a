//! The bitmap against a naive one that follows the kernel's description word by word, and the
//! counting of wake-ups.

use super::{Get, GetStep, Put, PutStep, Sbitmap, WAIT_QUEUES, Woken, shift_for};
use crate::env::{Cpu, Effect};
use crate::request::{CpuId, QueueId};
use crate::rules::{FreedBits, ShallowDepth, WakeScan};
use crate::tags::{Waiter, WaiterId};
use proptest::prelude::*;

const CPUS: usize = 3;

pub(super) fn map(depth: u32, rule: ShallowDepth, min_shallow: Option<u32>) -> Sbitmap {
    let mut next = 0;
    Sbitmap::new(depth, CPUS, rule, min_shallow, 8, || {
        next += 7;
        next
    })
}

/// Runs a search to its end.
fn get(map: &Sbitmap, cpu: &mut Cpu, mut search: Get) -> GetStep {
    for _ in 0..10_000 {
        cpu.begin_label();
        match search.step(map, cpu) {
            GetStep::Step => {}
            GetStep::Lock(word) => map.words[word as usize].swap.acquire(cpu),
            end => return end,
        }
    }
    panic!("a search that never ends");
}

/// Runs a free to its end; returns the woken waiters.
pub(super) fn put(map: &Sbitmap, scan: WakeScan, cpu: &mut Cpu, free: Put) -> Vec<u32> {
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

/// The same bitmap in plain words.
#[derive(Debug)]
struct Naive {
    taken: Vec<bool>,
    freed: Vec<bool>,
    hints: [u32; CPUS],
    per_word: u32,
    rule: ShallowDepth,
}

impl Naive {
    fn new(map: &Sbitmap) -> Naive {
        let depth = map.depth() as usize;
        Naive {
            taken: vec![false; depth],
            freed: vec![false; depth],
            hints: core::array::from_fn(|cpu| map.hints[cpu].get()),
            per_word: 1 << map.shift,
            rule: map.shallow_rule,
        }
    }

    fn depth(&self) -> u32 {
        self.taken.len() as u32
    }

    fn words(&self) -> u32 {
        self.depth().div_ceil(self.per_word)
    }

    /// First bit of a word and how many of its bits may be used.
    fn usable(&self, word: u32, shallow: Option<u32>) -> (u32, u32) {
        let first = word * self.per_word;
        let size = self.per_word.min(self.depth() - first);
        let limit = match (shallow, self.rule) {
            (None, _) => size,
            (Some(most), ShallowDepth::PerWord) => size.min(most),
            (Some(total), ShallowDepth::Total) if total >= self.depth() => size,
            (Some(total), ShallowDepth::Total) => {
                let (share, rest) = (size * total / self.depth(), size * total % self.depth());
                share + u32::from(rest >= (word + 1) * size)
            }
        };
        (first, limit)
    }

    fn get(&mut self, cpu: usize, shallow: Option<u32>) -> Option<u32> {
        let hint = self.hints[cpu];
        assert!(hint < self.depth(), "hints never leave the map here");
        let found = (0..self.words()).find_map(|tried| {
            let word = (hint / self.per_word + tried) % self.words();
            let start = if tried == 0 && shallow.is_some() {
                hint % self.per_word
            } else {
                0
            };
            self.get_in_word(word, start, shallow)
        });
        self.hints[cpu] = match found {
            None => 0,
            Some(bit) if bit == hint => {
                if bit + 1 >= self.depth() - 1 {
                    0
                } else {
                    bit + 1
                }
            }
            Some(_) => hint,
        };
        found
    }

    fn get_in_word(&mut self, word: u32, start: u32, shallow: Option<u32>) -> Option<u32> {
        let (first, limit) = self.usable(word, shallow);
        loop {
            let start = start.min(limit);
            let order = (start..limit).chain(0..start);
            for bit in order.map(|bit| first + bit) {
                if !self.taken[bit as usize] {
                    self.taken[bit as usize] = true;
                    return Some(bit);
                }
            }
            let size = self.per_word.min(self.depth() - first);
            let all = first as usize..(first + size) as usize;
            if limit == 0 || !self.freed[all.clone()].contains(&true) {
                return None;
            }
            for bit in all {
                self.taken[bit] &= !core::mem::take(&mut self.freed[bit]);
            }
        }
    }

    fn put(&mut self, bit: u32, owner: usize) {
        self.freed[bit as usize] = true;
        self.hints[owner] = bit;
    }

    fn busy(&self, bit: u32) -> bool {
        self.taken[bit as usize] && !self.freed[bit as usize]
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Get {
        cpu: usize,
        shallow: Option<u32>,
    },
    /// Frees the bit that was taken this many gets ago, on any CPU.
    Put {
        age: usize,
        by: usize,
    },
}

fn operations(depth: u32) -> impl Strategy<Value = Vec<Operation>> {
    let get = (0..CPUS, proptest::option::of(1..=depth + 2));
    let get = get.prop_map(|(cpu, shallow)| Operation::Get { cpu, shallow });
    let plain = (0..CPUS).prop_map(|cpu| Operation::Get { cpu, shallow: None });
    let put = (0..64_usize, 0..CPUS).prop_map(|(age, by)| Operation::Put { age, by });
    prop::collection::vec(prop_oneof![1 => get, 2 => plain, 2 => put], 0..300)
}

fn case() -> impl Strategy<Value = (u32, Vec<Operation>)> {
    let depths = prop_oneof![1..9_u32, 9..70_u32, Just(128), Just(300)];
    depths.prop_flat_map(|depth| (Just(depth), operations(depth)))
}

fn agree(depth: u32, rule: ShallowDepth, operations: &[Operation]) {
    let map = map(depth, rule, None);
    let mut naive = Naive::new(&map);
    let mut cpus: Vec<Cpu> = (0..CPUS).map(|cpu| Cpu::new(CpuId(cpu as u16))).collect();
    let mut held: Vec<(u32, usize)> = Vec::new();
    for operation in operations {
        match *operation {
            Operation::Get { cpu, shallow } => {
                let search = Get::start(&map, &mut cpus[cpu], shallow);
                let got = match get(&map, &mut cpus[cpu], search) {
                    GetStep::Got(bit) => Some(bit),
                    GetStep::Full => None,
                    other => panic!("a plain search ends with {other:?}"),
                };
                assert_eq!(got, naive.get(cpu, shallow), "{operation:?}");
                held.extend(got.map(|bit| (bit, cpu)));
            }
            Operation::Put { age, by } => {
                if held.is_empty() {
                    continue;
                }
                let at = held.len() - 1 - age % held.len();
                let (bit, owner) = held.remove(at);
                let free = Put::one(bit, CpuId(owner as u16));
                let woken = put(&map, WakeScan::UntilSpent, &mut cpus[by], free);
                assert!(woken.is_empty(), "nobody waits, but {woken:?} are woken");
                naive.put(bit, owner);
            }
        }
        assert_eq!(map.busy_count() as usize, held.len());
        for bit in 0..depth {
            assert_eq!(
                map.is_busy(bit),
                naive.busy(bit),
                "bit {bit} after {operation:?}"
            );
        }
        for (cpu, hint) in naive.hints.iter().enumerate() {
            assert_eq!(
                map.hints[cpu].get(),
                *hint,
                "hint of CPU {cpu} after {operation:?}"
            );
        }
    }
    assert_eq!(
        map.completion_cnt.peek(),
        0,
        "nothing is counted while nobody waits"
    );
}

proptest! {
    #[test]
    fn a_map_takes_the_bits_that_a_naive_one_takes((depth, operations) in case()) {
        agree(depth, ShallowDepth::Total, &operations);
        agree(depth, ShallowDepth::PerWord, &operations);
    }

    /// A batch is a run of neighbours inside one word; only free bits of it are taken.
    #[test]
    fn a_batch_is_a_run_in_one_word(
        depth in 4..200_u32,
        taken in prop::collection::vec(0..200_u32, 0..40),
        count in 2..33_u32,
        hint in 0..200_u32,
    ) {
        let map = map(depth, ShallowDepth::Total, None);
        let mut cpu = Cpu::new(CpuId(0));
        let hint = hint % depth;
        map.hint_freed(cpu.id, hint);
        for bit in taken.into_iter().filter(|&bit| bit < depth) {
            let (word, bit) = (bit >> map.shift, bit & ((1 << map.shift) - 1));
            cpu.begin_label();
            map.words[word as usize].word.fetch_or(&mut cpu, 1 << bit);
        }
        let before: Vec<bool> = (0..depth).map(|bit| map.is_busy(bit)).collect();
        let search = Get::batch(&map, &mut cpu, count);
        match get(&map, &mut cpu, search) {
            GetStep::GotRun { first, bits } => {
                prop_assert!(bits != 0);
                prop_assert!(!before[first as usize], "a run starts with a free bit");
                prop_assert_eq!(first >> map.shift, (first + count - 1) >> map.shift);
                let after = match first + count {
                    end if end - 1 != hint => hint,
                    end if end >= depth - 1 => 0,
                    end => end,
                };
                prop_assert_eq!(map.hints[0].get(), after);
                for bit in 0..depth {
                    let here = bit.wrapping_sub(first);
                    let got = here < count && bits >> here & 1 != 0;
                    prop_assert_eq!(got, here < count && !before[bit as usize]);
                    prop_assert_eq!(map.is_busy(bit), got || before[bit as usize]);
                }
            }
            GetStep::Full => {
                prop_assert_eq!(map.hints[0].get(), hint, "found nothing, learnt nothing");
                // No word has room for the run after its first free bit.
                for index in 0..map.words.len() {
                    let base = (index as u32) << map.shift;
                    let free = (0..map.bits_of(index)).find(|bit| !before[(base + bit) as usize]);
                    prop_assert!(free.is_none_or(|bit| bit + count > map.bits_of(index)));
                }
            }
            other => prop_assert!(false, "a batch ends with {:?}", other),
        }
    }

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
#[should_panic(expected = "given back twice")]
fn a_bit_is_given_back_once() {
    let map = map(4, ShallowDepth::Total, None);
    let mut cpu = Cpu::new(CpuId(0));
    let search = Get::start(&map, &mut cpu, None);
    let GetStep::Got(bit) = get(&map, &mut cpu, search) else {
        panic!("an empty map is full");
    };
    put(
        &map,
        WakeScan::UntilSpent,
        &mut cpu,
        Put::one(bit, CpuId(0)),
    );
    put(
        &map,
        WakeScan::UntilSpent,
        &mut cpu,
        Put::one(bit, CpuId(0)),
    );
}

/// sbitmap_queue_resize(): words keep their size, so that fewer of them are left.
#[test]
fn a_map_that_shrinks_keeps_the_size_of_its_words() {
    let mut map = map(256, ShallowDepth::PerWord, Some(1));
    map.shrink(100, Some(1));
    assert_eq!((map.shift, map.words.len(), map.depth()), (6, 2, 100));
    assert_eq!((map.bits_of(0), map.bits_of(1)), (64, 36));
    assert_eq!(map.wake_batch.get(), 1);
    let mut cpu = Cpu::new(CpuId(0));
    let mut taken = std::collections::BTreeSet::new();
    loop {
        let search = Get::start(&map, &mut cpu, None);
        match get(&map, &mut cpu, search) {
            GetStep::Got(bit) => assert!(taken.insert(bit) && bit < 100),
            GetStep::Full => break,
            other => panic!("a plain search ends with {other:?}"),
        }
    }
    assert_eq!(taken.len(), 100);
}

/// Before v5.0: a freed bit is cleared in its word at once, a search takes no lock for a full word,
/// and freeing a free bit is an error. Also for a search for a run.
#[test]
fn bits_that_leave_at_once_are_found_without_a_lock() {
    let mut of = map(16, ShallowDepth::PerWord, None);
    of.freed_bits = FreedBits::AtOnce;
    let mut cpu = Cpu::new(CpuId(0));
    let take = |of: &Sbitmap, cpu: &mut Cpu, run: u32| {
        let mut search = match run {
            1 => Get::start(of, cpu, None),
            run => Get::batch(of, cpu, run),
        };
        loop {
            cpu.begin_label();
            match search.step(of, cpu) {
                GetStep::Step => {}
                GetStep::Lock(word) => panic!("swap_lock of word {word}"),
                end => return end,
            }
        }
    };
    for _ in 0..16 {
        assert!(matches!(take(&of, &mut cpu, 1), GetStep::Got(_)));
    }
    assert_eq!(take(&of, &mut cpu, 1), GetStep::Full);
    for bit in [4, 5] {
        put(&of, WakeScan::UntilSpent, &mut cpu, Put::one(bit, CpuId(0)));
    }
    assert_eq!(of.busy_count(), 14);
    assert!(of.words.iter().all(|word| word.cleared.peek() == 0));
    let run = take(&of, &mut cpu, 2);
    assert_eq!(run, GetStep::GotRun { first: 4, bits: 3 });
    put(&of, WakeScan::UntilSpent, &mut cpu, Put::one(9, CpuId(0)));
    assert_eq!(take(&of, &mut cpu, 1), GetStep::Got(9));
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
