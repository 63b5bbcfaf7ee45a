//! Dispatch of a list of requests to the driver, until it is empty or a resource is missing.
//!
//! Kernel: blk_mq_dispatch_rq_list() (6.1.192, 6.12.117). Read next: `list/tags.rs`, then `run.rs`,
//! which calls this.

mod check;
mod tags;

use super::{TagStage, tag};
use crate::call::Call;
use crate::env::{Answer, Cpu, Effect, TraceAction, mb};
use crate::list::QueueList;
use crate::names::labels;
use crate::queue::{BlkMq, HwQueue, LockKind, RequestQueue};
use crate::request::{HctxId, Place, QueueId, RequestId, RequestPool};
use crate::rules::{AfterRefusal, AskAfter, LastHint, PutBack, Recheck};
use crate::sbitmap::Put;
use crate::step::{Next, Sub, call_run, lock, set_places, trace_count};
use crate::time::Duration;

/// BLK_MQ_RESOURCE_DELAY.
const RESOURCE_DELAY: Duration = Duration::from_millis(3);

labels! {
    pub enum At in "list" {
        /// Look at the head; with its tag it is offered.
        Head,
        /// blk_mq_prep_dispatch_rq(): was there a budget?
        Budget,
        /// The same: take a driver tag, then offer the head.
        Tag,
        /// All tags are taken, blk_mq_sched_mark_restart_hctx(): is SCHED_RESTART set?
        TagRestart,
        /// Set it.
        TagSetRestart,
        /// Tags of several hctxs: is this one in a wait queue already?
        TagInLine,
        /// Under the wait queue's lock: add the entry.
        TagLine,
        /// Try once more; under the same lock, or after it before v4.19.
        TagRetry,
        /// With a tag: is the entry still in the wait queue (kyber's rule)?
        TagStale,
        /// Under the wait queue's lock: remove the entry.
        TagLeave,
        /// Take a tag for the request after the head that is offered (v6.1).
        TagAhead,
        /// No driver tag for the head: release its budget first.
        NoTag,
        /// The driver's answer. Offer the next request, or read the moving average after the last.
        Answer,
        /// Free the driver tag of the refused request, blk_mq_handle_dev_resource() and
        /// __blk_mq_requeue_request().
        PutTag,
        /// Free the tag taken ahead (v6.1).
        PutAhead,
        /// The budget of the refused request is released: no more requests follow,
        /// blk_mq_commit_rqs().
        Commit,
        /// Release the budgets of the remaining requests, blk_mq_release_budgets().
        Rest,
        /// Under hctx->lock: the remaining requests go to the dispatch list.
        PutBack,
        /// blk_mq_sched_needs_restart(): will a completion run this hctx?
        Restart,
        /// Tags of several hctxs: will a freed tag?
        StillInLine,
        /// blk_mq_update_dispatch_busy(): read the moving average after the driver's doorbell, or
        /// after the requests were put back.
        BusyRead,
        /// Write the moving average.
        BusyWrite,
    }
}

/// Why a list was not dispatched completely.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stop {
    No,
    /// No budget, or BLK_STS_RESOURCE: a run is not promised.
    NeedsResource,
    /// BLK_STS_DEV_RESOURCE: a completion causes the next run.
    Waits,
    /// No driver tag: a completion causes the next run, or a freed tag if the hctx is in a wait
    /// queue.
    NoTag,
}

/// A list being dispatched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ListPath {
    pub(super) at: At,
    list: QueueList,
    needs_budget: bool,
    rq: Option<RequestId>,
    get: tag::Search,
    put: Option<Put>,
    /// The wait queue of its entry during the second try.
    ws_index: Option<u32>,
    ahead: bool,
    queued: u32,
    /// A request was issued, or ended by the driver; only recorded where the rules need it.
    moved: bool,
    failed: bool,
    refused: bool,
    stop: Stop,
    busy: i32,
}

/// Outcome of blk_mq_dispatch_rq_list().
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Dispatched {
    /// All were dispatched: the return value of blk_mq_dispatch_rq_list().
    pub(super) whole: bool,
    /// A request was issued; only recorded where the rules need it.
    pub(super) moved: bool,
}

impl ListPath {
    pub(super) fn idle() -> ListPath {
        ListPath::new(QueueList::new(), false)
    }

    /// `needs_budget`: the requests hold none yet, and the driver has budgets.
    pub(super) fn new(list: QueueList, needs_budget: bool) -> ListPath {
        ListPath {
            at: At::Head,
            list,
            needs_budget,
            rq: None,
            get: tag::Search::default(),
            put: None,
            ws_index: None,
            ahead: false,
            queued: 0,
            moved: false,
            failed: false,
            refused: false,
            stop: Stop::No,
            busy: 0,
        }
    }

    /// The requests that were not offered yet; whether a request was issued, as far as that is
    /// recorded; whether the list stopped for lack of a tag.
    pub(super) fn state(&self) -> (QueueList, bool, bool) {
        (self.list, self.moved, self.stop == Stop::NoTag)
    }

    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        let put = self.put.as_ref().map(TagStage::of_put);
        self.get.stage().or(put)
    }

    pub(super) fn owned_tag(&self) -> Option<u32> {
        self.put.and_then(|put| put.owned_bit())
    }

    pub(super) fn step(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let q = mq.queue(queue);
        let hctx = q.hctx(hctx_id);
        match self.at {
            At::Head => self.head(q, queue, hctx_id, cpu),
            At::Budget => match cpu.answer {
                Answer::Budget(token) => {
                    self.set_budget(q, cpu, token);
                    self.want_tag(q, cpu)
                }
                _ => self.put_head_tag(q, queue, hctx_id, cpu),
            },
            At::Tag | At::TagRetry => self.tag(mq, queue, hctx_id, cpu),
            At::TagRestart => match hctx.restart.test(cpu) {
                true => self.marked(cpu),
                false => self.wait(At::TagSetRestart),
            },
            At::TagSetRestart => {
                hctx.restart.set(cpu);
                self.marked(cpu)
            }
            At::NoTag => self.no_tag(q, queue, hctx_id, cpu),
            At::TagStale => self.tag_stale(mq, queue, hctx_id, cpu),
            At::TagLeave => self.tag_leave(mq, queue, hctx_id, cpu),
            At::TagInLine => self.tag_in_line(mq, queue, hctx_id, cpu),
            At::TagLine => self.tag_wait(mq, queue, hctx_id, cpu),
            At::TagAhead => self.tag_ahead(mq, queue, hctx_id, cpu),
            At::Answer => self.answer(q, queue, hctx_id, cpu),
            At::PutTag | At::PutAhead => self.put(mq, queue, hctx_id, cpu),
            At::Commit => self.commit(q, queue, hctx_id, cpu),
            At::Rest => self.rest(q, queue, hctx_id, cpu),
            At::PutBack => self.put_back(q, hctx, cpu),
            At::Restart => {
                let marked = hctx.restart.test(cpu);
                let asks = match q.settings.rules.restart.recheck {
                    Recheck::LeftWaitQueue => marked && self.stop == Stop::NoTag,
                    Recheck::Unpromised => !marked,
                };
                if asks && mq.set_of(queue).waits_for_any() {
                    return self.wait(At::StillInLine);
                }
                self.restart(q, marked, hctx_id, cpu)
            }
            At::StillInLine => {
                let queued = hctx.dispatch_wait.test(cpu);
                self.restart(q, queued, hctx_id, cpu)
            }
            At::BusyRead => self.busy_read(hctx.dispatch_busy.read(cpu)),
            At::BusyWrite => {
                hctx.dispatch_busy.write(cpu, self.busy);
                self.busy = 0;
                self.end()
            }
        }
    }

    /// Under hctx->lock: the remaining requests go to the dispatch list.
    fn put_back(&mut self, q: &RequestQueue, hctx: &HwQueue, cpu: &mut Cpu) -> Sub<Dispatched> {
        set_places(q, cpu, self.list, Place::Dispatch);
        let mut pool = q.pool.held(cpu.id);
        let mut dispatch = hctx.dispatch.held(cpu);
        match q.settings.rules.restart.put_back {
            PutBack::Head => dispatch.splice_front(&mut pool, &mut self.list),
            PutBack::Tail => dispatch.splice_back(&mut pool, &mut self.list),
        }
        drop(dispatch);
        drop(pool);
        hctx.dispatch_pending.set(cpu);
        hctx.dispatch.release(cpu);
        // Pairs with the barrier after clearing SCHED_RESTART: it sees the list, or we the bit.
        mb(cpu);
        self.wait(At::Restart)
    }

    /// A completion of this hctx will see SCHED_RESTART. Pairs with the barrier between putting a
    /// tag and reading the bit.
    fn marked(&mut self, cpu: &mut Cpu) -> Sub<Dispatched> {
        mb(cpu);
        self.wait(At::TagRetry)
    }

    fn wait(&mut self, at: At) -> Sub<Dispatched> {
        self.at = at;
        Sub::Wait(Next::Step)
    }

    fn head(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        if self.list.is_empty() {
            return self.commit(q, queue, hctx, cpu);
        }
        if self.needs_budget && q.settings.driver_budget {
            self.at = At::Budget;
            return Sub::Wait(Next::Budget);
        }
        self.want_tag(q, cpu)
    }

    fn set_budget(&mut self, q: &RequestQueue, cpu: &mut Cpu, token: u32) {
        cpu.answer = Answer::None;
        let rq = self.list.first().expect("the head asked for the budget");
        q.pool.held(cpu.id)[rq].budget = Some(token);
    }

    fn want_tag(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Sub<Dispatched> {
        let rq = self
            .list
            .first()
            .expect("the list is not empty at its head");
        if tag::wants_driver_tag(&q.pool.held(cpu.id)[rq]) {
            return self.wait(At::Tag);
        }
        self.offer(q, cpu)
    }

    /// No budget: the head keeps no driver tag either.
    fn put_head_tag(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        cpu.answer = Answer::None;
        self.stop = Stop::NeedsResource;
        let rq = self.list.first().expect("the head asked for the budget");
        self.start_put(q, queue, hctx, cpu, rq, At::PutTag)
    }

    /// Unlinks the head, which has its tag.
    pub(super) fn offer(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Sub<Dispatched> {
        let mut pool = q.pool.held(cpu.id);
        let rq = self
            .list
            .pop_front(&mut pool)
            .expect("the head has its tag");
        self.rq = Some(rq);
        let Some(next) = self.list.first() else {
            return self.submit(rq, true);
        };
        if q.settings.rules.last_hint == LastHint::ListEmpty {
            return self.submit(rq, false);
        }
        if pool[next].tag.is_some() {
            self.ahead = true;
            return self.submit(rq, false);
        }
        drop(pool);
        self.wait(At::TagAhead)
    }

    fn submit(&mut self, rq: RequestId, last: bool) -> Sub<Dispatched> {
        self.at = At::Answer;
        Sub::Wait(Next::offer(rq, last))
    }

    fn answer(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let rq = self.rq.take().expect("a request was offered");
        let ahead = core::mem::take(&mut self.ahead);
        match core::mem::take(&mut cpu.answer) {
            Answer::Ok => {
                self.queued += 1;
                self.moved = notes_moves(q);
                // v6.1 counts every error of the list, v6.12 looks at the last answer.
                self.failed &= q.settings.rules.last_hint == LastHint::TagAhead;
                self.head(q, queue, hctx, cpu)
            }
            Answer::Error(status) => {
                self.failed = true;
                self.moved = notes_moves(q);
                self.at = At::Head;
                Sub::Wait(Next::call(cpu, Call::End { queue, rq, status }))
            }
            refused => {
                let needs = refused == Answer::Resource;
                self.stop = if needs {
                    Stop::NeedsResource
                } else {
                    Stop::Waits
                };
                self.ahead = ahead;
                self.refused(q, queue, hctx, cpu, rq)
            }
        }
    }

    /// The head goes back to the head of the list, without driver tag if it has another identity.
    fn refused(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
        rq: RequestId,
    ) -> Sub<Dispatched> {
        let mut pool = q.pool.held(cpu.id);
        self.list.push_front(&mut pool, rq);
        pool[rq].budget = None;
        self.refused = true;
        let next = self.list.next(&pool, rq);
        drop(pool);
        if core::mem::take(&mut self.ahead) {
            let next = next.expect("a tag was taken for the request after the head");
            return self.start_put(q, queue, hctx, cpu, next, At::PutAhead);
        }
        self.start_put(q, queue, hctx, cpu, rq, At::PutTag)
    }

    pub(super) fn commit(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let partial = !self.list.is_empty() || self.failed;
        let queued = core::mem::take(&mut self.queued);
        self.failed = false;
        let commit = partial && queued > 0 && q.settings.driver_commit_rqs;
        if commit && q.settings.rules.last_hint == LastHint::ListEmpty {
            trace_count(cpu, queue, TraceAction::Unplug, u64::from(queued));
        }
        self.at = if self.list.is_empty() {
            At::BusyRead
        } else {
            At::Rest
        };
        if commit {
            return Sub::Wait(Next::commit(hctx));
        }
        match self.at {
            At::Rest => self.rest(q, queue, hctx, cpu),
            // The list is empty: no shared access since the last label.
            _ => self.busy_read(q.hctx(hctx).dispatch_busy.read(cpu)),
        }
    }

    /// Requests that are put back hold no budgets.
    fn rest(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        if q.settings.driver_budget {
            let mut pool = q.pool.held(cpu.id);
            let held = self.list.iter(&pool).find(|&rq| pool[rq].budget.is_some());
            if let Some(token) = held.and_then(|rq| pool[rq].budget.take()) {
                return Sub::Wait(Next::PutBudget(token));
            }
        }
        self.at = At::PutBack;
        Sub::Wait(lock(queue, LockKind::Dispatch, u32::from(hctx.0)))
    }

    /// `promised`: another event will run the hctx.
    fn restart(
        &mut self,
        q: &RequestQueue,
        promised: bool,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        self.at = At::BusyRead;
        let refused = self.stop == Stop::NeedsResource;
        let after = q.settings.rules.restart.after_refusal;
        if !promised || refused && after == AfterRefusal::AtOnce {
            return Sub::Wait(call_run(cpu, q.id, hctx, true));
        }
        if refused && after == AfterRefusal::Delay {
            cpu.outbox.push(Effect::Kick {
                queue: q.id,
                hctx,
                delay: RESOURCE_DELAY,
            });
        }
        Sub::Wait(Next::Step)
    }

    fn end(&self) -> Sub<Dispatched> {
        Sub::Done(Dispatched {
            whole: self.stop == Stop::No,
            moved: self.moved,
        })
    }

    /// The moving average, if it changes.
    fn busy_read(&mut self, value: i32) -> Sub<Dispatched> {
        match busy_after(value, self.stop != Stop::No) {
            None => self.end(),
            Some(busy) => {
                self.busy = busy;
                self.wait(At::BusyWrite)
            }
        }
    }
}

/// Whether the run needs to know that a request of the list was issued.
fn notes_moves(q: &RequestQueue) -> bool {
    q.settings.rules.restart.ask != AskAfter::NoneLeft
}

/// __blk_mq_requeue_request() without the tag: the driver does not have it any more.
pub(super) fn requeue_bookkeeping(pool: &mut RequestPool, rq: RequestId) {
    pool[rq].in_flight = false;
    pool[rq].place = Place::Path;
}

/// blk_mq_update_dispatch_busy(), weight 8, factor 4: the next `dispatch_busy` after an attempt
/// that had to stop or not. `None`: it is not written.
pub(super) fn busy_after(value: i32, stopped: bool) -> Option<i32> {
    let changes = value != 0 || stopped;
    changes.then(|| (7 * value + if stopped { 16 } else { 0 }) / 8)
}
