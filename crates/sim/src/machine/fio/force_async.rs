//! Requests that a thread hands to io_uring's workers without a try of its own (IOSQE_ASYNC).
//!
//! fio 3.33: fio_ioring_prep() in engines/io_uring.c. Kernel: io_queue_iowq() and io_wq_enqueue()
//! in io_uring/ (6.1.192).

use super::FioTask;
use super::steps::On;
use crate::cost::Step;
use crate::machine::cpu::Mode;
use crate::machine::task::Turn;

impl FioTask {
    /// The next request of this thread, in this slot, is one of those.
    #[inline]
    pub(super) fn forces_async(&mut self, slot: u32) -> bool {
        self.plan.force_async > 0 && self.counts_to_force(slot)
    }

    #[cold]
    fn counts_to_force(&mut self, slot: u32) -> bool {
        self.unforced += 1;
        let forces = self.unforced == self.plan.force_async;
        if forces {
            self.unforced = 0;
        }
        self.slots[slot as usize].forced = forces;
        forces
    }

    /// Puts the request onto the list of the workers.
    #[cold]
    pub(super) fn force_async(&mut self, on: &mut On<'_>, slot: u32) -> Turn {
        let id = on.id;
        on.cpus.charge_as(id, Step::QueueWork, Mode::System);
        on.lines
            .touch_io(on.cpus, id, self.row, slot, Step::UringIssue);
        self.slots[slot as usize].issued = on.cpus.at(id);
        let first = self.worker.expect("a thread with io_uring has a worker");
        let count = self.plan.workers(on.cpus.len() as u16);
        on.tasks.give_to_workers(on.cpus, (first, count), id, slot);
        Turn::Again
    }
}
