//! Group: entities that are scheduled together below one entity.
//!
//! Kernel: struct bfq_group, struct bfq_sched_data in block/bfq-iosched.h (6.1.192, 6.12.117).

use super::ids::{EntityId, QId};
use super::service_tree::ServiceTree;
use crate::elevator::ideal_share::WeightedShare;
use crate::rbtree::RbTree;

pub(super) const LEVELS: usize = 8;
/// Classes (BFQ_IOPRIO_CLASSES).
pub(super) const CLASSES: usize = 3;

/// Queues of a group's asynchronous operations, for one actuator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct AsyncQueues {
    /// RT and BE, by level.
    pub(super) by_level: [[Option<QId>; LEVELS]; 2],
    pub(super) idle: Option<QId>,
}

impl AsyncQueues {
    pub(super) fn iter(&self) -> impl Iterator<Item = QId> + '_ {
        let levels = self.by_level.iter().flatten();
        levels.chain([&self.idle]).flatten().copied()
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Group {
    pub(super) in_service: Option<EntityId>,
    pub(super) next_in_service: Option<EntityId>,
    /// RT, BE, IDLE.
    pub(super) trees: [ServiceTree; CLASSES],
    /// When class IDLE was served last, in ticks.
    pub(super) idle_class_served: i64,
    pub(super) async_queues: Vec<AsyncQueues>,
    /// Queues by the sector of their next request.
    pub(super) pos_tree: RbTree,
    pub(super) active_entities: u32,
    /// Queues directly in the group with requests (num_queues_with_pending_reqs).
    pub(super) pending_queues: u32,
    /// The busy queues and groups that share the sectors served, for plots.
    pub(super) ideal_share: WeightedShare,
}
