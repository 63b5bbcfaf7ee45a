//! deadline of the single-queue path: a fifo and a tree for each direction, batches in sector
//! order.
//!
//! * [`policy`]: what happens under the queue's lock
//! * [`settings`]: the attributes in queue/iosched
//!
//! Its successor has priorities, and batches that go on where the last one was. The folder is named
//! otherwise than the kernel names it, as that is a word of many things.
//! Kernel: block/deadline-iosched.c (2.6.32.2, 4.20). Zoned devices are not modelled.

pub mod policy;
pub mod settings;

pub(crate) use super::locked::{DispatchPath, HookPath, InsertPath, MergePath};
pub use policy::SqDeadline;
pub use settings::SqDeadlineSettings;
pub(crate) use settings::SqDeadlineSettings as Settings;

use super::info::{ElevatorLock, RequestPath, SchedulerInfo};
use super::locked::Locked;
use super::shape::QueueShape;
use crate::queue::QueueSettings;

/// What is known of deadline.
pub const INFO: SchedulerInfo = SchedulerInfo {
    path: RequestPath::SingleQueue,
    ..SchedulerInfo::plain("deadline", &[ElevatorLock::irq_save("q->queue_lock")])
};

/// What CPUs share of it.
pub(crate) type Shared = Locked<SqDeadline>;

pub(crate) fn new(
    settings: &SqDeadlineSettings,
    queue: &QueueSettings,
    _shape: &QueueShape,
) -> Shared {
    Locked::with(SqDeadline::new(&queue.rules, *settings), &INFO)
}
