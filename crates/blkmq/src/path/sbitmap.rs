//! The tag maps that paths use, their locks, and operations on several of their words.
//!
//! Data of a map: `crate::sbitmap`. Kernel: lib/sbitmap.c (6.1.192, 6.12.117).

pub(super) mod alone;
#[macro_use]
mod countdown;
mod get;
mod put;
mod resize;

pub(super) use get::{At as GetAt, sbitmap_get, sbitmap_queue_get_batch};
pub use put::At as PutAt;
pub(super) use put::{Counted, Put, Woken, put_tag, sbitmap_queue_wake_all, sbitmap_queue_wake_up};
pub(super) use resize::sbitmap_queue_resize;

use crate::queue::{LockKind, RequestQueue, WORDS_MAX};
use crate::request::HctxId;
use crate::sbitmap::{Sbitmap, WAIT_QUEUES};
use crate::step::{Cx, Next};

/// A map of a path's queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum TagMap {
    /// Driver tags of this hctx.
    Driver(HctxId),
    /// Scheduler tags of this hctx.
    Sched(HctxId),
    /// Tokens of the scheduler with this number.
    Token(u8),
}

impl Default for TagMap {
    fn default() -> TagMap {
        TagMap::Driver(HctxId::default())
    }
}

impl TagMap {
    /// The tags that identify requests: the scheduler's, or the driver's without one.
    pub(super) fn of_requests(q: &RequestQueue, hctx: HctxId) -> TagMap {
        match q.has_elevator() {
            true => TagMap::Sched(hctx),
            false => TagMap::Driver(hctx),
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "several times in each search and free"
    )]
    #[inline(always)]
    pub(super) fn of<'a>(self, cx: &Cx<'a>) -> &'a Sbitmap {
        match self {
            TagMap::Driver(hctx) => cx.set().driver_of(hctx),
            TagMap::Sched(hctx) => cx.q.sched_of(hctx),
            TagMap::Token(map) => &cx.q.tokens[usize::from(map)].map,
        }
    }

    /// Its index among the maps of its kind.
    fn index(self, cx: &Cx<'_>) -> usize {
        match self {
            TagMap::Driver(hctx) => cx.set().driver_index(hctx),
            TagMap::Sched(hctx) => cx.q.sched_index(hctx),
            TagMap::Token(map) => usize::from(map),
        }
    }

    /// The swap_lock of a word.
    pub(super) fn swap_lock(self, cx: &Cx<'_>, word: u32) -> Next {
        let kind = match self {
            TagMap::Driver(_) => LockKind::DriverSwap,
            TagMap::Sched(_) => LockKind::SchedSwap,
            TagMap::Token(_) => LockKind::TokenSwap,
        };
        cx.lock(kind, self.index(cx) as u32 * WORDS_MAX + word)
    }

    /// The lock of a wait queue.
    pub(super) fn wait_lock(self, cx: &Cx<'_>, ws_index: u32) -> Next {
        let kind = match self {
            TagMap::Driver(_) => LockKind::DriverWait,
            TagMap::Sched(_) => LockKind::SchedWait,
            TagMap::Token(_) => LockKind::TokenWait,
        };
        cx.lock(kind, (self.index(cx) * WAIT_QUEUES) as u32 + ws_index)
    }
}

#[cfg(test)]
pub(super) mod tests;
