//! The entry of a call: the task reaches its call of the scheduler, for some hctx.

use blkmq::path::Frame;
use blkmq::request::HctxId;

use super::{Hypotheses, Hypothesis};
use crate::event::Kind;
use crate::world::{Goal, Stop};

impl Hypotheses<'_> {
    /// The task reaches its call of the scheduler.
    pub(crate) fn ask(&self, state: &mut Hypothesis, index: usize, hctx: Option<u16>) {
        let queue = self.stream.queue[index];
        let task = self.at(state, index);
        let hctx = match hctx {
            Some(hctx) => HctxId(hctx),
            None => self.hctx_asked(state, index),
        };
        for _ in 0..64 {
            let acting = self.acting(state, task);
            let stop = state.world.go(acting, Goal::UntilTracePoint);
            let of = state.world.actors[acting].stack.last().map(Frame::queue);
            match stop {
                Stop::BeforeDecision if of == Some(queue) => return,
                Stop::BeforeDecision => Hypotheses::leave_run(state, acting),
                Stop::BeforeQueueRq(_) => {
                    state.world.refuse(acting, Goal::UntilTracePoint);
                }
                Stop::AwaitsEvent => {}
                Stop::Idle if acting == task => Hypotheses::begin_run(state, task, queue, hctx),
                Stop::AtTracePoint if acting != task => state.world.actors[acting].shown.clear(),
                Stop::Idle | Stop::WaitsForTag | Stop::AtTracePoint => {
                    self.begin_aside(state, task, queue, hctx);
                }
            }
        }
    }

    /// The hctx of a call that the capture does not record: where no hctx has another's requests,
    /// that of the returned request; else that of the CPU.
    fn hctx_asked(&self, state: &Hypothesis, index: usize) -> HctxId {
        let queue = self.stream.queue[index];
        let q = state.world.mq.queue(queue);
        let answer = self.stream.other_end[index].unwrap_or(index);
        let given = match self.stream.events[answer].kind {
            Kind::Answer { rq: Some(_), .. } if !q.settings.sq_sched() => {
                Hypotheses::queued_at(state, queue, &self.stream.events[answer])
            }
            _ => None,
        };
        match given {
            Some(rq) => q.with_pool(|pool| pool[rq].hctx),
            None => state.world.hctx_of(queue, self.stream.events[index].cpu),
        }
    }
}
