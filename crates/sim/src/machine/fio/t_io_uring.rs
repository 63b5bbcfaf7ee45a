//! The loop of t/io_uring: one system call submits a batch and waits for completions.
//!
//! No clock, no plug of fio's own, no accounting; positions are those of `workload/t_io_uring.rs`.
//! After submitter_uring_fn() and prep_more_ios_uring() of fio's t/io_uring.c; the call is
//! io_uring_enter(2), its wait io_iopoll_check() or io_cqring_wait() (6.1.192, 6.12.117). The ring
//! has IORING_SETUP_DEFER_TASKRUN: a call that does not wait posts nothing.

use blkmq::request::CpuId;

use super::steps::On;
use super::{FioTask, Stage};
use crate::cost::Step;
use crate::machine::cpu::Mode;
use crate::machine::cpus::Cpus;
use crate::machine::task::Turn;
use crate::plan::{Submitter, ThreadPlan};
use crate::workload::Reads;

/// State of such a thread beyond that of a fio thread.
#[derive(Clone, Debug)]
pub(super) struct TIoUring {
    // Settings.
    registered_ring: bool,

    // State.
    reads: Reads,
    /// File of the I/O in each slot.
    files: Vec<u8>,
    /// Completions that the current call waits for.
    to_wait: u32,
}

impl TIoUring {
    /// `None` for a thread of fio.
    pub(super) fn of(plan: &ThreadPlan) -> Option<TIoUring> {
        let Submitter::TIoUring { registered_ring } = plan.submitter else {
            return None;
        };
        Some(TIoUring {
            registered_ring,
            reads: Reads::new(plan),
            files: vec![0; plan.iodepth as usize],
            to_wait: 0,
        })
    }

    pub(super) fn reaped(&mut self, slot: u32) {
        self.reads.reaped(self.files[slot as usize]);
    }
}

/// How many completions a call waits for that submits `to_submit`.
///
/// The program counts these twice: they are in its `inflight` already. So it waits as soon as one
/// more batch would not fit, and it may wait for more than it has in flight.
fn to_wait(in_flight: u32, to_submit: u32, depth: u32, batch_complete: u32) -> u32 {
    let counted = in_flight + 2 * to_submit;
    if to_submit > 0 && counted <= depth {
        0
    } else {
        counted.min(batch_complete)
    }
}

impl FioTask {
    /// The next I/O of a batch, or the call with all of it.
    pub(super) fn prep_more_ios(&mut self, on: &mut On<'_>) -> Turn {
        let at = on.cpus.at(on.id);
        if at >= self.end_at || self.failed {
            return self.wind_down(on.recorder, at);
        }
        let to_prep = (self.plan.iodepth - self.in_flight).min(self.plan.batch_submit);
        if (self.prepared.len() as u32) < to_prep
            && let Some(small) = &mut self.t_io_uring
        {
            on.cpus.charge_as(on.id, Step::TPrepare, Mode::User);
            let slot = self.free.pop().expect("not more than the depth are alive");
            let (file, io) = small.reads.next_read();
            small.files[slot as usize] = file;
            let at = on.cpus.at(on.id);
            let of = &mut self.slots[slot as usize];
            (of.io, of.prepared) = (io, at);
            self.prepared.push_back(slot);
        }
        if self.prepared.len() as u32 >= to_prep {
            self.stage = Stage::Enter;
        }
        Turn::Again
    }

    /// io_uring_enter(2) begins: sets how many completions it waits for, and looks up the ring.
    pub(super) fn enter_ring(&mut self, cpus: &mut Cpus, id: CpuId) {
        let Some(small) = &mut self.t_io_uring else {
            return;
        };
        if !small.registered_ring {
            cpus.charge_as(id, Step::FileLookup, Mode::System);
        }
        let (depth, batch) = (self.plan.iodepth, self.plan.batch_complete_min);
        small.to_wait = if self.draining {
            0
        } else {
            to_wait(self.in_flight, self.prepared.len() as u32, depth, batch)
        };
    }

    /// All is submitted: the call waits or returns.
    pub(super) fn wait_in_call(&mut self, cpus: &mut Cpus, id: CpuId) -> Turn {
        let to_wait = self.t_io_uring.as_ref().map_or(0, |small| small.to_wait);
        if to_wait == 0 {
            self.stage = Stage::Prepare;
        } else if self.plan.polled {
            cpus.charge_as(id, Step::UringWait, Mode::System);
            let has_enough = self.has_done(self.reap_min(), cpus.at(id));
            self.stage = if has_enough { Stage::Reap } else { Stage::Poll };
        } else {
            self.waiting_for = to_wait;
            self.stage = Stage::Woken;
        }
        Turn::Again
    }

    /// Completions that a look of the call must find, unless this is a thread of fio. A ring that
    /// polls goes on only while I/Os are in flight.
    pub(super) fn call_waits_for(&self) -> Option<u32> {
        let small = self.t_io_uring.as_ref().filter(|_| !self.draining)?;
        Some(small.to_wait.min(self.in_flight))
    }
}

#[cfg(test)]
mod tests {
    use super::to_wait;

    /// Submissions and awaited completions of each call of one thread, which completes just as
    /// many.
    fn calls(depth: u32, submit: u32, complete: u32, count: usize) -> Vec<(u32, u32)> {
        let mut in_flight = 0;
        let mut call = || {
            let to_submit = (depth - in_flight).min(submit);
            let waits = to_wait(in_flight, to_submit, depth, complete);
            in_flight += to_submit;
            assert!(in_flight <= depth);
            in_flight = in_flight.saturating_sub(waits);
            (to_submit, waits)
        };
        (0..count).map(|_| call()).collect()
    }

    #[test]
    fn a_call_waits_when_one_more_batch_would_not_fit() {
        let first = [(32, 0), (32, 0), (32, 0), (32, 32), (32, 32), (32, 32)];
        assert_eq!(calls(128, 32, 32, 6), first);
        assert_eq!(calls(1, 1, 1, 2), [(1, 1), (1, 1)]);
        // Two completions are taken at once, and the ring fills up again before it waits.
        assert_eq!(calls(4, 1, 2, 5), [(1, 0), (1, 0), (1, 0), (1, 2), (1, 0)]);
        // Small batches of a deep ring fill it first.
        let deep = calls(128, 16, 16, 9);
        assert!(deep[..7].iter().all(|call| *call == (16, 0)));
        assert_eq!(deep[7..], [(16, 16), (16, 16)]);
    }

    #[test]
    fn nothing_to_hand_over_is_waited_for() {
        assert_eq!(to_wait(128, 0, 128, 32), 32);
        assert_eq!(to_wait(3, 0, 128, 32), 3);
    }

    #[test]
    fn it_may_wait_for_more_than_it_has() {
        assert_eq!(to_wait(0, 96, 128, 128), 128);
    }
}
