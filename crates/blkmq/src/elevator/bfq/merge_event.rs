//! Merge events for the recorder of a run: each step of the merge protocol, with the state of
//! queues and processes after it. `protocol.rs` has the same state for the protocol on its own.

use super::Bfq;
use super::ids::{GroupId, QId};
use super::process::ProcessId;
use super::stable_merge::CreationMerge;
use crate::request::IoContextId;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CreationOutcome {
    Alone,
    /// The queue becomes the last one created.
    Last,
    /// The queue will be merged into the last one later.
    Later,
    /// The queue is merged into the last one at once.
    Merged,
}

/// A step of merging. Queue numbers are slots, which are used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergeEvent {
    /// The decision about the queue that a process is about to get.
    CreationDecided(CreationOutcome),
    /// The process has got the queue.
    Got(IoContextId),
    /// The process has a request in a queue.
    Took(IoContextId, u32),
    /// A request of a queue ended.
    Put(u32),
    /// A merge was planned: processes of the first queue change to the second one, or to the one
    /// that it redirects to.
    Planned(u32, u32),
    PlannedForGood,
    /// The stable merge of a process was due and had no effect, except that its candidate was put.
    GaveUp(IoContextId),
    /// The process changed to the planned queue.
    Went(IoContextId),
    /// A request moved with the process from a queue.
    Carried(IoContextId, u32),
    /// The process left a shared queue, and has another one.
    Left(IoContextId),
    /// The process was the only one of a shared queue, and keeps it.
    Kept(IoContextId),
    Exited(IoContextId),
    /// The process changed to this group.
    Moved(IoContextId, u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SeenQueue {
    /// References, without those of service and of weights.
    pub references: i32,
    /// The part of the references that processes hold whose candidate it is.
    pub stable: i32,
    /// The part of the references that requests hold.
    pub requests: i32,
    /// The queue that its processes change to (new_bfqq).
    pub new: Option<u32>,
    /// Another queue was merged into it.
    pub shared: bool,
    /// The owner, if it belongs to one process.
    pub owner: Option<u32>,
    pub group: u16,
    /// The queue belongs to a process, not to its group.
    pub sync: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SeenProcess {
    pub slot: Option<u32>,
    /// The queue that its queue will be merged into later.
    pub candidate: Option<u32>,
}

/// A step, and the state after it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MergeRecord {
    pub what: MergeEvent,
    pub queues: Vec<Option<SeenQueue>>,
    pub processes: Vec<SeenProcess>,
    /// The last queue created in each group.
    pub created: Vec<Option<u32>>,
}

impl CreationMerge {
    fn created(self) -> CreationOutcome {
        match self {
            CreationMerge::Alone => CreationOutcome::Alone,
            CreationMerge::Last => CreationOutcome::Last,
            CreationMerge::Later(_) => CreationOutcome::Later,
            CreationMerge::Merged(_) => CreationOutcome::Merged,
        }
    }
}

impl Bfq {
    /// Does nothing unless a recorder is attached.
    #[inline]
    pub(super) fn record(&mut self, what: impl FnOnce() -> MergeEvent) {
        if self.merge_events.is_on() {
            self.record_all(what());
        }
    }

    #[inline]
    pub(super) fn record_creation(&mut self, creation: CreationMerge) {
        self.record(|| MergeEvent::CreationDecided(creation.created()));
    }

    #[cold]
    fn record_all(&mut self, what: MergeEvent) {
        let queues = 0..self.queues.len() as u32;
        let processes = 0..self.processes.len() as u32;
        let groups = 0..self.groups.len() as u16;
        let record = MergeRecord {
            what,
            queues: queues.map(|q| self.seen_queue(QId(q))).collect(),
            processes: processes
                .map(|p| SeenProcess {
                    slot: self.slot(IoContextId(p), true, 0).map(|q| q.0),
                    candidate: self.candidate_of(IoContextId(p)).map(|q| q.0),
                })
                .collect(),
            created: groups
                .map(|group| self.last_created_in(GroupId(group)).map(|q| q.0))
                .collect(),
        };
        self.merge_events.record(record);
    }

    /// The state of a queue, while it has such references.
    pub(super) fn seen_queue(&self, q: QId) -> Option<SeenQueue> {
        let queue = &self.queues[q];
        let entity = &self.entities[self.entities.of(q)];
        let served = i32::from(entity.on_st) + i32::from(queue.counted_weight.is_some());
        // A moved request still counts in its old queue, whose reference is put later.
        let leaves = self.carrying.is_some_and(|(from, _)| from == q);
        let comes = self.carrying.is_some_and(|(_, to)| to == q);
        let references = queue.references - served - i32::from(comes);
        (references > 0).then(|| SeenQueue {
            references,
            stable: queue.stable_references,
            requests: entity.allocated + i32::from(leaves) - i32::from(comes),
            new: queue.new.map(|q| q.0),
            shared: queue.flags.coop,
            owner: queue.owner.map(|process| process.0),
            group: entity.group.0,
            sync: queue.flags.sync,
        })
    }

    /// The queue that the process's queue will be merged into later.
    pub(super) fn candidate_of(&self, process: ProcessId) -> Option<QId> {
        let saved = self.processes[process.0 as usize].saved.first();
        saved?.stable_candidate
    }

    /// The last queue that was created in a group.
    pub(super) fn last_created_in(&self, group: GroupId) -> Option<QId> {
        match group.entity() {
            Some(entity) => self.entities[entity].last_created,
            None => self.last_created,
        }
    }

    /// Falsifies a reference count, for the test that the specification's checks find a get too
    /// many or too few.
    pub fn miscount(&mut self, q: u32, by: i32) {
        match by {
            -1 => self.put(QId(q)),
            _ => self.queues[QId(q)].references += by,
        }
    }
}
