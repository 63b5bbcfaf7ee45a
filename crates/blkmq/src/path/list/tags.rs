//! Driver tags of a dispatch list: for its head, for the request after it, and their free.
//!
//! Kernel: blk_mq_get_driver_tag(), blk_mq_mark_tag_wait(), blk_mq_put_driver_tag() in
//! block/blk-mq.c (6.1.192, 6.12.117).

use super::{At, Dispatched, ListPath, Stop, requeue_bookkeeping};
use crate::env::{Cpu, TraceAction, mb};
use crate::path::tag::{self, TagMap};
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, QueueId, RequestId};
use crate::rules::{Restart, TagWait, WaitEntry, WaitRetry};
use crate::sbitmap::WAIT_QUEUES;
use crate::step::{Cx, Next, Sub, Traced, lock, trace_rq};
use crate::tags::Waiter;

impl ListPath {
    /// One step towards the head's driver tag.
    pub(super) fn tag(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let rq = self.list.first().expect("the head asked for the tag");
        let got = match tag::search_driver(&mut Cx::of(mq, queue, cpu), &mut self.get, rq, hctx) {
            Sub::Wait(next) => return Sub::Wait(next),
            Sub::Done(got) => got,
        };
        let rules = mq.queue(queue).settings.rules.restart;
        let shared = mq.set_of(queue).waits_for_any();
        let unlocked = self.at == At::TagRetry && shared && self.ws_index.is_none();
        self.leave_wait_queue(mq, queue, hctx, cpu, got);
        match (got, self.at) {
            (true, At::Tag) if shared && rules.entry == WaitEntry::AnyAttempt => {
                self.wait(At::TagStale)
            }
            (true, _) if unlocked && rules.entry != WaitEntry::Kept => self.wait(At::TagStale),
            (true, _) => self.offer(mq.queue(queue), cpu),
            (false, At::Tag) if shared && rules.wait == TagWait::Nowhere => self.without_tag(),
            (false, At::Tag) if shared => self.wait(At::TagInLine),
            (false, At::Tag) => self.wait(At::TagRestart),
            _ => self.without_tag(),
        }
    }

    /// The free of a tag of a shared map checks only the SCHED_RESTART of its own hctx, so this
    /// hctx has to wait for a tag in a wait queue, once.
    pub(super) fn tag_in_line(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let q = mq.queue(queue);
        if q.hctx(hctx).dispatch_wait.test(cpu) {
            return self.without_tag();
        }
        let index = &q.hctx(hctx).wait_index;
        let map = mq.set_of(queue).driver_of(hctx);
        let ws_index = index.get();
        index.put((ws_index + 1) % map.wait.len() as u32);
        self.ws_index = Some(ws_index);
        self.at = At::TagLine;
        Sub::Wait(ws_lock(mq, queue, hctx, ws_index))
    }

    /// Under the wait queue's lock, which is kept for the last try.
    ///
    /// Deviation(D11): whether an hctx is in a wait queue is one bit, without `dispatch_wait_lock`.
    pub(super) fn tag_wait(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let q = mq.queue(queue);
        let map = mq.set_of(queue).driver_of(hctx);
        let ws = &map.wait[self.ws_index.expect("a line was chosen") as usize];
        if q.hctx(hctx).dispatch_wait.test_and_set(cpu) {
            // Another run of the hctx was first.
            self.ws_index = None;
            ws.queue.release(cpu);
            return self.without_tag();
        }
        map.ws_active.add(cpu, 1);
        let rules = q.settings.rules.restart;
        let ws_index = self.ws_index.expect("a line was chosen");
        q.hctx(hctx).dispatch_ws_index.put(ws_index);
        let waiter = entry(rules, queue, hctx);
        let neighbour = ws.edit(cpu, |entries| match rules.wait {
            TagWait::WakeOne => {
                let last = entries.last().copied();
                entries.push(waiter);
                last
            }
            TagWait::Nowhere | TagWait::WakeAll => {
                let first = entries.first().copied();
                entries.insert(0, waiter);
                first
            }
        });
        if let Some(Waiter::Hctx { queue, hctx, .. }) = neighbour {
            // Its list links, next to its `tags`.
            mq.queue(queue).dirty_tags_line(hctx, cpu);
        }
        if rules.retry == WaitRetry::Unlocked {
            self.ws_index = None;
            ws.queue.release(cpu);
        }
        // Pairs with the barrier between freeing a tag and looking for waiters.
        mb(cpu);
        self.wait(At::TagRetry)
    }

    /// With a tag: an entry in a wait queue would take a wake-up from others.
    pub(super) fn tag_stale(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let q = mq.queue(queue);
        if !q.hctx(hctx).dispatch_wait.test(cpu) {
            return self.offer(q, cpu);
        }
        let ws_index = q.hctx(hctx).dispatch_ws_index.get();
        self.ws_index = Some(ws_index);
        self.at = At::TagLeave;
        Sub::Wait(ws_lock(mq, queue, hctx, ws_index))
    }

    /// Under the wait queue's lock: removes the entry, unless it was woken meanwhile.
    pub(super) fn tag_leave(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        self.leave_wait_queue(mq, queue, hctx, cpu, true);
        self.offer(mq.queue(queue), cpu)
    }

    /// After the last try: with a tag the hctx leaves the wait queue, so that the wake-up goes to
    /// another.
    fn leave_wait_queue(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
        got: bool,
    ) {
        let Some(ws_index) = self.ws_index.take() else {
            return;
        };
        let map = mq.set_of(queue).driver_of(hctx);
        let ws = &map.wait[ws_index as usize];
        if got && mq.queue(queue).settings.rules.restart.entry != WaitEntry::Kept {
            let waiter = entry(mq.queue(queue).settings.rules.restart, queue, hctx);
            if ws.remove(cpu, waiter) {
                mq.queue(queue).hctx(hctx).dispatch_wait.clear(cpu);
                map.ws_active.add(cpu, -1);
            }
        }
        ws.queue.release(cpu);
    }

    /// The try failed. A separate label: this one may have released a lock.
    fn without_tag(&mut self) -> Sub<Dispatched> {
        self.stop = Stop::NoTag;
        self.wait(At::NoTag)
    }

    /// The head's budget is released before anything else.
    pub(super) fn no_tag(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let rq = self.list.first().expect("the head asked for the tag");
        let token = q.pool.held(cpu.id)[rq].budget.take();
        match token {
            Some(token) => {
                self.at = At::Commit;
                Sub::Wait(Next::PutBudget(token))
            }
            None => self.commit(q, queue, hctx, cpu),
        }
    }

    /// v6.1: `last` means that the next request gets no driver tag; a tag that it gets is kept.
    pub(super) fn tag_ahead(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let next = self.list.first().expect("offer saw one more");
        let got = match tag::search_driver(&mut Cx::of(mq, queue, cpu), &mut self.get, next, hctx) {
            Sub::Wait(next) => return Sub::Wait(next),
            Sub::Done(got) => got,
        };
        self.ahead = got;
        let rq = self.rq.expect("offer took one off the list");
        self.submit(rq, !got)
    }

    pub(super) fn start_put(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
        rq: RequestId,
        at: At,
    ) -> Sub<Dispatched> {
        let mut pool = q.pool.held(cpu.id);
        let scheduled = pool[rq].internal_tag.is_some();
        match pool[rq].tag {
            Some(tag) if scheduled => {
                pool[rq].tag = None;
                self.put = Some(tag::put_driver_alone(q, &mut pool[rq], tag));
                drop(pool);
                self.wait(at)
            }
            _ => {
                drop(pool);
                self.after_put(q, queue, hctx, cpu, at)
            }
        }
    }

    pub(super) fn put(
        &mut self,
        mq: &BlkMq,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> Sub<Dispatched> {
        let put = self.put.as_mut().expect("a tag is being put");
        match tag::step_put(put, mq, queue, TagMap::Driver(hctx), cpu) {
            Some(next) => Sub::Wait(next),
            None => {
                self.put = None;
                self.after_put(mq.queue(queue), queue, hctx, cpu, self.at)
            }
        }
    }

    /// v6.1: the tag taken ahead was freed first. __blk_mq_requeue_request() traces R last.
    fn after_put(
        &mut self,
        q: &RequestQueue,
        queue: QueueId,
        hctx: HctxId,
        cpu: &mut Cpu,
        at: At,
    ) -> Sub<Dispatched> {
        let head = self.list.first().expect("the refused request is the head");
        if at == At::PutAhead {
            return self.start_put(q, queue, hctx, cpu, head, At::PutTag);
        }
        if core::mem::take(&mut self.refused) {
            let mut pool = q.pool.held(cpu.id);
            requeue_bookkeeping(&mut pool, head);
            let traced = Traced::rq(cpu.tracing, &pool, head);
            drop(pool);
            trace_rq(cpu, queue, TraceAction::Requeue, traced);
        }
        self.commit(q, queue, hctx, cpu)
    }
}

/// The entry of an hctx in a wait queue.
fn entry(rules: Restart, queue: QueueId, hctx: HctxId) -> Waiter {
    Waiter::Hctx {
        queue,
        hctx,
        exclusive: rules.wait == TagWait::WakeOne,
    }
}

/// The lock of one of the wait queues of an hctx's driver tags.
fn ws_lock(mq: &BlkMq, queue: QueueId, hctx: HctxId, ws_index: u32) -> Next {
    let first = mq.set_of(queue).driver_index(hctx) * WAIT_QUEUES;
    lock(queue, LockKind::DriverWait, first as u32 + ws_index)
}
