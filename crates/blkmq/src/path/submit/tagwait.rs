//! Allocation of the tag that identifies a request, and waiting for one.
//!
//! Kernel: __blk_mq_alloc_requests(), blk_mq_get_tag(), sbitmap_prepare_to_wait(),
//! sbitmap_finish_wait() (6.1.192, 6.12.117).

use super::At;
use crate::call::{Call, Unplug};
use crate::elevator::Wanted;
use crate::env::Answer;
use crate::path::sbitmap::{TagMap, sbitmap_queue_get_batch, sbitmap_queue_wake_up};
use crate::path::tag::{self, identity_index, shares_tags, try_get_tag};
use crate::request::{BioId, HctxId, OpFlags, Place, RequestId};
use crate::rules::{Fix, TagWaiters, TagsAhead};
use crate::sbitmap::Sbitmap;
use crate::step::{Cx, Next};
use crate::time::SimTime;
use crate::waiter::Waiter;
use steps::steps;

/// __blk_mq_alloc_requests(). None: no tag is free, and the bio may not wait.
#[steps(inline)]
pub(super) fn alloc_requests(cx: &mut Cx<'_>, bio: BioId, passthrough: bool) -> Option<RequestId> {
    let mut shallow: Option<u32> = None;
    let mut locked: bool = false;
    if let Some(asks) = wanted(cx, bio, passthrough) {
        if let Some(lock) = cx.q.elevator.limit_depth_lock(cx.q, asks) {
            /// Under the scheduler's lock: limit_depth() of one that takes it.
            lock!(LimitDepth, Next::Lock(lock));
            let asks = wanted(cx, bio, passthrough).expect("it was asked");
            shallow = cx.q.elevator.limit_depth_locked(cx.q, asks, cx.cpu);
            locked = true;
        } else {
            shallow = cx.q.elevator.limit_depth(cx.q, asks, cx.cpu);
        }
    }
    let hctx: HctxId = map_queue(cx, bio);
    // Reset by the first allocation, whatever its result.
    let ahead: u32 = match cx.cpu.plug.active {
        true => u32::from(core::mem::replace(&mut cx.cpu.plug.nr_ios, 1)),
        false => 1,
    };
    let mut hint: Option<u32> = None;
    // blk_mq_get_tags() takes none at once where queues share a set.
    if ahead > 1 && shallow.is_none() && !cx.set().queue_shared() {
        if locked {
            at!(TagBatch);
        }
        let mut wanted: u32 = ahead;
        let mut found: Option<RequestId> = None;
        while wanted > 0 {
            let from: u32 = map_of(cx, hctx).hint_before(cx.cpu);
            let tags = TagMap::of_requests(cx.q, hctx);
            /// __blk_mq_alloc_requests_batch(): take tags for all that the plug announced.
            let run = sub!(TagBatch, sbitmap_queue_get_batch(tags, from, wanted));
            let Some((first, bits)) = run else {
                break;
            };
            if let Some(rq) = found {
                cx.pool().get_queue(1);
                let of = (cx.pool().bio(bio).flags, cx.cpu.now());
                put_into_cache(cx, rq, of);
            }
            found = Some(alloc_requests_batch(cx, bio, hctx, first, bits));
            wanted = match cx.rules().tags_ahead {
                TagsAhead::OneRun => 0,
                TagsAhead::AllWanted => wanted.saturating_sub(bits.count_ones()),
            };
            if wanted > 0 {
                at!(TagBatch);
            }
        }
        if found.is_some() {
            return found;
        }
        // No run of free tags: a single one will do.
    } else if !shares_tags(cx.mq, cx.q) {
        hint = Some(map_of(cx, hctx).hint_before(cx.cpu));
    }
    /// __blk_mq_alloc_requests(): take a tag.
    at!(Tag);
    sub!(get_tag(bio, hctx, hint, shallow))
}

/// blk_mq_get_tag(), and the request of the tag. None: none is free, and the bio may not wait.
#[steps]
fn get_tag(
    cx: &mut Cx<'_>,
    bio: BioId,
    mut hctx: HctxId,
    hint: Option<u32>,
    shallow: Option<u32>,
) -> Option<RequestId> {
    let mut rq: Option<RequestId> = sub!(Tag, try_get_tag(hctx, hint, shallow, false));
    if rq.is_some() {
        return rq;
    }
    if cx.pool().bio(bio).flags.nowait {
        /// None is free, and the bio may not wait: it ends.
        at!(WouldBlock);
        return None;
    }
    let mut ws_index: u32 = bt_wait_ptr(cx, hctx);
    let mut runs_first: bool = cx.rules().tag_waiters != TagWaiters::All;
    loop {
        if runs_first {
            /// All are taken: run the hctx, so that requests may complete.
            at!(WaitRun);
            /// Try again.
            call!(WaitRetry, Call::run(cx.q.id, hctx, false));
            rq = sub!(WaitRetry, try_get_tag(hctx, None, shallow, true));
            if rq.is_some() {
                return rq;
            }
            runs_first = cx.rules().tag_waiters == TagWaiters::Batch;
        }
        // sbitmap_prepare_to_wait()
        /// Count the entry before it is added.
        at!(WaitCount);
        map_of(cx, hctx).ws_active.add(cx.cpu, 1);
        let mut most: Option<u32> = shallow;
        loop {
            let tags = TagMap::of_requests(cx.q, hctx);
            /// Under the wait queue's lock: add the entry.
            lock!(WaitAdd, tags.wait_lock(cx, ws_index));
            enter_wait_queue(cx, hctx, ws_index);
            // Pairs with the barrier between freeing a tag and looking for waiters.
            cx.mb();
            /// Try again, now that a wake-up cannot be missed.
            at!(WaitLast);
            rq = sub!(WaitLast, try_get_tag(hctx, None, most, true));
            if rq.is_none() && !runs_first {
                call!(WaitRetry, Call::run(cx.q.id, hctx, false));
                rq = sub!(WaitRetry, try_get_tag(hctx, None, most, true));
            }
            if rq.is_some() {
                at!(WaitFinish);
                break;
            }
            /// Flush the plug, then sleep.
            at!(WaitSleep);
            // Cached requests are freed, too, whether the plug has others or not.
            while !cx.cpu.plug.is_empty() {
                let (queue, why) = (cx.cpu.plug.queue(), Unplug::Schedule);
                call!(WaitSleep, Call::Unplug { queue, why });
            }
            /// sbitmap_finish_wait() of a task that was woken, or has found a tag: is its entry
            /// still in the wait queue?
            let Answer::LookAgain { limited } = ask!(WaitFinish, Next::Park) else {
                break;
            };
            // A trace check: perhaps on another CPU, with its entry where it was.
            let here = map_queue(cx, bio);
            if identity_index(cx.mq, cx.q, here) == identity_index(cx.mq, cx.q, hctx) {
                hctx = here;
            }
            most = shallow.filter(|_| limited);
        }
        sub!(finish_wait(hctx, ws_index));
        if rq.is_some() {
            return rq;
        }
        // Perhaps on another CPU.
        let left: HctxId = hctx;
        hctx = map_queue(cx, bio);
        ws_index = bt_wait_ptr(cx, hctx);
        let stays = identity_index(cx.mq, cx.q, left) == identity_index(cx.mq, cx.q, hctx);
        if !stays && cx.rules().fixes.has(Fix::PassedOnWake) {
            // sbitmap_queue_wake_up(): it was woken for a tag of a map that it will not use.
            /// On a CPU of another hctx now: wake another waiter of the old one.
            at!(WaitPassOn);
            let tags = TagMap::of_requests(cx.q, left);
            sub!(WaitPassOn, sbitmap_queue_wake_up(tags, 1));
        }
    }
}

/// sbitmap_finish_wait().
#[steps]
fn finish_wait(cx: &mut Cx<'_>, hctx: HctxId, ws_index: u32) {
    // __set_current_state(TASK_RUNNING) and list_empty_careful() of finish_wait(): one here, since
    // the entry of a running task is not removed between the two.
    if cx.mq.task_waits(cx.cpu.task).test_and_clear(cx.cpu) {
        let tags = TagMap::of_requests(cx.q, hctx);
        /// Under the wait queue's lock: remove the entry.
        lock!(WaitLeave, tags.wait_lock(cx, ws_index));
        let ws = &map_of(cx, hctx).wait[ws_index as usize];
        let stood = ws.remove(cx.cpu, Waiter::Task(cx.cpu.task));
        assert!(stood, "a task that runs was taken out of its line");
        ws.queue.release(cx.cpu);
    }
    /// Count the entry out.
    at!(WaitUncount);
    map_of(cx, hctx).ws_active.add(cx.cpu, -1);
}

/// __blk_mq_alloc_requests_batch(): the request of the highest tag is for the bio, the others wait
/// in the plug.
fn alloc_requests_batch(
    cx: &mut Cx<'_>,
    bio: BioId,
    hctx: HctxId,
    first: u32,
    bits: u64,
) -> RequestId {
    cx.cpu.plug.cached_queue = cx.q.id;
    let of = (cx.pool().bio(bio).flags, cx.cpu.now());
    cx.pool().get_queue(bits.count_ones() - 1);
    let highest = bits.ilog2();
    for bit in (0..highest).filter(|bit| bits >> bit & 1 == 1) {
        let rq = tag::adopt(cx, hctx, first + bit);
        put_into_cache(cx, rq, of);
    }
    tag::adopt(cx, hctx, first + highest)
}

/// It was allocated for this bio, and another one takes it.
#[expect(
    clippy::inline_always,
    reason = "a call a request of a batch, measured"
)]
#[inline(always)]
fn put_into_cache(cx: &mut Cx<'_>, rq: RequestId, (flags, now): (OpFlags, SimTime)) {
    let mut pool = cx.pool();
    pool[rq].place = Place::PlugCache;
    pool[rq].start_time = now;
    pool[rq].flags = flags;
    cx.cpu.plug.cached.push_front(&mut pool, rq);
}

/// Under the wait queue's lock, which it releases. The entry of a task that only tries again is in
/// the queue already.
fn enter_wait_queue(cx: &mut Cx<'_>, hctx: HctxId, ws_index: u32) {
    let ws = &map_of(cx, hctx).wait[ws_index as usize];
    let waiter = Waiter::Task(cx.cpu.task);
    let exclusive = cx.rules().tag_waiters == TagWaiters::Batch;
    ws.edit(cx.cpu, |entries| {
        let place = if exclusive { entries.len() } else { 0 };
        if !entries.contains(&waiter) {
            entries.insert(place, waiter);
        }
    });
    cx.mq.task_waits(cx.cpu.task).set(cx.cpu);
    ws.queue.release(cx.cpu);
}

/// blk_mq_map_queue() on this CPU.
fn map_queue(cx: &Cx<'_>, bio: BioId) -> HctxId {
    let pool = cx.pool();
    let bio = pool.bio(bio);
    cx.set().hctx_for(cx.cpu.id, bio.op, bio.flags.polled)
}

/// bt_wait_ptr(): the hctx's next wait queue.
fn bt_wait_ptr(cx: &Cx<'_>, hctx: HctxId) -> u32 {
    let queues = map_of(cx, hctx).wait.len() as u32;
    let index = &cx.hctx(hctx).wait_index;
    let ws_index = index.get();
    index.put((ws_index + 1) % queues);
    ws_index
}

/// The map of tags that identify requests.
fn map_of<'a>(cx: &Cx<'a>, hctx: HctxId) -> &'a Sbitmap {
    TagMap::of_requests(cx.q, hctx).of(cx)
}

/// The limit_depth() arguments; none if the request will not enter the scheduler.
fn wanted(cx: &Cx<'_>, bio: BioId, passthrough: bool) -> Option<Wanted> {
    if passthrough {
        return None;
    }
    let pool = cx.pool();
    let bio = pool.bio(bio);
    tag::wanted(cx.q, (bio.op, bio.flags, bio.io_context))
}

#[cfg(test)]
mod tests;
