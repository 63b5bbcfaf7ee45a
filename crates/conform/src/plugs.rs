//! Batches of insertions: what a plug lets go reaches the scheduler as one, and the queue is run
//! once behind it.
//!
//! Kernel: blk_mq_flush_plug_list() (6.1.192, 6.12.117).

use std::collections::BTreeMap;

/// Batches under way, by task.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    left: BTreeMap<u32, u32>,
}

impl Batches {
    /// U or UT: so many requests of the task follow.
    pub(super) fn unplug(&mut self, pid: u32, count: u32, _sleeps: bool) {
        if count > 0 {
            self.left.insert(pid, count);
        }
    }

    /// One request of the task is in: true if the queue is run now, since it was the last of its
    /// batch or none at all was announced.
    pub(super) fn one_in(&mut self, pid: u32) -> bool {
        let Some(left) = self.left.get_mut(&pid) else {
            return true;
        };
        *left -= 1;
        if *left > 0 {
            return false;
        }
        self.left.remove(&pid);
        true
    }
}
