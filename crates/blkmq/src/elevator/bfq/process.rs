//! Process: BFQ's state of an I/O context on this device, with its queues.
//!
//! Kernel: struct bfq_io_cq in block/bfq-iosched.h (6.1.192, 6.12.117).

use super::Bfq;
use super::ids::{GroupId, QId};
use super::merge_event::MergeEvent;
use super::saved::Saved;
use crate::queue::ACCESS_RANGES_MAX;
use crate::request::{IoContextId, IoPrio};

pub(super) type ProcessId = IoContextId;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Process {
    /// Queues of asynchronous and of synchronous operations, by actuator.
    pub(super) queues: [[Option<QId>; ACCESS_RANGES_MAX]; 2],
    pub(super) ioprio: IoPrio,
    /// The last known group; none before the first request.
    pub(super) group: Option<GroupId>,
    pub(super) saved: Vec<Saved>,
    pub(super) requests: u32,
}

impl Bfq {
    /// The state of this process, created if there is none.
    #[inline]
    pub(super) fn know(&mut self, p: ProcessId) {
        if self.processes.len() <= p.0 as usize {
            self.add_process(p);
        }
    }

    #[cold]
    fn add_process(&mut self, p: ProcessId) {
        let fresh = Process {
            saved: vec![Saved::default(); self.actuators()],
            ..Process::default()
        };
        self.processes.resize(p.0 as usize + 1, fresh);
    }

    #[inline]
    pub(super) fn slot(&self, p: ProcessId, sync: bool, actuator: u8) -> Option<QId> {
        let process = self.processes.get(p.0 as usize)?;
        process.queues[usize::from(sync)][usize::from(actuator)]
    }

    /// bic_set_bfqq().
    pub(super) fn set_slot(&mut self, p: ProcessId, sync: bool, actuator: u8, to: Option<QId>) {
        let before = self.slot(p, sync, actuator);
        if let Some(old) = before
            && self.queues[old].owner == Some(p)
        {
            self.queues[old].owner = None;
        }
        let process = &mut self.processes[p.0 as usize];
        process.queues[usize::from(sync)][usize::from(actuator)] = to;
        let saved = &mut process.saved[usize::from(actuator)];
        if let Some(q) = to
            && saved.stable_candidate == Some(q)
        {
            saved.stable_candidate = None;
            self.put_stable(q);
        }
    }

    #[inline]
    pub(super) fn saved(&mut self, p: ProcessId, actuator: u8) -> &mut Saved {
        &mut self.processes[p.0 as usize].saved[usize::from(actuator)]
    }

    /// References of processes: slots, and reservations for processes that will come
    /// (bfq_process_refs()).
    #[inline]
    pub(super) fn process_references(&self, q: QId) -> i32 {
        let queue = &self.queues[q];
        let entity = &self.entities[self.entities.of(q)];
        queue.references
            - entity.allocated
            - i32::from(entity.on_st)
            - i32::from(queue.counted_weight.is_some())
            - queue.stable_references
    }

    /// bfq_put_queue().
    pub(super) fn put(&mut self, q: QId) {
        let (address, references) = (self.queues[q].address, self.queues[q].references);
        trace_msg!(self, q, "put_queue: {address:016x} {references}");
        assert!(references > 0, "{q:?} is put and has no reference");
        self.queues[q].references -= 1;
        if references == 1 {
            self.free_queue(q);
        }
    }

    #[cold]
    fn free_queue(&mut self, q: QId) {
        assert!(!self.queues[q].flags.busy, "{q:?} is freed while busy");
        assert!(self.queues[q].is_empty(), "{q:?} is freed with requests");
        if core::mem::take(&mut self.queues[q].in_burst_list) {
            self.burst_list.retain(|&other| other != q);
            if self.queues[q].owner.is_some() && self.burst_size > 0 {
                self.burst_size -= 1;
            }
        }
        self.leave_woken_list(q);
        for woken in core::mem::take(&mut self.queues[q].woken) {
            self.queues[woken].waker = None;
            self.queues[woken].in_woken_list = false;
        }
        if self.last_completed == Some(q) {
            self.last_completed = None;
        }
        // Pointers without a reference that are not read any more.
        for other in 0..self.queues.len() as u32 {
            let other = &mut self.queues[QId(other)];
            if other.tentative_waker == Some(q) {
                other.tentative_waker = None;
            }
        }
        let e = self.entities.of(q);
        self.entities[e] = super::entity::Entity::default();
        self.queues.free(q);
    }

    /// bfq_put_stable_ref().
    pub(super) fn put_stable(&mut self, q: QId) {
        self.queues[q].stable_references -= 1;
        self.put(q);
    }

    /// bfq_release_process_ref().
    pub(super) fn release(&mut self, q: QId) {
        let queue = &self.queues[q];
        if queue.flags.busy && queue.is_empty() && self.in_service != Some(q) {
            self.del_busy(q, false);
        }
        self.reassign_last_created(q, None);
        self.put(q);
    }

    /// Puts the references reserved for the process in the queues that it would have changed to
    /// (bfq_put_cooperator()).
    pub(super) fn put_cooperators(&mut self, q: QId) {
        let (mut at, mut links) = (self.queues[q].new, 0);
        while let Some(reserved) = at {
            if reserved == q {
                break;
            }
            links += 1;
            assert!(links <= self.queues.len(), "planned merges in a circle");
            at = self.queues[reserved].new;
            self.put(reserved);
        }
    }

    /// bfq_exit_icq().
    pub(super) fn exit_process(&mut self, pool: &crate::request::RequestPool, p: ProcessId) {
        if self.processes.len() <= p.0 as usize {
            return;
        }
        for actuator in 0..self.actuators() as u8 {
            if let Some(candidate) = self.saved(p, actuator).stable_candidate.take() {
                self.put_stable(candidate);
            }
            for sync in [true, false] {
                let Some(q) = self.slot(p, sync, actuator) else {
                    continue;
                };
                self.set_slot(p, sync, actuator, None);
                if self.in_service == Some(q) {
                    self.inner_expire(pool, q, super::budget::Expiry::BudgetTimeout);
                    self.schedule_dispatch();
                }
                let (address, references) = (self.queues[q].address, self.queues[q].references);
                trace_msg!(self, q, "exit_bfqq: {address:016x}, {references}");
                self.put_cooperators(q);
                self.release(q);
            }
        }
        let (actuators, process) = (self.actuators(), &mut self.processes[p.0 as usize]);
        *process = Process {
            saved: vec![Saved::default(); actuators],
            // Some requests may still be in flight.
            requests: process.requests,
            ..Process::default()
        };
        self.record(|| MergeEvent::Exited(p));
    }
}
