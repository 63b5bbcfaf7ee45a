//! Insertion: each request goes to the ctx queue of the CPU that allocated it, under its lock.
//!
//! A list that is inserted at the head is reversed: each request is put before the last one.
//! Kernel: kyber_insert_requests() in block/kyber-iosched.c (6.1.192, 6.12.117).

use super::domain::Domain;
use super::shared::{KcqId, KyberShared};
use crate::elevator::OwnedByInsert;
use crate::env::{Cpu, TraceAction};
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::queue::RequestQueue;
use crate::request::{Place, RequestId};
use crate::step::{Next, Sub, Traced, jiffies, probe, trace_rq};

labels! {
    /// Labels that the caller has no name for.
    pub enum At in "kyber-insert" {
        /// Under the lock of its ctx queue: the next request of the list.
        Next,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct InsertPath {
    /// The requests to insert, in order.
    list: QueueList,
    kcq: KcqId,
    head: bool,
    /// Not the first request: the label is Kyber's own.
    further: bool,
}

impl InsertPath {
    pub(crate) fn label(self) -> Option<Label> {
        self.further.then(|| At::Next.label())
    }

    pub(crate) fn owned(self) -> OwnedByInsert {
        OwnedByInsert {
            list: self.list,
            seq: 0,
            bucket: 0,
            filled: false,
        }
    }
}

impl KyberShared {
    pub(crate) fn start_insert(
        &self,
        q: &RequestQueue,
        list: QueueList,
        head: bool,
    ) -> (InsertPath, Next) {
        let kcq = first_kcq(q, list).expect("a list to be inserted has a request");
        let path = InsertPath {
            list,
            kcq,
            head,
            further: false,
        };
        (path, self.kcq_lock(q, kcq))
    }

    /// Under kcq->lock, to the release: one request.
    pub(crate) fn insert(
        &self,
        path: &mut InsertPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let kcq = self.kcq(path.kcq);
        let mut pool = q.pool.held(cpu.id);
        let rq = path.list.pop_front(&mut pool);
        let rq = rq.expect("the lock was asked for one");
        let tick = jiffies(q, cpu);
        probe::arrive(q, &pool, rq, tick, cpu);
        let traced = Traced::rq(cpu.tracing, &pool, rq);
        let domain = Domain::of(pool[rq].op);
        pool[rq].place = Place::Elevator;
        let mut lists = kcq.held(cpu);
        match path.head {
            true => lists[domain.index()].push_front(&mut pool, rq),
            false => lists[domain.index()].push_back(&mut pool, rq),
        }
        drop(lists);
        drop(pool);
        trace_rq(cpu, q.id, TraceAction::Insert, traced);
        let (word, mask) = self.map_word(path.kcq, domain);
        word.fetch_or(cpu, mask);
        kcq.release(cpu);
        match first_kcq(q, path.list) {
            Some(next) => {
                path.kcq = next;
                path.further = true;
                Sub::Wait(self.kcq_lock(q, next))
            }
            None => Sub::Done(true),
        }
    }
}

/// The ctx queue of the first request of a list.
fn first_kcq(q: &RequestQueue, list: QueueList) -> Option<KcqId> {
    let first: RequestId = list.first()?;
    let (hctx, ctx) = q.with_pool(|pool| (pool[first].hctx, pool[first].ctx));
    Some(KyberShared::kcq_of(q, hctx, ctx))
}
