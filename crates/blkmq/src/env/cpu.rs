//! The CPU as a path sees it: its name, the time, answers, effects and what it touched.
//!
//! Not a CPU model: the driver decides when and whether this CPU runs.

use super::line::Meter;
use crate::dm::PathId;
use crate::dm::multipath::Uevent;
use crate::path::{BioWork, Call, Plug};
use crate::request::{
    BioId, CpuId, HctxId, IoPrio, Op, OpFlags, QueueId, RequestId, Sector, Sectors, Status,
};
use crate::tags::WaiterId;
use crate::time::{Duration, Jiffies, SimTime};

/// Effects that one label may leave at most.
pub const OUTBOX_LIMIT: usize = 16;

/// Something for the driver to do after the label, without an answer for the path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// blk_mq_delay_run_hw_queue(): (re)schedules the hctx's one run_work item after `delay`.
    Kick {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
        hctx: HctxId,
        /// Zero: at once.
        delay: Duration,
    },
    /// blk_mq_delay_run_hw_queues(): as `Kick`, unless the work item is pending already.
    KickUnlessPending {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
        hctx: HctxId,
        /// Until then.
        delay: Duration,
    },
    /// blk_mq_kick_requeue_list().
    KickRequeue {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
    },
    /// A bio has ended; the slot is still its own until the driver frees it.
    BioEnd {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
        bio: BioId,
        status: Status,
    },
    /// A task that waits for a tag is made runnable.
    Wake(WaiterId),
    /// A task that goes to sleep now is made runnable so much later (msleep()).
    WakeLater { waiter: WaiterId, after: Duration },
    /// mod_timer() of the queue's timeout timer: it expires so much later, whatever was asked for
    /// before.
    Timeout {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
        /// Later than now, whole ticks.
        after: Duration,
    },
    /// A timer of the queue's scheduler expires so much later.
    Arm {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
        timer: u8,
        /// Later than now.
        after: Duration,
    },
    /// It does not.
    Cancel {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
        timer: u8,
    },
    /// blk_mq_complete_request() of a request of a mapped queue whose clone has ended, or that
    /// gets none: runs before the next label.
    Complete {
        /// Number of the mapped queue.
        queue: QueueId,
        rq: RequestId,
    },
    /// queue_kthread_work(): the thread of a mapped queue of the single-queue kind is to map a
    /// request, as the [`MapPath`](crate::path::MapPath) of it, those that came before it first.
    Map {
        /// Number of the mapped queue.
        queue: QueueId,
        rq: RequestId,
    },
    /// kthread_flush_worker(): a task that goes to sleep now is made runnable when that thread is
    /// done with all that it was given before.
    FlushMapper {
        /// Number of the mapped queue.
        queue: QueueId,
        waiter: WaiterId,
    },
    /// blk_mq_delay_kick_requeue_list(): the list is kicked so much later.
    KickRequeueLater {
        /// Number of the queue in its `BlkMq`.
        queue: QueueId,
        after: Duration,
    },
    /// blk_mq_run_hw_queues(async = true), of a target.
    RunQueue {
        /// Number of the mapped queue.
        queue: QueueId,
    },
    /// queue_delayed_work() of the activation of a path (kmpath_handlerd).
    Activate {
        /// Number of the mapped queue.
        queue: QueueId,
        path: PathId,
        /// Zero: at once.
        after: Duration,
    },
    /// queue_work() of a bio-based device: a worker runs
    /// [`BioWorkPath`](crate::path::BioWorkPath), once however often it is asked for before it
    /// begins.
    BioWork {
        /// Number of the device's queue.
        queue: QueueId,
        /// Which of its work items.
        what: BioWork,
    },
    /// The timer of held requests expires so much later, or does not.
    PathTimer {
        /// Number of the mapped queue.
        queue: QueueId,
        /// Later than now.
        after: Option<Duration>,
    },
    /// dm_path_uevent(): user space hears of a path.
    Uevent {
        /// Number of the mapped queue.
        queue: QueueId,
        event: Uevent,
    },
}

/// The device's answer to `Next::Submit` (blk_status_t of queue_rq), and results of calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Answer {
    /// Nothing asked.
    #[default]
    None,
    /// BLK_STS_OK: accepted.
    Ok,
    /// BLK_STS_RESOURCE: no resource that a completion of this queue would bring back.
    Resource,
    /// BLK_STS_DEV_RESOURCE: the driver will run the queue again itself.
    DevResource,
    /// Any error: the request is to be ended with it.
    Error(Status),
    /// get_budget gave this token.
    Budget(u32),
    /// get_budget gave nothing.
    NoBudget,
    /// The try-lock got it.
    Locked,
    /// The try-lock did not get it.
    Contended,
    /// The scheduler's token with this number was taken.
    Token(u32),
    /// It has none to give.
    NoToken,
    /// The flush machine did not take the request over: it goes on as any write.
    GoOn,
    /// The driver of a queue says that it is busy; otherwise `GoOn`.
    Busy,
    /// This clone was allocated.
    Clone(RequestId),
}

/// What debug builds say of a label that releases a lock before its end.
const GOES_ON: &str = "a label goes on after it has released a lock";

/// Effects of one label, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[repr(C)]
pub struct Outbox {
    len: u8,
    /// The label has released a lock, and so is over (debug builds).
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

    /// Takes effect number `index` of this label; `None` behind the last, which also empties it.
    pub fn take(&mut self, index: usize) -> Option<Effect> {
        if index < usize::from(self.len) {
            return self.effects[index].take();
        }
        self.len = 0;
        None
    }

    /// True if a label has left as many effects as it may.
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == OUTBOX_LIMIT
    }

    /// True if there is nothing to do.
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
    /// M: a bio joined the end of a request, or a request was swallowed.
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
    /// A function of the scheduler. Not in blktrace: captures have probes on them.
    Probe(Probe),
}

/// Where the text of a message lies: in [`Cpu::messages`], until somebody takes it from there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TraceMsg {
    from: u32,
    bytes: u32,
}

impl TraceMsg {
    /// So many bytes from there on.
    ///
    /// # Panics
    /// Behind 4 GiB.
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

    /// Of messages that were put behind so many bytes of others.
    #[must_use]
    pub fn behind(self, bytes: usize) -> TraceMsg {
        TraceMsg::at(self.from as usize + bytes, self.bytes as usize)
    }
}

/// What a probe on a function of the scheduler sees. Recorded when probing is on.
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
    /// It returns, behind the lock.
    Answer {
        /// What it chose, if anything.
        rq: Option<RequestId>,
        deadline: Jiffies,
        tag: Option<u32>,
        tick: Jiffies,
    },
    /// No token of this kind was to be had for a request that is there.
    Throttled {
        /// What the scheduler calls them.
        group: &'static str,
    },
    /// A percentile of latencies was calculated.
    Percentile(Percentile),
    /// There are so many tokens of this kind now.
    Depth {
        /// What the scheduler calls them.
        group: &'static str,
        depth: u32,
    },
    /// The scheduler hears that a request is over.
    Finish {
        rq: RequestId,
        tag: Option<u32>,
        tick: Jiffies,
    },
    /// A value that no kernel's event has: for curves over time.
    Reading(Reading),
}

/// One thing that a scheduler's values are of, a constant of its own: it says what a curve of them
/// shows.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Counter {
    pub name: &'static str,
    /// What a value means for the time around it.
    pub form: CounterForm,
    pub unit: CounterUnit,
    /// Name of the gauge that it is to be seen beside, as its aim, if there is one.
    pub beside: Option<&'static str>,
}

/// What a value means for the time around it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CounterForm {
    /// It holds until the next one.
    Level,
    /// It holds for its moment alone.
    Sample,
    /// So much came to what there was.
    Count,
    /// Whose turn it is, kept change by change, as long as there is room: [`TURN_OVER`],
    /// [`TURN_SERVED`] or [`TURN_AWAITED`]. Of a queue's scheduler one has the turn at a time.
    Turn,
}

pub const TURN_OVER: u64 = 0;
/// It has its turn.
pub const TURN_SERVED: u64 = 1;
/// It still has, and the device waits for what it will send.
pub const TURN_AWAITED: u64 = 2;

/// What the numbers of a gauge are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CounterUnit {
    Number,
    /// Sectors of 512 bytes.
    Sectors,
    Nanoseconds,
    /// Thousandths of what is aimed at.
    OfTarget,
}

/// A value of a gauge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reading {
    pub counter: &'static Counter,
    /// Of which of the scheduler's groups, as it calls them.
    pub group: &'static str,
    /// Of which one of the group.
    pub which: Which,
    pub value: u64,
}

/// Which one of a scheduler's groups a reading is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Which {
    /// The group is but one.
    One,
    /// A queue of some process's requests.
    Queue {
        /// Number of the queue, that no other has at the same time.
        number: u32,
        /// Of the process that it was made for; below zero if several share it.
        pid: i32,
        /// It is of synchronous requests.
        sync: bool,
        /// Place of its cgroup among the
        /// [submitters'](crate::elevator::Submitters::groups); 0 is the root.
        cgroup: u16,
    },
}

/// A percentile of latencies, as the bucket of a histogram in which it lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Percentile {
    /// Of which requests, as the scheduler calls them.
    pub group: &'static str,
    pub kind: &'static str,
    /// Which one, in percent.
    pub percentile: u8,
    /// The upper end of its bucket, as a share of the target.
    pub numerator: u8,
    pub denominator: u8,
    pub samples: u32,
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
    pub status: Status,
    pub ioprio: IoPrio,
    /// Payload of U, UT, X and A.
    pub payload: u64,
}

/// The tick at hand: divided out once, not for each look at the clock.
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
/// In the order in which it is used: what every label touches lies on few cache lines of the
/// computer that simulates.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Cpu {
    /// What the label touched.
    pub meter: Meter,
    /// Its own virtual time, picoseconds. A driver without prices leaves it alone.
    pub at_ps: u64,
    /// Events of the label, when tracing is on.
    pub trace: Vec<TracePoint>,
    /// Text of the messages among them. Whoever takes those takes it, too ([`Cpu::take_trace`]).
    pub messages: String,
    /// What a policy shows, on its way out of the lock: empty but for its room.
    pub(crate) readings: Vec<Reading>,
    /// Its number.
    pub id: CpuId,
    /// Another task wants this CPU: long loops end early.
    pub need_resched: bool,
    pub tracing: bool,
    /// The functions of schedulers are probed, too.
    pub probing: bool,
    /// Events of schedulers that kernels have are recorded, whether anything else is or not.
    pub reporting: bool,
    /// So are their gauges, which may change with each request.
    pub counting: bool,
    /// Who owns the locks that are taken: differs for each frame of a CPU.
    pub owner: u32,
    /// Locks held by this context.
    pub(crate) locks_held: u32,
    /// Shared accesses of this label outside locks (debug builds).
    pub(crate) accesses: u32,
    /// A shared word was accessed; whoever wants to know takes it.
    accessed: bool,
    /// Answer to the last `Next::Submit` or budget request.
    pub answer: Answer,
    /// Effects of the label.
    pub outbox: Outbox,
    /// The running task, as wait queues know it.
    pub task: WaiterId,
    /// The path that `Next::Call` asks for.
    pub call: Option<Call>,
    /// The running task's plug.
    pub plug: Plug,
    tick: Tick,
    /// State of the stream behind `random_below`; zero makes every draw zero (explorer).
    pub random: u64,
    /// When the label with the last trace point began.
    pub traced_at: SimTime,
    /// What looks whether a scheduler has work find, where a recorded kernel tells.
    pub replayed_has_work: Option<bool>,
    /// What blk_time_get_ns() answers where a recorded kernel's task had read the clock in this
    /// plug before (`Rules::plug_keeps_time`); none: the time.
    pub ktime: Option<SimTime>,
}

impl Cpu {
    /// A CPU at time zero with tracing off.
    pub fn new(id: CpuId) -> Cpu {
        Cpu {
            id,
            owner: u32::from(id.0),
            task: WaiterId(0),
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

    /// Takes the path that `Next::Call` asks for. Panics if there is none.
    pub fn take_call(&mut self) -> Call {
        self.call
            .take()
            .expect("whoever returns Next::Call names a path")
    }

    /// Called by the driver before each label.
    #[inline]
    pub fn begin_label(&mut self) {
        if cfg!(debug_assertions) {
            self.accesses = 0;
        }
        self.outside_labels();
    }

    /// Hands over the trace points, and adds their messages to `messages`; both keep their room.
    pub fn take_trace(&mut self, messages: &mut String, mut each: impl FnMut(TracePoint)) {
        let before = messages.len();
        messages.push_str(&self.messages);
        self.messages.clear();
        for mut point in self.trace.drain(..) {
            if let TraceAction::Message(said) = &mut point.action {
                *said = said.behind(before);
            }
            each(point);
        }
    }

    /// The label left nothing for the driver: no effects, no trace points.
    pub fn is_quiet(&self) -> bool {
        self.outbox.is_empty() && self.trace.is_empty()
    }

    /// Words that CPUs share were accessed since the last call.
    pub fn take_accessed(&mut self) -> bool {
        core::mem::take(&mut self.accessed)
    }

    /// Locks that this context holds.
    pub fn locks_held(&self) -> u32 {
        self.locks_held
    }

    /// The tick that the label lies in, at `hz` ticks a second.
    #[inline]
    pub(crate) fn jiffies(&mut self, hz: u32) -> Jiffies {
        let (at, tick) = (self.at_ps, &self.tick);
        if at < tick.began_ps || at >= tick.ends_ps || hz != tick.hz {
            self.tick = Tick::at(self.now(), hz);
        }
        self.tick.number
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

    /// The same for what the end of a label is, behind a release.
    pub(crate) fn emit_at_end(&mut self, point: TracePoint) {
        if self.tracing {
            self.record(point);
        }
    }

    /// The same for what a scheduler tells over time.
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

    /// Somebody else than a path acts, between two labels.
    #[inline]
    pub(crate) fn outside_labels(&mut self) {
        if cfg!(debug_assertions) {
            self.outbox.closed = false;
        }
    }

    /// Something that a label does not do once it has released a lock.
    #[inline]
    pub(crate) fn goes_on(&self) {
        debug_assert!(!self.outbox.closed, "{GOES_ON}");
    }

    /// Notes one shared access; in debug builds a second one in the same label outside locks is
    /// our mistake.
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
