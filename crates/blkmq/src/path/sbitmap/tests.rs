//! The bitmap against a naive one that follows the kernel's description word by word.

use super::{Counted, Put, TagMap, put_tag, sbitmap_get, sbitmap_queue_get_batch};
use crate::elevator::SchedulerKind;
use crate::env::{Cpu, Effect};
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, HctxId, QueueId};
use crate::rules::{FreedBits, ShallowDepth, WakeScan, WokenRun};
use crate::sbitmap::Sbitmap;
use crate::sbitmap::tests::{CPUS, map};
use crate::step::{Cx, Next, Steps, Sub};
use proptest::prelude::*;

pub(super) const MAP: TagMap = TagMap::Driver(HctxId(0));

fn device(map: Sbitmap) -> BlkMq {
    device_with(map, WakeScan::UntilSpent, 1)
}

/// A device with this map of driver tags, and hctxs that may wait for one.
pub(super) fn device_with(map: Sbitmap, scan: WakeScan, hctxs: u16) -> BlkMq {
    let mut config = config(SchedulerKind::None, hctxs, hctxs, 1);
    config.settings.rules.wake_scan = scan;
    config.settings.rules.restart.woken = WokenRun::Always;
    config.tags.tasks = 64;
    let mut mq = BlkMq::new(&config, &mut || 0);
    mq.sets[0].driver[0] = map;
    mq
}

/// Runs a function to its end, with the locks that it asks for.
fn run<S: Steps>(mq: &BlkMq, cpu: &mut Cpu, mut state: S) -> S::Done {
    for _ in 0..10_000 {
        if let Some(value) = step(mq, cpu, &mut state) {
            return value;
        }
    }
    panic!("it never ends");
}

/// One step, with the lock that the next one needs. Its value at the end.
pub(in crate::path) fn step<S: Steps>(mq: &BlkMq, cpu: &mut Cpu, state: &mut S) -> Option<S::Done> {
    cpu.begin_label();
    match state.step(&mut Cx::of(mq, QueueId(0), cpu)) {
        Sub::Wait(Next::Lock(lock)) => mq.acquire(lock, cpu),
        Sub::Wait(_) => {}
        Sub::Done(value) => return Some(value),
    }
    None
}

/// Runs to its end; returns the woken tasks, and the hctxs that are run from 1000 on.
pub(in crate::path) fn woken<S: Steps>(mq: &BlkMq, cpu: &mut Cpu, mut state: S) -> Vec<u32> {
    let mut woken = Vec::new();
    for _ in 0..10_000 {
        let end = step(mq, cpu, &mut state);
        let effects = (0..).map_while(|index| cpu.outbox.take(index));
        woken.extend(effects.map(|effect| match effect {
            Effect::Wake(task) => task.0,
            Effect::Kick { hctx, .. } => 1000 + u32::from(hctx.0),
            other => panic!("a free asks for {other:?}"),
        }));
        if end.is_some() {
            return woken;
        }
    }
    panic!("a free that never ends");
}

/// Frees a bit that CPU `owner` has taken.
pub(super) fn put(bit: u32, owner: u16) -> put_tag::State {
    let put = Put {
        bit,
        owner: CpuId(owner),
        counted: Counted::No,
    };
    put_tag::State::new(MAP, put)
}

fn get(mq: &BlkMq, cpu: &mut Cpu, shallow: Option<u32>) -> Option<u32> {
    let hint = mq.sets[0].driver[0].hint_before(cpu);
    run(mq, cpu, sbitmap_get::State::new(MAP, hint, shallow))
}

fn get_batch(mq: &BlkMq, cpu: &mut Cpu, count: u32) -> Option<(u32, u64)> {
    let hint = mq.sets[0].driver[0].hint_before(cpu);
    run(
        mq,
        cpu,
        sbitmap_queue_get_batch::State::new(MAP, hint, count),
    )
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
    let mq = device(map(depth, rule, None));
    let map = &mq.sets[0].driver[0];
    let mut naive = Naive::new(map);
    let mut cpus: Vec<Cpu> = (0..CPUS).map(|cpu| Cpu::new(CpuId(cpu as u16))).collect();
    let mut held: Vec<(u32, usize)> = Vec::new();
    for operation in operations {
        match *operation {
            Operation::Get { cpu, shallow } => {
                let got = get(&mq, &mut cpus[cpu], shallow);
                assert_eq!(got, naive.get(cpu, shallow), "{operation:?}");
                held.extend(got.map(|bit| (bit, cpu)));
            }
            Operation::Put { age, by } => {
                if held.is_empty() {
                    continue;
                }
                let at = held.len() - 1 - age % held.len();
                let (bit, owner) = held.remove(at);
                let woken = woken(&mq, &mut cpus[by], put(bit, owner as u16));
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
        let mq = device(map(depth, ShallowDepth::Total, None));
        let map = &mq.sets[0].driver[0];
        let mut cpu = Cpu::new(CpuId(0));
        let hint = hint % depth;
        map.hint_freed(cpu.id, hint);
        for bit in taken.into_iter().filter(|&bit| bit < depth) {
            let (word, bit) = (bit >> map.shift, bit & ((1 << map.shift) - 1));
            cpu.begin_label();
            map.words[word as usize].word.fetch_or(&mut cpu, 1 << bit);
        }
        let before: Vec<bool> = (0..depth).map(|bit| map.is_busy(bit)).collect();
        match get_batch(&mq, &mut cpu, count) {
            Some((first, bits)) => {
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
            None => {
                prop_assert_eq!(map.hints[0].get(), hint, "found nothing, learnt nothing");
                // No word has room for the run after its first free bit.
                for index in 0..map.words.len() {
                    let base = (index as u32) << map.shift;
                    let free = (0..map.bits_of(index)).find(|bit| !before[(base + bit) as usize]);
                    prop_assert!(free.is_none_or(|bit| bit + count > map.bits_of(index)));
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "given back twice")]
fn a_bit_is_given_back_once() {
    let mq = device(map(4, ShallowDepth::Total, None));
    let mut cpu = Cpu::new(CpuId(0));
    let bit = get(&mq, &mut cpu, None).expect("an empty map has bits");
    run(&mq, &mut cpu, put(bit, 0));
    run(&mq, &mut cpu, put(bit, 0));
}

/// sbitmap_queue_resize(): words keep their size, so that fewer of them are left.
#[test]
fn a_map_that_shrinks_keeps_the_size_of_its_words() {
    let mut map = map(256, ShallowDepth::PerWord, Some(1));
    map.shrink(100, Some(1));
    assert_eq!((map.shift, map.words.len(), map.depth()), (6, 2, 100));
    assert_eq!((map.bits_of(0), map.bits_of(1)), (64, 36));
    assert_eq!(map.wake_batch.get(), 1);
    let (mq, mut cpu) = (device(map), Cpu::new(CpuId(0)));
    let mut taken = std::collections::BTreeSet::new();
    while let Some(bit) = get(&mq, &mut cpu, None) {
        assert!(taken.insert(bit) && bit < 100);
    }
    assert_eq!(taken.len(), 100);
}

/// Before v5.0: a freed bit is cleared in its word at once, a search takes no lock for a full word,
/// and freeing a free bit is an error. Also for a search for a run.
#[test]
fn bits_that_leave_at_once_are_found_without_a_lock() {
    let mut of = map(16, ShallowDepth::PerWord, None);
    of.freed_bits = FreedBits::AtOnce;
    let (mq, mut cpu) = (device(of), Cpu::new(CpuId(0)));
    let of = &mq.sets[0].driver[0];
    // Held: a search that asked for one would wait for ever.
    of.words
        .iter()
        .for_each(|word| word.swap.acquire(&mut Cpu::new(CpuId(1))));
    for _ in 0..16 {
        assert!(get(&mq, &mut cpu, None).is_some());
    }
    assert_eq!(get(&mq, &mut cpu, None), None);
    for bit in [4, 5] {
        run(&mq, &mut cpu, put(bit, 0));
    }
    assert_eq!(of.busy_count(), 14);
    assert!(of.words.iter().all(|word| word.cleared.peek() == 0));
    assert_eq!(get_batch(&mq, &mut cpu, 2), Some((4, 3)));
    run(&mq, &mut cpu, put(9, 0));
    assert_eq!(get(&mq, &mut cpu, None), Some(9));
}

/// Without swap_lock, v5.11 to v6.10: a word whose freed bits were merged back is searched again.
#[test]
fn bits_that_are_merged_back_without_a_lock_are_found() {
    let mut of = map(16, ShallowDepth::PerWord, None);
    of.swap_lock = false;
    let (mq, mut cpu) = (device(of), Cpu::new(CpuId(0)));
    for _ in 0..16 {
        assert!(get(&mq, &mut cpu, None).is_some());
    }
    assert_eq!(get(&mq, &mut cpu, None), None);
    run(&mq, &mut cpu, put(9, 0));
    assert_eq!(get(&mq, &mut cpu, None), Some(9));
}

#[test]
#[should_panic(expected = "tag 9")]
fn a_bit_that_left_is_nobodys_to_give_back() {
    let mut of = map(16, ShallowDepth::PerWord, None);
    of.freed_bits = FreedBits::AtOnce;
    run(&device(of), &mut Cpu::new(CpuId(0)), put(9, 0));
}
