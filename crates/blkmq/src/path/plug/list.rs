//! The list of a plug: requests of any queue, each with a link to the next.
//!
//! Singly linked and not a [`crate::list::List`]: that is within one pool, and the requests of a
//! plug may belong to several queues. Kernel: struct rq_list (6.12.117), the macros rq_list_*
//! (6.1.192), both through `rq->rq_next`.

use crate::queue::BlkMq;
use crate::request::{CpuId, Plugged, RequestPool};

/// Head of such a list. Copying it does not copy the entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PlugList {
    first: Option<Plugged>,
    last: Option<Plugged>,
    len: u32,
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

    /// rq_list_add_tail().
    pub(crate) fn push_back(&mut self, mq: &BlkMq, cpu: CpuId, entry: Plugged) {
        let of = |entry: Plugged| mq.queue(entry.queue).pool.held(cpu);
        of(entry).set_next_plugged(entry.rq, None);
        match self.last {
            Some(last) => of(last).set_next_plugged(last.rq, Some(entry)),
            None => self.first = Some(entry),
        }
        self.last = Some(entry);
        self.len += 1;
    }

    /// rq_list_pop().
    pub(crate) fn pop_front(&mut self, mq: &BlkMq, cpu: CpuId) -> Option<Plugged> {
        let entry = self.first?;
        let mut pool = mq.queue(entry.queue).pool.held(cpu);
        self.first = pool.next_plugged(entry.rq);
        pool.set_next_plugged(entry.rq, None);
        if self.first.is_none() {
            self.last = None;
        }
        self.len -= 1;
        Some(entry)
    }

    /// Entries from front to back.
    pub fn iter(&self, mq: &BlkMq) -> impl Iterator<Item = Plugged> {
        let mut next = self.first;
        core::iter::from_fn(move || {
            let entry = next?;
            next = mq
                .queue(entry.queue)
                .with_pool(|pool| pool.next_plugged(entry.rq));
            Some(entry)
        })
    }
}
