//! The algorithm of mq-deadline. Holding `&mut MqDeadline` is holding `dd->lock`.
//!
//! Not here: locks, the lock-free probes and the counts of finished requests (`shared.rs`);
//! tags; zoned devices. Read: [`MqDeadline::dispatch`], then `select` in `policy/batch.rs`; merging
//! is in `policy/merge.rs`. Two kernels differ in data only: `Position` and [`HeadInsert`].
//! Kernel: block/mq-deadline.c (6.1.192, 6.12.117).

mod batch;
mod forced;
mod level;
mod merge;
mod state;

pub use level::{BEST_EFFORT, IDLE, REAL_TIME, level_of};
pub use state::State;

use super::settings::MqDeadlineSettings;
use crate::elevator::attribute::Value;
use crate::elevator::merging;
use crate::elevator::scheduler::set_level;
use crate::elevator::{
    Attributes, BioMerge, Charge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler,
    StoreError, Wanted,
};
use crate::list::QueueList;
use crate::merge::{MergeIndex, Merging};
use crate::not_state::NotState;
use crate::request::{BioId, Direction, Op, Place, RequestId, RequestPool, Sector, Sectors};
use crate::rules::{AsyncDepth, BatchPosition, DepthHook, HeadInsert, Rules, ShallowDepth};
use crate::sort::SortTree;
use batch::ticks;
use level::{Level, Position, Stats};
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct MqDeadline {
    pub settings: MqDeadlineSettings,
    head_insert: HeadInsert,
    shallow_depth: ShallowDepth,
    async_depth: AsyncDepth,
    depth_hook: DepthHook,

    /// Requests inserted at head; with [`HeadInsert::Global`] only the first list is used.
    at_head: [QueueList; LEVELS],
    levels: [Level; LEVELS],
    index: MergeIndex,
    /// Direction of the current batch.
    last_dir: Direction,
    /// Requests of the current batch dispatched so far.
    batching: u32,
    /// Direction decisions that reads won while writes waited.
    starved: u32,
    /// Nodes of trees visited in this section.
    visits: NotState<u32>,
}

/// `clone_from` reuses the allocations of the index.
impl Clone for MqDeadline {
    fn clone(&self) -> MqDeadline {
        MqDeadline {
            levels: self.levels.clone(),
            index: self.index.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &MqDeadline) {
        let MqDeadline {
            settings,
            head_insert,
            shallow_depth,
            async_depth,
            depth_hook,
            at_head,
            levels,
            index,
            last_dir,
            batching,
            starved,
            visits,
        } = self;
        *settings = source.settings;
        *head_insert = source.head_insert;
        *shallow_depth = source.shallow_depth;
        *async_depth = source.async_depth;
        *depth_hook = source.depth_hook;
        *at_head = source.at_head;
        levels.clone_from(&source.levels);
        index.clone_from(&source.index);
        *last_dir = source.last_dir;
        *batching = source.batching;
        *starved = source.starved;
        *visits = source.visits;
    }
}

impl MqDeadline {
    pub fn new(rules: &Rules, settings: MqDeadlineSettings) -> MqDeadline {
        let position = match rules.batch_position {
            BatchPosition::NextPointer => Position::Next(None),
            BatchPosition::LatestPosition => Position::Latest(Sector(0)),
        };
        let level = Level {
            sort: [SortTree::new(); 2],
            fifo: [QueueList::new(); 2],
            position: [position; 2],
            stats: Stats::default(),
        };
        MqDeadline {
            settings,
            head_insert: rules.head_insert,
            shallow_depth: rules.shallow_depth,
            async_depth: rules.async_depth,
            depth_hook: rules.depth_hook,
            at_head: [QueueList::new(); LEVELS],
            levels: [level.clone(), level.clone(), level],
            index: MergeIndex::default(),
            last_dir: Direction::Write,
            batching: 0,
            starved: 0,
            visits: NotState(0),
        }
    }

    /// The list that a head insertion of this level goes to.
    fn head_list(&mut self, level: usize) -> &mut QueueList {
        match self.head_insert {
            HeadInsert::PerPriority => &mut self.at_head[level],
            HeadInsert::Global => &mut self.at_head[0],
        }
    }

    /// Requests of a level that were inserted and have not finished, with those in the device.
    fn queued(&self, level: usize, completed: [u32; LEVELS]) -> u32 {
        self.levels[level]
            .stats
            .inserted
            .wrapping_sub(completed[level])
    }

    /// Any request whose level has waited too long. Idle while only one level is in use.
    fn dispatch_aged(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        let used = (0..LEVELS)
            .filter(|&level| self.queued(level, completed) > 0)
            .count();
        if used < 2 {
            return None;
        }
        let latest_start = ticks(now.entered) - ticks(self.settings.prio_aging_expire);
        [BEST_EFFORT, IDLE]
            .into_iter()
            .find_map(|level| self.select(pool, level, latest_start, now.locked))
    }

    /// The next request of the highest level in use. A level is in use until its last request has
    /// left the device, so lower levels may have to wait although nothing is queued.
    fn dispatch_by_priority(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        for level in 0..LEVELS {
            let found = self.select(pool, level, ticks(now.entered), now.locked);
            if found.is_some() || self.queued(level, completed) > 0 {
                return found;
            }
        }
        None
    }

    /// Takes a queued request off fifo, tree, hash and last_merge.
    fn remove(&mut self, pool: &mut RequestPool, level: usize, rq: RequestId) {
        let dir = pool[rq].op.direction() as usize;
        let queue = &mut self.levels[level];
        queue.fifo[dir].remove(pool, rq);
        // v6.1: a pointer to a request that leaves the tree moves on.
        if queue.position[dir] == Position::Next(Some(rq)) {
            queue.position[dir] = Position::Next(queue.sort[dir].next(pool, rq));
        }
        queue.sort[dir].remove(pool, rq);
        self.visits.0 += queue.sort[dir].take_touched();
        self.index.remove(pool, rq);
    }

    /// A request from a head list, which moves the position where that is a sector.
    pub(super) fn start_from_head(&mut self, pool: &mut RequestPool, rq: RequestId) -> RequestId {
        let level = level_of(pool[rq].ioprio);
        let dir = pool[rq].op.direction() as usize;
        if let Position::Latest(sector) = &mut self.levels[level].position[dir] {
            *sector = pool[rq].sector;
        }
        self.start(pool, rq)
    }

    /// Hands `rq`, which is on no list any more, to the path. It will never merge again.
    fn start(&mut self, pool: &mut RequestPool, rq: RequestId) -> RequestId {
        let level = level_of(pool[rq].ioprio);
        let stats = &mut self.levels[level].stats;
        stats.dispatched = stats.dispatched.wrapping_add(1);
        let request = &mut pool[rq];
        assert_eq!(
            request.place,
            Place::Elevator,
            "{rq:?} dispatched from elsewhere"
        );
        request.started = true;
        request.place = Place::Path;
        rq
    }
}

impl Scheduler for MqDeadline {
    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        _now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        merging::try_merge(self, pool, bio, merging)
    }

    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Now,
        merging: Merging<'_>,
    ) -> Insertion {
        let request = &mut pool[rq];
        assert_eq!(request.place, Place::Path, "{rq:?} inserted from elsewhere");
        let level = level_of(request.ioprio);
        // A requeued request was counted when it came first.
        if set_level(request, level).is_none() {
            let stats = &mut self.levels[level].stats;
            stats.inserted = stats.inserted.wrapping_add(1);
        }
        let absorbed = merging::insert_merge(self, pool, rq, merging);
        if !absorbed.is_empty() {
            return Insertion::Absorbed(absorbed);
        }
        let request = &mut pool[rq];
        request.place = Place::Elevator;
        match at {
            InsertAt::Head => {
                request.fifo_time = now.tick;
                self.head_list(level).push_front(pool, rq);
            }
            InsertAt::Sorted => {
                let (dir, sector) = (request.op.direction(), request.sector);
                request.fifo_time = now.tick + self.settings.expire(dir);
                let queue = &mut self.levels[level];
                queue.sort[dir as usize].insert(pool, rq, sector);
                self.visits.0 += queue.sort[dir as usize].take_touched();
                queue.fifo[dir as usize].push_back(pool, rq);
                self.index.add(pool, rq);
            }
        }
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        if self.head_insert == HeadInsert::Global
            && let Some(rq) = self.at_head[0].pop_front(pool)
        {
            return Some(self.start_from_head(pool, rq));
        }
        self.dispatch_aged(pool, now, completed)
            .or_else(|| self.dispatch_by_priority(pool, now, completed))
    }

    fn has_work(&self) -> bool {
        let queued = self.levels.iter().flat_map(|level| &level.fifo);
        self.at_head
            .iter()
            .chain(queued)
            .any(|list| !list.is_empty())
    }

    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        let Wanted { op, flags, map, .. } = wanted;
        let sync = op == Op::Read || flags.sync || flags.is_flush();
        if sync && op.direction() == Direction::Read {
            return None;
        }
        let depth = self.settings.async_depth;
        match self.shallow_depth {
            ShallowDepth::Total => Some(depth),
            // 32-bit arithmetic as in the kernel: a huge async_depth wraps, and 0 is no limit.
            ShallowDepth::PerWord => {
                let scaled = depth
                    .wrapping_shl(map.shift)
                    .wrapping_add(map.nr_requests - 1);
                Some(scaled / map.nr_requests).filter(|&depth| depth > 0)
            }
        }
    }

    /// Every write to queue/nr_requests discards the async_depth that was set, up to v7.0; and
    /// where the hook runs before the new value is stored, the old one takes its place.
    fn depth_updated(&mut self, old: u32, new: u32) {
        self.settings.async_depth = match self.async_depth {
            AsyncDepth::OfQueue => AsyncDepth::scaled(self.settings.async_depth, old, new),
            _ => self.depth_hook.seen(old, new),
        };
        self.settings.async_depth_max = self.settings.async_depth_max.map(|_| new);
    }

    fn store(&mut self, name: &str, text: &str, _now: Now) -> Result<(), StoreError> {
        self.settings.store(name, text)
    }

    fn shown(&self) -> Vec<(&'static str, Value)> {
        self.settings.shown()
    }

    fn take_charge(&mut self) -> Charge {
        let mut trees = self.levels.iter_mut().flat_map(|level| &mut level.sort);
        debug_assert!(
            trees.all(|tree| tree.take_touched() == 0),
            "visits that nobody took"
        );
        Charge {
            container_ops: core::mem::take(&mut self.visits.0) + self.index.take_touched(),
            lines: 0,
        }
    }

    fn check(&self, pool: &RequestPool) {
        self.check_structures(pool);
    }

    fn show(&self, pool: &RequestPool) -> String {
        self.state(pool).to_string()
    }

    fn force_dispatch(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.force_dispatch_locked(pool, rq);
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.force_remove_locked(pool, rq);
    }

    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        self.force_resize_locked(pool, rq, sector, sectors);
    }
}

#[cfg(test)]
mod tests;
