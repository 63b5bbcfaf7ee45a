//! The end of a request: bios, the scheduler's hook, both tags, and the wake-up of their waiters.
//!
//! Kernel: blk_mq_end_request(), blk_mq_free_request(), __blk_mq_free_request(),
//! __blk_mq_sched_restart(), mq_flush_data_end_io(), flush_end_io() (6.1.192, 6.12.117).

mod check;
mod restart;

use super::OwnedTags;
use super::bio_end::ended;
use super::flush::{self, Sequence};
use super::sbitmap::TagMap;
use super::tag;
use super::wait::wake_all;
use crate::call::Hook;
use crate::env::TraceAction;
use crate::names::labels;
use crate::queue::{LockKind, RequestQueue};
use crate::request::{CpuId, HctxId, Op, Place, QueueId, Request, RequestId, Status};
use crate::rules::CompletedHook;
use crate::sbitmap::Put;
use crate::step::{Cx, Next, Traced, lock, probe, trace_rq};
use restart::Scan;

labels! {
    pub enum At in "complete" {
        /// Account and trace; the owner of the request decides how it ends. Its first bio ends.
        End,
        /// End one more bio.
        EndBio,
        /// The scheduler's finish_request.
        Finish,
        /// Which tags must be put? Put the first.
        Tags,
        /// Put the driver tag.
        PutDriver,
        /// Put the scheduler tag.
        PutSched,
        /// Is SCHED_RESTART set? Or, with tags that queues share before v4.19: is any hctx marked?
        Restart,
        /// Clear it and run the hctx.
        ClearRestart,
        /// Clear the flag that hctxs of the queue are marked (R0).
        ClearFlag,
        /// Is this hctx of the set marked?
        Visit,
        /// Clear its SCHED_RESTART.
        Unmark,
        /// Count the mark out (R2, R2').
        Uncount,
        /// Has its dispatch list leftovers?
        SeesDispatch,
        /// Has it requests in the scheduler or in software queues?
        SeesWork,
        /// Data or flush of a sequence: put its driver tag first; of a flush under mq_flush_lock.
        PutSequence,
        /// Under mq_flush_lock: next step of the sequences.
        FlushLock,
        /// Still under it: end the next sequence that is done, or release it.
        EndSequences,
        /// Under requeue_lock too: data and flush to be issued.
        Requeue,
        /// blk_queue_exit().
        Exit,
    }
}

/// Hooks of a request's end that have been called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum HooksCalled {
    Nothing,
    Completed,
    Finished,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletePath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    rq: RequestId,
    status: Status,
    hctx: HctxId,
    owner: CpuId,
    internal: Option<u32>,
    put: Option<Put>,
    sequence: Sequence,
    scan: Scan,
    restart_only: bool,
    batched: bool,
    hooks_called: HooksCalled,
    /// Its tags are freed: it is about to leave the queue.
    leaves: bool,
}

impl CompletePath {
    /// blk_mq_end_request().
    pub fn end(queue: QueueId, rq: RequestId, status: Status) -> CompletePath {
        CompletePath {
            at: At::End,
            queue,
            rq,
            status,
            hctx: HctxId(0),
            owner: CpuId(0),
            internal: None,
            put: None,
            sequence: Sequence::default(),
            scan: Scan::default(),
            restart_only: false,
            batched: false,
            hooks_called: HooksCalled::Nothing,
            leaves: false,
        }
    }

    /// One request of blk_mq_end_request_batch(), up to its tag.
    pub(super) fn end_batched(queue: QueueId, rq: RequestId) -> CompletePath {
        CompletePath {
            batched: true,
            ..CompletePath::end(queue, rq, Status::Ok)
        }
    }

    /// blk_mq_free_request(): the request has no bios any more.
    pub(super) fn free(queue: QueueId, rq: RequestId) -> CompletePath {
        CompletePath {
            at: At::Finish,
            hooks_called: HooksCalled::Completed,
            ..CompletePath::end(queue, rq, Status::Ok)
        }
    }

    pub(super) fn about_to_end(&self) -> Option<RequestId> {
        (self.at == At::End).then_some(self.rq)
    }

    pub(super) fn stage(&self) -> Option<&'static str> {
        self.put.map(|put| put.stage().name())
    }

    pub(super) fn owned_tags(&self) -> OwnedTags {
        let bit = self.put.and_then(|put| put.owned_bit());
        let of_scheduler = self.at == At::PutSched;
        OwnedTags {
            hctx: self.hctx,
            driver: bit.filter(|_| !of_scheduler),
            sched: if of_scheduler { bit } else { self.internal },
        }
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::End => self.end_request(cx),
            At::EndBio => self.end_bio(cx),
            At::Finish => self.finish(cx),
            At::Tags => self.tags(cx),
            At::PutDriver => self.put_tag(cx, TagMap::Driver(self.hctx)),
            At::PutSched => self.put_tag(cx, TagMap::Sched(self.hctx)),
            At::Restart => self.restart(cx),
            At::ClearFlag
            | At::Visit
            | At::Unmark
            | At::Uncount
            | At::SeesDispatch
            | At::SeesWork => self.walk(cx),
            At::ClearRestart => {
                cx.hctx(self.hctx).restart.clear(cx.cpu);
                // Pairs with the barrier between putting requests back on the dispatch list and
                // reading SCHED_RESTART.
                cx.mb();
                self.at = At::Exit;
                cx.run(self.hctx, true)
            }
            At::PutSequence => self.put_tag(cx, TagMap::Driver(self.hctx)),
            At::FlushLock => self.advance(cx),
            At::Requeue => {
                flush::issue(cx, &mut self.sequence);
                cx.hctx(self.hctx).flush.release(cx.cpu);
                self.after_sequence()
            }
            At::EndSequences => self.end_sequences(cx),
            At::Exit => self.after_restart(cx),
        }
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    /// blk_update_request() and the choice of the end function.
    fn end_request(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        cx.q.touch_elevator(&pool);
        let rq = &mut pool[self.rq];
        rq.in_flight = false;
        rq.place = Place::Completing;
        rq.status = self.status;
        self.hctx = rq.hctx;
        self.owner = rq.ctx;
        let own_flush = self.rq == cx.hctx(rq.hctx).flush_rq;
        let sequence = rq.flush_seq;
        let finishes = cx.q.elevator.finishes(rq) || calls_hooks(cx.q, rq);
        let traced = Traced::rq(cx.cpu.tracing, &pool, self.rq);
        if sequence && !own_flush {
            // The data was transferred: a later trace shows no length.
            pool[self.rq].sectors.0 = 0;
        }
        drop(pool);
        trace_rq(cx.cpu, self.queue, TraceAction::Complete, traced);
        if !sequence && !own_flush {
            return self.end_bio(cx);
        }
        if finishes {
            return self.to(At::Finish);
        }
        self.end_part(cx)
    }

    /// The end_io of a flush, or of the data of a sequence.
    fn end_part(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let own_flush = self.rq == cx.hctx(self.hctx).flush_rq;
        let rq = &mut pool[self.rq];
        let has_own_tag = cx.q.has_elevator();
        if own_flush {
            rq.internal_tag = None;
        }
        match rq.tag.take() {
            Some(tag) if has_own_tag => {
                self.put = Some(tag::put_driver_alone(cx.q, rq, tag));
                drop(pool);
                self.at = At::PutSequence;
                match own_flush {
                    true => self.flush_lock(),
                    false => Next::Step,
                }
            }
            tag => {
                // Without scheduler the flush borrowed the tag and the data keeps it.
                rq.tag = if own_flush { None } else { tag };
                drop(pool);
                self.want_flush_lock()
            }
        }
    }

    fn want_flush_lock(&mut self) -> Next {
        self.at = At::FlushLock;
        self.flush_lock()
    }

    fn flush_lock(&self) -> Next {
        lock(self.queue, LockKind::Flush, u32::from(self.hctx.0))
    }

    /// Under mq_flush_lock: the sequence of this data, or all that waited for this flush.
    fn advance(&mut self, cx: &mut Cx<'_>) -> Next {
        let hctx = cx.hctx(self.hctx);
        let now = cx.jiffies();
        let mut pool = cx.pool();
        let mut fq = hctx.flush.held(cx.cpu);
        let own_flush = self.rq == hctx.flush_rq;
        let mut step = flush::Step {
            q: cx.q,
            pool: &mut pool,
            fq: &mut fq,
            now,
            hctx: self.hctx,
        };
        if own_flush {
            step.flush_ended(self.rq, self.status, &mut self.sequence);
        } else {
            step.data_ended(self.rq, self.status, &mut self.sequence);
        }
        drop(fq);
        drop(pool);
        self.restart_only = !own_flush;
        self.end_sequences(cx)
    }

    /// Under mq_flush_lock: requests whose sequence is done are ended as any other; then data and
    /// flush are issued.
    fn end_sequences(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let Some(rq) = self.sequence.done.pop_front(&mut pool) else {
            drop(pool);
            if self.sequence.issues() {
                self.at = At::Requeue;
                return cx.lock(LockKind::Requeue, 0);
            }
            cx.hctx(self.hctx).flush.release(cx.cpu);
            return self.after_sequence();
        };
        let status = pool[rq].status;
        self.at = At::EndSequences;
        cx.call(super::Call::End {
            queue: self.queue,
            rq,
            status,
        })
    }

    /// The end of a data write runs the hctx too, since its tag is back.
    fn after_sequence(&mut self) -> Next {
        match core::mem::take(&mut self.restart_only) {
            true => self.to(At::Restart),
            false => Next::Done,
        }
    }

    fn end_bio(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let Some(bio) = pool[self.rq].bio_first else {
            drop(pool);
            return self.to(At::Finish);
        };
        let next = pool.bio(bio).next;
        let rq = &mut pool[self.rq];
        rq.bio_first = next;
        rq.bio_count -= 1;
        if next.is_none() {
            rq.bio_last = None;
        }
        let whole = pool.end_piece(bio, self.status);
        drop(pool);
        self.at = match next {
            None => At::Finish,
            Some(_) => At::EndBio,
        };
        ended(cx.q, whole, cx.cpu)
    }

    fn finish(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let rq = &mut pool[self.rq];
        let (finishes, sequence) = (cx.q.elevator.finishes(rq), rq.flush_seq);
        let elv_priv = rq.elv_priv;
        let hooks = calls_hooks(cx.q, rq);
        if hooks && let Some(hook) = self.next_hook(cx.q, rq) {
            drop(pool);
            let queue = self.queue;
            return cx.call(super::Call::Hook { queue, hook });
        }
        drop(pool);
        probe::finish(cx.q, self.rq, cx.cpu);
        let mut pool = cx.pool();
        if sequence && (finishes || hooks) {
            // Data of a sequence that a flush follows is ended twice, and counts once.
            pool[self.rq].use_sched = false;
        }
        drop(pool);
        self.hooks_called = HooksCalled::Nothing;
        if finishes {
            cx.q.elevator.finish(elv_priv, cx.cpu);
        }
        if sequence {
            return self.end_part(cx);
        }
        if self.batched {
            return Next::Done;
        }
        self.to(At::Tags)
    }

    /// The hook to call before the scheduler's finish_request.
    fn next_hook(&mut self, q: &RequestQueue, rq: &Request) -> Option<Hook> {
        let hooks = q.elevator.hooks();
        if self.hooks_called == HooksCalled::Nothing {
            self.hooks_called = HooksCalled::Completed;
            if hooks.completed && calls_completed(q, rq) {
                return Some(Hook::Completed(self.rq));
            }
        }
        if self.hooks_called == HooksCalled::Completed {
            self.hooks_called = HooksCalled::Finished;
            if hooks.finished && rq.use_sched {
                return Some(Hook::Finished(self.rq));
            }
        }
        None
    }

    /// From here on the slot is free: an allocation that gets the identifying tag may use it.
    fn tags(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let rq = &mut pool[self.rq];
        assert!(rq.bio_first.is_none(), "a request is freed with bios");
        self.hctx = rq.hctx;
        self.owner = rq.ctx;
        let driver = rq.tag.take().map(|tag| tag::put_driver(rq, tag));
        self.internal = rq.internal_tag.take().map(|tag| tag.0);
        rq.place = Place::Free;
        self.leaves = true;
        self.rq = RequestId(0);
        self.status = Status::Ok;
        drop(pool);
        match driver {
            Some(_) => {
                self.put = driver;
                self.at = At::PutDriver;
                self.put_tag(cx, TagMap::Driver(self.hctx))
            }
            None if self.internal.is_some() => {
                self.put_sched();
                self.put_tag(cx, TagMap::Sched(self.hctx))
            }
            None => self.to(At::Restart),
        }
    }

    fn put_sched(&mut self) -> Next {
        match self.internal.take() {
            Some(bit) => {
                self.put = Some(Put::one(bit, self.owner));
                self.to(At::PutSched)
            }
            None => self.to(At::Restart),
        }
    }

    fn put_tag(&mut self, cx: &mut Cx<'_>, map: TagMap) -> Next {
        let put = self.put.as_mut().expect("a tag is being put");
        if let Some(next) = tag::step_put(put, cx.mq, self.queue, map, cx.cpu) {
            return next;
        }
        self.put = None;
        match self.at {
            At::PutDriver => self.put_sched(),
            At::PutSequence if self.rq == cx.hctx(self.hctx).flush_rq => self.to(At::FlushLock),
            At::PutSequence => self.want_flush_lock(),
            _ => self.to(At::Restart),
        }
    }

    /// blk_queue_exit(): the last of a request.
    fn after_restart(&mut self, cx: &mut Cx<'_>) -> Next {
        if core::mem::take(&mut self.leaves) && cx.pool().exit_queue() {
            self.at = At::Exit;
            return wake_all(cx.cpu, self.queue);
        }
        Next::Done
    }
}

/// completed_request is called for it.
pub(super) fn calls_completed(q: &RequestQueue, rq: &Request) -> bool {
    match q.settings.rules.completed_hook {
        // The tag of the flush machine's own request is borrowed.
        CompletedHook::WithSchedTag => rq.internal_tag.is_some() && rq.op != Op::Flush,
        CompletedHook::UseSched => rq.use_sched,
    }
}

/// The scheduler has a hook for its end.
#[inline]
fn calls_hooks(q: &RequestQueue, rq: &Request) -> bool {
    let hooks = q.elevator.hooks();
    (hooks.completed || hooks.finished) && (rq.use_sched || calls_completed(q, rq))
}
