//! The users of a queue, and its freeze (q_usage_counter, mq_freeze_depth).
//!
//! A number in the pool: labels that begin or end a use borrow the pool. Not here: waiting for it
//! (`path/wait.rs`). Kernel: block/blk-core.c blk_queue_enter(), blk_queue_exit(), block/blk-mq.c
//! blk_freeze_queue_start() (6.1.192, 6.12.117).

/// Uses of a queue: bios from bio_queue_enter() to their request or their end, requests from
/// allocation until after the free of their tags, flushes of plugs.
///
/// A bio that takes a cached request counts besides that request until then; the kernel does not
/// count it. Whether the queue has users is the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Usage {
    users: u32,
    freeze_depth: u32,
}

impl Usage {
    /// blk_try_enter_queue(): adds a user, unless the queue is frozen.
    #[inline]
    pub(crate) fn enter(&mut self) -> bool {
        if self.freeze_depth > 0 {
            return false;
        }
        self.users += 1;
        true
    }

    /// percpu_ref_get_many(): a user adds so many more.
    #[inline]
    pub(crate) fn get(&mut self, more: u32) {
        self.users += more;
    }

    /// blk_queue_exit(). True if that was the last one and there are waiters for it.
    ///
    /// # Panics
    /// If the queue has no user.
    #[inline]
    pub(crate) fn exit(&mut self) -> bool {
        assert!(self.users > 0, "the queue has no user");
        self.users -= 1;
        self.users == 0 && self.freeze_depth > 0
    }

    /// blk_freeze_queue_start(). True if it was not frozen before.
    pub(crate) fn freeze(&mut self) -> bool {
        self.freeze_depth += 1;
        self.freeze_depth == 1
    }

    /// blk_mq_unfreeze_queue(). True if it is not frozen any more.
    ///
    /// # Panics
    /// If it is not frozen.
    pub(crate) fn unfreeze(&mut self) -> bool {
        assert!(self.freeze_depth > 0, "it is not frozen");
        self.freeze_depth -= 1;
        self.freeze_depth == 0
    }

    pub fn is_frozen(&self) -> bool {
        self.freeze_depth > 0
    }

    pub fn users(&self) -> u32 {
        self.users
    }
}
