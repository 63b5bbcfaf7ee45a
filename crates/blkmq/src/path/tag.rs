//! Driver tags: allocation for a waiting request, and free.
//!
//! Kernel: __blk_mq_alloc_driver_tag(), blk_mq_put_driver_tag() in block/blk-mq.c.

use super::OwnedTags;
use super::label::{TagGet, TagPut, TagResize, TagShare};
use super::may_queue::{self, MayQueue};
use super::run::wake;
use crate::elevator::{TagMapSize, Wanted};
use crate::env::Cpu;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, IoContextId, Op, OpFlags, Place, QueueId, Request, RequestId, Tag};
use crate::rules::{ActiveCount, FlushData};
use crate::sbitmap::{Get, GetStep, Put, PutStep, Sbitmap, WAIT_QUEUES, Woken};
use crate::step::{Cx, Next, Steps, Sub, lock};
use crate::tags::Waiter;
use steps::steps;

/// The most words of one map, for the numbers of locks.
use crate::queue::WORDS_MAX;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Search {
    /// No search in progress.
    #[default]
    No,
    /// First the fair share, where queues share the tags.
    MayQueue(MayQueue),
    Map(Get),
    /// This tag was found in a set that queues share, and is not counted yet.
    Found(Tag),
}

/// Position of a tag's allocation or free within its label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TagStage {
    /// Before and after the search, where queues share the tags.
    Share(TagShare),
    Get(TagGet),
    /// The free of a tag, and the wake-up of its waiters.
    Put(TagPut),
    Resize(TagResize),
}

impl TagStage {
    /// Its name: `tag-get.search`.
    pub const fn name(self) -> &'static str {
        match self {
            TagStage::Share(at) => at.name(),
            TagStage::Get(at) => at.name(),
            TagStage::Put(at) => at.name(),
            TagStage::Resize(at) => at.name(),
        }
    }

    /// Of a tag that is freed.
    pub(super) fn of_put(put: &Put) -> TagStage {
        TagStage::Put(put.stage())
    }
}

impl Search {
    /// The next step; none if the search begins with it.
    pub(super) fn stage(&self) -> Option<TagStage> {
        match self {
            Search::No => None,
            Search::MayQueue(may_queue) => Some(TagStage::Share(may_queue.stage())),
            Search::Map(get) => Some(TagStage::Get(get.stage())),
            Search::Found(_) => Some(TagStage::Share(TagShare::Taken)),
        }
    }
}

/// One step of a search for a driver tag for `rq`: begins it if none is in progress, and drops it
/// at its end: true with a tag. A request that has its tag and does not count yet is only counted.
pub(super) fn search_driver(
    cx: &mut Cx<'_>,
    search: &mut Search,
    rq: RequestId,
    hctx: HctxId,
) -> Sub<bool> {
    let set = cx.set();
    if matches!(search, Search::No) {
        *search = match (cx.pool()[rq].tag, set.queue_shared()) {
            (Some(tag), _) => Search::Found(tag),
            (None, true) => Search::MayQueue(MayQueue::default()),
            (None, false) => Search::Map(Get::start(set.driver_of(hctx), cx.cpu, None)),
        };
    }
    let step = match search {
        Search::Map(get) => match get.step(set.driver_of(hctx), cx.cpu) {
            GetStep::Step => return Sub::Wait(Next::Step),
            GetStep::Lock(word) => {
                let index = set.driver_index(hctx) as u32 * WORDS_MAX + word;
                return Sub::Wait(cx.lock(LockKind::DriverSwap, index));
            }
            GetStep::Got(bit) => {
                let before = cx.pool()[rq].tag.replace(Tag(bit));
                debug_assert_eq!(before, None, "{rq:?} has a driver tag");
                if set.queue_shared() {
                    *search = Search::Found(Tag(bit));
                    return Sub::Wait(Next::Step);
                }
                Sub::Done(true)
            }
            GetStep::GotRun { .. } => unreachable!("driver tags are taken one by one"),
            GetStep::Full => Sub::Done(false),
        },
        Search::MayQueue(may_queue) => match may_queue.step(cx, hctx) {
            Sub::Wait(next) => return Sub::Wait(next),
            Sub::Done(false) => Sub::Done(false),
            Sub::Done(true) => {
                *search = Search::Map(Get::start(set.driver_of(hctx), cx.cpu, None));
                return Sub::Wait(Next::Step);
            }
        },
        Search::No => unreachable!("a search has begun"),
        Search::Found(_) => {
            may_queue::count(cx, hctx, 1);
            cx.pool()[rq].uncounted = false;
            Sub::Done(true)
        }
    };
    *search = Search::No;
    step
}

/// What a search for the tag of a new request has found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Identity {
    Got(u32),
    /// Several tags of one word of the map.
    GotRun {
        /// First tag of the word.
        first: u32,
        bits: u64,
    },
    /// No tag is free.
    Full,
}

/// The limit_depth() arguments of a request with a bio; none if it will not enter the scheduler.
pub(super) fn wanted(
    q: &RequestQueue,
    (op, flags, io_context): (Op, OpFlags, IoContextId),
) -> Option<Wanted> {
    let around = match q.settings.rules.flush_data {
        FlushData::DispatchList => flags.is_flush(),
        FlushData::Scheduler => op == Op::Flush,
    };
    (q.has_elevator() && !around).then(|| Wanted {
        op,
        flags,
        io_context,
        map: TagMapSize {
            shift: q.sched[0].shift,
            nr_requests: q.settings.nr_requests,
        },
    })
}

/// One step of a search for the tag of a new request: the scheduler's, or the driver's without one.
/// Begins the search if none is in progress, over the first `shallow` tags of each word, and drops
/// it at its end. `again`: not the first one of its allocation.
pub(super) fn search_identity(
    cx: &mut Cx<'_>,
    search: &mut Search,
    hctx: HctxId,
    (shallow, again): (Option<u32>, bool),
) -> Sub<Identity> {
    let map = identity_map(cx.mq, cx.q, hctx);
    let shared = shares_tags(cx.mq, cx.q);
    if matches!(search, Search::No) {
        *search = match shared {
            true if again => Search::MayQueue(MayQueue::again()),
            true => Search::MayQueue(MayQueue::default()),
            false => Search::Map(Get::start(map, cx.cpu, shallow)),
        };
    }
    let step = match search {
        Search::Map(get) => get.step(map, cx.cpu),
        Search::MayQueue(may_queue) => match may_queue.step(cx, hctx) {
            Sub::Wait(next) => return Sub::Wait(next),
            Sub::Done(false) => GetStep::Full,
            Sub::Done(true) => {
                *search = Search::Map(Get::start(map, cx.cpu, None));
                return Sub::Wait(Next::Step);
            }
        },
        &mut Search::Found(Tag(bit)) => {
            may_queue::count(cx, hctx, 1);
            *search = Search::No;
            return Sub::Done(Identity::Got(bit));
        }
        Search::No => unreachable!("a search has begun"),
    };
    let kind = match cx.q.has_elevator() {
        true => LockKind::SchedSwap,
        false => LockKind::DriverSwap,
    };
    match step {
        GetStep::Step => return Sub::Wait(Next::Step),
        GetStep::Lock(word) => {
            let index = identity_index(cx.mq, cx.q, hctx) as u32;
            return Sub::Wait(cx.lock(kind, index * WORDS_MAX + word));
        }
        GetStep::Got(bit) if shared && counts_with_tag(cx.q) => {
            *search = Search::Found(Tag(bit));
            return Sub::Wait(Next::Step);
        }
        GetStep::Got(_) | GetStep::GotRun { .. } | GetStep::Full => *search = Search::No,
    }
    match step {
        GetStep::Got(bit) => Sub::Done(Identity::Got(bit)),
        GetStep::GotRun { first, bits } => Sub::Done(Identity::GotRun { first, bits }),
        _ => Sub::Done(Identity::Full),
    }
}

/// Takes the slot of an identifying tag that was found.
pub(super) fn adopt(cx: &mut Cx<'_>, hctx: HctxId, bit: u32) -> RequestId {
    let rq = cx.q.slot(identity_index(cx.mq, cx.q, hctx), bit);
    let mut pool = cx.pool();
    debug_assert_eq!(pool[rq].place, Place::Free, "{rq:?} of a tag that was free");
    pool.reset(rq);
    let r = &mut pool[rq];
    r.place = Place::Path;
    r.ctx = cx.cpu.id;
    r.hctx = hctx;
    if cx.q.has_elevator() {
        r.internal_tag = Some(Tag(bit));
    } else {
        r.tag = Some(Tag(bit));
        r.uncounted = shares_tags(cx.mq, cx.q) && !counts_with_tag(cx.q);
    }
    rq
}

/// It has no driver tag, or has one but does not count yet.
pub(super) fn wants_driver_tag(rq: &Request) -> bool {
    rq.tag.is_none() || rq.uncounted
}

fn counts_with_tag(q: &RequestQueue) -> bool {
    q.settings.rules.active_count == ActiveCount::WithTag
}

/// Begins the free of the driver tag of `rq`, which has one: the request counts no more as one with
/// a tag, then the tag is free.
pub(super) fn put_driver(rq: &mut Request) -> Put {
    let tag = rq.tag.take().expect("it has a driver tag");
    let counted = !core::mem::take(&mut rq.uncounted);
    Put::one(tag.0, rq.ctx).counted(counted)
}

/// The same of a request that keeps its scheduler tag (__blk_mq_put_driver_tag()): v6.1 counts it
/// out when the tag is free.
pub(super) fn put_driver_alone(q: &RequestQueue, rq: &mut Request) -> Put {
    let put = put_driver(rq);
    match q.settings.rules.active_count {
        ActiveCount::WithTag => put,
        ActiveCount::AtIssue => put.counted_after(),
    }
}

/// The tag is a driver tag, and other queues use the same map.
pub(super) fn shares_tags(mq: &BlkMq, q: &RequestQueue) -> bool {
    !q.has_elevator() && mq.set_of(q.id).queue_shared()
}

/// The map of tags that identify requests: the scheduler's, or the driver's without one.
pub(super) fn identity_map<'a>(mq: &'a BlkMq, q: &'a RequestQueue, hctx: HctxId) -> &'a Sbitmap {
    if q.has_elevator() {
        q.sched_of(hctx)
    } else {
        mq.set_of(q.id).driver_of(hctx)
    }
}

/// Index of that map among its kind.
pub(super) fn identity_index(mq: &BlkMq, q: &RequestQueue, hctx: HctxId) -> usize {
    if q.has_elevator() {
        q.sched_index(hctx)
    } else {
        mq.set_of(q.id).driver_index(hctx)
    }
}

/// The map of a tag to be freed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum TagMap {
    /// Driver tags of this hctx.
    Driver(HctxId),
    /// Scheduler tags of this hctx.
    Sched(HctxId),
}

/// blk_mq_put_tag(), with the wake-up of waiters.
#[steps]
pub(super) fn put_tag(cx: &mut Cx<'_>, tags: TagMap, mut put: Put) {
    while let Some(next) = step_put(&mut put, cx.mq, cx.q.id, tags, cx.cpu) {
        at!(_, next);
    }
}

impl put_tag::State {
    /// The free of a tag that this path runs.
    pub(super) fn stage_in(path: &impl Steps) -> Option<TagStage> {
        let state = path.find::<put_tag::State>()?;
        Some(TagStage::Put(state.put.stage()))
    }

    /// The tag that this path frees, while its bit is set.
    pub(super) fn freed_by(path: &impl Steps) -> Option<OwnedTags> {
        let state = path.find::<put_tag::State>()?;
        let bit = state.put.owned_bit();
        bit?;
        Some(match state.tags {
            TagMap::Driver(hctx) => OwnedTags {
                hctx,
                driver: bit,
                sched: None,
            },
            TagMap::Sched(hctx) => OwnedTags {
                hctx,
                driver: None,
                sched: bit,
            },
        })
    }
}

/// One step of a free. `None` when it is complete.
pub(super) fn step_put(
    put: &mut Put,
    mq: &BlkMq,
    queue: QueueId,
    map: TagMap,
    cpu: &mut Cpu,
) -> Option<Next> {
    let q = mq.queue(queue);
    let set = &mq.sets[q.set.index()];
    let tags = match map {
        TagMap::Driver(hctx) if set.queue_shared() && put.count_out() => {
            may_queue::count(&mut Cx::of(mq, queue, cpu), hctx, -1);
            return (!put.is_over()).then_some(Next::Step);
        }
        TagMap::Driver(hctx) => set.driver_of(hctx),
        TagMap::Sched(hctx) => q.sched_of(hctx),
    };
    let out = |cpu: &mut Cpu, waiter| match waiter {
        // A task that has found a tag runs, though it may still have an entry: it is passed over.
        Waiter::Task(task) => match mq.task_waits(task).test_and_clear(cpu) {
            true => Woken::Dequeued,
            false => Woken::AlreadyRunning,
        },
        Waiter::Hctx { queue, hctx, .. } => {
            let q = mq.queue(queue);
            q.dirty_tags_line(hctx, cpu);
            q.hctx(hctx).dispatch_wait.clear(cpu);
            wake(q, hctx, cpu)
        }
    };
    match put.step(tags, q.settings.rules.wake_scan, cpu, out) {
        PutStep::Step => Some(Next::Step),
        PutStep::Lock(ws) => {
            let (kind, index) = match map {
                TagMap::Driver(hctx) => (LockKind::DriverWait, set.driver_index(hctx)),
                TagMap::Sched(hctx) => (LockKind::SchedWait, q.sched_index(hctx)),
            };
            Some(lock(queue, kind, (index * WAIT_QUEUES) as u32 + ws))
        }
        PutStep::Done if set.queue_shared() && put.is_left_to_count() => Some(Next::Step),
        PutStep::Done => None,
    }
}

/// A search for a driver tag, in progress.
pub(super) mod search_driver {
    use super::{HctxId, RequestId, Search};
    use crate::step::{Cx, Steps, Sub};

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(in crate::path) struct State {
        pub(in crate::path) search: Search,
        rq: RequestId,
        hctx: HctxId,
    }

    impl State {
        pub(in crate::path) fn new(rq: RequestId, hctx: HctxId) -> State {
            State {
                search: Search::No,
                rq,
                hctx,
            }
        }
    }

    impl Steps for State {
        type Done = bool;

        fn step(&mut self, cx: &mut Cx<'_>) -> Sub<bool> {
            super::search_driver(cx, &mut self.search, self.rq, self.hctx)
        }
    }
}
