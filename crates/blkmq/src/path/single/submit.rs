//! One bio on the single-queue path, until it is merged or its request is in the scheduler.
//!
//! Kernel: __make_request(), get_request_wait() in block/blk-core.c, __elv_add_request() in
//! block/elevator.c (2.6.32.2); blk_run_address_space() after direct I/O.

use super::SqQueue;
use crate::call::{Call, RunBy, ThenUnplug};
use crate::elevator::{BioMerge, InsertAt, Insertion, MayQueue, TagMapSize, Wanted, queue_lock};
use crate::env::{Cpu, TraceAction};
use crate::list::QueueList;
use crate::merge::{Merging, Side};
use crate::names::labels;
use crate::path::submit::{longest_part, strip_flush};
use crate::queue::{Asks, BlkMq, Kind, UNPLUG_THRESH};
use crate::request::{BioId, Place, QueueId, RequestId};
use crate::rules::{NoMerges, QueuePlug};
use crate::step::{Cx, Next, Traced, jiffies, trace_rq};

labels! {
    pub enum At in "single-submit" {
        /// A bio that is longer than a request is split. Trace Q.
        Enter,
        /// Under the queue's lock: try to merge; else get a request.
        Queue,
        /// Still under it, after the run that was to free requests: add the entry and sleep.
        Wait,
        /// Woken for a request.
        Woken,
        /// Under the queue's lock: get one, as a batcher.
        Again,
        /// elv_set_request(), under the queue's lock again if the scheduler has one. Trace G.
        Set,
        /// Under the queue's lock: plug if it is empty, insert. Trace P, I.
        Insert,
        /// Still under it, after a run that the scheduler asked for: are there enough to unplug?
        Inserted,
        /// Still under it: does this bio unplug?
        Out,
        /// Still under it: leave.
        Leave,
        /// The rest of a split bio; or blk_run_address_space(); or nothing.
        Rest,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SingleSubmit {
    pub(in crate::path) at: At,
    pub(in crate::path) queue: QueueId,
    bio: BioId,
    /// Rest of a split bio: follows `bio`.
    rest: Option<BioId>,
    then: ThenUnplug,
    rq: Option<RequestId>,
}

impl SingleSubmit {
    /// submit_bio() of a bio in the pool of `queue`.
    pub fn new(queue: QueueId, bio: BioId, then: ThenUnplug) -> SingleSubmit {
        SingleSubmit {
            at: At::Enter,
            queue,
            bio,
            rest: None,
            then,
            rq: None,
        }
    }

    pub(in crate::path) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let sq = &SqQueue::of(cx.mq, self.queue);
        match self.at {
            At::Enter => self.enter(cx),
            At::Queue => {
                if !sq.is_empty(cx.cpu) && self.merge(sq, cx.cpu) {
                    return self.out(sq, cx.cpu);
                }
                self.get(sq, cx.cpu)
            }
            At::Wait => {
                sq.unlock(cx.cpu);
                self.at = At::Woken;
                Next::Park
            }
            At::Woken => self.lock(At::Again),
            At::Again => {
                let asks = self.asks(sq, MayQueue::May, cx.cpu);
                sq.single.state.held(cx.cpu.id).limits.begin_batch(asks);
                self.get(sq, cx.cpu)
            }
            At::Set => self.set(sq, cx.cpu),
            At::Insert => self.insert(sq, cx.cpu),
            At::Inserted => {
                sq.q.elevator
                    .call(sq.q, cx.cpu, |policy, _, _| policy.ran());
                self.inserted(sq, cx.cpu)
            }
            At::Out => self.out(sq, cx.cpu),
            At::Leave => self.leave(sq, cx.cpu),
            At::Rest => self.rest(sq, cx.cpu),
        }
    }

    fn lock(&mut self, at: At) -> Next {
        self.at = at;
        Next::Lock(queue_lock(self.queue))
    }

    /// Another frame under the queue's lock, which returns with it.
    fn call(&mut self, by: RunBy, at: At, cpu: &mut Cpu) -> Next {
        self.at = at;
        let queue = self.queue;
        Next::call(cpu, Call::SingleRun { queue, by })
    }

    fn enter(&mut self, cx: &mut Cx<'_>) -> Next {
        if let Some(ended) = strip_flush(cx, self.bio) {
            self.then = ThenUnplug::Nobody;
            self.at = At::Rest;
            return match ended {
                Next::Step => Next::Done,
                above => above,
            };
        }
        let mut pool = cx.pool();
        // Direct I/O and read-ahead create bios of this size at once (bio_add_page()): no split is
        // traced.
        if let Some(front) = longest_part(&cx.q.settings.limits, pool.bio(self.bio)) {
            let part = pool.split_bio(self.bio, front);
            let part = part.expect("the plan reserves bio slots for every split");
            self.rest = Some(core::mem::replace(&mut self.bio, part));
        }
        let bio = pool.bio(self.bio);
        assert!(!bio.flags.is_flush(), "the plan lets no flush through");
        let traced = Traced::bio(cx.cpu.tracing, &pool, self.bio);
        drop(pool);
        trace_rq(cx.cpu, cx.queue(), TraceAction::Queue, traced);
        self.lock(At::Queue)
    }

    /// elv_merge() and its effects. True if the bio is part of a request now. Trace M, F.
    fn merge(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> bool {
        let (q, bio) = (sq.q, self.bio);
        let merging = Merging {
            limits: &q.settings.limits,
            nomerges: q.settings.nomerges,
        };
        let tracing = cpu.tracing;
        let (merged, handed) = q.elevator.call(q, cpu, |policy, pool, now| {
            let traced = Traced::bio(tracing, pool, bio);
            let merged = match policy.merge_bio(pool, bio, now, merging) {
                BioMerge::No => None,
                BioMerge::Into { side, absorbed, .. } => {
                    let gone = absorbed.map(|rq| (rq, Traced::rq(tracing, pool, rq)));
                    Some((side, traced, gone))
                }
            };
            (merged, policy.take_handed(pool))
        });
        let mut log = q.elevator.log(q, cpu);
        let Some((side, traced, gone)) = merged else {
            log.rest(cpu);
            return false;
        };
        match side {
            Side::Back => log.trace(TraceAction::BackMerge, traced, cpu),
            Side::Front => log.trace(TraceAction::FrontMerge, traced, cpu),
            Side::Discard => {}
        }
        if let Some((_, traced)) = gone {
            log.swallow(traced, cpu);
        }
        log.rest(cpu);
        sq.hand_over(handed, cpu);
        if let Some((rq, _)) = gone {
            sq.put(rq, false, cpu);
        }
        true
    }

    fn asks(&self, sq: &SqQueue<'_>, may: MayQueue, cpu: &mut Cpu) -> Asks {
        let (now, pool) = (jiffies(sq.q, cpu), sq.q.pool.held(cpu.id));
        let bio = pool.bio(self.bio);
        Asks {
            kind: Kind::of(bio.op, bio.flags),
            io_context: bio.io_context,
            now,
            hz: sq.q.settings.hz,
            must: may == MayQueue::Must,
        }
    }

    /// get_request(); or the task waits for one, and queued requests are dispatched.
    fn get(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let (q, bio) = (sq.q, self.bio);
        let may = q.elevator.call(q, cpu, |policy, pool, now| {
            let bio = pool.bio(bio);
            let map = TagMapSize {
                shift: 0,
                nr_requests: q.settings.nr_requests,
            };
            let wanted = Wanted {
                op: bio.op,
                flags: bio.flags,
                io_context: bio.io_context,
                map,
            };
            policy.may_queue(wanted, now)
        });
        let asks = self.asks(sq, may, cpu);
        let got = sq.single.state.held(cpu.id).limits.get(asks);
        let Some(rq) = got else {
            let mut state = sq.single.state.held(cpu.id);
            state.limits.wait(asks.kind, cpu.task);
            drop(state);
            return match self.unplugs(sq) {
                true => self.call(RunBy::HolderUnplugs, At::Wait, cpu),
                false => {
                    sq.unlock(cpu);
                    self.at = At::Woken;
                    Next::Park
                }
            };
        };
        let mut pool = q.pool.held(cpu.id);
        pool.reset(rq);
        pool.bio_to_request(rq, bio);
        let now = cpu.now();
        let r = &mut pool[rq];
        (r.ctx, r.start_time, r.use_sched) = (cpu.id, now, true);
        r.place = Place::Path;
        drop(pool);
        self.rq = Some(rq);
        sq.unlock(cpu);
        // A scheduler with a hook for freed requests has one for their allocation.
        match q.elevator.hooks().finished {
            true => self.lock(At::Set),
            false => {
                self.at = At::Set;
                Next::Step
            }
        }
    }

    fn set(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let (q, rq) = (sq.q, self.rq.expect("it was allocated"));
        let sets = q.elevator.hooks().finished;
        if sets {
            let after = q.elevator.call(q, cpu, |policy, pool, now| {
                policy.set_request(pool, rq, now)
            });
            sq.after(after, cpu);
        }
        let traced = Traced::rq(cpu.tracing, &q.pool.held(cpu.id), rq);
        if sets {
            let mut log = q.elevator.log(q, cpu);
            log.trace(TraceAction::GetRq, traced, cpu);
            log.rest(cpu);
            sq.unlock(cpu);
        } else {
            trace_rq(cpu, self.queue, TraceAction::GetRq, traced);
        }
        self.lock(At::Insert)
    }

    fn insert(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let (q, rq) = (sq.q, self.rq.take().expect("it was allocated"));
        if sq.should_plug(cpu) && sq.is_empty(cpu) {
            sq.plug(cpu);
        }
        let nomerges = match sq.rules.plug {
            QueuePlug::OfQueue => NoMerges::Never,
            QueuePlug::OfTask => q.settings.nomerges,
        };
        let limits = &q.settings.limits;
        let tracing = cpu.tracing;
        let (traced, gone, handed, run) = q.elevator.call(q, cpu, |policy, pool, now| {
            let traced = Traced::rq(tracing, pool, rq);
            let merging = Merging { limits, nomerges };
            let insertion = policy.insert(pool, rq, InsertAt::Sorted, now, merging);
            let gone = match insertion {
                Insertion::Inserted => {
                    assert_eq!(pool[rq].place, Place::Elevator, "{rq:?} was not taken");
                    None
                }
                Insertion::Absorbed(gone) => Some(gone),
            };
            (traced, gone, policy.take_handed(pool), policy.take_run())
        });
        match gone {
            None => {
                let mut log = q.elevator.log(q, cpu);
                log.trace(TraceAction::Insert, traced, cpu);
                log.rest(cpu);
            }
            Some(gone) => absorb(sq, gone, cpu),
        }
        sq.hand_over(handed, cpu);
        if run || sq.rules.plug == QueuePlug::OfTask {
            return self.call(RunBy::Holder, At::Inserted, cpu);
        }
        self.inserted(sq, cpu)
    }

    /// The end of elv_insert(): unplugs at the threshold.
    fn inserted(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let enough = || sq.single.state.held(cpu.id).waiting_count() >= UNPLUG_THRESH;
        if sq.single.plugged.peek() && enough() {
            return self.call(RunBy::HolderUnplugs, At::Out, cpu);
        }
        self.out(sq, cpu)
    }

    /// The end of __make_request().
    fn out(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let of_queue = sq.rules.plug == QueuePlug::OfQueue;
        let asks = self.then == ThenUnplug::Bio || !sq.should_plug(cpu);
        if of_queue && asks && self.unplugs(sq) {
            return self.call(RunBy::HolderUnplugs, At::Leave, cpu);
        }
        self.leave(sq, cpu)
    }

    /// __generic_unplug_device() would have an effect.
    #[expect(clippy::unused_self, reason = "one of its steps")]
    fn unplugs(&self, sq: &SqQueue<'_>) -> bool {
        !sq.single.stopped.peek() && (sq.single.plugged.peek() || !sq.q.settings.rotational)
    }

    fn leave(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        sq.unlock(cpu);
        if self.rest.is_none() && self.then != ThenUnplug::Task {
            return Next::Done;
        }
        self.at = At::Rest;
        Next::Step
    }

    fn rest(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        if let Some(rest) = self.rest.take() {
            *self = SingleSubmit::new(self.queue, rest, self.then);
            return Next::Step;
        }
        let then = core::mem::replace(&mut self.then, ThenUnplug::Nobody);
        match then == ThenUnplug::Task && sq.rules.plug == QueuePlug::OfQueue {
            true => self.call(RunBy::Unplug, At::Rest, cpu),
            false => Next::Done,
        }
    }

    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let has = matches!(self.at, At::Set | At::Insert);
        assert_eq!(self.rq.is_some(), has, "{:?}: a request", self.at);
        if let Some(rq) = self.rq {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            assert_eq!(pool[rq].place, Place::Path, "{:?}: {rq:?}", self.at);
        }
    }

    pub(in crate::path) fn check_over(&self) {
        assert_eq!(self.rq, None, "a request that goes nowhere");
        assert_eq!(self.rest, None, "the rest of a bio is left");
    }
}

/// Requests that an insertion merged away (v4.20). Trace M.
fn absorb(sq: &SqQueue<'_>, mut gone: QueueList, cpu: &mut Cpu) {
    let q = sq.q;
    let mut log = q.elevator.log(q, cpu);
    loop {
        let mut pool = q.pool.held(cpu.id);
        let Some(rq) = gone.pop_back(&mut pool) else {
            break;
        };
        let traced = Traced::rq(cpu.tracing, &pool, rq);
        drop(pool);
        log.swallow(traced, cpu);
        sq.put(rq, false, cpu);
    }
    log.rest(cpu);
}
