//! Queue: the requests of one process, or of several whose queues were merged.
//!
//! Not here: its processes and references (`merge.rs`), its tree (`service_tree.rs`). Kernel:
//! struct cfq_queue in block/cfq-iosched.c (2.6.32 to 4.20).

use core::ops::{Index, IndexMut};

use super::ids::{GroupId, QId};
use super::learn::SeekMean;
use crate::elevator::pos_tree::Placed;
use crate::list::QueueList;
use crate::rbtree::{RbNode, RbNodes};
use crate::request::{IoClass, RequestId, RequestPool, Sector};
use crate::sort::SortTree;

/// Priority class, in the order of service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) enum Class {
    RealTime,
    #[default]
    BestEffort,
    Idle,
}

impl Class {
    /// A task without a class has that of its nice value.
    pub(super) fn of(class: IoClass) -> Class {
        match class {
            IoClass::RealTime => Class::RealTime,
            IoClass::None | IoClass::BestEffort => Class::BestEffort,
            IoClass::Idle => Class::Idle,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) enum Work {
    #[default]
    Async,
    SyncNoIdle,
    Sync,
}

impl Work {
    /// In the order in which they are compared.
    pub(super) const ALL: [Work; 3] = [Work::Async, Work::SyncNoIdle, Work::Sync];
}

/// enum cfqq_state_flags. The flags of merging are in `Tie`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "bits of one word in the kernel, each under its name"
)]
pub(super) struct Flags {
    pub(super) on_rr: bool,
    pub(super) wait_request: bool,
    pub(super) must_dispatch: bool,
    pub(super) must_alloc_slice: bool,
    pub(super) fifo_expire: bool,
    pub(super) idle_window: bool,
    pub(super) prio_changed: bool,
    pub(super) slice_new: bool,
    pub(super) sync: bool,
    pub(super) coop_preempt: bool,
    pub(super) deep: bool,
    pub(super) wait_busy: bool,
}

/// Instants and spans are in the unit of the clock.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queue {
    pub(super) flags: Flags,
    pub(super) pid: i32,
    pub(super) class: Class,
    pub(super) level: u8,
    pub(super) org_class: Class,
    pub(super) org_level: u8,
    pub(super) group: GroupId,
    /// The queue's own group while it is in the root's trees (orig_cfqg).
    pub(super) home: Option<GroupId>,
    /// Node of the service tree, and that tree.
    pub(super) service: RbNode,
    pub(super) tree: Option<(GroupId, u8)>,
    pub(super) key: i64,
    /// Node of a position tree, and that tree.
    pub(super) position: RbNode,
    pub(super) position_tree: Option<u8>,
    pub(super) sort: SortTree,
    pub(super) fifo: QueueList,
    pub(super) next_rq: Option<RequestId>,
    /// Queued requests: asynchronous, synchronous.
    pub(super) queued: [u32; 2],
    pub(super) meta_pending: u32,
    /// Dispatched requests that have not ended.
    pub(super) dispatched: u32,
    pub(super) dispatch_start: i64,
    /// First completion since the queue became active.
    pub(super) slice_start: Option<i64>,
    pub(super) slice_end: i64,
    pub(super) slice_resid: i64,
    pub(super) slice_dispatch: u32,
    pub(super) allocated_slice: i64,
    /// Sectors dispatched since the queue became active (nr_sectors, 2.6.33 and 4.20).
    pub(super) slice_sectors: u64,
    /// The part of its ideal share below one nanosecond, which is shown later.
    pub(super) share_rest: u64,
    pub(super) seeks: SeekMean,
    /// One bit per request, set for a seek.
    pub(super) seek_history: u32,
    pub(super) last_request_pos: u64,
}

impl Queue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.sort.is_empty()
    }

    pub(super) fn work(&self) -> Work {
        match (self.flags.sync, self.flags.idle_window) {
            (false, _) => Work::Async,
            (true, false) => Work::SyncNoIdle,
            (true, true) => Work::Sync,
        }
    }
}

/// All queues, by the same numbers as their merging states.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queues(pub(super) Vec<Queue>);

impl Queues {
    /// A new queue with this number.
    pub(super) fn begin(&mut self, q: QId) -> &mut Queue {
        if self.0.len() <= q.0 as usize {
            self.0.resize(q.0 as usize + 1, Queue::default());
        }
        self[q] = Queue::default();
        &mut self[q]
    }
}

impl Index<QId> for Queues {
    type Output = Queue;
    #[inline]
    fn index(&self, q: QId) -> &Queue {
        &self.0[q.0 as usize]
    }
}

impl IndexMut<QId> for Queues {
    #[inline]
    fn index_mut(&mut self, q: QId) -> &mut Queue {
        &mut self.0[q.0 as usize]
    }
}

impl RbNodes for Queues {
    #[inline]
    fn node(&self, at: u32) -> &RbNode {
        &self.0[at as usize].position
    }

    #[inline]
    fn node_mut(&mut self, at: u32) -> &mut RbNode {
        &mut self.0[at as usize].position
    }
}

impl Placed for Queues {
    #[inline]
    fn sector(&self, pool: &RequestPool, at: u32) -> Sector {
        let next = self.0[at as usize].next_rq;
        pool[next.expect("a queue with a position has a next request")].sector
    }
}

pub(super) struct Served<'a>(pub(super) &'a mut Queues);

impl RbNodes for Served<'_> {
    #[inline]
    fn node(&self, at: u32) -> &RbNode {
        &self.0.0[at as usize].service
    }

    #[inline]
    fn node_mut(&mut self, at: u32) -> &mut RbNode {
        &mut self.0.0[at as usize].service
    }
}
