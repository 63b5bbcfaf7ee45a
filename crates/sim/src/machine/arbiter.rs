//! Locks: granted in the order of arrival, with statistics.
//!
//! Kernel: kernel/locking/qspinlock.c (queue order is arrival order, blind to distance).

use blkmq::env::Solo;
use blkmq::queue::{BlkMq, LockKind};
use blkmq::time::{Duration, SimTime};

/// Who waits: CPU and level.
pub(super) type Contender = u32;

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
    wait: u64,
    hold: u64,
    wait_max: u64,
    hold_max: u64,
}

/// All locks of a machine.
#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    pub(super) locks: Vec<LockState>,
    /// The contender behind this one in its queue.
    next: Vec<Contender>,
}

/// Account of all locks of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockStats {
    /// Which kind.
    pub kind: LockKind,
    /// How often taken.
    pub acquisitions: u64,
    /// How often somebody had to wait.
    pub contended: u64,
    /// Total waiting time.
    pub wait: Duration,
    /// Total holding time.
    pub hold: Duration,
    /// Longest wait.
    pub wait_max: Duration,
    /// Longest hold.
    pub hold_max: Duration,
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
            wait: 0,
            hold: 0,
            wait_max: 0,
            hold_max: 0,
        };
        Arbiter {
            locks: vec![lock; locks],
            next: vec![NOBODY; contenders],
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

    /// Stands in line. True if the line was empty and the lock is only waiting for its time: the
    /// caller then schedules a grant for `free_at`.
    pub(super) fn queue(&mut self, lock: usize, who: Contender) -> bool {
        self.next[who as usize] = NOBODY;
        let l = &mut self.locks[lock];
        l.contended += 1;
        let first = l.head == NOBODY;
        if first {
            l.head = who;
        } else {
            self.next[l.tail as usize] = who;
        }
        l.tail = who;
        first && !l.taken
    }

    /// The first in line takes the lock, if it is free. `None`: nobody waits, or it was taken.
    pub(super) fn grant_first(&mut self, lock: usize) -> Option<Contender> {
        let l = &mut self.locks[lock];
        if l.taken || l.head == NOBODY {
            return None;
        }
        let who = l.head;
        l.head = self.next[who as usize];
        l.taken = true;
        l.acquisitions += 1;
        Some(who)
    }

    /// Free again as of `at`. True if somebody waits: the caller then schedules a grant.
    pub(super) fn release(&mut self, lock: usize, at: SimTime, held: Duration) -> bool {
        let l = &mut self.locks[lock];
        assert!(l.taken, "a free lock was released");
        l.taken = false;
        l.free_at = at;
        l.hold += held.0;
        l.hold_max = l.hold_max.max(held.0);
        l.head != NOBODY
    }

    /// Counts a wait that ended.
    pub(super) fn waited(&mut self, lock: usize, time: Duration) {
        let l = &mut self.locks[lock];
        l.wait += time.0;
        l.wait_max = l.wait_max.max(time.0);
    }

    /// Accounts by kind, in the kinds' order; kinds never taken are left out.
    pub(super) fn stats(&self, mq: &BlkMq<Solo>) -> Vec<LockStats> {
        let mut all: Vec<LockStats> = LockKind::ALL
            .iter()
            .map(|&kind| LockStats {
                kind,
                acquisitions: 0,
                contended: 0,
                wait: Duration::ZERO,
                hold: Duration::ZERO,
                wait_max: Duration::ZERO,
                hold_max: Duration::ZERO,
            })
            .collect();
        for (slot, lock) in self.locks.iter().enumerate() {
            if lock.acquisitions == 0 {
                continue;
            }
            let stats = &mut all[mq.lock_kind(slot) as usize];
            stats.acquisitions += lock.acquisitions;
            stats.contended += lock.contended;
            stats.wait += Duration(lock.wait);
            stats.hold += Duration(lock.hold);
            stats.wait_max = stats.wait_max.max(Duration(lock.wait_max));
            stats.hold_max = stats.hold_max.max(Duration(lock.hold_max));
        }
        all.retain(|stats| stats.acquisitions > 0);
        all
    }

    /// Forgets the statistics (end of the ramp).
    pub(super) fn reset_stats(&mut self) {
        for lock in &mut self.locks {
            (lock.acquisitions, lock.contended) = (0, 0);
            (lock.wait, lock.hold, lock.wait_max, lock.hold_max) = (0, 0, 0, 0);
        }
    }
}
