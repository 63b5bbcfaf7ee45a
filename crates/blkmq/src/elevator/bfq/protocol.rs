//! The merge protocol apart from the scheduler: which process has which queue, planned merges, and
//! every reference.
//!
//! These are the functions that requests and bios call, but the caller answers the conditions:
//! whether queues are close, were created together, must be split. No request is queued, so no
//! queue is ever busy: references of service and of weights belong to another protocol. For
//! `crates/explore`, which explores specs/BfqMerge; docs/decisions/0027 gives the reasons for this
//! cut.

use super::Bfq;
use super::arrive::Arrived;
use super::ids::{GroupId, QId};
use super::process::ProcessId;
use super::settings::BfqSettings;
use super::stable_merge::CreationMerge;
use crate::elevator::SchedulerKind;
use crate::elevator::scheduler::Scheduler;
use crate::elevator::submitters::SubmitterGroup;
use crate::queue::QueueSettings;
use crate::request::{IoContextId, RequestPool};
use crate::rules::Rules;

pub use super::merge_event::{CreationOutcome, SeenQueue};

/// Number of a queue in the order of creation, from 0; no number is used twice.
pub type QueueNumber = u32;

/// BFQ's queues without queued requests. Each operation panics if it puts or follows a freed queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MergeProtocol {
    bfq: Bfq,
    /// Empty: some functions check whether requests are queued.
    pool: RequestPool,
}

impl MergeProtocol {
    /// No queues yet. All processes are in the first of `groups`; the others are below the root.
    pub fn new(rules: Rules, processes: u32, groups: u16) -> MergeProtocol {
        let nr_requests = 1;
        let mut queue = QueueSettings::plain(rules, SchedulerKind::Bfq, nr_requests);
        let further = (1..groups).map(|number| SubmitterGroup {
            path: format!("/{number}"),
            parent: 0,
            weight: 100,
        });
        queue.submitters.groups.extend(further);
        let mut bfq = Bfq::new(&BfqSettings::defaults(queue.hz, nr_requests), &queue);
        bfq.queues.once = true;
        bfq.clock_kept = true;
        for process in 0..processes {
            bfq.know(IoContextId(process));
            bfq.processes[process as usize].group = Some(GroupId(0));
        }
        MergeProtocol {
            bfq,
            pool: RequestPool::new(1, 1),
        }
    }

    fn of(&self, process: ProcessId) -> Arrived {
        Arrived {
            process,
            pid: process.0.cast_signed(),
            group: self.group_of(process),
            sync: true,
            actuator: 0,
        }
    }

    fn group_of(&self, process: ProcessId) -> GroupId {
        let group = self.bfq.processes[process.0 as usize].group;
        group.unwrap_or_default()
    }

    fn slot_of(&self, process: ProcessId) -> QId {
        let slot = self.bfq.slot(process, true, 0);
        slot.expect("the process has a queue")
    }

    /// bfq_get_queue() and the slot. Panics if there is no last queue to merge into.
    pub fn create(&mut self, process: u32, created: CreationOutcome) {
        let process = IoContextId(process);
        let of = self.of(process);
        let q = self.bfq.get_queue(of, true);
        let last = *self.bfq.last_created(q);
        let into = || last.expect("a queue was created before");
        let creation = match created {
            CreationOutcome::Alone => CreationMerge::Alone,
            CreationOutcome::Last => CreationMerge::Last,
            CreationOutcome::Later => CreationMerge::Later(into()),
            CreationOutcome::Merged => CreationMerge::Merged(into()),
        };
        let got = self.bfq.fulfil(creation, q, process);
        self.bfq.set_slot(process, true, 0, Some(got));
        self.settle();
    }

    /// A request is allocated (bfq_init_rq()).
    pub fn submit(&mut self, process: u32) {
        let process = IoContextId(process);
        let q = self.slot_of(process);
        self.bfq.take_request(q);
        self.bfq.becomes_own(q, process);
        self.settle();
    }

    /// A request of the queue ends.
    pub fn complete(&mut self, q: QueueNumber) {
        self.bfq.put_request(QId(q));
        self.settle();
    }

    pub fn redirect(&mut self, process: u32) {
        let process = IoContextId(process);
        let q = self.slot_of(process);
        let to = self.bfq.planned(q).expect("a merge is planned");
        self.bfq.move_process(process, q, to);
        self.settle();
    }

    /// A request of that queue moves to the queue that the process has.
    pub fn carry(&mut self, process: u32, q: QueueNumber) {
        let to = self.slot_of(IoContextId(process));
        self.bfq.take_along(QId(q), to);
        self.bfq.put(QId(q));
        self.settle();
    }

    /// A queue is close, so the queue of the process is merged into it, if that is allowed.
    pub fn merge(&mut self, process: u32, close: QueueNumber) {
        let process = IoContextId(process);
        let q = self.slot_of(process);
        if let Some(new) = self.bfq.setup_merge(q, QId(close)) {
            self.bfq.move_process(process, q, new);
        }
        self.settle();
    }

    /// The stable merge of a process is due; `boosts`: idling serves its queue better.
    pub fn merge_later(&mut self, process: u32, boosts: bool) {
        let process = IoContextId(process);
        let q = self.slot_of(process);
        let boosts: fn(&Bfq, QId) -> bool = match boosts {
            true => |_, _| true,
            false => |_, _| false,
        };
        if let Some(new) = self.bfq.setup_stable_merge(q, process, boosts) {
            self.bfq.move_process(process, q, new);
        }
        self.settle();
    }

    /// The process's queue has become seeky: the process keeps it, or gets another one.
    pub fn split(&mut self, process: u32) {
        let process = IoContextId(process);
        let q = self.slot_of(process);
        self.bfq.queues[q].flags.split_coop = true;
        let split = self.bfq.split(self.of(process), q);
        assert!(split.is_some(), "{q:?} is shared and not merged for good");
        self.settle();
    }

    /// bfq_exit_icq().
    pub fn exit(&mut self, process: u32) {
        self.bfq.exit_process(&self.pool, IoContextId(process));
        self.settle();
    }

    /// bfq_bic_update_cgroup().
    pub fn change_group(&mut self, process: u32, group: u16) {
        let process = IoContextId(process);
        self.bfq.update_group(&self.pool, process, GroupId(group));
        self.settle();
    }

    /// Falsifies a reference count, for the test that the specification's checks find a get too
    /// many or too few.
    pub fn miscount(&mut self, q: QueueNumber, by: i32) {
        self.bfq.miscount(q, by);
    }

    fn settle(&mut self) {
        self.bfq.take_charge();
    }

    pub fn born(&self) -> u32 {
        self.bfq.queues.len() as u32
    }

    /// A queue, while it has references.
    pub fn queue(&self, number: QueueNumber) -> Option<SeenQueue> {
        if number >= self.born() {
            return None;
        }
        self.bfq.seen_queue(QId(number))
    }

    pub fn slot(&self, process: u32) -> Option<QueueNumber> {
        self.bfq.slot(IoContextId(process), true, 0).map(|q| q.0)
    }

    /// The queue that the process's queue will be merged into later.
    pub fn candidate(&self, process: u32) -> Option<QueueNumber> {
        self.bfq.candidate_of(IoContextId(process)).map(|q| q.0)
    }

    /// A stable merge of the process's queue was done.
    pub fn merged_for_good(&self, process: u32) -> bool {
        self.bfq.processes[process as usize].saved[0].stably_merged
    }

    /// The last queue that was created in a group.
    pub fn last_created(&self, group: u16) -> Option<QueueNumber> {
        self.bfq.last_created_in(GroupId(group)).map(|q| q.0)
    }
}

#[cfg(test)]
mod tests;
