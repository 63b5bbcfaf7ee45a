//! The queue against a heap that is sorted by (time, class, insertion), and its edges by hand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use blkmq::time::SimTime;
use proptest::prelude::*;

use super::EventQueue;

/// The order itself, written the obvious way.
#[derive(Default)]
struct Sorted {
    heap: BinaryHeap<Reverse<(u64, u8, u64)>>,
    pushed: u64,
}

impl Sorted {
    fn push(&mut self, time: u64, class: u8) -> u64 {
        self.heap.push(Reverse((time, class, self.pushed)));
        self.pushed += 1;
        self.pushed - 1
    }

    fn pop(&mut self) -> Option<(SimTime, u64)> {
        self.heap
            .pop()
            .map(|Reverse((time, _, id))| (SimTime(time), id))
    }

    fn peek_time(&self) -> Option<SimTime> {
        self.heap.peek().map(|Reverse((time, ..))| SimTime(*time))
    }
}

/// The queue and the naive version side by side; every answer is compared.
#[derive(Default)]
struct Pair {
    queue: EventQueue<u64>,
    sorted: Sorted,
    now: u64,
}

impl Pair {
    fn push_after(&mut self, step: u64, class: u8) {
        let time = self.now.saturating_add(step).min(u64::MAX - 1);
        let id = self.sorted.push(time, class);
        self.queue.push(SimTime(time), class, id);
        self.compare();
    }

    fn pop(&mut self) -> Option<u64> {
        let got = self.queue.pop();
        assert_eq!(got, self.sorted.pop());
        self.compare();
        if let Some((time, _)) = got {
            self.now = time.0;
        }
        got.map(|(_, id)| id)
    }

    fn compare(&self) {
        assert_eq!(self.queue.peek_time(), self.sorted.peek_time());
        assert_eq!(self.queue.len(), self.sorted.heap.len());
        assert_eq!(self.queue.is_empty(), self.sorted.heap.is_empty());
    }

    /// Iterates over all pending events, also after nodes were freed.
    fn compare_all(&self) {
        let mut all: Vec<_> = self.queue.iter().collect();
        all.sort_unstable();
        let heap = self.sorted.heap.iter();
        let mut expected: Vec<_> = heap
            .map(|Reverse((time, _, id))| (SimTime(*time), *id))
            .collect();
        expected.sort_unstable();
        assert_eq!(all, expected);
    }

    fn drain(&mut self) {
        while self.pop().is_some() {}
    }
}

#[derive(Clone, Debug)]
enum Action {
    Push { step: u64, class: u8 },
    Pop,
    Snapshot,
}

/// Steps of every size; those around a power of two cross slots, ticks, blocks and levels.
fn step() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..4u64,
        8 => 0..5_000u64,
        4 => (0..40u32, 0..5u64).prop_map(|(shift, more)| {
            ((1u64 << shift) + more).saturating_sub(2)
        }),
        2 => (0..200u64).prop_map(|ticks| ticks << super::TICK_SHIFT),
        2 => 0..10_000_000u64,
        1 => 0..100_000_000_000u64,
        1 => any::<u64>().prop_map(|x| x >> (x % 64)),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => (step(), 0..4u8).prop_map(|(step, class)| Action::Push { step, class }),
        9 => Just(Action::Pop),
        1 => Just(Action::Snapshot),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn order_is_that_of_a_sorted_heap(actions in prop::collection::vec(action(), 1..300)) {
        let mut pair = Pair::default();
        for action in actions {
            match action {
                Action::Push { step, class } => pair.push_after(step, class),
                Action::Pop => { pair.pop(); }
                // The rest of the run goes on with the copy.
                Action::Snapshot => {
                    pair.queue = pair.queue.clone();
                    pair.compare_all();
                }
            }
        }
        pair.drain();
    }

    /// Many pending events and only short steps: what a simulation does most of the time.
    #[test]
    fn hold_keeps_the_order(
        steps in prop::collection::vec((0..3_000u64, 0..3u8), 2_000..3_000),
        pending in 1..500usize,
    ) {
        let mut pair = Pair::default();
        for (i, (step, class)) in steps.into_iter().enumerate() {
            if i >= pending {
                pair.pop();
            }
            pair.push_after(step, class);
        }
        pair.drain();
    }
}

#[test]
fn equal_times_come_by_class_and_then_as_pushed() {
    let mut queue = EventQueue::default();
    for (class, event) in [(1, "c"), (0, "a"), (2, "e"), (1, "d"), (0, "b"), (2, "f")] {
        queue.push(SimTime(77), class, event);
    }
    let order: Vec<_> = std::iter::from_fn(|| queue.pop())
        .map(|(_, event)| event)
        .collect();
    assert_eq!(order, ["a", "b", "c", "d", "e", "f"]);
}

#[test]
fn insertion_order_survives_the_way_from_the_far_half() {
    let mut queue = EventQueue::default();
    let time = SimTime(3_000_000_123);
    queue.push(time, 1, 0);
    queue.push(SimTime(2_900_000_000), 0, 100);
    assert_eq!(queue.pop(), Some((SimTime(2_900_000_000), 100)));
    queue.push(time, 1, 1);
    queue.push(SimTime(2_999_999_000), 0, 101);
    assert_eq!(queue.pop(), Some((SimTime(2_999_999_000), 101)));
    queue.push(time, 1, 2);
    queue.push(time, 0, 3);
    let order: Vec<_> = std::iter::from_fn(|| queue.pop())
        .map(|(_, event)| event)
        .collect();
    assert_eq!(order, [3, 0, 1, 2]);
}

#[test]
fn peeking_at_a_far_event_does_not_hide_nearer_ones() {
    let mut queue = EventQueue::default();
    queue.push(SimTime(1_000_000_000), 0, "timer");
    assert_eq!(queue.peek_time(), Some(SimTime(1_000_000_000)));
    queue.push(SimTime(5), 0, "soon");
    assert_eq!(queue.pop(), Some((SimTime(5), "soon")));
    assert_eq!(queue.peek_time(), Some(SimTime(1_000_000_000)));
    queue.push(SimTime(5), 0, "at the present");
    assert_eq!(queue.pop(), Some((SimTime(5), "at the present")));
}

#[test]
fn the_end_of_time_can_be_reached() {
    let mut pair = Pair::default();
    pair.push_after(u64::MAX, 0);
    pair.push_after(u64::MAX - 5_000, 1);
    pair.push_after(u64::MAX - 5_000, 0);
    pair.drain();
    pair.push_after(0, 0);
    pair.drain();
    assert_eq!(pair.now, u64::MAX - 1);
}

#[test]
fn clear_starts_over() {
    let mut queue = EventQueue::with_capacity(8);
    for time in [9_000_000, 4_000, 3] {
        queue.push(SimTime(time), 0, time);
    }
    assert_eq!(queue.pop(), Some((SimTime(3), 3)));
    queue.clear();
    assert_eq!(
        (queue.len(), queue.peek_time(), queue.pop()),
        (0, None, None)
    );
    queue.push(SimTime(1), 0, 1);
    assert_eq!(queue.pop(), Some((SimTime(1), 1)));
    assert_eq!(queue.pop(), None);
}

#[test]
#[should_panic(expected = "before the present 100 ns")]
fn the_past_is_closed() {
    let mut queue = EventQueue::default();
    queue.push(SimTime(100), 0, ());
    queue.pop();
    queue.push(SimTime(99), 0, ());
}

#[test]
#[should_panic(expected = "never comes")]
fn never_is_no_time_for_an_event() {
    EventQueue::default().push(SimTime::NEVER, 0, ());
}
