//! Idling: for which queue the device idles, how long, and whether the drive queues commands.
//!
//! Kernel: cfq_should_idle(), cfq_arm_slice_timer(), cfq_update_idle_window(),
//! cfq_should_wait_busy(), cfq_idle_slice_timer(), cfq_update_hw_tag() in block/cfq-iosched.c
//! (2.6.32 to 4.20).

use super::queue::Class;
use super::{Cfq, QId};
use crate::elevator::hook::TimerAsk;
use crate::request::{IoContextId, Op, Request, RequestPool};
use crate::rules::{QueueingGuess, Seeks, SliceClock, SliceIdling, SliceLog, SliceTrees};
use crate::time::{Duration, Jiffies};

/// CFQ_HW_QUEUE_MIN: this many requests at once show that a drive queues.
const QUEUES_FROM: u32 = 5;
const SAMPLES: u32 = 50;
/// A queue with this many requests at once is deep.
const DEEP: u32 = 4;
/// CFQ_MIN_TT of 2.6.32: how long the device idles for a process that seeks, ms.
const SEEKY_MS: u64 = 2;

/// Whether the drive queues commands (hw_tag).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum HwTag {
    /// Not measured yet; counts as yes.
    Unknown,
    No,
    Yes,
}

impl Cfq {
    pub(super) fn seems_to_queue(&self) -> bool {
        self.hw_tag != HwTag::No
    }

    /// Seeks cost nothing, and several requests at once are no slower than one.
    fn is_flash(&self) -> bool {
        !self.rotational && self.seems_to_queue()
    }

    /// The number of the timer that these rules use.
    pub(super) fn timer_number(&self) -> u8 {
        u8::from(self.settings.clock == SliceClock::Nanoseconds)
    }

    fn arm_timer(&mut self, span: i64) {
        let nanoseconds = match self.settings.clock {
            SliceClock::Nanoseconds => span,
            SliceClock::Ticks => span * (1_000_000_000 / i64::from(self.settings.hz)),
        };
        self.timer_pending = true;
        self.timer = Some(TimerAsk::Arm {
            timer: self.timer_number(),
            after: Duration(nanoseconds.cast_unsigned()),
        });
    }

    pub(super) fn cancel_timer(&mut self) {
        if core::mem::take(&mut self.timer_pending) {
            self.timer = Some(TimerAsk::Cancel {
                timer: self.timer_number(),
            });
        }
    }

    fn seeky_idle(&self) -> i64 {
        Jiffies::from_millis(SEEKY_MS, self.settings.hz).0 as i64
    }

    /// Whether the device idles for the queue at all (cfq_should_idle(); its idle window in
    /// 2.6.32).
    pub(super) fn should_idle(&mut self, q: QId) -> bool {
        let queue = &self.queues[q];
        if self.rules.idling == SliceIdling::ByWindow {
            return queue.flags.idle_window;
        }
        let late = self.rules.idling == SliceIdling::ByTreeAndGroup;
        if queue.class == Class::Idle || late && self.tuned.slice_idle == 0 {
            return false;
        }
        if queue.flags.idle_window && !self.is_flash() {
            return true;
        }
        let (group, tree) = queue.tree.expect("the active queue stays on its tree");
        let tree = &self.groups[group].trees[usize::from(tree)];
        let (long, count) = (
            late && tree.think.is_long(self.tuned.slice_idle),
            tree.nodes.len(),
        );
        let last = queue.flags.sync && count == 1 && !long;
        if !last && self.rules.log.tells_work() {
            trace_msg!(self, q, "Not idling. st->count:{count}");
        }
        last
    }

    /// cfq_arm_slice_timer().
    pub(super) fn wait_for(&mut self, q: QId) {
        let late = self.rules.idling == SliceIdling::ByTreeAndGroup;
        let group_idle = if late { self.tuned.group_idle } else { 0 };
        if self.is_flash() && group_idle == 0 {
            return;
        }
        let own = late || self.tuned.slice_idle > 0;
        let for_group = !(own && self.should_idle(q));
        if for_group && group_idle == 0 {
            return;
        }
        let busy = match self.rules.idling {
            SliceIdling::ByWindow => self.in_driver[0] + self.in_driver[1],
            SliceIdling::ByTree | SliceIdling::ByTreeAndGroup => self.queues[q].dispatched,
        };
        let living = |p: &IoContextId| self.processes[p.0 as usize].lives;
        let Some(p) = self.active_process.filter(living) else {
            return;
        };
        if busy > 0 {
            return;
        }
        let think = self.processes[p.0 as usize].think;
        if think.is_valid() && self.queues[q].slice_end - self.now < think.mean {
            if self.rules.log.tells_work() {
                trace_msg!(self, q, "Not idling. think_time:{}", think.mean);
            }
            return;
        }
        if for_group && self.has_company_or_thinks(q) {
            return;
        }
        self.queues[q].flags.wait_request = true;
        let span = match for_group {
            true => group_idle,
            false => self.idle_of(q, p),
        };
        self.arm_timer(span);
        self.shows_wait(q);
        match self.rules.log {
            SliceLog::Kind => {
                let for_group = u8::from(for_group);
                trace_msg!(self, q, "arm_idle: {span} group_idle: {for_group}");
            }
            _ => trace_msg!(self, q, "arm_idle: {span}"),
        }
    }

    /// Idling for the group would have no effect.
    fn has_company_or_thinks(&self, q: QId) -> bool {
        let queue = &self.queues[q];
        let (group, tree) = queue.tree.expect("the active queue stays on its tree");
        let tree = &self.groups[group].trees[usize::from(tree)];
        self.groups[queue.group].queues > 1 || tree.think.is_long(self.tuned.group_idle)
    }

    /// How long the device idles for a queue.
    fn idle_of(&self, q: QId, p: IoContextId) -> i64 {
        let idle = self.tuned.slice_idle;
        match self.rules.idling {
            SliceIdling::ByWindow if self.is_surely_seeky(q, p) => idle.min(self.seeky_idle()),
            _ => idle,
        }
    }

    /// A synchronous write that no other one follows soon (rq_noidle(), req_noidle()).
    pub(super) fn sends_no_other(rq: &Request) -> bool {
        rq.flags.noidle && rq.flags.sync && rq.op == Op::Write
    }

    /// Decides whether idling for the queue pays (cfq_update_idle_window()).
    pub(super) fn update_idle_window(&mut self, pool: &RequestPool, q: QId, p: IoContextId) {
        let queue = &self.queues[q];
        if !queue.flags.sync || queue.class == Class::Idle {
            return;
        }
        if self.rules.idling != SliceIdling::ByWindow && queue.queued[0] + queue.queued[1] >= DEEP {
            self.queues[q].flags.deep = true;
        }
        let think = self.processes[p.0 as usize].think;
        let idle = match self.rules.idling {
            SliceIdling::ByWindow if self.is_surely_seeky(q, p) => self.seeky_idle(),
            _ => self.tuned.slice_idle,
        };
        let before = self.queues[q].flags.idle_window;
        let window = match self.is_not_worth_it(pool, q, p) {
            true => false,
            false if think.is_valid() => think.mean <= idle,
            false => before,
        };
        if window != before {
            trace_msg!(self, q, "idle={}", u8::from(window));
            self.queues[q].flags.idle_window = window;
        }
    }

    fn is_not_worth_it(&self, pool: &RequestPool, q: QId, p: IoContextId) -> bool {
        let queue = &self.queues[q];
        let lives = self.processes[p.0 as usize].lives;
        let never = !lives || self.tuned.slice_idle == 0;
        let seeks = match (self.rules.idling, self.rules.seeks) {
            (SliceIdling::ByWindow, _) => {
                !self.settings.low_latency && self.seems_to_queue() && self.is_seeky(q, Some(p))
            }
            (_, Seeks::History) => !queue.flags.deep && self.is_seeky(q, Some(p)),
            _ => !queue.flags.deep && self.is_surely_seeky(q, p),
        };
        let last = self.rules.idling == SliceIdling::ByTreeAndGroup
            && queue
                .next_rq
                .is_some_and(|next| Cfq::sends_no_other(&pool[next]));
        last || never || seeks
    }

    /// The rest of its slice is so short that the only queue of a group, and with it the group,
    /// would leave before its next request: the slice is extended (cfq_should_wait_busy()).
    pub(super) fn wait_till_busy(&mut self, q: QId) {
        if self.rules.trees == SliceTrees::One || !self.should_wait_busy(q) {
            return;
        }
        let mut more = self.tuned.slice_idle;
        if more == 0 && self.rules.idling == SliceIdling::ByTreeAndGroup {
            more = self.tuned.group_idle;
        }
        let now = self.now;
        let queue = &mut self.queues[q];
        queue.slice_end = now + more;
        queue.flags.wait_busy = true;
        if self.rules.log.tells_work() {
            trace_msg!(self, q, "will busy wait");
        }
    }

    fn should_wait_busy(&self, q: QId) -> bool {
        let queue = &self.queues[q];
        let group = &self.groups[queue.group];
        let late = self.rules.idling == SliceIdling::ByTreeAndGroup;
        let in_vain = !queue.is_empty() || group.think.is_long(self.tuned.group_idle);
        if late && in_vain || group.queues > 1 {
            return false;
        }
        if self.slice_used(q) {
            return true;
        }
        let left = queue.slice_end - self.now;
        let think = self
            .active_process
            .map(|p| self.processes[p.0 as usize].think);
        let longer = think.is_some_and(|think| think.is_valid() && left < think.mean);
        let last_tick = match self.settings.clock {
            SliceClock::Ticks => left == 1,
            SliceClock::Nanoseconds => left <= self.tick_span(),
        };
        longer || last_tick
    }

    /// The idle timer expired (cfq_idle_slice_timer()).
    pub(super) fn waited_in_vain(&mut self, pool: &RequestPool) {
        trace_device_msg!(self, "idle timer fired");
        self.timer_pending = false;
        let Some(q) = self.active else {
            self.kick();
            return;
        };
        let queue = &self.queues[q];
        if queue.flags.must_dispatch {
            self.kick();
            return;
        }
        if !self.slice_used(q) {
            if self.busy_queues == 0 {
                return;
            }
            if !queue.is_empty() {
                self.kick();
                return;
            }
            self.queues[q].flags.deep = false;
        }
        self.expire(pool, q, false);
        self.kick();
    }

    /// cfq_update_hw_tag().
    pub(super) fn update_hw_tag(&mut self) {
        let in_driver = self.in_driver[0] + self.in_driver[1];
        self.in_driver_peak = self.in_driver_peak.max(in_driver);
        let sticks = self.rules.queueing == QueueingGuess::Sticks;
        if sticks && self.hw_tag == HwTag::Yes {
            return;
        }
        if self.queued <= QUEUES_FROM && in_driver <= QUEUES_FROM {
            return;
        }
        if sticks && in_driver < QUEUES_FROM && self.active_is_shallow() {
            return;
        }
        self.hw_tag_samples += 1;
        if self.hw_tag_samples <= SAMPLES {
            return;
        }
        self.hw_tag = match self.in_driver_peak >= QUEUES_FROM {
            true => HwTag::Yes,
            false => HwTag::No,
        };
        if !sticks {
            self.hw_tag_samples = 0;
            self.in_driver_peak = 0;
        }
    }

    /// The active queue would not use the drive's queue, whatever its depth.
    fn active_is_shallow(&self) -> bool {
        let Some(q) = self.active else { return false };
        let queue = &self.queues[q];
        let all = queue.dispatched + queue.queued[0] + queue.queued[1];
        queue.flags.idle_window && all < QUEUES_FROM
    }
}
