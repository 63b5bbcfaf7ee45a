//! Nothing is allocated in steady state: a counting allocator watches.
//!
//! The counts are those of the calling thread alone, so tests may run side by side. The pattern:
//! warm up outside of `measure`, do the steady work inside, compare with zero.
#![forbid(unsafe_code)]

use allocation_counter::measure;
use blkmq::time::SimTime;
use sim::event_queue::EventQueue;
use sim::rng::Rng;

/// Pops one event and pushes it back a random step later, `count` times.
fn hold(queue: &mut EventQueue<u32>, rng: &mut Rng, count: u32) {
    for _ in 0..count {
        let (time, event) = queue.pop().expect("the hold model never drains");
        // One step in 1,000 is a timer, milliseconds away.
        let mean = if rng.chance(1, 1_000) {
            10_000_000
        } else {
            500
        };
        queue.push(
            SimTime(time.0 + rng.exponential(mean)),
            (event % 4) as u8,
            event,
        );
    }
}

fn filled(queue: &mut EventQueue<u32>) {
    for event in 0..1_000 {
        queue.push(SimTime(u64::from(event) * 7), (event % 4) as u8, event);
    }
}

#[test]
fn the_allocator_counts() {
    let counted = measure(|| {
        let mut queue = EventQueue::default();
        filled(&mut queue);
    });
    assert!(
        counted.count_total > 2,
        "a queue that grows allocates: {counted:?}"
    );
}

#[test]
fn a_warm_event_queue_allocates_nothing() {
    let mut queue = EventQueue::default();
    let mut rng = Rng::stream(1, "hold");
    filled(&mut queue);
    let counted = measure(|| hold(&mut queue, &mut rng, 1_000_000));
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert_eq!(queue.len(), 1_000);
}

#[test]
fn a_queue_of_the_right_capacity_allocates_nothing_at_all() {
    let mut queue = EventQueue::with_capacity(1_000);
    let counted = measure(|| {
        filled(&mut queue);
        queue.clear();
        filled(&mut queue);
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
