//! What the January 2024 series adds to a dispatch call: one CPU at a time, and insertion of what
//! the side lists have.
//!
//! Source: RFC v2 patch 2 (the gate), v3 patch 4 (the side lists).

use super::{At, PassPath};
use crate::elevator::mq_deadline::shared::{DISPATCHING, SideLists};
use crate::env::{Bit, Cpu, Env, Lock, Slab, Word};
use crate::list::QueueList;
use crate::path::insert::{free_absorbed, insert_at, insert_whole};
use crate::path::list::ListPath;
use crate::path::run::{PullStep, set_places};
use crate::path::{Next, lock};
use crate::queue::{LockKind, RequestQueue};
use crate::request::{HctxId, Place, RequestId};
use crate::rules::DispatchGate;
use crate::time::Jiffies;

/// The first label under the scheduler's lock.
pub(super) fn under_lock<E: Env>(q: &RequestQueue<E>) -> At {
    if q.has_side_lists() {
        At::Drain
    } else {
        At::Pick
    }
}

impl PassPath {
    /// Labels that no kernel has.
    pub(super) fn series<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        match self.at {
            At::Gate => {
                if q.dd.run_state.load(cpu) & DISPATCHING != 0 {
                    return self.turned_away(list, q, hctx, cpu);
                }
                self.at = At::ShutGate;
                PullStep::Wait(Next::InTime)
            }
            At::ShutGate => {
                if q.dd.run_state.test_and_set(cpu, DISPATCHING) {
                    return self.turned_away(list, q, hctx, cpu);
                }
                self.at = under_lock(q);
                PullStep::Wait(lock(q.id, LockKind::Elevator, 0))
            }
            At::Drain => {
                self.at = At::TakeSide;
                PullStep::Wait(lock(q.id, LockKind::Inserted, 0))
            }
            At::TakeSide => {
                self.take_side(list, q, cpu);
                self.wait(At::InsertSide)
            }
            At::InsertSide => {
                self.insert_side(list, q, cpu);
                self.wait(At::Pick)
            }
            At::Leave => {
                q.dd.run_state.fetch_and(cpu, !DISPATCHING);
                q.elevator.release(cpu);
                let picked = self.rq.take();
                self.picked_and_left(list, q, hctx, picked, cpu)
            }
            At::OpenGate => {
                q.dd.run_state.fetch_and(cpu, !DISPATCHING);
                let picked = self.rq.take();
                self.picked_and_left(list, q, hctx, picked, cpu)
            }
            At::Absorbed => {
                let gone = list.kept().pop_front(&mut q.pool.held(cpu.id));
                if let Some(gone) = gone {
                    return PullStep::Wait(free_absorbed(cpu, q.id, gone));
                }
                let picked = self.rq.take();
                self.picked(list, q, hctx, picked, cpu)
            }
            at => unreachable!("{at:?} is every kernel's"),
        }
    }

    /// Under insert_lock, which it releases: what the side lists have is this path's.
    fn take_side<E: Env>(&mut self, list: &mut ListPath, q: &RequestQueue<E>, cpu: &mut Cpu) {
        let SideLists {
            at_head: mut found,
            mut at_tail,
        } = core::mem::take(&mut *q.dd.inserted.held(cpu));
        self.to_head = found.len() as u32;
        found.splice_back(&mut q.pool.held(cpu.id), &mut at_tail);
        set_places(q, cpu, found, Place::Path);
        *list.kept() = found;
        q.dd.inserted_pending.mirror(cpu, false);
        q.dd.inserted.release(cpu);
    }

    /// Under the scheduler's lock: inserts it.
    fn insert_side<E: Env>(&mut self, list: &mut ListPath, q: &RequestQueue<E>, cpu: &mut Cpu) {
        // In the order of the posting: first what goes to the head.
        let mut found = core::mem::take(list.kept());
        let mut at_head = QueueList::new();
        for _ in 0..core::mem::take(&mut self.to_head) {
            let pool = &mut q.pool.held(cpu.id);
            let rq = found.pop_front(pool).expect("it was counted");
            at_head.push_back(pool, rq);
        }
        for (mut side, head) in [(at_head, true), (found, false)] {
            insert_whole(q, &mut side, insert_at(head), list.kept(), cpu);
        }
    }

    /// Somebody else dispatches: as if nothing were to be had.
    fn turned_away<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        self.asked = Jiffies::default();
        self.picked(list, q, hctx, None, cpu)
    }

    /// The end of a dispatch call under the scheduler's lock.
    pub(super) fn leave<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        picked: Option<RequestId>,
        cpu: &mut Cpu,
    ) -> PullStep {
        match q.settings.rules.series.dispatch {
            DispatchGate::Open => {
                q.elevator.release(cpu);
                self.picked_and_left(list, q, hctx, picked, cpu)
            }
            DispatchGate::OneAtATime => {
                // A label of its own: others see the gate open when the picking is over, not
                // when it begins.
                self.rq = picked;
                self.at = At::Leave;
                PullStep::Wait(Next::InTime)
            }
            DispatchGate::ClearedAfterUnlock => {
                q.elevator.release(cpu);
                self.rq = picked;
                self.at = At::OpenGate;
                PullStep::Wait(Next::InTime)
            }
        }
    }

    /// Behind lock and gate.
    fn picked_and_left<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        picked: Option<RequestId>,
        cpu: &mut Cpu,
    ) -> PullStep {
        if list.kept().is_empty() {
            return self.picked(list, q, hctx, picked, cpu);
        }
        self.rq = picked;
        self.wait(At::Absorbed)
    }
}
