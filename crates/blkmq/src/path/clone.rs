//! A clone of a request of a mapped queue: its allocation, and its direct issue to the driver.
//!
//! Two calls from queue_rq of the mapped queue (`map.rs`), with other work between them. The path
//! waits for nothing, and leaves nothing on a list of this queue that could go to the driver: the
//! caller keeps a clone that the driver refuses, so that the request above stays where it can still
//! merge. A queue that is stopped or quiesced takes the clone into its own lists. Not here: the
//! choice of the queue, and the clone's end (`clone_end.rs`). Kernel:
//! blk_mq_alloc_request(BLK_MQ_REQ_NOWAIT), blk_insert_cloned_request(),
//! blk_mq_request_issue_directly() (6.1.192).

use super::driver::is_stopped;
use super::list::{busy_after, requeue_bookkeeping};
use super::tag::{self, Identity, Search};
use super::wait::wake_all;
use super::{OwnedTags, TagStage};
use crate::call::{Call, Inserts};
use crate::elevator::Wanted;
use crate::env::{Answer, Cpu, TraceAction};
use crate::names::labels;
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, IoContextId, Op, OpFlags, Place, QueueId, RequestId, Tag};
use crate::step::{Next, Sub, Traced, trace_rq};

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

    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        self.search.stage()
    }

    /// A driver tag that was found in a set that queues share, not yet stored in a request.
    pub(super) fn owned_tag(&self) -> Option<OwnedTags> {
        let Search::Found(Tag(bit)) = self.search else {
            return None;
        };
        // The tag belongs to an existing request.
        self.rq.is_none().then_some(OwnedTags {
            hctx: self.hctx,
            driver: Some(bit),
            sched: None,
        })
    }

    pub(super) fn step(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        match self.at {
            At::Enter => {
                if !q.pool.held(cpu.id).enter_queue() {
                    return self.refused();
                }
                self.enter(mq, q, cpu)
            }
            At::LimitDepth => {
                let wanted = self.wanted(mq, q, cpu).expect("it is to be asked");
                self.shallow = q.elevator.limit_depth_locked(q, wanted, cpu);
                self.to(At::Tag)
            }
            At::Tag => self.tag(mq, q, cpu),
            At::Stopped => match is_stopped(q, q.hctx(self.hctx), cpu) {
                true => self.insert_stopped(q, cpu),
                false => self.to(At::Quiesced),
            },
            At::Quiesced => match q.quiesced.test(cpu) {
                true => self.insert_stopped(q, cpu),
                false if q.settings.driver_budget => {
                    self.at = At::Budget;
                    Next::Budget
                }
                false => self.want_tag(q, cpu),
            },
            At::Budget => match core::mem::take(&mut cpu.answer) {
                Answer::Budget(token) => {
                    q.pool.held(cpu.id)[self.clone()].budget = Some(token);
                    self.want_tag(q, cpu)
                }
                _ => self.refused(),
            },
            At::DriverTag => self.driver_tag(mq, q, cpu),
            At::Answer => self.answer(q, cpu),
            At::BusyWrite => {
                let busy = core::mem::take(&mut self.busy);
                q.hctx(self.hctx).dispatch_busy.write(cpu, busy);
                self.settle(q, cpu)
            }
            At::Tell => {
                cpu.answer = self.answer;
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
    fn enter(&mut self, mq: &BlkMq, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let (op, ..) = self.whose(mq, q, cpu);
        self.hctx = mq.set_of(self.queue).hctx_for(cpu.id, op, false);
        if let Some(wanted) = self.wanted(mq, q, cpu) {
            if let Some(lock) = q.elevator.limit_depth_lock(q, wanted) {
                self.at = At::LimitDepth;
                return Next::Lock(lock);
            }
            self.shallow = q.elevator.limit_depth(wanted);
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
    fn tag(&mut self, mq: &BlkMq, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let limit = (self.shallow, false);
        match tag::search_identity(&mut self.search, mq, q, self.hctx, limit, cpu) {
            Sub::Wait(next) => next,
            Sub::Done(Identity::Got(bit)) => {
                let rq = tag::adopt(mq, q, self.hctx, bit, cpu);
                self.rq = Some(rq);
                self.answer = Answer::Clone(rq);
                let scheduled = self.wanted(mq, q, cpu).is_some();
                let now = cpu.now();
                let mut pool = q.pool.held(cpu.id);
                pool[rq].start_time = now;
                // RQF_ELVPRIV, RQF_USE_SCHED: also of a request that bypasses the scheduler.
                pool[rq].use_sched = scheduled;
                if scheduled && q.elevator.hooks().prepare {
                    q.elevator.prepare(&mut pool[rq]);
                }
                drop(pool);
                self.to(At::Tell)
            }
            Sub::Done(Identity::GotRun { .. }) => unreachable!("clones are made one by one"),
            Sub::Done(Identity::Full) => {
                self.answer = Answer::Resource;
                self.at = At::Tell;
                match q.pool.held(cpu.id).exit_queue() {
                    true => wake_all(cpu, self.queue),
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

    fn driver_tag(&mut self, mq: &BlkMq, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let rq = self.clone();
        match tag::search_driver(&mut self.search, mq, self.queue, rq, self.hctx, cpu) {
            Sub::Wait(next) => next,
            Sub::Done(true) => self.offer(),
            Sub::Done(false) => {
                let budget = q.pool.held(cpu.id)[rq].budget.take();
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
    fn answer(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        self.answer = match core::mem::take(&mut cpu.answer) {
            Answer::DevResource => Answer::Resource,
            other => other,
        };
        let value = q.hctx(self.hctx).dispatch_busy.read(cpu);
        match busy_after(value, self.answer == Answer::Resource) {
            Some(busy) => {
                self.busy = busy;
                self.to(At::BusyWrite)
            }
            None => self.settle(q, cpu),
        }
    }

    /// Acts on the driver's answer.
    fn settle(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let rq = self.clone();
        if self.answer == Answer::Ok {
            // It may have ended already.
            self.rq = None;
            return self.to(At::Tell);
        }
        let mut pool = q.pool.held(cpu.id);
        pool[rq].budget = None;
        requeue_bookkeeping(&mut pool, rq);
        let traced = Traced::rq(cpu.tracing, &pool, rq);
        drop(pool);
        if self.answer == Answer::Resource {
            trace_rq(cpu, self.queue, TraceAction::Requeue, traced);
        }
        self.to(At::Tell)
    }

    /// Stopped or quiesced: the request above counts as issued.
    fn insert_stopped(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let rq = self.rq.take().expect("one is being issued");
        self.answer = Answer::Ok;
        self.at = At::Tell;
        Next::call(cpu, Call::Insert(Inserts::insert_stopped(q, rq)))
    }

    fn refused(&mut self) -> Next {
        self.answer = Answer::Resource;
        self.to(At::Tell)
    }
}
