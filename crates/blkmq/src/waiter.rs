//! Entries of wait queues: below the maps of tags, and the CPUs that wake them.

use crate::request::{HctxId, QueueId};

/// A task in wait queues. The driver assigns the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WaiterId(pub u32);

/// An entry of a tag wait queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Waiter {
    /// A task: exclusive.
    Task(WaiterId),
    /// A hardware context: in a map of driver tags its `dispatch_wait`, in one of a scheduler's
    /// tokens its entry there (Kyber's `domain_wait`).
    Hctx {
        queue: QueueId,
        hctx: HctxId,
        /// WQ_FLAG_EXCLUSIVE: its wake-up counts in the batch. No kernel has it.
        exclusive: bool,
    },
}
