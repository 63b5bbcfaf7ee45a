//! A task's plug and its flush; direct issue of requests of a queue without scheduler.
//!
//! Deviation(D1): a plug holds requests of one queue; a task that turns to another flushes first.
//! Kernel: blk_add_rq_to_plug(), blk_mq_flush_plug_list(), blk_mq_try_issue_directly(),
//! blk_mq_try_issue_list_directly(), blk_mq_plug_issue_direct() (6.1.192, 6.12.117).

mod check;
mod issue;
mod whole;

use super::freeze::wake_all;
use super::insert;
use super::{Label, Next, TagStage, call_run, free_request, labels, lock, tag, trace_count};
use crate::elevator::{self, InsertStep};
use crate::env::{Count, Cpu, Env, Slab, TraceAction};
use crate::list::QueueList;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, Place, QueueId, RequestId, RequestPool, Status};
use crate::rules::{DirectUnplug, PlugOrder};

/// BLK_MAX_REQUEST_COUNT.
pub(super) const PLUG_MAX: u32 = 32;
/// BLK_PLUG_FLUSH_SIZE in sectors.
pub(super) const PLUG_FLUSH_SECTORS: u32 = 131_072 / 512;

/// A task's plug (blk_plug). The driver keeps it with the task and puts it into the running CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Plug {
    /// blk_start_plug() was called.
    pub active: bool,
    /// Whose requests it holds.
    pub queue: QueueId,
    /// The requests, oldest first whatever the rules say; `plug_order` picks the end.
    pub list: QueueList,
    /// Requests allocated ahead.
    pub cached: QueueList,
    /// How many bios the task announced (blk_start_plug_nr_ios).
    pub nr_ios: u16,
    /// A request with a scheduler tag was added.
    pub has_elevator: bool,
}

impl Plug {
    /// blk_start_plug_nr_ios(). Panics if the plug is active.
    pub fn start(&mut self, nr_ios: u16) {
        assert!(!self.active, "only the outermost plug counts");
        *self = Plug {
            active: true,
            nr_ios: nr_ios.clamp(1, PLUG_MAX as u16),
            ..Plug::default()
        };
    }

    /// Nothing to flush and nothing to free.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.cached.is_empty()
    }
}

/// Why a plug is flushed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unplug {
    /// blk_finish_plug().
    Finish,
    /// The task goes to sleep.
    Schedule,
    /// The plug is full: requests allocated ahead are kept.
    Full,
}

labels! {
    /// Labels of a plug flush.
    pub enum At in "plug" {
        /// Take the list; which way does it go?
        Take,
        /// Collect the next group of one hctx and ctx.
        Group,
        /// The scheduler's insert_requests: its section, where that has no name of its own.
        Elevator,
        /// Is the hctx busy?
        Busy,
        /// Under ctx->lock: insert what could not be issued.
        Ctx,
        /// Run the group's hctx.
        Run,
        /// queue_rqs: is the queue quiesced? If not, offer the first request.
        WholeQuiesced,
        /// queue_rqs: what did the driver say? Then offer the next request.
        WholeAnswer,
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
        /// Give the budget back.
        NoTag,
        /// What did the driver say? Read the moving average.
        Answer,
        /// Run the hctx whose dispatch list took a refused request.
        Refused,
        /// Direct issue is over.
        Issued,
        /// Write the moving average.
        BusyWrite,
        /// Free requests that were allocated ahead.
        Cached,
    }
}

/// How requests are issued directly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mode {
    /// One request without plug.
    Single,
    /// The whole plug (blk_mq_plug_issue_direct), or what queue_rqs left of it.
    Plug,
    /// One group (blk_mq_try_issue_list_directly).
    Group,
}

/// What the driver said to a request that was issued directly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Outcome {
    /// It has it.
    #[default]
    Taken,
    /// BLK_STS_RESOURCE or BLK_STS_DEV_RESOURCE.
    Refused,
    /// An error to end it with.
    Failed(Status),
}

/// A plug flush, or direct issue of one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlugPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    from_schedule: bool,
    keep_cached: bool,
    has_elevator: bool,
    mode: Mode,
    rest: QueueList,
    group: QueueList,
    insertion: elevator::InsertPath,
    hctx: HctxId,
    ctx: u16,
    /// The request of `Mode::Single`, until it is taken up.
    only: Option<RequestId>,
    rq: Option<RequestId>,
    get: tag::Search,
    queued: u32,
    failed: bool,
    outcome: Outcome,
    busy: i32,
    /// It uses the queue for a group that may be with the device by now.
    entered: bool,
}

impl PlugPath {
    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        self.get.stage()
    }

    /// __blk_flush_plug() of the running task's plug: the list, then requests allocated ahead.
    pub fn unplug(queue: QueueId, why: Unplug) -> PlugPath {
        PlugPath {
            at: At::Take,
            queue,
            from_schedule: why == Unplug::Schedule,
            keep_cached: why == Unplug::Full,
            has_elevator: false,
            mode: Mode::Group,
            rest: QueueList::new(),
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

    pub(super) fn step<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        match self.at {
            At::Take => self.take(q, cpu),
            At::Group => self.next_group(q, cpu),
            At::Elevator => match q.elevator.insert(&mut self.insertion, q, cpu) {
                InsertStep::Wait(next) => next,
                InsertStep::Done { touched } => {
                    self.insertion = elevator::InsertPath::Idle;
                    match touched {
                        true => self.to(At::Run),
                        false => self.run(cpu),
                    }
                }
            },
            At::Busy => {
                let busy = q.hctx(self.hctx).dispatch_busy.read(cpu) != 0;
                if busy || self.from_schedule {
                    return self.want_ctx();
                }
                self.mode = Mode::Group;
                self.to(At::Next)
            }
            At::Ctx => {
                insert::insert_ctx(mq, q, &mut self.group, false, cpu);
                self.to(At::Run)
            }
            At::Run => self.run(cpu),
            At::WholeQuiesced | At::WholeAnswer => self.whole(q, cpu),
            At::Cached => self.free_cached(q, cpu),
            _ => self.issue(mq, cpu),
        }
    }

    pub(super) fn label(&self) -> Label {
        self.insertion.label().unwrap_or(self.at.label())
    }

    /// Behind the request in hand it has nothing to hand over.
    pub fn is_last(&self) -> bool {
        self.rest.is_empty() && self.group.is_empty() && self.only.is_none()
    }

    /// What it inserts into the scheduler now.
    pub(super) fn insertion(&self) -> elevator::InsertPath {
        self.insertion
    }

    pub(super) fn group_in_hand(&self) -> QueueList {
        self.group
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn run(&mut self, cpu: &mut Cpu) -> Next {
        self.at = At::Group;
        call_run(cpu, self.queue, self.hctx, self.from_schedule)
    }

    fn want_ctx(&mut self) -> Next {
        self.at = At::Ctx;
        lock(self.queue, LockKind::Ctx, u32::from(self.ctx))
    }

    fn take<E: Env>(&mut self, q: &RequestQueue<E>, cpu: &mut Cpu) -> Next {
        self.rest = core::mem::take(&mut cpu.plug.list);
        self.has_elevator = cpu.plug.has_elevator;
        if self.rest.is_empty() {
            return self.free_cached(q, cpu);
        }
        let mut pool = q.pool.held(cpu.id);
        let mut next = self.rest.first();
        while let Some(rq) = next {
            pool[rq].place = Place::Path;
            next = self.rest.next(&pool, rq);
        }
        if self.has_elevator || self.from_schedule {
            drop(pool);
            return self.next_group(q, cpu);
        }
        let settings = &q.settings;
        let in_order = settings.rules.plug_order == PlugOrder::Fifo
            || (settings.driver_queue_rqs && settings.queue_rqs_in_order);
        self.mode = Mode::Plug;
        let mut taken = core::mem::take(&mut self.rest);
        if in_order {
            self.group = taken;
        } else {
            while let Some(rq) = taken.pop_back(&mut pool) {
                self.group.push_back(&mut pool, rq);
            }
        }
        drop(pool);
        if settings.rules.direct_unplug == DirectUnplug::Traced {
            trace_count(
                cpu,
                self.queue,
                TraceAction::Unplug,
                self.group.len() as u64,
            );
        }
        match settings.driver_queue_rqs {
            true => self.to(At::WholeQuiesced),
            false => self.next_request(q, cpu),
        }
    }

    /// All requests of one hctx and ctx, oldest first; the group of the newest request first
    /// where the plug is a stack.
    fn next_group<E: Env>(&mut self, q: &RequestQueue<E>, cpu: &mut Cpu) -> Next {
        let mut pool = q.pool.held(cpu.id);
        if core::mem::take(&mut self.entered) && pool.usage.exit() {
            drop(pool);
            self.at = At::Group;
            return wake_all(cpu, self.queue);
        }
        let lead = match q.settings.rules.plug_order {
            PlugOrder::Lifo => self.rest.last(),
            PlugOrder::Fifo => self.rest.first(),
        };
        let Some(lead) = lead else {
            drop(pool);
            return self.free_cached(q, cpu);
        };
        let key = (pool[lead].hctx, pool[lead].ctx);
        let in_group = |pool: &RequestPool, rq| (pool[rq].hctx, pool[rq].ctx) == key;
        if self.rest.iter(&pool).all(|rq| in_group(&pool, rq)) {
            self.group = core::mem::take(&mut self.rest);
        }
        let mut others = QueueList::new();
        while let Some(rq) = self.rest.pop_front(&mut pool) {
            let same = in_group(&pool, rq);
            let side = if same { &mut self.group } else { &mut others };
            side.push_back(&mut pool, rq);
        }
        self.rest = others;
        self.hctx = key.0;
        self.ctx = key.1.0;
        let count = self.group.len() as u64;
        // percpu_ref_get() around the insertion and its run.
        pool.usage.get(1);
        self.entered = true;
        drop(pool);
        let action = if self.from_schedule {
            TraceAction::UnplugTimer
        } else {
            TraceAction::Unplug
        };
        trace_count(cpu, self.queue, action, count);
        if q.has_elevator() {
            self.at = At::Elevator;
            let group = core::mem::take(&mut self.group);
            let (insertion, next) = q.elevator.start_insert(q, group, false);
            self.insertion = insertion;
            return next;
        }
        self.to(At::Busy)
    }

    /// blk_mq_free_plug_rqs(): requests that were allocated ahead for nothing.
    fn free_cached<E: Env>(&mut self, q: &RequestQueue<E>, cpu: &mut Cpu) -> Next {
        self.at = At::Cached;
        if self.keep_cached {
            return Next::Done;
        }
        let Some(rq) = cpu.plug.cached.pop_front(&mut q.pool.held(cpu.id)) else {
            return Next::Done;
        };
        free_request(cpu, self.queue, rq)
    }
}
