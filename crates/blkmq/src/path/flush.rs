//! The flush machine: PREFLUSH, data and POSTFLUSH of a request, one shared flush at a time.
//!
//! Two pending lists: one fills while the flush for the other is under way. Kernel:
//! block/blk-flush.c (6.1.192, 6.12.117).

pub(super) mod alone;

use crate::call::{Call, Inserts, ThenRun};
use crate::env::{Answer, Effect};
use crate::list::QueueList;
use crate::queue::{FlushQueue, LockKind, RequestQueue};
use crate::request::{HctxId, Op, OpFlags, Place, RequestId, RequestPool, Sector, Sectors, Status};
use crate::rules::FlushData;
use crate::step::{Cx, labels, set_places};
use crate::time::{Duration, Jiffies, SimTime};
use steps::steps;

pub use insert_flush::State as FlushPath;

/// FLUSH_PENDING_TIMEOUT.
const PENDING_TIMEOUT: Duration = Duration::from_secs(5);

/// Steps of a sequence (REQ_FSEQ_*), as bits of `Request::flush_step` that are done.
const PREFLUSH: u8 = 1;
const DATA: u8 = 2;
const POSTFLUSH: u8 = 4;
const ALL: u8 = PREFLUSH | DATA | POSTFLUSH;

/// blk_insert_flush(): either the flush machine takes the request over, or `Answer::GoOn` in the
/// CPU means that the request continues as any write (v6.12).
#[steps(path)]
pub fn insert_flush(cx: &mut Cx<'_>, rq: RequestId) {
    /// Which steps does this request need?
    at!(Policy);
    let needs: u8 = flush_policy(cx, rq);
    let as_any_write = cx.rules().flush_data == FlushData::Scheduler;
    let hctx: HctxId = cx.pool()[rq].hctx;
    let mut sequence: Sequence = Sequence::default();
    match needs {
        0 => {
            let (queue, status) = (cx.queue(), Status::Ok);
            /// End it, if it needed no step.
            call!(End, Call::End { queue, rq, status });
        }
        DATA if as_any_write => {
            cx.cpu.answer = Answer::GoOn;
            return;
        }
        // v6.1: no plug, no scheduler; the caller of the flush machine runs the queue.
        DATA => {
            let inserts = Inserts::bypass(cx.queue(), rq, false, ThenRun::Here);
            call!(End, Call::Insert(inserts));
        }
        // Data, then a flush: the data takes the usual path and its end triggers the flush.
        _ if as_any_write && needs & PREFLUSH == 0 => {
            begin_sequence(cx, rq, ALL & !needs);
            /// Under mq_flush_lock: a data write that a flush will follow (v6.12).
            lock!(CountData, cx.lock(LockKind::Flush, u32::from(hctx.0)));
            cx.hctx(hctx).flush.held(cx.cpu).data_in_flight += 1;
            cx.cpu.answer = Answer::GoOn;
            cx.hctx(hctx).flush.release(cx.cpu);
            return;
        }
        _ => {
            begin_sequence(cx, rq, 0);
            /// Under mq_flush_lock: its first step.
            lock!(Start, cx.lock(LockKind::Flush, u32::from(hctx.0)));
            complete_first(cx, rq, ALL & !needs, &mut sequence);
            if sequence.issues() {
                /// Under requeue_lock too: data and flush to be issued.
                lock!(Requeue, cx.lock(LockKind::Requeue, 0));
                issue(cx, &mut sequence);
            }
            cx.hctx(hctx).flush.release(cx.cpu);
            at!(End);
        }
    }
}

labels! {
    pub enum At in "flush" of insert_flush
}

/// blk_flush_policy(): the steps that a request needs. Its flags become those of its data.
fn flush_policy(cx: &Cx<'_>, rq: RequestId) -> u8 {
    let limits = cx.q.settings.limits;
    let mut pool = cx.pool();
    let rq = &mut pool[rq];
    let mut needs = 0;
    if rq.sectors.0 > 0 {
        needs |= DATA;
    }
    if limits.write_cache {
        if rq.flags.preflush {
            needs |= PREFLUSH;
        }
        if rq.flags.fua && !limits.fua {
            needs |= POSTFLUSH;
        }
    }
    rq.flags.preflush = false;
    rq.flags.fua &= limits.fua;
    rq.flags.sync = true;
    needs
}

/// blk_rq_init_flush().
fn begin_sequence(cx: &Cx<'_>, rq: RequestId, done: u8) {
    let mut pool = cx.pool();
    (pool[rq].flush_seq, pool[rq].flush_step) = (true, done);
}

/// Under mq_flush_lock.
fn complete_first(cx: &mut Cx<'_>, rq: RequestId, done: u8, sequence: &mut Sequence) {
    let now = cx.jiffies();
    let mut pool = cx.pool();
    let hctx = pool[rq].hctx;
    let mut fq = cx.hctx(hctx).flush.held(cx.cpu);
    pool[rq].place = Place::Flush;
    let mut step = Step {
        q: cx.q,
        pool: &mut pool,
        fq: &mut fq,
        now,
        hctx,
    };
    step.complete(rq, done, Status::Ok, sequence);
}

/// The rest of a change of the machine, done without its lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Sequence {
    pub(super) done: QueueList,
    data: QueueList,
    flush: Option<RequestId>,
}

impl Sequence {
    /// A request whose sequence is done. Does not keep the pool, which its end needs.
    pub(super) fn pop_done(&mut self, cx: &Cx<'_>) -> Option<RequestId> {
        self.done.pop_front(&mut cx.pool())
    }

    pub(super) fn issues(&self) -> bool {
        !self.data.is_empty() || self.flush.is_some()
    }
}

pub(super) struct Step<'a> {
    pub(super) q: &'a RequestQueue,
    pub(super) pool: &'a mut RequestPool,
    pub(super) fq: &'a mut FlushQueue,
    pub(super) now: Jiffies,
    pub(super) hctx: HctxId,
}

impl Step<'_> {
    /// blk_flush_complete_seq(): `done` steps of `rq` are complete; begins the next.
    pub(super) fn complete(&mut self, rq: RequestId, done: u8, error: Status, out: &mut Sequence) {
        let r = &mut self.pool[rq];
        assert_eq!(
            r.flush_step & done,
            0,
            "a step of a flush sequence ended twice"
        );
        r.flush_step |= done;
        let next = if error == Status::Ok {
            !r.flush_step & ALL
        } else {
            0
        };
        if next == 0 {
            r.flush_seq = false;
            r.flush_step = 0;
            r.status = error;
            r.place = Place::Path;
            out.done.push_back(self.pool, rq);
        } else if next & PREFLUSH != 0 || next & DATA == 0 {
            let pending = usize::from(self.fq.pending_idx);
            if self.fq.pending[pending].is_empty() {
                self.fq.pending_since = self.now;
            }
            r.place = Place::Flush;
            self.fq.pending[pending].push_back(self.pool, rq);
        } else {
            self.fq.data_in_flight += 1;
            r.place = Place::Path;
            out.data.push_front(self.pool, rq);
        }
        self.kick(out);
    }

    /// mq_flush_data_end_io(): the data of a sequence was written.
    pub(super) fn data_ended(&mut self, rq: RequestId, error: Status, out: &mut Sequence) {
        assert!(
            self.fq.data_in_flight > 0,
            "more data writes ended than were in flight"
        );
        self.fq.data_in_flight -= 1;
        self.complete(rq, DATA, error, out);
    }

    /// flush_end_io(): everything that waited for this flush continues.
    pub(super) fn flush_ended(&mut self, flush: RequestId, error: Status, out: &mut Sequence) {
        assert_ne!(
            self.fq.pending_idx, self.fq.running_idx,
            "a flush ended that was not running"
        );
        self.pool[flush].place = Place::Free;
        let running = usize::from(self.fq.running_idx);
        self.fq.running_idx ^= 1;
        let mut waited = core::mem::take(&mut self.fq.pending[running]);
        while let Some(rq) = waited.pop_front(self.pool) {
            let next = !self.pool[rq].flush_step & ALL;
            let step = if next & PREFLUSH != 0 {
                PREFLUSH
            } else {
                POSTFLUSH
            };
            self.complete(rq, step, error, out);
        }
    }

    /// blk_kick_flush(): issues the shared flush if one is wanted and none is under way.
    fn kick(&mut self, out: &mut Sequence) {
        let pending = self.fq.pending[usize::from(self.fq.pending_idx)];
        let Some(first) = pending.first() else { return };
        if self.fq.pending_idx != self.fq.running_idx {
            return;
        }
        let limit = Jiffies::from_millis(PENDING_TIMEOUT.0 / 1_000_000, self.q.settings.hz);
        if self.fq.data_in_flight > 0 && self.now < self.fq.pending_since + limit {
            return;
        }
        self.fq.pending_idx ^= 1;
        let flush = self.q.hctx(self.hctx).flush_rq;
        let lender = self.pool[first].clone();
        self.pool.reset(flush);
        let r = &mut self.pool[flush];
        r.op = Op::Flush;
        r.flags = OpFlags {
            preflush: true,
            ..OpFlags::default()
        };
        r.sector = Sector(0);
        r.sectors = Sectors(0);
        r.flush_seq = true;
        r.ctx = lender.ctx;
        r.hctx = lender.hctx;
        r.place = Place::Path;
        r.start_time = SimTime::ZERO;
        if self.q.has_elevator() {
            r.internal_tag = lender.internal_tag;
        } else {
            r.tag = lender.tag;
        }
        out.flush = Some(flush);
    }
}

/// Under requeue_lock: data and flush go to the requeue lists, which are kicked. Releases it.
pub(super) fn issue(cx: &mut Cx<'_>, sequence: &mut Sequence) {
    set_places(cx.q, cx.cpu, sequence.data, Place::Requeue);
    let mut pool = cx.pool();
    let mut lists = cx.q.requeue.held(cx.cpu);
    lists.requeue.splice_front(&mut pool, &mut sequence.data);
    if let Some(flush) = sequence.flush.take() {
        pool[flush].place = Place::Requeue;
        match cx.q.settings.rules.flush_data {
            FlushData::DispatchList => lists.requeue.push_back(&mut pool, flush),
            FlushData::Scheduler => lists.flush.push_back(&mut pool, flush),
        }
    }
    drop(lists);
    drop(pool);
    cx.cpu
        .outbox
        .push(Effect::KickRequeue { queue: cx.queue() });
    cx.q.requeue.release(cx.cpu);
}

#[cfg(test)]
mod tests;
