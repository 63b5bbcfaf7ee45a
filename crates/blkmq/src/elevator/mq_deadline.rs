//! mq-deadline: deadlines per direction, batches in sector order, three priority levels.
//!
//! * [`policy`]: the algorithm, under `dd->lock`
//! * [`settings`]: the attributes in queue/iosched
//!
//! Its paths are those of `series.rs`.
//! Kernel: block/mq-deadline.c (v6.1, v6.12). Zoned devices are not modelled.

pub mod policy;
pub mod settings;

pub(crate) use super::series::{bio_merge, call_hook, dispatch_request, insert_requests};
pub use policy::MqDeadline;
pub use settings::MqDeadlineSettings;
pub(crate) use settings::MqDeadlineSettings as Settings;

use super::info::{ElevatorLock, MinShallow, Probes, RequestPath, SchedulerInfo};
use super::locked::Locked;
use super::series;
use super::shape::QueueShape;
use crate::queue::QueueSettings;

pub const INFO: SchedulerInfo = SchedulerInfo {
    path: RequestPath::MultiQueue,
    default_for_one_queue: true,
    has_series: true,
    // sbitmap_queue_min_shallow_depth() in dd_depth_updated().
    min_shallow_depth: MinShallow::OneOrAll,
    picks: &[series::dispatch::At::Drain.label()],
    probes: Probes {
        insert: "ins",
        dispatch_entry: "dde",
        dispatch_return: "dd",
        finish: "ddfin",
        deadlines: true,
        events: None,
        log: None,
    },
    ..SchedulerInfo::plain(
        "mq-deadline",
        &[
            ElevatorLock::plain("dd->lock"),
            ElevatorLock::plain("dd->bucket_lists[].lock"),
            ElevatorLock::plain("dd->insert_lock"),
        ],
    )
};

pub(crate) type Shared = Locked<MqDeadline>;

pub(crate) fn new(
    settings: &MqDeadlineSettings,
    queue: &QueueSettings,
    _shape: &QueueShape,
) -> Shared {
    Locked::with_series(
        MqDeadline::new(&queue.rules, *settings),
        &INFO,
        &queue.rules,
    )
}
