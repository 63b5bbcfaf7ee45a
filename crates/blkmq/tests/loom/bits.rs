//! S7 of the stall corpus: all tags are freed but not merged back, and two tasks need one.
//!
//! Kernel: sbitmap_deferred_clear() in lib/sbitmap.c (v6.10 and 6.12.117).

use super::driver::{Context, Machine, Setup};
use super::{Arc, COMPLETER, DISPATCHER, spawn};
use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;

/// Two submissions; the device ends its requests after each.
pub(super) fn merge(rules: Rules) {
    let machine = Arc::new(Machine::new(&Setup::of(rules, SchedulerKind::None)));
    let mut second = Context::new(0, DISPATCHER, machine.submission(1));
    let map = &machine.mq.sets[0].driver[0];
    // One freed tag wakes no task.
    map.wake_batch.put(2);
    for word in &map.words {
        word.word.fetch_or(second.cpu(), 0b11);
        word.cleared.fetch_or(second.cpu(), 0b11);
    }
    let bio = machine.submission(2);
    let other = Arc::clone(&machine);
    let first = spawn(move || other.run(Context::new(1, COMPLETER, bio)).is_parked());
    let sleeps = machine.run(second).is_parked();
    let other_sleeps = first.join().expect("the other task ends");
    // With both tags free at the beginning neither has to sleep.
    assert!(
        !sleeps && !other_sleeps,
        "stall: a task sleeps, a tag is free"
    );
    machine.drain_of(2);
}
