//! A run as a schedule of `specs/Dispatch`, label by label: what happens to the scheduler's lock,
//! the series' words, buckets and side lists, and to who dispatches.
//!
//! The lock is granted between labels: `granted` says so. Read first:
//! specs/Dispatch/README.md, which says which label is which step.

mod kinds;
mod look;
mod steps;

use blkmq::drive::{Follower, Ran};
use blkmq::env::Cpu;
use blkmq::path::{Frame, Next};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{Place, QueueId, RequestId};
use blkmq::schedule::Schedule;

use super::names::Names;
use super::{FOLLOWED, STEPS_MAX, TOO_LONG};
use crate::dispatch::DD_LOCK;
use kinds::{Kind, Kinds};
use look::Seen;
use steps::Event;
pub(super) use steps::outside;

/// Most requests that may be under way at once.
const REQUESTS_MAX: u32 = 128;

/// The only queue.
const QUEUE: QueueId = QueueId(0);

/// What a level wants dd->lock for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wants {
    /// To look for a merge.
    Merge,
    /// The same if it is free.
    MergeIfFree,
    /// To insert, if it is free.
    InsertIfFree,
    /// To insert.
    Insert,
    /// To pick.
    Pick,
}

/// A level of a CPU.
#[derive(Clone, Debug)]
struct LaneState {
    /// Number of the process that it is.
    process: u32,
    wants: Option<Wants>,
    /// What its next label inserts, in order.
    hand: Vec<RequestId>,
}

/// A recording under way.
#[derive(Debug)]
pub(crate) struct Binding {
    kinds: Kinds,
    lanes: Vec<LaneState>,
    names: Names,
    events: Vec<Event>,
    /// The last event lacks what it shows.
    open: bool,
    /// What was seen last.
    seen: Seen,
    /// Which level has dd->lock, and as which process.
    owner: Option<(usize, u32)>,
    /// Requests on the side lists, in order.
    side: Vec<RequestId>,
    /// A work item is to run.
    armed: bool,
    /// CPUs of the specification.
    cpus: u32,
    /// The schedule's variant.
    name: String,
    refused: Option<String>,
}

impl Binding {
    pub(super) fn new(mq: &BlkMq, name: &str) -> Binding {
        let lanes = 0..super::cpus(mq) * 3;
        let own = |lane| LaneState {
            process: lane / 3 + 1,
            wants: None,
            hand: Vec::new(),
        };
        let cpus = steps::cpus(mq);
        Binding {
            kinds: Kinds::new(),
            lanes: lanes.map(own).collect(),
            names: Names::new(1, REQUESTS_MAX),
            events: Vec::new(),
            open: false,
            seen: look::first(cpus),
            owner: None,
            side: Vec::new(),
            armed: false,
            cpus,
            name: name.to_owned(),
            refused: None,
        }
    }

    /// The schedule of the whole run. `stalled`: how it ended.
    pub(super) fn schedule(&mut self, mq: &BlkMq, stalled: bool) -> Result<Schedule, String> {
        self.settle(mq);
        match &self.refused {
            Some(why) => Err(why.clone()),
            None => Ok(steps::schedule(self, mq, stalled)),
        }
    }

    fn refuse(&mut self, why: &str) {
        self.refused.get_or_insert_with(|| why.to_owned());
        self.events = Vec::new();
    }

    fn say(&mut self, action: &'static str, process: u32) {
        self.push(Event::of_process(action, process));
    }

    /// Steps of one label but the last change nothing that is seen.
    fn push(&mut self, event: Event) {
        if core::mem::replace(&mut self.open, true)
            && let Some(last) = self.events.last_mut()
        {
            last.seen.clone_from(&self.seen);
        }
        if self.events.len() == STEPS_MAX {
            return self.refuse(TOO_LONG);
        }
        self.events.push(event);
    }

    /// Before a label, or a grant: what the last step left is complete now.
    fn settle(&mut self, mq: &BlkMq) {
        if self.refused.is_some() || !core::mem::take(&mut self.open) {
            return;
        }
        self.look(mq);
        if let Some(event) = self.events.last_mut() {
            event.seen.clone_from(&self.seen);
        }
    }

    fn step(
        &mut self,
        mq: &BlkMq,
        lane: usize,
        (was, is): (&Frame, &Frame),
        (kind, next): (Kind, Next),
        cpu: &Cpu,
    ) {
        let process = self.lanes[lane].process;
        if let Frame::Run(path) = was
            && path.hctx() != FOLLOWED
        {
            return self.refuse("another hardware queue ran than the first");
        }
        match kind {
            Kind::Refused(why) => self.refuse(why),
            Kind::Step("AppendSide") => {
                self.side.append(&mut self.lanes[lane].hand);
                self.say("AppendSide", process);
            }
            Kind::Step(action) => self.say(action, process),
            Kind::Enters => self.submitted(mq, process, was),
            Kind::Inserts => {
                let list = core::mem::take(&mut self.lanes[lane].hand);
                self.inserts(mq, &list);
                self.say("Insert", process);
            }
            Kind::TakesSide => {
                self.lanes[lane].hand = core::mem::take(&mut self.side);
                self.say("TakeSide", process);
            }
            Kind::InsertsSide => {
                let list = core::mem::take(&mut self.lanes[lane].hand);
                self.inserts(mq, &list);
                self.say("InsertSide", process);
            }
            Kind::Picks => {
                self.picks(was, is);
                self.say("Pick", process);
            }
            Kind::Delays => {
                if !cpu.outbox.is_empty() {
                    self.say("DelayRuns", process);
                }
            }
            Kind::Ends => self.ends(was),
            Kind::Others => {
                let leaves = matches!(was, Frame::Run(_)) && next == Next::Done;
                if leaves && !cpu.outbox.is_empty() {
                    self.say("LeaveRun", process);
                }
            }
        }
        if let (Frame::Run(_), Next::Submit(_) | Next::SubmitLast(_)) = (was, next) {
            self.say("Offer", process);
        }
    }

    /// What the level wants the lock for that it asks for.
    fn wants(&mut self, mq: &BlkMq, lane: usize, is: &Frame, next: Next) {
        let (lock, tried) = match next {
            Next::Lock(lock) => (lock, false),
            Next::TryLock(lock) => (lock, true),
            _ => return,
        };
        if lock != DD_LOCK {
            return;
        }
        let process = self.lanes[lane].process;
        let wants = match (is, tried) {
            (Frame::Submit(_), false) => {
                self.say("MergeAsk", process);
                Wants::Merge
            }
            (Frame::Submit(_), true) => Wants::MergeIfFree,
            (Frame::Plug(_) | Frame::Insert(_), true) => Wants::InsertIfFree,
            (Frame::Plug(_) | Frame::Insert(_), false) if is.label().is_of_scheduler() => {
                Wants::Insert
            }
            (Frame::Plug(_) | Frame::Insert(_), false) => {
                self.submitted(mq, process, is);
                Wants::Insert
            }
            (Frame::Run(_), _) => Wants::Pick,
            _ => return self.refuse("the scheduler's lock was taken for something else"),
        };
        self.lanes[lane].wants = Some(wants);
    }

    /// Requests are on their way to the scheduler.
    fn submitted(&mut self, mq: &BlkMq, process: u32, frame: &Frame) {
        for rq in in_hand(mq, frame) {
            match self.names.give(QUEUE, rq, false) {
                Some(request) => self.push(Event::submit(process, request)),
                None => return self.refuse("more than 128 requests were under way at once"),
            }
        }
    }

    /// They are in.
    fn inserts(&mut self, mq: &BlkMq, list: &[RequestId]) {
        for &rq in list {
            let place = mq.queue(QUEUE).with_pool(|pool| pool[rq].place);
            if place != Place::Elevator {
                return self.refuse("requests were merged; the specification has no merging");
            }
            self.names.enters(QUEUE, rq);
        }
    }

    /// The scheduler was asked for a request.
    fn picks(&mut self, was: &Frame, is: &Frame) {
        let picked = |frame: &Frame| match frame {
            Frame::Run(path) => path.picked_in_hand(),
            _ => None,
        };
        if picked(was) != picked(is) {
            self.names.picked(QUEUE, picked(is));
        }
    }

    /// The end of a request begins.
    fn ends(&mut self, was: &Frame) {
        let number = was.ends().and_then(|rq| self.names.of(QUEUE, rq));
        match number {
            Some(request) => {
                self.names.done(request);
                self.push(Event::complete(request));
            }
            None => self.refuse("a request ended that no step submitted"),
        }
    }
}

impl Follower for Binding {
    fn before(&mut self, mq: &BlkMq, _frame: &Frame) {
        self.settle(mq);
    }

    fn granted(&mut self, mq: &BlkMq, lane: usize, lock: LockId) {
        if self.refused.is_some() || lock != DD_LOCK {
            return;
        }
        self.settle(mq);
        let process = self.lanes[lane].process;
        let wants = self.lanes[lane].wants.take();
        let action = match wants {
            Some(Wants::Merge | Wants::MergeIfFree) => "MergeLock",
            Some(Wants::InsertIfFree) => "TryLock",
            Some(Wants::Insert) => "Lock",
            Some(Wants::Pick) => "PickLock",
            None => return self.refuse("the scheduler's lock was taken for something else"),
        };
        self.owner = Some((lane, process));
        self.say(action, process);
    }

    /// dd->lock is taken, or promised to whoever stands in line.
    fn contended(&mut self, mq: &BlkMq, lane: usize, lock: LockId) {
        if self.refused.is_some() || lock != DD_LOCK {
            return;
        }
        self.settle(mq);
        let process = self.lanes[lane].process;
        let wants = self.lanes[lane].wants.take();
        if wants == Some(Wants::InsertIfFree) {
            let action = if self.owner.is_some() {
                "TryLock"
            } else {
                "TryLate"
            };
            self.say(action, process);
        }
    }

    fn behind(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        let Ran { who, was, is, next } = ran;
        if self.refused.is_some() {
            return;
        }
        let kind = self.kinds.of(was.label());
        self.step(mq, who.context, (was, is), (kind, next), cpu);
        let has = self.owner.is_some_and(|(lane, _)| lane == who.context);
        if has && mq.is_free(DD_LOCK) {
            self.owner = None;
        }
        self.wants(mq, who.context, is, next);
        if matches!(
            self.kinds.of(is.label()),
            Kind::Inserts | Kind::Step("AppendSide")
        ) {
            self.lanes[who.context].hand = in_hand(mq, is);
        }
        if next == Next::Done && who.depth == 0 {
            self.lanes[who.context].process = who.context as u32 / 3 + 1;
        }
    }

    fn item_queued(&mut self, _queue: QueueId, _delayed: bool) {
        self.armed = true;
    }

    /// kblockd begins with the work item.
    fn item_begins(&mut self, mq: &BlkMq, context: usize, _queue: QueueId) {
        self.settle(mq);
        self.armed = false;
        self.lanes[context].process = self.cpus + 2;
        self.push(Event::fire());
    }
}

/// Requests of an insertion, in order.
fn in_hand(mq: &BlkMq, frame: &Frame) -> Vec<RequestId> {
    match frame.insert_in_hand() {
        Some(hand) => {
            let q = mq.queue(QUEUE);
            q.with_pool(|pool| hand.list.iter(pool).collect())
        }
        None => frame.inserts().into_iter().collect(),
    }
}
