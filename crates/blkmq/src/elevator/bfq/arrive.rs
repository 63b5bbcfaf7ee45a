//! Arrival: a request gets its queue, joins it, and may make it busy.
//!
//! Kernel: bfq_init_rq(), bfq_get_queue(), __bfq_insert_request(), bfq_add_request(),
//! bfq_bfqq_handle_idle_busy_switch(), bfq_rq_enqueued() in block/bfq-iosched.c (6.1.192,
//! 6.12.117).

use super::budget::Expiry;
use super::group::{GroupId, LEVELS};
use super::process::ProcessId;
use super::queue::{BE, IDLE, QId, RT};
use super::raising::Arrival;
use super::{Bfq, far_past};
use crate::elevator::scheduler::is_sync;
use crate::request::{IoClass, IoPrio, Request, RequestId, RequestPool};
use crate::rules::{Raising, ResumeAfter, SoleArrival, StableMerge};
use crate::time::Jiffies;

/// A request with fewer sectors may be waited for further (bfq_rq_enqueued()).
const SMALL: u32 = 32;

/// What decides which queue a request or bio is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) process: ProcessId,
    pub(super) pid: i32,
    pub(super) group: GroupId,
    pub(super) sync: bool,
    pub(super) actuator: u8,
}

/// Queue that a request says it belongs to: `elv_priv[1]`.
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
        // The actuator is that of its first bio, whatever was merged behind it.
        let first = rq.bio_first.map(|bio| pool.bio(bio));
        let (sector, sectors) = first.map_or((rq.sector, rq.sectors), |b| (b.sector, b.sectors));
        let submitter = self.submitters.of(rq.io_context);
        Arrived {
            process: rq.io_context,
            pid: submitter.pid,
            group: GroupId(first.and_then(|b| b.group).unwrap_or(submitter.group)),
            sync: is_sync(rq.op, rq.flags),
            actuator: self.actuator_of(sector, sectors),
        }
    }

    /// Gives a request its queue (bfq_init_rq()). None: it goes around all queues.
    pub(super) fn init_rq(&mut self, pool: &mut RequestPool, rq: RequestId) -> Option<QId> {
        self.works(8);
        // Who has no I/O context here was allocated for the flush machine.
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
        let name = Bfq::request_name(rq);
        say!(
            self,
            q,
            "get_request {name:016x}: bfqq {address:016x}, {references}"
        );
        set_queue_of(&mut pool[rq], Some(q));
        if self.becomes_own(q, of.process)
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

    /// A request is one of the queue from its allocation on, and holds it.
    pub(super) fn take_request(&mut self, q: QId) {
        self.count_allocated(q, 1);
        self.queues[q].references += 1;
    }

    /// A request has ended, or goes to another queue.
    pub(super) fn put_request(&mut self, q: QId) {
        self.count_allocated(q, -1);
        self.put(q);
    }

    /// The queue is the process's own if nobody else has it or is to come to it.
    pub(super) fn becomes_own(&mut self, q: QId, process: ProcessId) -> bool {
        let unplanned = self.queues[q].new.is_none() || !self.rules.chain_to_tail;
        let alone = unplanned && self.process_references(q) == 1;
        if alone {
            self.queues[q].owner = Some(process);
        }
        alone
    }

    /// Requests of a queue and all above it that are allocated.
    pub(super) fn count_allocated(&mut self, q: QId, more: i32) {
        let mut at = Some(self.entities.of(q));
        while let Some(e) = at {
            self.entities[e].allocated += more;
            at = self.entities.parent(e);
        }
    }

    /// The process's priority may have changed (bfq_check_ioprio_change()).
    fn check_ioprio(&mut self, of: Arrived) {
        self.works(2);
        let ioprio = self.submitters.of(of.process).ioprio;
        let process = &mut self.processes[of.process.0 as usize];
        if process.ioprio == ioprio {
            return;
        }
        process.ioprio = ioprio;
        if let Some(old) = self.slot(of.process, false, of.actuator) {
            let q = self.get_queue(Arrived { sync: false, ..of }, true);
            self.set_slot(of.process, false, of.actuator, Some(q));
            self.release(old);
        }
        if let Some(q) = self.slot(of.process, true, of.actuator) {
            self.set_next_ioprio(q, of.process);
        }
    }

    /// bfq_set_next_ioprio_data().
    fn set_next_ioprio(&mut self, q: QId, process: ProcessId) {
        let IoPrio { class, level } = self.processes[process.0 as usize].ioprio;
        let (class, level) = match class {
            IoClass::None => {
                let nice = self.submitters.of(process).nice;
                (class_number(nice.class), nice.level)
            }
            IoClass::Idle => (IDLE, LEVELS as u8 - 1),
            class => (class_number(class), level),
        };
        let queue = &mut self.queues[q];
        queue.new_class = class;
        queue.new_level = level;
        let weight = (LEVELS as u32 - u32::from(level)) * WEIGHT_OF_LEVEL;
        let e = self.entities.of(q);
        self.entities[e].new_weight = weight;
        say!(self, q, "new_ioprio {level} new_weight {weight}");
        self.entities[e].prio_changed = true;
    }

    /// A queue for such a request: the group's, if it is asynchronous, else a new one
    /// (bfq_get_queue()). `respawn`: not to be merged with others right away.
    pub(super) fn get_queue(&mut self, of: Arrived, respawn: bool) -> QId {
        self.works(4);
        let ioprio = self.processes[of.process.0 as usize].ioprio;
        let shared = match of.sync {
            true => None,
            false => *self.async_slot(of, ioprio),
        };
        let q = match shared {
            Some(q) => q,
            None => {
                let q = self.allocate(of);
                if !of.sync {
                    let queue = &mut self.queues[q];
                    queue.references += 1;
                    let (address, references) = (queue.address, queue.references);
                    say!(
                        self,
                        q,
                        "get_queue, bfqq not in async: {address:016x}, {references}"
                    );
                    *self.async_slot(of, ioprio) = Some(q);
                }
                q
            }
        };
        self.queues[q].references += 1;
        if of.sync && !respawn {
            self.stable_merge(q, of.process)
        } else {
            q
        }
    }

    /// bfq_async_queue_prio().
    fn async_slot(&mut self, of: Arrived, ioprio: IoPrio) -> &mut Option<QId> {
        let group = &mut self.groups[of.group.index()];
        let queues = &mut group.async_queues[usize::from(of.actuator)];
        match ioprio.class {
            IoClass::RealTime => &mut queues.by_level[0][usize::from(ioprio.level)],
            IoClass::None => &mut queues.by_level[1][LEVEL_NORMAL],
            IoClass::BestEffort => &mut queues.by_level[1][usize::from(ioprio.level)],
            IoClass::Idle => &mut queues.idle,
        }
    }

    /// bfq_init_bfqq(), bfq_init_entity().
    fn allocate(&mut self, of: Arrived) -> QId {
        self.works(20);
        let now = self.read_clock();
        let q = self.queues.allocate();
        let e = self.entities.of(q);
        if self.entities.list.len() <= e.0 as usize {
            self.entities
                .list
                .resize_with(e.0 as usize + 1, Default::default);
        }
        self.set_next_ioprio(q, of.process);
        let (tick, budget) = (self.tick, self.budget_first());
        let stamp = if self.rules.stamp_at_creation {
            tick
        } else {
            super::ZERO
        };
        let queue = &mut self.queues[q];
        queue.actuator = of.actuator;
        queue.flags.sync = of.sync;
        queue.flags.has_short_ttime = of.sync;
        queue.flags.just_created = of.sync;
        queue.flags.io_bound = true;
        queue.ttime.last_end_request = now + 1;
        queue.creation_time = tick;
        queue.io_start_ns = now;
        queue.pid = of.pid;
        queue.max_budget = budget;
        queue.budget_timeout = far_past(tick);
        queue.raised.coeff = 1;
        queue.raised.last_start_finish = tick;
        queue.raised.start_at_switch_to_srt = far_past(tick);
        queue.split_time = far_past(tick);
        queue.soft_rt_next_start = tick;
        queue.seek_history = 1;
        queue.decrease_time = stamp;
        queue.first_io_time = super::ZERO;
        queue.last_idle_backlogged = super::ZERO;
        queue.class = queue.new_class;
        queue.level = queue.new_level;
        let entity = &mut self.entities[e];
        entity.weight = entity.new_weight;
        entity.orig_weight = entity.new_weight;
        entity.group = of.group;
        say!(self, q, "allocated");
        q
    }

    /// __bfq_insert_request(): the request is in its queue.
    pub(super) fn insert_queued(&mut self, pool: &mut RequestPool, rq: RequestId, q: QId) {
        self.works(4);
        let of = self.arrived(pool, rq);
        let mut q = q;
        if let Some(new) = self.setup_cooperator(pool, q, pool[rq].sector, of.process) {
            self.count_allocated(new, 1);
            self.count_allocated(q, -1);
            self.queues[new].references += 1;
            let old = q;
            if self.slot(of.process, true, of.actuator) == Some(q) {
                self.move_process(of.process, q, new);
            }
            self.queues[old].flags.just_created = false;
            self.put(old);
            set_queue_of(&mut pool[rq], Some(new));
            // The kernel goes on with the queue that the last merge gave.
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
        self.works(8);
        let coeff_before = self.queues[q].raised.coeff;
        let now = self.read_clock();
        say!(self, q, "add_request {}", u8::from(of.sync));
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
        let visits = self.queues[q].sort.take_visits();
        self.works(visits);
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
            let since = queue.raised.last_start_finish + self.fixed.raise_async_gap;
            let late = since < self.tick;
            if self.settings.low_latency && coeff_before == 1 && !of.sync && late {
                self.raise_async(q);
            }
            if changed {
                self.updated_next(pool, q);
            }
        } else {
            interactive = self.becomes_busy(pool, q, of, coeff_before);
        }
        let queue = &mut self.queues[q];
        let raised_both = coeff_before > 1 && queue.is_raised();
        if self.settings.low_latency && (!raised_both || interactive) {
            queue.raised.last_start_finish = self.tick;
        }
    }

    /// The only request of its process: it may have been woken, and a sample of the time that it is
    /// served in may begin.
    fn sole_arrival(&mut self, q: QId, now: u64) {
        self.works(4);
        self.check_waker(q, now);
        if self.queues[q].decrease_time + self.fixed.inject_reset <= self.tick {
            self.reset_inject_limit(q);
        }
        let in_driver = self.in_driver_total;
        let queue = &self.queues[q];
        let measured = queue.last_serv_time_ns > 0 && self.rqs_injected && in_driver > 0;
        if self.in_service == Some(q)
            && (in_driver == 0 || measured)
            && queue.decrease_time + self.fixed.inject_sample <= self.tick
        {
            self.last_empty_occupied_ns = self.read_clock();
            self.wait_dispatch = true;
            if in_driver == 0 {
                self.rqs_injected = false;
            }
        }
    }

    /// A queue that was idle has a request: true if it is taken for interactive
    /// (bfq_bfqq_handle_idle_busy_switch()).
    fn becomes_busy(&mut self, pool: &RequestPool, q: QId, of: Arrived, coeff_before: u32) -> bool {
        self.works(16);
        let (now, tick) = (self.read_clock(), self.tick);
        let queue = &self.queues[q];
        let long_idle =
            queue.dispatched == 0 && queue.budget_timeout + self.fixed.raise_idle_min < tick;
        // A product of 32 bits.
        let thrice = (self.settings.slice_idle_ns as u32).wrapping_mul(3);
        let in_time = now <= queue.ttime.last_end_request + u64::from(thrice);
        let in_burst = queue.flags.in_large_burst;
        let any_weight = self.rules.raising == Raising::AnyWeight;
        let e = self.entities.of(q);
        let weight_suits = any_weight || self.entities[e].new_weight == WEIGHT_DEFAULT;
        let soft_rt = !queue.is_totally_seeky()
            && !in_burst
            && queue.soft_rt_next_start < tick
            && queue.dispatched == 0
            && weight_suits;
        let interactive = !in_burst && long_idle && weight_suits;
        let owned = queue.owner.is_some();
        let (raised, sync) = (queue.is_raised(), queue.flags.sync);
        let stably = self.rules.stable_merge == StableMerge::SinceActivation;
        let own = owned || stably && self.saved(of.process, of.actuator).stably_merged;
        let deserves =
            self.settings.low_latency && (raised || sync && own && (interactive || soft_rt));
        let wants_to_preempt = self.budget_for_activation(pool, q, in_time);
        self.count_streak(q, in_time);
        let queue = &self.queues[q];
        let very_long = queue.budget_timeout + self.fixed.burst_forgotten < tick;
        if !queue.flags.just_created && long_idle && very_long {
            self.leave_burst_list(q);
            self.queues[q].flags.in_large_burst = false;
        }
        self.queues[q].flags.just_created = false;
        if self.settings.low_latency {
            let queue = &mut self.queues[q];
            if queue.split_time > tick {
                queue.split_time = tick - self.fixed.raise_idle_min - 1;
            }
            if queue.split_time + self.fixed.raise_idle_min < tick {
                let arrival = Arrival {
                    deserves,
                    interactive,
                    in_burst,
                    soft_rt,
                };
                self.raise_on_arrival(q, coeff_before, arrival);
                if self.queues[q].raised.coeff != coeff_before {
                    self.entities[e].prio_changed = true;
                }
            }
        }
        let queue = &mut self.queues[q];
        queue.last_idle_backlogged = tick;
        queue.service_from_backlogged = 0;
        queue.flags.softrt_update = false;
        self.add_busy(q);
        self.maybe_preempt(pool, q, wants_to_preempt);
        interactive
    }

    /// The queue in service may have to give way to one that has become busy.
    fn maybe_preempt(&mut self, pool: &RequestPool, q: QId, wants_to: bool) {
        self.works(6);
        let Some(s) = self.in_service else { return };
        let as_raised = self.queues[q].raised.coeff >= self.queues[s].raised.coeff;
        let not_waited = self.rules.only_busy_idles && !self.better_to_idle(s);
        let stronger = wants_to && as_raised || self.is_stronger(q, s) || not_waited;
        if stronger && self.next_may_preempt() {
            self.expire(pool, s, false, Expiry::Preempted);
        }
    }

    /// bfq_bfqq_higher_class_or_weight().
    fn is_stronger(&self, q: QId, s: QId) -> bool {
        if self.queues[q].class < self.queues[s].class {
            return true;
        }
        let (a, b) = (self.entities.of(q), self.entities.of(s));
        let (above_a, above_b) = (self.entities.parent(a), self.entities.parent(b));
        let (a, b) = match above_a == above_b {
            true => (a, b),
            false => (above_a.unwrap_or(a), above_b.unwrap_or(b)),
        };
        self.entities[a].weight > self.entities[b].weight
    }

    /// bfq_rq_enqueued().
    fn enqueued(&mut self, pool: &RequestPool, rq: RequestId, q: QId, sync: bool) {
        self.works(4);
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

/// BFQ_WEIGHT_CONVERSION_COEFF.
const WEIGHT_OF_LEVEL: u32 = 10;
/// Weight of a queue whose process has no priority.
const WEIGHT_DEFAULT: u32 = 40;
/// IOPRIO_BE_NORM.
const LEVEL_NORMAL: usize = 4;

fn class_number(class: IoClass) -> u8 {
    match class {
        IoClass::RealTime => RT,
        IoClass::None | IoClass::BestEffort => BE,
        IoClass::Idle => IDLE,
    }
}
