//! Insertion of a list under the scheduler's lock, and the end of absorbed requests.
//!
//! One section inserts the whole list, or one request of it, or continues up to the first merge:
//! depending on rules and scheduler. Kernel: dd_insert_requests() in block/mq-deadline.c and its
//! counterparts in other schedulers (6.1.192, 6.12.117).

use super::{Locked, Scheduler, merging};
use crate::elevator::OwnedByInsert;
use crate::elevator::scheduler::{InsertAt, Insertion};
use crate::env::{Cpu, TraceAction};
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::queue::RequestQueue;
use crate::request::Place;
use crate::rules::MergedFree;
use crate::step::{Next, Sub, Traced, free_request, probe};

labels! {
    /// Labels that the caller has no name for.
    pub enum InsertionAt in "elevator-insert" {
        /// Still under the lock: free what was absorbed (v6.1).
        AbsorbedLocked,
        /// Free what was absorbed.
        Absorbed,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct InsertPath {
    at: Stage,
    head: bool,
    list: QueueList,
    absorbed: QueueList,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    /// The section under the lock; its caller names it.
    Section,
    AbsorbedLocked,
    Absorbed,
}

impl InsertPath {
    pub(crate) fn new(list: QueueList, head: bool) -> InsertPath {
        InsertPath {
            at: Stage::Section,
            head,
            list,
            absorbed: QueueList::new(),
        }
    }

    pub(crate) fn label(self) -> Option<Label> {
        match self.at {
            Stage::Section => None,
            Stage::AbsorbedLocked => Some(InsertionAt::AbsorbedLocked.label()),
            Stage::Absorbed => Some(InsertionAt::Absorbed.label()),
        }
    }

    /// The requests to insert, in order.
    pub(crate) fn owned(self) -> OwnedByInsert {
        OwnedByInsert {
            list: self.list,
            seq: 0,
            bucket: 0,
            filled: false,
        }
    }

    fn to(&mut self, at: Stage) -> Sub<bool> {
        self.at = at;
        Sub::Wait(Next::Step)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inserted {
    All,
    /// A request was inserted or absorbed; each further one takes the lock again.
    One,
    /// A request was absorbed and must be freed under the lock, which is kept (v6.1).
    UpToMerge,
}

impl<P: Scheduler + 'static> Locked<P> {
    pub(crate) fn start_insert(
        &self,
        q: &RequestQueue,
        list: QueueList,
        head: bool,
    ) -> (InsertPath, Next) {
        (InsertPath::new(list, head), Next::Lock(self.lock(q)))
    }

    pub(crate) fn insert(
        &self,
        path: &mut InsertPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        match path.at {
            Stage::Section => {
                let at = InsertAt::by_flag(path.head);
                match self.insert_list(q, &mut path.list, at, &mut path.absorbed, cpu) {
                    Inserted::UpToMerge => path.to(Stage::AbsorbedLocked),
                    Inserted::One => {
                        self.policy.release(cpu);
                        match path.absorbed.is_empty() {
                            true => Sub::Wait(Next::Lock(self.lock(q))),
                            false => path.to(Stage::Absorbed),
                        }
                    }
                    Inserted::All => {
                        self.policy.release(cpu);
                        match path.absorbed.is_empty() {
                            true => Sub::Done(true),
                            false => path.to(Stage::Absorbed),
                        }
                    }
                }
            }
            Stage::AbsorbedLocked => match path.absorbed.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => Sub::Wait(free_request(cpu, q.id, gone)),
                None => path.to(Stage::Section),
            },
            Stage::Absorbed => match path.absorbed.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => Sub::Wait(free_request(cpu, q.id, gone)),
                None if !path.list.is_empty() => {
                    path.at = Stage::Section;
                    Sub::Wait(Next::Lock(self.lock(q)))
                }
                None => Sub::Done(false),
            },
        }
    }

    /// Under the lock: inserts the list in order, up to a merge whose request the rules free at
    /// once. Absorbed requests go to `absorbed`.
    fn insert_list(
        &self,
        q: &RequestQueue,
        list: &mut QueueList,
        at: InsertAt,
        absorbed: &mut QueueList,
        cpu: &mut Cpu,
    ) -> Inserted {
        let now = self.now_of_task(q, cpu);
        loop {
            let mut pool = q.pool.held(cpu.id);
            let Some(rq) = list.pop_front(&mut pool) else {
                break;
            };
            probe::arrive(q, &pool, rq, now.tick, cpu);
            let mut policy = self.policy.held(cpu);
            let insertion = policy.insert(&mut pool, rq, at, now, merging(q));
            drop(policy);
            let mut log = self.log(q, cpu);
            match insertion {
                Insertion::Inserted => {
                    assert_eq!(pool[rq].place, Place::Elevator, "{rq:?} was not taken");
                    let traced = Traced::rq(cpu.tracing, &pool, rq);
                    drop(pool);
                    log.trace(TraceAction::Insert, traced, cpu);
                    log.rest(cpu);
                }
                Insertion::Absorbed(mut gone) => {
                    while let Some(rq) = gone.pop_back(&mut pool) {
                        let traced = Traced::rq(cpu.tracing, &pool, rq);
                        pool[rq].place = Place::Path;
                        absorbed.push_back(&mut pool, rq);
                        log.swallow(traced, cpu);
                    }
                    log.rest(cpu);
                    // A hook that is called at the end of requests takes the lock itself.
                    let under_lock = q.settings.rules.merged_free == MergedFree::UnderLock;
                    if under_lock && !self.info.hooks.finished {
                        return Inserted::UpToMerge;
                    }
                }
            }
            if self.info.inserts_each && !list.is_empty() {
                self.settle(q, cpu);
                return Inserted::One;
            }
        }
        self.settle(q, cpu);
        Inserted::All
    }

    /// The same to the end of the list, whatever the rules say of absorbed requests.
    pub(crate) fn insert_whole(
        &self,
        q: &RequestQueue,
        list: &mut QueueList,
        at: InsertAt,
        absorbed: &mut QueueList,
        cpu: &mut Cpu,
    ) {
        while self.insert_list(q, list, at, absorbed, cpu) != Inserted::All {}
    }
}
