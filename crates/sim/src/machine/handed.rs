//! Queues between CPUs: each entry carries the giver's time, and is not taken before it.
//!
//! CPUs run ahead of each other (docs/decisions/0002): an entry given at one CPU's time may lie in
//! the future of the CPU that takes it. Read first: `work.rs`, `irq.rs`, which use it.

use std::collections::VecDeque;

use blkmq::time::SimTime;

/// Entries given and not taken yet, in the order of the givers' times.
#[derive(Clone, Debug)]
pub(super) struct Handed<T> {
    things: VecDeque<(SimTime, T)>,
    /// A defect for the test of the oracle: entries carry no time.
    #[cfg(test)]
    pub(super) timeless: bool,
}

impl<T> Handed<T> {
    pub(super) fn with_capacity(room: usize) -> Handed<T> {
        Handed {
            things: VecDeque::with_capacity(room),
            #[cfg(test)]
            timeless: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// Adds an entry at `at`. True if no earlier entry waits.
    pub(super) fn give(&mut self, at: SimTime, thing: T) -> bool {
        #[cfg(test)]
        let at = if self.timeless { SimTime::ZERO } else { at };
        match self.things.back() {
            Some(&(last, _)) if last > at => self.give_among(at, thing),
            last => {
                let first = last.is_none();
                self.things.push_back((at, thing));
                first
            }
        }
    }

    /// A CPU that is ahead has given before.
    #[cold]
    fn give_among(&mut self, at: SimTime, thing: T) -> bool {
        let index = self.things.partition_point(|&(other, _)| other <= at);
        self.things.insert(index, (at, thing));
        index == 0
    }

    /// An entry was given by `now`.
    pub(super) fn is_due(&self, now: SimTime) -> bool {
        self.things.front().is_some_and(|&(at, _)| at <= now)
    }

    /// Takes the first entry, if it was given by `now`.
    pub(super) fn take(&mut self, now: SimTime) -> Option<T> {
        if !self.is_due(now) {
            return None;
        }
        self.things.pop_front().map(|(_, thing)| thing)
    }

    /// When the first entry was given.
    pub(super) fn next_time(&self) -> Option<SimTime> {
        self.things.front().map(|&(at, _)| at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.iter().map(|(_, thing)| thing)
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut T> {
        self.things.front_mut().map(|(_, thing)| thing)
    }

    /// Removes all entries for which `keep` does not hold.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.things.retain(|(_, thing)| keep(thing));
    }
}

#[cfg(test)]
mod tests {
    use blkmq::elevator::SchedulerKind;
    use blkmq::request::QueueId;

    use super::*;
    use crate::machine::bench;
    use crate::machine::order::Order;

    #[test]
    fn nothing_is_taken_before_it_was_given() {
        let mut handed = Handed::with_capacity(4);
        assert!(handed.give(SimTime(1000), 'b'));
        assert!(!handed.give(SimTime(1000), 'c'));
        assert!(handed.give(SimTime(900), 'a'));
        assert_eq!(handed.take(SimTime(899)), None);
        assert_eq!(handed.next_time(), Some(SimTime(900)));
        assert_eq!(handed.take(SimTime(950)), Some('a'));
        assert_eq!(handed.take(SimTime(950)), None);
        assert_eq!(handed.take(SimTime(1000)), Some('b'));
        assert_eq!(handed.take(SimTime(1000)), Some('c'));
        assert!(handed.is_empty());
    }

    /// 16 threads over one queue: nearly all completions move to another CPU.
    #[test]
    fn a_completion_handed_over_without_the_time_is_noticed() {
        for timeless in [false, true] {
            let plan = bench::plan((16, 1), bench::null_blk(), SchedulerKind::MqDeadline, 16);
            let mut simulator = bench::simulator(&plan);
            for cpu in simulator.cpus.iter_mut() {
                cpu.softirq_list.timeless = timeless;
            }
            simulator.trace();
            simulator.run(|_| true);
            let order = Order::of(&simulator.take_trace());
            assert_eq!(order.ended, 16 * 50, "{:?}", order.wrong.first());
            assert!(order.depth(&[QueueId(0)]) <= 64);
            let early = |what: &&String| what.starts_with("Complete") && what.contains("Issued at");
            match timeless {
                false => assert_eq!(order.wrong.first(), None),
                true => assert!(
                    order.wrong.iter().any(|what| early(&what)),
                    "{:?}",
                    order.wrong
                ),
            }
        }
    }
}
