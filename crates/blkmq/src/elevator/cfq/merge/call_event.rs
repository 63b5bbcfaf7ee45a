//! What whoever follows a run is told: each call, and all ties behind it.

use super::{QId, Slots, Tie, Ties};
use crate::request::IoContextId;

/// A call that went well.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergeCall {
    /// The queue for a request of a process; who has none gets one before he holds it.
    Find {
        process: IoContextId,
        sync: bool,
        before: Option<QId>,
        found: Option<QId>,
    },
    /// A request of a queue is set up.
    Hold(QId),
    Release(QId),
    /// A process exits: one of its queues.
    Exit {
        process: IoContextId,
        sync: bool,
    },
    /// A process has another group.
    ChangeGroup(IoContextId),
    /// It has another asynchronous queue.
    ChangeIoprio(IoContextId),
    /// Two queues are to become one, if they can.
    SetUp {
        cur: QId,
        /// The one that is close.
        candidate: QId,
    },
}

/// A call, and the ties behind it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CallEvent {
    pub call: MergeCall,
    /// All ties by number; some are not live.
    pub ties: Vec<Tie>,
    pub slots: Vec<Slots>,
    /// The table of asynchronous queues.
    pub table: Vec<Option<QId>>,
}

impl Ties {
    /// Tells of a call, if somebody listens.
    #[inline]
    pub(super) fn record(&mut self, call: impl FnOnce() -> MergeCall) {
        if self.events.is_on() {
            self.record_all(call());
        }
    }

    #[cold]
    fn record_all(&mut self, call: MergeCall) {
        let (ties, slots) = (self.all.clone(), self.slots.clone());
        let table = self.table.clone();
        self.events.record(CallEvent {
            call,
            ties,
            slots,
            table,
        });
    }
}
