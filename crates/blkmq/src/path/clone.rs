//! A clone of a request of a mapped queue: its allocation, and its direct issue to the driver.
//!
//! Two calls from queue_rq of the mapped queue (`map.rs`), with other work between them. The path
//! waits for nothing, and leaves nothing on a list of this queue that could go to the driver: the
//! caller keeps a clone that the driver refuses, so that the request above stays where it can still
//! merge. A queue that is stopped or quiesced takes the clone into its own lists. Not here: the
//! choice of the queue, and the clone's end (`clone_end.rs`). Kernel:
//! blk_mq_alloc_request(BLK_MQ_REQ_NOWAIT), blk_insert_cloned_request(),
//! blk_mq_request_issue_directly() (6.1.192).

use super::OwnedTags;
use super::driver::is_stopped;
use super::list::{busy_after, requeue_bookkeeping};
use super::tag::{self, Search, get_driver_tag, search_identity};
use super::wait::wake_all;
use crate::call::{Call, Inserts};
use crate::elevator::Wanted;
use crate::env::{Answer, Cpu, TraceAction};
use crate::names::labels;
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, IoContextId, Op, OpFlags, Place, QueueId, RequestId};
use crate::step::{Cx, Next, Steps as _, Sub, Traced, trace_rq};

labels! {
    pub enum At in "clone-rq" {
        /// Which hctx?
        Enter,
        /// Under the lock of a scheduler whose limit_depth() takes it.
        LimitDepth,
        /// Take a tag, if there is one.
        Tag,
        /// Is the hctx stopped?
        Stopped,
        /// Is the queue quiesced?
        Quiesced,
        /// get_budget has answered.
        Budget,
        /// Take a driver tag besides the scheduler's.
        DriverTag,
        /// The driver has answered.
        Answer,
        /// Write the moving average.
        BusyWrite,
        /// Returns the answer to the caller.
        Tell,
    }
}

/// A clone being allocated or issued. Ends with an answer in the CPU: `Answer::Clone` or `Resource`
/// of an allocation; of an issue `Ok`, or the driver's error, or `Resource`: the caller keeps the
/// clone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClonePath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    above: RequestId,
    hctx: HctxId,
    /// Tags of each word that the scheduler allows.
    shallow: Option<u32>,
    search: Search,
    rq: Option<RequestId>,
    busy: i32,
    answer: Answer,
}

impl ClonePath {
    /// blk_mq_alloc_request(BLK_MQ_REQ_NOWAIT) of one for this request above.
    pub(super) fn allocate(queue: QueueId, above: RequestId) -> ClonePath {
        ClonePath {
            at: At::Enter,
            queue,
            above,
            hctx: HctxId(0),
            shallow: None,
            search: Search::No,
            rq: None,
            busy: 0,
            answer: Answer::default(),
        }
    }

    /// blk_insert_cloned_request() of one that was allocated in `hctx`.
    pub(super) fn issue(queue: QueueId, rq: RequestId, hctx: HctxId) -> ClonePath {
        ClonePath {
            at: At::Stopped,
            hctx,
            rq: Some(rq),
            ..ClonePath::allocate(queue, rq)
        }
    }

    pub(super) fn stage(&self) -> Option<&'static str> {
        self.search.stage()
    }

    /// A driver tag that was found in a set that queues share, not yet stored in a request.
    pub(super) fn owned_tag(&self) -> Option<OwnedTags> {
        self.search.owned_tag(self.hctx)
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Enter => {
                if !cx.pool().enter_queue() {
                    return self.refused();
                }
                self.enter(cx)
            }
            At::LimitDepth => {
                let wanted = self.wanted(cx.mq, cx.q, cx.cpu).expect("it is to be asked");
                self.shallow = cx.q.elevator.limit_depth_locked(cx.q, wanted, cx.cpu);
                self.to(At::Tag)
            }
            At::Tag => self.tag(cx),
            At::Stopped => match is_stopped(cx.q, cx.hctx(self.hctx), cx.cpu) {
                true => self.insert_stopped(cx),
                false => self.to(At::Quiesced),
            },
            At::Quiesced => match cx.q.quiesced.test(cx.cpu) {
                true => self.insert_stopped(cx),
                false if cx.q.settings.driver_budget => {
                    self.at = At::Budget;
                    Next::Budget
                }
                false => self.want_tag(cx.q, cx.cpu),
            },
            At::Budget => match core::mem::take(&mut cx.cpu.answer) {
                Answer::Budget(token) => {
                    cx.pool()[self.clone()].budget = Some(token);
                    self.want_tag(cx.q, cx.cpu)
                }
                _ => self.refused(),
            },
            At::DriverTag => self.driver_tag(cx),
            At::Answer => self.answer(cx),
            At::BusyWrite => {
                let busy = core::mem::take(&mut self.busy);
                cx.hctx(self.hctx).dispatch_busy.write(cx.cpu, busy);
                self.settle(cx)
            }
            At::Tell => {
                cx.cpu.answer = self.answer;
                Next::Done
            }
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        let searches = matches!(at, At::Tag | At::DriverTag);
        assert!(
            searches || matches!(self.search, Search::No),
            "{at:?} with a search for a tag"
        );
        if at != At::Tell {
            let without = matches!(at, At::Enter | At::LimitDepth | At::Tag);
            assert_eq!(self.rq.is_none(), without, "{at:?}: there is a clone");
        }
        assert!(
            self.busy == 0 || at == At::BusyWrite,
            "{at:?} with an average"
        );
        if let Some(rq) = self
            .rq
            .filter(|_| !matches!(at, At::Answer | At::BusyWrite))
        {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            assert_eq!(pool[rq].place, Place::Path, "{at:?} of {rq:?}");
        }
    }

    pub(super) fn check_over(&self) {
        assert!(matches!(self.search, Search::No), "it searches for a tag");
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn clone(&self) -> RequestId {
        self.rq.expect("it was allocated")
    }

    /// Selects the hctx, and the number of its tags.
    fn enter(&mut self, cx: &mut Cx<'_>) -> Next {
        let (op, ..) = self.whose(cx.mq, cx.q, cx.cpu);
        self.hctx = cx.set().hctx_for(cx.cpu.id, op, false);
        if let Some(wanted) = self.wanted(cx.mq, cx.q, cx.cpu) {
            if let Some(lock) = cx.q.elevator.limit_depth_lock(cx.q, wanted) {
                self.at = At::LimitDepth;
                return Next::Lock(lock);
            }
            self.shallow = cx.q.elevator.limit_depth(wanted);
        }
        self.to(At::Tag)
    }

    /// The properties of the request above.
    fn whose(&self, mq: &BlkMq, q: &RequestQueue, cpu: &Cpu) -> (Op, OpFlags, IoContextId) {
        let clones = q.clones.as_ref().expect("it has clones");
        let pool = mq.queue(clones.above).pool.held(cpu.id);
        let above = &pool[self.above];
        (above.op, above.flags, above.io_context)
    }

    /// The limit_depth() arguments of a scheduler of this queue, though the clone bypasses it.
    fn wanted(&self, mq: &BlkMq, q: &RequestQueue, cpu: &Cpu) -> Option<Wanted> {
        let whose = q.has_elevator().then(|| self.whose(mq, q, cpu))?;
        tag::wanted(q, whose)
    }

    /// blk_mq_alloc_request() without waiting.
    fn tag(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut search = match self.search {
            Search::Identity(search) => search,
            _ => search_identity::State::new(self.hctx, None, self.shallow, false),
        };
        let step = search.step(cx);
        self.search = match step {
            Sub::Wait(_) => Search::Identity(search),
            Sub::Done(_) => Search::No,
        };
        match step {
            Sub::Wait(next) => next,
            Sub::Done(Some(bit)) => {
                let rq = tag::adopt(cx, self.hctx, bit);
                self.rq = Some(rq);
                self.answer = Answer::Clone(rq);
                let scheduled = self.wanted(cx.mq, cx.q, cx.cpu).is_some();
                let now = cx.cpu.now();
                let mut pool = cx.pool();
                pool[rq].start_time = now;
                // RQF_ELVPRIV, RQF_USE_SCHED: also of a request that bypasses the scheduler.
                pool[rq].use_sched = scheduled;
                if scheduled && cx.q.elevator.hooks().prepare {
                    cx.q.elevator.prepare(&mut pool[rq]);
                }
                drop(pool);
                self.to(At::Tell)
            }
            Sub::Done(None) => {
                self.answer = Answer::Resource;
                self.at = At::Tell;
                match cx.pool().exit_queue() {
                    true => wake_all(cx.cpu, self.queue),
                    false => Next::Step,
                }
            }
        }
    }

    fn want_tag(&mut self, q: &RequestQueue, cpu: &Cpu) -> Next {
        match tag::wants_driver_tag(&q.pool.held(cpu.id)[self.clone()]) {
            false => self.offer(),
            true => self.to(At::DriverTag),
        }
    }

    fn driver_tag(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.clone();
        let mut search = match self.search {
            Search::Driver(search) => search,
            _ => get_driver_tag::State::new(rq, self.hctx),
        };
        let step = search.step(cx);
        self.search = match step {
            Sub::Wait(_) => Search::Driver(search),
            Sub::Done(_) => Search::No,
        };
        match step {
            Sub::Wait(next) => next,
            Sub::Done(true) => self.offer(),
            Sub::Done(false) => {
                let budget = cx.pool()[rq].budget.take();
                let next = self.refused();
                budget.map_or(next, Next::PutBudget)
            }
        }
    }

    /// A clone is always the last one: the queue above has a list of its own.
    fn offer(&mut self) -> Next {
        self.at = At::Answer;
        Next::offer(self.clone(), true)
    }

    /// The device's answer first changes the moving average.
    fn answer(&mut self, cx: &mut Cx<'_>) -> Next {
        self.answer = match core::mem::take(&mut cx.cpu.answer) {
            Answer::DevResource => Answer::Resource,
            other => other,
        };
        let value = cx.hctx(self.hctx).dispatch_busy.read(cx.cpu);
        match busy_after(value, self.answer == Answer::Resource) {
            Some(busy) => {
                self.busy = busy;
                self.to(At::BusyWrite)
            }
            None => self.settle(cx),
        }
    }

    /// Acts on the driver's answer.
    fn settle(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.clone();
        if self.answer == Answer::Ok {
            // It may have ended already.
            self.rq = None;
            return self.to(At::Tell);
        }
        let mut pool = cx.pool();
        pool[rq].budget = None;
        requeue_bookkeeping(&mut pool, rq);
        let traced = Traced::rq(cx.cpu.tracing, &pool, rq);
        drop(pool);
        if self.answer == Answer::Resource {
            trace_rq(cx.cpu, self.queue, TraceAction::Requeue, traced);
        }
        self.to(At::Tell)
    }

    /// Stopped or quiesced: the request above counts as issued.
    fn insert_stopped(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.take().expect("one is being issued");
        self.answer = Answer::Ok;
        self.at = At::Tell;
        cx.call(Call::Insert(Inserts::insert_stopped(cx.q, rq)))
    }

    fn refused(&mut self) -> Next {
        self.answer = Answer::Resource;
        self.to(At::Tell)
    }
}
