//! Large bursts: dozens of queues that are created together get no weight raising.
//!
//! Kernel: bfq_handle_burst(), bfq_add_to_burst(), bfq_reset_burst_list() in block/bfq-iosched.c
//! (6.1.192, 6.12.117).

use super::Bfq;
use super::ids::QId;

const LARGE_BURST: u32 = 8;

impl Bfq {
    /// A queue gets its first request (bfq_handle_burst()).
    pub(super) fn handle_burst(&mut self, q: QId) {
        let queue = &self.queues[q];
        let split = queue.split_time + self.fixed.burst_after_split >= self.jiffies();
        if queue.in_burst_list || queue.flags.in_large_burst || split {
            return;
        }
        let parent = self.entities[self.entities.of(q)].group;
        let over = self.last_in_burst + self.fixed.burst_interval < self.jiffies();
        if over || self.burst_group != Some(parent) {
            self.large_burst = false;
            self.reset_burst_list(q);
        } else if self.large_burst {
            self.queues[q].flags.in_large_burst = true;
        } else {
            self.add_to_burst(q);
        }
        self.last_in_burst = self.jiffies();
    }

    fn reset_burst_list(&mut self, q: QId) {
        for other in self.burst_list.drain(..) {
            self.queues[other].in_burst_list = false;
        }
        if self.busy_queues_total() == 0 {
            self.join_burst_list(q);
            self.burst_size = 1;
        } else {
            self.burst_size = 0;
        }
        self.burst_group = Some(self.entities[self.entities.of(q)].group);
    }

    fn add_to_burst(&mut self, q: QId) {
        self.burst_size += 1;
        if self.burst_size == LARGE_BURST {
            self.large_burst = true;
            for other in self.burst_list.drain(..) {
                self.queues[other].in_burst_list = false;
                self.queues[other].flags.in_large_burst = true;
            }
            self.queues[q].flags.in_large_burst = true;
        } else {
            self.join_burst_list(q);
        }
    }

    pub(super) fn join_burst_list(&mut self, q: QId) {
        self.queues[q].in_burst_list = true;
        self.burst_list.push(q);
    }

    pub(super) fn leave_burst_list(&mut self, q: QId) {
        if core::mem::take(&mut self.queues[q].in_burst_list) {
            self.burst_list.retain(|&other| other != q);
        }
    }
}
