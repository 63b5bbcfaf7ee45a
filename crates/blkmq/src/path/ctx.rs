//! Emptying the software queues, for queues without a scheduler.
//!
//! Kernel: blk_mq_do_dispatch_ctx(), blk_mq_flush_busy_ctxs(), blk_mq_dequeue_from_ctx()
//! (6.1.192, 6.12.117).

use super::list::{Dispatched, ListPath};
use super::pass::BUDGET_DELAY;
use crate::env::{Answer, Cpu, Effect};
use crate::list::QueueList;
use crate::names::labels;
use crate::queue::{BlkMq, CTXS_A_WORD, LockKind, RequestQueue};
use crate::request::{HctxId, Place, QueueId};
use crate::step::{Next, Sub, lock, set_places};

labels! {
    pub enum At in "ctx" {
        /// All queues at once: read the next word of the ctx_map.
        Scan,
        /// Under ctx->lock: take all of its requests.
        Splice,
        /// One by one: did something land on the dispatch list meanwhile?
        PeekDispatch,
        /// Is any bit set?
        Any,
        /// Was there a budget?
        Budget,
        /// Read the next word of the ctx_map, beginning at the current ctx.
        Find,
        /// Under ctx->lock: take its oldest request.
        Dequeue,
        /// No request was found after all: run again later, one hctx a label.
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
    /// The current ctx of the round robin: read from `dispatch_from` at the begin, and written
    /// there at the end.
    turn: u32,
    /// Bits of the ctx_map that `Scan` and `Find` have looked at.
    looked: u32,
    /// The word that `Scan` and `Find` have read, and its set bits that are still to be visited;
    /// `Any`: the next word.
    word: u32,
    seen: u8,
    /// Hctxs that `Withheld` has run again.
    hctxs_run: u16,
    token: Option<u32>,
}

impl CtxPath {
    /// blk_mq_flush_busy_ctxs(): every request at once.
    pub(super) fn all() -> CtxPath {
        CtxPath {
            at: At::Scan,
            all: true,
            taken: QueueList::new(),
            turn: 0,
            looked: 0,
            word: 0,
            seen: 0,
            hctxs_run: 0,
            token: None,
        }
    }

    /// blk_mq_do_dispatch_ctx(): one by one, round robin from this ctx on.
    pub(super) fn one_by_one(dispatch_from: u32) -> CtxPath {
        CtxPath {
            at: At::PeekDispatch,
            all: false,
            turn: dispatch_from,
            ..CtxPath::all()
        }
    }

    /// The next label is one of the list's.
    pub(super) fn in_list(&self) -> bool {
        self.at == At::List
    }

    /// One step; `list` is the run's dispatch list, which this fills and empties. At its end: true
    /// as in a pass.
    pub(super) fn step(
        &mut self,
        list: &mut ListPath,
        mq: &BlkMq,
        queue: QueueId,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let step = self.advance(list, mq, queue, hctx_id, cpu);
        if !self.all && matches!(step, Sub::Done(_)) {
            mq.queue(queue).hctx(hctx_id).dispatch_from.put(self.turn);
        }
        step
    }

    fn advance(
        &mut self,
        list: &mut ListPath,
        mq: &BlkMq,
        queue: QueueId,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let q = mq.queue(queue);
        let hctx = q.hctx(hctx_id);
        match self.at {
            At::Scan => {
                self.word = self.looked / CTXS_A_WORD;
                self.seen = hctx.ctx_map[self.word as usize].load(cpu) as u8;
                self.looked += CTXS_A_WORD;
                self.next_ctx(list, q, hctx_id)
            }
            At::Splice | At::Dequeue => self.take(list, q, hctx_id, cpu),
            At::PeekDispatch => {
                if hctx.dispatch_pending.test(cpu) {
                    return Sub::Done(true);
                }
                self.wait(At::Any)
            }
            At::Any => {
                let any = hctx.ctx_map[self.word as usize].load(cpu) != 0;
                self.word += 1;
                if !any && (self.word as usize) < hctx.ctx_map.len() {
                    return Sub::Wait(Next::Step);
                }
                self.word = 0;
                if !any {
                    return Sub::Done(false);
                }
                if q.settings.driver_budget {
                    self.at = At::Budget;
                    return Sub::Wait(Next::Budget);
                }
                self.wait(At::Find)
            }
            At::Budget => match core::mem::take(&mut cpu.answer) {
                Answer::Budget(token) => {
                    self.token = Some(token);
                    self.wait(At::Find)
                }
                _ => Sub::Done(false),
            },
            At::Find => self.find(list, q, hctx_id, cpu),
            At::Withheld => self.delay_runs(q, queue, cpu),
            At::List => match list.step(mq, queue, hctx_id, cpu) {
                Sub::Wait(next) => Sub::Wait(next),
                Sub::Done(Dispatched { whole, .. }) => {
                    *list = ListPath::idle();
                    if self.all || !whole {
                        return Sub::Done(false);
                    }
                    self.wait(At::PeekDispatch)
                }
            },
        }
    }

    /// blk_mq_delay_run_hw_queues(): the budget of this run may have held any hctx of the queue
    /// back.
    fn delay_runs(&mut self, q: &RequestQueue, queue: QueueId, cpu: &mut Cpu) -> Sub<bool> {
        cpu.outbox.push(Effect::KickUnlessPending {
            queue,
            hctx: HctxId(self.hctxs_run),
            delay: BUDGET_DELAY,
        });
        self.hctxs_run += 1;
        if usize::from(self.hctxs_run) < q.hctxs.len() {
            return Sub::Wait(Next::Step);
        }
        self.hctxs_run = 0;
        Sub::Done(false)
    }

    fn wait(&mut self, at: At) -> Sub<bool> {
        self.at = at;
        Sub::Wait(Next::Step)
    }

    /// sbitmap_for_each_set() from `turn` on, once around: the bits of the next word that were set
    /// when it was read.
    fn find(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let hctx = q.hctx(hctx_id);
        let count = hctx.ctxs.len() as u32;
        let from = (self.turn + self.looked) % count;
        self.word = from / CTXS_A_WORD;
        let end = ((self.word + 1) * CTXS_A_WORD).min(count);
        let bits = (end - from).min(count - self.looked);
        let first = from % CTXS_A_WORD;
        let window = ((1_u32 << bits) - 1) << first;
        self.seen = (hctx.ctx_map[self.word as usize].load(cpu) as u32 & window) as u8;
        self.looked += bits;
        self.next_ctx(list, q, hctx_id)
    }

    /// The next ctx of those that were seen; the next word; or the end of the search.
    fn next_ctx(&mut self, list: &mut ListPath, q: &RequestQueue, hctx_id: HctxId) -> Sub<bool> {
        let hctx = q.hctx(hctx_id);
        if self.seen != 0 {
            self.at = if self.all { At::Splice } else { At::Dequeue };
            let (ctx, _) = hctx.ctxs[self.bit() as usize];
            return Sub::Wait(lock(q.id, LockKind::Ctx, u32::from(ctx.0)));
        }
        if (self.looked as usize) < hctx.ctxs.len() {
            return self.wait(if self.all { At::Scan } else { At::Find });
        }
        (self.looked, self.word) = (0, 0);
        if !self.all {
            self.at = At::Withheld;
            let back = self.token.take().map(Next::PutBudget);
            return Sub::Wait(back.unwrap_or(Next::Step));
        }
        if self.taken.is_empty() {
            return Sub::Done(false);
        }
        *list = ListPath::new(core::mem::take(&mut self.taken), true);
        self.wait(At::List)
    }

    /// The bit of the current ctx.
    fn bit(&self) -> u32 {
        self.word * CTXS_A_WORD + self.seen.trailing_zeros()
    }

    /// Under ctx->lock: all requests of the ctx, or the oldest.
    fn take(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue,
        hctx_id: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let (hctx, bit) = (q.hctx(hctx_id), self.bit());
        self.seen &= self.seen - 1;
        let (ctx_id, kind) = hctx.ctxs[bit as usize];
        let (ctx, kind) = (&q.ctxs[usize::from(ctx_id.0)], usize::from(kind));
        let mut pool = q.pool.held(cpu.id);
        let mut lists = ctx.lists.held(cpu);
        let (word, mask) = hctx.ctx_word(bit);
        let marked = word.peek() & mask != 0;
        debug_assert_eq!(marked, !lists[kind].is_empty(), "the mark of {ctx_id:?}");
        let mut taken = QueueList::new();
        if self.all {
            taken.splice_back(&mut pool, &mut lists[kind]);
        } else if let Some(rq) = lists[kind].pop_front(&mut pool) {
            taken.push_back(&mut pool, rq);
        }
        let emptied = lists[kind].is_empty() && (self.all || !taken.is_empty());
        drop(lists);
        drop(pool);
        if emptied {
            word.fetch_and(cpu, !mask);
            ctx.pending[kind].clear(cpu);
        }
        set_places(q, cpu, taken, Place::Path);
        let step = self.taken_from(list, q, hctx_id, cpu, (bit, taken));
        ctx.lists.release(cpu);
        step
    }

    fn taken_from(
        &mut self,
        list: &mut ListPath,
        q: &RequestQueue,
        hctx_id: HctxId,
        cpu: &Cpu,
        (bit, mut taken): (u32, QueueList),
    ) -> Sub<bool> {
        let mut pool = q.pool.held(cpu.id);
        if self.all {
            self.taken.splice_back(&mut pool, &mut taken);
            drop(pool);
            return self.next_ctx(list, q, hctx_id);
        }
        let Some(rq) = taken.first() else {
            // Another run took them first.
            drop(pool);
            return self.next_ctx(list, q, hctx_id);
        };
        pool[rq].budget = self.token.take();
        drop(pool);
        self.turn = (bit + 1) % q.hctx(hctx_id).ctxs.len() as u32;
        (self.looked, self.word, self.seen) = (0, 0, 0);
        *list = ListPath::new(taken, false);
        self.wait(At::List)
    }
}

#[cfg(test)]
mod tests;
