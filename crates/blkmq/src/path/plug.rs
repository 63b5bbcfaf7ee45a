//! A task's plug and its flush; direct issue of requests of a queue without scheduler.
//!
//! Kernel: blk_add_rq_to_plug(), blk_mq_flush_plug_list(), blk_mq_try_issue_directly(),
//! blk_mq_try_issue_list_directly(), blk_mq_plug_issue_direct() (6.1.192, 6.12.117).

mod check;
mod issue;
mod list;
mod whole;

use super::wait::wake_all;
use super::{TagStage, insert, tag};
use crate::call::Unplug;
use crate::elevator;
use crate::env::{Cpu, TraceAction};
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::not_state::NotState;
use crate::plug::PlugList;
use crate::queue::{BlkMq, LockKind};
use crate::request::{CpuId, HctxId, Place, Plugged, QueueId, RequestId, Status};
use crate::rules::{DirectIssue, DirectUnplug, PlugOrder, PlugRun};
use crate::step::{Cx, Next, Sub, call_run, lock};

/// BLK_PLUG_FLUSH_SIZE in sectors.
pub(super) const PLUG_FLUSH_SECTORS: u32 = 131_072 / 512;

labels! {
    pub enum At in "plug" {
        /// Take the list; choose the kind of issue.
        Take,
        /// Collect the next group of one hctx and ctx.
        Group,
        /// The scheduler's insert_requests: its section, where that has no name of its own.
        Elevator,
        /// Is the hctx busy?
        Busy,
        /// Under ctx->lock: insert the requests that could not be issued.
        Ctx,
        /// Run the group's hctx.
        Run,
        /// queue_rqs: is the queue quiesced? If not, offer the first request.
        WholeQuiesced,
        /// queue_rqs: the driver's answer. Then offer the next request.
        WholeAnswer,
        /// queue_rqs: the driver was notified that no more of the hctx follows. Offer the next
        /// request.
        WholeRung,
        /// Direct issue: next request.
        Next,
        /// Is its hctx stopped?
        Stopped,
        /// Is the queue quiesced? If not, and it has its tag, offer it.
        Quiesced,
        /// Was there a budget?
        Budget,
        /// Take a driver tag, then offer it.
        Tag,
        /// Release the budget.
        NoTag,
        /// The driver's answer. Read the moving average.
        Answer,
        /// Run the hctx whose dispatch list has the refused request.
        Refused,
        /// Direct issue has ended.
        Issued,
        /// Write the moving average.
        BusyWrite,
        /// Free cached requests.
        Cached,
    }
}

/// How requests are issued directly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mode {
    /// One request without plug.
    Single,
    /// The whole plug (blk_mq_plug_issue_direct), or the requests that queue_rqs left.
    Plug,
    /// One group (blk_mq_try_issue_list_directly).
    Group,
}

/// The driver's answer to a request that was issued directly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Outcome {
    #[default]
    Taken,
    /// BLK_STS_RESOURCE or BLK_STS_DEV_RESOURCE.
    Refused,
    /// An error: the request ends with it.
    Failed(Status),
}

/// A plug flush, or direct issue of one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlugPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    from_schedule: bool,
    /// The group is run by kblockd, independent of the flush.
    in_background: bool,
    keep_cached: bool,
    mode: Mode,
    /// The remaining requests of the plug.
    rest: PlugList,
    group: QueueList,
    insertion: elevator::InsertPath,
    hctx: HctxId,
    ctx: u16,
    /// The request of `Mode::Single`, until it is issued.
    only: Option<RequestId>,
    rq: Option<RequestId>,
    get: tag::Search,
    queued: u32,
    failed: bool,
    outcome: Outcome,
    busy: i32,
    /// It holds a reference on the queue for a group that may have completed by now.
    entered: bool,
}

impl PlugPath {
    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        self.get.stage()
    }

    /// __blk_flush_plug() of the running task's plug: the list, then cached requests.
    pub fn unplug(queue: QueueId, why: Unplug) -> PlugPath {
        PlugPath {
            at: At::Take,
            queue,
            from_schedule: why == Unplug::Schedule,
            in_background: false,
            keep_cached: why == Unplug::Full,
            mode: Mode::Group,
            rest: PlugList::default(),
            group: QueueList::new(),
            insertion: elevator::InsertPath::Idle,
            hctx: HctxId(0),
            ctx: 0,
            only: None,
            rq: None,
            get: tag::Search::default(),
            queued: 0,
            failed: false,
            outcome: Outcome::Taken,
            busy: 0,
            entered: false,
        }
    }

    /// blk_mq_try_issue_directly() of one request.
    pub(super) fn single(queue: QueueId, rq: RequestId) -> PlugPath {
        let path = PlugPath::unplug(queue, Unplug::Finish);
        PlugPath {
            at: At::Next,
            mode: Mode::Single,
            only: Some(rq),
            ..path
        }
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Take => self.take(cx),
            At::Group => self.next_group(cx),
            At::Elevator => match cx.q.elevator.insert(&mut self.insertion, cx.q, cx.cpu) {
                Sub::Wait(next) => next,
                Sub::Done(touched) => {
                    self.insertion = elevator::InsertPath::Idle;
                    match touched {
                        true => self.to(At::Run),
                        false => self.run(cx.cpu),
                    }
                }
            },
            At::Busy => {
                let busy = cx.hctx(self.hctx).dispatch_busy.read(cx.cpu) != 0;
                if busy || self.from_schedule {
                    return self.want_ctx();
                }
                self.mode = Mode::Group;
                self.to(At::Next)
            }
            At::Ctx => {
                self.in_background = cx.rules().plug_run == PlugRun::Always
                    && cx
                        .q
                        .with_pool(|pool| self.group.iter(pool).any(|rq| pool[rq].flags.nowait));
                insert::insert_ctx(cx, &mut self.group, false);
                self.to(At::Run)
            }
            At::Run => self.run(cx.cpu),
            At::WholeQuiesced | At::WholeAnswer | At::WholeRung => self.whole(cx),
            At::Cached => self.free_cached(cx),
            _ => self.issue(cx),
        }
    }

    pub(super) fn label(&self) -> Label {
        self.insertion.label().unwrap_or(self.at.label())
    }

    /// No request follows the current one.
    pub fn is_last(&self) -> bool {
        self.rest.is_empty() && self.group.is_empty() && self.only.is_none()
    }

    /// The requests that it inserts into the scheduler now.
    pub(super) fn insertion(&self) -> elevator::InsertPath {
        self.insertion
    }

    pub(super) fn owned_group(&self) -> QueueList {
        self.group
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    /// Goes on with requests of this queue.
    fn turn_to(&mut self, cx: &mut Cx<'_>, queue: QueueId) {
        self.queue = queue;
        cx.q = cx.mq.queue(queue);
    }

    fn run(&mut self, cpu: &mut Cpu) -> Next {
        self.at = At::Group;
        let in_background = core::mem::take(&mut self.in_background);
        call_run(
            cpu,
            self.queue,
            self.hctx,
            in_background || self.from_schedule,
        )
    }

    fn want_ctx(&mut self) -> Next {
        self.at = At::Ctx;
        lock(self.queue, LockKind::Ctx, u32::from(self.ctx))
    }

    fn take(&mut self, cx: &mut Cx<'_>) -> Next {
        self.rest = core::mem::take(&mut cx.cpu.plug.list);
        let Some(first) = self.rest.first() else {
            return self.free_cached(cx);
        };
        self.turn_to(cx, first.queue);
        let mut next = Some(first);
        while let Some(entry) = next {
            let mut pool = cx.mq.queue(entry.queue).pool.held(cx.cpu.id);
            pool[entry.rq].place = Place::Path;
            next = pool.next_plugged(entry.rq);
        }
        let plug = &cx.cpu.plug;
        let old = cx.rules().direct_issue != DirectIssue::UnlessBusy;
        if old || plug.multiple_queues || plug.has_elevator || self.from_schedule {
            return self.next_group(cx);
        }
        let settings = &cx.q.settings;
        self.mode = Mode::Plug;
        if settings.rules.direct_unplug == DirectUnplug::Traced {
            let count = self.rest.len() as u64;
            cx.trace_count(TraceAction::Unplug, count);
        }
        match settings.driver_queue_rqs {
            true => self.to(At::WholeQuiesced),
            false => self.next_request(cx),
        }
    }

    /// blk_mq_dispatch_plug_list(): all requests of one hctx and ctx, oldest first; the group of
    /// the newest request first where the plug is a stack. The others keep their order.
    fn next_group(&mut self, cx: &mut Cx<'_>) -> Next {
        let before = cx.q;
        if core::mem::take(&mut self.entered) && before.pool.held(cx.cpu.id).usage.exit() {
            self.at = At::Group;
            return wake_all(cx.cpu, self.queue);
        }
        let Some(lead) = self.rest.first() else {
            return self.free_cached(cx);
        };
        self.turn_to(cx, lead.queue);
        let count = self.gather(cx.mq, cx.cpu.id, lead);
        // percpu_ref_get() around the insertion and its run.
        cx.pool().usage.get(1);
        self.entered = true;
        let action = if self.from_schedule {
            TraceAction::UnplugTimer
        } else {
            TraceAction::Unplug
        };
        cx.trace_count(action, count);
        if cx.q.has_elevator() {
            self.at = At::Elevator;
            let group = core::mem::take(&mut self.group);
            let (insertion, next) = cx.q.elevator.start_insert(cx.q, group, false);
            self.insertion = insertion;
            return next;
        }
        match cx.rules().direct_issue {
            DirectIssue::UnlessBusy => self.to(At::Busy),
            DirectIssue::OfSeveral | DirectIssue::OfSeveralElseKblockd => self.want_ctx(),
        }
    }

    /// Moves the requests that are issued with `lead` out of the rest. Returns their number.
    fn gather(&mut self, mq: &BlkMq, cpu: CpuId, lead: Plugged) -> u64 {
        let q = mq.queue(lead.queue);
        let key = {
            let pool = q.pool.held(cpu);
            (pool[lead.rq].hctx, pool[lead.rq].ctx)
        };
        let mut others = PlugList::default();
        while let Some(entry) = self.rest.pop_front(mq, cpu) {
            let mut pool = q.pool.held(cpu);
            let same =
                entry.queue == lead.queue && (pool[entry.rq].hctx, pool[entry.rq].ctx) == key;
            if !same {
                drop(pool);
                others.push_back(mq, cpu, entry);
                continue;
            }
            match q.settings.rules.plug_order {
                PlugOrder::Lifo => self.group.push_front(&mut pool, entry.rq),
                PlugOrder::Fifo => self.group.push_back(&mut pool, entry.rq),
            }
        }
        self.rest = others;
        (self.hctx, self.ctx) = (key.0, key.1.0);
        self.group.len() as u64
    }

    /// blk_mq_free_plug_rqs(): cached requests that were not used.
    fn free_cached(&mut self, cx: &mut Cx<'_>) -> Next {
        self.at = At::Cached;
        if self.keep_cached || cx.cpu.plug.cached.is_empty() {
            // In the middle of a plug blk_add_rq_to_plug() does that.
            cx.cpu.plug.clock = NotState(None);
            return Next::Done;
        }
        self.turn_to(cx, cx.cpu.plug.cached_queue);
        let mut pool = cx.pool();
        let rq = cx.cpu.plug.cached.pop_front(&mut pool);
        let rq = rq.expect("there was one");
        drop(pool);
        cx.free(rq)
    }
}
