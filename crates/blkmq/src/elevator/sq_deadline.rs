//! deadline of the single-queue path: a fifo and a tree for each direction, batches in sector
//! order.
//!
//! * [`policy`]: the algorithm, under the queue's lock
//! * [`settings`]: the attributes in queue/iosched
//!
//! mq-deadline, its successor, also has priorities, and batches that continue at the last position.
//! The folder has another name than in the kernel, since "deadline" has many meanings here. Kernel:
//! block/deadline-iosched.c (2.6.32.2, 4.20). Zoned devices are not modelled.

pub mod policy;
pub mod settings;

pub(crate) use super::locked::{bio_merge, call_hook, dispatch_request, insert_requests};
pub use policy::SqDeadline;
pub use settings::SqDeadlineSettings;
pub(crate) use settings::SqDeadlineSettings as Settings;

use super::info::{ElevatorLock, RequestPath, SchedulerInfo};
use super::locked::Locked;
use super::shape::QueueShape;
use crate::queue::QueueSettings;

pub const INFO: SchedulerInfo = SchedulerInfo {
    path: RequestPath::SingleQueue,
    ..SchedulerInfo::plain("deadline", &[ElevatorLock::irq_save("q->queue_lock")])
};

pub(crate) type Shared = Locked<SqDeadline>;

pub(crate) fn new(
    settings: &SqDeadlineSettings,
    queue: &QueueSettings,
    _shape: &QueueShape,
) -> Shared {
    Locked::with(SqDeadline::new(&queue.rules, *settings), &INFO)
}
