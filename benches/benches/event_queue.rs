//! Hold model of the event queue: pop the earliest event, push it back a random step later.
//!
//! Budget: at most 1.5 times a bare timing wheel of the same slot width in the same run, and the
//! program fails above that unless it is a smoke run, which is too short to judge; the order of
//! events is checked in both. The aim is 25 ns an operation. A bare wheel keeps no class and no
//! order inside a slot; those with wider slots give events out of time order and are shown for
//! comparison.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::process::ExitCode;

use blkmq::time::SimTime;
use blksim_benches::{Variant, is_smoke, least_ns};
use criterion::Criterion;
use sim::event_queue::EventQueue;
use sim::rng::Rng;

const BUDGET: f64 = 1.5;
const MEAN_STEP_NS: u64 = 500;
/// A power of two, small enough to stay in the first-level cache beside the queue.
const STEPS: usize = 4096;
const OPERATIONS: u32 = 50_000;

/// As large as the simulator's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Step(u32),
    Complete(u32),
}

impl Event {
    fn class(self) -> u8 {
        // Not from the variant: the compiler would make two loops of the measured one.
        let (Event::Step(id) | Event::Complete(id)) = self;
        u8::from(id % 4 != 0)
    }
}

/// What the hold model asks of a queue.
trait Queue {
    fn push(&mut self, time: u64, event: Event);
    fn pop(&mut self) -> (u64, Event);
}

impl Queue for EventQueue<Event> {
    #[inline]
    fn push(&mut self, time: u64, event: Event) {
        EventQueue::push(self, SimTime(time), event.class(), event);
    }

    #[inline]
    fn pop(&mut self) -> (u64, Event) {
        let (time, event) = EventQueue::pop(self).expect("the hold model never drains");
        (time.0, event)
    }
}

#[derive(Default)]
struct Heap {
    heap: BinaryHeap<Reverse<(u64, u8, u64, Event)>>,
    pushed: u64,
}

impl Queue for Heap {
    #[inline]
    fn push(&mut self, time: u64, event: Event) {
        self.heap
            .push(Reverse((time, event.class(), self.pushed, event)));
        self.pushed += 1;
    }

    #[inline]
    fn pop(&mut self) -> (u64, Event) {
        let Reverse((time, _, _, event)) = self.heap.pop().expect("the hold model never drains");
        (time, event)
    }
}

/// One level of slots, first in first out, no order but that of the slots: what any timing wheel
/// has to do. `SHIFT` is the binary logarithm of a slot's width in nanoseconds.
struct BareWheel<const SHIFT: u32> {
    slots: Box<[(u32, u32)]>,
    words: [u64; 64],
    summary: u64,
    nodes: Vec<(u64, Event, u32)>,
    free: u32,
    cursor: usize,
}

const NONE: u32 = u32::MAX;

impl<const SHIFT: u32> BareWheel<SHIFT> {
    const SLOTS: usize = 4096;

    fn new() -> Self {
        BareWheel {
            slots: vec![(NONE, NONE); Self::SLOTS].into_boxed_slice(),
            words: [0; 64],
            summary: 0,
            nodes: Vec::new(),
            free: NONE,
            cursor: 0,
        }
    }

    fn first_slot(&self) -> usize {
        let (word, bit) = (self.cursor / 64, self.cursor % 64);
        let ahead = self.words[word] >> bit;
        if ahead != 0 {
            return self.cursor + ahead.trailing_zeros() as usize;
        }
        let first = word + 1;
        let skipped = self
            .summary
            .rotate_right(first as u32 % 64)
            .trailing_zeros() as usize;
        let word = (first + skipped) % 64;
        word * 64 + self.words[word].trailing_zeros() as usize
    }
}

impl<const SHIFT: u32> Queue for BareWheel<SHIFT> {
    #[inline]
    fn push(&mut self, time: u64, event: Event) {
        let node = (time, event, NONE);
        let id = self.free;
        let id = if let Some(slot) = self.nodes.get_mut(id as usize) {
            self.free = slot.2;
            *slot = node;
            id
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        let index = (time >> SHIFT) as usize % Self::SLOTS;
        let bit = 1 << (index % 64);
        let slot = &mut self.slots[index];
        if self.words[index / 64] & bit == 0 {
            self.words[index / 64] |= bit;
            self.summary |= 1 << (index / 64);
            *slot = (id, id);
        } else {
            self.nodes[slot.1 as usize].2 = id;
            slot.1 = id;
        }
    }

    #[inline]
    fn pop(&mut self) -> (u64, Event) {
        let index = self.first_slot();
        self.cursor = index;
        let slot = &mut self.slots[index];
        let id = slot.0;
        let (time, event, next) = self.nodes[id as usize];
        if id == slot.1 {
            let word = &mut self.words[index / 64];
            *word &= !(1 << (index % 64));
            if *word == 0 {
                self.summary &= !(1 << (index / 64));
            }
        } else {
            slot.0 = next;
        }
        self.nodes[id as usize].2 = self.free;
        self.free = id;
        (time, event)
    }
}

/// The same steps for every variant; at most what one level of the narrowest bare wheel spans.
fn steps() -> Vec<u16> {
    let mut rng = Rng::stream(1, "hold");
    (0..STEPS)
        .map(|_| rng.exponential(MEAN_STEP_NS).min(4_000) as u16)
        .collect()
}

fn filled<Q: Queue>(mut queue: Q, pending: u32, steps: &[u16]) -> Q {
    for i in 0..pending {
        let event = if i % 4 == 0 {
            Event::Complete(i)
        } else {
            Event::Step(i)
        };
        queue.push(u64::from(steps[i as usize % STEPS]), event);
    }
    queue
}

/// One round; returns a sum over the order of events.
#[inline]
fn hold<Q: Queue>(queue: &mut Q, steps: &[u16]) -> u64 {
    let mut sum = 0u64;
    for i in 0..OPERATIONS as usize {
        let (time, event) = queue.pop();
        let (Event::Step(id) | Event::Complete(id)) = event;
        sum = sum.rotate_left(1) ^ time ^ u64::from(id);
        queue.push(time + u64::from(steps[i % STEPS]), event);
    }
    sum
}

fn compare(pending: u32, rounds: u32) -> bool {
    let steps = steps();
    let steps = steps.as_slice();
    let mut ours = filled(EventQueue::with_capacity(0), pending, steps);
    let mut heap = filled(Heap::default(), pending, steps);
    for _ in 0..4 {
        assert_eq!(
            hold(&mut ours, steps),
            hold(&mut heap, steps),
            "another order than the heap's"
        );
    }
    let mut bare1 = filled(BareWheel::<0>::new(), pending, steps);
    let mut bare4 = filled(BareWheel::<2>::new(), pending, steps);
    let mut bare16 = filled(BareWheel::<4>::new(), pending, steps);
    let mut variants: Vec<Variant> = vec![
        (
            "EventQueue",
            Box::new(|| {
                black_box(hold(&mut ours, steps));
            }),
        ),
        (
            "bare wheel, 1 ns slots",
            Box::new(|| {
                black_box(hold(&mut bare1, steps));
            }),
        ),
        (
            "bare wheel, 4 ns slots",
            Box::new(|| {
                black_box(hold(&mut bare4, steps));
            }),
        ),
        (
            "bare wheel, 16 ns slots",
            Box::new(|| {
                black_box(hold(&mut bare16, steps));
            }),
        ),
        (
            "BinaryHeap",
            Box::new(|| {
                black_box(hold(&mut heap, steps));
            }),
        ),
    ];
    let least = least_ns(&mut variants, rounds, OPERATIONS);
    let bare = least[1];
    println!("{pending} pending, mean step {MEAN_STEP_NS} ns: ns an operation, ratio");
    for ((name, _), ns) in variants.iter().zip(&least) {
        println!("  {name:<24} {ns:>7.1} {:>6.2}", ns / bare);
    }
    least[0] <= bare * BUDGET
}

fn main() -> ExitCode {
    // The least of each is taken: other load only adds, and more rounds meet less of it.
    let rounds = if is_smoke() { 4 } else { 200 };
    let mut within = true;
    for pending in [64, 1_000] {
        within &= compare(pending, rounds);
    }
    if !is_smoke() {
        let mut criterion = Criterion::default().configure_from_args();
        for pending in [64, 1_000] {
            let steps = steps();
            let mut queue = filled(EventQueue::with_capacity(0), pending, &steps);
            criterion.bench_function(
                &format!("hold/{pending}/{OPERATIONS} operations"),
                |bench| {
                    bench.iter(|| hold(&mut queue, &steps));
                },
            );
        }
        criterion.final_summary();
    }
    if !within && !is_smoke() {
        eprintln!("EventQueue is over its budget of {BUDGET} times the bare wheel");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
