//! Turns of queues of schedulers: the first turns of the run, one of each scheduler at a time.
//!
//! Bounded memory that is not thinned out when it is full: half of the turns would not show a
//! round. Not here: other values of schedulers (`readings.rs`).

use blkmq::env::{TURN_AWAITED, TURN_OVER};
use blkmq::request::QueueId;
use blkmq::time::SimTime;

use super::readings::CounterValue;

pub const TURNS_MAX: usize = 4096;

/// A turn, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub queue: QueueId,
    /// The queue whose turn it is, and the gauge.
    pub sample: CounterValue,
    pub from: SimTime,
    pub to: SimTime,
    /// The device idled for further I/O of that queue.
    pub awaited: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// The first ones, in the order in which they ended.
    pub first: Vec<Turn>,
    pub count: u64,
    /// The current turn of each scheduler.
    open: Vec<Turn>,
}

impl Turns {
    /// A scheduler reports a change of turn.
    pub(super) fn note(&mut self, at: SimTime, queue: QueueId, sample: CounterValue) {
        self.over(queue, at);
        if sample.value != TURN_OVER {
            self.open.push(Turn {
                queue,
                sample,
                from: at,
                to: at,
                awaited: sample.value == TURN_AWAITED,
            });
        }
    }

    /// The current turn of this queue's scheduler ends.
    pub(super) fn over(&mut self, queue: QueueId, at: SimTime) {
        let of_queue = |turn: &Turn| turn.queue == queue;
        let Some(index) = self.open.iter().position(of_queue) else {
            return;
        };
        let turn = self.open.swap_remove(index);
        // CPUs run ahead of each other: no turn ends before it began.
        let to = at.max(turn.from);
        self.count += 1;
        if self.first.len() < TURNS_MAX {
            self.first.push(Turn { to, ..turn });
        }
    }

    pub(super) fn finish(&mut self, now: SimTime) {
        while let Some(turn) = self.open.first() {
            self.over(turn.queue, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use blkmq::env::{
        Counter, CounterForm, CounterUnit, Probe, Reading, TURN_AWAITED, TURN_OVER, TURN_SERVED,
        Which,
    };

    use super::*;

    static TURN: Counter = Counter::new("turn", CounterForm::Turn, CounterUnit::Number);

    fn sample(pid: i32, value: u64) -> CounterValue {
        let which = Which::Queue {
            number: 1,
            pid,
            sync: true,
            cgroup: 0,
        };
        let reading = Reading {
            counter: &TURN,
            group: "q",
            which,
            value,
        };
        CounterValue::of(Probe::Reading(reading)).expect("a reading has a value")
    }

    #[test]
    fn a_turn_lasts_until_the_next_change() {
        let mut turns = Turns::default();
        let changes = [
            (0, 7, TURN_SERVED),
            (10, 7, TURN_AWAITED),
            (18, 7, TURN_OVER),
            (20, 8, TURN_SERVED),
        ];
        for (at, pid, value) in changes {
            turns.note(SimTime(at), QueueId(0), sample(pid, value));
        }
        turns.finish(SimTime(25));
        let spans: Vec<_> = turns
            .first
            .iter()
            .map(|turn| {
                (
                    turn.sample.group_name(&[]),
                    turn.from.0,
                    turn.to.0,
                    turn.awaited,
                )
            })
            .collect();
        let expected = [
            ("q7S".to_owned(), 0, 10, false),
            ("q7S".to_owned(), 10, 18, true),
            ("q8S".to_owned(), 20, 25, false),
        ];
        assert_eq!(spans, expected);
        assert_eq!(turns.count, 3);
    }

    #[test]
    fn the_first_are_kept_and_all_are_counted() {
        let mut turns = Turns::default();
        for at in 0..TURNS_MAX as u64 + 10 {
            turns.note(SimTime(at), QueueId(0), sample(7, TURN_SERVED));
        }
        turns.finish(SimTime(1 << 20));
        assert_eq!(turns.first.len(), TURNS_MAX);
        assert_eq!(turns.count, TURNS_MAX as u64 + 10);
    }
}
