//! BFQ: it serves each queue of a process a budget of sectors, in an order that gives every queue
//! the share of its weight.
//!
//! * [`policy`]: the structures, and the calls of the block layer under the lock; `initial`: the
//!   initial state; `section`: the clock of one section, and its costs
//! * `entity`, `group`, `service_tree`, `virtual_time`, `activation`, `next`: B-WF2Q+ over a
//!   hierarchy
//! * `queue`, `process`, `creation`, `cgroup`: queues, their references, and the processes that
//!   have them
//! * `arrive`, `busy`, `weight`, `symmetry`: arrivals, and their effect on a queue
//! * `merge`, `position`, `cooperate`, `stable_merge`, `plan`, `split`, `saved`: merges of queues,
//!   and what a process gets back after a split
//! * `serve`, `budget`, `idling`, `depth`: dispatch, budgets, and idling
//! * `classify`, `rate`, `burst`, `wr`: estimates for queues and the device; weight raising
//! * [`settings`]: the attributes in queue/iosched; `log`: messages in blktrace
//! * [`protocol`]: merges and splits apart from the scheduler, for exploration
//! * `counters`: values over time; `explained`: decisions with lasting effect, for reports
//!
//! One lock guards everything; the timer runs in a hard interrupt. The paths are those of
//! `series.rs`. Kernel: block/bfq-iosched.c, bfq-wf2q.c, bfq-cgroup.c (6.1.192, 6.12.117);
//! `rules/fair_queueing.rs` lists older forms.

mod activation;
mod arrive;
mod budget;
mod burst;
mod busy;
mod cgroup;
mod check;
mod classify;
mod cooperate;
mod counters;
mod creation;
mod depth;
mod entity;
mod explained;
mod fixed;
mod group;
mod idling;
mod ids;
mod initial;
mod log;
mod merge;
mod merge_event;
mod next;
mod plan;
pub mod policy;
mod position;
mod process;
pub mod protocol;
mod queue;
mod rate;
mod saved;
mod section;
mod serve;
mod service_tree;
pub mod settings;
mod split;
mod stable_merge;
mod symmetry;
mod virtual_time;
mod weight;
mod wr;

pub(crate) use super::series::{bio_merge, call_hook, dispatch_request, insert_requests};
use arrive::Arrived;
pub use merge_event::{CreationOutcome, MergeEvent, MergeRecord, SeenProcess, SeenQueue};
pub use policy::Bfq;
use section::{DIVISION, ZERO, far_past};
pub use settings::BfqSettings;
pub(crate) use settings::BfqSettings as Settings;

use super::hook::{ElevatorTimer, Hooks, TimerContext};
use super::info::{ElevatorLock, LogMarks, MinShallow, Probes, RequestPath, SchedulerInfo};
use super::locked::Locked;
use super::series;
use super::shape::QueueShape;
use crate::queue::QueueSettings;

pub const INFO: SchedulerInfo = SchedulerInfo {
    path: RequestPath::MultiQueue,
    has_series: true,
    fair_queueing: true,
    // sbitmap_queue_min_shallow_depth() in bfq_depth_updated().
    min_shallow_depth: MinShallow::Depth(1),
    hooks: Hooks {
        prepare: false,
        completed: false,
        requeued: true,
        finished: true,
        exits: true,
    },
    timers: &[ElevatorTimer {
        name: "bfqd->idle_slice_timer",
        context: TimerContext::Hardirq,
    }],
    picks: &[series::dispatch::At::Drain.label()],
    lines: section::LINES_ALL,
    group_weight: Some("io.bfq.weight"),
    reads_rotational: true,
    logs: true,
    reads_clock: true,
    inserts_each: true,
    probes: Probes {
        insert: "ins",
        dispatch_entry: "bfqe",
        dispatch_return: "bfq",
        finish: "bfqfin",
        deadlines: false,
        events: None,
        log: Some(LogMarks {
            dispatch: "bfq dispatch requests:",
            gives: "select_queue: returned this queue",
            exit: "exit_bfqq:",
            unlocked: Some("bfq [bfq_limit_depth]"),
            ticks: "raising period dur ",
            takes_tick: "add to busy",
        }),
    },
    ..SchedulerInfo::plain(
        "bfq",
        &[
            ElevatorLock::irq_save("bfqd->lock"),
            ElevatorLock::irq_save("bfqd->bucket_lists[].lock"),
            ElevatorLock::irq_save("bfqd->insert_lock"),
        ],
    )
};

pub(crate) type Shared = Locked<Bfq>;

pub(crate) fn new(settings: &BfqSettings, queue: &QueueSettings, _shape: &QueueShape) -> Shared {
    Locked::with_series(Bfq::new(settings, queue), &INFO, &queue.rules)
}
