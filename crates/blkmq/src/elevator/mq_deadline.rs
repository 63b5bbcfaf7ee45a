//! mq-deadline: deadlines per direction, batches in sector order, three priority levels.
//!
//! * [`policy`]: what happens under `dd->lock`
//! * [`settings`]: the attributes in queue/iosched
//! * [`shared`]: that lock, and the words and lists beside it that only the January 2024 series has
//! * [`insert`], [`dispatch`]: the paths, with what that series adds to them
//!
//! Kernel: block/mq-deadline.c (v6.1, v6.12). Zoned devices are not modelled.

pub mod dispatch;
pub mod insert;
pub mod policy;
pub mod settings;
pub mod shared;

pub(crate) use super::locked::{HookPath, MergePath};
pub(crate) use dispatch::DispatchPath;
pub(crate) use insert::InsertPath;
pub use policy::MqDeadline;
pub use settings::MqDeadlineSettings;
pub(crate) use settings::MqDeadlineSettings as Settings;
pub(crate) use shared::DeadlineShared as Shared;
pub use shared::DeadlineShared;

use super::facts::{ElevatorLock, Facts, MinShallow, Probes};
use super::hook::Hooks;
use super::shape::QueueShape;
use crate::env::Env;
use crate::queue::QueueSettings;

/// What is known of mq-deadline.
pub const FACTS: Facts = Facts {
    name: "mq-deadline",
    single_queue: true,
    default_for_one_queue: true,
    has_series: true,
    // sbitmap_queue_min_shallow_depth() in dd_depth_updated() (v6.1, v6.12).
    min_shallow_depth: MinShallow::Depth(1),
    locks: &[
        ElevatorLock::plain("dd->lock"),
        ElevatorLock::plain("dd->bucket_lists[].lock"),
        ElevatorLock::plain("dd->insert_lock"),
    ],
    hooks: Hooks::NONE,
    timers: &[],
    tokens: &[],
    picks: &[dispatch::At::Drain.label()],
    lines: 0,
    group_weight: None,
    logs: false,
    inserts_each: false,
    probes: Probes {
        insert: "ins",
        dispatch_entry: "dde",
        dispatch_return: "dd",
        finish: "ddfin",
        deadlines: true,
        events: None,
        log: None,
    },
};

/// Number of the lock of an insertion bucket (January 2024 series).
pub(crate) const BUCKET: u8 = 1;
/// Number of insert_lock (v3 of the same).
pub(crate) const INSERTED: u8 = 2;

/// Idle, with these settings.
pub(crate) fn new<E: Env>(
    settings: &MqDeadlineSettings,
    queue: &QueueSettings,
    _shape: &QueueShape,
) -> DeadlineShared<E> {
    DeadlineShared::new(settings, &queue.rules)
}
