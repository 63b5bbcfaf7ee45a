//! The loop of one pass: while the scheduler has work, a budget, a request, a driver tag.
//!
//! Kernel: __blk_mq_do_dispatch_sched() up to the end of its loop (6.1.192, 6.12.117).

use super::At;
use crate::elevator::DispatchPath;
use crate::env::{Answer, Cpu};
use crate::list::QueueList;
use crate::names::Label;
use crate::path::tag::{self, TagStage};
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, RequestId};
use crate::rules::Pull as PullRule;
use crate::step::{Cx, Next, Sub, probe};

/// One step of the loop.
pub(super) enum LoopStep {
    /// This label next, after that.
    Wait(At, Next),
    /// The loop has ended.
    Over,
}

/// The loop. Names of its variables are the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PullLoop {
    /// Picked requests, in order.
    pub(super) rq_list: QueueList,
    /// Some of them belong to other hctxs.
    pub(super) multi_hctxs: bool,
    /// A request was added to the dispatch list meanwhile.
    pub(super) busy: bool,
    /// The scheduler has work, and returned no request.
    pub(super) run_queue: bool,
    /// The request that needs a driver tag.
    pub(super) rq: Option<RequestId>,
    pub(super) budget_token: Option<u32>,
    max_dispatch: u32,
    /// The part of the scheduler that is checked for work.
    place: u16,
    pub(super) call: DispatchPath,
    pub(super) get: tag::Search,
}

impl PullLoop {
    pub(super) fn new() -> PullLoop {
        PullLoop {
            rq_list: QueueList::new(),
            multi_hctxs: false,
            busy: false,
            run_queue: false,
            rq: None,
            budget_token: None,
            max_dispatch: 0,
            place: 0,
            call: DispatchPath::Idle,
            get: tag::Search::default(),
        }
    }

    /// The request that was picked last, until it is in the list that is offered.
    pub(super) fn owned(&self) -> Option<RequestId> {
        self.call.picked().or(self.rq).or(self.rq_list.last())
    }

    /// The next label, if it is the scheduler's own.
    #[inline]
    pub(super) fn label(&self) -> Option<Label> {
        self.call.label()
    }

    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        self.get.stage()
    }

    /// The budget of a call that returned no request.
    pub(super) fn take_token(&mut self) -> Option<u32> {
        self.budget_token.take()
    }

    pub(super) fn step(
        &mut self,
        at: At,
        mq: &BlkMq,
        q: &RequestQueue,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> LoopStep {
        match at {
            At::Busy => {
                let busy = q.hctx(hctx).dispatch_busy.read(cpu) != 0;
                let one = busy || q.settings.rules.restart.pull == PullRule::One;
                self.max_dispatch = if one { 1 } else { q.settings.nr_requests };
                LoopStep::Wait(At::HasWork, Next::Step)
            }
            At::HasWork | At::HasSide => self.has_work(q, hctx, cpu),
            At::PeekDispatch => {
                if q.hctx(hctx).dispatch_pending.test(cpu) {
                    self.busy = true;
                    return LoopStep::Over;
                }
                self.budget(q, hctx, cpu)
            }
            At::Budget => match core::mem::take(&mut cpu.answer) {
                Answer::Budget(token) => {
                    self.budget_token = Some(token);
                    self.dispatch_request(q, hctx, cpu)
                }
                _ => LoopStep::Over,
            },
            At::Pick => match q.elevator.dispatch(&mut self.call, q, cpu) {
                Sub::Wait(next) => LoopStep::Wait(At::Pick, next),
                Sub::Done(rq) => {
                    self.call = DispatchPath::Idle;
                    probe::answer(q, rq, cpu);
                    self.picked(rq, q, hctx, cpu)
                }
            },
            At::Tag => self.driver_tag(mq, q, cpu),
            At::Current | At::DelayRuns | At::List => unreachable!("{at:?} is after the loop"),
        }
    }

    /// One check after another, if the scheduler keeps requests in several parts.
    fn has_work(&mut self, q: &RequestQueue, hctx: HctxId, cpu: &mut Cpu) -> LoopStep {
        let place = core::mem::take(&mut self.place);
        if q.elevator.has_work(hctx, place, cpu) {
            // Before v5.8 (ab3cee3762e5) the dispatch list is not checked here.
            return match q.settings.rules.restart.pull {
                PullRule::One if place == 0 => self.budget(q, hctx, cpu),
                _ => LoopStep::Wait(At::PeekDispatch, Next::Step),
            };
        }
        if place + 1 < q.elevator.work_places(hctx, &q.settings.rules) {
            self.place = place + 1;
            return LoopStep::Wait(At::HasSide, Next::Step);
        }
        LoopStep::Over
    }

    /// blk_mq_get_dispatch_budget(), where the driver has budgets.
    fn budget(&mut self, q: &RequestQueue, hctx: HctxId, cpu: &mut Cpu) -> LoopStep {
        if q.settings.driver_budget {
            return LoopStep::Wait(At::Budget, Next::Budget);
        }
        self.dispatch_request(q, hctx, cpu)
    }

    fn dispatch_request(&mut self, q: &RequestQueue, hctx: HctxId, cpu: &mut Cpu) -> LoopStep {
        probe::ask(q, hctx, cpu);
        let (call, next) = q.elevator.start_dispatch(q, hctx, cpu);
        self.call = call;
        LoopStep::Wait(At::Pick, next)
    }

    fn picked(
        &mut self,
        rq: Option<RequestId>,
        q: &RequestQueue,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> LoopStep {
        let Some(rq) = rq else {
            self.run_queue = true;
            return LoopStep::Over;
        };
        let mut pool = q.pool.held(cpu.id);
        let request = &mut pool[rq];
        request.budget = self.budget_token.take();
        self.multi_hctxs |= request.hctx != hctx;
        let tagged = request.tag.is_some();
        self.rq_list.push_back(&mut pool, rq);
        if tagged || q.settings.rules.restart.pull == PullRule::One {
            return self.retry();
        }
        self.rq = Some(rq);
        LoopStep::Wait(At::Tag, Next::Step)
    }

    /// blk_mq_get_driver_tag(): a request without one stays in the list, and
    /// blk_mq_dispatch_rq_list() will wait for one.
    fn driver_tag(&mut self, mq: &BlkMq, q: &RequestQueue, cpu: &mut Cpu) -> LoopStep {
        let rq = self.rq.expect("one was picked");
        let of_rq = q.pool.held(cpu.id)[rq].hctx;
        match tag::search_driver(&mut Cx::of(mq, q.id, cpu), &mut self.get, rq, of_rq) {
            Sub::Wait(next) => LoopStep::Wait(At::Tag, next),
            Sub::Done(true) => {
                self.rq = None;
                self.retry()
            }
            Sub::Done(false) => {
                self.rq = None;
                LoopStep::Over
            }
        }
    }

    fn retry(&self) -> LoopStep {
        match self.rq_list.len() as u32 == self.max_dispatch {
            true => LoopStep::Over,
            false => LoopStep::Wait(At::HasWork, Next::Step),
        }
    }
}
