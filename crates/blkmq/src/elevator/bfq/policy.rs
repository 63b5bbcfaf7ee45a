//! The algorithm of BFQ. Holding `&mut Bfq` is holding its lock.
//!
//! What it knows, and what the block layer calls. The parts: where queues stand (`wf2q.rs`,
//! `service_tree.rs`), what arrives (`arrive.rs`, `merge.rs`, `cooperate.rs`, `split.rs`), what is
//! served (`serve.rs`, `budget.rs`, `idling.rs`), what is learned (`classify.rs`, `rate.rs`,
//! `burst.rs`, `raising.rs`). Kernel: struct bfq_data, block/bfq-iosched.c (6.1.192, 6.12.117).

use core::ops::Range;

use super::arrive::{queue_of, set_queue_of};
use super::budget::BUDGET_MAX_DEFAULT;
use super::entity::{Entities, Entity};
use super::fixed::Fixed;
use super::group::{AsyncQueues, Group, GroupId};
use super::idling::HwTag;
use super::log::Log;
use super::process::Process;
use super::queue::{QId, Queues};
use super::rate::{REFERENCE, REFERENCE_RAISE_MS, Rate};
use super::settings::BfqSettings;
use crate::elevator::attribute::{Attributes, StoreError, Value};
use crate::elevator::hook::{After, TimerAsk};
use crate::elevator::merging;
use crate::elevator::scheduler::{
    BioMerge, Charge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler, Wanted,
};
use crate::elevator::submitters::Submitters;
use crate::env::Reading;
use crate::list::QueueList;
use crate::merge::{MergeIndex, Merging};
use crate::queue::{ACCESS_RANGES_MAX, QueueSettings};
use crate::request::{BioId, IoContextId, Place, RequestId, RequestPool, Sector, Sectors};
use crate::rules::{BfqWork, FairQueueing, InsertOrder};
use crate::time::{Duration, Jiffies, SimTime};

/// A field of ticks that starts at zero: jiffies begin five minutes below 2^32.
pub(super) const ZERO: i64 = -(1 << 32);

/// Before all that there was (bfq_smallest_from_now()).
#[inline]
pub(super) fn far_past(tick: i64) -> i64 {
    tick - (i64::MAX >> 1) + 1
}

/// BFQ of one queue. Times named `..._ns` are of the clock, others are ticks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bfq {
    pub(super) settings: BfqSettings,
    pub(super) rules: FairQueueing,
    pub(super) fixed: Fixed,
    pub(super) submitters: Submitters,
    /// queue/rotational.
    pub(super) rotational: bool,
    /// Sectors of each of the drive's arms.
    pub(super) ranges: Vec<Range<u64>>,
    /// Product of reference rate and duration.
    pub(super) rate_dur_product: u64,
    // Running state.
    /// The clock of the section at hand.
    now: SimTime,
    /// It is that of a plug, and stands still.
    pub(super) clock_kept: bool,
    /// The tick of the section at hand.
    pub(super) tick: i64,
    pub(super) queues: Queues,
    pub(super) entities: Entities,
    pub(super) groups: Vec<Group>,
    pub(super) processes: Vec<Process>,
    /// Requests that go around all queues (bfqd->dispatch).
    pub(super) dispatch_list: QueueList,
    pub(super) index: MergeIndex,
    pub(super) in_service: Option<QId>,
    /// By actuator: queues in an active tree, the latest last.
    pub(super) active_lists: Vec<Vec<QId>>,
    /// Those in an idle tree.
    pub(super) idle_list: Vec<QId>,
    /// By class.
    pub(super) busy_queues: [u32; 3],
    pub(super) raised_busy_queues: i32,
    /// low_latency was cleared once. Since then the count above is off, as in the kernel: clearing
    /// takes off who was not raised, and while it is off a split counts who was.
    pub(super) raised_miscounted: bool,
    /// Requests that are queued.
    pub(super) queued: u32,
    /// Requests that were inserted and have not ended; absorbed ones for ever (v5.11).
    pub(super) elevator_queued: u32,
    /// Weights of active queues that are not raised, with how many have each.
    pub(super) weights: Vec<(u32, u32)>,
    /// Groups with something to do.
    pub(super) pending_groups: u32,
    /// Requests with the driver, by actuator and in all.
    pub(super) in_driver: Vec<i32>,
    pub(super) in_driver_total: i32,
    pub(super) max_in_driver: i32,
    pub(super) hw_tag: HwTag,
    pub(super) hw_tag_samples: u32,
    pub(super) nonrot_with_queueing: bool,
    pub(super) budgets_assigned: i32,
    /// Largest budget, sectors (bfq_max_budget).
    pub(super) max_budget: i32,
    pub(super) peak_rate: u32,
    pub(super) rate: Rate,
    pub(super) last_position: u64,
    pub(super) in_serv_last_pos: u64,
    pub(super) last_completion_ns: u64,
    pub(super) last_completed: Option<QId>,
    pub(super) last_created: Option<QId>,
    pub(super) last_budget_start_ns: u64,
    pub(super) last_idling_start_ns: u64,
    pub(super) last_idling_start: i64,
    pub(super) last_empty_occupied_ns: u64,
    pub(super) wait_dispatch: bool,
    pub(super) waited_rq: Option<RequestId>,
    pub(super) rqs_injected: bool,
    /// Queues of the burst at hand, the latest last.
    pub(super) burst_list: Vec<QId>,
    pub(super) burst_size: u32,
    pub(super) burst_group: Option<GroupId>,
    pub(super) large_burst: bool,
    pub(super) last_in_burst: i64,
    // What the call at hand leaves behind.
    /// The queue of the bio that looks for a merge (bio_bfqq).
    pub(super) bio_queue: Option<QId>,
    pub(super) bio_traced: bool,
    pub(super) timer: Option<TimerAsk>,
    pub(super) timer_armed: bool,
    /// The hardware queues are to be run.
    pub(super) runs: bool,
    pub(super) log: Log,
    /// The queue of the last request to go, and sectors that it was charged for.
    pub(super) shown: Option<(QId, u32)>,
    /// What it has done since it was asked last: operations like one inside a container.
    operations: u32,
    /// Lines of memory that it has changed since then, a bit each: its own, then those of queues.
    touched: u32,
}

/// A division of 64 bits takes as long as so many operations inside a container.
pub(super) const DIVISION: u32 = 6;
/// So does reading the clock.
const CLOCK: u32 = 7;
/// Nobody reads the clock twice and sees the same time. How long it takes between two readings is
/// not known here.
const READING: Duration = Duration(1);
/// So far readings may have run ahead of the sections they were in, ns.
const READINGS_AHEAD: u64 = 100_000;
/// Lines of struct bfq_data that a section changes.
const LINES: u32 = 5;
/// Of them: changed by dispatches and completions only.
const LINES_OF_SERVICE: u32 = 2;
/// Queues whose lines are told apart; more share some.
const QUEUE_LINES: u32 = 24;
/// Lines in all.
pub(super) const LINES_ALL: u8 = (LINES + QUEUE_LINES) as u8;

impl Bfq {
    /// Idle.
    pub fn new(settings: &BfqSettings, queue: &QueueSettings) -> Bfq {
        let rules = queue.rules.fair_queueing;
        let kind = usize::from(!queue.rotational_when_chosen);
        let fixed = Fixed::new(settings.hz, &rules);
        let groups = &queue.submitters.groups;
        let actuators = match rules.actuators {
            true if queue.access_ranges.len() <= ACCESS_RANGES_MAX => {
                queue.access_ranges.len().max(1)
            }
            _ => 1,
        };
        let ranges = match actuators {
            1 => Vec::new(),
            _ => queue.access_ranges.clone(),
        };
        let raise = Jiffies::from_millis(REFERENCE_RAISE_MS[kind], settings.hz);
        let mut bfq = Bfq {
            ranges,
            rate_dur_product: u64::from(REFERENCE[kind]) * raise.0,
            entities: Entities {
                list: groups.iter().map(entity_of_group).collect(),
                groups: groups.len() as u32,
            },
            groups: groups.iter().map(|_| fresh_group(actuators)).collect(),
            active_lists: vec![Vec::new(); actuators],
            in_driver: vec![0; actuators],
            peak_rate: REFERENCE[kind] * 2 / 3,
            fixed,
            ..Bfq::idle(settings, queue)
        };
        if settings.max_budget != 0 {
            bfq.max_budget = settings.max_budget.cast_signed();
        } else if settings.timeout_sync != i64::from(settings.hz / 8) {
            // Writing it has measured the budget anew.
            bfq.max_budget = bfq.calc_max_budget();
        }
        bfq
    }

    /// With nothing that depends on the device's shape.
    fn idle(settings: &BfqSettings, queue: &QueueSettings) -> Bfq {
        let rules = queue.rules.fair_queueing;
        Bfq {
            settings: *settings,
            rules,
            fixed: Fixed::new(settings.hz, &rules),
            submitters: queue.submitters.clone(),
            rotational: queue.rotational,
            ranges: Vec::new(),
            rate_dur_product: 0,
            now: SimTime::ZERO,
            clock_kept: false,
            tick: 0,
            queues: Queues::default(),
            entities: Entities::default(),
            groups: Vec::new(),
            processes: Vec::new(),
            dispatch_list: QueueList::new(),
            index: MergeIndex::default(),
            in_service: None,
            active_lists: Vec::new(),
            idle_list: Vec::new(),
            busy_queues: [0; 3],
            raised_busy_queues: 0,
            raised_miscounted: false,
            queued: 0,
            elevator_queued: 0,
            weights: Vec::new(),
            pending_groups: 0,
            in_driver: Vec::new(),
            in_driver_total: 0,
            max_in_driver: 0,
            hw_tag: HwTag::Unknown,
            hw_tag_samples: 0,
            nonrot_with_queueing: !queue.rotational_when_chosen,
            budgets_assigned: 0,
            max_budget: BUDGET_MAX_DEFAULT,
            peak_rate: 0,
            rate: Rate::default(),
            last_position: 0,
            in_serv_last_pos: 0,
            last_completion_ns: 0,
            last_completed: None,
            last_created: None,
            last_budget_start_ns: 0,
            last_idling_start_ns: 0,
            last_idling_start: 0,
            last_empty_occupied_ns: 0,
            wait_dispatch: false,
            waited_rq: None,
            rqs_injected: false,
            burst_list: Vec::new(),
            burst_size: 0,
            burst_group: None,
            large_burst: false,
            last_in_burst: ZERO,
            bio_queue: None,
            bio_traced: true,
            timer: None,
            timer_armed: false,
            runs: false,
            log: Log::new(queue.log),
            shown: None,
            operations: 0,
            touched: 0,
        }
    }

    /// A section begins. Its jiffies stand still; its clock does in a plug, and elsewhere moves
    /// from one reading to the next, as a kernel's log tells or by [`READING`].
    fn begin(&mut self, now: Now) {
        // Sections at one instant follow one another.
        let ahead = self.now.0.wrapping_sub(now.time.0);
        if now.kept || ahead > READINGS_AHEAD {
            self.now = now.time;
        }
        self.clock_kept = now.kept;
        self.tick = now.tick.0.cast_signed();
        self.runs = false;
        self.shown = None;
        self.touched |= (1 << (LINES - LINES_OF_SERVICE)) - 1;
    }

    /// Notes what a function does besides work in containers: a branch, a field, each for one.
    #[inline]
    pub(super) fn works(&mut self, operations: u32) {
        self.operations += operations;
    }

    /// Notes that a queue's lines are changed.
    #[inline]
    pub(super) fn touch(&mut self, q: QId) {
        self.touched |= 1 << (LINES + q.0 % QUEUE_LINES);
    }

    /// Notes that what is measured and who is in service may change.
    #[inline]
    fn serves(&mut self) {
        self.touched |= (1 << LINES) - 1;
    }

    /// ktime_get_ns().
    #[inline]
    pub(super) fn read_clock(&mut self) -> u64 {
        self.works(CLOCK);
        let of_log = if self.log.listens {
            self.log.time()
        } else {
            None
        };
        match of_log {
            Some(time) => time.max(self.now).0,
            None if self.clock_kept => self.now.0,
            None => {
                let now = self.now;
                self.now = now + READING;
                now.0
            }
        }
    }

    pub(super) fn actuators(&self) -> usize {
        self.in_driver.len()
    }

    pub(super) fn fifo_expire_ns(&self, sync: bool) -> u64 {
        self.settings.fifo_expire_ns[usize::from(sync)]
    }

    fn after(&mut self) -> After {
        match core::mem::take(&mut self.runs) {
            true => After::RunQueues,
            false => After::Nothing,
        }
    }

    /// Where a request goes that is not absorbed by another.
    fn place(&mut self, pool: &mut RequestPool, rq: RequestId, at: InsertAt, q: Option<QId>) {
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

    /// v5.13: the queue in service and this one wake each other, and nobody else is busy.
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
}

fn entity_of_group(group: &crate::elevator::submitters::SubmitterGroup) -> Entity {
    let weight = u32::from(group.weight);
    Entity {
        weight,
        new_weight: weight,
        orig_weight: weight,
        group: GroupId(group.parent),
        ..Entity::default()
    }
}

fn fresh_group(actuators: usize) -> Group {
    Group {
        async_queues: vec![AsyncQueues::default(); actuators],
        idle_class_served: ZERO,
        ..Group::default()
    }
}

impl Scheduler for Bfq {
    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        self.begin(now);
        self.offer_bio(pool, bio, merging)
    }

    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Now,
        merging: Merging<'_>,
    ) -> Insertion {
        assert_eq!(
            pool[rq].place,
            Place::Path,
            "{rq:?} inserted from elsewhere"
        );
        self.begin(now);
        self.elevator_queued += u32::from(self.rules.work == BfqWork::BusyQueuesAndInserted);
        let queue_first = self.rules.insert_order == InsertOrder::QueueFirst;
        let early = if queue_first {
            self.init_rq(pool, rq)
        } else {
            None
        };
        let absorbed = merging::insert_merge(self, pool, rq, merging);
        if !absorbed.is_empty() {
            return Insertion::Absorbed(absorbed);
        }
        self.log.traced();
        let q = if queue_first {
            early
        } else {
            self.init_rq(pool, rq)
        };
        self.place(pool, rq, at, q);
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        self.begin(now.now());
        self.serves();
        self.dispatch_next(pool)
    }

    fn has_work(&self) -> bool {
        let queues = match self.rules.work {
            BfqWork::BusyQueuesAndInserted if self.elevator_queued == 0 => return false,
            BfqWork::Queued => self.queued > 0,
            _ => self.busy_queues_total() > 0,
        };
        queues || !self.dispatch_list.is_empty()
    }

    fn requeued(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.finished(pool, rq, now)
    }

    fn finished(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.begin(now);
        self.serves();
        self.finish(pool, rq);
        self.after()
    }

    fn exits(&mut self, pool: &mut RequestPool, io_context: IoContextId, now: Now) -> After {
        self.begin(now);
        self.exit_process(pool, io_context);
        self.after()
    }

    fn timer(&mut self, pool: &mut RequestPool, _timer: u8, now: Now) -> After {
        self.begin(now);
        self.serves();
        self.idled_in_vain(pool);
        self.after()
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.timer.take()
    }

    fn limits_under_lock(&self, wanted: Wanted) -> bool {
        // A line of the log is for whoever has the lock.
        self.log.listens || self.looks_at_share(wanted)
    }

    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        self.depth_of_kind(wanted)
    }

    fn limit_depth_locked(&mut self, wanted: Wanted, now: Now) -> Option<u32> {
        self.begin(now);
        self.depth(wanted)
    }

    fn depth_updated(&mut self, old: u32) {
        self.settings.nr_requests = old;
    }

    fn store(&mut self, name: &str, text: &str, now: Now) -> Result<(), StoreError> {
        self.begin(now);
        let before = self.settings;
        self.settings.store(name, text)?;
        match (name, self.settings.max_budget) {
            ("max_budget" | "timeout_sync", 0) => self.max_budget = self.calc_max_budget(),
            ("max_budget", own) => self.max_budget = own.cast_signed(),
            ("low_latency", _) if before.low_latency && !self.settings.low_latency => {
                self.end_all_raising();
            }
            _ => {}
        }
        Ok(())
    }

    fn shown(&self) -> Vec<(&'static str, Value)> {
        self.settings.shown()
    }

    fn take_log(&mut self, each: &mut dyn FnMut(&str)) {
        self.log.take(each);
    }

    fn take_readings(&mut self, each: &mut dyn FnMut(Reading)) {
        self.readings(each);
    }

    fn lines_at(&mut self, times: &[SimTime]) {
        self.log.lines_at(times);
    }

    fn rotates(&mut self, rotational: bool) {
        self.rotational = rotational;
    }

    fn take_charge(&mut self) -> Charge {
        let mut container_ops = self.index.take_visits() + core::mem::take(&mut self.operations);
        for group in &mut self.groups {
            container_ops += group.positions.take_visits();
            for tree in &mut group.trees {
                container_ops += tree.take_visits();
            }
        }
        Charge {
            container_ops,
            lines: core::mem::take(&mut self.touched),
        }
    }

    fn check(&self, pool: &RequestPool) {
        self.check_all(pool);
    }

    fn show(&self, pool: &RequestPool) -> String {
        self.show_all(pool)
    }

    fn withdraw(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if self.dispatch_list.iter(pool).any(|queued| queued == rq) {
            self.dispatch_list.remove(pool, rq);
        } else {
            let q = queue_of(&pool[rq]).expect("a queued request has a queue");
            self.remove(pool, rq, q);
        }
        pool[rq].place = Place::Path;
        if let Some(q) = queue_of(&pool[rq]) {
            // As if it had never come: its end is not told.
            self.put_request(q);
            self.processes[pool[rq].io_context.0 as usize].requests -= 1;
            set_queue_of(&mut pool[rq], None);
        }
    }

    fn impose(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if self.dispatch_list.iter(pool).any(|queued| queued == rq) {
            self.dispatch_list.remove(pool, rq);
            if let Some(q) = queue_of(&pool[rq]) {
                self.queues[q].dispatched += 1;
                self.enters_driver(q);
            }
        } else {
            let q = queue_of(&pool[rq]).expect("a queued request has a queue");
            self.queues[q].next_rq = Some(rq);
            self.dispatch_from(pool, q);
            self.enters_driver(q);
        }
        Bfq::start(pool, rq);
    }

    fn reshape(&mut self, pool: &mut RequestPool, rq: RequestId, sector: Sector, sectors: Sectors) {
        let sorted = !self.dispatch_list.iter(pool).any(|queued| queued == rq);
        let q = queue_of(&pool[rq]).filter(|_| sorted);
        if let Some(q) = q {
            self.queues[q].sort.remove(pool, rq);
        }
        pool[rq].sector = sector;
        pool[rq].sectors = sectors;
        if let Some(q) = q {
            self.queues[q].sort.insert(pool, rq, sector);
            if self.queues[q].next_rq == Some(rq) && !self.nonrot_with_queueing {
                self.position_update(pool, q);
            }
        }
        if pool[rq].hashed.is_some() {
            self.index.rehash(pool, rq);
        }
    }
}

#[cfg(test)]
mod tests;
