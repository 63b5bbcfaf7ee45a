//! Arrival: a request gets its queue, joins it, and may make it busy.
//!
//! New queues come from `creation.rs`; `busy.rs` handles a queue that was idle. Kernel:
//! bfq_init_rq(), __bfq_insert_request(), bfq_add_request(), bfq_rq_enqueued() in
//! block/bfq-iosched.c (6.1.192, 6.12.117).

use super::Bfq;
use super::budget::Expiry;
use super::ids::{GroupId, QId};
use super::merge_event::MergeEvent;
use super::process::ProcessId;
use crate::elevator::messages::pointer;
use crate::elevator::scheduler::{InsertAt, is_sync};
use crate::request::{Place, Request, RequestId, RequestPool};
use crate::rules::{ResumeAfter, SoleArrival};
use crate::time::Jiffies;

/// With fewer sectors in a first request idling may continue (bfq_rq_enqueued()).
const SMALL: u32 = 32;

/// Properties of a request or bio that select its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) process: ProcessId,
    pub(super) pid: i32,
    pub(super) group: GroupId,
    pub(super) sync: bool,
    pub(super) actuator: u8,
}

/// The queue recorded in a request: `elv_priv[1]`.
#[inline]
pub(super) fn queue_of(rq: &Request) -> Option<QId> {
    rq.elv_priv[1].checked_sub(1).map(QId)
}

#[inline]
pub(super) fn set_queue_of(rq: &mut Request, q: Option<QId>) {
    rq.elv_priv[1] = q.map_or(0, |q| q.0 + 1);
}

impl Bfq {
    fn arrived(&self, pool: &RequestPool, rq: RequestId) -> Arrived {
        let rq = &pool[rq];
        // The first bio selects the actuator, whatever was merged after it.
        let first = rq.bio_first.map(|bio| pool.bio(bio));
        let (sector, sectors) = first.map_or((rq.sector, rq.sectors), |b| (b.sector, b.sectors));
        Arrived {
            process: rq.io_context,
            pid: match self.kworker {
                0 => self.submitters.of(rq.io_context).pid,
                kworker => kworker,
            },
            group: GroupId(first.map_or(rq.group, |b| b.group)),
            sync: is_sync(rq.op, rq.flags),
            actuator: self.actuator_of(sector, sectors),
        }
    }

    /// Assigns a queue to a request (bfq_init_rq()). None: the request bypasses all queues.
    pub(super) fn init_rq(&mut self, pool: &mut RequestPool, rq: RequestId) -> Option<QId> {
        self.charge(8);
        // A request without an I/O context was allocated for the flush machine.
        if !pool[rq].use_sched {
            return None;
        }
        if let Some(q) = queue_of(&pool[rq]) {
            return Some(q);
        }
        let of = self.arrived(pool, rq);
        self.know(of.process);
        self.check_ioprio(of);
        self.update_group(pool, of.process, of.group);
        let (mut q, mut is_new) = (self.slot(of.process, of.sync, of.actuator), false);
        if q.is_none() {
            is_new = true;
            let got = self.get_queue(of, false);
            self.set_slot(of.process, of.sync, of.actuator, Some(got));
            if of.sync {
                self.record(|| MergeEvent::Got(of.process));
            }
            q = Some(got);
        }
        let mut q = q.expect("it is there or has been made");
        let split = if is_new { None } else { self.split(of, q) };
        if let Some((left_for, _)) = split {
            q = left_for;
        }
        self.take_request(q);
        self.processes[of.process.0 as usize].requests += 1;
        let (address, references) = (self.queues[q].address, self.queues[q].references);
        let name = pointer(rq.0);
        trace_msg!(
            self,
            q,
            "get_request {name:016x}: bfqq {address:016x}, {references}"
        );
        set_queue_of(&mut pool[rq], Some(q));
        let own = self.becomes_own(q, of.process);
        self.record(|| MergeEvent::Took(of.process, q.0));
        if own
            && let Some((_, existed)) = split
            && self.rules.resume_after == ResumeAfter::Counting
        {
            self.resume_state(q, of, existed);
        }
        let alone = self.busy_queues_total() == 0;
        if self.queues[q].flags.just_created && (self.burst_size > 0 || alone) {
            self.handle_burst(q);
        }
        Some(q)
    }

    pub(super) fn place(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        q: Option<QId>,
    ) {
        pool[rq].place = Place::Elevator;
        match (at, q) {
            (InsertAt::Head, _) => self.dispatch_list.push_front(pool, rq),
            (InsertAt::Sorted, None) => self.dispatch_list.push_back(pool, rq),
            (InsertAt::Sorted, Some(q)) if self.goes_ahead(q) => {
                self.dispatch_list.push_back(pool, rq);
            }
            (InsertAt::Sorted, Some(q)) => {
                self.insert_queued(pool, rq, q);
                self.index.add(pool, rq);
            }
        }
    }

    /// v5.13: the queue in service and this one wake each other, and no other queue is busy.
    fn goes_ahead(&self, q: QId) -> bool {
        let Some(s) = self
            .in_service
            .filter(|&s| s != q && self.rules.waker_bypass)
        else {
            return false;
        };
        let own = u32::from(self.queues[q].flags.busy);
        self.busy_queues_total() == 1 + own
            && (self.queues[s].waker == Some(q) || self.queues[q].waker == Some(s))
    }

    /// A request belongs to the queue from its allocation on, and has a reference on it.
    pub(super) fn take_request(&mut self, q: QId) {
        self.count_allocated(q, 1);
        self.queues[q].references += 1;
    }

    /// A request has ended, or moves to another queue.
    pub(super) fn put_request(&mut self, q: QId) {
        self.count_allocated(q, -1);
        self.put(q);
        self.record(|| MergeEvent::Put(q.0));
    }

    /// A request moves from `q` to the queue that its process changes to. Its reference on `q` is
    /// put later.
    pub(super) fn take_along(&mut self, q: QId, to: QId) {
        self.count_allocated(to, 1);
        self.count_allocated(q, -1);
        self.queues[to].references += 1;
    }

    /// Makes the process the owner of the queue, unless other processes have or will get it.
    pub(super) fn becomes_own(&mut self, q: QId, process: ProcessId) -> bool {
        let unplanned = self.queues[q].new.is_none() || !self.rules.chain_to_tail;
        let alone = unplanned && self.process_references(q) == 1;
        if alone {
            self.queues[q].owner = Some(process);
        }
        alone
    }

    /// Allocated requests of a queue and of all groups above it.
    pub(super) fn count_allocated(&mut self, q: QId, more: i32) {
        let mut at = Some(self.entities.of(q));
        while let Some(e) = at {
            self.entities[e].allocated += more;
            at = self.entities.parent(e);
        }
    }

    /// __bfq_insert_request(), for a request that has its queue.
    pub(super) fn insert_queued(&mut self, pool: &mut RequestPool, rq: RequestId, q: QId) {
        self.charge(4);
        let of = self.arrived(pool, rq);
        let mut q = q;
        if let Some(new) = self.setup_cooperator(pool, q, pool[rq].sector, of.process) {
            self.take_along(q, new);
            // The merge event shows the request still in the old queue.
            self.carrying = Some((q, new));
            if self.slot(of.process, true, of.actuator) == Some(q) {
                self.move_process(of.process, q, new);
            }
            self.carrying = None;
            self.queues[q].flags.just_created = false;
            self.put(q);
            self.record(|| MergeEvent::Carried(of.process, q.0));
            set_queue_of(&mut pool[rq], Some(new));
            // The kernel continues with the queue that the last merge returned.
            q = new;
        }
        self.update_think_time(q);
        self.update_short_think_time(q);
        self.update_seeks(pool, q, rq);
        self.touch(q);
        self.add_request(pool, rq, q, of);
        let expire = self.fifo_expire_ns(of.sync);
        pool[rq].fifo_time = Jiffies(self.read_clock() + expire);
        self.queues[q].fifo.push_back(pool, rq);
        self.enqueued(pool, rq, q, of.sync);
    }

    /// bfq_add_request().
    fn add_request(&mut self, pool: &mut RequestPool, rq: RequestId, q: QId, of: Arrived) {
        self.charge(8);
        let coeff_before = self.queues[q].wr.coeff;
        let now = self.read_clock();
        trace_msg!(self, q, "add_request {}", u8::from(of.sync));
        self.queues[q].queued[usize::from(of.sync)] += 1;
        self.queued += 1;
        let queue = &self.queues[q];
        let sole = match self.rules.sole_arrival {
            SoleArrival::OnlyRequest => self.processes[of.process.0 as usize].requests <= 1,
            SoleArrival::EmptyQueue => queue.is_empty(),
        };
        if queue.flags.sync && sole {
            self.sole_arrival(q, now);
        }
        if self.queues[q].flags.sync {
            self.update_io_bound(q, now);
        }
        let sector = pool[rq].sector;
        self.queues[q].sort.insert(pool, rq, sector);
        let visits = self.queues[q].sort.take_touched();
        self.charge(visits);
        let before = self.queues[q].next_rq;
        let next = self.choose(pool, before, Some(rq), self.last_position);
        self.queues[q].next_rq = next;
        let changed = before != next;
        if changed && !self.nonrot_with_queueing {
            self.position_update(pool, q);
        }
        let mut interactive = false;
        if self.queues[q].flags.busy {
            let queue = &self.queues[q];
            let since = queue.wr.last_start_finish + self.fixed.wr_min_inter_arr_async;
            let late = since < self.jiffies();
            if self.settings.low_latency && coeff_before == 1 && !of.sync && late {
                self.wr_async(q);
            }
            if changed {
                self.updated_next(pool, q);
            }
        } else {
            interactive = self.becomes_busy(pool, q, of, coeff_before);
        }
        let wr_both = coeff_before > 1 && self.queues[q].is_wr();
        if self.settings.low_latency && (!wr_both || interactive) {
            self.queues[q].wr.last_start_finish = self.jiffies();
        }
    }

    /// The only request of its process: the queue may have been woken by another one, and a sample
    /// of its total service time may begin.
    fn sole_arrival(&mut self, q: QId, now: u64) {
        self.charge(4);
        self.check_waker(q, now);
        if self.queues[q].decrease_time + self.fixed.inject_reset <= self.jiffies() {
            self.reset_inject_limit(q);
        }
        let in_driver = self.in_driver_total;
        let queue = &self.queues[q];
        let measured = queue.last_serv_time_ns > 0 && self.rqs_injected && in_driver > 0;
        if self.in_service == Some(q)
            && (in_driver == 0 || measured)
            && queue.decrease_time + self.fixed.inject_sample <= self.jiffies()
        {
            self.last_empty_occupied_ns = self.read_clock();
            self.wait_dispatch = true;
            if in_driver == 0 {
                self.rqs_injected = false;
            }
        }
    }

    /// bfq_rq_enqueued().
    fn enqueued(&mut self, pool: &RequestPool, rq: RequestId, q: QId, sync: bool) {
        self.charge(4);
        let rq = &pool[rq];
        let queue = &mut self.queues[q];
        queue.meta_pending += u32::from(rq.flags.meta);
        queue.last_request_pos = rq.end().0;
        if self.in_service != Some(q) || !queue.flags.wait_request {
            return;
        }
        let small = queue.queued[usize::from(sync)] == 1 && rq.sectors.0 < SMALL;
        let timed_out = self.is_timed_out(q);
        if small && self.idling_boosts(q) && !timed_out {
            return;
        }
        self.stop_waiting(q);
        if timed_out {
            self.expire(pool, q, false, Expiry::BudgetTimeout);
        }
    }
}
