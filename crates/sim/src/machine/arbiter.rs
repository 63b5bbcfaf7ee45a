//! Locks: granted in the order of arrival, with statistics.
//!
//! A CPU that runs ahead of the others queues as of the time when it asks, which may be later than
//! the present: a CPU that asks for an earlier time is queued before it. Kernel:
//! kernel/locking/qspinlock.c (queue order is arrival order, blind to distance).

use core::hint::cold_path;

use blkmq::env::Line;
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use crate::recorder::LockStats;

use crate::recorder::Watch;

use super::qspinlock::{Copies, Place, Polling, Word};

/// A waiter: CPU and level (see `burst::owner`).
pub(super) type Contender = u32;
/// Contenders that a CPU can be; one for each level.
pub(super) const OWNERS: u32 = 4;

pub(super) const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct LockState {
    /// Taken, by a context whose frames are somewhere between grant and release.
    pub(super) taken: bool,
    /// Released as of this time; later than the present while its last holder runs ahead.
    pub(super) free_at: SimTime,
    pub(super) head: Contender,
    tail: Contender,
    /// The line of its word, and how it came to its last owner.
    pub(super) word: Word,
    acquisitions: u64,
    contended: u64,
    tries_failed: u64,
    wait: u64,
    hold: u64,
    wait_max: u64,
    hold_max: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    pub(super) locks: Vec<LockState>,
    /// By contender; valid while it is queued.
    pub(super) line: Vec<Place>,
    /// The line of each CPU's nodes (struct mcs_spinlock, four of 16 bytes).
    pub(super) nodes: Vec<Copies>,
    /// Statistics beyond sums, if an observer wants them.
    pub(super) watch: Option<Box<Watch>>,
}

/// How a contender gets a lock that was granted to it.
#[derive(Clone, Copy, Debug)]
pub(super) enum TakeOver {
    /// The lock was free when the contender asked.
    Free,
    /// The waiter has it as of this time, after this wait.
    At { at_ps: u64, waited: Duration },
}

impl Arbiter {
    pub(super) fn new(locks: usize, contenders: usize) -> Arbiter {
        let lock = LockState {
            taken: false,
            free_at: SimTime::ZERO,
            head: NOBODY,
            tail: NOBODY,
            word: Word::default(),
            acquisitions: 0,
            contended: 0,
            tries_failed: 0,
            wait: 0,
            hold: 0,
            wait_max: 0,
            hold_max: 0,
        };
        Arbiter {
            locks: vec![lock; locks],
            line: vec![Place::default(); contenders],
            nodes: (0..(contenders as u32 / OWNERS) as u16)
                .map(Copies::of)
                .collect(),
            watch: None,
        }
    }

    /// True if the lock can be taken at `now` without waiting.
    pub(super) fn is_free(&self, lock: usize, now: SimTime) -> bool {
        let l = &self.locks[lock];
        !l.taken && l.free_at <= now && l.head == NOBODY
    }

    pub(super) fn take(&mut self, lock: usize) {
        let l = &mut self.locks[lock];
        assert!(!l.taken, "a taken lock was granted");
        l.taken = true;
        l.acquisitions += 1;
    }

    /// spin_trylock() at `at`, the present: takes the lock unless it is held or another contender
    /// is queued by then.
    pub(super) fn try_take(&mut self, lock: usize, at: SimTime) -> bool {
        let l = &mut self.locks[lock];
        let waited_for = l.head != NOBODY && self.line[l.head as usize].asked <= at;
        if l.taken || l.free_at > at || waited_for {
            l.tries_failed += 1;
            return false;
        }
        self.take(lock);
        true
    }

    /// Queues as of `at`. Returns the time for which the caller then schedules a grant, if the lock
    /// is free and no contender asked for an earlier time.
    pub(super) fn queue(&mut self, lock: usize, who: Contender, at: SimTime) -> Option<SimTime> {
        let l = &mut self.locks[lock];
        // From the back: a contender hardly ever asks for a time long before that of the others.
        let (mut before, mut behind) = (l.tail, NOBODY);
        while let Some(other) = self.line.get(before as usize)
            && other.asked > at
        {
            (before, behind) = (other.prev, before);
        }
        self.line[who as usize] = Place {
            asked: at,
            next: behind,
            prev: before,
            pending: false,
            waited: false,
        };
        if l.word.fresh == behind {
            l.word.fresh = who;
        }
        match self.line.get_mut(behind as usize) {
            None => l.tail = who,
            Some(other) => other.prev = who,
        }
        match self.line.get_mut(before as usize) {
            None => l.head = who,
            Some(other) => other.next = who,
        }
        (before == NOBODY && !l.taken).then(|| l.free_at.max(at))
    }

    /// Grants the lock to the first in the queue at `now`, if the lock is free and the contender
    /// asked for it by then. It stays in the queue until it takes the lock over.
    pub(super) fn grant_first(&mut self, lock: usize, now: SimTime) -> Option<Contender> {
        let l = &mut self.locks[lock];
        // No contender has the number NOBODY.
        let asked = self.line.get(l.head as usize)?.asked;
        if l.taken || l.free_at > now || asked > now {
            return None;
        }
        l.taken = true;
        l.acquisitions += 1;
        self.line[l.head as usize].waited = asked < now;
        Some(l.head)
    }

    /// The first in line takes over at `at_ps` what was granted to it.
    pub(super) fn take_over(
        &mut self,
        lock: usize,
        word: &Line,
        polling: &Polling,
        at_ps: u64,
    ) -> TakeOver {
        let who = self.locks[lock].head;
        let Place {
            asked,
            next,
            waited,
            ..
        } = self.line[who as usize];
        let taken = waited.then(|| self.hand_off(lock, word, polling, at_ps));
        let l = &mut self.locks[lock];
        if l.word.fresh == who {
            l.word.fresh = next;
        }
        l.head = next;
        match self.line.get_mut(next as usize) {
            None => l.tail = NOBODY,
            Some(other) => other.prev = NOBODY,
        }
        let Some(at_ps) = taken else {
            return TakeOver::Free;
        };
        let time = SimTime(at_ps / 1000).since(asked);
        l.contended += 1;
        l.wait += time.0;
        l.wait_max = l.wait_max.max(time.0);
        TakeOver::At {
            at_ps,
            waited: time,
        }
    }

    /// `cpu` releases the lock as of `at`, with a store that it makes at `unlocks_ps`. Returns the
    /// time for which the caller then schedules a grant, if a contender waits.
    pub(super) fn release(
        &mut self,
        lock: usize,
        cpu: CpuId,
        at: SimTime,
        unlocks_ps: u64,
        held: Duration,
    ) -> Option<SimTime> {
        let l = &mut self.locks[lock];
        assert!(l.taken, "a free lock was released");
        l.taken = false;
        l.free_at = at;
        l.word.is_released(cpu, unlocks_ps);
        l.hold += held.0;
        l.hold_max = l.hold_max.max(held.0);
        if let Some(watch) = &mut self.watch {
            cold_path();
            watch.released(lock, cpu, at, held);
        }
        let l = &self.locks[lock];
        let first = self.line.get(l.head as usize)?;
        Some(at.max(first.asked))
    }

    /// No CPU of its hctx asked for the run of this queue that a level begins.
    #[cold]
    pub(super) fn run_is_foreign(&mut self, queue: QueueId, worker: Contender) {
        if let Some(watch) = &mut self.watch {
            watch.run_is_foreign(queue, worker);
        }
    }

    /// Statistics by name, the scheduler's locks first; locks never taken are left out.
    pub(super) fn stats(&self, mq: &BlkMq) -> Vec<LockStats> {
        let (names, classes) = mq.lock_names();
        let mut all: Vec<LockStats> = names
            .into_iter()
            .map(|name| LockStats {
                name,
                acquisitions: 0,
                contended: 0,
                tries_failed: 0,
                wait: Duration::ZERO,
                hold: Duration::ZERO,
                wait_max: Duration::ZERO,
                hold_max: Duration::ZERO,
                waits: None,
            })
            .collect();
        for (slot, lock) in self.locks.iter().enumerate() {
            if lock.acquisitions == 0 && lock.tries_failed == 0 {
                continue;
            }
            let stats = &mut all[usize::from(classes[slot])];
            stats.acquisitions += lock.acquisitions;
            stats.contended += lock.contended;
            stats.tries_failed += lock.tries_failed;
            stats.wait += Duration(lock.wait);
            stats.hold += Duration(lock.hold);
            stats.wait_max = stats.wait_max.max(Duration(lock.wait_max));
            stats.hold_max = stats.hold_max.max(Duration(lock.hold_max));
        }
        if let Some(watch) = &self.watch {
            watch.report(&mut all);
        }
        all.retain(|stats| stats.acquisitions > 0 || stats.tries_failed > 0);
        all
    }

    /// Forgets the statistics (end of the ramp).
    pub(super) fn reset_stats(&mut self) {
        for lock in &mut self.locks {
            (lock.acquisitions, lock.contended, lock.tries_failed) = (0, 0, 0);
            (lock.wait, lock.hold, lock.wait_max, lock.hold_max) = (0, 0, 0, 0);
        }
        if let Some(watch) = &mut self.watch {
            watch.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_that_was_due_earlier_does_not_break_into_a_hold() {
        let (mut arbiter, at) = (Arbiter::new(1, 8), SimTime);
        // The second to come asks for an earlier time, gets the lock and holds it until 150.
        assert_eq!(arbiter.queue(0, 0, at(100)), Some(at(100)));
        assert_eq!(arbiter.queue(0, 3, at(95)), Some(at(95)));
        assert_eq!(arbiter.grant_first(0, at(95)), Some(3));
        let (word, polling) = (Line::default(), Polling::default());
        assert!(matches!(
            arbiter.take_over(0, &word, &polling, 95_000),
            TakeOver::Free
        ));
        assert_eq!(
            arbiter.release(0, CpuId(1), at(150), 150_000, Duration(55)),
            Some(at(150))
        );
        // The event of the first one is still there.
        assert!(arbiter.grant_first(0, at(100)).is_none());
        assert_eq!(arbiter.grant_first(0, at(150)), Some(0));
    }
}
