//! Insertion: each request goes to the ctx queue of the CPU that allocated it, under its lock.
//!
//! A list that is inserted at the head is reversed: each request is put before the last one.
//! Kernel: kyber_insert_requests() in block/kyber-iosched.c (6.1.192, 6.12.117).

use super::domain::Domain;
use super::shared::{KcqId, KyberShared};
use crate::env::TraceAction;
use crate::list::QueueList;
use crate::queue::RequestQueue;
use crate::request::{Place, RequestId};
use crate::step::{Cx, Traced, jiffies, labels, probe, trace_rq};
use steps::steps;

/// kyber_insert_requests(). True: its last label changed shared state.
#[steps]
pub(crate) fn insert_requests(cx: &mut Cx<'_>, mut list: QueueList, head: bool) -> bool {
    let mut kcq: KcqId = first_kcq(cx.q, list);
    lock!(_, KyberShared::of(cx).kcq_lock(cx.q, kcq));
    loop {
        insert_request(cx, &mut list, kcq, head);
        if list.is_empty() {
            return true;
        }
        kcq = first_kcq(cx.q, list);
        /// Under the lock of its ctx queue: the next request of the list.
        lock!(Next, KyberShared::of(cx).kcq_lock(cx.q, kcq));
    }
}

labels! {
    pub enum At in "kyber-insert" of insert_requests
}

/// Under kcq->lock, to the release: one request.
fn insert_request(cx: &mut Cx<'_>, list: &mut QueueList, id: KcqId, head: bool) {
    let shared = KyberShared::of(cx);
    let (q, cpu) = (cx.q, &mut *cx.cpu);
    let kcq = shared.kcq(id);
    let mut pool = q.pool.held(cpu.id);
    let rq = list.pop_front(&mut pool);
    let rq = rq.expect("the lock was asked for one");
    let tick = jiffies(q, cpu);
    probe::arrive(q, &pool, rq, tick, cpu);
    let traced = Traced::rq(cpu.tracing, &pool, rq);
    let domain = Domain::of(pool[rq].op);
    pool[rq].place = Place::Elevator;
    let mut lists = kcq.held(cpu);
    match head {
        true => lists[domain.index()].push_front(&mut pool, rq),
        false => lists[domain.index()].push_back(&mut pool, rq),
    }
    drop(lists);
    drop(pool);
    trace_rq(cpu, q.id, TraceAction::Insert, traced);
    let (word, mask) = shared.map_word(id, domain);
    word.fetch_or(cpu, mask);
    kcq.release(cpu);
}

/// The ctx queue of the first request of a list.
fn first_kcq(q: &RequestQueue, list: QueueList) -> KcqId {
    let first: RequestId = list.first().expect("a list to be inserted has a request");
    let (hctx, ctx) = q.with_pool(|pool| (pool[first].hctx, pool[first].ctx));
    KyberShared::kcq_of(q, hctx, ctx)
}

#[cfg(test)]
mod tests;
