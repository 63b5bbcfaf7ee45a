//! A program's own scheduler that merges as the kernel's do, and decides which bio may join which
//! request: here only those of one I/O context, as BFQ keeps different queues apart.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use blkmq::elevator::{
    BioMerge, Custom, CustomScheduler, DispatchTime, ElevatorLock, InsertAt, Insertion, LEVELS,
    MergeHooks, Now, Scheduler, SchedulerInfo, SchedulerSettings, try_merge,
};
use blkmq::list::QueueList;
use blkmq::merge::{MergeIndex, Merging, Side};
use blkmq::request::{BioId, Place, Request, RequestId, RequestPool};
use blkmq::rules::QueueLimits;
use sim::machine::Simulator;

use crate::runs;

const LOCKS: &[ElevatorLock] = &[ElevatorLock::irq_save("merger->lock")];
const MERGER: SchedulerInfo = SchedulerInfo::plain("merger", LOCKS);

/// Bios that joined a request of their own I/O context, and of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Joined {
    own: u32,
    foreign: u32,
}

/// A FIFO. Requests do not merge with each other, so that each has the context it came with.
#[derive(Clone, Debug)]
struct Merger {
    /// allow_merge keeps contexts apart.
    apart: bool,
    queued: QueueList,
    index: MergeIndex,
    /// By the side: after and before the request.
    joined: Arc<Mutex<[Joined; 2]>>,
}

impl MergeHooks for Merger {
    fn index(&mut self) -> &mut MergeIndex {
        &mut self.index
    }

    fn allow_merge(&mut self, pool: &RequestPool, rq: RequestId, bio: BioId) -> bool {
        !self.apart || pool[rq].io_context == pool.bio(bio).io_context
    }

    /// The oldest that the bio ends before: front merges, which last_merge by itself would not
    /// find.
    fn request_merge(
        &mut self,
        pool: &RequestPool,
        bio: BioId,
        _limits: &QueueLimits,
    ) -> Option<(RequestId, Side)> {
        let bio = pool.bio(bio);
        let end = bio.sector.end(bio.sectors);
        let alike = |rq: &Request| rq.op == bio.op && rq.sector == end;
        let found = self.queued.iter(pool).find(|&rq| alike(&pool[rq]));
        found.map(|rq| (rq, Side::Front))
    }

    fn former_request(&mut self, _pool: &RequestPool, _rq: RequestId) -> Option<RequestId> {
        None
    }

    fn next_request(&mut self, _pool: &RequestPool, _rq: RequestId) -> Option<RequestId> {
        None
    }

    fn requests_merged(&mut self, _pool: &mut RequestPool, rq: RequestId, next: RequestId) {
        panic!("{next:?} became part of {rq:?}");
    }
}

impl Scheduler for Merger {
    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        _now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        let whose = pool.bio(bio).io_context;
        let merge = try_merge(self, pool, bio, merging);
        if let BioMerge::Into { rq, side, .. } = merge {
            let joined = &mut self.joined.lock().unwrap()[usize::from(side == Side::Front)];
            match pool[rq].io_context == whose {
                true => joined.own += 1,
                false => joined.foreign += 1,
            }
        }
        merge
    }

    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        _at: InsertAt,
        _now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        pool[rq].place = Place::Elevator;
        self.queued.push_back(pool, rq);
        self.index.add(pool, rq);
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        _now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        let rq = self.queued.first()?;
        self.force_dispatch(pool, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.queued.is_empty()
    }

    fn check(&self, pool: &RequestPool) {
        self.index.check(pool);
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued.remove(pool, rq);
        self.index.remove(pool, rq);
        pool[rq].place = Place::Path;
    }
}

impl CustomScheduler for Merger {
    fn info(&self) -> &'static SchedulerInfo {
        &MERGER
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        (self.queued, &self.index).hash(&mut state);
    }
}

/// Two threads that write over the same few blocks of a slow device.
fn joined(apart: bool) -> [Joined; 2] {
    let mut plan = runs::plan_of(
        "[device]\ntype = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 0\nirqmode = 2\n\
         hw_queue_depth = 2\ncompletion_nsec = 100000\n[queue]\nscheduler = \"mq-deadline\"\n\
         nr_requests = 64\n[[job]]\nname = \"writes\"\nrw = \"randwrite\"\nbs = \"4k\"\n\
         size = \"128k\"\ndirect = 1\nioengine = \"io_uring\"\nnorandommap = true\n\
         iodepth = 16\nnumjobs = 2\ntime_based = true\nruntime = \"20ms\"\n",
    );
    let joined = Arc::default();
    plan.disks[0].queue.scheduler = SchedulerSettings::Custom(Custom::new(Merger {
        apart,
        queued: QueueList::new(),
        index: MergeIndex::default(),
        joined: Arc::clone(&joined),
    }));
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    if let Some(stall) = runs::to_its_end(&mut simulator) {
        panic!("{stall}");
    }
    let joined = joined.lock().unwrap();
    *joined
}

#[test]
fn a_bio_joins_only_requests_that_allow_merge_lets_it_join() {
    // Without the hook half of the neighbours are another thread's.
    for joined in joined(false) {
        assert!(joined.own > 20, "{joined:?}");
        assert!(joined.foreign > 20, "{joined:?}");
    }
    for joined in joined(true) {
        assert!(joined.own > 20, "{joined:?}");
        assert_eq!(joined.foreign, 0, "{joined:?}");
    }
}
