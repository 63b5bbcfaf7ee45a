//! requeue_work: requeued requests are inserted again, then the queues run.
//!
//! Kernel: blk_mq_requeue_work() (6.1.192, 6.12.117).

mod request;

pub use request::{At as RequestAt, RequeueRequest};

use super::run_queues::call_run_queues;
use crate::call::{Call, Inserts, RunHow, ThenRun};
use crate::env::Cpu;
use crate::list::QueueList;
use crate::names::labels;
use crate::queue::{BlkMq, LockKind};
use crate::request::{Place, QueueId};
use crate::step::{Cx, Next, set_places};

labels! {
    pub enum At in "requeue" {
        /// Asks for the lock.
        Start,
        /// Under requeue_lock: take both lists.
        Take,
        /// Insert the next request.
        Insert,
        /// All hctxs were run.
        Ran,
    }
}

/// requeue_work of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequeuePath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    requeue: QueueList,
    flush: QueueList,
}

impl RequeuePath {
    pub fn new(queue: QueueId) -> RequeuePath {
        RequeuePath {
            at: At::Start,
            queue,
            requeue: QueueList::new(),
            flush: QueueList::new(),
        }
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Start => {
                self.at = At::Take;
                cx.lock(LockKind::Requeue, 0)
            }
            At::Take => {
                let lists = core::mem::take(&mut *cx.q.requeue.held(cx.cpu));
                set_places(cx.q, cx.cpu, lists.requeue, Place::Path);
                set_places(cx.q, cx.cpu, lists.flush, Place::Path);
                cx.q.requeue.release(cx.cpu);
                self.requeue = lists.requeue;
                self.flush = lists.flush;
                self.at = At::Insert;
                Next::Step
            }
            At::Insert => self.insert(cx),
            At::Ran => Next::Done,
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        let lists = self.lists();
        if at != At::Insert {
            assert!(
                lists.iter().all(QueueList::is_empty),
                "{at:?} with requests"
            );
        }
        let pool = mq.queue(self.queue).pool.held(cpu.id);
        for rq in lists.iter().filter_map(QueueList::first) {
            assert_eq!(pool[rq].place, Place::Path, "{at:?} of {rq:?}");
        }
    }

    pub(super) fn check_over(&self) {
        assert!(
            self.requeue.is_empty() && self.flush.is_empty(),
            "requests are left"
        );
    }

    pub(super) fn lists(&self) -> [QueueList; 2] {
        [self.requeue, self.flush]
    }

    fn insert(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let Some(rq) = self.next(&mut pool) else {
            drop(pool);
            self.at = At::Ran;
            return call_run_queues(cx.cpu, self.queue, RunHow::Here);
        };
        let to_dispatch = pool[rq].dontprep;
        // RQF_SOFTBARRIER (v6.1) only marked "at head"; it is cleared now.
        pool[rq].softbarrier = false;
        drop(pool);
        let path = if to_dispatch {
            Inserts::bypass(self.queue, rq, false, ThenRun::No)
        } else {
            Inserts::new(self.queue, rq, true, ThenRun::No)
        };
        cx.call(Call::Insert(path))
    }

    /// Requests before flushes: v6.1 keeps flushes at the tail of one list, to the same effect.
    fn next(
        &mut self,
        pool: &mut crate::request::RequestPool,
    ) -> Option<crate::request::RequestId> {
        self.requeue
            .pop_front(pool)
            .or_else(|| self.flush.pop_front(pool))
    }
}
