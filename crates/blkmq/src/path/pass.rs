//! Pulling requests out of the scheduler: one pass after another while something moves.
//!
//! Kernel: blk_mq_do_dispatch_sched(), __blk_mq_do_dispatch_sched() (6.1.192, 6.12.117).

mod series;

use super::list::{ListPath, ListStep};
use super::run::PullStep;
use super::tag::{self, TagStep};
use super::{Next, jiffies, labels, lock};
use crate::elevator::{DispatchTime, Scheduler};
use crate::env::{Answer, Bit, Count, Cpu, Effect, Env, Lock, Slab};
use crate::list::QueueList;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, Op, QueueId, RequestId};
use crate::rules::{DispatchGate, Fix, Pull, SideWork};
use crate::time::{Duration, Jiffies, SimTime};

/// BLK_MQ_BUDGET_DELAY.
pub(super) const BUDGET_DELAY: Duration = Duration::from_millis(3);
/// Longest time in one go (HZ ticks).
const SLICE: Duration = Duration::from_secs(1);

labels! {
    /// Labels of a pass.
    pub enum At in "pass" {
        /// How many may this pass take?
        Busy,
        /// Has the scheduler anything?
        HasWork,
        /// Did something land on the dispatch list meanwhile?
        PeekDispatch,
        /// Has one of the side lists or a bucket anything (January 2024 series)?
        HasSide,
        /// Was there a budget?
        Budget,
        /// Is somebody else in dispatch (January 2024 series)?
        Gate,
        /// Enter dispatch, unless somebody was faster.
        ShutGate,
        /// Under the scheduler's lock: ask for that of the side lists.
        Drain,
        /// Under both: take them.
        TakeSide,
        /// Under the scheduler's lock: insert what they had.
        InsertSide,
        /// Under the scheduler's lock: pick one.
        Pick,
        /// Still under it: let others dispatch, and unlock.
        Leave,
        /// Let others dispatch, behind the unlock.
        OpenGate,
        /// Free what insertion from the side lists absorbed.
        Absorbed,
        /// Take a driver tag for it.
        Tag,
        /// Nothing was picked though there is work: run again later, this hctx and others that have
        /// leftovers.
        DelayRuns,
        /// `dispatch_rq_list` of the requests of one hctx.
        List,
    }
}

/// dd_has_work(): list heads, read without the lock.
pub(super) fn has_work<E: Env>(q: &RequestQueue<E>, cpu: &mut Cpu) -> bool {
    q.elevator.glance(cpu);
    q.elevator_work.test(cpu)
}

/// Places beside the scheduler's lists that it looks at too (January 2024 series): both side lists
/// in one, or each bucket.
pub(super) fn side_places<E: Env>(q: &RequestQueue<E>) -> u16 {
    let series = &q.settings.rules.series;
    match series.side_work {
        SideWork::Unseen => 0,
        SideWork::Seen if q.has_side_lists() => 1,
        SideWork::Seen => q.dd.buckets.len() as u16,
    }
}

/// The same for one of these places.
pub(super) fn has_side<E: Env>(q: &RequestQueue<E>, place: u16, cpu: &mut Cpu) -> bool {
    if let Some(bucket) = q.dd.buckets.get(usize::from(place)) {
        bucket.list.glance(cpu);
        return bucket.pending.test(cpu);
    }
    q.dd.inserted.glance(cpu);
    q.dd.inserted_pending.test(cpu)
}

/// Passes over the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PassPath {
    pub(super) at: At,
    picked: QueueList,
    /// How many of what the side lists had go to the head (January 2024 series).
    to_head: u32,
    token: Option<u32>,
    rq: Option<RequestId>,
    get: tag::Search,
    max: u32,
    foreign: bool,
    busy: bool,
    withheld: bool,
    moved: bool,
    asked: Jiffies,
    began: Began,
    /// The hctx whose requests are offered or that is to be run later, or the place beside the
    /// scheduler that is looked at.
    hctx: u16,
}

/// Start of the passes: a time, so neither hashed nor compared.
#[derive(Clone, Copy, Debug, Default)]
struct Began(Option<SimTime>);

impl PartialEq for Began {
    fn eq(&self, _other: &Began) -> bool {
        true
    }
}

impl Eq for Began {}

impl core::hash::Hash for Began {
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}

impl PassPath {
    pub(super) fn idle() -> PassPath {
        PassPath::new()
    }

    pub(super) fn new() -> PassPath {
        PassPath {
            at: At::Busy,
            picked: QueueList::new(),
            to_head: 0,
            token: None,
            rq: None,
            get: tag::Search::default(),
            max: 0,
            foreign: false,
            busy: false,
            withheld: false,
            moved: false,
            asked: Jiffies::default(),
            began: Began::default(),
            hctx: 0,
        }
    }

    /// The hctx whose requests the list has.
    pub(super) fn list_hctx(&self) -> HctxId {
        HctxId(self.hctx)
    }

    /// What was picked and is not in the list.
    pub(super) fn all_picked(&self) -> QueueList {
        self.picked
    }

    /// The request that was picked last, until it is in the list.
    pub(super) fn in_hand(&self) -> Option<RequestId> {
        self.rq.or(self.picked.last())
    }

    /// The next label is one of the list's.
    pub(super) fn in_list(&self) -> bool {
        self.at == At::List
    }

    /// One step; `list` is the run's dispatch list, which a pass fills and empties.
    pub(super) fn step<E: Env>(
        &mut self,
        list: &mut ListPath,
        mq: &BlkMq<E>,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let q = mq.queue(queue);
        match self.at {
            At::Busy => {
                let busy = q.hctx(hctx).dispatch_busy.read(cpu) != 0;
                let one = busy || q.settings.rules.restart.pull == Pull::One;
                self.max = if one { 1 } else { q.settings.nr_requests };
                self.began.0 = self.began.0.or(Some(cpu.now()));
                self.wait(At::HasWork)
            }
            At::HasWork => match has_work(q, cpu) {
                true if q.settings.rules.restart.pull == Pull::One => self.pull(q, queue, cpu),
                true => self.wait(At::PeekDispatch),
                false if side_places(q) > 0 => self.wait(At::HasSide),
                false => self.pulled(list, q, hctx, cpu),
            },
            At::HasSide => {
                let place = core::mem::take(&mut self.hctx);
                match has_side(q, place, cpu) {
                    true => self.wait(At::PeekDispatch),
                    false if place + 1 < side_places(q) => {
                        self.hctx = place + 1;
                        self.wait(At::HasSide)
                    }
                    false => self.pulled(list, q, hctx, cpu),
                }
            }
            At::PeekDispatch => {
                if q.hctx(hctx).dispatch_pending.test(cpu) {
                    self.busy = true;
                    return self.pulled(list, q, hctx, cpu);
                }
                self.pull(q, queue, cpu)
            }
            At::Budget => match core::mem::take(&mut cpu.answer) {
                Answer::Budget(token) => {
                    self.token = Some(token);
                    self.ask(q, queue, cpu)
                }
                _ => self.pulled(list, q, hctx, cpu),
            },
            At::Gate
            | At::ShutGate
            | At::Drain
            | At::TakeSide
            | At::InsertSide
            | At::Leave
            | At::OpenGate
            | At::Absorbed => self.series(list, q, hctx, cpu),
            At::Pick => self.pick(list, q, hctx, cpu),
            At::Tag => self.tag(list, mq, q, hctx, cpu),
            At::DelayRuns => self.delay_runs(list, mq, q, hctx, cpu),
            At::List => match list.step(mq, queue, HctxId(self.hctx), cpu) {
                ListStep::Wait(next) => PullStep::Wait(next),
                ListStep::End { all, .. } => {
                    self.moved |= all;
                    self.group(list, q, hctx, cpu)
                }
            },
        }
    }

    fn wait(&mut self, at: At) -> PullStep {
        self.at = at;
        PullStep::Wait(Next::Step)
    }

    /// A budget first, where the driver has them.
    fn pull<E: Env>(&mut self, q: &RequestQueue<E>, queue: QueueId, cpu: &mut Cpu) -> PullStep {
        if q.settings.driver_budget {
            self.at = At::Budget;
            return PullStep::Wait(Next::Budget);
        }
        self.ask(q, queue, cpu)
    }

    /// dd_dispatch_request() reads the clock before it takes its lock.
    fn ask<E: Env>(&mut self, q: &RequestQueue<E>, queue: QueueId, cpu: &mut Cpu) -> PullStep {
        self.asked = jiffies(q, cpu);
        if q.settings.rules.series.dispatch != DispatchGate::Open {
            self.at = At::Gate;
            return PullStep::Wait(Next::InTime);
        }
        self.at = series::under_lock(q);
        PullStep::Wait(lock(queue, LockKind::Elevator, 0))
    }

    fn pick<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let now = jiffies(q, cpu);
        let asked = core::mem::take(&mut self.asked);
        let completed = core::array::from_fn(|level| q.completed[level].read(cpu) as u32);
        let mut pool = q.pool.held(cpu.id);
        let mut elevator = q.elevator.held(cpu);
        let picked = elevator.dispatch(
            &mut pool,
            DispatchTime {
                entered: asked,
                locked: now,
            },
            completed,
        );
        let more = elevator.has_work();
        let visits = elevator.take_visits();
        drop(elevator);
        cpu.meter.container_ops(visits);
        if !more && q.elevator_work.peek() {
            q.elevator_work.mirror(cpu, false);
        }
        drop(pool);
        self.leave(list, q, hctx, picked, cpu)
    }

    /// A request was picked, or none.
    pub(super) fn picked<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        picked: Option<RequestId>,
        cpu: &mut Cpu,
    ) -> PullStep {
        let Some(rq) = picked else {
            self.withheld = true;
            let step = self.pulled(list, q, hctx, cpu);
            // Delayed runs or a list come next, never the end: the budget goes back before them.
            return match (step, self.token.take()) {
                (PullStep::Wait(Next::Step), Some(token)) => PullStep::Wait(Next::PutBudget(token)),
                (_, Some(_)) => unreachable!("a step that asks for something keeps the budget"),
                (step, None) => step,
            };
        };
        let mut pool = q.pool.held(cpu.id);
        let request = &mut pool[rq];
        request.budget = self.token.take();
        self.foreign |= request.hctx != hctx;
        let tagged = request.tag.is_some();
        self.picked.push_back(&mut pool, rq);
        if tagged || q.settings.rules.restart.pull == Pull::One {
            drop(pool);
            return self.next_pull(list, q, hctx, cpu);
        }
        self.rq = Some(rq);
        self.wait(At::Tag)
    }

    fn tag<E: Env>(
        &mut self,
        list: &mut ListPath,
        mq: &BlkMq<E>,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let rq = self.rq.expect("one was picked");
        let of_rq = q.pool.held(cpu.id)[rq].hctx;
        let step = tag::search_driver(&mut self.get, mq, q.id, rq, of_rq, cpu);
        if let TagStep::Wait(next) = step {
            return PullStep::Wait(next);
        }
        self.rq = None;
        // A request without tag goes along: dispatch_rq_list will wait for one.
        if step == TagStep::Got {
            self.next_pull(list, q, hctx, cpu)
        } else {
            self.pulled(list, q, hctx, cpu)
        }
    }

    fn next_pull<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        if self.picked.len() as u32 == self.max {
            self.pulled(list, q, hctx, cpu)
        } else {
            self.wait(At::HasWork)
        }
    }

    /// No more is pulled in this pass.
    fn pulled<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let withheld = core::mem::take(&mut self.withheld);
        // Before v5.8 (ab3cee3762e5) nobody was run later for that.
        let reruns = q.settings.rules.restart.pull == Pull::Batch;
        if withheld && reruns && self.picked.is_empty() {
            self.hctx = u16::MAX;
            return self.wait(At::DelayRuns);
        }
        self.group(list, q, hctx, cpu)
    }

    /// blk_mq_delay_run_hw_queues(): the current CPU's hctx and those with leftovers, except
    /// those whose run is pending anyway. One hctx a label.
    fn delay_runs<E: Env>(
        &mut self,
        list: &mut ListPath,
        mq: &BlkMq<E>,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let current = mq.set_of(q.id).hctx_for(cpu.id, Op::Write, false);
        self.hctx = self.hctx.wrapping_add(1);
        let other = HctxId(self.hctx);
        let runs = q.settings.rules.fixes.has(Fix::WithheldRun)
            && (!q.settings.sq_sched()
                || other == current
                || q.hctx(other).dispatch_pending.test(cpu));
        if runs {
            cpu.outbox.push(Effect::KickUnlessPending {
                queue: q.id,
                hctx: other,
                delay: BUDGET_DELAY,
            });
        }
        if usize::from(self.hctx) + 1 < q.hctxs.len() {
            return PullStep::Wait(Next::Step);
        }
        self.hctx = 0;
        self.group(list, q, hctx, cpu)
    }

    /// The requests of the lowest hctx among those picked, in order; or the end of the pass.
    /// Touches nothing shared: it belongs to the label that ended the pulling, or the list before.
    fn group<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        if self.picked.is_empty() {
            *list = ListPath::idle();
            return self.end_of_pass(cpu, q, hctx);
        }
        if !core::mem::take(&mut self.foreign) {
            let all = core::mem::take(&mut self.picked);
            self.hctx = hctx.0;
            *list = ListPath::new(all, false);
            return self.wait(At::List);
        }
        let mut pool = q.pool.held(cpu.id);
        let lowest = self.picked.iter(&pool).map(|rq| pool[rq].hctx).min();
        let lowest = lowest.expect("the list is not empty");
        let mut same = QueueList::new();
        let mut next = self.picked.first();
        while let Some(rq) = next {
            next = self.picked.next(&pool, rq);
            if pool[rq].hctx == lowest {
                self.picked.remove(&mut pool, rq);
                same.push_back(&mut pool, rq);
            }
        }
        self.foreign = !self.picked.is_empty();
        self.hctx = lowest.0;
        *list = ListPath::new(same, false);
        self.wait(At::List)
    }

    fn end_of_pass<E: Env>(
        &mut self,
        cpu: &mut Cpu,
        q: &RequestQueue<E>,
        hctx: HctxId,
    ) -> PullStep {
        self.hctx = 0;
        if self.busy {
            return PullStep::End { again: true };
        }
        if !core::mem::take(&mut self.moved) {
            return PullStep::End { again: false };
        }
        let began = self.began.0.unwrap_or(cpu.now());
        if cpu.need_resched || cpu.now().since(began) >= SLICE {
            let queue = q.id;
            cpu.outbox.push(Effect::Kick {
                queue,
                hctx,
                delay: Duration::ZERO,
            });
            return PullStep::End { again: false };
        }
        self.wait(At::Busy)
    }
}
