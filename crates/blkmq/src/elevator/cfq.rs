//! CFQ: each process has the device for a slice of time, and is waited for while that lasts.
//!
//! * [`policy`]: what there is, and what the block layer calls under the lock
//! * `queue`, `process`, [`merge`]: queues, who has which, and what refers to them
//! * `arrive`, `join`: what comes
//! * `serve`, `slice`, `workload`: what goes, and how long; `complete`: what ends
//! * `idling`, `learn`: what is waited for, and what is learned of processes
//! * `service_tree`, `position`, `group`: where queues stand
//! * [`settings`], `tuned`: the attributes in queue/iosched; `log`: what it writes to blktrace
//! * `counter`: what it shows over time
//!
//! It is of the single-queue path only: q->queue_lock guards it all, and its timer runs at a tick,
//! or from v4.7 on in a hard interrupt. Kernel: block/cfq-iosched.c (2.6.32 to 4.20), as
//! `rules/time_slices.rs` tells.

mod arrive;
mod check;
mod complete;
mod counters;
mod group;
mod idling;
mod join;
mod learn;
mod log;
pub mod merge;
pub mod policy;
mod position;
mod process;
mod queue;
mod serve;
mod service_tree;
pub mod settings;
mod slice;
mod tuned;
mod workload;

pub(crate) use super::locked::{DispatchPath, HookPath, InsertPath, MergePath};
use merge::QId;
pub use policy::Cfq;
use queue::Queue;
pub use settings::CfqSettings;
pub(crate) use settings::CfqSettings as Settings;

use super::hook::{ElevatorTimer, Hooks, TimerContext};
use super::info::{ElevatorLock, RequestPath, SchedulerInfo};
use super::locked::Locked;
use super::shape::QueueShape;
use crate::queue::QueueSettings;

/// What is known of CFQ.
pub const INFO: SchedulerInfo = SchedulerInfo {
    path: RequestPath::SingleQueue,
    hooks: Hooks {
        prepare: false,
        completed: true,
        requeued: true,
        finished: true,
        exits: true,
    },
    timers: &[
        ElevatorTimer {
            name: "cfqd->idle_slice_timer",
            context: TimerContext::Softirq,
        },
        ElevatorTimer {
            name: "cfqd->idle_slice_timer (v4.7)",
            context: TimerContext::Hardirq,
        },
    ],
    group_weight: Some("blkio.weight"),
    above_mapped: false,
    reads_rotational: true,
    logs: true,
    ..SchedulerInfo::plain("cfq", &[ElevatorLock::irq_save("q->queue_lock")])
};

/// What CPUs share of it.
pub(crate) type Shared = Locked<Cfq>;

pub(crate) fn new(settings: &CfqSettings, queue: &QueueSettings, _shape: &QueueShape) -> Shared {
    Locked::with(Cfq::new(settings, queue), &INFO)
}
