//! Arrival: a request gets its queue, joins it, and may preempt the active queue.
//!
//! Kernel: cfq_set_request(), cfq_add_rq_rb(), cfq_rq_enqueued(), cfq_should_preempt(),
//! cfq_preempt_queue() in block/cfq-iosched.c (2.6.32 to 4.20).

use super::ids::ROOT;
use super::merge::Tie;
use super::queue::{Class, Flags, Work};
use super::{Cfq, QId};
use crate::elevator::choose_rq::{BackSeek, choose_rq};
use crate::elevator::messages::pointer;
use crate::elevator::scheduler::{MayQueue, Wanted, is_sync};
use crate::request::{Direction, IoContextId, PAGE_SECTORS, Request, RequestId, RequestPool};
use crate::rules::{
    AwaitedArrival, ClosePreemption, Preemption, SameStart, SliceBoost, SliceGroups,
};
use crate::time::Jiffies;

/// The queue recorded in a request: `elv_priv[1]`.
#[inline]
pub(super) fn queue_of(rq: &Request) -> Option<QId> {
    rq.elv_priv[1].checked_sub(1).map(QId)
}

#[inline]
pub(super) fn set_queue_of(rq: &mut Request, q: Option<QId>) {
    rq.elv_priv[1] = q.map_or(0, |q| q.0 + 1);
}

#[inline]
pub(super) fn own_queue(rq: &Request) -> QId {
    queue_of(rq).expect("a request that is set up has a queue")
}

pub(super) fn is_write(rq: &Request) -> bool {
    rq.op.direction() == Direction::Write
}

impl Cfq {
    /// Assigns a queue to a request, with a reference (cfq_set_request()).
    pub(super) fn set_up(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.greet(pool, &pool[rq]);
        let (p, write) = (pool[rq].io_context, is_write(&pool[rq]));
        let sync = is_sync(pool[rq].op, pool[rq].flags);
        let found = self.find_queue(pool, p, sync);
        let q = found.unwrap_or_else(|| self.new_queue(p, sync));
        let held = self.ties.hold(q, write);
        self.hold_true(held);
        set_queue_of(&mut pool[rq], Some(q));
    }

    /// The queue that a process has, if it keeps one: the process may leave a shared queue, or
    /// change to the queue that `new_cfqq` names (cfq_merge_cfqqs(), split_cfqq()).
    fn find_queue(&mut self, pool: &RequestPool, p: IoContextId, sync: bool) -> Option<QId> {
        let since = self.now - self.settings.second();
        let aged = |tie: &Tie| tie.seeky_since.is_some_and(|seeky| seeky < since);
        let before = self.ties.slot(p, sync);
        let apart = before.is_some_and(|q| self.ties.breaks_apart(q, aged) == Ok(true));
        if let Some(q) = before.filter(|_| apart) {
            trace_msg!(self, q, "breaking apart cfqq");
        }
        let found = self.ties.find(p, sync, aged);
        let found = self.hold_true(found);
        if let (Some(q), Some(new)) = (before, found)
            && q != new
        {
            trace_msg!(self, q, "merging with queue {:016x}", pointer(new.0));
        }
        if let Some(q) = found.filter(|_| apart && found == before) {
            // Only this process has the queue now.
            self.queues[q].pid = self.submitters.of(p).pid;
        }
        self.bury(pool);
        found
    }

    fn new_queue(&mut self, p: IoContextId, sync: bool) -> QId {
        let place = (!sync).then(|| self.table_place(p));
        let given = self.ties.give(p, place, true);
        let (q, fresh) = self.hold_true(given);
        if fresh {
            self.begin_queue(q, p, sync);
            trace_msg!(self, q, "alloced");
        }
        q
    }

    /// cfq_init_cfqq().
    pub(super) fn begin_queue(&mut self, q: QId, p: IoContextId, sync: bool) {
        let pid = self.submitters.of(p).pid;
        let group = self.processes[p.0 as usize].group;
        let never = self.never();
        let queue = self.queues.begin(q);
        queue.dispatch_start = never;
        queue.flags = Flags {
            sync,
            idle_window: sync,
            prio_changed: true,
            ..Flags::default()
        };
        queue.pid = pid;
        queue.group = group;
        self.take_priority(q, p);
    }

    /// cfq_may_queue(): a queue that the device idles for gets one request regardless of the
    /// limits.
    pub(super) fn may_allocate(&mut self, wanted: Wanted) -> MayQueue {
        let Some(q) = self.ties.slot(wanted.io_context, wanted.is_sync()) else {
            return MayQueue::May;
        };
        self.take_priority(q, wanted.io_context);
        let raised = self.rules.boost == SliceBoost::Meta && wanted.flags.meta;
        let queue = &mut self.queues[q];
        if raised {
            if queue.class == Class::Idle {
                queue.class = Class::BestEffort;
            }
            queue.level = queue.level.min(super::process::LEVEL_NORMAL);
        } else {
            queue.class = queue.org_class;
            queue.level = queue.org_level;
        }
        if !queue.flags.wait_request || queue.flags.must_alloc_slice {
            return MayQueue::May;
        }
        queue.flags.must_alloc_slice = true;
        MayQueue::Must
    }

    /// A request enters its queue (cfq_insert_request()).
    pub(super) fn join(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let (q, p) = (own_queue(&pool[rq]), pool[rq].io_context);
        trace_msg!(self, q, "insert_request");
        self.take_priority(q, p);
        let sync = is_sync(pool[rq].op, pool[rq].flags);
        let due = self.now + self.tuned.fifo_expire[usize::from(sync)];
        pool[rq].fifo_time = Jiffies(due.cast_unsigned());
        self.queues[q].fifo.push_back(pool, rq);
        self.queued += 1;
        self.queues[q].meta_pending += u32::from(pool[rq].flags.meta);
        self.add_sorted(pool, rq);
        self.index.add(pool, rq);
        self.update_think_time(q, p);
        self.update_seeks(q, &pool[rq]);
        self.update_idle_window(pool, q, p);
        self.arrived(pool, rq, q);
    }

    /// cfq_add_rq_rb().
    pub(super) fn add_sorted(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let q = own_queue(&pool[rq]);
        let sync = is_sync(pool[rq].op, pool[rq].flags);
        let sector = pool[rq].sector;
        self.queues[q].queued[usize::from(sync)] += 1;
        if self.rules.same_start == SameStart::HandsOver {
            while let Some(older) = self.queues[q].sort.find(pool, sector) {
                self.take_out(pool, older);
                self.handed.push_back(pool, older);
            }
        }
        self.queues[q].sort.insert(pool, rq, sector);
        if !self.queues[q].flags.on_rr {
            self.add_busy(pool, q);
        }
        let before = self.queues[q].next_rq;
        let next = self.choose_rq(pool, before, Some(rq), self.last_position);
        self.queues[q].next_rq = next;
        if before != next {
            self.position_add(pool, q);
        }
    }

    /// cfq_choose_req().
    pub(super) fn choose_rq(
        &self,
        pool: &RequestPool,
        first: Option<RequestId>,
        second: Option<RequestId>,
        last: u64,
    ) -> Option<RequestId> {
        let back = BackSeek {
            max_kib: self.settings.back_seek_max,
            penalty: self.settings.back_seek_penalty,
        };
        choose_rq(pool, first, second, last, back)
    }

    /// The effect of a request of this queue on the active one (cfq_rq_enqueued()).
    fn arrived(&mut self, pool: &mut RequestPool, rq: RequestId, q: QId) {
        if self.active != Some(q) {
            if self.should_preempt(&pool[rq], q) {
                self.preempt(pool, q);
                self.runs_now = true;
            }
            return;
        }
        if !self.queues[q].flags.wait_request {
            return;
        }
        let at_once = pool[rq].sectors.0 > PAGE_SECTORS || self.busy_queues > 1;
        if !at_once {
            // The request may grow until the timer expires.
            self.queues[q].flags.must_dispatch = true;
            return;
        }
        self.cancel_timer();
        self.runs_now = true;
        match self.rules.awaited {
            AwaitedArrival::KeepsWaiting => self.must_after_run = Some(q),
            AwaitedArrival::EndsWaiting => self.queues[q].flags.wait_request = false,
        }
    }

    /// cfq_should_preempt().
    fn should_preempt(&mut self, rq: &Request, q: QId) -> bool {
        let Some(cur) = self.active else {
            return false;
        };
        let (own, other) = (&self.queues[q], &self.queues[cur]);
        let used = self.slice_used(cur);
        let used_first = self.rules.preemption == Preemption::UsedFirst;
        if used_first && used {
            return true;
        }
        if own.class == Class::Idle {
            return false;
        }
        if other.class == Class::Idle {
            return true;
        }
        let real_time = |class| class == Class::RealTime;
        if !used_first && real_time(other.class) && !real_time(own.class) {
            return false;
        }
        let late = self.rules.preemption == Preemption::ByAncestry;
        let overdue = late && other.flags.must_dispatch;
        if is_sync(rq.op, rq.flags) && !other.flags.sync && !overdue {
            return true;
        }
        if !used_first && !self.is_of_group(cur, q) {
            return false;
        }
        if !used_first && used || late && real_time(own.class) && !real_time(other.class) {
            return true;
        }
        if !used_first && self.ends_wait_of_tree(cur, q) {
            return true;
        }
        if rq.flags.meta && other.meta_pending == 0 {
            return self.rules.meta_preempts;
        }
        if real_time(own.class) && !real_time(other.class) {
            return true;
        }
        if late && other.is_empty() && !self.should_idle(cur) {
            return true;
        }
        self.active_process.is_some()
            && self.queues[cur].flags.wait_request
            && self.preempts_as_close(rq, cur, q)
    }

    /// The new queue's group is that of the active queue, or above it in late kernels.
    fn is_of_group(&self, cur: QId, q: QId) -> bool {
        let (group, above) = (self.queues[cur].group, self.queues[q].group);
        match self.rules.groups {
            SliceGroups::Hierarchy => self.groups.is_below(group, above),
            SliceGroups::None | SliceGroups::Flat => group == above,
        }
    }

    /// The device idled for the last queue of the sync-noidle tree, and another queue of that tree
    /// has a request.
    fn ends_wait_of_tree(&self, cur: QId, q: QId) -> bool {
        let queue = &self.queues[q];
        let noidle = |work| work == Work::SyncNoIdle;
        if !noidle(self.serving.work) || !noidle(queue.work()) || !self.queues[cur].is_empty() {
            return false;
        }
        let (group, tree) = queue.tree.expect("it has a request");
        let tree = &self.groups[group].trees[usize::from(tree)];
        self.rules.preemption == Preemption::ByAncestry || tree.nodes.len() == 2
    }

    /// The request is close enough to replace what the active queue might send.
    fn preempts_as_close(&mut self, rq: &Request, cur: QId, q: QId) -> bool {
        if !self.is_close(cur, rq.sector, true) {
            return false;
        }
        if self.rules.close_preemption == ClosePreemption::Marks {
            let alone = self.busy_queues == 1;
            let tie = self.tie_of(q);
            if tie.coop && !alone {
                return false;
            }
            tie.coop = true;
            self.queues[q].flags.coop_preempt = true;
        }
        true
    }

    /// cfq_preempt_queue().
    fn preempt(&mut self, pool: &RequestPool, q: QId) {
        trace_msg!(self, q, "preempt");
        let before = self.active.map(|cur| self.queues[cur].work());
        self.expire_active(pool, true);
        if self.rules.preemption == Preemption::ByAncestry
            && before.is_some_and(|before| before != self.queues[q].work())
        {
            let group = self.queues[q].group;
            self.groups[group].rest.slice = 0;
        }
        self.service_tree_add(q, true);
        let queue = &mut self.queues[q];
        queue.slice_end = 0;
        queue.flags.slice_new = true;
        debug_assert!(queue.group == ROOT || self.rules.groups != SliceGroups::None);
    }
}
