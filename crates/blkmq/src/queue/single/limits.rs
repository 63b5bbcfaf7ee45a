//! Limits on the requests of a single-queue one: by kind, with congestion, batches and a queue of
//! sleeping tasks.
//!
//! Kernel: struct request_list, get_request(), freed_request(), ioc_batching() in block/blk-core.c
//! (2.6.32.2).

use crate::request::{IoContextId, Op, OpFlags, RequestId};
use crate::time::Jiffies;
use crate::waiter::WaiterId;

/// Requests that a process may have beyond the limit once it has reached it (BLK_BATCH_REQ).
const BATCH_REQ: u32 = 32;

/// The kind by which requests are counted: BLK_RW_ASYNC, BLK_RW_SYNC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// No task waits for them.
    Async,
    /// Reads, and writes with the SYNC bit.
    Sync,
}

impl Kind {
    /// The kind of an I/O (rw_is_sync()).
    pub fn of(op: Op, flags: OpFlags) -> Kind {
        if op == Op::Read || flags.sync {
            return Kind::Sync;
        }
        Kind::Async
    }
}

/// The most requests of a kind, for any task.
pub(super) fn most(nr_requests: u32) -> u32 {
    3 * nr_requests / 2
}

/// An I/O context that has been at the limit (ioc->nr_batch_requests, last_waited).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Batcher {
    /// Requests that are left of its batch.
    pub left: u32,
    /// Begin of the batch.
    pub since: Jiffies,
}

/// The task that needs a request, and the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asks {
    pub(crate) kind: Kind,
    pub(crate) io_context: IoContextId,
    pub(crate) now: Jiffies,
    pub(crate) hz: u32,
    /// The scheduler exempts it from all limits but the last.
    pub(crate) must: bool,
}

/// Requests of a queue by kind (request_list).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RequestLimits {
    /// queue/nr_requests: requests of each kind.
    nr_requests: u32,
    /// Allocated, by [`Kind`].
    pub count: [u32; 2],
    /// Only batchers and tasks that the scheduler favours get more.
    pub full: [bool; 2],
    /// The queue is congested for this kind (bdi_congested()): read-ahead is skipped.
    pub congested: [bool; 2],
    /// Tasks that sleep for a request, the first one first.
    waiting: [Vec<WaiterId>; 2],
    /// By number of the I/O context.
    batchers: Vec<Batcher>,
    /// Free slots, one bit each.
    free: Vec<u64>,
}

impl RequestLimits {
    /// None allocated.
    pub(super) fn new(nr_requests: u32, io_contexts: usize) -> RequestLimits {
        let slots = super::slots_for(nr_requests);
        let word = |first: u32| u64::MAX >> (64 - (slots - first).min(64));
        let room = || Vec::with_capacity(io_contexts);
        RequestLimits {
            nr_requests,
            count: [0; 2],
            full: [false; 2],
            congested: [false; 2],
            waiting: [room(), room()],
            batchers: vec![Batcher::default(); io_contexts],
            free: (0..slots).step_by(64).map(word).collect(),
        }
    }

    pub fn allocated(&self) -> u32 {
        self.count.iter().sum()
    }

    /// Tasks that sleep for a request of this kind.
    pub fn waiting(&self, kind: Kind) -> &[WaiterId] {
        &self.waiting[kind as usize]
    }

    /// queue_congestion_on_threshold().
    fn congestion_on(&self) -> u32 {
        let nr = self.nr_requests;
        (nr - nr / 8 + 1).min(nr)
    }

    /// queue_congestion_off_threshold().
    fn congestion_off(&self) -> u32 {
        let nr = self.nr_requests;
        (nr - nr / 8 - nr / 16).saturating_sub(1).max(1)
    }

    /// get_request(): the slot of a request, if the process gets one now.
    pub(crate) fn get(&mut self, asks: Asks) -> Option<RequestId> {
        let kind = asks.kind as usize;
        let wanted = self.count[kind] + 1;
        let at_limit = wanted >= self.nr_requests;
        if at_limit {
            if !self.full[kind] {
                self.begin_batch(asks);
                self.full[kind] = true;
            } else if !asks.must && !self.is_batching(asks) {
                return None;
            }
        }
        if wanted >= self.congestion_on() {
            self.congested[kind] = true;
        }
        if self.count[kind] >= most(self.nr_requests) {
            return None;
        }
        self.count[kind] += 1;
        if at_limit && self.is_batching(asks) {
            self.batcher(asks.io_context).left -= 1;
        }
        Some(self.take_slot())
    }

    /// ioc_set_batching(): also for a task that has slept for a request.
    pub(crate) fn begin_batch(&mut self, asks: Asks) {
        if !self.is_batching(asks) {
            *self.batcher(asks.io_context) = Batcher {
                left: BATCH_REQ,
                since: asks.now,
            };
        }
    }

    /// ioc_batching(): at least one request, even if its time is over.
    fn is_batching(&self, asks: Asks) -> bool {
        let known = self.batchers.get(asks.io_context.0 as usize);
        let Batcher { left, since } = known.copied().unwrap_or_default();
        let until = since.0 + u64::from(asks.hz / 50);
        left == BATCH_REQ || left > 0 && asks.now.0 < until
    }

    fn batcher(&mut self, io_context: IoContextId) -> &mut Batcher {
        let index = io_context.0 as usize;
        if index >= self.batchers.len() {
            self.batchers.resize(index + 1, Batcher::default());
        }
        &mut self.batchers[index]
    }

    /// prepare_to_wait_exclusive(): after the present waiters.
    pub(crate) fn wait(&mut self, kind: Kind, task: WaiterId) {
        self.waiting[kind as usize].push(task);
    }

    /// freed_request(): returns the task to be woken, if there is one.
    ///
    /// # Panics
    /// If there is no request of this kind.
    pub(crate) fn freed(&mut self, kind: Kind, rq: RequestId) -> Option<WaiterId> {
        self.give_slot(rq);
        let off = self.congestion_off();
        let kind = kind as usize;
        assert!(
            self.count[kind] > 0,
            "a request more is freed than there are"
        );
        self.count[kind] -= 1;
        if self.count[kind] < off {
            self.congested[kind] = false;
        }
        if self.count[kind] + 1 > self.nr_requests {
            return None;
        }
        self.full[kind] = false;
        let anybody = !self.waiting[kind].is_empty();
        anybody.then(|| self.waiting[kind].remove(0))
    }

    fn take_slot(&mut self) -> RequestId {
        let word = self.free.iter().position(|&word| word != 0);
        let word = word.expect("there are as many slots as the limits allow");
        let bit = self.free[word].trailing_zeros();
        self.free[word] &= self.free[word] - 1;
        super::slot(word as u32 * 64 + bit)
    }

    fn give_slot(&mut self, rq: RequestId) {
        let (word, bit) = (&mut self.free[rq.0 as usize / 64], 1 << (rq.0 % 64));
        assert_eq!(*word & bit, 0, "{rq:?} is freed twice");
        *word |= bit;
    }
}

#[cfg(test)]
mod tests;
