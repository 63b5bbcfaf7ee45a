//! A run as a schedule of `specs/Dispatch`, label by label: what happens to the scheduler's lock,
//! the series' words, buckets and side lists, and to who dispatches.
//!
//! The lock is granted between labels: machine/bound.rs says so. Read first:
//! specs/Dispatch/README.md, which says which label is which step.

mod kinds;
mod look;
mod steps;

use blkmq::elevator::mq_deadline::shared::{BUCKETS, DISPATCHING};
use blkmq::env::{Bit, Cpu, Lock, Solo, Word};
use blkmq::path::{Frame, Next};
use blkmq::queue::{BlkMq, LockKind};
use blkmq::request::{Place, QueueId, RequestId};
use blkmq::schedule::Schedule;

use super::names::Names;
use super::{FOLLOWED, STEPS_MAX, TOO_LONG, Who, Wrong};
use crate::plan::Plan;
use kinds::{Kind, Kinds};
use look::Seen;
use steps::Event;
pub(super) use steps::outside;

/// Most requests that may be under way at once.
const REQUESTS_MAX: u32 = 128;

/// The only queue.
const QUEUE: u8 = 0;

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
    wrong: Option<Wrong>,
    refused: Option<String>,
}

impl Binding {
    /// Panics if the plan has no disk.
    pub(super) fn new(plan: &Plan, wrong: Option<Wrong>) -> Binding {
        let lanes = 0..u32::from(plan.machine.cpus) * 3;
        let own = |lane| LaneState {
            process: lane / 3 + 1,
            wants: None,
            hand: Vec::new(),
        };
        let cpus = steps::cpus(plan);
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
            wrong,
            refused: None,
        }
    }

    /// The schedule of the whole run. `stalled`: how it ended.
    pub(super) fn schedule(
        &mut self,
        mq: &BlkMq<Solo>,
        plan: &Plan,
        stalled: bool,
    ) -> Result<Schedule, String> {
        self.settle(mq);
        match &self.refused {
            Some(why) => Err(why.clone()),
            None => Ok(steps::schedule(self, plan, stalled)),
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

    /// A work item is to run.
    pub(super) fn armed(&mut self) {
        self.armed = true;
    }

    /// kblockd begins with the work item.
    pub(super) fn fires(&mut self, mq: &BlkMq<Solo>, lane: usize) {
        self.settle(mq);
        self.armed = false;
        self.lanes[lane].process = self.cpus + 2;
        self.push(Event::fire());
    }

    /// Before a label, or a grant: what the last step left is complete now.
    pub(super) fn settle(&mut self, mq: &BlkMq<Solo>) {
        if self.refused.is_some() || !core::mem::take(&mut self.open) {
            return;
        }
        self.look(mq);
        if let Some(event) = self.events.last_mut() {
            event.seen.clone_from(&self.seen);
        }
    }

    /// A level has dd->lock from now on.
    pub(super) fn granted(&mut self, mq: &BlkMq<Solo>, lane: usize) {
        if self.refused.is_some() {
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

    /// A level found dd->lock taken, or promised to whoever stands in line.
    pub(super) fn contended(&mut self, mq: &BlkMq<Solo>, lane: usize) {
        if self.refused.is_some() {
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

    /// Behind a label, before its effects.
    pub(super) fn note(
        &mut self,
        mq: &BlkMq<Solo>,
        who: Who,
        (was, is): (&Frame, &Frame),
        next: Next,
        cpu: &mut Cpu,
    ) -> Next {
        if self.refused.is_some() {
            return next;
        }
        self.go_wrong(mq, was, cpu);
        let kind = self.kinds.of(was.label());
        self.step(mq, who.lane, (was, is), (kind, next), cpu);
        let has = self.owner.is_some_and(|(lane, _)| lane == who.lane);
        if has && mq.queue(QueueId(QUEUE)).elevator.is_free() {
            self.owner = None;
        }
        self.wants(mq, who.lane, is, next);
        if matches!(
            self.kinds.of(is.label()),
            Kind::Inserts | Kind::Step("AppendSide")
        ) {
            self.lanes[who.lane].hand = in_hand(mq, is);
        }
        if next == Next::Done && who.depth == 0 {
            self.lanes[who.lane].process = who.lane as u32 / 3 + 1;
        }
        next
    }

    fn step(
        &mut self,
        mq: &BlkMq<Solo>,
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
                let list = core::mem::take(&mut self.side);
                self.inserts(mq, &list);
                self.say("TakeSide", process);
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
    fn wants(&mut self, mq: &BlkMq<Solo>, lane: usize, is: &Frame, next: Next) {
        let (lock, tried) = match next {
            Next::Lock(lock) => (lock, false),
            Next::TryLock(lock) => (lock, true),
            _ => return,
        };
        if lock.kind() != LockKind::Elevator {
            return;
        }
        let process = self.lanes[lane].process;
        let wants = match (is, tried) {
            (Frame::Submit(_), false) => {
                self.say("MergeAsk", process);
                Wants::Merge
            }
            (Frame::Submit(_), true) => Wants::MergeIfFree,
            (Frame::DdInsert(_), true) => Wants::InsertIfFree,
            (Frame::DdInsert(_), false) => Wants::Insert,
            (Frame::Plug(_) | Frame::Insert(_), _) => {
                self.submitted(mq, process, is);
                Wants::Insert
            }
            (Frame::Run(_), _) => Wants::Pick,
            _ => return self.refuse("the scheduler's lock was taken for something else"),
        };
        self.lanes[lane].wants = Some(wants);
    }

    /// Requests are on their way to the scheduler.
    fn submitted(&mut self, mq: &BlkMq<Solo>, process: u32, frame: &Frame) {
        for rq in in_hand(mq, frame) {
            match self.names.give(QueueId(QUEUE), rq, false) {
                Some(request) => self.push(Event::submit(process, request)),
                None => return self.refuse("more than 128 requests were under way at once"),
            }
        }
    }

    /// They are in.
    fn inserts(&mut self, mq: &BlkMq<Solo>, list: &[RequestId]) {
        for &rq in list {
            let place = mq.queue(QueueId(QUEUE)).with_pool(|pool| pool[rq].place);
            if place != Place::Elevator {
                return self.refuse("requests were merged; the specification has no merging");
            }
            self.names.enters(QueueId(QUEUE), rq);
        }
    }

    /// The scheduler was asked for a request.
    fn picks(&mut self, was: &Frame, is: &Frame) {
        let picked = |frame: &Frame| match frame {
            Frame::Run(path) => path.picked_in_hand(),
            _ => None,
        };
        if picked(was) != picked(is) {
            self.names.picked(QueueId(QUEUE), picked(is));
        }
    }

    /// The end of a request begins.
    fn ends(&mut self, was: &Frame) {
        let number = was.ends().and_then(|rq| self.names.of(QueueId(QUEUE), rq));
        match number {
            Some(request) => {
                self.names.done(request);
                self.push(Event::complete(request));
            }
            None => self.refuse("a request ended that no step submitted"),
        }
    }

    /// The defect, if this is the label that it hangs on.
    fn go_wrong(&self, mq: &BlkMq<Solo>, was: &Frame, cpu: &mut Cpu) {
        let Some(wrong) = self.wrong else {
            return;
        };
        let dd = &mq.queue(QueueId(QUEUE)).dd;
        match (wrong, self.kinds.of(was.label())) {
            (Wrong::GateLeftOpen, Kind::Step("ShutGate")) => {
                cpu.begin_label();
                dd.run_state.fetch_and(cpu, !DISPATCHING);
            }
            (Wrong::LostFill, Kind::Step("Fill")) => {
                cpu.begin_label();
                dd.buckets[dd.bucket_of(cpu.id)].pending.clear(cpu);
            }
            (Wrong::ForgottenMark, Kind::Step("Mark")) => {
                cpu.begin_label();
                dd.run_state.fetch_and(cpu, !BUCKETS);
            }
            (Wrong::ForgottenDelay, Kind::Delays) => while cpu.outbox.take(0).is_some() {},
            _ => return,
        }
        cpu.begin_label();
    }
}

/// Requests of an insertion, in order.
fn in_hand(mq: &BlkMq<Solo>, frame: &Frame) -> Vec<RequestId> {
    if let Some(rq) = frame.inserts() {
        return vec![rq];
    }
    let list = frame.insert_in_hand().map(|hand| hand.list);
    let q = mq.queue(QueueId(QUEUE));
    list.map_or(Vec::new(), |list| {
        q.with_pool(|pool| list.iter(pool).collect())
    })
}
