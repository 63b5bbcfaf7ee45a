//! The expiry of a queue's timeout timer: if the device has no request any more, its hctxs leave
//! the users of their tags.
//!
//! Only queues that share a tag set have the timer here: for others it has no effect while requests
//! complete in time. A request past its deadline gets as much time again, as from a driver that
//! answers BLK_EH_RESET_TIMER; other reactions of drivers are not modelled. Kernel:
//! blk_mq_timeout_work() in block/blk-mq.c, __blk_mq_tag_idle() in block/blk-mq-tag.c,
//! blk_add_timer() in block/blk-timeout.c (6.1.192, 6.12.117).

use super::may_queue;
use super::sbitmap::{TagMap, sbitmap_queue_wake_all};
use super::wait::wake_all;
use crate::env::{Cpu, Effect};
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, QueueId, Request};
use crate::rules::Fix;
use crate::step::{Cx, jiffies, labels};
use crate::time::{Duration, Jiffies};
use steps::steps;

pub use timeout_work::State as TimeoutPath;

/// BLK_MAX_TIMEOUT, seconds.
const LONGEST: u64 = 5;

/// blk_mq_timeout_work() of a queue whose timer has expired (see [`BlkMq::timer_expires`]).
///
/// Deviation(D20): one label reads all requests; the kernel walks over the tags, each under
/// tags->lock with a reference to its request.
#[steps(path)]
pub fn timeout_work(cx: &mut Cx<'_>) {
    /// Has the queue users, and what deadlines have the requests with the device?
    at!(Enter);
    let now = cx.jiffies();
    let usage = cx.pool().usage;
    if usage.is_frozen() && usage.users() == 0 {
        return;
    }
    cx.pool().get_queue(1);
    if let Some(ticks) = next_deadline(cx, now) {
        arm(cx.q, now, ticks, cx.cpu);
    } else {
        let mut hctx: HctxId = HctxId(0);
        while usize::from(hctx.0) < cx.q.hctxs.len() {
            sub!(tag_idle(hctx));
            hctx.0 += 1;
        }
    }
    /// blk_queue_exit().
    at!(Leave);
    if cx.pool().exit_queue() {
        at!(Leave, wake_all(cx.cpu, cx.q.id));
    }
}

/// __blk_mq_tag_idle().
#[steps]
fn tag_idle(cx: &mut Cx<'_>, hctx: HctxId) {
    /// blk_mq_tag_idle(): removes the hctx from the users of its tags.
    at!(Idle);
    let set = cx.set();
    let map = set.driver_index(hctx);
    let (is_user, _) = may_queue::user(cx.q, set, hctx);
    if !is_user.test_and_clear(cx.cpu) {
        return;
    }
    if cx.rules().fixes.has(Fix::UsersLock) {
        /// Under the lock of the tag map: count it out, and spread wake-ups over one user less.
        lock!(Uncount, cx.lock(LockKind::Tags, map as u32));
        let set = cx.set();
        let map = set.driver_index(hctx);
        let users = may_queue::leave(set, map, cx.cpu);
        may_queue::spread(set, map, users);
        set.locks[map].release(cx.cpu);
    } else {
        /// The same without that lock (before v6.5): count it out.
        at!(UncountAlone);
        let map = cx.set().driver_index(hctx);
        let users: u32 = may_queue::leave(cx.set(), map, cx.cpu);
        /// Spread wake-ups over the users that were counted.
        at!(Spread);
        may_queue::spread(cx.set(), cx.set().driver_index(hctx), users);
    }
    /// sbitmap_queue_wake_all(): waiters may have had more than the share.
    at!(WakeAll);
    sub!(WakeAll, sbitmap_queue_wake_all(TagMap::Driver(hctx)));
}

labels! {
    pub enum At in "timeout" of timeout_work tag_idle
}

/// Time until the next deadline of the requests with the device; none without any: the queue is
/// idle.
fn next_deadline(cx: &Cx<'_>, now: Jiffies) -> Option<Jiffies> {
    let left = |rq: &Request| match rq.deadline {
        due if due > now => due.0 - now.0,
        _ => cx.q.settings.io_timeout.0,
    };
    let pool = cx.pool();
    let with_device = pool.iter().filter(|(_, rq)| rq.in_flight);
    with_device.map(|(_, rq)| left(rq)).min().map(Jiffies)
}

impl BlkMq {
    /// The timeout timer of a queue expires: its work item, [`TimeoutPath`], must be run. Called by
    /// the driver, once for each [`Effect::Timeout`] that no later one replaces.
    pub fn timer_expires(&self, queue: QueueId) {
        self.queue(queue).timeout.put(0);
    }
}

/// blk_add_timer(): the request's deadline, and the queue's timer where it would run later.
pub(super) fn add_timer(q: &RequestQueue, rq: &mut Request, cpu: &mut Cpu) {
    let (now, hz) = (jiffies(q, cpu), u64::from(q.settings.hz));
    let ticks = q.settings.io_timeout.0;
    rq.deadline = Jiffies(now.0 + ticks);
    // blk_round_jiffies().
    let slack = hz.next_power_of_two();
    let ticks = ticks.min(LONGEST * hz) + slack;
    let expires = u64::from(q.timeout.get());
    if expires == 0 || expires >= now.0 + ticks + hz / 2 {
        arm(q, now, Jiffies(ticks), cpu);
    }
}

/// mod_timer(&q->timeout).
fn arm(q: &RequestQueue, now: Jiffies, ticks: Jiffies, cpu: &mut Cpu) {
    let hz = u64::from(q.settings.hz);
    // Jiffies of 49 days and more saturate.
    q.timeout
        .put(u32::try_from(now.0 + ticks.0).unwrap_or(u32::MAX));
    cpu.outbox.push(Effect::Timeout {
        queue: q.id,
        after: Duration(ticks.0 * (1_000_000_000 / hz)),
    });
}

#[cfg(test)]
mod tests;
