//! What the block layer asks of a scheduler, and the closed set of schedulers.
//!
//! These are the *policies*: plain data, `&mut self` stands for holding the scheduler's lock.
//! Which lock that is, which words are read without it and where another CPU gets in is said in
//! `path/` (docs/decisions/0005). Not here: `none`, which keeps requests in software queues.
//! Kernel: block/elevator.h struct elevator_mq_ops (v6.1, v6.12).

pub mod mq_deadline;

use crate::list::QueueList;
use crate::merge::{Merging, Side};
use crate::request::{BioId, Op, OpFlags, Request, RequestId, RequestPool, Sector, Sectors};
use crate::rules::SchedulerKind;
use crate::time::Jiffies;
use mq_deadline::MqDeadline;

/// Levels that a scheduler may count requests by; mq-deadline: RT, BE, IDLE.
pub const LEVELS: usize = 3;

/// Answer to [`Scheduler::merge_bio`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BioMerge {
    /// The bio needs a request of its own.
    No,
    /// The bio has become part of a request.
    Into {
        /// The request that holds it now.
        rq: RequestId,
        /// How it joined, hence the letter of the trace.
        side: Side,
        /// A request that merged with its neighbour through the growth: it is empty, belongs to
        /// the caller and is freed without the lock. Its address is still in the pool, for the
        /// trace M that follows that of the bio.
        absorbed: Option<RequestId>,
    },
}

/// Answer to [`Scheduler::insert`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insertion {
    /// The request is in the scheduler: trace I.
    Inserted,
    /// The request was appended to another one, perhaps that again to another one. These are all
    /// the emptied requests, the last absorbed first, as the kernel stacks them: each was traced
    /// M in the reverse of this order. They belong to the caller.
    Absorbed(QueueList),
}

/// Where an insertion goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InsertAt {
    /// BLK_MQ_INSERT_AT_HEAD: before everything, out of sort order and merging.
    Head,
    /// Where the scheduler sees fit.
    Sorted,
}

/// The tick as a dispatch call sees it: the counter may move while it waits for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DispatchTime {
    /// Read on entry, before the lock; judges age.
    pub entered: Jiffies,
    /// Read under the lock; judges expiry.
    pub locked: Jiffies,
}

impl DispatchTime {
    /// Both readings in one tick.
    pub fn at(now: Jiffies) -> DispatchTime {
        DispatchTime {
            entered: now,
            locked: now,
        }
    }
}

/// Size of a scheduler-tag map, for [`Scheduler::limit_depth`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TagMapSize {
    /// log2 of the bits of one word (`sb.shift`).
    pub shift: u32,
    /// queue/nr_requests.
    pub nr_requests: u32,
}

/// A scheduler behind one lock.
pub trait Scheduler {
    /// Tries to make `bio` part of a request that is queued (bio_merge).
    fn merge_bio(&mut self, pool: &mut RequestPool, bio: BioId, merging: Merging<'_>) -> BioMerge;

    /// Takes one request (insert_requests takes a list: call it for each in turn). Panics if the
    /// request is on a list, or not in the hands of a path.
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Jiffies,
        merging: Merging<'_>,
    ) -> Insertion;

    /// The next request for the device, or none for now. `completed` are the counts of finished
    /// requests per level, which the shared layer keeps outside the lock. A call without a
    /// result may change the state.
    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId>;

    /// True if a request is queued, startable or not.
    fn has_work(&self) -> bool;

    /// The shallow depth for the allocation of such a request, in the unit of the kernel's
    /// tag maps (`Rules::shallow_depth`); none: no limit. Not asked for flush, passthrough and
    /// reserved requests.
    fn limit_depth(&self, op: Op, flags: OpFlags, map: TagMapSize) -> Option<u32>;

    /// Told when queue/nr_requests is written, before it changes: `old` is the value until then
    /// (depth_updated). Also told the first depth when the scheduler is attached.
    fn depth_updated(&mut self, old: u32);

    /// Operations inside containers since the last call, for the cost model.
    fn take_visits(&mut self) -> u32;

    /// Panics unless all of the scheduler's structures agree with each other and the pool.
    fn check(&self, pool: &RequestPool);
}

/// Level in whose `completed` count a request ends (finish_request), if a scheduler counted it.
pub fn completed_level(rq: &Request) -> Option<usize> {
    rq.elv_priv.map(usize::from)
}

/// The scheduler of a queue.
#[derive(PartialEq, Eq, Hash, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one block to clone: the explorer's state (seam.md rule 9)"
)]
pub enum Elevator {
    /// No scheduler: requests wait in software queues.
    None,
    /// mq-deadline.
    MqDeadline(MqDeadline),
}

/// Copying one over another of its kind copies what is in it.
impl Clone for Elevator {
    fn clone(&self) -> Elevator {
        match self {
            Elevator::None => Elevator::None,
            Elevator::MqDeadline(policy) => Elevator::MqDeadline(policy.clone()),
        }
    }

    fn clone_from(&mut self, source: &Elevator) {
        match (self, source) {
            (Elevator::MqDeadline(policy), Elevator::MqDeadline(source)) => {
                policy.clone_from(source);
            }
            (this, source) => *this = source.clone(),
        }
    }
}

impl Elevator {
    /// Which one it is.
    pub fn kind(&self) -> SchedulerKind {
        match self {
            Elevator::None => SchedulerKind::None,
            Elevator::MqDeadline(_) => SchedulerKind::MqDeadline,
        }
    }
}

/// What a recorded kernel did where the model would not: a comparison goes on from there.
impl Elevator {
    /// Dispatches a queued request whatever the rules say. Panics unless it is queued here.
    pub fn impose(&mut self, pool: &mut RequestPool, rq: RequestId) {
        match self {
            Elevator::None => panic!("{rq:?} is in no scheduler"),
            Elevator::MqDeadline(dd) => {
                dd.impose(pool, rq);
            }
        }
    }

    /// Takes a queued request out as if it had never come. Panics unless it is queued here.
    pub fn withdraw(&mut self, pool: &mut RequestPool, rq: RequestId) {
        match self {
            Elevator::None => panic!("{rq:?} is in no scheduler"),
            Elevator::MqDeadline(dd) => dd.withdraw(pool, rq),
        }
    }

    /// Gives a queued request another range. Panics unless it is queued here.
    pub fn reshape(&mut self, pool: &mut RequestPool, rq: RequestId, to: (Sector, Sectors)) {
        match self {
            Elevator::None => panic!("{rq:?} is in no scheduler"),
            Elevator::MqDeadline(dd) => dd.reshape(pool, rq, to.0, to.1),
        }
    }

    /// Its queues, to print.
    pub fn show(&self, pool: &RequestPool) -> String {
        match self {
            Elevator::None => String::new(),
            Elevator::MqDeadline(dd) => dd.show(pool).to_string(),
        }
    }
}

/// Without a scheduler nothing merges here, nothing waits here and nothing is limited.
impl Scheduler for Elevator {
    fn merge_bio(&mut self, pool: &mut RequestPool, bio: BioId, merging: Merging<'_>) -> BioMerge {
        match self {
            Elevator::None => BioMerge::No,
            Elevator::MqDeadline(dd) => dd.merge_bio(pool, bio, merging),
        }
    }

    /// Panics without a scheduler: such requests go to a software queue.
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Jiffies,
        merging: Merging<'_>,
    ) -> Insertion {
        match self {
            Elevator::None => panic!("{rq:?} inserted into a queue without scheduler"),
            Elevator::MqDeadline(dd) => dd.insert(pool, rq, at, now, merging),
        }
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        match self {
            Elevator::None => None,
            Elevator::MqDeadline(dd) => dd.dispatch(pool, now, completed),
        }
    }

    fn has_work(&self) -> bool {
        match self {
            Elevator::None => false,
            Elevator::MqDeadline(dd) => dd.has_work(),
        }
    }

    fn limit_depth(&self, op: Op, flags: OpFlags, map: TagMapSize) -> Option<u32> {
        match self {
            Elevator::None => None,
            Elevator::MqDeadline(dd) => dd.limit_depth(op, flags, map),
        }
    }

    fn depth_updated(&mut self, old: u32) {
        match self {
            Elevator::None => {}
            Elevator::MqDeadline(dd) => dd.depth_updated(old),
        }
    }

    fn take_visits(&mut self) -> u32 {
        match self {
            Elevator::None => 0,
            Elevator::MqDeadline(dd) => dd.take_visits(),
        }
    }

    fn check(&self, pool: &RequestPool) {
        match self {
            Elevator::None => {}
            Elevator::MqDeadline(dd) => dd.check(pool),
        }
    }
}
