//! CFQ: each process has the device for a time slice, and the device idles for it during the slice.
//!
//! * [`policy`]: the structures, and the calls of the block layer under the lock
//! * `queue`, `process`, [`merge`]: queues, their processes, and their references
//! * `arrive`, `join`: arrivals
//! * `serve`, `slice`, `workload`: dispatch and slices; `complete`: completions
//! * `idling`, `learn`: idling, and estimates for processes
//! * `service_tree`, `position`, `group`: the trees that order queues
//! * [`settings`], `tuned`: the attributes in queue/iosched; `log`: messages in blktrace
//! * `counter`: values over time
//!
//! Only the single-queue path has it: q->queue_lock guards everything, and the timer runs at a
//! tick, or from v4.7 on in a hard interrupt. Kernel: block/cfq-iosched.c (2.6.32 to 4.20);
//! `rules/time_slices.rs` lists the differences.

mod arrive;
mod check;
mod complete;
mod counters;
mod group;
mod idling;
mod ids;
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

pub(crate) use super::locked::{bio_merge, call_hook, dispatch_request, insert_requests};
use ids::QId;
pub use policy::Cfq;
use queue::Queue;
pub use settings::CfqSettings;
pub(crate) use settings::CfqSettings as Settings;

use super::hook::{ElevatorTimer, Hooks, TimerContext};
use super::info::{ElevatorLock, RequestPath, SchedulerInfo};
use super::locked::Locked;
use super::shape::QueueShape;
use crate::queue::QueueSettings;

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

pub(crate) type Shared = Locked<Cfq>;

pub(crate) fn new(settings: &CfqSettings, queue: &QueueSettings, _shape: &QueueShape) -> Shared {
    Locked::with(Cfq::new(settings, queue), &INFO)
}
