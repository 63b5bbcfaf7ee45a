//! Merge events for the recorder of a run: each call, with all merging states after it.

use super::{QId, Slots, Tie, Ties};
use crate::request::IoContextId;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MergeCall {
    /// The search for the queue of a process; a process without a queue gets one before the request
    /// takes its reference.
    Find {
        process: IoContextId,
        sync: bool,
        before: Option<QId>,
        found: Option<QId>,
    },
    /// A request of a queue is set up.
    Hold(QId),
    Release(QId),
    /// The exit of a process, for one of its queues.
    Exit {
        process: IoContextId,
        sync: bool,
    },
    /// The process has another group.
    ChangeGroup(IoContextId),
    /// The process has another asynchronous queue.
    ChangeIoprio(IoContextId),
    /// The merge of two queues is planned, if it is allowed.
    SetUp {
        cur: QId,
        candidate: QId,
    },
}

/// A call, and the merging states after it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CallEvent {
    pub call: MergeCall,
    /// All merging states by number; some are not live.
    pub ties: Vec<Tie>,
    pub slots: Vec<Slots>,
    /// The table of asynchronous queues.
    pub table: Vec<Option<QId>>,
}

impl Ties {
    /// Records a call, if a recorder is attached.
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
