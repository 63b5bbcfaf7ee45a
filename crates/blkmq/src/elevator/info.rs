//! Static properties of a scheduler: its name, its treatment by blk-mq, its locks, and the probes
//! by which captures show it.
//!
//! Data only, one constant per scheduler, in its folder: reports, traces and queue setup read it
//! and need no scheduler by name.

use super::hook::{ElevatorTimer, Hooks};
use super::token::ElevatorTokens;
use crate::names::Label;
use crate::queue::IrqClass;
use crate::rules::{AsyncDepth, Rules, ShallowDepth};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SchedulerInfo {
    pub name: &'static str,
    /// The request paths of kernels that have the scheduler.
    pub path: RequestPath,
    /// It orders the whole queue, whichever hctx runs (ELEVATOR_F_MQ_AWARE missing, hence
    /// QUEUE_FLAG_SQ_SCHED).
    pub single_queue: bool,
    /// elevator_get_default() selects it where one hctx or one tag map serves the whole device.
    pub default_for_one_queue: bool,
    /// `Rules::series`, the January 2024 series, changes it.
    pub has_series: bool,
    /// `Rules::fair_queueing` are its rules; it has queues for each access range.
    pub fair_queueing: bool,
    /// The least shallow depth that it asks for.
    pub min_shallow_depth: MinShallow,
    /// Its locks; the index is the lock's number.
    pub locks: &'static [ElevatorLock],
    /// Its hooks; other hooks cost nothing.
    pub hooks: Hooks,
    /// Its timers; the index is the timer's number.
    pub timers: &'static [ElevatorTimer],
    /// Tokens that requests need to be dispatched; the index is the map's number.
    pub tokens: &'static [ElevatorTokens],
    /// Labels of its own dispatch call, under its lock, that come before [`Pass::Pick`] of the
    /// caller: a trace check stops there, too.
    ///
    /// [`Pass::Pick`]: crate::path::label::Pass::Pick
    pub picks: &'static [Label],
    /// The number of its own cache lines in `Charge::lines`, at most 32.
    pub lines: u8,
    /// The file of a control group with its weight for this scheduler.
    pub group_weight: Option<&'static str>,
    /// It is modelled above a multipath device of kernels 4.5 to 4.12 on the single-queue path.
    pub above_mapped: bool,
    /// It reads queue/rotational, among others when it is selected.
    pub reads_rotational: bool,
    /// It writes messages to blktrace ([`Scheduler::take_log`](super::Scheduler::take_log)).
    pub logs: bool,
    /// Its critical sections read the clock (ktime_get_ns(), blk_time_get_ns()): in a plug that
    /// keeps the time [`Now::kept`](super::Now::kept) is set.
    pub reads_clock: bool,
    /// insert_requests takes the lock for each request of a list separately.
    pub inserts_each: bool,
    /// Names of probes on its functions.
    pub probes: Probes,
}

impl SchedulerInfo {
    /// Properties of a scheduler with these locks and nothing else: it orders the whole queue, and
    /// its probes have the names of mq hooks.
    pub const fn plain(name: &'static str, locks: &'static [ElevatorLock]) -> SchedulerInfo {
        SchedulerInfo {
            name,
            path: RequestPath::Any,
            single_queue: true,
            default_for_one_queue: false,
            has_series: false,
            fair_queueing: false,
            min_shallow_depth: MinShallow::Unlimited,
            locks,
            hooks: Hooks::NONE,
            timers: &[],
            tokens: &[],
            picks: &[],
            lines: 0,
            group_weight: None,
            above_mapped: true,
            reads_rotational: false,
            logs: false,
            reads_clock: false,
            inserts_each: false,
            probes: Probes {
                insert: "ins",
                dispatch_entry: "dispe",
                dispatch_return: "disp",
                finish: "fin",
                deadlines: true,
                events: None,
                log: None,
            },
        }
    }
}

/// The path of requests from submission to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestPath {
    /// blk-mq.
    MultiQueue,
    /// One queue, one lock and the driver's request_fn (up to v4.20).
    SingleQueue,
    Any,
}

/// The depth that a scheduler passes to sbitmap_queue_min_shallow_depth().
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MinShallow {
    /// It limits no depth.
    Unlimited,
    Depth(u32),
    /// [`shallow_share`] of this many percent.
    Percent(u32),
    /// 1; or queue/async_depth, at first nr_requests (v7.0).
    OneOrAll,
}

impl MinShallow {
    /// In the unit of a map whose shift this is, if depth_updated saw nr_requests as `seen`.
    pub fn of(self, rules: &Rules, shift: u32, seen: u32) -> Option<u32> {
        match self {
            MinShallow::Unlimited => None,
            MinShallow::Depth(depth) => Some(depth),
            MinShallow::Percent(percent) => {
                Some(shallow_share(percent, rules.shallow_depth, shift, seen))
            }
            MinShallow::OneOrAll => Some(match rules.async_depth {
                AsyncDepth::OfQueue => seen,
                _ => 1,
            }),
        }
    }
}

/// So many percent of the tags, rounded down: of each word, or of nr_requests.
pub fn shallow_share(percent: u32, rule: ShallowDepth, shift: u32, nr_requests: u32) -> u32 {
    match rule {
        ShallowDepth::PerWord => (1 << shift) * percent / 100,
        ShallowDepth::Total => nr_requests * percent / 100,
    }
}

/// A lock of a scheduler, or several of a kind.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct ElevatorLock {
    pub name: &'static str,
    /// The contexts that can interrupt the owner.
    pub irq_class: IrqClass,
}

impl ElevatorLock {
    /// A lock that disables interrupts.
    pub const fn irq_save(name: &'static str) -> ElevatorLock {
        ElevatorLock {
            name,
            irq_class: IrqClass::IrqSave,
        }
    }

    /// A lock that leaves interrupts as they are.
    pub const fn plain(name: &'static str) -> ElevatorLock {
        ElevatorLock {
            name,
            irq_class: IrqClass::Plain,
        }
    }
}

/// Limit of locks per scheduler: a lock's number has four bits in a `LockId`.
pub const ELEVATOR_LOCKS_MAX: usize = 16;

/// Names of the probes on a scheduler's functions, as `ftrace.txt` of a capture has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Probes {
    /// A request reaches insert_requests.
    pub insert: &'static str,
    /// Entry of dispatch_request.
    pub dispatch_entry: &'static str,
    pub dispatch_return: &'static str,
    /// finish_request.
    pub finish: &'static str,
    /// The probe on dispatch_request shows the deadline of the request, the one on finish_request
    /// the tick; otherwise the first shows the request as insertion does, the second its scheduler
    /// tag.
    pub deadlines: bool,
    /// Trace events of a scheduler with tokens.
    pub events: Option<TokenEvents>,
    /// Marks of calls in the messages of its log in blktrace.
    pub log: Option<LogMarks>,
}

/// Messages by which the log of a scheduler shows its calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LogMarks {
    /// Prefix of the first line of a dispatch call.
    pub dispatch: &'static str,
    /// Part of a line of each dispatch call that returns a request.
    pub gives: &'static str,
    /// Part of a line of each call for a process that exits.
    pub exit: &'static str,
    /// Prefix of lines that are written without the scheduler's lock.
    pub unlocked: Option<&'static str>,
    /// Part of a line, before the whole ticks in ms since a tick that its object keeps.
    pub ticks: &'static str,
    /// Part of a line of the section at whose end an object takes that tick.
    pub takes_tick: &'static str,
}

/// Names of trace events of a scheduler that adapts the number of its tokens to latency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TokenEvents {
    /// A percentile was calculated.
    pub percentile: &'static str,
    /// The number of tokens changed.
    pub depth: &'static str,
    /// No token was free for a request.
    pub throttled: &'static str,
}
