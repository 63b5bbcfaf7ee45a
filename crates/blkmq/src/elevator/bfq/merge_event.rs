//! What whoever follows a run is told of merging: each step of the protocol, and what is to be seen
//! of queues and processes behind it. `protocol.rs` shows the same of the protocol by itself.

use super::Bfq;
use super::group::GroupId;
use super::process::ProcessId;
use super::queue::QId;
use super::stable_merge::CreationMerge;
use crate::request::IoContextId;

/// What becomes of a queue that is created.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CreationOutcome {
    /// Nothing.
    Alone,
    /// It is the last one created.
    Last,
    /// It is to be merged into the last one later.
    Later,
    /// It is merged into the last one at once.
    Merged,
}

/// A step of merging. Numbers of queues are places, which are used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergeEvent {
    /// What becomes of the queue that a process is about to get.
    CreationDecided(CreationOutcome),
    /// The process has got it.
    Got(IoContextId),
    /// It has a request of a queue.
    Took(IoContextId, u32),
    /// A request of a queue ended.
    Put(u32),
    /// A plan was made: processes of one queue are to go to another one, or where that one's go.
    Planned(u32, u32),
    /// It was made because both were created together.
    PlannedForGood,
    /// The time of a process's candidate came, to no effect but that it has none any more.
    GaveUp(IoContextId),
    /// The process went where it is planned.
    Went(IoContextId),
    /// Its request followed it from a queue.
    Carried(IoContextId, u32),
    /// It left a queue that it shared, and has another one.
    Left(IoContextId),
    /// It was alone there, and keeps it.
    Kept(IoContextId),
    /// It exited.
    Exited(IoContextId),
    /// It is in this group now.
    Moved(IoContextId, u16),
}

/// What is to be seen of a live queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SeenQueue {
    /// References but those of service and of weights.
    pub references: i32,
    /// Of them: of processes that it is the candidate of.
    pub stable: i32,
    /// Of them: of requests.
    pub requests: i32,
    /// Where its processes are to go.
    pub new: Option<u32>,
    /// It was merged into.
    pub shared: bool,
    /// The one process whose queue it is.
    pub owner: Option<u32>,
    /// The group that it is in.
    pub group: u16,
    /// It is a process's, not its group's.
    pub sync: bool,
}

/// What is to be seen of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SeenProcess {
    pub slot: Option<u32>,
    /// The one that it is to be merged into later.
    pub candidate: Option<u32>,
}

/// A step, and what is to be seen behind it.
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
    /// Tells of a step, if somebody listens.
    #[inline]
    pub(super) fn record(&mut self, what: impl FnOnce() -> MergeEvent) {
        if self.merge_events.is_on() {
            self.record_all(what());
        }
    }

    /// The same of what becomes of a queue.
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

    /// A queue, while it has such references.
    pub(super) fn seen_queue(&self, q: QId) -> Option<SeenQueue> {
        let queue = &self.queues[q];
        let entity = &self.entities[self.entities.of(q)];
        let served = i32::from(entity.on_st) + i32::from(queue.counted_weight.is_some());
        // One that is carried is where it was: the put of its reference there is still to come.
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

    /// The queue that the process is to be merged into later.
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

    /// Counts wrongly: how a get too many, or too few, looks is for who checks the checker.
    pub fn miscount(&mut self, q: u32, by: i32) {
        match by {
            -1 => self.put(QId(q)),
            _ => self.queues[QId(q)].references += by,
        }
    }
}
