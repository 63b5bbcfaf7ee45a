use super::super::arbiter::{OWNERS, TakeOver};
use super::*;
use blkmq::env::Numbering;
use blkmq::time::Duration;

/// A line moves in 10 ns from any CPU; only CPU 3 is on another die, 50 ns from the others.
const NEAR: u64 = 10_000;
const FAR: u64 = 50_000;

/// One lock, taken by CPU 0 until it is released.
struct Bench {
    arbiter: Arbiter,
    word: Line,
    polling: Polling,
}

fn cpu(id: u16) -> Contender {
    u32::from(id) * OWNERS
}

impl Bench {
    fn new(late: u64) -> Bench {
        let dies = Numbering {
            adjacent: [1, 3, 6],
            ..Numbering::default()
        };
        let near = |id| Near::new(CpuId(id), dies, [0, NEAR, FAR, FAR]);
        let mut bench = Bench {
            arbiter: Arbiter::new(1, 4 * OWNERS as usize),
            word: Line::default(),
            polling: Polling {
                near: (0..4).map(near).collect(),
                late_ps: late,
            },
        };
        bench.word.write(CpuId(0), &bench.polling.near[0]);
        bench.arbiter.take(0);
        bench
    }

    fn asks(&mut self, id: u16, at: u64) {
        assert_eq!(self.arbiter.queue(0, cpu(id), SimTime(at)), None, "taken");
    }

    /// `from` releases the lock at `at`, nanoseconds. How much later the next one has it,
    /// picoseconds.
    fn hands_off(&mut self, from: u16, at: u64) -> u64 {
        self.hands_off_behind(0, from, at)
    }

    /// The same, with an unlock made `stores` nanoseconds before, after stores that took so long.
    fn hands_off_behind(&mut self, stores: u64, from: u16, at: u64) -> u64 {
        let now = SimTime(at);
        let unlocks_ps = (at - stores) * 1000;
        let free = self
            .arbiter
            .release(0, CpuId(from), now, unlocks_ps, Duration(1));
        assert_eq!(free, Some(now), "a contender waits");
        assert!(self.arbiter.grant_first(0, now).is_some());
        match self
            .arbiter
            .take_over(0, &self.word, &self.polling, at * 1000)
        {
            TakeOver::At { at_ps, .. } => at_ps - at * 1000,
            TakeOver::Free => panic!("it was waited for"),
        }
    }
}

#[test]
fn one_waiter_costs_the_unlock_and_the_look() {
    let mut bench = Bench::new(0);
    bench.asks(1, 1000);
    assert_eq!(bench.hands_off(0, 2000), 2 * NEAR);
    assert!(bench.word.is_of(CpuId(1)), "clear_pending_set_locked()");
}

#[test]
fn who_polls_with_pause_sees_the_unlock_later() {
    let mut bench = Bench::new(7000);
    bench.asks(1, 1000);
    assert_eq!(bench.hands_off(0, 2000), 2 * NEAR + 7000);
}

#[test]
fn distance_counts_twice() {
    let mut bench = Bench::new(0);
    bench.asks(3, 1000);
    assert_eq!(bench.hands_off(0, 2000), 2 * FAR);
}

#[test]
fn the_last_of_the_queue_exchanges_the_tail_before_it_goes_on() {
    let mut bench = Bench::new(0);
    bench.asks(1, 1000);
    bench.asks(2, 1100);
    assert_eq!(bench.hands_off(0, 2000), 2 * NEAR);
    assert_eq!(bench.hands_off(1, 3000), 3 * NEAR);
    assert!(bench.word.is_of(CpuId(2)));
}

#[test]
fn an_arrival_at_the_wrong_moment_delays_the_unlock() {
    let delay = |arrives: u64| {
        let mut bench = Bench::new(0);
        bench.asks(1, 1000);
        bench.asks(2, arrives);
        bench.hands_off(0, 2000)
    };
    let early = delay(1100);
    // Its compare-and-exchange, with which it has the line for the exchange of the tail, too.
    assert_eq!(delay(1999), early + NEAR - 1000);
    // That, and half of a poll: the line is free at 2005.
    assert_eq!(delay(1985), early + NEAR / 2);
    assert_eq!(delay(1980), early, "it is over");
}

#[test]
fn who_asks_before_the_unlock_is_seen_finds_the_word_taken() {
    // The unlock waits for stores of 40 ns.
    let behind = |asked: &[u64], late: u64| {
        let mut bench = Bench::new(late);
        for (id, at) in (1..).zip(asked) {
            bench.asks(id, *at);
        }
        let first = bench.hands_off_behind(40, 0, 2000);
        (first, bench)
    };
    // The owner has fetched the line from the poller by then: only the poll is left.
    assert_eq!(behind(&[1000], 7000).0, NEAR + 7000);
    // Its compare-and-exchange, at 1990, takes the line; the owner has it back at 2000.
    assert_eq!(behind(&[1980], 7000).0, NEAR + 7000);
    // And so from 1999: at 2009, and at 2019.
    assert_eq!(behind(&[1999], 0).0, 19_000 + NEAR);
    // The second one has a node, and the line at 2000, for both its exchanges; the owner at 2010.
    let (first, mut two) = behind(&[1980, 1990], 0);
    assert_eq!(first, 10_000 + NEAR);
    assert_eq!(two.hands_off(1, 3000), 3 * NEAR, "it exchanges the tail");
}

#[test]
fn who_learns_late_of_the_next_one_waits_for_its_own_node() {
    let queue = |ids: &[u16]| {
        let mut bench = Bench::new(0);
        for (id, at) in ids.iter().zip((1000..).step_by(100)) {
            bench.asks(*id, at);
        }
        bench.hands_off(0, 2000);
        // From here on CPU 2 is the first of the queue.
        bench.asks(0, 2500);
        bench
    };
    // It reads where CPU 0 left its address: one line more than the unlock and the look.
    assert_eq!(queue(&[1, 2]).hands_off(1, 3000), 3 * NEAR);
    // CPU 3 learns that it is the first when its own next one has long been there.
    let mut bench = queue(&[1, 2, 3]);
    bench.hands_off(1, 3000);
    assert_eq!(bench.hands_off(2, 4000), 2 * FAR);
}

#[test]
fn after_a_short_hold_the_next_one_is_not_polling_yet() {
    let after = |held: u64| {
        let mut bench = Bench::new(0);
        for (id, at) in [(1, 1000), (2, 1100), (3, 1200)] {
            bench.asks(id, at);
        }
        bench.hands_off(0, 2000);
        // CPU 2 writes to the node of CPU 3, which is far away, that it is the first.
        let taken = 3000 + bench.hands_off(1, 3000) / 1000;
        bench.hands_off(2, taken + held)
    };
    let (short, long) = (after(5), after(1000));
    assert_eq!(long, 3 * FAR, "unlock, look, exchange of the tail");
    // Written by a store after a read of the own node: twice the way and more.
    assert!(short > long, "{short} and {long}");
}

#[test]
fn a_lock_that_was_free_is_not_handed_off() {
    let mut bench = Bench::new(0);
    let now = SimTime(2000);
    let free = bench
        .arbiter
        .release(0, CpuId(0), now, 2_000_000, Duration(1));
    assert_eq!(free, None, "no contender waits");
    let due = bench.arbiter.queue(0, cpu(1), SimTime(2500));
    assert_eq!(due, Some(SimTime(2500)));
    assert_eq!(bench.arbiter.grant_first(0, SimTime(2500)), Some(cpu(1)));
    // It took an interrupt before it took the lock.
    let taken = bench
        .arbiter
        .take_over(0, &bench.word, &bench.polling, 4_000_000);
    assert!(matches!(taken, TakeOver::Free));
}
