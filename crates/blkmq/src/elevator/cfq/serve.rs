//! Service: which queue is served, and which of its requests is dispatched. Completions:
//! `complete.rs`.
//!
//! Kernel: cfq_select_queue(), cfq_may_dispatch(), cfq_dispatch_requests(), cfq_forced_dispatch()
//! in block/cfq-iosched.c (2.6.32 to 4.20).

use super::arrive::own_queue;
use super::queue::Class;
use super::{Cfq, QId};
use crate::elevator::messages::pointer;
use crate::elevator::scheduler::is_sync;
use crate::list::QueueList;
use crate::request::{Place, RequestId, RequestPool};
use crate::rules::{NextFrom, SliceDepth, SliceDrain, SliceIdling, SliceTrees};
use crate::time::Jiffies;

/// Levels of a class (CFQ_PRIO_LISTS).
pub(super) const LEVELS: usize = 8;

impl Cfq {
    /// cfq_dispatch_requests().
    pub(super) fn dispatch_next(&mut self, pool: &mut RequestPool) -> Option<RequestId> {
        if self.busy_queues == 0 {
            return None;
        }
        let q = self.select(pool)?;
        let rq = self.pick(pool, q)?;
        self.take_out(pool, rq);
        if self.active_process.is_none() {
            self.active_process = Some(pool[rq].io_context);
        }
        let (limit, now) = (self.requests_of_slice(q), self.now);
        let queue = &mut self.queues[q];
        queue.slice_dispatch += 1;
        queue.flags.must_dispatch = false;
        let spent = !queue.flags.sync && queue.slice_dispatch >= limit;
        if self.busy_queues > 1 && (spent || queue.class == Class::Idle) {
            queue.slice_end = now + 1;
            self.expire_active(pool, false);
        }
        trace_msg!(self, q, "dispatched a request");
        Some(rq)
    }

    /// Limit of an asynchronous queue per slice (cfq_prio_to_maxrq()).
    fn requests_of_slice(&self, q: QId) -> u32 {
        let base = self.settings.slice_async_rq;
        let lower = LEVELS as u32 - 1 - u32::from(self.queues[q].level);
        base.wrapping_add(base.wrapping_mul(lower)).wrapping_mul(2)
    }

    /// The queue to serve, which has a request; none if the device idles for the active one
    /// (cfq_select_queue()).
    fn select(&mut self, pool: &RequestPool) -> Option<QId> {
        let Some(q) = self.active else {
            return self.select_next();
        };
        let groups = self.rules.trees == SliceTrees::ByWorkload;
        if groups && self.queued == 0 {
            return None;
        }
        let empty = self.queues[q].is_empty();
        let mut cooperator = None;
        if groups && self.queues[q].flags.wait_busy && !empty {
            // The device idled for the queue so that its group stays busy.
        } else if self.slice_used(q) && !self.queues[q].flags.must_dispatch {
            if groups && empty && self.group_waits(q) || self.waits_for_group(q) {
                return None;
            }
        } else if !empty {
            return Some(q);
        } else {
            cooperator = self.close_cooperator(pool, q, false);
            if let Some(found) = cooperator {
                self.plan_merge(q, found);
            } else if self.waits(q) {
                return None;
            }
        }
        self.expire_active(pool, false);
        match cooperator {
            None => self.select_next(),
            Some(found) => {
                self.queues[found].flags.coop_preempt = false;
                self.activate(Some(found));
                Some(found)
            }
        }
    }

    fn select_next(&mut self) -> Option<QId> {
        self.choose_group();
        let next = self.next_queue();
        if let Some(q) = next {
            let preempted = core::mem::take(&mut self.queues[q].flags.coop_preempt);
            if !preempted && !self.rules.merge.marks_shared() {
                self.tie_of(q).coop = false;
            }
        }
        self.activate(next);
        next
    }

    fn plan_merge(&mut self, q: QId, found: QId) {
        if self.rules.merge.merges && self.hold_true(self.ties.tie(q)).new.is_none() {
            let planned = self.ties.set_up(q, found);
            self.hold_true(planned);
        }
    }

    /// The only queue of a group has used its slice while the device idled for it, and waits for
    /// its requests with the driver.
    fn group_waits(&mut self, q: QId) -> bool {
        let queue = &self.queues[q];
        self.groups[queue.group].queues == 1 && queue.dispatched > 0 && self.should_idle(q)
    }

    /// The active queue is empty, but idling for it pays.
    fn waits(&mut self, q: QId) -> bool {
        if self.timer_pending {
            return true;
        }
        if self.rules.idling == SliceIdling::ByTreeAndGroup {
            self.device_is_faster(q);
        }
        self.queues[q].dispatched > 0 && self.should_idle(q) || self.waits_for_group(q)
    }

    /// Stops idling for a deep seeky queue that the device serves faster than its process submits.
    fn device_is_faster(&mut self, q: QId) {
        if !self.is_seeky(q, None) || !self.queues[q].flags.idle_window {
            return;
        }
        let now = self.now;
        let queue = &mut self.queues[q];
        let start = queue.slice_start.unwrap_or(now);
        if queue.flags.slice_new || queue.slice_end - now > now - start {
            queue.flags.deep = false;
            queue.flags.idle_window = false;
        }
    }

    /// Requests of the only queue of its group are with the driver, and more will come (4.20).
    fn waits_for_group(&self, q: QId) -> bool {
        let group = &self.groups[self.queues[q].group];
        self.rules.idling == SliceIdling::ByTreeAndGroup
            && self.tuned.group_idle > 0
            && group.queues == 1
            && group.dispatched > 0
            && !group.think.is_long(self.tuned.group_idle)
    }

    /// The request to dispatch, if the queue may send one (cfq_dispatch_request()).
    fn pick(&mut self, pool: &RequestPool, q: QId) -> Option<RequestId> {
        assert!(
            !self.queues[q].is_empty(),
            "{q:?} is selected without request"
        );
        let next = self.queues[q].next_rq;
        if self.rules.depth != SliceDepth::HalvedButOverdue {
            return match self.may_dispatch(q) {
                true => self.check_fifo(pool, q).or(next),
                false => None,
            };
        }
        let overdue = self.check_fifo(pool, q);
        self.queues[q].flags.must_dispatch |= overdue.is_some();
        if !self.may_dispatch(q) {
            return None;
        }
        if let Some(rq) = overdue {
            trace_msg!(self, q, "fifo={:016x}", pointer(rq.0));
        }
        overdue.or(next)
    }

    /// The head of the FIFO, if its deadline has passed; checked once per slice (cfq_check_fifo()).
    fn check_fifo(&mut self, pool: &RequestPool, q: QId) -> Option<RequestId> {
        let queue = &mut self.queues[q];
        if core::mem::replace(&mut queue.flags.fifo_expire, true) {
            return None;
        }
        let now = Jiffies(self.now.cast_unsigned());
        let overdue = queue.fifo.first().filter(|&rq| now >= pool[rq].fifo_time);
        if self.rules.depth != SliceDepth::HalvedButOverdue {
            match overdue {
                Some(rq) => trace_msg!(self, q, "fifo={:016x}", pointer(rq.0)),
                None => trace_msg!(self, q, "fifo=(null)"),
            }
        }
        overdue
    }

    /// cfq_may_dispatch().
    fn may_dispatch(&mut self, q: QId) -> bool {
        let queue = &self.queues[q];
        let late = self.rules.depth == SliceDepth::HalvedButOverdue;
        if late && queue.flags.must_dispatch {
            return true;
        }
        // Counted from the driver's first look at first, in later kernels from the dispatch on.
        let async_away = match self.rules.depth {
            SliceDepth::Fourfold | SliceDepth::Unlimited => self.in_driver[0],
            SliceDepth::Halved | SliceDepth::HalvedButOverdue => self.in_flight[0],
        };
        if self.should_idle(q) && async_away > 0 {
            return false;
        }
        let queue = &self.queues[q];
        if self.in_flight[1] > 0 && !queue.flags.sync {
            return false;
        }
        let Some(mut most) = self.depth_of(q) else {
            return false;
        };
        if !queue.flags.sync && self.settings.low_latency {
            let mut depth = (self.now - self.last_end_sync) / self.tuned.slice[1];
            if depth == 0 && queue.dispatched == 0 {
                depth = 1;
            }
            most = most.min(depth);
        }
        i64::from(queue.dispatched) < most
    }

    /// The most requests that the queue may have with the driver; none: no more now.
    fn depth_of(&self, q: QId) -> Option<i64> {
        let queue = &self.queues[q];
        let quantum = i64::from(self.settings.quantum.unwrap_or(self.rules.quantum));
        let halved = matches!(
            self.rules.depth,
            SliceDepth::Halved | SliceDepth::HalvedButOverdue
        );
        let most = match (queue.class, halved) {
            (Class::Idle, _) => 1,
            (_, true) => (quantum / 2).max(1),
            (_, false) => quantum,
        };
        if i64::from(queue.dispatched) < most {
            return Some(most);
        }
        if queue.class == Class::Idle {
            return None;
        }
        let only_sync = self.rules.depth == SliceDepth::HalvedButOverdue
            && queue.flags.sync
            && self.busy_sync_queues == 1;
        if self.busy_queues <= 1 || only_sync {
            return Some(match self.rules.depth {
                SliceDepth::Fourfold => most * 4,
                _ => i64::MAX,
            });
        }
        (halved && !self.slice_used_soon(q)).then_some(quantum)
    }

    /// At slice_idle each, the requests with the driver take the rest of the slice.
    fn slice_used_soon(&self, q: QId) -> bool {
        let queue = &self.queues[q];
        let away = self.tuned.slice_idle * i64::from(queue.dispatched);
        queue.flags.slice_new || self.now + away > queue.slice_end
    }

    /// A request is dispatched to the driver (cfq_dispatch_insert()).
    pub(super) fn take_out(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let q = own_queue(&pool[rq]);
        trace_msg!(self, q, "dispatch_insert");
        self.shows_service(q, pool[rq].sectors.0);
        self.queues[q].next_rq = self.find_next(pool, q, rq);
        self.remove(pool, rq);
        let queue = &mut self.queues[q];
        queue.dispatched += 1;
        queue.slice_sectors += u64::from(pool[rq].sectors.0);
        self.in_flight[usize::from(queue.flags.sync)] += 1;
        self.groups[queue.group].dispatched += 1;
        pool[rq].started = true;
        pool[rq].place = Place::Path;
    }

    /// cfq_find_next_rq().
    fn find_next(&self, pool: &RequestPool, q: QId, last: RequestId) -> Option<RequestId> {
        let sort = &self.queues[q].sort;
        let prev = sort.prev(pool, last);
        let first = || sort.first(pool).filter(|&first| first != last);
        let next = sort.next(pool, last).or_else(first);
        let from = match self.rules.next_from {
            NextFrom::Head => self.last_position,
            NextFrom::Leaving => pool[last].sector.0,
        };
        self.choose_rq(pool, next, prev, from)
    }

    /// A request leaves its queue, for any reason (cfq_remove_request()).
    pub(super) fn remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let q = own_queue(&pool[rq]);
        if self.queues[q].next_rq == Some(rq) {
            self.queues[q].next_rq = self.find_next(pool, q, rq);
        }
        let sync = is_sync(pool[rq].op, pool[rq].flags);
        let queue = &mut self.queues[q];
        queue.fifo.remove(pool, rq);
        queue.queued[usize::from(sync)] -= 1;
        queue.sort.remove(pool, rq);
        self.operations += queue.sort.take_touched();
        queue.meta_pending -= u32::from(pool[rq].flags.meta);
        self.queued -= 1;
        self.index.remove(pool, rq);
        if self.queues[q].is_empty() && self.queues[q].flags.on_rr {
            match self.rules.trees {
                SliceTrees::One => self.del_busy(q),
                SliceTrees::ByWorkload => self.position_remove(q),
            }
        }
    }

    /// Dispatches all queued requests (cfq_forced_dispatch()).
    pub(super) fn drain_all(&mut self, pool: &mut RequestPool) -> QueueList {
        let mut all = QueueList::new();
        if self.busy_queues == 0 {
            return all;
        }
        let rule = self.rules.drain;
        if rule == SliceDrain::ActivatesEach {
            self.expire_active(pool, false);
        }
        while let Some(q) = self.next_forced() {
            if rule == SliceDrain::ActivatesEach {
                self.activate(Some(q));
            }
            while let Some(rq) = self.queues[q].next_rq {
                self.take_out(pool, rq);
                self.sort_into(pool, &mut all, rq);
            }
            if rule != SliceDrain::ExpiresActive {
                self.expire(pool, q, false);
            }
        }
        if rule != SliceDrain::ActivatesEach {
            self.expire_active(pool, false);
        }
        assert_eq!(self.busy_queues, 0, "queues after a drain");
        trace_device_msg!(self, "forced_dispatch={}", all.len());
        all
    }

    /// Among requests of its operation by sector, those before the last position at the end
    /// (elv_dispatch_sort()).
    fn sort_into(&self, pool: &mut RequestPool, all: &mut QueueList, rq: RequestId) {
        let key = |rq: RequestId| (pool[rq].sector.0 < self.last_position, pool[rq].sector);
        let (mut next, mut at) = (None, all.last());
        while let Some(last) = at
            && pool[last].op == pool[rq].op
            && key(rq) < key(last)
        {
            (next, at) = (Some(last), all.prev(pool, last));
        }
        match next {
            Some(next) => all.insert_before(pool, next, rq),
            None => all.push_back(pool, rq),
        }
    }
}
