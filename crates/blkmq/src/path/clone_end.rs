//! The end of a clone: its bios and those of the request above, then the second completion.
//!
//! Takes the place of `complete.rs` for requests of a path. Transferred data completes the bios of
//! the request above here; an error does not, since another path may succeed. The clone keeps its
//! tags until the request above ends (`map_end.rs`). Kernel: blk_mq_end_request(), end_clone_bio(),
//! end_clone_request(), dm_complete_request() in drivers/md/dm-rq.c (6.1.192).

use super::complete::calls_completed;
use super::map::rules;
use crate::call::{Call, Hook};
use crate::env::{Cpu, Effect, TraceAction};
use crate::names::labels;
use crate::queue::{BlkMq, Clones};
use crate::request::{BioId, Place, QueueId, RequestId, RequestPool, Sectors, Status};
use crate::rules::BioUpdates;
use crate::step::{Cx, Next, Traced, trace_rq};

labels! {
    pub enum At in "clone-end" {
        /// Account and trace.
        End,
        /// end_clone_bio(): a bio of the clone ends, and with it one of the request above.
        EndBio,
        /// The hook of its queue's scheduler has run, if there is one.
        Told,
        /// end_clone_request(): the request above is completed.
        Complete,
        /// The request above is completed.
        Over,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CloneEnd {
    pub(super) at: At,
    pub(super) queue: QueueId,
    rq: RequestId,
    status: Status,
}

impl CloneEnd {
    /// blk_mq_end_request() of a clone in the queue of a path.
    pub(super) fn new(queue: QueueId, rq: RequestId, status: Status) -> CloneEnd {
        CloneEnd {
            at: At::End,
            queue,
            rq,
            status,
        }
    }

    pub(super) fn about_to_end(self) -> Option<RequestId> {
        (self.at == At::End).then_some(self.rq)
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let clones = cx.q.clones.as_ref().expect("the queue is that of a path");
        match self.at {
            At::End => self.end(cx),
            At::EndBio => self.end_bio(cx, clones),
            At::Told => self.call_completed(cx),
            At::Complete => self.complete(cx, clones),
            At::Over => Next::Done,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        if !matches!(self.at, At::End | At::Over) {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            let place = pool[self.rq].place;
            assert_eq!(place, Place::Completing, "{:?} of {:?}", self.at, self.rq);
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check_over(&self) {
        assert_eq!(self.at, At::Over, "it is not over");
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn end(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let rq = &mut pool[self.rq];
        rq.in_flight = false;
        rq.place = Place::Completing;
        rq.status = self.status;
        let data = rq.bio_first.is_some() && self.status == Status::Ok;
        drop(pool);
        cx.trace_rq(TraceAction::Complete, self.rq);
        self.to(if data { At::EndBio } else { At::Told })
    }

    /// Bios of both end in the same order, since each has a clone. The bio of a flush sequence
    /// above stays with its request, which ends it after the last flush (`flush.rs`).
    fn end_bio(&mut self, cx: &mut Cx<'_>, clones: &Clones) -> Next {
        let above = clones.original(self.rq);
        let mut own = cx.pool();
        let bio = pop_bio(&mut own, self.rq).expect("a bio is left");
        own.free_bio(bio);
        let last = own[self.rq].bio_first.is_none();
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
        self.to(if last { At::Told } else { At::EndBio })
    }

    fn call_completed(&mut self, cx: &mut Cx<'_>) -> Next {
        self.at = At::Complete;
        let calls = {
            let pool = cx.pool();
            cx.q.elevator.hooks().completed && calls_completed(cx.q, &pool[self.rq])
        };
        match calls {
            true => {
                let (queue, hook) = (self.queue, Hook::Completed(self.rq));
                cx.call(Call::Hook { queue, hook })
            }
            false => Next::Step,
        }
    }

    fn complete(&mut self, cx: &mut Cx<'_>, clones: &Clones) -> Next {
        let above = clones.original(self.rq);
        let queue = clones.above;
        let m = cx.mq.queue(queue).mapped.as_ref();
        let m = m.expect("the queue above is mapped");
        m.state.held(cx.cpu.id).tios[above.0 as usize].status = self.status;
        cx.cpu.outbox.push(Effect::Complete { queue, rq: above });
        self.to(At::Over)
    }
}

/// Takes the first bio of a request.
fn pop_bio(pool: &mut RequestPool, rq: RequestId) -> Option<BioId> {
    let bio = pool[rq].bio_first?;
    let next = pool.bio(bio).next;
    let r = &mut pool[rq];
    r.bio_first = next;
    r.bio_count -= 1;
    if next.is_none() {
        r.bio_last = None;
    }
    Some(bio)
}
