//! A fair share of driver tags where several queues draw from one set.
//!
//! Kernel: __blk_mq_tag_busy() in block/blk-mq-tag.c, hctx_may_queue() and the counting of active
//! requests in block/blk-mq.h (6.1.192, 6.12.117).

use crate::env::{Bit, Count, Cpu};
use crate::names::stages;
use crate::queue::{LockKind, RequestQueue};
use crate::request::HctxId;
use crate::rules::{ActiveCount, Fix};
use crate::step::Cx;
use crate::tags::TagSet;
use steps::steps;

/// Tags that every user may have, whatever the number of users.
const SHARE_MIN: u32 = 4;

/// blk_mq_tag_busy(): makes the hctx a user of its tags.
#[steps(stages)]
fn tag_busy(cx: &mut Cx<'_>, hctx: HctxId) {
    if user(cx.q, cx.set(), hctx).0.test(cx.cpu) {
        return;
    }
    /// Make the hctx a user of its tags, unless another CPU has.
    at!(Join);
    if user(cx.q, cx.set(), hctx).0.test_and_set(cx.cpu) {
        return;
    }
    if cx.rules().fixes.has(Fix::UsersLock) {
        /// Under the lock of the tag map: count it, and spread wake-ups over one user more.
        lock!(
            Count,
            cx.lock(LockKind::Tags, cx.set().driver_index(hctx) as u32)
        );
        let set = cx.set();
        let map = set.driver_index(hctx);
        let users = set.active_queues[map].add_return(cx.cpu, 1);
        debug_assert!(users > 0, "a user joined");
        set.driver[map].share_wake_batch(users as u32);
        set.locks[map].release(cx.cpu);
    } else {
        /// Without that lock: count it.
        at!(CountAlone);
        let count = &cx.set().active_queues[cx.set().driver_index(hctx)];
        let users: u32 = count.add_return(cx.cpu, 1) as u32;
        /// Spread wake-ups over the users that were counted.
        at!(Spread);
        cx.set().driver_of(hctx).share_wake_batch(users);
    }
}

/// hctx_may_queue(), in a set that queues share: false if the queue has used its share. `again`:
/// not before the first search of an allocation, which calls blk_mq_tag_busy().
#[steps(stages)]
pub(super) fn hctx_may_queue(cx: &mut Cx<'_>, hctx: HctxId, again: bool) -> bool {
    if !again {
        sub!(tag_busy(hctx));
        /// hctx_may_queue(): is the hctx a user (still)? If not, it has no limit.
        at!(Active);
    }
    let set = cx.set();
    // "Don't try dividing an ant."
    if set.driver_of(hctx).depth() == 1 || !user(cx.q, set, hctx).0.test(cx.cpu) {
        return true;
    }
    /// How many users are there?
    at!(Users);
    let count = &cx.set().active_queues[cx.set().driver_index(hctx)];
    let users: u32 = count.read(cx.cpu) as u32;
    if users == 0 {
        return true;
    }
    /// How many tags does this user have?
    at!(Share);
    let set = cx.set();
    let share = set.driver_of(hctx).depth().div_ceil(users);
    let has = user(cx.q, set, hctx).1.read(cx.cpu) as u32;
    has < share.max(SHARE_MIN)
}

/// __blk_mq_inc_active_requests(), after a search.
#[steps(stages)]
pub(super) fn inc_active_requests(cx: &mut Cx<'_>, hctx: HctxId) {
    /// After the search: count the tag that it found.
    at!(Taken);
    count(cx, hctx, 1);
}

stages! {
    enum At in "tag-share" of tag_busy hctx_may_queue inc_active_requests
}

/// Counts a request that got a driver tag, or freed it.
pub(super) fn count(cx: &mut Cx<'_>, hctx: HctxId, by: i32) {
    let set = cx.set();
    let counted = user(cx.q, set, hctx).1;
    counted.add(cx.cpu, by);
    let (now, depth) = (counted.peek(), set.driver_of(hctx).depth() as i32);
    debug_assert!(now >= 0, "fewer requests count than gave their tags back");
    // v6.1 uncounts some requests after their tag is freed, which another request may have by then.
    let exact = cx.rules().active_count == ActiveCount::WithTag;
    debug_assert!(!exact || now <= depth, "{now} count where {depth} tags are");
}

/// The mark of a user is cleared. Returns the number of users left.
pub(super) fn leave(set: &TagSet, map: usize, cpu: &mut Cpu) -> u32 {
    let left = set.active_queues[map].add_return(cpu, -1);
    debug_assert!(left >= 0, "more left than came");
    left as u32
}

/// blk_mq_update_wake_batch(): with no user left the batch does not change.
pub(super) fn spread(set: &TagSet, map: usize, users: u32) {
    if users > 0 {
        set.driver[map].share_wake_batch(users);
    }
}

/// The mark of a user of a tag map, and its requests that have tags: of the hctx, or of the queue
/// where all hctxs share one map.
pub(super) fn user<'a>(q: &'a RequestQueue, set: &TagSet, hctx: HctxId) -> (&'a Bit, &'a Count) {
    if set.hctx_shared {
        return (&q.tag_active, &q.nr_active);
    }
    let hctx = q.hctx(hctx);
    (&hctx.tag_active, &hctx.nr_active)
}

#[cfg(test)]
mod tests;
