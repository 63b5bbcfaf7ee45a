//! Emptying the software queues, for queues without a scheduler.
//!
//! Kernel: blk_mq_do_dispatch_ctx(), blk_mq_flush_busy_ctxs(), blk_mq_dequeue_from_ctx()
//! (6.1.192, 6.12.117).

use super::list::{Dispatched, dispatch_rq_list};
use super::pass::BUDGET_DELAY;
use crate::env::Answer;
use crate::list::QueueList;
use crate::queue::{CTXS_A_WORD, LockKind};
use crate::request::{HctxId, Place};
use crate::step::{Cx, Next, labels};
use steps::steps;

/// blk_mq_flush_busy_ctxs(): all requests of all software queues.
#[steps]
pub(super) fn flush_busy_ctxs(cx: &mut Cx<'_>, hctx: HctxId) -> QueueList {
    let mut list: QueueList = QueueList::new();
    let mut word: u32 = 0;
    while (word as usize) < cx.hctx(hctx).ctx_map.len() {
        /// All queues at once: read the next word of the ctx_map.
        at!(Scan);
        let mut seen: u8 = cx.hctx(hctx).ctx_map[word as usize].load(cx.cpu) as u8;
        while seen != 0 {
            /// Take all of its requests.
            lock!(Splice, ctx_lock(cx, hctx, bit(word, seen)));
            let mut taken = take(cx, hctx, bit(word, seen), true);
            list.splice_back(&mut cx.pool(), &mut taken);
            seen &= seen - 1;
        }
        word += 1;
    }
    list
}

/// blk_mq_do_dispatch_ctx(): one by one, round robin. True for -EAGAIN.
#[steps]
pub(super) fn do_dispatch_ctx(cx: &mut Cx<'_>, hctx: HctxId) -> bool {
    let mut turn: u32 = cx.hctx(hctx).dispatch_from.get();
    let mut eagain: bool = false;
    'pull: loop {
        /// One by one: did something land on the dispatch list meanwhile?
        at!(PeekDispatch);
        if cx.hctx(hctx).dispatch_pending.test(cx.cpu) {
            eagain = true;
            break;
        }
        let mut word: u32 = 0;
        /// Is any bit set?
        at!(Any);
        while cx.hctx(hctx).ctx_map[word as usize].load(cx.cpu) == 0 {
            word += 1;
            if word as usize == cx.hctx(hctx).ctx_map.len() {
                break 'pull;
            }
            at!(Any);
        }
        let mut token: Option<u32> = None;
        if cx.q.settings.driver_budget {
            /// Was there a budget?
            let Answer::Budget(got) = ask!(Budget, Next::Budget) else {
                break;
            };
            token = Some(got);
        }
        // blk_mq_dequeue_from_ctx()
        let mut list: QueueList = QueueList::new();
        let mut looked: u32 = 0;
        while list.is_empty() {
            if looked as usize == cx.hctx(hctx).ctxs.len() {
                // Other runs took them first.
                sub!(run_all_later(token));
                break 'pull;
            }
            /// Read the next word of the ctx_map, beginning at the current ctx.
            at!(Find);
            let (word, mut seen, bits): (u32, u8, u32) = find(cx, hctx, turn, looked);
            looked += bits;
            while list.is_empty() && seen != 0 {
                /// Take its oldest request.
                lock!(Dequeue, ctx_lock(cx, hctx, bit(word, seen)));
                list = take(cx, hctx, bit(word, seen), false);
                if let Some(rq) = list.first() {
                    cx.pool()[rq].budget = token;
                    turn = (bit(word, seen) + 1) % cx.hctx(hctx).ctxs.len() as u32;
                }
                seen &= seen - 1;
            }
        }
        let Dispatched { whole, .. } = sub!(dispatch_rq_list(hctx, list, false, None));
        if !whole {
            break;
        }
    }
    cx.hctx(hctx).dispatch_from.put(turn);
    eagain
}

/// blk_mq_delay_run_hw_queues(): the budget of this run may have held any hctx of the queue back.
#[steps]
fn run_all_later(cx: &mut Cx<'_>, token: Option<u32>) {
    let back = token.map_or(Next::Step, Next::PutBudget);
    /// No request was found after all: run again later, one hctx a label.
    ask!(Withheld, back);
    let mut hctx: u16 = 0;
    loop {
        cx.kick_unless_pending(HctxId(hctx), BUDGET_DELAY);
        hctx += 1;
        if usize::from(hctx) == cx.q.hctxs.len() {
            return;
        }
        at!(Withheld);
    }
}

labels! {
    pub enum At in "ctx" of flush_busy_ctxs do_dispatch_ctx run_all_later
}

/// sbitmap_for_each_set() from `turn` on, once around: the next word, its bits that were set when
/// it was read, and how many bits that looked at.
fn find(cx: &mut Cx<'_>, hctx: HctxId, turn: u32, looked: u32) -> (u32, u8, u32) {
    let hctx = cx.hctx(hctx);
    let count = hctx.ctxs.len() as u32;
    let from = (turn + looked) % count;
    let word = from / CTXS_A_WORD;
    let end = ((word + 1) * CTXS_A_WORD).min(count);
    let bits = (end - from).min(count - looked);
    let first = from % CTXS_A_WORD;
    let window = ((1_u32 << bits) - 1) << first;
    let seen = (hctx.ctx_map[word as usize].load(cx.cpu) as u32 & window) as u8;
    (word, seen, bits)
}

/// The first ctx of those that were seen in a word.
fn bit(word: u32, seen: u8) -> u32 {
    word * CTXS_A_WORD + seen.trailing_zeros()
}

fn ctx_lock(cx: &Cx<'_>, hctx: HctxId, bit: u32) -> Next {
    let (ctx, _) = cx.hctx(hctx).ctxs[bit as usize];
    cx.lock(LockKind::Ctx, u32::from(ctx.0))
}

/// Under ctx->lock: all requests of the ctx, or the oldest.
fn take(cx: &mut Cx<'_>, hctx: HctxId, bit: u32, all: bool) -> QueueList {
    let hctx = cx.hctx(hctx);
    let (ctx_id, kind) = hctx.ctxs[bit as usize];
    let (ctx, kind) = (&cx.q.ctxs[usize::from(ctx_id.0)], usize::from(kind));
    let mut pool = cx.pool();
    let mut lists = ctx.lists.held(cx.cpu);
    let (word, mask) = hctx.ctx_word(bit);
    let marked = word.peek() & mask != 0;
    debug_assert_eq!(marked, !lists[kind].is_empty(), "the mark of {ctx_id:?}");
    let mut taken = QueueList::new();
    if all {
        taken.splice_back(&mut pool, &mut lists[kind]);
    } else if let Some(rq) = lists[kind].pop_front(&mut pool) {
        taken.push_back(&mut pool, rq);
    }
    let emptied = lists[kind].is_empty() && (all || !taken.is_empty());
    drop(lists);
    drop(pool);
    if emptied {
        word.fetch_and(cx.cpu, !mask);
        ctx.pending[kind].clear(cx.cpu);
    }
    cx.set_places(taken, Place::Path);
    ctx.lists.release(cx.cpu);
    taken
}

#[cfg(test)]
mod tests;
