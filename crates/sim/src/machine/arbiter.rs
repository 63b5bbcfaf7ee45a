//! Locks: granted in the order of arrival, with statistics.
//!
//! A CPU that runs ahead of the others stands in line as of the time when it asks, which may be
//! later than the present: whoever asks for an earlier time goes before it.
//! Kernel: kernel/locking/qspinlock.c (queue order is arrival order, blind to distance).

use core::hint::cold_path;

use blkmq::env::Solo;
use blkmq::queue::BlkMq;
use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};

use crate::recorder::LockStats;

use crate::recorder::Watch;

/// Who waits: CPU and level (see `stretch::owner`).
pub(super) type Contender = u32;
/// Numbers of contenders that a CPU has; it uses one a level.
pub(super) const OWNERS: u32 = 4;

const NOBODY: u32 = u32::MAX;

/// One lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockState {
    /// Taken, by a context whose frames are somewhere between grant and release.
    pub(super) taken: bool,
    /// Released as of this time; later than the present while its last holder runs ahead.
    pub(super) free_at: SimTime,
    head: Contender,
    tail: Contender,
    acquisitions: u64,
    contended: u64,
    tries_failed: u64,
    wait: u64,
    hold: u64,
    wait_max: u64,
    hold_max: u64,
}

/// A contender's place in a queue.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// When it asked.
    asked: SimTime,
    /// The one behind it.
    next: Contender,
    /// The one before it.
    prev: Contender,
}

/// All locks of a machine.
#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    pub(super) locks: Vec<LockState>,
    /// By contender; valid while it stands in line.
    line: Vec<Place>,
    /// Somebody wants to know more than sums.
    pub(super) watch: Option<Box<Watch>>,
}

/// A lock that was granted to the first in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    /// Who got it.
    pub(super) who: Contender,
    /// How long it waited; none if the lock was free when it was asked for.
    pub(super) waited: Option<Duration>,
}

impl Arbiter {
    pub(super) fn new(locks: usize, contenders: usize) -> Arbiter {
        let lock = LockState {
            taken: false,
            free_at: SimTime::ZERO,
            head: NOBODY,
            tail: NOBODY,
            acquisitions: 0,
            contended: 0,
            tries_failed: 0,
            wait: 0,
            hold: 0,
            wait_max: 0,
            hold_max: 0,
        };
        let place = Place {
            asked: SimTime::ZERO,
            next: NOBODY,
            prev: NOBODY,
        };
        Arbiter {
            locks: vec![lock; locks],
            line: vec![place; contenders],
            watch: None,
        }
    }

    /// True if it can be taken at `now` without waiting.
    pub(super) fn is_free(&self, lock: usize, now: SimTime) -> bool {
        let l = &self.locks[lock];
        !l.taken && l.free_at <= now && l.head == NOBODY
    }

    /// Takes a free lock.
    pub(super) fn take(&mut self, lock: usize) {
        let l = &mut self.locks[lock];
        assert!(!l.taken, "a taken lock was granted");
        l.taken = true;
        l.acquisitions += 1;
    }

    /// spin_trylock() at `at`, the present: takes the lock unless somebody holds it or stands in
    /// line by then.
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

    /// Stands in line as of `at`. The time for which the caller then schedules a grant, if nobody
    /// holds the lock and nobody asked for an earlier time.
    pub(super) fn queue(&mut self, lock: usize, who: Contender, at: SimTime) -> Option<SimTime> {
        let l = &mut self.locks[lock];
        // From the back: hardly anybody asks for a time long before that of others.
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
        };
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

    /// The first in line takes the lock at `now`, if it is free and was asked for by then.
    pub(super) fn grant_first(&mut self, lock: usize, now: SimTime) -> Option<Grant> {
        let l = &mut self.locks[lock];
        let who = l.head;
        // No contender has the number NOBODY.
        let Place { asked, next, .. } = *self.line.get(who as usize)?;
        if l.taken || l.free_at > now || asked > now {
            return None;
        }
        l.head = next;
        match self.line.get_mut(next as usize) {
            None => l.tail = NOBODY,
            Some(other) => other.prev = NOBODY,
        }
        l.taken = true;
        l.acquisitions += 1;
        let time = now.since(asked);
        let waited = (time.0 > 0).then_some(time);
        if let Some(time) = waited {
            l.contended += 1;
            l.wait += time.0;
            l.wait_max = l.wait_max.max(time.0);
        }
        Some(Grant { who, waited })
    }

    /// `cpu` makes it free again as of `at`. The time for which the caller then schedules a
    /// grant, if somebody waits.
    pub(super) fn release(
        &mut self,
        lock: usize,
        cpu: CpuId,
        at: SimTime,
        held: Duration,
    ) -> Option<SimTime> {
        let l = &mut self.locks[lock];
        assert!(l.taken, "a free lock was released");
        l.taken = false;
        l.free_at = at;
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

    /// Accounts by name, the scheduler's locks first; those never taken are left out.
    pub(super) fn stats(&self, mq: &BlkMq<Solo>) -> Vec<LockStats> {
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
            watch.tell(&mut all);
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
        assert_eq!(arbiter.grant_first(0, at(95)).unwrap().who, 3);
        assert_eq!(
            arbiter.release(0, CpuId(1), at(150), Duration(55)),
            Some(at(150))
        );
        // The event of the first one is still there.
        assert!(arbiter.grant_first(0, at(100)).is_none());
        assert_eq!(arbiter.grant_first(0, at(150)).unwrap().who, 0);
    }
}
