//! The clone of a request that has a path: set up, or given up.

use super::{Then, rules};
use crate::call::{Call, Inserts, ThenRun};
use crate::dm::{Mapped as ToPath, Mapping};
use crate::env::TraceAction;
use crate::request::{HctxId, QueueId, RequestId, RequestPool, Sectors};
use crate::rules::{CloneInsertion, Undo};
use crate::step::{Cx, Traced, trace_with};
use crate::time::SimTime;

/// The queue of the path has no tag for it.
pub(super) fn without(cx: &Cx<'_>, rq: RequestId, to: ToPath) -> Then {
    let mut state = cx.q.own_mapped().state.held(cx.cpu.id);
    state.tios[rq.0 as usize].mapped = None;
    match state.target.no_clone(to.path, false) {
        Mapping::DelayRequeue => Then::GiveBack,
        _ => Then::Refuse,
    }
}

/// setup_clone(): the clone's bios share the data of the request's. Then it goes to its queue; none
/// if there is no room for its bios.
pub(super) fn set_up(cx: &mut Cx<'_>, rq: RequestId, to: ToPath, clone: RequestId) -> Option<Call> {
    let m = cx.q.own_mapped();
    let queue = m.queue_of(to.path);
    let lower = cx.mq.queue(queue);
    m.state.held(cx.cpu.id).tios[rq.0 as usize].clone = Some(clone);
    let clones = lower.clones.as_ref().expect("the queue is that of a path");
    clones.set_original(clone, rq);
    let (pool, mut own) = (cx.pool(), lower.pool.held(cx.cpu.id));
    if !clone_bios(&pool, rq, &mut own, clone) {
        return None;
    }
    let hctx = own[clone].hctx;
    let (traced, from) = (Traced::rq(cx.cpu.tracing, &own, clone), pool[rq].sector);
    drop((pool, own));
    trace_with(cx.cpu, queue, TraceAction::Remap, traced, from.0);
    Some(insertion(rules(cx.q).insertion, queue, clone, hctx))
}

/// blk_rq_unprep_clone(), multipath_release_clone(): the selector's count, as in the kernel. The
/// clone is free to be freed in its queue.
pub(super) fn undo(cx: &mut Cx<'_>, rq: RequestId, to: ToPath, clone: RequestId) -> QueueId {
    let m = cx.q.own_mapped();
    let queue = m.queue_of(to.path);
    let started = free_bios(&mut cx.mq.queue(queue).pool.held(cx.cpu.id), clone);
    if cx.rules().device_mapper.undo == Undo::TakenBack {
        m.accounts[to.path.index()].write(cx.cpu);
    }
    let mut state = m.state.held(cx.cpu.id);
    state.target.undo(to, started, cx.cpu.now());
    let tio = &mut state.tios[rq.0 as usize];
    (tio.clone, tio.mapped) = (None, None);
    queue
}

fn insertion(how: CloneInsertion, queue: QueueId, rq: RequestId, hctx: HctxId) -> Call {
    let run = match how {
        CloneInsertion::Direct => return Call::IssueClone { queue, rq, hctx },
        CloneInsertion::InBackground => ThenRun::Background,
        CloneInsertion::AtOnce | CloneInsertion::Scheduler => ThenRun::Here,
    };
    Call::Insert(Inserts::new(queue, rq, false, run))
}

/// blk_rq_prep_clone(). False if there is no room for its bios: then it has none.
fn clone_bios(pool: &RequestPool, rq: RequestId, own: &mut RequestPool, clone: RequestId) -> bool {
    let of = &pool[rq];
    let c = &mut own[clone];
    (c.op, c.flags, c.sector, c.ioprio) = (of.op, of.flags, of.sector, of.ioprio);
    (c.sectors, c.segments) = (Sectors(0), 0);
    (c.io_context, c.group) = (of.io_context, of.group);
    // No bio or request is merged into it.
    c.flags.nomerge = true;
    for bio in pool.bios_of(rq) {
        let Some(copy) = own.add_bio(pool.bio(bio).copied()) else {
            free_bios(own, clone);
            return false;
        };
        own.append_bio(clone, copy);
    }
    let c = &mut own[clone];
    (c.sectors, c.segments) = (of.sectors, of.segments);
    true
}

/// blk_rq_unprep_clone(). Returns when it was issued.
pub(in crate::path) fn free_bios(own: &mut RequestPool, clone: RequestId) -> SimTime {
    let mut next = own[clone].bio_first;
    while let Some(bio) = next {
        next = own.bio(bio).next;
        own.free_bio(bio);
    }
    own.take_bios(clone);
    own[clone].io_start_time
}
