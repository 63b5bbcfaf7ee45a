//! Emptying the software queues, for queues without a scheduler.
//!
//! Kernel: blk_mq_do_dispatch_ctx(), blk_mq_flush_busy_ctxs(), blk_mq_dequeue_from_ctx()
//! (6.1.192, 6.12.117).

use super::list::{ListPath, ListStep};
use super::pass::BUDGET_DELAY;
use super::{Next, PullStep, labels, lock, set_places};
use crate::env::{Answer, Bit, Cpu, Effect, Env, Hint, Lock, Slab, Word};
use crate::list::QueueList;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, Place, QueueId};

labels! {
    /// Labels of emptying software queues.
    pub enum At in "ctx" {
        /// Next set bit of the ctx_map, all queues at once.
        Scan,
        /// Under ctx->lock: take all of its requests.
        Splice,
        /// One by one: did something land on the dispatch list meanwhile?
        PeekDispatch,
        /// Is any bit set?
        Any,
        /// Was there a budget?
        Budget,
        /// Next set bit at or after `dispatch_from`.
        Find,
        /// Under ctx->lock: take its oldest request.
        Dequeue,
        /// Nothing was found after all: run again later, one hctx a label.
        Withheld,
        /// `dispatch_rq_list`.
        List,
    }
}

/// Emptying the software queues of an hctx.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct CtxPath {
    pub(super) at: At,
    all: bool,
    taken: QueueList,
    bit: u32,
    looked: u32,
    token: Option<u32>,
}

impl CtxPath {
    /// `all`: take every request at once; else one by one, round robin.
    pub(super) fn new(all: bool) -> CtxPath {
        CtxPath {
            at: if all { At::Scan } else { At::PeekDispatch },
            all,
            taken: QueueList::new(),
            bit: 0,
            looked: 0,
            token: None,
        }
    }

    /// The next label is one of the list's.
    pub(super) fn in_list(&self) -> bool {
        self.at == At::List
    }

    /// One step; `list` is the run's dispatch list, which this fills and empties.
    pub(super) fn step<E: Env>(
        &mut self,
        list: &mut ListPath,
        mq: &BlkMq<E>,
        queue: QueueId,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let q = mq.queue(queue);
        let hctx = q.hctx(hctx_id);
        match self.at {
            At::Scan => self.scan(list, q, queue, hctx_id, cpu),
            At::Splice => self.take(list, q, hctx_id, cpu),
            At::PeekDispatch => {
                if hctx.dispatch_pending.test(cpu) {
                    return PullStep::End { again: true };
                }
                self.looked = 0;
                self.wait(At::Any)
            }
            At::Any => {
                let word = self.looked as usize;
                let any = hctx.ctx_map[word].load(cpu) != 0;
                self.looked += 1;
                if !any && (self.looked as usize) < hctx.ctx_map.len() {
                    return PullStep::Wait(Next::Step);
                }
                self.looked = 0;
                if !any {
                    return PullStep::End { again: false };
                }
                self.bit = hctx.dispatch_from.get();
                if q.settings.driver_budget {
                    self.at = At::Budget;
                    return PullStep::Wait(Next::Budget);
                }
                self.wait(At::Find)
            }
            At::Budget => match core::mem::take(&mut cpu.answer) {
                Answer::Budget(token) => {
                    self.token = Some(token);
                    self.wait(At::Find)
                }
                _ => PullStep::End { again: false },
            },
            At::Find => self.find(q, queue, hctx_id, cpu),
            At::Dequeue => self.take(list, q, hctx_id, cpu),
            At::Withheld => self.withheld(q, queue, cpu),
            At::List => match list.step(mq, queue, hctx_id, cpu) {
                ListStep::Wait(next) => PullStep::Wait(next),
                ListStep::End { whole, .. } => {
                    *list = ListPath::idle();
                    if self.all || !whole {
                        return PullStep::End { again: false };
                    }
                    self.wait(At::PeekDispatch)
                }
            },
        }
    }

    /// blk_mq_delay_run_hw_queues(): the budget in hand may have held any hctx of the queue back.
    fn withheld<E: Env>(&mut self, q: &RequestQueue<E>, queue: QueueId, cpu: &mut Cpu) -> PullStep {
        cpu.outbox.push(Effect::KickUnlessPending {
            queue,
            hctx: HctxId(self.bit as u16),
            delay: BUDGET_DELAY,
        });
        self.bit += 1;
        if (self.bit as usize) < q.hctxs.len() {
            return PullStep::Wait(Next::Step);
        }
        self.bit = 0;
        PullStep::End { again: false }
    }

    fn wait(&mut self, at: At) -> PullStep {
        self.at = at;
        PullStep::Wait(Next::Step)
    }

    /// Next ctx with requests, in bit order; at the end the list goes to the driver.
    fn scan<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        queue: QueueId,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let hctx = q.hctx(hctx_id);
        let word = (self.bit / 64) as usize;
        if word >= hctx.ctx_map.len() {
            self.bit = 0;
            if self.taken.is_empty() {
                return PullStep::End { again: false };
            }
            let taken = core::mem::take(&mut self.taken);
            *list = ListPath::new(taken, true);
            return self.wait(At::List);
        }
        let rest = hctx.ctx_map[word].load(cpu) >> (self.bit % 64);
        if rest == 0 {
            self.bit = (word as u32 + 1) * 64;
            return PullStep::Wait(Next::Step);
        }
        self.bit += rest.trailing_zeros();
        self.at = At::Splice;
        let (ctx, _) = hctx.ctxs[self.bit as usize];
        PullStep::Wait(lock(queue, LockKind::Ctx, u32::from(ctx.0)))
    }

    /// Next ctx with requests at or after `dispatch_from`, going round once.
    fn find<E: Env>(
        &mut self,
        q: &RequestQueue<E>,
        queue: QueueId,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let hctx = q.hctx(hctx_id);
        let count = hctx.ctxs.len() as u32;
        if self.looked >= count {
            self.looked = 0;
            self.bit = 0;
            self.at = At::Withheld;
            return match self.token.take() {
                Some(token) => PullStep::Wait(Next::PutBudget(token)),
                None => PullStep::Wait(Next::Step),
            };
        }
        let word = hctx.ctx_map[(self.bit / 64) as usize].load(cpu);
        let here = word >> (self.bit % 64);
        let until_word_end = (64 - self.bit % 64).min(count - self.bit);
        let skip = here.trailing_zeros().min(until_word_end);
        if skip < until_word_end {
            self.bit += skip;
            self.looked += skip;
            self.at = At::Dequeue;
            let (ctx, _) = hctx.ctxs[self.bit as usize];
            return PullStep::Wait(lock(queue, LockKind::Ctx, u32::from(ctx.0)));
        }
        self.looked += until_word_end;
        self.bit = (self.bit + until_word_end) % count;
        PullStep::Wait(Next::Step)
    }

    /// Under ctx->lock: all requests of the ctx, or the oldest.
    fn take<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> PullStep {
        let hctx = q.hctx(hctx_id);
        let (ctx_id, kind) = hctx.ctxs[self.bit as usize];
        let (ctx, kind) = (&q.ctxs[usize::from(ctx_id.0)], usize::from(kind));
        let mut pool = q.pool.held(cpu.id);
        let mut lists = ctx.lists.held(cpu);
        let marked = hctx.ctx_map[(self.bit / 64) as usize].peek() >> (self.bit % 64) & 1 == 1;
        debug_assert_eq!(marked, !lists[kind].is_empty(), "the mark of {ctx_id:?}");
        let mut taken = QueueList::new();
        if self.all {
            taken.splice_back(&mut pool, &mut lists[kind]);
        } else if let Some(rq) = lists[kind].pop_front(&mut pool) {
            taken.push_back(&mut pool, rq);
        }
        let empty = lists[kind].is_empty();
        drop(lists);
        drop(pool);
        if empty {
            hctx.ctx_map[(self.bit / 64) as usize].fetch_and(cpu, !(1 << (self.bit % 64)));
            ctx.pending[kind].clear(cpu);
        }
        set_places(q, cpu, taken, Place::Path);
        let step = self.taken_from(list, q, hctx_id, cpu, taken);
        ctx.lists.release(cpu);
        step
    }

    fn taken_from<E: Env>(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue<E>,
        hctx_id: HctxId,
        cpu: &mut Cpu,
        mut taken: QueueList,
    ) -> PullStep {
        let mut pool = q.pool.held(cpu.id);
        if self.all {
            self.taken.splice_back(&mut pool, &mut taken);
            self.bit += 1;
            drop(pool);
            return self.wait(At::Scan);
        }
        let hctx = q.hctx(hctx_id);
        let count = hctx.ctxs.len() as u32;
        self.looked += 1;
        self.bit = (self.bit + 1) % count;
        if taken.is_empty() {
            drop(pool);
            return self.wait(At::Find);
        }
        let rq = taken.first().expect("not empty");
        pool[rq].budget = self.token.take();
        drop(pool);
        hctx.dispatch_from.put(self.bit);
        self.bit = 0;
        self.looked = 0;
        *list = ListPath::new(taken, false);
        self.wait(At::List)
    }
}

#[cfg(test)]
mod tests;
