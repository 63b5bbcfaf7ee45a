//! The expiry of a queue's timeout timer: if the device has no request any more, its hctxs leave
//! the users of their tags.
//!
//! Only queues that share a tag set have the timer here: for others it has no effect while requests
//! complete in time. A request past its deadline gets as much time again, as from a driver that
//! answers BLK_EH_RESET_TIMER; other reactions of drivers are not modelled. Kernel:
//! blk_mq_timeout_work() in block/blk-mq.c, __blk_mq_tag_idle() in block/blk-mq-tag.c,
//! blk_add_timer() in block/blk-timeout.c (6.1.192, 6.12.117).

use super::tag::{self, TagMap};
use super::wait::wake_all;
use super::{TagStage, may_queue};
use crate::env::{Cpu, Effect};
use crate::names::labels;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, QueueId, Request};
use crate::rules::Fix;
use crate::sbitmap::Put;
use crate::step::{Cx, Next, jiffies};
use crate::time::{Duration, Jiffies};

labels! {
    pub enum At in "timeout" {
        /// Has the queue users, and what deadlines have the requests with the device?
        Enter,
        /// blk_mq_tag_idle(): removes the hctx from the users of its tags.
        Idle,
        /// Under the lock of the tag map: count it out, and spread wake-ups over one user less.
        Uncount,
        /// The same without that lock (before v6.5): count it out.
        UncountAlone,
        /// Spread wake-ups over the users that were counted.
        Spread,
        /// sbitmap_queue_wake_all(): waiters may have had more than the share.
        WakeAll,
        /// blk_queue_exit().
        Leave,
    }
}

/// BLK_MAX_TIMEOUT, seconds.
const LONGEST: u64 = 5;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimeoutPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    hctx: HctxId,
    users: u32,
    wake: Option<Put>,
}

impl TimeoutPath {
    /// For this queue, whose timer has expired (see [`BlkMq::timer_expires`]).
    pub fn new(queue: QueueId) -> TimeoutPath {
        TimeoutPath {
            at: At::Enter,
            queue,
            hctx: HctxId(0),
            users: 0,
            wake: None,
        }
    }

    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        self.wake.as_ref().map(TagStage::of_put)
    }

    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let (at, hctxs) = (self.at, mq.queue(self.queue).hctxs.len());
        assert!(usize::from(self.hctx.0) < hctxs, "{at:?} of no hctx");
        let wakes = at == At::WakeAll;
        assert_eq!(self.wake.is_some(), wakes, "{at:?}: sleepers are woken");
    }

    pub(super) fn check_over(&self) {
        assert!(self.wake.is_none(), "sleepers are woken");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let set = cx.set();
        let map = set.driver_index(self.hctx);
        match self.at {
            At::Enter => self.enter(cx),
            At::Idle => {
                if !may_queue::user(cx.q, set, self.hctx)
                    .0
                    .test_and_clear(cx.cpu)
                {
                    return self.next_hctx(cx.q);
                }
                if !cx.rules().fixes.has(Fix::UsersLock) {
                    return self.to(At::UncountAlone);
                }
                self.at = At::Uncount;
                cx.lock(LockKind::Tags, map as u32)
            }
            At::Uncount => {
                self.users = may_queue::leave(set, map, cx.cpu);
                may_queue::spread(set, map, self.users);
                set.locks[map].release(cx.cpu);
                self.wake_all()
            }
            At::UncountAlone => {
                self.users = may_queue::leave(set, map, cx.cpu);
                self.to(At::Spread)
            }
            At::Spread => {
                may_queue::spread(set, map, self.users);
                self.wake_all()
            }
            At::WakeAll => {
                let put = self.wake.as_mut().expect("sleepers are woken");
                let map = TagMap::Driver(self.hctx);
                if let Some(next) = tag::step_put(put, cx.mq, self.queue, map, cx.cpu) {
                    return next;
                }
                self.wake = None;
                self.next_hctx(cx.q)
            }
            At::Leave => match cx.pool().exit_queue() {
                true => wake_all(cx.cpu, self.queue),
                false => Next::Done,
            },
        }
    }

    /// Requests with the device have a deadline: the timer runs again then. Without any the queue
    /// is idle.
    ///
    /// Deviation(D20): one label reads all requests; the kernel walks over the tags, each under
    /// tags->lock with a reference to its request.
    fn enter(&mut self, cx: &mut Cx<'_>) -> Next {
        let now = cx.jiffies();
        let mut pool = cx.pool();
        if pool.usage.is_frozen() && pool.usage.users() == 0 {
            return Next::Done;
        }
        pool.get_queue(1);
        let left = |rq: &Request| match rq.deadline {
            due if due > now => due.0 - now.0,
            _ => cx.q.settings.io_timeout.0,
        };
        let with_device = pool.iter().filter(|(_, rq)| rq.in_flight);
        let next = with_device.map(|(_, rq)| left(rq)).min();
        drop(pool);
        match next {
            Some(ticks) => {
                arm(cx.q, now, Jiffies(ticks), cx.cpu);
                self.to(At::Leave)
            }
            None => self.to(At::Idle),
        }
    }

    fn wake_all(&mut self) -> Next {
        self.users = 0;
        self.wake = Some(Put::wake_all());
        self.to(At::WakeAll)
    }

    fn next_hctx(&mut self, q: &RequestQueue) -> Next {
        if usize::from(self.hctx.0) + 1 == q.hctxs.len() {
            return self.to(At::Leave);
        }
        self.hctx.0 += 1;
        self.to(At::Idle)
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }
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
