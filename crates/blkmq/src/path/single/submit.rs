//! One bio on the single-queue path, until it is merged or its request is in the scheduler.
//!
//! Kernel: __make_request(), get_request_wait() in block/blk-core.c, __elv_add_request() in
//! block/elevator.c (2.6.32.2); blk_run_address_space() after direct I/O.

use super::{SqQueue, queue_lock, sq};
use crate::call::{Call, RunBy, ThenUnplug};
use crate::elevator::{BioMerge, InsertAt, Insertion, MayQueue, TagMapSize, Wanted};
use crate::env::{Cpu, TraceAction};
use crate::list::QueueList;
use crate::merge::{Merging, Side};
use crate::path::submit::{longest_part, strip_flush};
use crate::queue::{Asks, Kind, UNPLUG_THRESH};
use crate::request::{BioId, Place, RequestId};
use crate::rules::{NoMerges, QueuePlug};
use crate::step::{Cx, Next, Traced, labels, trace_rq};
use steps::steps;

pub use submit_bio::State as SingleSubmit;

/// submit_bio() of a bio in the pool of the queue; direct I/O and read-ahead create bios of this
/// size at once (bio_add_page()): no split is traced.
#[steps(path)]
pub fn submit_bio(cx: &mut Cx<'_>, mut bio: BioId, then: ThenUnplug) {
    loop {
        /// A bio that is longer than a request is split. Trace Q.
        at!(Enter);
        if let Some(ended) = strip_flush(cx, bio) {
            if ended != Next::Step {
                ask!(Rest, ended);
            }
            return;
        }
        let (part, remainder): (BioId, Option<BioId>) = split(cx, bio);
        let traced = Traced::bio(cx.cpu.tracing, &cx.pool(), part);
        trace_rq(cx.cpu, cx.q.id, TraceAction::Queue, traced);
        /// Under the queue's lock: try to merge; else get a request.
        lock!(Queue, queue_lock(cx));
        sub!(make_request(part, then));
        if remainder.is_none() && then != ThenUnplug::Task {
            return;
        }
        /// The rest of a split bio; or blk_run_address_space(); or nothing.
        at!(Rest);
        let Some(rest) = remainder else {
            break;
        };
        bio = rest;
    }
    if sq(cx).rules.plug == QueuePlug::OfQueue {
        let (queue, by) = (cx.q.id, RunBy::Unplug);
        call!(Rest, Call::SingleRun { queue, by });
    }
}

/// __make_request(), from its lock on, which it releases.
#[steps]
fn make_request(cx: &mut Cx<'_>, bio: BioId, then: ThenUnplug) {
    if sq(cx).is_empty(cx.cpu) || !merge(cx, bio) {
        let rq: RequestId = sub!(get_request_wait(bio));
        // A scheduler with a hook for freed requests has one for their allocation.
        if cx.q.elevator.hooks().finished {
            /// elv_set_request(), under the queue's lock again if the scheduler has one. Trace G.
            lock!(Set, queue_lock(cx));
        } else {
            at!(Set);
        }
        set_request(cx, rq);
        /// Under the queue's lock: plug if it is empty, insert. Trace P, I.
        lock!(Insert, queue_lock(cx));
        if insert(cx, rq) || sq(cx).rules.plug == QueuePlug::OfTask {
            let (queue, by) = (cx.q.id, RunBy::Holder);
            /// Still under it, after a run that the scheduler asked for: are there enough to
            /// unplug?
            call!(Inserted, Call::SingleRun { queue, by });
            let q = cx.q;
            q.elevator.call(q, cx.cpu, |policy, _, _| policy.ran());
        }
        // The end of elv_insert(): unplugs at the threshold.
        let single = sq(cx).single;
        let enough = single.state.held(cx.cpu.id).waiting_count() >= UNPLUG_THRESH;
        if single.plugged.peek() && enough {
            let (queue, by) = (cx.q.id, RunBy::HolderUnplugs);
            /// Still under it: does this bio unplug?
            call!(Out, Call::SingleRun { queue, by });
        }
    }
    let of_queue = sq(cx).rules.plug == QueuePlug::OfQueue;
    let asks = then == ThenUnplug::Bio || !sq(cx).should_plug(cx.cpu);
    if of_queue && asks && unplugs(cx) {
        let (queue, by) = (cx.q.id, RunBy::HolderUnplugs);
        /// Still under it: leave.
        call!(Leave, Call::SingleRun { queue, by });
    }
    sq(cx).unlock(cx.cpu);
}

/// get_request_wait(), under the queue's lock, which it releases; or the task waits, and queued
/// requests are dispatched.
#[steps]
fn get_request_wait(cx: &mut Cx<'_>, bio: BioId) -> RequestId {
    loop {
        if let Some(rq) = get_request(cx, bio) {
            return rq;
        }
        if unplugs(cx) {
            let (queue, by) = (cx.q.id, RunBy::HolderUnplugs);
            /// Still under it, after the run that was to free requests: add the entry and sleep.
            call!(Wait, Call::SingleRun { queue, by });
        }
        sq(cx).unlock(cx.cpu);
        /// Woken for a request.
        ask!(Woken, Next::Park);
        /// Under the queue's lock: get one, as a batcher.
        lock!(Again, queue_lock(cx));
        let asks = asks(cx, bio, MayQueue::May);
        let single = sq(cx).single;
        single.state.held(cx.cpu.id).limits.begin_batch(asks);
    }
}

labels! {
    pub enum At in "single-submit" of submit_bio get_request_wait make_request
}

/// The part of a bio that is no longer than a request may be, and the rest, if there is one.
fn split(cx: &mut Cx<'_>, bio: BioId) -> (BioId, Option<BioId>) {
    let mut pool = cx.pool();
    let Some(front) = longest_part(&cx.q.settings.limits, pool.bio(bio)) else {
        assert!(
            !pool.bio(bio).flags.is_flush(),
            "the plan lets no flush through"
        );
        return (bio, None);
    };
    let part = pool.split_bio(bio, front);
    let part = part.expect("the plan reserves bio slots for every split");
    assert!(
        !pool.bio(part).flags.is_flush(),
        "the plan lets no flush through"
    );
    (part, Some(bio))
}

/// elv_merge() and its effects. True if the bio is part of a request now. Trace M, F.
fn merge(cx: &mut Cx<'_>, bio: BioId) -> bool {
    let q = cx.q;
    let merging = Merging {
        limits: &q.settings.limits,
        nomerges: q.settings.nomerges,
    };
    let tracing = cx.cpu.tracing;
    let (merged, handed) = q.elevator.call(q, cx.cpu, |policy, pool, now| {
        let traced = Traced::bio(tracing, pool, bio);
        let merged = match policy.merge_bio(pool, bio, now, merging) {
            BioMerge::No => None,
            BioMerge::Into { side, absorbed, .. } => {
                let gone = absorbed.map(|rq| (rq, Traced::rq(tracing, pool, rq)));
                Some((side, traced, gone))
            }
        };
        (merged, policy.take_handed(pool))
    });
    let mut log = q.elevator.log(q, cx.cpu);
    let Some((side, traced, gone)) = merged else {
        log.rest(cx.cpu);
        return false;
    };
    match side {
        Side::Back => log.trace(TraceAction::BackMerge, traced, cx.cpu),
        Side::Front => log.trace(TraceAction::FrontMerge, traced, cx.cpu),
        Side::Discard => {}
    }
    if let Some((_, traced)) = gone {
        log.swallow(traced, cx.cpu);
    }
    log.rest(cx.cpu);
    sq(cx).hand_over(handed, cx.cpu);
    if let Some((rq, _)) = gone {
        sq(cx).put(rq, false, cx.cpu);
    }
    true
}

fn asks(cx: &mut Cx<'_>, bio: BioId, may: MayQueue) -> Asks {
    let (now, pool) = (cx.jiffies(), cx.pool());
    let bio = pool.bio(bio);
    Asks {
        kind: Kind::of(bio.op, bio.flags),
        io_context: bio.io_context,
        now,
        hz: cx.q.settings.hz,
        must: may == MayQueue::Must,
    }
}

/// get_request(), under the queue's lock, which it releases if there is one.
fn get_request(cx: &mut Cx<'_>, bio: BioId) -> Option<RequestId> {
    let (q, sq) = (cx.q, sq(cx));
    let may = q.elevator.call(q, cx.cpu, |policy, pool, now| {
        let bio = pool.bio(bio);
        let map = TagMapSize {
            shift: 0,
            nr_requests: q.settings.nr_requests,
        };
        let wanted = Wanted {
            op: bio.op,
            flags: bio.flags,
            io_context: bio.io_context,
            map,
        };
        policy.may_queue(wanted, now)
    });
    let asks = asks(cx, bio, may);
    let got = sq.single.state.held(cx.cpu.id).limits.get(asks);
    let Some(rq) = got else {
        let mut state = sq.single.state.held(cx.cpu.id);
        state.limits.wait(asks.kind, cx.cpu.task);
        return None;
    };
    let mut pool = cx.pool();
    pool.reset(rq);
    pool.bio_to_request(rq, bio);
    let now = cx.cpu.now();
    let r = &mut pool[rq];
    (r.ctx, r.start_time, r.use_sched) = (cx.cpu.id, now, true);
    r.place = Place::Path;
    drop(pool);
    sq.unlock(cx.cpu);
    Some(rq)
}

/// elv_set_request(), and G.
fn set_request(cx: &mut Cx<'_>, rq: RequestId) {
    let (q, sq) = (cx.q, sq(cx));
    let sets = q.elevator.hooks().finished;
    if sets {
        let after = q.elevator.call(q, cx.cpu, |policy, pool, now| {
            policy.set_request(pool, rq, now)
        });
        sq.after(after, cx.cpu);
    }
    let traced = Traced::rq(cx.cpu.tracing, &cx.pool(), rq);
    if sets {
        let mut log = q.elevator.log(q, cx.cpu);
        log.trace(TraceAction::GetRq, traced, cx.cpu);
        log.rest(cx.cpu);
        sq.unlock(cx.cpu);
    } else {
        trace_rq(cx.cpu, q.id, TraceAction::GetRq, traced);
    }
}

/// __elv_add_request(), under the queue's lock. True if the scheduler asks for a run.
fn insert(cx: &mut Cx<'_>, rq: RequestId) -> bool {
    let (q, sq) = (cx.q, sq(cx));
    if sq.should_plug(cx.cpu) && sq.is_empty(cx.cpu) {
        sq.plug(cx.cpu);
    }
    let nomerges = match sq.rules.plug {
        QueuePlug::OfQueue => NoMerges::Never,
        QueuePlug::OfTask => q.settings.nomerges,
    };
    let limits = &q.settings.limits;
    let tracing = cx.cpu.tracing;
    let (traced, gone, handed, run) = q.elevator.call(q, cx.cpu, |policy, pool, now| {
        let traced = Traced::rq(tracing, pool, rq);
        let merging = Merging { limits, nomerges };
        let insertion = policy.insert(pool, rq, InsertAt::Sorted, now, merging);
        let gone = match insertion {
            Insertion::Inserted => {
                assert_eq!(pool[rq].place, Place::Elevator, "{rq:?} was not taken");
                None
            }
            Insertion::Absorbed(gone) => Some(gone),
        };
        (traced, gone, policy.take_handed(pool), policy.take_run())
    });
    match gone {
        None => {
            let mut log = q.elevator.log(q, cx.cpu);
            log.trace(TraceAction::Insert, traced, cx.cpu);
            log.rest(cx.cpu);
        }
        Some(gone) => absorb(&sq, gone, cx.cpu),
    }
    sq.hand_over(handed, cx.cpu);
    run
}

/// __generic_unplug_device() would have an effect.
fn unplugs(cx: &Cx<'_>) -> bool {
    let single = sq(cx).single;
    !single.stopped.peek() && (single.plugged.peek() || !cx.q.settings.rotational)
}

/// Requests that an insertion merged away (v4.20). Trace M.
fn absorb(sq: &SqQueue<'_>, mut gone: QueueList, cpu: &mut Cpu) {
    let q = sq.q;
    let mut log = q.elevator.log(q, cpu);
    loop {
        let mut pool = q.pool.held(cpu.id);
        let Some(rq) = gone.pop_back(&mut pool) else {
            break;
        };
        let traced = Traced::rq(cpu.tracing, &pool, rq);
        drop(pool);
        log.swallow(traced, cpu);
        sq.put(rq, false, cpu);
    }
    log.rest(cpu);
}
