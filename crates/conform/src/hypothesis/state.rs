//! Hypothesis that changes from event to event while a capture is followed: the model's side, the
//! kernel's, and the knowledge about things in progress.
//!
//! A clone of it is a checkpoint (`checkpoints.rs`). Constant data is in `hypothesis.rs`.

use std::collections::BTreeMap;

use blkmq::request::{IoPrio, QueueId, RequestId, Sector};
use blkmq::time::{Jiffies, SimTime};

use super::plan::Read;
use crate::kernel::Kernel;
use crate::lines::Sides;
use crate::world::World;

/// Requests with the device of one start, with sectors that have completed.
pub(super) type Issued = Vec<(RequestId, u32)>;

/// Both sides, and what has begun.
#[derive(Clone, Debug)]
pub(crate) struct Hypothesis {
    pub(crate) world: World,
    pub(crate) kernels: Vec<Kernel>,
    /// By device and start; flushes by the greatest number.
    pub(crate) issued: BTreeMap<(QueueId, u64), Issued>,
    /// Requests that reached the scheduler's insertion, by CPU: address, priority, tick.
    pub(crate) arriving: BTreeMap<u16, (u64, IoPrio, Jiffies)>,
    /// Levels of requests that ended on a CPU which has traced nothing since: the count may come
    /// later than the trace.
    pub(crate) late: BTreeMap<u16, usize>,
    /// Levels of the next completed requests for the scheduler, by CPU.
    pub(crate) finishing: BTreeMap<u16, usize>,
    /// The clock is read so many nanoseconds beside the record.
    pub(crate) reads_beside: i64,
    /// Of a D whose request waits for its turn: its task has begun no run of its own.
    pub(crate) no_run_yet: bool,
    /// A call that returns has read this outside the lock, if its return does not show that.
    pub(crate) reads: Option<Read>,
    /// No rule leads to the answer of this call.
    pub(crate) forced: bool,
    /// Calls that have decided and not returned: the start of the request that each gives.
    pub(crate) early: BTreeMap<usize, Sector>,
    /// A run that shows nowhere has found something to do.
    pub(crate) ran_unseen: bool,
    /// By task: it waits for a tag where the model has had one.
    pub(crate) tag_denied: Vec<bool>,
    pub(crate) now: Jiffies,
    /// Requests that the scheduler dispatched and no path owns.
    pub(crate) unowned: Vec<(QueueId, RequestId)>,
    /// Requests that have completed while a path has them still to offer.
    pub(crate) completed_while_queued: Vec<(QueueId, RequestId)>,
    /// Requests that have completed before their D.
    pub(crate) completed_before_issue: Vec<(QueueId, RequestId)>,
    /// When the last event before this one was, or the last timer ran.
    pub(crate) passed: SimTime,
    /// Effects that could not be shown, by kind.
    pub(crate) notes: Vec<&'static str>,
    /// Devices whose two sides may hold different requests.
    pub(crate) differs: Vec<bool>,
    /// Logs of schedulers, device by device.
    pub(crate) sides: Vec<Sides>,
    /// By task: when it has read the clock first in its plug, where that is kept.
    pub(crate) plugged: Vec<Option<SimTime>>,
    /// Its plug was flushed since its last Q, by task.
    pub(crate) let_go: Vec<bool>,
}

impl Hypothesis {
    /// The kernel's line that the next one of the model is to be compared with.
    pub(crate) fn coming(&self, queue: QueueId) -> usize {
        let fresh = self.world.outside.said.iter();
        let fresh = fresh.filter(|&&(of, ..)| of == queue).count();
        self.sides[queue.index()].coming() + fresh
    }
}
