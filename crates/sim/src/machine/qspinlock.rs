//! The hand-off of a contended lock: the line of its word, which owner, pollers and arriving
//! waiters take from each other, and the lines of the waiters' nodes.
//!
//! One CPU at a time has a line; other CPUs that want it queue for the line. The first waiter of a
//! lock sets the pending bit and polls the word. The others queue: each exchanges the tail in the
//! word, leaves its address in its predecessor's node and polls its own, until that predecessor has
//! the lock and writes there; then it polls the word. Every arrival takes the word's line twice:
//! with the compare-and-exchange that finds the lock taken, and with the exchange of the tail. So
//! the owner's unlock, a store, finds the line gone, and so does the poller. Stores leave a CPU in
//! order (x86): an unlock is visible after the stores with which the owner took the lock.
//!
//! The accesses of arrivals are computed when the lock is handed on, in the order of arrival.
//! Kernel: kernel/locking/qspinlock.c, mcs_spinlock.h (6.1.192, 6.12.117).

use std::sync::Arc;

use blkmq::env::{Line, Near};
use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::arbiter::{Arbiter, Contender, NOBODY};
use super::burst;
use crate::cost::{CostModel, Step};

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) asked: SimTime,
    pub(super) next: Contender,
    pub(super) prev: Contender,
    /// It came first: it waits with the pending bit and has no node.
    pub(super) pending: bool,
    /// The lock was not free when it asked.
    pub(super) waited: bool,
}

impl Default for Place {
    fn default() -> Place {
        Place {
            asked: SimTime::ZERO,
            next: NOBODY,
            prev: NOBODY,
            pending: false,
            waited: false,
        }
    }
}

/// Prices of spinning: lines on each CPU, and the delay of a poll.
#[derive(Clone, Debug, Default)]
pub(super) struct Polling {
    near: Arc<[Near]>,
    /// From a change of the polled word until the next poll, on average: half a PAUSE.
    late_ps: u64,
}

impl Polling {
    pub(super) fn new(costs: &CostModel) -> Polling {
        Polling {
            near: costs.lines(),
            late_ps: costs.step(Step::Pause) / 2,
        }
    }
}

/// The line of a lock's word in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// All earlier accesses are done.
    free_ps: u64,
    /// The first waiter polls the word from this time on.
    polls_ps: u64,
    /// Time of the unlock, after stores of its label that are still draining.
    unlocks_ps: u64,
    /// The stores with which the owner took the lock have drained.
    drained_ps: u64,
    /// The first waiter whose arrival is not computed yet.
    pub(super) fresh: Contender,
    owner: CpuId,
}

impl Default for Word {
    fn default() -> Word {
        Word {
            free_ps: 0,
            polls_ps: 0,
            unlocks_ps: 0,
            drained_ps: 0,
            fresh: NOBODY,
            owner: CpuId(0),
        }
    }
}

impl Word {
    /// `cpu` makes the unlock at `unlocks_ps`, a store after others that are still draining.
    pub(super) fn is_released(&mut self, cpu: CpuId, unlocks_ps: u64) {
        (self.owner, self.unlocks_ps) = (cpu, unlocks_ps);
    }
}

/// Holders of a line that few CPUs share: one CPU, and maybe another that has read it since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    owner: u16,
    reader: u16,
}

impl Copies {
    pub(super) fn of(cpu: u16) -> Copies {
        Copies {
            owner: cpu,
            reader: cpu,
        }
    }

    #[inline]
    fn read(&mut self, near: &[Near], cpu: u16) -> u64 {
        if self.reader == cpu || self.owner == cpu {
            return 0;
        }
        self.reader = cpu;
        near[usize::from(cpu)].of_one(self.owner)
    }

    /// A CPU writes to it: as far as the farther of both.
    #[inline]
    fn write(&mut self, near: &[Near], cpu: u16) -> u64 {
        let Copies { owner, reader } = core::mem::replace(self, Copies::of(cpu));
        let near = &near[usize::from(cpu)];
        near.of_one(owner).max(near.of_one(reader))
    }
}

fn number(who: Contender) -> u16 {
    burst::cpu_of(who).0.0
}

impl Arbiter {
    /// The first waiter gets a lock that is free as of `at_ps` and was not when it asked: when it
    /// continues with the lock, picoseconds.
    pub(super) fn hand_off(
        &mut self,
        lock: usize,
        line: &Line,
        polling: &Polling,
        at_ps: u64,
    ) -> u64 {
        let l = &self.locks[lock];
        let (mut state, head) = (l.word, l.head);
        let poller = number(head);
        let near = &*polling.near;
        // Until the first arrival, the line was the owner's.
        let mut word = Copies::of(state.owner.0);
        if head != state.fresh && state.polls_ps <= state.unlocks_ps {
            state.free_ps = state.free_ps.max(state.polls_ps) + word.read(near, poller);
        }
        // Until the unlock is visible, the word is locked: a CPU that asks while stores before it
        // drain takes the line from the owner once more.
        let free_ps = l.free_at.0 * 1000;
        self.arrivals(&mut state, &mut word, (head, free_ps), polling);
        // The unlock, and the poll that sees it.
        let unlock = state.unlocks_ps.max(state.free_ps) + word.write(near, state.owner.0);
        let unlock = unlock.max(at_ps).max(state.drained_ps);
        let seen = match unlock < state.polls_ps {
            true => state.polls_ps + word.read(near, poller),
            false => unlock + polling.late_ps + word.read(near, poller),
        };
        line.write(CpuId(poller), &near[usize::from(poller)]);
        let has = self.take_word(&mut state, &mut word, seen, (head, near, polling.late_ps));
        self.locks[lock].word = state;
        has
    }

    /// The first waiter has seen the word free, at `seen`, and takes it: when it continues.
    fn take_word(
        &mut self,
        state: &mut Word,
        word: &mut Copies,
        seen: u64,
        (head, near, late): (Contender, &[Near], u64),
    ) -> u64 {
        // clear_pending_set_locked() and set_locked() are stores.
        state.free_ps = seen + word.write(near, number(head));
        (state.drained_ps, state.polls_ps) = (state.free_ps, state.free_ps);
        let Place { next, pending, .. } = self.line[head as usize];
        if pending {
            return seen;
        }
        // The last one in the queue exchanges the tail, and continues afterwards.
        if next == NOBODY || next == state.fresh {
            return state.free_ps;
        }
        // The address of the next one is a load: local if that one came before the predecessor
        // wrote to this node that it is the first. The write to the next node is a store.
        let linked = seen + self.node(head).read(near, number(head));
        let signalled = linked + self.node(next).write(near, number(head));
        state.drained_ps = state.drained_ps.max(signalled);
        let reads = self.node(next).read(near, number(next));
        state.polls_ps = state.drained_ps + late + reads;
        linked
    }

    /// Accesses to the word's line by CPUs that came before the lock was free, at `free_ps`.
    fn arrivals(
        &mut self,
        state: &mut Word,
        word: &mut Copies,
        (head, free_ps): (Contender, u64),
        polling: &Polling,
    ) {
        let (near, late) = (&*polling.near, polling.late_ps);
        loop {
            let who = state.fresh;
            let Some(place) = self.line.get_mut(who as usize) else {
                return;
            };
            let asked = place.asked.0 * 1000;
            if asked >= free_ps {
                return;
            }
            state.fresh = place.next;
            let cpu = number(who);
            // The compare-and-exchange that finds it taken.
            let found = asked.max(state.free_ps) + word.write(near, cpu);
            state.free_ps = found;
            let prev = place.prev;
            if prev == NOBODY {
                place.pending = true;
                state.polls_ps = found;
                continue;
            }
            let ready = found + self.node(who).write(near, cpu);
            let looks = state.polls_ps.max(found + late);
            if looks < ready {
                state.free_ps = looks + word.read(near, number(head));
            }
            state.free_ps = ready.max(state.free_ps) + word.write(near, cpu);
            let looks = state.polls_ps.max(state.free_ps + late);
            if looks < free_ps {
                state.free_ps = looks + word.read(near, number(head));
            }
            if !self.line[prev as usize].pending {
                self.node(prev).write(near, cpu);
            }
        }
    }

    /// The line of a contender's node.
    fn node(&mut self, of: Contender) -> &mut Copies {
        &mut self.nodes[usize::from(number(of))]
    }
}

#[cfg(test)]
mod tests;
