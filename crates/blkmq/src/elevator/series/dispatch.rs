//! A dispatch call with the additions of the January 2024 series: one CPU at a time, and insertion
//! of the side lists' requests. Source of the series: RFC v2 patch 2 (the gate), v3 patch 4 (the
//! side lists). The caller names the label that picks: every scheduler has it.

use super::shared::{DISPATCHING, SideLists, WithSeries};
use crate::elevator::locked;
use crate::elevator::{InsertAt, Scheduler};
use crate::env::Cpu;
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::queue::RequestQueue;
use crate::request::{HctxId, Place, RequestId};
use crate::rules::{DispatchGate, Insertion};
use crate::step::{Next, Sub, free_request, set_places};

labels! {
    /// Labels that only the series has.
    pub enum At in "series-dispatch" {
        /// Does another CPU dispatch?
        Gate,
        /// Enter dispatch, unless another CPU was faster.
        ShutGate,
        /// Under the scheduler's lock: ask for that of the side lists.
        Drain,
        /// Under both: take them.
        TakeSide,
        /// Under the scheduler's lock: insert what they had.
        InsertSide,
        /// Still under the lock, after the pick: let others dispatch, and unlock.
        Leave,
        /// Let others dispatch, after the unlock.
        OpenGate,
        /// Free what insertion from the side lists absorbed.
        Absorbed,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DispatchPath {
    /// A label of the series; none: the pick.
    at: Option<At>,
    asked: locked::Asked,
    /// The requests of the side lists, until they are inserted; then those that this absorbed.
    kept: QueueList,
    beside: Beside,
}

/// Further state of a dispatch call: never two of these at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Beside {
    Nothing,
    /// The number of requests of the side lists that are inserted at the head.
    ToHead(u32),
    /// The request that the call returns.
    Picked(RequestId),
}

impl DispatchPath {
    #[inline]
    pub(crate) fn label(self) -> Option<Label> {
        self.at.map(At::label)
    }

    pub(crate) fn picked(self) -> Option<RequestId> {
        match self.beside {
            Beside::Picked(rq) => Some(rq),
            Beside::Nothing | Beside::ToHead(_) => None,
        }
    }

    fn to(&mut self, at: At) -> Sub<Option<RequestId>> {
        self.at = Some(at);
        Sub::Wait(Next::Step)
    }

    /// The next label accesses a word that decides the path of other CPUs.
    fn in_time(&mut self, at: At) -> Sub<Option<RequestId>> {
        self.at = Some(at);
        Sub::Wait(Next::InTime)
    }

    /// The call returns; no label reads its state any more.
    fn end(&mut self, picked: Option<RequestId>) -> Sub<Option<RequestId>> {
        self.beside = Beside::Nothing;
        self.asked = locked::Asked::default();
        Sub::Done(picked)
    }
}

impl<P: Scheduler + 'static> WithSeries<P> {
    pub(crate) fn start_dispatch(
        &self,
        q: &RequestQueue,
        _hctx: HctxId,
        cpu: &mut Cpu,
    ) -> (DispatchPath, Next) {
        let mut path = DispatchPath {
            at: None,
            asked: locked::Asked::now(q, cpu),
            kept: QueueList::new(),
            beside: Beside::Nothing,
        };
        if q.settings.rules.series.dispatch != DispatchGate::Open {
            path.at = Some(At::Gate);
            return (path, Next::InTime);
        }
        path.at = first_under_lock(q);
        (path, Next::Lock(self.locked.lock(q)))
    }

    pub(crate) fn dispatch(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        let Some(at) = path.at else {
            let picked = self.locked.pick(&mut path.asked, q, cpu);
            return self.leave(path, q, picked, cpu);
        };
        match at {
            At::Gate => match self.run_state.load(cpu) & DISPATCHING == 0 {
                true => path.in_time(At::ShutGate),
                // Another CPU dispatches: the call returns no request.
                false => path.end(None),
            },
            At::ShutGate => {
                if self.run_state.test_and_set(cpu, DISPATCHING) {
                    return path.end(None);
                }
                path.at = first_under_lock(q);
                Sub::Wait(Next::Lock(self.locked.lock(q)))
            }
            At::Drain => {
                path.at = Some(At::TakeSide);
                Sub::Wait(self.insert_lock(q))
            }
            At::TakeSide => {
                self.take_side(path, q, cpu);
                path.to(At::InsertSide)
            }
            At::InsertSide => {
                self.insert_side(path, q, cpu);
                path.at = None;
                Sub::Wait(Next::Step)
            }
            At::Leave => {
                self.run_state.fetch_and(cpu, !DISPATCHING);
                self.locked.policy.release(cpu);
                after_lock(path)
            }
            At::OpenGate => {
                self.run_state.fetch_and(cpu, !DISPATCHING);
                after_lock(path)
            }
            At::Absorbed => match path.kept.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => Sub::Wait(free_request(cpu, q.id, gone)),
                None => {
                    let picked = path.picked();
                    path.end(picked)
                }
            },
        }
    }

    /// Under insert_lock, which it releases: takes the requests of the side lists.
    fn take_side(&self, path: &mut DispatchPath, q: &RequestQueue, cpu: &mut Cpu) {
        let SideLists {
            at_head: mut found,
            mut at_tail,
        } = core::mem::take(&mut *self.inserted.held(cpu));
        path.beside = Beside::ToHead(found.len() as u32);
        found.splice_back(&mut q.pool.held(cpu.id), &mut at_tail);
        set_places(q, cpu, found, Place::Path);
        path.kept = found;
        self.inserted_pending.mirror(cpu, false);
        self.inserted.release(cpu);
    }

    /// Under the scheduler's lock: inserts them.
    fn insert_side(&self, path: &mut DispatchPath, q: &RequestQueue, cpu: &mut Cpu) {
        // In the order of the posting: requests for the head first.
        let mut found = core::mem::take(&mut path.kept);
        let mut at_head = QueueList::new();
        let Beside::ToHead(to_head) = core::mem::replace(&mut path.beside, Beside::Nothing) else {
            unreachable!("they were counted when they were taken");
        };
        for _ in 0..to_head {
            let pool = &mut q.pool.held(cpu.id);
            let rq = found.pop_front(pool).expect("it was counted");
            at_head.push_back(pool, rq);
        }
        for (mut side, head) in [(at_head, true), (found, false)] {
            let (at, absorbed) = (InsertAt::by_flag(head), &mut path.kept);
            self.locked.insert_whole(q, &mut side, at, absorbed, cpu);
        }
    }

    /// The end of a call under the lock.
    fn leave(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        picked: Option<RequestId>,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        path.beside = picked.map_or(Beside::Nothing, Beside::Picked);
        match q.settings.rules.series.dispatch {
            DispatchGate::Open => {
                self.locked.policy.release(cpu);
                after_lock(path)
            }
            // A label of its own: others see the gate open when the picking is over, not when it
            // begins.
            DispatchGate::OneAtATime => path.in_time(At::Leave),
            DispatchGate::ClearedAfterUnlock => {
                self.locked.policy.release(cpu);
                path.in_time(At::OpenGate)
            }
        }
    }
}

/// The first label under the scheduler's lock.
fn first_under_lock(q: &RequestQueue) -> Option<At> {
    let drains = q.settings.rules.series.insertion == Insertion::SideLists;
    drains.then_some(At::Drain)
}

/// After lock and gate.
#[inline]
fn after_lock(path: &mut DispatchPath) -> Sub<Option<RequestId>> {
    if path.kept.is_empty() {
        let picked = path.picked();
        return path.end(picked);
    }
    path.to(At::Absorbed)
}
