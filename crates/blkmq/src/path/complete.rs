//! The end of a request: bios, the scheduler's hook, both tags, and the wake-up of their waiters.
//!
//! Kernel: blk_mq_end_request(), blk_mq_free_request(), __blk_mq_free_request(),
//! blk_mq_sched_restart(), mq_flush_data_end_io(), flush_end_io() (6.1.192, 6.12.117).

#[macro_use]
mod restart;

use super::OwnedTags;
use super::bio_end::end_bio;
use super::flush::{self, Sequence};
use super::list::put_driver_tag;
use super::sbitmap::{Counted, Put, TagMap, put_tag};
use super::tag;
use super::wait::wake_all;
use crate::call::{Call, Hook};
use crate::env::TraceAction;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, Op, Place, QueueId, Request, RequestId, Status};
use crate::rules::CompletedHook;
use crate::step::{Cx, Next, Steps as _, labels, probe};
use restart::{nth_hctx, restart_hctxs, sched_restart};
use steps::steps;

pub use end_request::State as CompletePath;

/// How much of its end a request has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EndHow {
    /// blk_mq_end_request().
    #[default]
    Whole,
    /// In blk_mq_end_request_batch(), which frees the tags.
    Batched,
    /// blk_mq_free_request(): it has no bios any more.
    Free,
}

/// blk_mq_end_request(), or its part.
#[steps(path)]
pub fn end_request(cx: &mut Cx<'_>, rq: RequestId, status: Status, how: EndHow) {
    if how == EndHow::Free {
        at!(Finish);
    } else {
        /// Account and trace; the owner of the request decides how it ends. Its first bio ends.
        at!(End);
        let special = account_done(cx, rq, status);
        if special && !finishes(cx, rq) {
            sub!(end_io(rq, status));
            return;
        }
        if special {
            at!(Finish);
        } else {
            loop {
                let (above, more) = end_bio(cx, rq, status);
                if !more {
                    /// The scheduler's finish_request.
                    at!(Finish, above);
                    break;
                }
                /// End one more bio.
                at!(EndBio, above);
            }
        }
    }
    if how != EndHow::Free && calls_completed_hook(cx, rq) {
        let (queue, hook) = (cx.q.id, Hook::Completed(rq));
        call!(Finish, Call::Hook { queue, hook });
    }
    if cx.q.elevator.hooks().finished && cx.pool()[rq].use_sched {
        let (queue, hook) = (cx.q.id, Hook::Finished(rq));
        call!(Finish, Call::Hook { queue, hook });
    }
    finish_request(cx, rq);
    if cx.pool()[rq].flush_seq {
        sub!(end_io(rq, status));
        return;
    }
    if how == EndHow::Batched {
        return;
    }
    // __blk_mq_free_request()
    /// Which tags must be put? Put the first.
    at!(Tags);
    let hctx: HctxId = cx.pool()[rq].hctx;
    let (driver, sched) = take_tags(cx, rq);
    let sched: Option<Put> = sched;
    if let Some(put) = driver {
        /// Put the driver tag.
        sub!(PutDriver, put_tag(TagMap::Driver(hctx), put));
        if sched.is_some() {
            at!(PutSched);
        }
    }
    if let Some(put) = sched {
        /// Put the scheduler tag.
        sub!(PutSched, put_tag(TagMap::Sched(hctx), put));
    }
    sub!(sched_restart(hctx));
    if cx.pool().exit_queue() {
        at!(Exit, wake_all(cx.cpu, cx.q.id));
    }
}

/// The end_io of the data of a sequence, or of a flush.
#[steps]
fn end_io(cx: &mut Cx<'_>, rq: RequestId, status: Status) {
    let hctx: HctxId = cx.pool()[rq].hctx;
    if rq == cx.hctx(hctx).flush_rq {
        sub!(flush_end_io(hctx, rq, status));
    } else {
        sub!(mq_flush_data_end_io(hctx, rq, status));
        // The tag of the data is back.
        sub!(sched_restart(hctx));
    }
}

/// mq_flush_data_end_io(): without scheduler the data keeps its tag.
#[steps]
fn mq_flush_data_end_io(cx: &mut Cx<'_>, hctx: HctxId, rq: RequestId, status: Status) {
    /// Data or flush of a sequence: put its driver tag first; of a flush under mq_flush_lock.
    sub!(PutSequence, put_driver_tag(hctx, rq));
    /// Under mq_flush_lock: next step of the sequences.
    lock!(FlushLock, flush_lock(cx, hctx));
    let mut sequence = Sequence::default();
    change_sequence(cx, hctx, |step| step.data_ended(rq, status, &mut sequence));
    sub!(end_sequences(hctx, sequence));
}

/// flush_end_io().
#[steps]
fn flush_end_io(cx: &mut Cx<'_>, hctx: HctxId, rq: RequestId, status: Status) {
    if has_own_tag(cx, rq) {
        lock!(PutSequence, flush_lock(cx, hctx));
        let put = tag::put_driver_alone(cx.q, &mut cx.pool()[rq]);
        sub!(PutSequence, put_tag(TagMap::Driver(hctx), put));
        at!(FlushLock);
    } else {
        lock!(FlushLock, flush_lock(cx, hctx));
    }
    let mut sequence = Sequence::default();
    change_sequence(cx, hctx, |step| step.flush_ended(rq, status, &mut sequence));
    sub!(end_sequences(hctx, sequence));
}

/// Under mq_flush_lock: requests whose sequence is done are ended as any other; then data and flush
/// are issued.
#[steps]
fn end_sequences(cx: &mut Cx<'_>, hctx: HctxId, mut sequence: Sequence) {
    while let Some(rq) = sequence.pop_done(cx) {
        let (queue, status) = (cx.q.id, cx.pool()[rq].status);
        /// Still under it: end the next sequence that is done, or release it.
        call!(EndSequences, Call::End { queue, rq, status });
    }
    if sequence.issues() {
        /// Under requeue_lock too: data and flush to be issued.
        lock!(Requeue, cx.lock(LockKind::Requeue, 0));
        flush::issue(cx, &mut sequence);
    }
    cx.hctx(hctx).flush.release(cx.cpu);
}

labels! {
    pub enum At in "complete" of
        end_request end_io mq_flush_data_end_io flush_end_io end_sequences sched_restart
        restart_hctxs restart_hctx
}

impl CompletePath {
    /// blk_mq_end_request().
    pub fn end(queue: QueueId, rq: RequestId, status: Status) -> CompletePath {
        CompletePath::new(queue, rq, status, EndHow::Whole)
    }

    pub(super) fn about_to_end(&self) -> Option<RequestId> {
        (self.label == At::End.label()).then_some(self.rq)
    }

    /// The tags that it frees.
    pub(super) fn owned_tags(&self) -> OwnedTags {
        let none = OwnedTags {
            hctx: self.hctx,
            driver: None,
            sched: None,
        };
        let freed = put_tag::State::freed_by(self).unwrap_or(none);
        let sched = self.sched.map(|put| put.bit);
        OwnedTags {
            sched: freed.sched.or(sched),
            ..freed
        }
    }

    /// The hctx that the walk over those of the set is at, as queue and number in it.
    pub(super) fn walks_at(&self, mq: &BlkMq) -> Option<(QueueId, HctxId)> {
        let walk = self.find::<restart_hctxs::State>()?;
        let (set, q) = (mq.set_of(self.queue), mq.queue(self.queue));
        Some(nth_hctx(set, q, walk.hctx, walk.visited))
    }
}

fn flush_lock(cx: &Cx<'_>, hctx: HctxId) -> Next {
    cx.lock(LockKind::Flush, u32::from(hctx.0))
}

/// blk_account_io_done(). True for data of a sequence and flushes, which have end_io. Trace C.
fn account_done(cx: &mut Cx<'_>, rq: RequestId, status: Status) -> bool {
    let mut pool = cx.pool();
    cx.q.touch_elevator(&pool);
    let r = &mut pool[rq];
    r.in_flight = false;
    r.place = Place::Completing;
    r.status = status;
    let own_flush = rq == cx.hctx(r.hctx).flush_rq;
    let sequence = r.flush_seq;
    drop(pool);
    cx.trace_rq(TraceAction::Complete, rq);
    if sequence && !own_flush {
        // The data was transferred: a later trace shows no length.
        cx.pool()[rq].sectors.0 = 0;
    }
    sequence || own_flush
}

/// The scheduler has to do with its end.
fn finishes(cx: &Cx<'_>, rq: RequestId) -> bool {
    let (q, pool) = (cx.q, cx.pool());
    q.elevator.finishes(&pool[rq]) || calls_hooks(q, &pool[rq])
}

fn calls_completed_hook(cx: &Cx<'_>, rq: RequestId) -> bool {
    cx.q.elevator.hooks().completed && calls_completed(cx.q, &cx.pool()[rq])
}

/// The scheduler's finish_request.
fn finish_request(cx: &mut Cx<'_>, rq: RequestId) {
    probe::finish(cx.q, rq, cx.cpu);
    let mut pool = cx.pool();
    let r = &mut pool[rq];
    let (finishes, elv_priv) = (cx.q.elevator.finishes(r), r.elv_priv);
    if r.flush_seq && (finishes || calls_hooks(cx.q, r)) {
        // Data of a sequence that a flush follows is ended twice, and counts once.
        r.use_sched = false;
    }
    drop(pool);
    if finishes {
        cx.q.elevator.finish(elv_priv, cx.cpu);
    }
}

/// From here on the slot is free: an allocation that gets the identifying tag may use it.
fn take_tags(cx: &Cx<'_>, rq: RequestId) -> (Option<Put>, Option<Put>) {
    let mut pool = cx.pool();
    let r = &mut pool[rq];
    assert!(r.bio_first.is_none(), "a request is freed with bios");
    r.place = Place::Free;
    let driver = r.tag.is_some().then(|| tag::put_driver(r));
    let sched = r.internal_tag.take().map(|tag| Put {
        bit: tag.0,
        owner: r.ctx,
        counted: Counted::No,
    });
    (driver, sched)
}

/// A flush gives back the tag that identifies the request it was lent by. True if it has a driver
/// tag besides.
fn has_own_tag(cx: &Cx<'_>, rq: RequestId) -> bool {
    let mut pool = cx.pool();
    let r = &mut pool[rq];
    r.internal_tag = None;
    if !cx.q.has_elevator() {
        r.tag = None;
    }
    r.tag.is_some()
}

/// Under mq_flush_lock.
fn change_sequence(cx: &mut Cx<'_>, hctx: HctxId, change: impl FnOnce(&mut flush::Step<'_>)) {
    let now = cx.jiffies();
    let mut pool = cx.pool();
    let mut fq = cx.hctx(hctx).flush.held(cx.cpu);
    change(&mut flush::Step {
        q: cx.q,
        pool: &mut pool,
        fq: &mut fq,
        now,
        hctx,
    });
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
