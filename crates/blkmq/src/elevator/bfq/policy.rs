//! The algorithm of BFQ. Holding `&mut Bfq` is holding its lock.
//!
//! Its state, and the calls of the block layer. The parts: positions of queues (`activation.rs`,
//! `next.rs`, `service_tree.rs`), arrivals (`arrive.rs`, `busy.rs`), merges of queues
//! (`cooperate.rs`, `plan.rs`, `split.rs`), service (`serve.rs`, `budget.rs`, `idling.rs`),
//! estimates (`classify.rs`, `rate.rs`, `burst.rs`, `wr.rs`). Kernel: struct bfq_data,
//! block/bfq-iosched.c (6.1.192, 6.12.117).

use core::ops::Range;

use super::arrive::{queue_of, set_queue_of};
use super::entity::Entities;
use super::explained::Explained;
use super::fixed::Fixed;
use super::group::Group;
use super::idling::HwTag;
use super::ids::{GroupId, QId};
use super::merge_event::MergeRecord;
use super::process::Process;
use super::queue::Queues;
use super::rate::Rate;
use super::settings::BfqSettings;
use crate::elevator::attribute::{Attributes, StoreError, Value};
use crate::elevator::event_log::EventLog;
use crate::elevator::hook::{After, TimerAsk};
use crate::elevator::merging;
use crate::elevator::messages::Messages;
use crate::elevator::scheduler::{
    BioMerge, CalledOn, Charge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler, Wanted,
};
use crate::elevator::submitters::Submitters;
use crate::env::Reading;
use crate::list::QueueList;
use crate::merge::{MergeIndex, Merging};
use crate::not_state::NotState;
use crate::request::{BioId, IoContextId, Place, Request, RequestId, RequestPool, Sector, Sectors};
use crate::rules::{AsyncDepth, BfqWork, DepthHook, FairQueueing, InsertOrder};
use crate::time::SimTime;

/// BFQ of one queue. Fields named `..._ns` are times of the clock, others are ticks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bfq {
    pub(super) settings: BfqSettings,
    pub(super) rules: FairQueueing,
    pub(super) depth_hook: DepthHook,
    pub(super) fixed: Fixed,
    pub(super) submitters: Submitters,
    /// Process id of the kworker that inserts (current->pid), or 0.
    pub(super) kworker: i32,
    /// queue/rotational.
    pub(super) rotational: bool,
    /// Sector range of each actuator.
    pub(super) ranges: Vec<Range<u64>>,
    /// Product of reference rate and duration.
    pub(super) rate_dur_product: u64,
    // Running state.
    /// The clock of the current section.
    pub(super) now: SimTime,
    /// The clock is the kept time of a plug, and does not advance.
    pub(super) clock_kept: bool,
    /// The tick of the current section.
    pub(super) tick: i64,
    pub(super) queues: Queues,
    pub(super) entities: Entities,
    pub(super) groups: Vec<Group>,
    pub(super) processes: Vec<Process>,
    /// Requests that bypass all queues (bfqd->dispatch).
    pub(super) dispatch_list: QueueList,
    pub(super) index: MergeIndex,
    pub(super) in_service: Option<QId>,
    /// By actuator: queues in an active tree, the latest last.
    pub(super) active_lists: Vec<Vec<QId>>,
    /// Queues in an idle tree.
    pub(super) idle_list: Vec<QId>,
    pub(super) busy_queues: [u32; 3],
    pub(super) wr_busy_queues: i32,
    /// Merges for good, and a wrong count of raised queues: what explains a report.
    pub(super) explained: NotState<Explained>,
    pub(super) queued: u32,
    /// Requests that were inserted and have not ended; absorbed ones count for ever (v5.11).
    pub(super) elevator_queued: u32,
    /// Weights of active queues without weight raising, with the number of queues of each.
    pub(super) weights: Vec<(u32, u32)>,
    /// Groups with pending requests.
    pub(super) pending_groups: u32,
    /// Requests with the driver, per actuator and in all.
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
    /// Queues of the current burst, the latest last.
    pub(super) burst_list: Vec<QId>,
    pub(super) burst_size: u32,
    pub(super) burst_group: Option<GroupId>,
    pub(super) large_burst: bool,
    pub(super) last_in_burst: i64,
    // Results of the current call.
    /// The queue of the bio that looks for a merge (bio_bfqq).
    pub(super) bio_queue: Option<QId>,
    pub(super) bio_traced: bool,
    pub(super) timer: Option<TimerAsk>,
    pub(super) timer_armed: bool,
    pub(super) runs: bool,
    pub(super) log: Messages,
    /// Merge events, for the recorder of a run.
    pub merge_events: EventLog<MergeRecord>,
    /// A request is being moved from the first queue to the second.
    pub(super) carrying: Option<(QId, QId)>,
    /// The queue of the last dispatched request, and the sectors that it was charged for.
    pub(super) shown: Option<(QId, u32)>,
    /// Operations since the last call that took this count, in units of one inside a container.
    pub(super) operations: u32,
    /// Cache lines changed since then, one bit each: those of bfq_data, then those of queues.
    pub(super) touched: u32,
}

impl Bfq {
    pub(super) fn actuators(&self) -> usize {
        self.in_driver.len()
    }

    pub(super) fn fifo_expire_ns(&self, sync: bool) -> u64 {
        self.settings.fifo_expire_ns[usize::from(sync)]
    }
}

impl Scheduler for Bfq {
    fn called_on(&mut self, on: CalledOn) {
        self.kworker = on.kworker;
    }

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

    fn ends(&self, rq: &Request) -> bool {
        queue_of(rq).is_some()
    }

    fn take_run(&mut self) -> bool {
        core::mem::take(&mut self.runs)
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.timer.take()
    }

    fn limits_under_lock(&self, wanted: Wanted) -> bool {
        self.looks_at_share(wanted)
    }

    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        self.depth_of_kind(wanted)
    }

    fn limit_depth_message(&self, wanted: Wanted) -> Option<String> {
        let shown = self.shown_limit(wanted)?;
        Some(format!(
            "{} {}",
            super::INFO.name,
            self.depth_message(wanted, shown)
        ))
    }

    fn limit_depth_locked(&mut self, wanted: Wanted, now: Now) -> Option<u32> {
        self.begin(now);
        self.depth(wanted)
    }

    fn depth_updated(&mut self, old: u32, new: u32) {
        let settings = &mut self.settings;
        settings.nr_requests = self.depth_hook.seen(old, new);
        let scaled = settings
            .async_depth
            .map(|[now, _]| AsyncDepth::scaled(now, old, new));
        settings.async_depth = scaled.map(|depth| [depth; 2]);
    }

    fn store(&mut self, name: &str, text: &str, now: Now) -> Result<(), StoreError> {
        self.begin(now);
        let before = self.settings;
        self.settings.store(name, text)?;
        match (name, self.settings.max_budget) {
            ("max_budget" | "timeout_sync", 0) => self.max_budget = self.calc_max_budget(),
            ("max_budget", own) => self.max_budget = own.cast_signed(),
            ("low_latency", _) if before.low_latency && !self.settings.low_latency => {
                self.end_wr_of_all();
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

    fn explanations(&self, each: &mut dyn FnMut(&str)) {
        self.explained.0.all(each);
    }

    fn take_readings(&mut self, each: &mut dyn FnMut(Reading)) {
        self.readings(each);
    }

    fn lines_at(&mut self, clocks: &[Now]) {
        self.log.lines_at(clocks);
    }

    fn rotates(&mut self, rotational: bool) {
        self.rotational = rotational;
    }

    fn take_charge(&mut self) -> Charge {
        let mut container_ops = self.index.take_touched() + core::mem::take(&mut self.operations);
        for group in &mut self.groups {
            container_ops += group.pos_tree.take_touched();
            for tree in &mut group.trees {
                container_ops += tree.take_touched();
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

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if self.dispatch_list.iter(pool).any(|queued| queued == rq) {
            self.dispatch_list.remove(pool, rq);
        } else {
            let q = queue_of(&pool[rq]).expect("a queued request has a queue");
            self.remove(pool, rq, q);
        }
        pool[rq].place = Place::Path;
        if let Some(q) = queue_of(&pool[rq]) {
            // The request counts as never inserted: its end is not reported.
            self.put_request(q);
            self.processes[pool[rq].io_context.0 as usize].requests -= 1;
            set_queue_of(&mut pool[rq], None);
        }
    }

    fn force_dispatch(&mut self, pool: &mut RequestPool, rq: RequestId) {
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

    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
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
