//! Static properties of a scheduler: its name, its treatment by blk-mq, its locks, and the probes
//! by which captures show it.
//!
//! Data only, one constant per scheduler, in its folder: reports, traces and queue setup read it
//! and need no scheduler by name.

use super::hook::{ElevatorTimer, Hooks};
use super::token::ElevatorTokens;
use crate::path::Label;
use crate::queue::IrqClass;
use crate::rules::ShallowDepth;

#[derive(PartialEq, Eq, Hash, Debug)]
pub struct SchedulerInfo {
    /// Name in queue/scheduler.
    pub name: &'static str,
    /// Which request paths of kernels have it.
    pub path: RequestPath,
    /// It orders the whole queue, whichever hctx runs (ELEVATOR_F_MQ_AWARE missing, hence
    /// QUEUE_FLAG_SQ_SCHED).
    pub single_queue: bool,
    /// elevator_get_default() takes it where one hctx or one tag map serves the whole device.
    pub default_for_one_queue: bool,
    /// `Rules::series`, the January 2024 series, changes it.
    pub has_series: bool,
    /// `FairQueueing::stable_merge` changes it.
    pub has_stable_merge: bool,
    /// The least shallow depth that it will ask for.
    pub min_shallow_depth: MinShallow,
    /// Its locks; a lock's number is its place here.
    pub locks: &'static [ElevatorLock],
    /// Hooks that it wants to be called; those that it does not cost nothing.
    pub hooks: Hooks,
    /// Its timers; a timer's number is its place here.
    pub timers: &'static [ElevatorTimer],
    /// Tokens that requests need to be dispatched; a map's number is its place here.
    pub tokens: &'static [ElevatorTokens],
    /// Labels of its own dispatch call, under its lock, that come before [`Pass::Pick`] of the
    /// caller: a trace check stops there, too.
    ///
    /// [`Pass::Pick`]: crate::path::label::Pass::Pick
    pub picks: &'static [Label],
    /// Cache lines of its own that it charges for (`Charge::lines`), at most 32.
    pub lines: u8,
    /// File of a control group with its weight for this scheduler.
    pub group_weight: Option<&'static str>,
    /// It is modelled above a multipath device of kernels 4.5 to 4.12, if it is of the single-queue
    /// path.
    pub above_mapped: bool,
    /// It looks at queue/rotational, among others when it is chosen.
    pub reads_rotational: bool,
    /// It writes messages to blktrace ([`Scheduler::take_log`](super::Scheduler::take_log)).
    pub logs: bool,
    /// Its critical sections read the clock (ktime_get_ns(), blk_time_get_ns()): in a plug that
    /// keeps the time [`Now::kept`](super::Now::kept) is set.
    pub reads_clock: bool,
    /// insert_requests takes the lock for each request of a list separately.
    pub inserts_each: bool,
    /// What probes on its functions are called.
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
            has_stable_merge: false,
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

/// A way of requests from submission to driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestPath {
    /// blk-mq.
    MultiQueue,
    /// One queue, one lock and the driver's request_fn (up to v4.20).
    SingleQueue,
    Any,
}

/// What a scheduler passes to sbitmap_queue_min_shallow_depth().
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MinShallow {
    /// It limits no depth.
    Unlimited,
    Depth(u32),
    /// What [`shallow_share`] makes of this many percent.
    Percent(u32),
}

impl MinShallow {
    /// In the unit of such a map, made when nr_requests was `first`.
    pub fn of(self, rule: ShallowDepth, shift: u32, first: u32) -> Option<u32> {
        match self {
            MinShallow::Unlimited => None,
            MinShallow::Depth(depth) => Some(depth),
            MinShallow::Percent(percent) => Some(shallow_share(percent, rule, shift, first)),
        }
    }
}

/// So many percent of the tags, rounded down: of each word, or of all that nr_requests says.
pub fn shallow_share(percent: u32, rule: ShallowDepth, shift: u32, nr_requests: u32) -> u32 {
    match rule {
        ShallowDepth::PerWord => (1 << shift) * percent / 100,
        ShallowDepth::Total => nr_requests * percent / 100,
    }
}

/// A lock of a scheduler, or several of a kind.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct ElevatorLock {
    /// Name as the kernel's lock statistics would show it.
    pub name: &'static str,
    /// What may interrupt a holder.
    pub irq_class: IrqClass,
}

impl ElevatorLock {
    /// One that keeps interrupts out.
    pub const fn irq_save(name: &'static str) -> ElevatorLock {
        ElevatorLock {
            name,
            irq_class: IrqClass::IrqSave,
        }
    }

    /// One that is taken with interrupts as they are.
    pub const fn plain(name: &'static str) -> ElevatorLock {
        ElevatorLock {
            name,
            irq_class: IrqClass::Plain,
        }
    }
}

/// Locks of one scheduler at most: a lock's number has four bits in a `LockId`.
pub const ELEVATOR_LOCKS_MAX: usize = 16;

/// Names of the probes on a scheduler's functions, as `ftrace.txt` of a capture has them.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Probes {
    /// A request reaches insert_requests.
    pub insert: &'static str,
    /// Entry of dispatch_request.
    pub dispatch_entry: &'static str,
    pub dispatch_return: &'static str,
    /// finish_request.
    pub finish: &'static str,
    /// That of dispatch_request shows the deadline of the request, that of finish_request the
    /// tick; else the one shows the request as insertion does, the other its scheduler tag.
    pub deadlines: bool,
    /// Trace events of a scheduler with tokens; none of others.
    pub events: Option<TokenEvents>,
    /// How messages of its log in blktrace show calls; none for others.
    pub log: Option<LogMarks>,
}

/// Messages by which the log of a scheduler shows its calls.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct LogMarks {
    /// How the first line of a dispatch call begins.
    pub dispatch: &'static str,
    /// What is in a line of each dispatch call that gives a request.
    pub gives: &'static str,
    /// What is in a line of each call for a process that exits.
    pub exit: &'static str,
}

/// Names of trace events of a scheduler that sets the number of its tokens by latency.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct TokenEvents {
    /// A percentile was calculated.
    pub percentile: &'static str,
    /// There is another number of tokens.
    pub depth: &'static str,
    /// There was no token for a request.
    pub throttled: &'static str,
}
