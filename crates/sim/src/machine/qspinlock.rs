//! What the hand-off of a contended lock is made of: the line of its word, which owner, pollers and
//! arriving waiters take from each other, and the lines of the waiters' nodes.
//!
//! One CPU at a time has a line; who wants it meanwhile stands in line for the line. The first
//! waiter of a lock sets the pending bit and polls the word. The others queue: each exchanges the
//! tail in the word, leaves its address in its predecessor's node and polls its own, until that
//! predecessor has the lock and writes there; then it polls the word. Every arrival takes the
//! word's line twice: with the compare-and-exchange that finds the lock taken, and with the
//! exchange of the tail. So the owner's unlock, a store, finds the line gone, and so does the
//! poller. Stores leave a CPU in order (x86): an unlock is seen behind the stores with which the
//! owner took the lock.
//!
//! What arrivals do is reckoned when the lock is handed on, in the order in which they came.
//! Kernel: kernel/locking/qspinlock.c, mcs_spinlock.h (6.1.192, 6.12.117).

use blkmq::env::{Line, Near};
use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::arbiter::{Arbiter, Contender, NOBODY};
use super::stretch;
use crate::cost::{CostModel, Step};

/// A contender's place in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// When it asked.
    pub(super) asked: SimTime,
    /// The one behind it.
    pub(super) next: Contender,
    /// The one before it.
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

/// What spinning costs: lines on each CPU, and a look that comes too late.
#[derive(Clone, Debug, Default)]
pub(super) struct Polling {
    near: Vec<Near>,
    /// From a change of the polled word until the next look at it, on average: half a PAUSE.
    late: u64,
}

impl Polling {
    pub(super) fn new(costs: &CostModel) -> Polling {
        Polling {
            near: costs.lines(),
            late: costs.step(Step::Pause) / 2,
        }
    }
}

/// The line of a lock's word in time. Picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// Whoever wanted it so far has had it.
    free: u64,
    /// The first in line polls the word from this time on.
    polls: u64,
    /// The unlock is made, as one of the stores of its label that are under way.
    unlocks: u64,
    /// Stores with which the owner took the lock are through.
    drained: u64,
    /// The first in line whose arrival was not reckoned yet.
    pub(super) fresh: Contender,
    /// Who released it last.
    owner: CpuId,
}

impl Default for Word {
    fn default() -> Word {
        Word {
            free: 0,
            polls: 0,
            unlocks: 0,
            drained: 0,
            fresh: NOBODY,
            owner: CpuId(0),
        }
    }
}

impl Word {
    /// `cpu` releases the lock with a store at `unlocks`.
    pub(super) fn is_released(&mut self, cpu: CpuId, unlocks: u64) {
        (self.owner, self.unlocks) = (cpu, unlocks);
    }
}

/// Who has a line that few share: one CPU, and maybe another that has read it since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    owner: u16,
    reader: u16,
}

impl Copies {
    /// It is one CPU's.
    pub(super) fn of(cpu: u16) -> Copies {
        Copies {
            owner: cpu,
            reader: cpu,
        }
    }

    /// A CPU reads it.
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

/// The number of a contender's CPU.
fn cpu_of(who: Contender) -> u16 {
    stretch::cpu_of(who).0.0
}

impl Arbiter {
    /// The first in line polls a lock that is free as of `at` and was not before: when it has it.
    pub(super) fn hand_off(&mut self, lock: usize, line: &Line, polling: &Polling, at: u64) -> u64 {
        let l = &self.locks[lock];
        let (mut state, head) = (l.word, l.head);
        let poller = cpu_of(head);
        let near = &*polling.near;
        // Until somebody came, it was the owner's.
        let mut word = Copies::of(state.owner.0);
        if head != state.fresh && state.polls <= state.unlocks {
            state.free = state.free.max(state.polls) + word.read(near, poller);
        }
        self.arrivals(&mut state, &mut word, head, polling);
        // The unlock, and the look that sees it.
        let unlock = state.unlocks.max(state.free) + word.write(near, state.owner.0);
        let unlock = unlock.max(at).max(state.drained);
        let seen = match unlock < state.polls {
            true => state.polls + word.read(near, poller),
            false => unlock + polling.late + word.read(near, poller),
        };
        // clear_pending_set_locked() and set_locked() are stores.
        state.free = seen + word.write(near, poller);
        (state.drained, state.polls) = (state.free, state.free);
        let Place { next, pending, .. } = self.line[head as usize];
        let alone = next == NOBODY || next == state.fresh;
        if !pending && !alone {
            let linked = seen + self.node(head).read(near, poller);
            let told = linked + self.node(next).write(near, poller);
            state.drained = state.drained.max(told);
            let reads = self.node(next).read(near, cpu_of(next));
            state.polls = state.drained + polling.late + reads;
        }
        line.write(CpuId(poller), &near[usize::from(poller)]);
        self.locks[lock].word = state;
        // The last one in the queue exchanges the tail, and goes on when it has.
        match alone && !pending {
            true => state.free,
            false => seen,
        }
    }

    /// What those who came before the unlock did to the word's line.
    fn arrivals(
        &mut self,
        state: &mut Word,
        word: &mut Copies,
        head: Contender,
        polling: &Polling,
    ) {
        let (near, late) = (&*polling.near, polling.late);
        loop {
            let who = state.fresh;
            let Some(place) = self.line.get_mut(who as usize) else {
                return;
            };
            let asked = place.asked.0 * 1000;
            if asked > state.unlocks {
                return;
            }
            state.fresh = place.next;
            let cpu = cpu_of(who);
            // The compare-and-exchange that finds it taken.
            let found = asked.max(state.free) + word.write(near, cpu);
            state.free = found;
            let prev = place.prev;
            if prev == NOBODY {
                place.pending = true;
                state.polls = found;
                continue;
            }
            let ready = found + self.node(who).write(near, cpu);
            let looks = state.polls.max(found + late);
            if looks < ready {
                state.free = looks + word.read(near, cpu_of(head));
            }
            state.free = ready.max(state.free) + word.write(near, cpu);
            let looks = state.polls.max(state.free + late);
            if looks < state.unlocks {
                state.free = looks + word.read(near, cpu_of(head));
            }
            if !self.line[prev as usize].pending {
                self.node(prev).write(near, cpu);
            }
        }
    }

    /// The line of a contender's node.
    fn node(&mut self, of: Contender) -> &mut Copies {
        &mut self.nodes[usize::from(cpu_of(of))]
    }
}

#[cfg(test)]
mod tests;
