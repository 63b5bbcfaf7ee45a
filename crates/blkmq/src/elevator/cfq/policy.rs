//! The algorithm of CFQ. Holding `&mut Cfq` is holding the queue's lock.
//!
//! Its state, and the calls of the single-queue path. The parts: arrivals (`arrive.rs`, `join.rs`),
//! service (`serve.rs`, `slice.rs`, `workload.rs`), idling (`idling.rs`), trees of queues
//! (`service_tree.rs`, `position.rs`, `group.rs`), and merges of queues (`merge.rs`). Kernel:
//! struct cfq_data, block/cfq-iosched.c (2.6.32 to 4.20).

use super::INFO;
use super::arrive::{own_queue, queue_of, set_queue_of};
use super::counters::Shown;
use super::group::Groups;
use super::idling::HwTag;
use super::ids::QId;
use super::merge::{Fault, Tie, Ties};
use super::process::{Process, TABLE_PLACES};
use super::queue::Queues;
use super::serve::LEVELS as PRIO_TREES;
use super::settings::CfqSettings;
use super::tuned::Tuned;
use super::workload::Serving;
use crate::elevator::attribute::{Attributes, StoreError, Value};
use crate::elevator::hook::{After, TimerAsk};
use crate::elevator::merging;
use crate::elevator::messages::Messages;
use crate::elevator::scheduler::{
    BioMerge, Charge, DispatchTime, InsertAt, Insertion, LEVELS, MayQueue, Now, Scheduler, Wanted,
    is_sync,
};
use crate::elevator::submitters::Submitters;
use crate::env::Reading;
use crate::list::QueueList;
use crate::merge::{MergeIndex, Merging};
use crate::queue::QueueSettings;
use crate::rbtree::RbTree;
use crate::request::{BioId, IoContextId, Place, RequestId, RequestPool, Sector, Sectors};
use crate::rules::{QueueingGuess, SliceClock, SliceGroups, SyncDelay, TimeSlices};

/// Jiffies begin five minutes below 2^32, so fields that start at zero are that much earlier.
const ZERO_TICKS: i64 = -(1 << 32);

/// CFQ of one queue. Instants and spans are in the unit of the clock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cfq {
    pub(super) settings: CfqSettings,
    pub(super) tuned: Tuned,
    pub(super) rules: TimeSlices,
    pub(super) submitters: Submitters,
    /// queue/rotational.
    pub(super) rotational: bool,
    // Running state.
    pub(super) now: i64,
    /// Queues of processes, and the references that keep queues in memory.
    pub ties: Ties,
    pub(super) queues: Queues,
    pub(super) groups: Groups,
    pub(super) processes: Vec<Process>,
    /// By the original priority level.
    pub(super) pos_trees: [RbTree; PRIO_TREES],
    pub(super) index: MergeIndex,
    pub(super) active: Option<QId>,
    /// The process of the first request that was dispatched since the queue became active
    /// (active_cic).
    pub(super) active_process: Option<IoContextId>,
    pub(super) serving: Serving,
    pub(super) busy_queues: u32,
    pub(super) busy_sync_queues: u32,
    pub(super) queued: u32,
    /// Requests that the driver has looked at: asynchronous, synchronous.
    pub(super) in_driver: [u32; 2],
    /// Dispatched requests: of asynchronous, of synchronous queues.
    pub(super) in_flight: [u32; 2],
    pub(super) last_position: u64,
    pub(super) hw_tag: HwTag,
    pub(super) hw_tag_samples: u32,
    pub(super) in_driver_peak: u32,
    /// last_end_sync_rq, last_delayed_sync.
    pub(super) last_end_sync: i64,
    pub(super) timer_pending: bool,
    /// The rules have lost a reservation.
    pub(super) reservations_lost: bool,
    // Results of the current call.
    /// The queue of the bio that looks for a merge.
    pub(super) bio_queue: Option<QId>,
    pub(super) timer: Option<TimerAsk>,
    pub(super) runs: bool,
    pub(super) runs_now: bool,
    /// After that run this queue must dispatch.
    pub(super) must_after_run: Option<QId>,
    /// Requests dispatched within an insertion.
    pub(super) handed: QueueList,
    /// Operations since the last call that took this count, in units of one inside a container.
    pub(super) operations: u32,
    pub(super) log: Messages,
    pub(super) shown: Shown,
}

impl Cfq {
    pub fn new(settings: &CfqSettings, queue: &QueueSettings) -> Cfq {
        let rules = queue.rules.time_slices;
        let settings = settings.by(&rules, queue.rotational_when_chosen);
        let groups = &queue.submitters.groups;
        let tables = match rules.groups {
            SliceGroups::Hierarchy => groups.len(),
            SliceGroups::None | SliceGroups::Flat => 1,
        };
        let mut queues = Queues::default();
        queues.begin(super::merge::FALLBACK);
        let mut cfq = Cfq {
            settings,
            tuned: Tuned::new(&settings),
            rules,
            submitters: queue.submitters.clone(),
            rotational: queue.rotational,
            now: 0,
            ties: Ties::new(rules.merge, tables * TABLE_PLACES),
            queues,
            groups: Groups::new(groups, rules.groups),
            processes: Vec::new(),
            pos_trees: [RbTree::new(); PRIO_TREES],
            index: MergeIndex::default(),
            active: None,
            active_process: None,
            serving: Serving::default(),
            busy_queues: 0,
            busy_sync_queues: 0,
            queued: 0,
            in_driver: [0; 2],
            in_flight: [0; 2],
            last_position: 0,
            hw_tag: match rules.queueing {
                QueueingGuess::Renewed => HwTag::Yes,
                QueueingGuess::Sticks => HwTag::Unknown,
            },
            hw_tag_samples: 0,
            in_driver_peak: 0,
            last_end_sync: 0,
            timer_pending: false,
            reservations_lost: false,
            bio_queue: None,
            timer: None,
            runs: false,
            runs_now: false,
            must_after_run: None,
            handed: QueueList::new(),
            operations: 0,
            log: Messages::new(INFO.name, queue.log),
            shown: Shown::new(queue.nr_requests),
        };
        if rules.sync_delay == SyncDelay::LastSlowEnd {
            // As if no completion had been delayed in the last second.
            cfq.last_end_sync = -cfq.settings.second();
        }
        cfq
    }

    fn begin(&mut self, now: Now) {
        self.now = match self.rules.clock {
            SliceClock::Ticks => now.tick.0.cast_signed(),
            SliceClock::Nanoseconds => now.time.0.cast_signed(),
        };
    }

    /// The value zero of a field with times.
    pub(super) fn never(&self) -> i64 {
        match self.rules.clock {
            SliceClock::Ticks => ZERO_TICKS,
            SliceClock::Nanoseconds => 0,
        }
    }

    /// The model does not survive a fault that would crash a kernel.
    ///
    /// # Panics
    /// On a fault: the rules are those of a kernel with that defect, or the model has one.
    #[expect(clippy::unused_self, reason = "reads as what it is about")]
    pub(super) fn hold_true<T>(&self, result: Result<T, Fault>) -> T {
        result.unwrap_or_else(|fault| panic!("merging of queues: {fault}"))
    }

    pub(super) fn tie_of(&mut self, q: QId) -> &mut Tie {
        let tie = self.ties.tie_mut(q);
        tie.unwrap_or_else(|fault| panic!("merging of queues: {fault}"))
    }

    fn after(&mut self) -> After {
        match core::mem::take(&mut self.runs) {
            true => After::RunQueues,
            false => After::Nothing,
        }
    }
}

impl Scheduler for Cfq {
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
        let place = pool[rq].place;
        assert_eq!(place, Place::Path, "{rq:?} inserted from elsewhere");
        assert_eq!(at, InsertAt::Sorted, "{rq:?}: a head insertion goes around");
        self.begin(now);
        if queue_of(&pool[rq]).is_none() {
            self.set_up(pool, rq);
        }
        self.log.traced();
        if self.rules.insert_merges {
            let absorbed = merging::insert_merge(self, pool, rq, merging);
            if !absorbed.is_empty() {
                return Insertion::Absorbed(absorbed);
            }
        }
        pool[rq].place = Place::Elevator;
        self.join(pool, rq);
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        self.begin(now.now());
        self.dispatch_next(pool)
    }

    fn has_work(&self) -> bool {
        match self.rules.trees {
            crate::rules::SliceTrees::One => self.busy_queues > 0,
            crate::rules::SliceTrees::ByWorkload => self.queued > 0,
        }
    }

    fn may_queue(&mut self, wanted: Wanted, now: Now) -> MayQueue {
        self.begin(now);
        self.may_allocate(wanted)
    }

    fn set_request(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.begin(now);
        self.set_up(pool, rq);
        self.after()
    }

    fn activated(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) {
        let request = &pool[rq];
        self.in_driver[usize::from(is_sync(request.op, request.flags))] += 1;
        let drv = self.in_driver[0] + self.in_driver[1];
        trace_msg!(self, own_queue(request), "activate rq, drv={drv}");
        self.last_position = request.end().0;
    }

    fn take_run(&mut self) -> bool {
        core::mem::take(&mut self.runs_now)
    }

    fn ran(&mut self) {
        if let Some(q) = self.must_after_run.take() {
            self.queues[q].flags.must_dispatch = true;
        }
    }

    fn take_handed(&mut self, _pool: &mut RequestPool) -> QueueList {
        core::mem::take(&mut self.handed)
    }

    fn drain(&mut self, pool: &mut RequestPool, now: Now) -> QueueList {
        self.begin(now);
        self.drain_all(pool)
    }

    fn completed(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.begin(now);
        self.complete(pool, rq);
        self.after()
    }

    fn requeued(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) -> After {
        let request = &pool[rq];
        self.in_driver[usize::from(is_sync(request.op, request.flags))] -= 1;
        let drv = self.in_driver[0] + self.in_driver[1];
        trace_msg!(self, own_queue(request), "deactivate rq, drv={drv}");
        After::Nothing
    }

    fn finished(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.begin(now);
        self.put_request(pool, rq);
        self.after()
    }

    fn exits(&mut self, pool: &mut RequestPool, io_context: IoContextId, now: Now) -> After {
        self.begin(now);
        self.exit_process(pool, io_context);
        self.after()
    }

    fn timer(&mut self, pool: &mut RequestPool, _timer: u8, now: Now) -> After {
        self.begin(now);
        self.waited_in_vain(pool);
        self.after()
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.timer.take()
    }

    fn store(&mut self, name: &str, text: &str, now: Now) -> Result<(), StoreError> {
        self.begin(now);
        self.settings.store(name, text)?;
        self.tuned = Tuned::new(&self.settings);
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

    fn rotates(&mut self, rotational: bool) {
        self.rotational = rotational;
    }

    fn take_charge(&mut self) -> Charge {
        let pos_trees = self.pos_trees.iter_mut().map(RbTree::take_touched);
        let container_ops = pos_trees.sum::<u32>()
            + self.groups.take_touched()
            + self.index.take_touched()
            + core::mem::take(&mut self.operations);
        Charge {
            container_ops,
            lines: 0,
        }
    }

    fn check(&self, pool: &RequestPool) {
        self.check_all(pool);
    }

    fn show(&self, pool: &RequestPool) -> String {
        self.show_all(pool)
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.remove(pool, rq);
        pool[rq].place = Place::Path;
        let (q, write) = (own_queue(&pool[rq]), super::arrive::is_write(&pool[rq]));
        set_queue_of(&mut pool[rq], None);
        let released = self.ties.release(q, write);
        self.hold_true(released);
        self.bury(pool);
    }

    fn force_dispatch(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.take_out(pool, rq);
    }

    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        let q = own_queue(&pool[rq]);
        self.queues[q].sort.remove(pool, rq);
        pool[rq].sector = sector;
        pool[rq].sectors = sectors;
        self.queues[q].sort.insert(pool, rq, sector);
        if self.queues[q].next_rq == Some(rq) {
            self.position_add(pool, q);
        }
        if pool[rq].hashed.is_some() {
            self.index.rehash(pool, rq);
        }
    }
}

#[cfg(test)]
mod tests;
