//! The flush machine: PREFLUSH, data and POSTFLUSH of a request, one shared flush at a time.
//!
//! Two pending lists: one fills while the flush for the other is under way. Kernel:
//! block/blk-flush.c (6.1.192, 6.12.117).

use crate::call::{Call, Inserts, ThenRun};
use crate::env::{Answer, Cpu, Effect};
use crate::list::QueueList;
use crate::names::labels;
use crate::queue::{BlkMq, FlushQueue, LockKind, RequestQueue};
use crate::request::{
    HctxId, Op, OpFlags, Place, QueueId, RequestId, RequestPool, Sector, Sectors, Status,
};
use crate::rules::FlushData;
use crate::step::{Cx, Next, set_places};
use crate::time::{Duration, Jiffies, SimTime};

/// FLUSH_PENDING_TIMEOUT.
const PENDING_TIMEOUT: Duration = Duration::from_secs(5);

/// Steps of a sequence (REQ_FSEQ_*), as bits of `Request::flush_step` that are done.
const PREFLUSH: u8 = 1;
const DATA: u8 = 2;
const POSTFLUSH: u8 = 4;
const ALL: u8 = PREFLUSH | DATA | POSTFLUSH;

labels! {
    pub enum At in "flush" {
        /// Which steps does this request need?
        Policy,
        /// Under mq_flush_lock: its first step.
        Start,
        /// Under mq_flush_lock: a data write that a flush will follow (v6.12).
        CountData,
        /// Under requeue_lock too: data and flush to be issued.
        Requeue,
        /// End it, if it needed no step.
        End,
    }
}

/// Entry of the flush machine (blk_insert_flush). Either it takes the request over, or
/// `Answer::GoOn` in the CPU means that the request continues as any write (v6.12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlushPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    rq: RequestId,
    hctx: HctxId,
    done: u8,
    sequence: Sequence,
}

/// The rest of a change of the machine, done without its lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Sequence {
    pub(super) done: QueueList,
    data: QueueList,
    flush: Option<RequestId>,
}

impl Sequence {
    pub(super) fn issues(&self) -> bool {
        !self.data.is_empty() || self.flush.is_some()
    }
}

impl FlushPath {
    pub(super) fn new(queue: QueueId, rq: RequestId) -> FlushPath {
        FlushPath {
            at: At::Policy,
            queue,
            rq,
            hctx: HctxId(0),
            done: 0,
            sequence: Sequence::default(),
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        assert_eq!(
            self.sequence.issues(),
            at == At::Requeue,
            "{at:?}: something is to be issued"
        );
        if matches!(at, At::Policy | At::Start | At::CountData) {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            assert_eq!(pool[self.rq].place, Place::Path, "{at:?} of {:?}", self.rq);
        }
    }

    pub(super) fn check_over(&self) {
        assert!(!self.sequence.issues(), "something is to be issued");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Policy => self.policy(cx),
            At::Start => {
                let hctx = cx.hctx(self.hctx);
                let now = cx.jiffies();
                let mut pool = cx.pool();
                let mut fq = hctx.flush.held(cx.cpu);
                pool[self.rq].place = Place::Flush;
                let mut step = Step {
                    q: cx.q,
                    pool: &mut pool,
                    fq: &mut fq,
                    now,
                    hctx: self.hctx,
                };
                step.complete(self.rq, self.done, Status::Ok, &mut self.sequence);
                drop(fq);
                drop(pool);
                if self.sequence.issues() {
                    self.at = At::Requeue;
                    return cx.lock(LockKind::Requeue, 0);
                }
                hctx.flush.release(cx.cpu);
                self.at = At::End;
                Next::Step
            }
            At::CountData => {
                let hctx = cx.hctx(self.hctx);
                hctx.flush.held(cx.cpu).data_in_flight += 1;
                hctx.flush.release(cx.cpu);
                cx.cpu.answer = Answer::GoOn;
                Next::Done
            }
            At::Requeue => {
                issue(cx, &mut self.sequence);
                cx.hctx(self.hctx).flush.release(cx.cpu);
                self.at = At::End;
                Next::Step
            }
            At::End => {
                let mut pool = cx.pool();
                let Some(rq) = self.sequence.done.pop_front(&mut pool) else {
                    return Next::Done;
                };
                let status = pool[rq].status;
                cx.call(Call::End {
                    queue: self.queue,
                    rq,
                    status,
                })
            }
        }
    }

    fn policy(&mut self, cx: &mut Cx<'_>) -> Next {
        let limits = cx.q.settings.limits;
        let mut pool = cx.pool();
        let rq = &mut pool[self.rq];
        self.hctx = rq.hctx;
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
        let as_any_write = cx.rules().flush_data == FlushData::Scheduler;
        match needs {
            0 => {
                drop(pool);
                self.at = At::End;
                cx.call(Call::End {
                    queue: self.queue,
                    rq: self.rq,
                    status: Status::Ok,
                })
            }
            DATA => {
                drop(pool);
                self.at = At::End;
                if as_any_write {
                    cx.cpu.answer = Answer::GoOn;
                    return Next::Done;
                }
                // v6.1: no plug, no scheduler; the caller of the flush machine runs the queue.
                let path = Inserts::bypass(self.queue, self.rq, false, ThenRun::Here);
                cx.call(Call::Insert(path))
            }
            needs if as_any_write && needs & PREFLUSH == 0 => {
                // Data, then a flush: the data takes the usual path and its end triggers the flush.
                rq.flush_seq = true;
                rq.flush_step = ALL & !needs;
                drop(pool);
                self.at = At::CountData;
                cx.lock(LockKind::Flush, u32::from(self.hctx.0))
            }
            needs => {
                rq.flush_seq = true;
                rq.flush_step = 0;
                drop(pool);
                self.done = ALL & !needs;
                self.at = At::Start;
                cx.lock(LockKind::Flush, u32::from(self.hctx.0))
            }
        }
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
