//! The interface of a scheduler with one lock: plain data; holding `&mut self` is holding that
//! lock.
//!
//! A policy has requests, bios and ticks, but no CPU, lock or price. `locked.rs` has the lock, the
//! word that has_work reads without it, and the counts of finished requests. Kernel:
//! block/elevator.h struct elevator_mq_ops (v6.1, v6.12).

#![warn(missing_docs)]

use crate::call::Token;
use core::any::Any;
use core::fmt::Debug;

use super::attribute::{StoreError, Value};
use super::hook::{After, TimerAsk};
use crate::env::Reading;
use crate::list::QueueList;
use crate::merge::{Merging, Side};
use crate::request::{
    BioId, CpuId, HctxId, IoContextId, Op, OpFlags, Request, RequestId, RequestPool, Sector,
    Sectors,
};
use crate::time::{Jiffies, SimTime};

/// Levels that a scheduler may count requests by; mq-deadline: RT, BE, IDLE.
pub const LEVELS: usize = 3;

/// A line of a scheduler's log that is no message: it marks the place of the next record that
/// blktrace itself writes in the call. These are the I of an insertion; the M or F of a bio, and
/// after it the M of the request that was absorbed; the M of each request that an insertion
/// absorbed. A record without such a mark comes after the last message.
pub const TRACED: &str = "\u{1}";

/// Answer to [`Scheduler::merge_bio`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BioMerge {
    /// The bio needs a request of its own.
    No,
    /// The bio has become part of a request.
    Into {
        /// The request that holds it now.
        rq: RequestId,
        /// How it joined, hence the letter of the trace.
        side: Side,
        /// A request that merged with its neighbour through the growth: it is empty, belongs to
        /// the caller and is freed without the lock. Its address is still in the pool, for the
        /// trace M that follows that of the bio.
        absorbed: Option<RequestId>,
    },
}

/// Answer to [`Scheduler::insert`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insertion {
    /// The request is in the scheduler: trace I.
    Inserted,
    /// The request was appended to another one, perhaps that again to another one. The list has all
    /// emptied requests, the last absorbed first, as the kernel stacks them: each was traced M in
    /// the reverse of this order. They belong to the caller.
    Absorbed(QueueList),
}

/// Answer to [`Scheduler::may_queue`] (ELV_MQUEUE_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayQueue {
    /// If the limits allow it.
    May,
    /// At once, regardless of the limits: the device idles for this request.
    Must,
}

/// The place of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InsertAt {
    /// BLK_MQ_INSERT_AT_HEAD: before everything, out of sort order and merging.
    Head,
    /// The scheduler's order.
    Sorted,
}

impl InsertAt {
    /// By the flag BLK_MQ_INSERT_AT_HEAD.
    pub fn by_flag(head: bool) -> InsertAt {
        if head {
            InsertAt::Head
        } else {
            InsertAt::Sorted
        }
    }
}

/// The time as a dispatch call sees it: the counter may move while it waits for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DispatchTime {
    /// Read on entry, before the lock; judges age.
    pub entered: Jiffies,
    /// Read under the lock; judges expiry.
    pub locked: Jiffies,
    /// ktime_get_ns() under the lock.
    pub time: SimTime,
    /// As in [`Now`].
    pub kept: bool,
}

impl DispatchTime {
    /// All readings at once.
    pub fn at(now: Now) -> DispatchTime {
        DispatchTime {
            entered: now.tick,
            locked: now.tick,
            time: now.time,
            kept: now.kept,
        }
    }

    /// As hooks see it.
    pub fn now(self) -> Now {
        Now {
            time: self.time,
            tick: self.locked,
            kept: self.kept,
        }
    }
}

/// The time as it is under the lock: both clocks stand still in a critical section.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Now {
    /// ktime_get_ns().
    pub time: SimTime,
    /// jiffies.
    pub tick: Jiffies,
    /// The clock is that of the task's plug, and does not advance (blk_time_get_ns(), v6.9 and
    /// later).
    pub kept: bool,
}

impl Now {
    /// The beginning of this tick.
    pub fn at_tick(tick: Jiffies, hz: u32) -> Now {
        let time = SimTime(tick.0 * (1_000_000_000 / u64::from(hz)));
        Now {
            time,
            tick,
            kept: false,
        }
    }
}

/// Where a call comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CalledOn {
    /// The CPU that runs it.
    pub cpu: CpuId,
    /// The hctx that is dispatched, or that a bio would go to; 0 in hooks.
    pub hctx: HctxId,
    /// Process id of a worker of kblockd that inserts requests of others; 0 in other calls.
    pub kworker: i32,
}

impl CalledOn {
    /// A call that is of no hctx.
    pub(super) fn by(cpu: CpuId) -> CalledOn {
        CalledOn {
            cpu,
            ..CalledOn::default()
        }
    }
}

/// Size of a scheduler-tag map, for [`Scheduler::limit_depth`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TagMapSize {
    /// log2 of the bits of one word (`sb.shift`).
    pub shift: u32,
    /// queue/nr_requests.
    pub nr_requests: u32,
}

/// The allocation that asks for a tag (struct blk_mq_alloc_data).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wanted {
    /// The operation.
    pub op: Op,
    /// Switches.
    pub flags: OpFlags,
    /// The I/O context of the submitter.
    pub io_context: IoContextId,
    /// The map of the allocation.
    pub map: TagMapSize,
}

impl Wanted {
    /// op_is_sync(): a read, or a write that its submitter waits for.
    pub fn is_sync(self) -> bool {
        is_sync(self.op, self.flags)
    }
}

/// op_is_sync(): a read, or a write that its submitter waits for.
#[inline]
pub(super) fn is_sync(op: Op, flags: OpFlags) -> bool {
    op == Op::Read || flags.sync || flags.is_flush()
}

/// Costs of a policy besides requests, which are counted where they are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Charge {
    /// Operations inside its containers: a step from node to node of a tree, a look-up in a hash.
    pub container_ops: u32,
    /// Its own cache lines that it wrote, one bit each;
    /// [`SchedulerInfo::lines`](super::SchedulerInfo::lines) is their number. A line that another
    /// CPU touched last is transferred, at a cost.
    pub lines: u32,
}

/// A change that a comparison with a recorded kernel makes to a scheduler, to continue from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Override {
    /// [`Scheduler::force_remove`].
    Remove(RequestId),
    /// [`Scheduler::force_dispatch`].
    Dispatch(RequestId),
    /// [`Scheduler::force_resize`].
    Resize(RequestId, Sector, Sectors),
}

/// A scheduler with one lock.
pub trait Scheduler: Any + Debug {
    /// Called before `merge_bio`, `insert`, `dispatch` and hooks, for a scheduler that has state of
    /// CPUs or hctxs. Default: nothing.
    fn called_on(&mut self, _on: CalledOn) {}

    /// Tries to make `bio` part of a request that is queued (bio_merge). Default: merges nothing.
    fn merge_bio(
        &mut self,
        _pool: &mut RequestPool,
        _bio: BioId,
        _now: Now,
        _merging: Merging<'_>,
    ) -> BioMerge {
        BioMerge::No
    }

    /// Inserts one request (insert_requests takes a list: this is called for each in turn). The
    /// request belongs to a path and is on no list; its `place` becomes
    /// [`Place::Elevator`](crate::request::Place::Elevator).
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Now,
        merging: Merging<'_>,
    ) -> Insertion;

    /// The next request for the device, or none for now; it is marked `started` and belongs to a
    /// path. `completed` counts finished requests by the level in `elv_priv`, which is kept outside
    /// the lock. A call without a result may change the state.
    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId>;

    /// The token that the next request needs: the number of a map of
    /// [`SchedulerInfo::tokens`](super::SchedulerInfo) that is not among `refused` (one bit for
    /// each map that was empty in this call). Called before a request is picked, for schedulers
    /// with tokens only. None: `dispatch` is called, for a request without a token. Default: none.
    fn wants_token(&mut self, _pool: &RequestPool, _refused: u8) -> Option<u8> {
        None
    }

    /// `dispatch` with the token that [`Scheduler::wants_token`] asked for, so there is a request.
    /// The request stores the token's number; its end puts the token ([`After::PutToken`]).
    ///
    /// # Panics
    /// If the scheduler asked for no token: this is the default.
    fn dispatch_with(
        &mut self,
        _pool: &mut RequestPool,
        _now: DispatchTime,
        token: Token,
    ) -> RequestId {
        unreachable!("{token:?} for a scheduler that asked for none")
    }

    /// True if a request is queued, startable or not.
    fn has_work(&self) -> bool;

    /// The same of an hctx: asked of schedulers that have requests of each
    /// ([`SchedulerInfo::single_queue`](super::SchedulerInfo::single_queue) is not set). Default:
    /// as of all.
    fn has_work_of(&self, _hctx: HctxId) -> bool {
        self.has_work()
    }

    /// A request is set up for a bio (prepare_request), without the lock: only `elv_priv` changes.
    /// Called if [`Hooks`](super::Hooks) has it, as are the next four. Default: nothing.
    fn prepare(&self, _rq: &mut Request) {}

    /// Before a request is allocated on the single-queue path: do the limits of that path apply to
    /// it (elv_may_queue(), up to v4.20)? Default: they do.
    fn may_queue(&mut self, _wanted: Wanted, _now: Now) -> MayQueue {
        MayQueue::May
    }

    /// A request of the single-queue path has been allocated and will be inserted: its process's
    /// state is set up, and referred to (elv_set_request(), up to v4.20). Between this call and the
    /// insertion other calls may come. Default: nothing.
    fn set_request(&mut self, _pool: &mut RequestPool, _rq: RequestId, _now: Now) -> After {
        After::Nothing
    }

    /// The driver looks at a dispatched request for the first time (elv_activate_rq(), up to
    /// v4.20). Single-queue path only; called again for a request that was put back. Default:
    /// nothing.
    fn activated(&mut self, _pool: &mut RequestPool, _rq: RequestId, _now: Now) {}

    /// After the last call the queue must be run before that call returns, under the lock that it
    /// was called with: __blk_run_queue() by a scheduler of the single-queue path, in the
    /// background by others. Called after `insert`, and after `merge_bio` of the multi-queue path.
    /// Default: never.
    fn take_run(&mut self) -> bool {
        false
    }

    /// The run that [`Scheduler::take_run`] asked for is over, still under the same lock: the work
    /// of the scheduler after its own call of __blk_run_queue(). Default: nothing.
    fn ran(&mut self) {}

    /// Requests that the last call gave to the driver outside any dispatch call, oldest first
    /// (elv_dispatch_add_tail() within an insertion: one that starts where another one does). They
    /// are marked `started` and belong to a path. Called after `insert` and `merge_bio`. Default:
    /// none.
    fn take_handed(&mut self, _pool: &mut RequestPool) -> QueueList {
        QueueList::new()
    }

    /// All queued requests go to the driver now, in this order (a dispatch call with `force`): for
    /// a barrier, or a change of the scheduler. They are marked `started` and belong to a path.
    /// Default: for a scheduler whose `dispatch` holds nothing back.
    fn drain(&mut self, pool: &mut RequestPool, now: Now) -> QueueList {
        let mut all = QueueList::new();
        while let Some(rq) = self.dispatch(pool, DispatchTime::at(now), [0; LEVELS]) {
            all.push_back(pool, rq);
        }
        all
    }

    /// All bios of a request that went through here have ended (completed_request). Default:
    /// nothing.
    fn completed(&mut self, _pool: &mut RequestPool, _rq: RequestId, _now: Now) -> After {
        After::Nothing
    }

    /// `requeued` and `finished` have to do with this request. For any other they are not called,
    /// and no lock is taken. Default: with all.
    fn ends(&self, _rq: &Request) -> bool {
        true
    }

    /// Its driver gives a request back, which will be inserted at head (requeue_request). Default:
    /// nothing.
    fn requeued(&mut self, _pool: &mut RequestPool, _rq: RequestId, _now: Now) -> After {
        After::Nothing
    }

    /// A request is about to be freed, also one that became part of another (finish_request).
    /// Default: nothing.
    fn finished(&mut self, _pool: &mut RequestPool, _rq: RequestId, _now: Now) -> After {
        After::Nothing
    }

    /// After a hook that returned [`After::RunHctxs`]: the next hctx to be run, each once (a call
    /// of blk_mq_run_hw_queue() by a wake function). Default: none.
    fn take_run_of(&mut self) -> Option<HctxId> {
        None
    }

    /// The last task of an I/O context has exited (exit_icq). Default: nothing.
    fn exits(&mut self, _pool: &mut RequestPool, _io_context: IoContextId, _now: Now) -> After {
        After::Nothing
    }

    /// The timer of this number has expired. Default: nothing.
    fn timer(&mut self, _pool: &mut RequestPool, _timer: u8, _now: Now) -> After {
        After::Nothing
    }

    /// The request for a timer after a call of `merge_bio`, `dispatch`, a hook, or several of
    /// `insert`. Default: nothing.
    fn take_timer(&mut self) -> Option<TimerAsk> {
        None
    }

    /// The shallow depth for this allocation, in the unit of the kernel's tag maps
    /// (`Rules::shallow_depth`); none: no limit. Not called for flush, passthrough and reserved
    /// requests. Without the lock. Default: never a limit.
    fn limit_depth(&self, _wanted: Wanted) -> Option<u32> {
        None
    }

    /// The line that [`Scheduler::limit_depth`] writes into the log. Default: none.
    fn limit_depth_message(&self, _wanted: Wanted) -> Option<String> {
        None
    }

    /// limit_depth takes the lock for this allocation: then [`Scheduler::limit_depth_locked`] is
    /// called instead, once for each allocation. Without the lock. Default: never.
    fn limits_under_lock(&self, _wanted: Wanted) -> bool {
        false
    }

    /// [`Scheduler::limit_depth`] of a scheduler that takes its lock for it. Default: as without.
    fn limit_depth_locked(&mut self, wanted: Wanted, _now: Now) -> Option<u32> {
        self.limit_depth(wanted)
    }

    /// queue/nr_requests changes (depth_updated, which kernels before 6.18 call while
    /// q->nr_requests is still the old one). Default: nothing.
    fn depth_updated(&mut self, _old: u32, _new: u32) {}

    /// Writes `text` to the attribute `name` while requests may be queued, as a write to sysfs
    /// would. Default: there is no attribute.
    fn store(&mut self, name: &str, _text: &str, _now: Now) -> Result<(), StoreError> {
        Err(StoreError::UnknownAttribute {
            scheduler: "this scheduler",
            name: name.to_owned(),
            known: Vec::new(),
        })
    }

    /// Names and values of its attributes. Default: none.
    fn shown(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Returns, line by line, the messages to blktrace since the last call (blk_add_trace_msg()),
    /// and drops them. The line [`TRACED`] marks the place of blktrace's own record of the call
    /// between two messages. Called after each call, if
    /// [`SchedulerInfo::logs`](super::SchedulerInfo) and `QueueSettings::log` are set. Default:
    /// nothing.
    fn take_log(&mut self, _each: &mut dyn FnMut(&str)) {}

    /// Decisions with lasting effect that explain figures of a run, as sentences, oldest first.
    /// Default: none.
    fn explanations(&self, _each: &mut dyn FnMut(&str)) {}

    /// Returns the counter readings since the last call, for curves over time. Called after
    /// dispatch calls and hooks, if curves are wanted. Default: nothing.
    fn take_readings(&mut self, _each: &mut dyn FnMut(Reading)) {}

    /// The clocks when a recorded kernel wrote the next lines, set by a comparison before each
    /// call: clocks that do not advance in a section then advance as that kernel's did between
    /// two of its lines. Default: nothing.
    fn lines_at(&mut self, _clocks: &[Now]) {}

    /// queue/rotational has been written. Default: nothing.
    fn rotates(&mut self, _rotational: bool) {}

    /// Costs besides requests since the last call. Default: none.
    fn take_charge(&mut self) -> Charge {
        Charge::default()
    }

    /// Panics unless all of the scheduler's structures agree with each other and the pool.
    fn check(&self, _pool: &RequestPool) {}

    /// The queue as text, for comparison with a kernel's. Default: nothing.
    fn show(&self, _pool: &RequestPool) -> String {
        String::new()
    }

    /// Removes `rq`, which is queued here, as if it had never been dispatched; it then belongs to a
    /// path.
    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId);

    /// Dispatches `rq`, which is queued here, regardless of the rules, and leaves the state as if
    /// they had selected it: a comparison with a recorded kernel continues from the kernel's
    /// choice. Default: for a scheduler without memory of dispatched requests.
    fn force_dispatch(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.force_remove(pool, rq);
        pool[rq].started = true;
    }

    /// Gives `rq`, which is queued here, the range that it has in the kernel after merges that this
    /// scheduler would have made otherwise. Default: for a scheduler that sorts nothing by range.
    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        pool[rq].sector = sector;
        pool[rq].sectors = sectors;
    }
}

/// Stores the level in whose `completed` count the request ends. Returns the level it had before.
pub(super) fn set_level(rq: &mut Request, level: usize) -> Option<usize> {
    let before = completed_level(rq.elv_priv);
    rq.elv_priv[0] = level as u32 + 1;
    before
}

/// The level in whose `completed` count a request with this `elv_priv` ends (finish_request), if a
/// scheduler counted it.
#[inline]
pub fn completed_level(elv_priv: [u32; 2]) -> Option<usize> {
    elv_priv[0].checked_sub(1).map(|level| level as usize)
}
