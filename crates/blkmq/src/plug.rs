//! A task's plug.
//!
//! Not here: its flush (`path/plug.rs`), and what walks over the pools of several queues
//! (`path/plug/list.rs`). Kernel: struct blk_plug, blk_start_plug_nr_ios(),
//! blk_plug_max_rq_count(); struct rq_list (6.12.117), the macros rq_list_* (6.1.192), both through
//! `rq->rq_next`.

use crate::list::QueueList;
use crate::not_state::NotState;
use crate::request::{Plugged, QueueId, RequestPool};
use crate::rules::{PlugMax, PlugOrder, Stamp};
use crate::time::SimTime;

/// BLK_MAX_REQUEST_COUNT; 16 before v5.16.
const PLUG_MAX: u32 = 32;

/// A task's plug (blk_plug). The driver stores it with the task and moves it into the running CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Plug {
    /// blk_start_plug() was called.
    pub active: bool,
    /// The requests, in the order of issue: see `Rules::plug_order`.
    pub list: PlugList,
    /// Cached requests (cached_rqs): all of one queue, since only the first allocation of a plug
    /// takes several.
    pub cached: QueueList,
    pub cached_queue: QueueId,
    /// Bios that the task announced (blk_start_plug_nr_ios).
    pub nr_ios: u16,
    /// A request with a scheduler tag was added.
    pub has_elevator: bool,
    /// It has held requests of several queues at once.
    pub multiple_queues: bool,
    /// Its clock (cur_ktime): the time of the first read since the last flush, if there was one.
    pub clock: NotState<Option<SimTime>>,
}

impl Plug {
    /// blk_time_get_ns() of a task with this plug, or without one: `now` unless the rules cache it.
    pub(crate) fn time(&mut self, stamp: Stamp, now: SimTime) -> SimTime {
        match stamp {
            Stamp::OfPlug if self.active => *self.clock.0.get_or_insert(now),
            // A plug that is being flushed for the last time still has its clock.
            Stamp::OfPlug => self.clock.0.unwrap_or(now),
            Stamp::Each | Stamp::EachBio => now,
        }
    }

    /// Its clock was read and does not advance.
    pub(crate) fn keeps_time(&self) -> bool {
        self.clock.0.is_some()
    }

    /// blk_start_plug_nr_ios(). Panics if the plug is active.
    pub fn start(&mut self, nr_ios: u16) {
        assert!(!self.active, "only the outermost plug counts");
        *self = Plug {
            active: true,
            nr_ios: nr_ios.clamp(1, PLUG_MAX as u16),
            ..Plug::default()
        };
    }

    /// No request to flush and none to free.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.cached.is_empty()
    }

    pub fn queue(&self) -> QueueId {
        self.list
            .first()
            .map_or(self.cached_queue, |entry| entry.queue)
    }

    pub(crate) fn newest(&self, order: PlugOrder) -> Option<Plugged> {
        match order {
            PlugOrder::Lifo => self.list.first(),
            PlugOrder::Fifo | PlugOrder::Sorted => self.list.last(),
        }
    }

    /// blk_plug_max_rq_count() of the requests that count.
    pub(crate) fn is_full(&self, max: PlugMax, count: usize) -> bool {
        let most = match max {
            PlugMax::ThirtyTwo => PLUG_MAX << u32::from(self.multiple_queues),
            PlugMax::Sixteen | PlugMax::SixteenOfQueue => PLUG_MAX / 2,
        };
        count as u32 >= most
    }
}

/// Head of the list of a plug: requests of any queue, each with a link to the next. Copying it does
/// not copy the entries.
///
/// Singly linked and not a [`crate::list::List`]: that is within one pool, and the requests of a
/// plug may belong to several queues.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PlugList {
    pub(crate) first: Option<Plugged>,
    pub(crate) last: Option<Plugged>,
    pub(crate) len: u32,
}

impl PlugList {
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Number of entries (rq_count).
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The entry at the front (rq_list_peek).
    pub fn first(&self) -> Option<Plugged> {
        self.first
    }

    pub fn last(&self) -> Option<Plugged> {
        self.last
    }

    /// rq_list_add(): at the front. `pool` is that of the entry's queue.
    pub(crate) fn push_front(&mut self, pool: &mut RequestPool, entry: Plugged) {
        pool.set_next_plugged(entry.rq, self.first);
        self.first = Some(entry);
        self.last = self.last.or(self.first);
        self.len += 1;
    }
}
