//! The state of a single-queue one that its lock guards, besides the scheduler.
//!
//! That lock is the scheduler's, so the state is a [`Slab`]: only the owner of the lock may borrow
//! it. Not here: operations on it (`path/single/`), limits on requests (`single/limits.rs`).
//! Kernel: struct request_queue, block/blk-core.c (2.6.32.2).

mod limits;

pub(crate) use limits::Asks;
pub use limits::{Batcher, Kind, RequestLimits};

use crate::env::{Bit, Slab, Toucher, value};
use crate::list::QueueList;
use crate::request::{CpuId, RequestId};
use crate::time::Duration;

/// Number of the unplug timer among the timers of a queue: after those of any scheduler.
pub const UNPLUG_TIMER: u8 = u8::MAX;

/// Requests that unplug a queue (q->unplug_thresh).
pub const UNPLUG_THRESH: u32 = 4;

/// A plugged queue is unplugged after this time (q->unplug_delay), in whole ticks, at least one.
pub(crate) fn unplug_delay(hz: u32) -> Duration {
    let ticks = (3 * u64::from(hz) / 1000).max(1);
    Duration(ticks * (1_000_000_000 / u64::from(hz)))
}

/// Properties of the driver of a single-queue one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SingleSettings {
    /// Requests that the driver takes at once.
    pub depth: u32,
    /// Whether the end of a request runs the queue.
    pub end_runs: EndRuns,
}

/// Whether the end of a request runs the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EndRuns {
    /// Always (scsi_run_queue()).
    Always,
    /// If the driver had stopped it because it had all the requests it can take, and then in
    /// kblockd (null_blk, 4.20: blk_start_queue_async()).
    IfStopped,
    /// Never: the driver has kblockd run it when it has completed the request (device-mapper).
    ByDriver,
}

/// State of a single-queue one besides its scheduler.
#[derive(Debug)]
pub struct Single {
    /// QUEUE_FLAG_PLUGGED: requests wait until there are more. Written under the queue's lock, read
    /// without it as well.
    pub plugged: Bit,
    /// QUEUE_FLAG_STOPPED: the driver has all requests it can take, or the mapped device is
    /// suspended. Written under the queue's lock, read without it as well.
    pub stopped: Bit,
    /// The data under the queue's lock.
    pub state: Slab<SingleQueue>,
}

value!(Single { ; plugged, stopped, state });

impl Single {
    /// Idle, as [`SingleQueue::new`].
    pub(super) fn new(nr_requests: u32, io_contexts: usize) -> Single {
        Single {
            plugged: Bit::new(false),
            stopped: Bit::new(false),
            state: Slab::new(SingleQueue::new(nr_requests, io_contexts)),
        }
    }
}

/// The data under the queue's lock, besides the scheduler.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SingleQueue {
    /// Requests for the driver, the next one first (q->queue_head).
    pub driver_list: QueueList,
    /// Requests with the driver, by [`Kind`] (q->in_flight).
    pub in_flight: [u32; 2],
    /// QUEUE_FLAG_REENTER: the driver's function is running, though perhaps without the lock.
    pub runs: bool,
    /// QUEUE_FLAG_CQ: more than four were with the driver at once.
    pub queuing: bool,
    pub limits: RequestLimits,
}

/// Accesses are not counted: its lines travel with the lock.
impl Toucher for SingleQueue {
    fn touched_by(&mut self, _cpu: CpuId) {}
}

impl SingleQueue {
    /// Idle, with `nr_requests` requests of each kind, for so many I/O contexts.
    pub fn new(nr_requests: u32, io_contexts: usize) -> SingleQueue {
        SingleQueue {
            driver_list: QueueList::new(),
            in_flight: [0; 2],
            runs: false,
            queuing: false,
            limits: RequestLimits::new(nr_requests, io_contexts),
        }
    }

    /// All requests with the driver (queue_in_flight()).
    pub fn with_driver(&self) -> u32 {
        self.in_flight.iter().sum()
    }

    /// The driver takes a request (blk_dequeue_request()).
    pub(crate) fn starts(&mut self, kind: Kind) {
        self.in_flight[kind as usize] += 1;
        self.queuing |= self.with_driver() > 4;
    }

    /// A request leaves the driver.
    ///
    /// # Panics
    /// If it has none of its kind.
    pub(crate) fn leaves_driver(&mut self, kind: Kind) {
        let count = &mut self.in_flight[kind as usize];
        assert!(*count > 0, "the driver has no {kind:?} request");
        *count -= 1;
    }

    /// Allocated requests that are not with the driver; a plug counts these.
    pub(crate) fn waiting_count(&self) -> u32 {
        self.limits.allocated() - self.with_driver()
    }
}

/// Slots that such a queue needs: half as many again as nr_requests, of both kinds.
pub fn slots_for(nr_requests: u32) -> u32 {
    2 * limits::most(nr_requests)
}

pub(crate) fn slot(number: u32) -> RequestId {
    RequestId(number)
}
