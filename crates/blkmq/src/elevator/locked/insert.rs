//! Insertion of a list under the scheduler's lock, and the end of absorbed requests.
//!
//! One section inserts the whole list, or one request of it, or continues up to the first merge:
//! depending on rules and scheduler. Kernel: dd_insert_requests() in block/mq-deadline.c and its
//! counterparts in other schedulers (6.1.192, 6.12.117).

use super::{Locked, Scheduler, lock, merging};
use crate::elevator::scheduler::{CalledOn, InsertAt, Insertion};
use crate::env::TraceAction;
use crate::list::QueueList;
use crate::request::Place;
use crate::rules::MergedFree;
use crate::step::{Cx, Traced, labels, probe};
use steps::steps;

/// dd_insert_requests() of a scheduler with one lock; the caller names the label of its section.
/// True if the last label changed shared state, so that what follows is a label of its own.
#[steps]
pub(crate) fn insert_requests(cx: &mut Cx<'_>, mut list: QueueList, head: bool) -> bool {
    let mut absorbed: QueueList = QueueList::new();
    lock!(_, lock(cx));
    loop {
        let at = InsertAt::by_flag(head);
        if cx.q.elevator.insert_list(cx, &mut list, at, &mut absorbed) == Inserted::UpToMerge {
            /// Still under the lock: free what was absorbed (v6.1).
            at!(AbsorbedLocked);
            while let Some(gone) = absorbed.pop_front(&mut cx.pool()) {
                ask!(AbsorbedLocked, cx.free(gone));
            }
            at!(_);
            continue;
        }
        cx.q.elevator.unlock(cx.cpu);
        if !absorbed.is_empty() {
            /// Free what was absorbed.
            at!(Absorbed);
            while let Some(gone) = absorbed.pop_front(&mut cx.pool()) {
                ask!(Absorbed, cx.free(gone));
            }
            if list.is_empty() {
                return false;
            }
        } else if list.is_empty() {
            return true;
        }
        lock!(_, lock(cx));
    }
}

labels! {
    pub enum At in "elevator-insert" of insert_requests
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inserted {
    All,
    /// A request was inserted or absorbed; each further one takes the lock again.
    One,
    /// A request was absorbed and must be freed under the lock, which is kept (v6.1).
    UpToMerge,
}

impl<P: Scheduler + 'static> Locked<P> {
    /// Under the lock: inserts the list in order, up to a merge whose request the rules free at
    /// once. Absorbed requests go to `absorbed`.
    pub(super) fn insert_section(
        &self,
        cx: &mut Cx<'_>,
        list: &mut QueueList,
        at: InsertAt,
        absorbed: &mut QueueList,
    ) -> Inserted {
        let q = cx.q;
        let now = self.now_of_task(q, cx.cpu);
        loop {
            let cpu = &mut *cx.cpu;
            let mut pool = q.pool.held(cpu.id);
            let Some(rq) = list.pop_front(&mut pool) else {
                break;
            };
            probe::arrive(q, &pool, rq, now.tick, cpu);
            let on = CalledOn {
                kworker: cpu.kworker,
                ..CalledOn::by(cpu.id)
            };
            let mut policy = self.policy.held(cpu);
            policy.called_on(on);
            let insertion = policy.insert(&mut pool, rq, at, now, merging(q));
            let runs = policy.take_run();
            drop(policy);
            let mut log = self.messages(q, cpu);
            match insertion {
                Insertion::Inserted => {
                    assert_eq!(pool[rq].place, Place::Elevator, "{rq:?} was not taken");
                    let traced = Traced::rq(cpu.tracing, &pool, rq);
                    drop(pool);
                    log.trace(TraceAction::Insert, traced, cpu);
                    log.rest(cpu);
                    if runs {
                        cx.kick_all();
                    }
                }
                Insertion::Absorbed(mut gone) => {
                    while let Some(rq) = gone.pop_back(&mut pool) {
                        let traced = Traced::rq(cpu.tracing, &pool, rq);
                        pool[rq].place = Place::Path;
                        absorbed.push_back(&mut pool, rq);
                        log.swallow(traced, cpu);
                    }
                    log.rest(cpu);
                    if runs {
                        cx.kick_all();
                    }
                    // A hook that is called at the end of requests takes the lock itself.
                    let under_lock = q.settings.rules.merged_free == MergedFree::UnderLock;
                    if under_lock && !self.info.hooks.finished {
                        return Inserted::UpToMerge;
                    }
                }
            }
            if self.info.inserts_each && !list.is_empty() {
                self.end_section(q, cx.cpu);
                return Inserted::One;
            }
        }
        self.end_section(q, cx.cpu);
        Inserted::All
    }
}

/// Under the lock: inserts the whole list, whatever the rules say of absorbed requests.
pub(crate) fn insert_whole(
    cx: &mut Cx<'_>,
    list: &mut QueueList,
    at: InsertAt,
    absorbed: &mut QueueList,
) {
    while cx.q.elevator.insert_list(cx, list, at, absorbed) != Inserted::All {}
}
