//! Walks over the list of a plug, whose requests are in the pools of several queues.
//!
//! Kernel: struct rq_list (6.12.117), the macros rq_list_* (6.1.192).

use crate::plug::PlugList;
use crate::queue::BlkMq;
use crate::request::{CpuId, Plugged};

impl PlugList {
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

    /// list_sort() by plug_ctx_cmp(): by the address of the software queue (CPU by CPU, those of
    /// one CPU in the order of their queues), then by sector. Of two that are equal the newer one
    /// is first.
    pub(crate) fn sort(&mut self, mq: &BlkMq, cpu: CpuId) {
        let key = |entry: Plugged| {
            let pool = mq.queue(entry.queue).pool.held(cpu);
            let request = &pool[entry.rq];
            (request.ctx, entry.queue, request.sector)
        };
        let mut sorted = PlugList::default();
        while let Some(entry) = self.pop_front(mq, cpu) {
            let own = key(entry);
            let mut smaller = PlugList::default();
            while sorted.first.is_some_and(|first| key(first) < own) {
                let first = sorted.pop_front(mq, cpu).expect("it is not empty");
                smaller.push_back(mq, cpu, first);
            }
            smaller.push_back(mq, cpu, entry);
            smaller.append(mq, cpu, sorted);
            sorted = smaller;
        }
        *self = sorted;
    }

    /// list_del(): an entry that it has.
    pub(crate) fn remove(&mut self, mq: &BlkMq, cpu: CpuId, gone: Plugged) {
        let mut others = PlugList::default();
        while let Some(entry) = self.pop_front(mq, cpu) {
            if entry != gone {
                others.push_back(mq, cpu, entry);
            }
        }
        *self = others;
    }

    /// The entries of `more`, after its own.
    fn append(&mut self, mq: &BlkMq, cpu: CpuId, mut more: PlugList) {
        while let Some(entry) = more.pop_front(mq, cpu) {
            self.push_back(mq, cpu, entry);
        }
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
