//! The CPU as a path sees it: its number, the time, answers, effects, and the lines it touched.
//!
//! Not a CPU model: the driver decides when and whether this CPU runs.

use super::line::Meter;
use crate::call::{BioWork, Call};
use crate::dm::PathId;
use crate::dm::multipath::Uevent;
use crate::plug::Plug;
use crate::request::{
    BioId, CpuId, HctxId, IoPrio, Op, OpFlags, QueueId, RequestId, Sector, Sectors, Status, Tag,
};
use crate::time::{Duration, Jiffies, SimTime};
use crate::waiter::WaiterId;

/// Effects that one label may leave at most.
pub const OUTBOX_LIMIT: usize = 16;

/// Work for the driver after the label, without an answer for the path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// blk_mq_delay_run_hw_queue(): (re)schedules the hctx's one run_work item after `delay`.
    Kick {
        queue: QueueId,
        hctx: HctxId,
        /// Zero: at once.
        delay: Duration,
    },
    /// blk_mq_delay_run_hw_queues(): as `Kick`, unless the work item is pending already.
    KickUnlessPending {
        queue: QueueId,
        hctx: HctxId,
        /// Until then.
        delay: Duration,
    },
    /// blk_mq_kick_requeue_list().
    KickRequeue { queue: QueueId },
    /// A bio has ended; the slot is still its own until the driver frees it.
    BioEnd {
        queue: QueueId,
        bio: BioId,
        status: Status,
    },
    /// Wakes a task that waits for a tag.
    Wake(WaiterId),
    /// Wakes a task that goes to sleep now after this time (msleep()).
    WakeLater { waiter: WaiterId, after: Duration },
    /// mod_timer() of the queue's timeout timer: replaces the expiry that was set before.
    Timeout {
        queue: QueueId,
        /// Later than now, whole ticks.
        after: Duration,
    },
    /// Sets a timer of the queue's scheduler.
    Arm {
        queue: QueueId,
        timer: u8,
        /// Later than now.
        after: Duration,
    },
    /// Cancels a timer of the queue's scheduler.
    Cancel { queue: QueueId, timer: u8 },
    /// blk_mq_complete_request() of a request of a mapped queue whose clone has ended, or that gets
    /// none: runs before the next label.
    Complete { queue: QueueId, rq: RequestId },
    /// queue_kthread_work(): the thread of a mapped queue of the single-queue kind maps a request
    /// by a [`MapPath`](crate::path::MapPath), in the order of the calls.
    Map { queue: QueueId, rq: RequestId },
    /// kthread_flush_worker(): wakes a task that goes to sleep now when that thread has finished
    /// all work queued before.
    FlushMapper { queue: QueueId, waiter: WaiterId },
    /// blk_mq_delay_kick_requeue_list(): kicks the requeue list after this delay.
    KickRequeueLater { queue: QueueId, after: Duration },
    /// blk_mq_run_hw_queues(async = true), of a target.
    RunQueue { queue: QueueId },
    /// queue_delayed_work() of the activation of a path (kmpath_handlerd).
    Activate {
        queue: QueueId,
        path: PathId,
        /// Zero: at once.
        after: Duration,
    },
    /// queue_work() of a bio-based device: a worker runs [`BioWorkPath`](crate::path::BioWorkPath)
    /// once, however often it is queued before it begins.
    BioWork {
        /// Number of the device's queue.
        queue: QueueId,
        what: BioWork,
    },
    /// Sets or cancels the timer of held requests.
    PathTimer {
        queue: QueueId,
        /// Later than now.
        after: Option<Duration>,
    },
    /// dm_path_uevent(): a uevent about a path.
    Uevent { queue: QueueId, event: Uevent },
}

/// The device's answer to `Next::Submit` (blk_status_t of queue_rq), and results of calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Answer {
    /// The path asked for nothing.
    #[default]
    None,
    /// BLK_STS_OK: accepted.
    Ok,
    /// BLK_STS_RESOURCE: no completion of this queue frees the missing resource.
    Resource,
    /// BLK_STS_DEV_RESOURCE: the driver will run the queue again itself.
    DevResource,
    /// Any error: the path ends the request with it.
    Error(Status),
    /// get_budget gave this token.
    Budget(u32),
    /// get_budget gave nothing.
    NoBudget,
    /// The try-lock acquired the lock.
    Locked,
    /// The lock was held.
    Contended,
    /// The scheduler's token with this number was taken.
    Token(u32),
    /// The scheduler has no token left.
    NoToken,
    /// The flush machine did not take the request over: it continues as any write.
    GoOn,
    /// blk_lld_busy(): the driver of a queue is busy; otherwise `GoOn`.
    Busy,
    /// This clone was allocated.
    Clone(RequestId),
    /// A trace check: a task that sleeps for a tag tries again, `limited` by limit_depth() or for
    /// any, since its capture does not show which tags were taken.
    LookAgain { limited: bool },
}

/// The panic of debug builds if a label continues after it has released a lock.
const GOES_ON: &str = "a label goes on after it has released a lock";

/// Effects of one label, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[repr(C)]
pub struct Outbox {
    len: u8,
    /// The label has released a lock and so must end (debug builds).
    closed: bool,
    effects: [Option<Effect>; OUTBOX_LIMIT],
}

impl Outbox {
    /// Adds an effect. Panics when a label leaves more than `OUTBOX_LIMIT`.
    pub fn push(&mut self, effect: Effect) {
        debug_assert!(!self.closed, "{GOES_ON}");
        let slot = usize::from(self.len);
        assert!(
            slot < OUTBOX_LIMIT,
            "a label left more effects than the outbox holds"
        );
        self.effects[slot] = Some(effect);
        self.len += 1;
    }

    /// Takes effect number `index` of this label; `None` after the last, which also empties the
    /// outbox.
    pub fn take(&mut self, index: usize) -> Option<Effect> {
        if index < usize::from(self.len) {
            return self.effects[index].take();
        }
        self.len = 0;
        None
    }

    pub fn is_full(&self) -> bool {
        usize::from(self.len) == OUTBOX_LIMIT
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Kind of a trace point, named after blktrace's letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TraceAction {
    /// Q: a bio enters.
    Queue,
    /// X: a bio was split; payload: first sector of the remainder.
    Split,
    /// M: a bio joined the end of a request, or a request was absorbed.
    BackMerge,
    /// F: a bio joined the front of a request.
    FrontMerge,
    /// G: a request was allocated.
    GetRq,
    /// P: first request in an empty plug.
    Plug,
    /// U: plug flushed explicitly (payload: requests), or commit_rqs.
    Unplug,
    /// UT: plug flushed because the task sleeps; payload: requests.
    UnplugTimer,
    /// I: inserted in a scheduler or ctx list.
    Insert,
    /// D: with the driver.
    Issue,
    /// R: taken back.
    Requeue,
    /// C: completed.
    Complete,
    /// A: a clone of a request of the mapped queue above; payload: first sector there.
    Remap,
    /// A message of the scheduler (BLK_TN_MESSAGE).
    Message(TraceMsg),
    /// A function of the scheduler. Not in blktrace: captures record these with probes.
    Probe(Probe),
}

/// The position of a message's text in [`Cpu::messages`], until it is taken from there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TraceMsg {
    from: u32,
    bytes: u32,
}

impl TraceMsg {
    /// So many bytes from there on.
    ///
    /// # Panics
    /// Beyond 4 GiB.
    pub fn at(from: usize, bytes: usize) -> TraceMsg {
        let small = |size: usize| u32::try_from(size).expect("messages of less than 4 GiB");
        TraceMsg {
            from: small(from),
            bytes: small(bytes),
        }
    }

    pub fn text(self, messages: &str) -> &str {
        &messages[self.from as usize..][..self.bytes as usize]
    }

    /// The same text after so many bytes of other messages.
    #[must_use]
    pub fn shifted(self, bytes: usize) -> TraceMsg {
        TraceMsg::at(self.from as usize + bytes, self.bytes as usize)
    }
}

/// Arguments of a probe on a function of the scheduler. Recorded when probing is on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Probe {
    /// A request reaches the insertion, under the scheduler's lock.
    Arrive {
        rq: RequestId,
        tag: Option<u32>,
        tick: Jiffies,
    },
    /// The dispatch function is called, before the scheduler's lock.
    Ask {
        hctx: HctxId,
        /// At that time.
        tick: Jiffies,
    },
    /// The dispatch function returns, after the lock is released.
    Answer {
        /// The chosen request, if any.
        rq: Option<RequestId>,
        deadline: Jiffies,
        tag: Option<u32>,
        tick: Jiffies,
    },
    /// A request needs a token of this kind, and none is free.
    Throttled {
        /// The scheduler's name of these tokens.
        group: &'static str,
    },
    /// A percentile of latencies was calculated.
    Percentile(Percentile),
    /// The number of tokens of this kind has changed.
    Depth {
        /// The scheduler's name of these tokens.
        group: &'static str,
        depth: u32,
    },
    /// The scheduler's hook of a completed request.
    Finish {
        rq: RequestId,
        tag: Option<u32>,
        tick: Jiffies,
    },
    /// A value that no kernel event has: for plots over time.
    Reading(Reading),
}

/// A kind of value that a scheduler records, a constant of its own, with the meaning of its curve.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Counter {
    pub name: &'static str,
    /// The meaning of a value for the time around it.
    pub form: CounterForm,
    pub unit: CounterUnit,
    /// Name of the counter to which a plot compares it, as its aim.
    pub beside: Option<&'static str>,
}

impl Counter {
    /// A counter with nothing beside it.
    pub const fn new(name: &'static str, form: CounterForm, unit: CounterUnit) -> Counter {
        Counter {
            name,
            form,
            unit,
            beside: None,
        }
    }
}

/// The meaning of a value for the time around it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CounterForm {
    /// Valid until the next value.
    Level,
    /// Valid only at its time.
    Sample,
    /// An increment.
    Count,
    /// Which member has its turn, recorded at each change as long as there is room: [`TURN_OVER`],
    /// [`TURN_SERVED`] or [`TURN_AWAITED`]. One queue of a scheduler has the turn at a time.
    Turn,
}

pub const TURN_OVER: u64 = 0;
/// The queue is served.
pub const TURN_SERVED: u64 = 1;
/// The queue is in service, and the device idles for its next request.
pub const TURN_AWAITED: u64 = 2;

/// The unit of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CounterUnit {
    Number,
    /// Sectors of 512 bytes.
    Sectors,
    Nanoseconds,
    /// Thousandths of the target.
    OfTarget,
}

/// A value of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reading {
    pub counter: &'static Counter,
    /// The scheduler's name of the group.
    pub group: &'static str,
    /// The member of the group.
    pub which: Which,
    pub value: u64,
}

/// The member of a group that a reading belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Which {
    /// The group has one member.
    One,
    /// A queue of some process's requests.
    Queue {
        /// Number of the queue, unique among the queues that exist at the time.
        number: u32,
        /// Process that created it; negative if several processes share it.
        pid: i32,
        /// The queue holds synchronous requests.
        sync: bool,
        /// Index of its cgroup in the [submitters'](crate::elevator::Submitters::groups); 0 is the
        /// root.
        cgroup: u16,
    },
}

/// A percentile of latencies, as the bucket of a histogram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Percentile {
    /// The scheduler's name of these requests.
    pub group: &'static str,
    pub kind: &'static str,
    /// In percent.
    pub percentile: u8,
    /// The upper end of its bucket, as a share of the target.
    pub numerator: u8,
    pub denominator: u8,
    pub samples: u32,
}

/// The request of a trace point, and what it holds at that time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TracedRequest {
    /// Its number in the pool of its queue.
    pub id: RequestId,
    pub hctx: HctxId,
    pub tag: Option<Tag>,
    pub internal_tag: Option<Tag>,
}

/// One event of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TracePoint {
    pub action: TraceAction,
    /// Number of the queue in its `BlkMq`.
    pub queue: QueueId,
    /// Operation (READ for events without one, as blktrace has it).
    pub op: Op,
    pub flags: OpFlags,
    /// First sector.
    pub sector: Sector,
    pub sectors: Sectors,
    /// Of a request, not of a bio: blktrace marks those FS.
    pub of_request: bool,
    /// The request of the event; none of a bio without one, or of a plug.
    pub request: Option<TracedRequest>,
    pub status: Status,
    pub ioprio: IoPrio,
    /// Payload of U, UT, X and A.
    pub payload: u64,
}

/// The current tick: divided once, not at each read of the clock.
#[derive(Clone, Debug, Default)]
struct Tick {
    hz: u32,
    number: Jiffies,
    began_ps: u64,
    ends_ps: u64,
}

impl Tick {
    fn at(now: SimTime, hz: u32) -> Tick {
        let length = 1_000_000_000 / u64::from(hz);
        let number = now.jiffies(hz);
        Tick {
            hz,
            number,
            began_ps: number.0 * length * 1000,
            ends_ps: (number.0 + 1) * length * 1000,
        }
    }
}

/// The running CPU.
///
/// Fields are in order of use: those that every label accesses share few cache lines of the
/// computer that simulates.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Cpu {
    /// Costs of the label.
    pub meter: Meter,
    /// Its own virtual time, picoseconds. A driver without prices does not advance it.
    pub at_ps: u64,
    /// Events of the label, when tracing is on.
    pub trace: Vec<TracePoint>,
    /// Text of the messages among them; taken together with them ([`Cpu::take_trace`]).
    pub messages: String,
    /// Readings of a policy, taken after the release of its lock; empty but for its capacity.
    pub(crate) readings: Vec<Reading>,
    pub id: CpuId,
    /// Another task waits for this CPU: long loops end early.
    pub need_resched: bool,
    pub tracing: bool,
    /// The functions of schedulers are probed, too.
    pub probing: bool,
    /// Scheduler events that kernels have are recorded, independent of other events.
    pub reporting: bool,
    /// Counters of schedulers are recorded, which may change with each request.
    pub counting: bool,
    /// Owner id of the locks that this CPU takes: differs for each frame.
    pub owner: u32,
    /// Locks held by this context.
    pub(crate) locks_held: u32,
    /// Shared accesses of this label outside locks (debug builds).
    pub(crate) accesses: u32,
    /// A shared word was accessed since the last [`Cpu::take_accessed`].
    accessed: bool,
    /// Answer to the last `Next::Submit` or budget request.
    pub answer: Answer,
    pub outbox: Outbox,
    /// The running task, as wait queues know it.
    pub task: WaiterId,
    /// Process id of the running task, if that is a worker of kblockd; else 0.
    pub kworker: i32,
    pub call: Option<Call>,
    pub plug: Plug,
    tick: Tick,
    /// State of the stream that `random_below` draws from; zero makes every draw zero (explorer).
    pub random: u64,
    /// When the label with the last trace point began.
    pub traced_at: SimTime,
    /// The answer of the scheduler's has_work(), where a recorded kernel shows it.
    pub replayed_has_work: Option<bool>,
    /// The answer of blk_time_get_ns() where the task of a recorded kernel had read the clock in
    /// this plug before (`Rules::plug_keeps_time`); none: the time.
    pub ktime: Option<SimTime>,
}

impl Cpu {
    /// A CPU at time zero with tracing off.
    pub fn new(id: CpuId) -> Cpu {
        Cpu {
            id,
            owner: u32::from(id.0),
            task: WaiterId(0),
            kworker: 0,
            at_ps: 0,
            answer: Answer::None,
            call: None,
            outbox: Outbox::default(),
            meter: Meter::default(),
            plug: Plug::default(),
            random: 0,
            need_resched: false,
            trace: Vec::new(),
            messages: String::new(),
            readings: Vec::new(),
            traced_at: SimTime::ZERO,
            replayed_has_work: None,
            ktime: None,
            tracing: false,
            probing: false,
            reporting: false,
            counting: false,
            accesses: 0,
            accessed: false,
            locks_held: 0,
            tick: Tick::default(),
        }
    }

    /// Virtual time of the label.
    #[inline]
    pub fn now(&self) -> SimTime {
        SimTime(self.at_ps / 1000)
    }

    /// Takes the path that `Next::Call` names. Panics if there is none.
    pub fn take_call(&mut self) -> Call {
        self.call
            .take()
            .expect("a path that returns Next::Call names a path to call")
    }

    /// Called by the driver before each label.
    #[inline]
    pub fn begin_label(&mut self) {
        if cfg!(debug_assertions) {
            self.accesses = 0;
        }
        self.outside_labels();
    }

    /// Moves the trace points out, and appends their messages to `messages`; both buffers keep
    /// their capacity.
    pub fn take_trace(&mut self, messages: &mut String, mut each: impl FnMut(TracePoint)) {
        let before = messages.len();
        messages.push_str(&self.messages);
        self.messages.clear();
        for mut point in self.trace.drain(..) {
            if let TraceAction::Message(said) = &mut point.action {
                *said = said.shifted(before);
            }
            each(point);
        }
    }

    /// The label left nothing for the driver: no effects, no trace points.
    pub fn is_quiet(&self) -> bool {
        self.outbox.is_empty() && self.trace.is_empty()
    }

    /// Shared words were accessed since the last call.
    pub fn take_accessed(&mut self) -> bool {
        core::mem::take(&mut self.accessed)
    }

    /// Locks that this context holds.
    pub fn locks_held(&self) -> u32 {
        self.locks_held
    }

    /// The tick of the label, at `hz` ticks a second.
    #[inline]
    pub(crate) fn jiffies(&mut self, hz: u32) -> Jiffies {
        let (at, tick) = (self.at_ps, &self.tick);
        if at < tick.began_ps || at >= tick.ends_ps || hz != tick.hz {
            self.tick = Tick::at(self.now(), hz);
        }
        self.tick.number
    }

    /// The tick at this CPU's present time, where a recorded kernel shows it.
    pub fn replay_tick(&mut self, number: Jiffies, hz: u32) {
        self.tick = Tick {
            hz,
            number,
            began_ps: self.at_ps,
            ends_ps: self.at_ps + 1,
        };
    }

    /// A random number below `n`, from the CPU's stream (kernel: get_random_u32_below()).
    pub fn random_below(&mut self, n: u32) -> u32 {
        if self.random == 0 {
            return 0;
        }
        // xorshift64*: the state never becomes zero.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let draw = self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((draw * u64::from(n)) >> 32) as u32
    }

    /// A trace point: one call inside the transition it reports.
    #[inline]
    pub fn emit(&mut self, point: TracePoint) {
        self.goes_on();
        if self.tracing {
            self.record(point);
        }
    }

    /// The same for an event at the end of a label, after a release.
    pub(crate) fn emit_at_end(&mut self, point: TracePoint) {
        if self.tracing {
            self.record(point);
        }
    }

    /// The same for an event of the scheduler.
    pub(crate) fn emit_probe(&mut self, point: TracePoint) {
        self.goes_on();
        if self.tracing || self.reporting {
            self.record(point);
        }
    }

    #[cold]
    fn record(&mut self, point: TracePoint) {
        self.traced_at = self.now();
        self.trace.push(point);
    }

    /// A lock was released: that ends the label.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn released(&mut self) {
        if cfg!(debug_assertions) {
            self.outbox.closed = true;
        }
    }

    /// Code outside of paths runs, between two labels.
    #[inline]
    pub(crate) fn outside_labels(&mut self) {
        if cfg!(debug_assertions) {
            self.outbox.closed = false;
        }
    }

    /// An operation that a label must not do after it has released a lock.
    #[inline]
    pub(crate) fn goes_on(&self) {
        debug_assert!(!self.outbox.closed, "{GOES_ON}");
    }

    /// Counts one shared access; a second one in the same label outside locks is a mistake, which
    /// debug builds report.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn note_access(&mut self) {
        self.goes_on();
        self.accessed = true;
        if cfg!(debug_assertions) {
            self.accesses += u32::from(self.locks_held == 0);
            assert!(self.accesses <= 1, "two shared accesses in one label");
        }
    }
}
