//! The algorithm of deadline. Holding `&mut SqDeadline` is holding the queue's lock.
//!
//! A batch continues in sector order while there is a next request and the batch is not full. Then
//! a direction is chosen: reads, unless writes have lost too many of those choices. The new batch
//! begins with the oldest request if that is late, or if the sector order is at its end; there is
//! no wrap to low sectors. Kernel: block/deadline-iosched.c (2.6.32.2, 4.20).

use super::SqDeadlineSettings;
use crate::elevator::merging::{self, MergeHooks};
use crate::elevator::{
    Attributes, BioMerge, Charge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler,
    StoreError, Value,
};
use crate::list::QueueList;
use crate::merge::{MergeIndex, Merging, Side, front_side};
use crate::request::{BioId, Direction, Place, RequestId, RequestPool, Sector, Sectors};
use crate::rules::{Late, QueueLimits, Rules, SameStart, SingleQueueRules};
use crate::sort::SortTree;
use crate::time::Jiffies;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SqDeadline {
    settings: SqDeadlineSettings,
    same_start: SameStart,
    late: Late,
    /// Inserted at head: before everything else, out of merging (`q->queue_head`).
    at_head: QueueList,
    /// By direction: in sector order (`sort_list`).
    sort: [SortTree; 2],
    /// By arrival (`fifo_list`).
    fifo: [QueueList; 2],
    /// The next request of the batch; for one direction at most.
    next_rq: [Option<RequestId>; 2],
    batching: u32,
    /// Choices of a direction that writes have lost.
    starved: u32,
    index: MergeIndex,
    /// Requests dispatched outside a dispatch call.
    handed: QueueList,
}

impl SqDeadline {
    pub fn new(rules: &Rules, settings: SqDeadlineSettings) -> SqDeadline {
        let rules = rules.single_queue.unwrap_or(SingleQueueRules::V2_6_32);
        SqDeadline {
            settings,
            same_start: rules.same_start,
            late: rules.late,
            at_head: QueueList::new(),
            sort: [SortTree::new(), SortTree::new()],
            fifo: [QueueList::new(); 2],
            next_rq: [None; 2],
            batching: 0,
            starved: 0,
            index: MergeIndex::default(),
            handed: QueueList::new(),
        }
    }

    /// deadline_add_rq_rb().
    fn file(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let (dir, sector) = (pool[rq].op.direction() as usize, pool[rq].sector);
        while self.same_start == SameStart::HandsOver
            && let Some(alias) = self.sort[dir].find(pool, sector)
        {
            self.take(pool, alias);
            self.handed.push_back(pool, alias);
        }
        self.sort[dir].insert(pool, rq, sector);
    }

    /// deadline_remove_request(), and elv_rqhash_del().
    fn remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let dir = pool[rq].op.direction() as usize;
        if self.next_rq[dir] == Some(rq) {
            self.next_rq[dir] = self.sort[dir].next(pool, rq);
        }
        self.sort[dir].remove(pool, rq);
        self.fifo[dir].remove(pool, rq);
        self.index.remove(pool, rq);
        pool[rq].place = Place::Path;
    }

    /// deadline_move_request(): to the driver; the batch continues after it.
    fn take(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let dir = pool[rq].op.direction() as usize;
        let next = self.sort[dir].next(pool, rq);
        self.next_rq = [None; 2];
        self.remove(pool, rq);
        self.next_rq[dir] = next;
        pool[rq].started = true;
    }

    /// deadline_check_fifo(): the oldest of this direction is late.
    fn is_late(&self, pool: &RequestPool, dir: usize, now: Jiffies) -> bool {
        let oldest = self.fifo[dir].first();
        oldest.is_some_and(|rq| match self.late {
            Late::After => now > pool[rq].fifo_time,
            Late::AtTime => now >= pool[rq].fifo_time,
        })
    }

    /// The direction of the next batch.
    fn choose(&mut self) -> Option<Direction> {
        let [reads, writes] = [Direction::Read, Direction::Write].map(|dir| self.has(dir));
        if reads {
            if writes {
                let before = self.starved;
                self.starved = before.wrapping_add(1);
                if before >= self.settings.writes_starved.cast_unsigned() {
                    self.starved = 0;
                    return Some(Direction::Write);
                }
            }
            return Some(Direction::Read);
        }
        self.starved = if writes { 0 } else { self.starved };
        writes.then_some(Direction::Write)
    }

    fn has(&self, dir: Direction) -> bool {
        !self.fifo[dir as usize].is_empty()
    }

    /// The request that deadline_dispatch_requests() sends.
    fn next(&mut self, pool: &RequestPool, now: Jiffies) -> Option<RequestId> {
        let [read, write] = self.next_rq;
        if let Some(rq) = write.or(read)
            && self.batching < self.settings.fifo_batch
        {
            return Some(rq);
        }
        let dir = self.choose()? as usize;
        self.batching = 0;
        match self.next_rq[dir] {
            Some(rq) if !self.is_late(pool, dir, now) => Some(rq),
            _ => self.fifo[dir].first(),
        }
    }
}

impl MergeHooks for SqDeadline {
    fn index(&mut self) -> &mut MergeIndex {
        &mut self.index
    }

    /// The request that starts where the bio ends (deadline_merge()).
    fn request_merge(
        &mut self,
        pool: &RequestPool,
        bio: BioId,
        limits: &QueueLimits,
    ) -> Option<(RequestId, Side)> {
        if !self.settings.front_merges {
            return None;
        }
        let bio = pool.bio(bio);
        let end = bio.sector.end(bio.sectors);
        let rq = self.sort[bio.op.direction() as usize].find(pool, end)?;
        Some((rq, front_side(&pool[rq], bio, limits)?))
    }

    fn former_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        self.sort[pool[rq].op.direction() as usize].prev(pool, rq)
    }

    fn next_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        self.sort[pool[rq].op.direction() as usize].next(pool, rq)
    }

    /// deadline_merged_request(): sorts the request by its new start, where there may be one
    /// already. A batch that was to continue with it does.
    fn grown_at_front(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.sort[pool[rq].op.direction() as usize].remove(pool, rq);
        self.file(pool, rq);
    }

    /// deadline_merged_requests(): the earlier time and its place in the fifo survive.
    fn requests_merged(&mut self, pool: &mut RequestPool, rq: RequestId, next: RequestId) {
        if pool[next].place != Place::Elevator {
            return;
        }
        let dir = pool[next].op.direction() as usize;
        if pool[next].fifo_time < pool[rq].fifo_time {
            self.fifo[dir].remove(pool, rq);
            self.fifo[dir].insert_before(pool, next, rq);
            pool[rq].fifo_time = pool[next].fifo_time;
        }
        self.remove(pool, next);
    }
}

impl Scheduler for SqDeadline {
    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        _now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        merging::try_merge(self, pool, bio, merging)
    }

    /// deadline_add_request().
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
        if at == InsertAt::Head {
            pool[rq].place = Place::Elevator;
            self.at_head.push_front(pool, rq);
            return Insertion::Inserted;
        }
        let absorbed = merging::insert_merge(self, pool, rq, merging);
        if !absorbed.is_empty() {
            return Insertion::Absorbed(absorbed);
        }
        self.index.add(pool, rq);
        self.file(pool, rq);
        let dir = pool[rq].op.direction();
        let request = &mut pool[rq];
        request.place = Place::Elevator;
        request.fifo_time = now.tick + self.settings.expire(dir);
        self.fifo[dir as usize].push_back(pool, rq);
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        if let Some(rq) = self.at_head.pop_front(pool) {
            let request = &mut pool[rq];
            (request.place, request.started) = (Place::Path, true);
            return Some(rq);
        }
        let rq = self.next(pool, now.locked)?;
        self.batching += 1;
        self.take(pool, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.at_head.is_empty() || self.has(Direction::Read) || self.has(Direction::Write)
    }

    fn take_handed(&mut self, _pool: &mut RequestPool) -> QueueList {
        core::mem::take(&mut self.handed)
    }

    fn store(&mut self, name: &str, text: &str, _now: Now) -> Result<(), StoreError> {
        self.settings.store(name, text)
    }

    fn shown(&self) -> Vec<(&'static str, Value)> {
        self.settings.shown()
    }

    fn take_charge(&mut self) -> Charge {
        let trees = self.sort.iter_mut().map(SortTree::take_touched);
        Charge {
            container_ops: trees.sum::<u32>() + self.index.take_touched(),
            lines: 0,
        }
    }

    fn check(&self, pool: &RequestPool) {
        self.at_head.check(pool);
        self.index.check(pool);
        assert!(self.handed.is_empty(), "handed over and not taken");
        assert!(self.next_rq.contains(&None), "a batch of both directions");
        for (fifo, sort) in self.fifo.iter().zip(&self.sort) {
            fifo.check(pool);
            sort.check(pool);
            assert_eq!(fifo.len(), sort.len(), "fifo and tree");
            for rq in fifo.iter(pool) {
                assert_eq!(pool[rq].place, Place::Elevator, "place of {rq:?}");
            }
        }
    }

    fn show(&self, pool: &RequestPool) -> String {
        let mut text = format!("batching={} starved={}\n", self.batching, self.starved);
        let lists = [("at_head", &self.at_head), ("read", &self.fifo[0])];
        for (name, list) in lists.into_iter().chain([("write", &self.fifo[1])]) {
            if !list.is_empty() {
                let shown = list.iter(pool).map(|rq| {
                    let next = self.next_rq.contains(&Some(rq));
                    let mark = if next { " next" } else { "" };
                    format!(" {} by {}{mark}", pool[rq], pool[rq].fifo_time.0)
                });
                text += &format!("{name}:{}\n", shown.collect::<Vec<_>>().join(","));
            }
        }
        text
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if self.at_head.iter(pool).any(|queued| queued == rq) {
            self.at_head.remove(pool, rq);
            pool[rq].place = Place::Path;
        } else {
            self.remove(pool, rq);
        }
    }

    /// The kernel's choice: the batch continues from there, or begins.
    fn force_dispatch(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if self.at_head.iter(pool).any(|queued| queued == rq) {
            self.force_remove(pool, rq);
            pool[rq].started = true;
            return;
        }
        let goes_on = self.next_rq.contains(&Some(rq)) && self.batching < self.settings.fifo_batch;
        self.batching = if goes_on { self.batching + 1 } else { 1 };
        self.take(pool, rq);
    }

    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        let queued = pool[rq].hashed.is_some();
        let dir = pool[rq].op.direction() as usize;
        let filed = self.fifo[dir].iter(pool).any(|other| other == rq);
        if filed {
            self.sort[dir].remove(pool, rq);
        }
        pool[rq].sector = sector;
        pool[rq].sectors = sectors;
        if filed {
            self.sort[dir].insert(pool, rq, sector);
        }
        if queued {
            self.index.rehash(pool, rq);
        }
    }
}
