//! The end of a clone: its bios and those of the request above, then the second completion.
//!
//! Takes the place of `complete.rs` for requests of a path. Transferred data completes the bios of
//! the request above here; an error does not, since another path may succeed. The clone keeps its
//! tags until the request above ends (`map_end.rs`). Kernel: blk_mq_end_request(), end_clone_bio(),
//! end_clone_request(), dm_complete_request() in drivers/md/dm-rq.c (6.1.192).

use super::bio_end::pop_bio;
use super::complete::calls_completed;
use super::map::rules;
use crate::call::{Call, Hook};
use crate::env::{Effect, TraceAction};
use crate::queue::Clones;
use crate::request::{Place, RequestId, Sectors, Status};
use crate::rules::BioUpdates;
use crate::step::{Cx, Traced, labels, trace_rq};
use steps::steps;

pub use end_clone::State as CloneEnd;

/// blk_mq_end_request() of a clone in the queue of a path.
#[steps(path)]
pub fn end_clone(cx: &mut Cx<'_>, rq: RequestId, status: Status) {
    /// Account and trace.
    at!(End);
    end(cx, rq, status);
    let mut left: bool = status == Status::Ok && cx.pool()[rq].bio_first.is_some();
    while left {
        /// end_clone_bio(): a bio of the clone ends, and with it one of the request above.
        at!(EndBio);
        end_clone_bio(cx, rq);
        left = cx.pool()[rq].bio_first.is_some();
    }
    /// The hook of its queue's scheduler has run, if there is one.
    at!(Told);
    let calls = cx.q.elevator.hooks().completed && calls_completed(cx.q, &cx.pool()[rq]);
    if calls {
        let (queue, hook) = (cx.q.id, Hook::Completed(rq));
        /// end_clone_request(): the request above is completed.
        call!(Complete, Call::Hook { queue, hook });
    } else {
        at!(Complete);
    }
    complete_above(cx, rq, status);
    /// The request above is completed.
    at!(Over);
}

labels! {
    pub enum At in "clone-end" of end_clone
}

impl CloneEnd {
    pub(super) fn about_to_end(&self) -> Option<RequestId> {
        (self.label == At::End.label()).then_some(self.rq)
    }
}

fn clones<'a>(cx: &Cx<'a>) -> &'a Clones {
    cx.q.clones.as_ref().expect("the queue is that of a path")
}

fn end(cx: &mut Cx<'_>, rq: RequestId, status: Status) {
    let mut pool = cx.pool();
    pool[rq].in_flight = false;
    pool[rq].place = Place::Completing;
    pool[rq].status = status;
    drop(pool);
    cx.trace_rq(TraceAction::Complete, rq);
}

/// Bios of both end in the same order, since each has a clone. The bio of a flush sequence
/// above stays with its request, which ends it after the last flush (`flush.rs`).
fn end_clone_bio(cx: &mut Cx<'_>, rq: RequestId) {
    let clones = clones(cx);
    let above = clones.original(rq);
    let mut own = cx.pool();
    let bio = pop_bio(&mut own, rq).expect("a bio is left");
    own.free_bio(bio);
    let last = own[rq].bio_first.is_none();
    drop(own);
    let mut pool = cx.mq.queue(clones.above).pool.held(cx.cpu.id);
    let bio = pool[above].bio_first.expect("each has its own");
    let length = pool.bio(bio).sectors;
    let whole = match pool[above].flush_seq {
        true => {
            assert!(last, "a flush sequence has one bio");
            None
        }
        false => {
            pop_bio(&mut pool, above);
            pool.end_piece(bio, Status::Ok)
        }
    };
    let mut traced = Traced::rq(cx.cpu.tracing, &pool, above);
    let each = rules(cx.mq.queue(clones.above)).bio_updates == BioUpdates::Each;
    // blk_update_request(): a later trace shows the remaining sectors, zero in the end.
    if last {
        pool[above].sectors = Sectors(0);
    } else if each {
        let above = &mut pool[above];
        above.sector.0 += u64::from(length.0);
        above.sectors = Sectors(above.sectors.0 - length.0);
    }
    if let Some(traced) = &mut traced
        && each
    {
        traced.sectors = length;
    }
    drop(pool);
    if each || last {
        trace_rq(cx.cpu, clones.above, TraceAction::Complete, traced);
    }
    if let Some((bio, status)) = whole {
        cx.cpu.outbox.push(Effect::BioEnd {
            queue: clones.above,
            bio,
            status,
        });
    }
}

/// dm_complete_request() of the request above.
fn complete_above(cx: &mut Cx<'_>, rq: RequestId, status: Status) {
    let (queue, above) = (clones(cx).above, clones(cx).original(rq));
    let m = cx.mq.queue(queue).own_mapped();
    m.state.held(cx.cpu.id).tios[above.0 as usize].status = status;
    cx.cpu.outbox.push(Effect::Complete { queue, rq: above });
}
