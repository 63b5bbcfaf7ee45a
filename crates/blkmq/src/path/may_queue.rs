//! A fair share of driver tags where several queues draw from one set.
//!
//! Kernel: __blk_mq_tag_busy() in block/blk-mq-tag.c, hctx_may_queue() and the counting of active
//! requests in block/blk-mq.h (6.1.192, 6.12.117).

use crate::env::{Bit, Count, Cpu};
use crate::names::stages;
use crate::queue::{LockKind, RequestQueue};
use crate::request::HctxId;
use crate::rules::{ActiveCount, Fix};
use crate::step::{Cx, Next, Sub};
use crate::tags::TagSet;

/// Tags that every user may have, whatever the number of users.
const SHARE_MIN: u32 = 4;

stages! {
/// Position within the fair share of a search for a tag.
pub enum At in "tag-share" {
    /// Is the hctx a user of its tags?
    Known,
    /// Make it one, unless another CPU has.
    Join,
    /// Under the lock of the tag map: count it, and spread wake-ups over one user more.
    Count,
    /// Without that lock: count it.
    CountAlone,
    /// Spread wake-ups over the users that were counted.
    Spread,
    /// hctx_may_queue(): is the hctx a user (still)? If not, it has no limit.
    Active,
    /// How many users are there?
    Users,
    /// How many tags does this user have?
    Share,
    /// After the search: count the tag that it found.
    Taken,
}
}

/// The steps before the search for a tag: blk_mq_tag_busy() once an allocation, hctx_may_queue()
/// before each search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct MayQueue {
    at: At,
    users: u32,
}

impl Default for MayQueue {
    fn default() -> MayQueue {
        MayQueue {
            at: At::Known,
            users: 0,
        }
    }
}

impl MayQueue {
    /// Only hctx_may_queue(): for the further searches of an allocation.
    pub(super) fn again() -> MayQueue {
        MayQueue {
            at: At::Active,
            users: 0,
        }
    }

    pub(super) fn stage(self) -> At {
        self.at
    }

    /// One step; only for sets that queues share. At its end: true if the search may begin, false
    /// if the queue has used its share.
    pub(super) fn step(&mut self, cx: &mut Cx<'_>, hctx: HctxId) -> Sub<bool> {
        let set = cx.set();
        let map = set.driver_index(hctx);
        match self.at {
            At::Known => {
                let known = user(cx.q, set, hctx).0.test(cx.cpu);
                self.to(if known { At::Active } else { At::Join })
            }
            At::Join => {
                if user(cx.q, set, hctx).0.test_and_set(cx.cpu) {
                    return self.to(At::Active);
                }
                if !cx.rules().fixes.has(Fix::UsersLock) {
                    return self.to(At::CountAlone);
                }
                self.at = At::Count;
                Sub::Wait(cx.lock(LockKind::Tags, map as u32))
            }
            At::Count => {
                let users = set.active_queues[map].add_return(cx.cpu, 1);
                debug_assert!(users > 0, "a user joined");
                set.driver[map].share_wake_batch(users as u32);
                set.locks[map].release(cx.cpu);
                self.to(At::Active)
            }
            At::CountAlone => {
                self.users = set.active_queues[map].add_return(cx.cpu, 1) as u32;
                self.to(At::Spread)
            }
            At::Spread => {
                set.driver[map].share_wake_batch(self.users);
                self.to(At::Active)
            }
            At::Active => {
                // "Don't try dividing an ant."
                if set.driver[map].depth() == 1 || !user(cx.q, set, hctx).0.test(cx.cpu) {
                    return self.end(Sub::Done(true));
                }
                self.to(At::Users)
            }
            At::Users => {
                self.users = set.active_queues[map].read(cx.cpu) as u32;
                if self.users == 0 {
                    return self.end(Sub::Done(true));
                }
                self.to(At::Share)
            }
            At::Share => {
                let share = set.driver[map].depth().div_ceil(self.users);
                let has = user(cx.q, set, hctx).1.read(cx.cpu) as u32;
                let full = has >= share.max(SHARE_MIN);
                self.end(if full {
                    Sub::Done(false)
                } else {
                    Sub::Done(true)
                })
            }
            At::Taken => unreachable!("a request with a tag asks for no share"),
        }
    }

    fn to(&mut self, at: At) -> Sub<bool> {
        self.at = at;
        Sub::Wait(Next::Step)
    }

    fn end(&mut self, step: Sub<bool>) -> Sub<bool> {
        *self = MayQueue::default();
        step
    }
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
