//! The end of requests that an interrupt handler or a poller has collected: one after another, and
//! the tags of one hctx are freed together.
//!
//! SCHED_RESTART is not read: only requests without scheduler are collected. Kernel:
//! blk_mq_end_request_batch(), blk_mq_flush_tag_batch() in block/blk-mq.c,
//! sbitmap_queue_clear_batch() in lib/sbitmap.c (6.1.192, 6.12.117).

use super::may_queue;
use super::sbitmap::TagMap;
use super::tag;
use super::wait::wake_all;
use crate::call::Call;
use crate::env::Cpu;
use crate::list::QueueList;
use crate::names::labels;
use crate::queue::BlkMq;
use crate::request::{HctxId, Place, QueueId, RequestId};
use crate::sbitmap::Put;
use crate::step::{Cx, Next};

/// TAG_COMP_BATCH.
const BATCH_MAX: usize = 32;

labels! {
    pub enum At in "end-batch" {
        /// The next request ends.
        Next,
        /// It has ended: its tag joins the batch, which may be full.
        NoteTag,
        /// So many requests fewer count among those with tags (sets that queues share).
        Uncount,
        /// Clear the bits of one word of the tag map.
        ClearTags,
        /// Wake the waiters for tags.
        WakeTags,
        /// They leave the queue.
        Exit,
    }
}

/// The end of requests of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndBatchPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    /// Requests to end, in order.
    list: QueueList,
    rq: Option<RequestId>,
    /// Ended requests, which hold their tags.
    ended: QueueList,
    hctx: HctxId,
    /// Tags of the batch.
    count: u32,
    put: Option<Put>,
}

impl EndBatchPath {
    /// blk_mq_end_request_batch() of these, first to last. None may hold a scheduler tag.
    pub fn new(queue: QueueId, list: QueueList) -> EndBatchPath {
        EndBatchPath {
            at: At::Next,
            queue,
            list,
            rq: None,
            ended: QueueList::new(),
            hctx: HctxId(0),
            count: 0,
            put: None,
        }
    }

    pub(super) fn stage(&self) -> Option<&'static str> {
        self.put.map(|put| put.stage().name())
    }

    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        assert_eq!(self.put.is_some(), at == At::WakeTags, "{at:?}: a wake-up");
        assert!(at != At::NoteTag || self.rq.is_some(), "{at:?} of none");
        assert!(
            at != At::Next || self.rq.is_none(),
            "{at:?} beside one that ended"
        );
        let frees = matches!(at, At::Uncount | At::ClearTags | At::WakeTags | At::Exit);
        assert_eq!(self.count > 0, frees, "{at:?}: tags go back");
        assert!(self.ended.len() <= BATCH_MAX, "{at:?} of too many tags");
        let pool = mq.queue(self.queue).pool.held(cpu.id);
        for rq in self.ended.iter(&pool) {
            let r = &pool[rq];
            assert_eq!(r.hctx, self.hctx, "{at:?} of {rq:?}");
            assert!(r.tag.is_some(), "{rq:?} has lost its tag");
            assert_eq!(r.place, Place::Completing, "{at:?} of {rq:?}");
        }
    }

    pub(super) fn check_over(&self) {
        assert!(
            self.list.is_empty() && self.ended.is_empty(),
            "requests are left"
        );
        assert!(self.rq.is_none() && self.put.is_none(), "tags are left");
        assert_eq!(self.count, 0, "uses of the queue are left");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Next => self.next(cx),
            At::NoteTag => self.note_tag(cx),
            At::Uncount => {
                let count = self.count as i32;
                may_queue::count(cx, self.hctx, -count);
                self.to(At::ClearTags)
            }
            At::ClearTags => self.clear(cx),
            At::WakeTags => {
                let put = self.put.as_mut().expect("somebody may wait");
                let map = TagMap::Driver(self.hctx);
                if let Some(next) = tag::step_put(put, cx.mq, self.queue, map, cx.cpu) {
                    return next;
                }
                self.put = None;
                self.to(At::Exit)
            }
            At::Exit => self.exit(cx),
        }
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn next(&mut self, cx: &mut Cx<'_>) -> Next {
        let next = self.list.pop_front(&mut cx.pool());
        let Some(rq) = next else {
            return match self.ended.is_empty() {
                true => Next::Done,
                false => self.flush_tags(cx.mq),
            };
        };
        self.rq = Some(rq);
        self.at = At::NoteTag;
        let queue = self.queue;
        cx.call(Call::EndBatched { queue, rq })
    }

    fn note_tag(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.expect("one has ended");
        let mut pool = cx.pool();
        let r = &pool[rq];
        assert!(r.bio_first.is_none(), "a request is freed with bios");
        if self.ended.len() == BATCH_MAX || (!self.ended.is_empty() && r.hctx != self.hctx) {
            return self.flush_tags(cx.mq);
        }
        self.hctx = r.hctx;
        self.ended.push_back(&mut pool, rq);
        self.rq = None;
        drop(pool);
        self.to(At::Next)
    }

    /// blk_mq_flush_tag_batch().
    fn flush_tags(&mut self, mq: &BlkMq) -> Next {
        self.count = self.ended.len() as u32;
        self.to(match mq.set_of(self.queue).queue_shared() {
            true => At::Uncount,
            false => At::ClearTags,
        })
    }

    /// Tags that follow each other and lie in one word. The bits are cleared in the word itself:
    /// none is deferred.
    fn clear(&mut self, cx: &mut Cx<'_>) -> Next {
        let map = cx.set().driver_of(self.hctx);
        let mut pool = cx.pool();
        let (mut word, mut mask, mut last) = (None, 0, 0);
        while let Some(rq) = self.ended.first() {
            let bit = pool[rq].tag.expect("it holds a driver tag").0;
            let its = map.word_of(bit);
            if *word.get_or_insert(its) != its {
                break;
            }
            self.ended.pop_front(&mut pool);
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
        if !self.ended.is_empty() {
            return Next::Step;
        }
        cx.mb();
        self.put = Some(Put::wake_batch(self.count, last));
        self.to(At::WakeTags)
    }

    fn exit(&mut self, cx: &mut Cx<'_>) -> Next {
        let count = core::mem::take(&mut self.count);
        self.hctx = HctxId(0);
        self.at = match self.rq {
            Some(_) => At::NoteTag,
            None => At::Next,
        };
        let mut pool = cx.pool();
        let last = (0..count).fold(false, |last, _| pool.usage.exit() || last);
        drop(pool);
        match last {
            true => wake_all(cx.cpu, self.queue),
            false => Next::Step,
        }
    }
}
