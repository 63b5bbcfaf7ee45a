//! A driver that has taken a request requeues it: it will be offered again.
//!
//! The driver calls this inside queue_rq and then answers BLK_STS_OK, so that the caller of
//! queue_rq counts the request as taken. Not here: the reinsertion (`requeue.rs`). Kernel:
//! blk_mq_requeue_request() (6.1.192, 6.12.117).

use crate::call::{Call, Hook};
use crate::env::{Cpu, Effect};
use crate::names::labels;
use crate::path::tag::{self, TagMap};
use crate::path::{TagStage, list};
use crate::queue::{BlkMq, LockKind};
use crate::request::{HctxId, Place, QueueId, RequestId};
use crate::rules::RequeueOrder;
use crate::sbitmap::Put;
use crate::step::{Cx, Next, Traced, trace_returned};
use crate::time::Duration;

labels! {
    pub enum At in "requeue-request" {
        /// Has it a driver tag besides its identity?
        Start,
        /// Free that tag.
        PutTag,
        /// Under requeue_lock: add it to the list.
        Add,
    }
}

/// blk_mq_requeue_request(), with the list kicked. Does not change the CPU's answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequeueRequest {
    pub(in crate::path) at: At,
    pub(in crate::path) queue: QueueId,
    rq: RequestId,
    hctx: HctxId,
    dontprep: bool,
    /// Delay of the kick.
    after: Duration,
    put: Option<Put>,
    hook_called: bool,
}

impl RequeueRequest {
    /// `dontprep` (RQF_DONTPREP): the driver has stored its own data in the request, so that it
    /// must not be merged; it will go to the dispatch list. Any budget was released already.
    pub fn new(queue: QueueId, rq: RequestId, dontprep: bool) -> RequeueRequest {
        RequeueRequest {
            at: At::Start,
            queue,
            rq,
            hctx: HctxId(0),
            dontprep,
            after: Duration::ZERO,
            put: None,
            hook_called: false,
        }
    }

    /// __blk_mq_requeue_request() without the scheduler's hook: the driver has refused the request,
    /// for a checker that follows a kernel and has not seen the run that offered it.
    pub fn refused(queue: QueueId, rq: RequestId) -> RequeueRequest {
        RequeueRequest {
            hook_called: true,
            ..RequeueRequest::new(queue, rq, false)
        }
    }

    /// The same with blk_mq_delay_kick_requeue_list().
    pub(in crate::path) fn later(queue: QueueId, rq: RequestId, after: Duration) -> RequeueRequest {
        RequeueRequest {
            after,
            ..RequeueRequest::new(queue, rq, false)
        }
    }

    pub(in crate::path) fn tag_stage(&self) -> Option<TagStage> {
        self.put.as_ref().map(TagStage::of_put)
    }

    /// The driver tag that is being put, and of which hctx.
    pub(in crate::path) fn owned_tag(&self) -> (HctxId, Option<u32>) {
        (self.hctx, self.put.and_then(|put| put.owned_bit()))
    }

    pub(in crate::path) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Start => self.start(cx),
            At::PutTag => {
                let put = self.put.as_mut().expect("a tag is being put");
                let map = TagMap::Driver(self.hctx);
                match tag::step_put(put, cx.mq, self.queue, map, cx.cpu) {
                    Some(next) => next,
                    None => {
                        self.put = None;
                        self.returned(cx)
                    }
                }
            }
            At::Add => {
                self.add(cx);
                Next::Done
            }
        }
    }

    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        assert_eq!(
            self.put.is_some(),
            at == At::PutTag,
            "{at:?}: a tag goes back"
        );
        if at != At::Start {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            assert_eq!(pool[self.rq].place, Place::Path, "{at:?} of {:?}", self.rq);
        }
    }

    pub(in crate::path) fn check_over(&self) {
        assert!(self.put.is_none(), "a tag goes back");
    }

    fn start(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut pool = cx.pool();
        let rq = &mut pool[self.rq];
        // Before the tag and the trace, not after them as in the kernel: a policy sees neither.
        let hook_called = core::mem::replace(&mut self.hook_called, true);
        if !hook_called && rq.use_sched && cx.q.elevator.hooks().requeued {
            let (queue, hook) = (self.queue, Hook::Requeued(self.rq));
            drop(pool);
            return cx.call(Call::Hook { queue, hook });
        }
        let scheduled = rq.internal_tag.is_some();
        self.hctx = rq.hctx;
        // The device does not have it any more, whatever a concurrent completion reads.
        list::requeue_bookkeeping(&mut pool, self.rq);
        pool[self.rq].budget = None;
        let tag = if scheduled {
            pool[self.rq].tag.take()
        } else {
            None
        };
        let put = tag.map(|tag| tag::put_driver_alone(cx.q, &mut pool[self.rq], tag));
        drop(pool);
        match put {
            Some(_) => {
                self.put = put;
                self.at = At::PutTag;
                Next::Step
            }
            None => self.returned(cx),
        }
    }

    fn returned(&mut self, cx: &mut Cx<'_>) -> Next {
        let traced = Traced::rq(cx.cpu.tracing, &cx.pool(), self.rq);
        trace_returned(cx.cpu, self.queue, traced);
        self.at = At::Add;
        cx.lock(LockKind::Requeue, 0)
    }

    /// Under requeue_lock. Releases it.
    fn add(&mut self, cx: &mut Cx<'_>) {
        let mut pool = cx.pool();
        let mut lists = cx.q.requeue.held(cx.cpu);
        let stacked = cx.q.settings.rules.requeue_order == RequeueOrder::Stack;
        let rq = &mut pool[self.rq];
        rq.place = Place::Requeue;
        rq.dontprep |= self.dontprep;
        rq.softbarrier = stacked;
        if stacked {
            lists.requeue.push_front(&mut pool, self.rq);
        } else {
            lists.requeue.push_back(&mut pool, self.rq);
        }
        drop(lists);
        drop(pool);
        let (queue, after) = (self.queue, self.after);
        cx.cpu.outbox.push(match after {
            Duration::ZERO => Effect::KickRequeue { queue },
            after => Effect::KickRequeueLater { queue, after },
        });
        cx.q.requeue.release(cx.cpu);
    }
}
