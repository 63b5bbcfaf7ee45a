//! The end of requests that an interrupt handler or a poller has collected: one after another, and
//! the tags of one hctx are freed together.
//!
//! SCHED_RESTART is not read: only requests without scheduler are collected. Kernel:
//! blk_mq_end_request_batch(), blk_mq_flush_tag_batch() in block/blk-mq.c,
//! sbitmap_queue_clear_batch() in lib/sbitmap.c (6.1.192, 6.12.117).

use super::may_queue;
use super::sbitmap::{TagMap, sbitmap_queue_wake_up};
use super::wait::wake_all;
use crate::call::Call;
use crate::list::QueueList;
use crate::request::{HctxId, Place, RequestId};
use crate::step::{Cx, Next, labels};
use steps::steps;

pub use end_request_batch::State as EndBatchPath;

/// TAG_COMP_BATCH.
const BATCH_MAX: usize = 32;

/// blk_mq_end_request_batch() of these, first to last. None may hold a scheduler tag.
#[steps(path)]
pub fn end_request_batch(cx: &mut Cx<'_>, mut list: QueueList) {
    /// The next request ends.
    at!(Next);
    // Requests that have ended hold their tags, all of one hctx.
    let mut ended: QueueList = QueueList::new();
    let mut hctx: HctxId = HctxId(0);
    while let Some(rq) = pop(cx, &mut list) {
        let rq: RequestId = rq;
        let queue = cx.queue();
        /// It has ended: its tag joins the batch, which may be full.
        call!(NoteTag, Call::EndBatched { queue, rq });
        while !takes(cx, ended, hctx, rq) {
            let last = sub!(flush_tag_batch(hctx, ended));
            ended = QueueList::new();
            hctx = HctxId(0);
            at!(NoteTag, wake_after(cx, last));
        }
        hctx = cx.pool()[rq].hctx;
        ended.push_back(&mut cx.pool(), rq);
        at!(Next);
    }
    if !ended.is_empty() {
        let last = sub!(flush_tag_batch(hctx, ended));
        at!(Next, wake_after(cx, last));
    }
}

/// blk_mq_flush_tag_batch(). True if the last user has left the queue.
#[steps]
fn flush_tag_batch(cx: &mut Cx<'_>, hctx: HctxId, mut ended: QueueList) -> bool {
    let count: u32 = ended.len() as u32;
    if cx.set().queue_shared() {
        /// So many requests fewer count among those with tags (sets that queues share).
        at!(Uncount);
        may_queue::count(cx, hctx, -(count as i32));
    }
    let mut last: u32 = 0;
    while !ended.is_empty() {
        /// Clear the bits of one word of the tag map.
        at!(ClearTags);
        last = clear_tags(cx, hctx, &mut ended);
    }
    cx.mb();
    /// Wake the waiters for tags.
    at!(WakeTags);
    sub!(WakeTags, sbitmap_queue_wake_up(TagMap::Driver(hctx), count));
    // The next hint of the CPU that frees the batch: a woken task searches from the old one.
    cx.set().driver_of(hctx).hint_freed(cx.cpu.id, last);
    /// They leave the queue.
    at!(Exit);
    let mut pool = cx.pool();
    (0..count).fold(false, |last, _| pool.usage.exit() || last)
}

labels! {
    pub enum At in "end-batch" of end_request_batch flush_tag_batch
}

fn pop(cx: &Cx<'_>, list: &mut QueueList) -> Option<RequestId> {
    list.pop_front(&mut cx.pool())
}

/// The batch has room for the tag of a request that has ended.
fn takes(cx: &Cx<'_>, ended: QueueList, hctx: HctxId, rq: RequestId) -> bool {
    let r = &cx.pool()[rq];
    assert!(r.bio_first.is_none(), "a request is freed with bios");
    ended.is_empty() || (r.hctx == hctx && ended.len() < BATCH_MAX)
}

fn wake_after(cx: &mut Cx<'_>, last: bool) -> Next {
    match last {
        true => wake_all(cx.cpu, cx.q.id),
        false => Next::Step,
    }
}

/// sbitmap_queue_clear_batch(): tags that follow each other and lie in one word. The bits are
/// cleared in the word itself: none is deferred. Returns the last.
fn clear_tags(cx: &mut Cx<'_>, hctx: HctxId, ended: &mut QueueList) -> u32 {
    let map = cx.set().driver_of(hctx);
    let mut pool = cx.pool();
    let (mut word, mut mask, mut last) = (None, 0, 0);
    while let Some(rq) = ended.first() {
        let bit = pool[rq].tag.expect("it holds a driver tag").0;
        let its = map.word_of(bit);
        if *word.get_or_insert(its) != its {
            break;
        }
        ended.pop_front(&mut pool);
        pool[rq].tag = None;
        pool[rq].place = Place::Free;
        mask |= map.mask_of(bit);
        last = bit;
    }
    drop(pool);
    cx.mb();
    let word = word.expect("a tag goes back");
    let before = map.words[word].word.fetch_and(cx.cpu, !mask);
    assert_eq!(before & mask, mask, "tags of word {word} given back twice");
    last
}

#[cfg(test)]
mod tests;
