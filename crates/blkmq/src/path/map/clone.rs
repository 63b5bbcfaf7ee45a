//! The clone of a request that has a path: set up, issued, or given up.

use super::{
    Answer, At, Call, CloneInsertion, Cpu, Effect, HctxId, Inserts, IoData, MapPath, Mapped,
    Mapping, Next, RequestId, Then, ThenRun, Undo, rules,
};
use crate::env::TraceAction;
use crate::request::{QueueId, RequestPool, Sectors};
use crate::step::{Cx, Traced, trace_with};
use crate::time::SimTime;

impl MapPath {
    /// The clone was allocated, or its queue has no tag.
    pub(super) fn cloned(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let mapped = self.mapped.expect("a path was chosen");
        let Answer::Clone(clone) = core::mem::take(&mut cx.cpu.answer) else {
            let mut state = m.state.held(cx.cpu.id);
            state.tios[self.rq.0 as usize].mapped = None;
            let mapping = state.target.no_clone(mapped.path, false);
            drop(state);
            self.mapped = None;
            self.then = match mapping {
                Mapping::DelayRequeue => Then::GiveBack,
                _ => Then::Refuse,
            };
            return self.freed(cx);
        };
        self.clone = Some(clone);
        self.to(At::StartIo)
    }

    /// start_io() of the selector.
    pub(super) fn start_io(&mut self, m: &Mapped, cpu: &mut Cpu) -> Next {
        let mapped = self.mapped.expect("a path was chosen");
        m.accounts[mapped.path.index()].write(cpu);
        m.state.held(cpu.id).target.start(mapped);
        self.to(At::Setup)
    }

    /// setup_clone(): the clone's bios share the data of the request's. Then it goes to its queue.
    pub(super) fn set_up(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let mapped = self.mapped.expect("a path was chosen");
        let clone = self.clone.expect("there is one");
        let queue = m.queue_of(mapped.path);
        let lower = cx.mq.queue(queue);
        m.state.held(cx.cpu.id).tios[self.rq.0 as usize].clone = Some(clone);
        let clones = lower.clones.as_ref().expect("the queue is that of a path");
        clones.set_original(clone, self.rq);
        let (pool, mut own) = (cx.pool(), lower.pool.held(cx.cpu.id));
        if !clone_bios(&pool, self.rq, &mut own, clone) {
            drop((pool, own));
            return self.give_up();
        }
        let hctx = own[clone].hctx;
        let (traced, from) = (
            Traced::rq(cx.cpu.tracing, &own, clone),
            pool[self.rq].sector,
        );
        drop((pool, own));
        trace_with(cx.cpu, queue, TraceAction::Remap, traced, from.0);
        self.at = At::Issued;
        cx.call(insertion(rules(cx.q).insertion, queue, clone, hctx))
    }

    /// Its queue has the clone, or its driver has answered.
    pub(super) fn issued(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let answer = match rules(cx.q).insertion {
            CloneInsertion::Direct => core::mem::take(&mut cx.cpu.answer),
            _ => Answer::Ok,
        };
        match answer {
            Answer::Resource | Answer::DevResource => return self.give_up(),
            Answer::Error(status) => {
                m.state.held(cx.cpu.id).tios[self.rq.0 as usize].status = status;
                cx.cpu.outbox.push(Effect::Complete {
                    queue: self.queue,
                    rq: self.rq,
                });
            }
            _ => {}
        }
        // It may have ended already.
        (self.clone, self.mapped) = (None, None);
        self.answer = Answer::Ok;
        self.to(At::Tell)
    }

    pub(super) fn give_up(&mut self) -> Next {
        self.then = Then::Refuse;
        self.to(At::Undo)
    }

    /// blk_rq_unprep_clone(), multipath_release_clone(): the selector's count, as in the kernel,
    /// then blk_mq_free_request().
    pub(super) fn undo(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let mapped = self.mapped.expect("a path was chosen");
        let clone = self.clone.expect("there is one");
        let queue = m.queue_of(mapped.path);
        let started = free_bios(&mut cx.mq.queue(queue).pool.held(cx.cpu.id), clone);
        if cx.rules().device_mapper.undo == Undo::TakenBack {
            m.accounts[mapped.path.index()].write(cx.cpu);
        }
        let mut state = m.state.held(cx.cpu.id);
        state.target.undo(mapped, started, cx.cpu.now());
        let tio = &mut state.tios[self.rq.0 as usize];
        (tio.clone, tio.mapped) = (None, None);
        drop(state);
        (self.mapped, self.clone) = (None, None);
        self.at = At::Freed;
        cx.call(Call::Free { queue, rq: clone })
    }

    pub(super) fn freed(&mut self, cx: &mut Cx<'_>) -> Next {
        match rules(cx.q).io_data {
            IoData::Mempool => self.to(At::NoData),
            IoData::InRequest => self.without_clone(cx),
        }
    }
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
    (c.sectors, c.segments, c.io_context) = (Sectors(0), 0, of.io_context);
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
