//! The algorithm of noop. Holding `&mut Noop` is holding its lock.
//!
//! A request joins the one that ends where it starts, found by last_merge or hash, wherever that is
//! in the list; a bio that closes a gap joins neighbours in the list. Kernel: block/noop-iosched.c,
//! block/elevator.c __elv_add_request() (4.20).

use super::NoopSettings;
use crate::elevator::merging::{self, MergeHooks};
use crate::elevator::{
    Attributes, BioMerge, Charge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler,
    StoreError,
};
use crate::list::QueueList;
use crate::merge::{MergeIndex, Merging};
use crate::request::{BioId, Place, RequestId, RequestPool, Sector, Sectors};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Noop {
    /// Inserted at head: before everything else, out of merging (`q->queue_head`).
    at_head: QueueList,
    /// By arrival (`nd->queue`).
    queue: QueueList,
    index: MergeIndex,
}

impl MergeHooks for Noop {
    fn index(&mut self) -> &mut MergeIndex {
        &mut self.index
    }

    fn former_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        self.queue.prev(pool, rq)
    }

    fn next_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId> {
        self.queue.next(pool, rq)
    }

    fn requests_merged(&mut self, pool: &mut RequestPool, _rq: RequestId, next: RequestId) {
        if pool[next].place == Place::Elevator {
            self.queue.remove(pool, next);
            self.index.remove(pool, next);
        }
    }
}

impl Scheduler for Noop {
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
        _now: Now,
        merging: Merging<'_>,
    ) -> Insertion {
        assert_eq!(
            pool[rq].place,
            Place::Path,
            "{rq:?} inserted from elsewhere"
        );
        if at == InsertAt::Sorted {
            let absorbed = merging::insert_merge(self, pool, rq, merging);
            if !absorbed.is_empty() {
                return Insertion::Absorbed(absorbed);
            }
        }
        pool[rq].place = Place::Elevator;
        match at {
            InsertAt::Head => self.at_head.push_front(pool, rq),
            InsertAt::Sorted => {
                self.queue.push_back(pool, rq);
                self.index.add(pool, rq);
            }
        }
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        _now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        let rq = self.at_head.first().or(self.queue.first())?;
        self.force_dispatch(pool, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.at_head.is_empty() || !self.queue.is_empty()
    }

    fn store(&mut self, name: &str, text: &str, _now: Now) -> Result<(), StoreError> {
        NoopSettings.store(name, text)
    }

    fn take_charge(&mut self) -> Charge {
        Charge {
            container_ops: self.index.take_touched(),
            lines: 0,
        }
    }

    fn check(&self, pool: &RequestPool) {
        for list in [&self.at_head, &self.queue] {
            list.check(pool);
            for rq in list.iter(pool) {
                assert_eq!(pool[rq].place, Place::Elevator, "place of {rq:?}");
            }
        }
        self.index.check(pool);
        let hashed = |rq: &RequestId| pool[*rq].hashed.is_some();
        let at_head = self.at_head.iter(pool).filter(hashed).count();
        assert_eq!(at_head, 0, "head insertions do not merge");
    }

    fn show(&self, pool: &RequestPool) -> String {
        let mut text = String::new();
        for (name, list) in [("at_head", &self.at_head), ("queue", &self.queue)] {
            if !list.is_empty() {
                let shown = list.iter(pool).map(|rq| format!(" {}", pool[rq]));
                text += &format!("{name}:{}\n", shown.collect::<Vec<_>>().join(","));
            }
        }
        text
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        if self.at_head.iter(pool).any(|queued| queued == rq) {
            self.at_head.remove(pool, rq);
        } else {
            self.queue.remove(pool, rq);
            self.index.remove(pool, rq);
        }
        pool[rq].place = Place::Path;
    }

    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        pool[rq].sector = sector;
        pool[rq].sectors = sectors;
        if pool[rq].hashed.is_some() {
            self.index.rehash(pool, rq);
        }
    }
}
