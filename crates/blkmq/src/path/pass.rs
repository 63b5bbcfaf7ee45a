//! Passes over the scheduler: take requests from it and dispatch them, as long as a request is
//! issued.
//!
//! [`PassPath`] is blk_mq_do_dispatch_sched(), one pass __blk_mq_do_dispatch_sched(); its loop is
//! `pass/pull.rs`. The scheduler chooses the requests (`elevator/`). Kernel: block/blk-mq-sched.c
//! (6.1.192, 6.12.117).

mod check;
mod pull;

use super::TagStage;
use super::list::{Dispatched, ListPath};
use super::run_queues::SqHctx;
use crate::env::{Cpu, Effect};
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, QueueId, RequestId};
use crate::rules::{Fix, Pull as PullRule};
use crate::step::{Cx, Next, Sub};
use crate::time::{Duration, SimTime};
use pull::{LoopStep, PullLoop};

/// BLK_MQ_BUDGET_DELAY.
pub(super) const BUDGET_DELAY: Duration = Duration::from_millis(3);
/// Longest time of passes without a break (HZ ticks).
const SLICE: Duration = Duration::from_secs(1);

labels! {
    pub enum At in "pass" {
        /// How many requests may this pass take?
        Busy,
        /// Has the scheduler work?
        HasWork,
        /// Did something land on the dispatch list meanwhile?
        PeekDispatch,
        /// Has another part of the scheduler work?
        HasSide,
        /// Was there a budget?
        Budget,
        /// The scheduler's dispatch_request: its section, where that has no name of its own.
        Pick,
        /// Take a driver tag for it.
        Tag,
        /// No request was picked though there is work, blk_mq_delay_run_hw_queues(): is the hctx of
        /// this CPU run for all, or is it stopped?
        Current,
        /// The same: run again later, that hctx and others that have leftovers.
        DelayRuns,
        /// blk_mq_dispatch_hctx_list(): blk_mq_dispatch_rq_list() of the requests of one hctx.
        List,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PassPath {
    at: At,
    /// The loop of this pass.
    pull: PullLoop,
    /// The hctx of the requests in the list.
    of: HctxId,
    /// The next hctx of a delayed run.
    later: HctxId,
    /// The hctx that is run for all.
    current: SqHctx,
    /// A list of this pass was dispatched completely (`dispatched` of
    /// __blk_mq_do_dispatch_sched()).
    dispatched: bool,
    began: Began,
}

/// Start of the passes, or NEVER: a time, so neither hashed nor compared.
#[derive(Clone, Copy, Debug)]
struct Began(SimTime);

impl PartialEq for Began {
    fn eq(&self, _other: &Began) -> bool {
        true
    }
}

impl Eq for Began {}

impl core::hash::Hash for Began {
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}

/// Hctxs are run later if the scheduler has work and returns none: not before v5.8 (ab3cee3762e5).
fn reruns(q: &RequestQueue) -> bool {
    q.settings.rules.restart.pull == PullRule::Batch
}

impl PassPath {
    pub(super) fn new() -> PassPath {
        PassPath {
            at: At::Busy,
            pull: PullLoop::new(),
            of: HctxId(0),
            later: HctxId(0),
            current: SqHctx::NONE,
            dispatched: false,
            began: Began(SimTime::NEVER),
        }
    }

    /// The hctx of the requests in the list.
    pub(super) fn list_hctx(&self) -> HctxId {
        self.of
    }

    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        self.pull.tag_stage()
    }

    /// Requests that were picked and are not in the list.
    pub(super) fn all_picked(&self) -> QueueList {
        self.pull.rq_list
    }

    /// The request that was picked last, until it is in the list.
    pub(super) fn owned(&self) -> Option<RequestId> {
        self.pull.owned()
    }

    /// The next label is one of the list's.
    pub(super) fn in_list(&self) -> bool {
        self.at == At::List
    }

    /// The next label, if it is not one of the list's.
    #[inline]
    pub(super) fn label(&self) -> Label {
        self.pull.label().unwrap_or(self.at.label())
    }

    /// One step; `list` is the run's dispatch list, which a pass fills and empties. At its end:
    /// true for -EAGAIN, if the dispatch list filled meanwhile and goes first.
    pub(super) fn step(
        &mut self,
        list: &mut ListPath,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let q = mq.queue(queue);
        match self.at {
            At::List => match list.step(mq, queue, self.of, cpu) {
                Sub::Wait(next) => Sub::Wait(next),
                Sub::Done(Dispatched { whole, .. }) => {
                    self.dispatched |= whole;
                    self.dispatch_hctx_list(list, q, hctx, cpu)
                }
            },
            At::Current => {
                self.current = SqHctx::look(&mut Cx { mq, q, cpu });
                self.to(At::DelayRuns)
            }
            At::DelayRuns => self.delay_runs(list, q, hctx, cpu),
            at => {
                if at == At::Busy {
                    self.began.0 = self.began.0.min(cpu.now());
                }
                match self.pull.step(at, mq, q, hctx, cpu) {
                    LoopStep::Wait(at, next) => {
                        self.at = at;
                        Sub::Wait(next)
                    }
                    LoopStep::Over => self.pulled(list, q, hctx, cpu),
                }
            }
        }
    }

    fn to(&mut self, at: At) -> Sub<bool> {
        self.at = at;
        Sub::Wait(Next::Step)
    }

    /// The loop has ended: the picked requests are dispatched.
    fn pulled(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let run_queue = core::mem::take(&mut self.pull.run_queue);
        // The budget of a call that returned no request is released before anything else.
        let token = self.pull.take_token();
        let nothing = run_queue && self.pull.rq_list.is_empty();
        if nothing && (reruns(q) || token.is_some()) {
            let runs = reruns(q) && q.settings.rules.fixes.has(Fix::DelayRun);
            self.at = match runs && SqHctx::is_asked(q) {
                true => At::Current,
                false => At::DelayRuns,
            };
            return Sub::Wait(token.map_or(Next::Step, Next::PutBudget));
        }
        let step = self.dispatch_hctx_list(list, q, hctx, cpu);
        match (step, token) {
            (Sub::Wait(Next::Step), Some(token)) => Sub::Wait(Next::PutBudget(token)),
            (_, Some(_)) => unreachable!("what was pulled is offered next"),
            (step, None) => step,
        }
    }

    /// blk_mq_delay_run_hw_queues(): the current CPU's hctx and those with leftovers, except those
    /// whose run is pending already. One hctx per label.
    fn delay_runs(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        if !reruns(q) {
            return self.dispatch_hctx_list(list, q, hctx, cpu);
        }
        let runs = q.settings.rules.fixes.has(Fix::DelayRun);
        let other = self.later;
        if runs && self.current.runs(q, other, cpu) {
            cpu.outbox.push(Effect::KickUnlessPending {
                queue: q.id,
                hctx: other,
                delay: BUDGET_DELAY,
            });
        }
        if usize::from(other.0) + 1 < q.hctxs.len() {
            self.later.0 += 1;
            return Sub::Wait(Next::Step);
        }
        self.later = HctxId(0);
        self.current = SqHctx::NONE;
        self.dispatch_hctx_list(list, q, hctx, cpu)
    }

    /// blk_mq_dispatch_hctx_list(): the requests of the lowest hctx among those pulled, in order;
    /// or the end of the pass. No shared access: it belongs to the label that ended the pulling, or
    /// the list before.
    fn dispatch_hctx_list(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let rq_list = &mut self.pull.rq_list;
        if rq_list.is_empty() {
            *list = ListPath::idle();
            return self.end_of_pass(cpu, q, hctx);
        }
        if !core::mem::take(&mut self.pull.multi_hctxs) {
            self.of = hctx;
            *list = ListPath::new(core::mem::take(rq_list), false);
            return self.to(At::List);
        }
        let same = self.lowest_hctx(q, cpu);
        *list = ListPath::new(same, false);
        self.to(At::List)
    }

    /// Takes the requests of the lowest hctx.
    fn lowest_hctx(&mut self, q: &RequestQueue, cpu: &Cpu) -> QueueList {
        let rq_list = &mut self.pull.rq_list;
        let mut pool = q.pool.held(cpu.id);
        let lowest = rq_list.iter(&pool).map(|rq| pool[rq].hctx).min();
        let lowest = lowest.expect("the list is not empty");
        let mut same = QueueList::new();
        let mut next = rq_list.first();
        while let Some(rq) = next {
            next = rq_list.next(&pool, rq);
            if pool[rq].hctx == lowest {
                rq_list.remove(&mut pool, rq);
                same.push_back(&mut pool, rq);
            }
        }
        self.pull.multi_hctxs = !rq_list.is_empty();
        self.of = lowest;
        same
    }

    /// Another pass if a request was issued, unless other tasks need the CPU.
    fn end_of_pass(&mut self, cpu: &mut Cpu, q: &RequestQueue, hctx: HctxId) -> Sub<bool> {
        self.of = HctxId(0);
        if self.pull.busy {
            return Sub::Done(true);
        }
        if !core::mem::take(&mut self.dispatched) {
            return Sub::Done(false);
        }
        let began = self.began.0.min(cpu.now());
        if cpu.need_resched || cpu.now().since(began) >= SLICE {
            cpu.outbox.push(Effect::Kick {
                queue: q.id,
                hctx,
                delay: Duration::ZERO,
            });
            return Sub::Done(false);
        }
        self.to(At::Busy)
    }
}
