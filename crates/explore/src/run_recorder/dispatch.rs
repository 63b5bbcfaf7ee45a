//! A run as a schedule of `specs/Dispatch`, label by label: the scheduler's lock, the series'
//! words, buckets and side lists, and the CPU that dispatches.
//!
//! The lock is granted between labels, which `granted` reports. Read first:
//! specs/Dispatch/README.md, which maps labels to steps; next: `dispatch/steps.rs`.

mod steps;

use blkmq::drive::Ran;
use blkmq::env::Cpu;
use blkmq::path::{Frame, Next};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{Place, QueueId, RequestId};
use blkmq::schedule::labels::{REFUSED, Row};

use super::names::Names;
use super::{FOLLOWED, Recorder, StepLog, number};
use crate::dispatch::{DD_LOCK, RUNS, Setting, TABLE};
pub(super) use steps::outside;

/// The most requests under way at once.
const REQUESTS_MAX: u32 = 128;

const QUEUE: QueueId = QueueId(0);

/// Why a level takes dd->lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wants {
    Merge,
    MergeIfFree,
    InsertIfFree,
    Insert,
    Pick,
}

#[derive(Clone, Debug)]
struct Level {
    process: u32,
    wants: Option<Wants>,
    /// Requests that its next label inserts, in order.
    list: Vec<RequestId>,
}

#[derive(Debug)]
pub(super) struct Dispatch {
    log: StepLog,
    levels: Vec<Level>,
    names: Names,
    /// The level that has dd->lock, and its process.
    owner: Option<(usize, u32)>,
    /// Requests on the side lists, in order.
    side: Vec<RequestId>,
    /// A work item is queued.
    armed: bool,
    cpus: u32,
}

impl Dispatch {
    pub(super) fn new(mq: &BlkMq, name: &str) -> Dispatch {
        let levels = 0..super::cpus(mq) * 3;
        let own = |level| Level {
            process: level / 3 + 1,
            wants: None,
            list: Vec::new(),
        };
        let cpus = steps::cpus(mq);
        let names = Names::new(1, REQUESTS_MAX);
        let shown = steps::shown().map(|(name, _)| *name);
        let first = steps::look(mq, &names, (cpus, 0, false));
        let first = first.expect("nothing waits before the run");
        Dispatch {
            log: StepLog::new((RUNS, name), shown.zip(first)),
            levels: levels.map(own).collect(),
            names,
            owner: None,
            side: Vec::new(),
            armed: false,
            cpus,
        }
    }

    fn push(&mut self, action: &'static str, process: u32) {
        self.log.push(action, [number("process", process)]);
    }

    fn step(
        &mut self,
        mq: &BlkMq,
        level: usize,
        (was, is): (&Frame, &Frame),
        (row, next): (&'static Row, Next),
        cpu: &Cpu,
    ) {
        let process = self.levels[level].process;
        if let Frame::Run(path) = was
            && path.hctx() != FOLLOWED
        {
            let what = "another hardware queue ran than the first";
            return self.log.refuse(what);
        }
        let step = row.step.unwrap_or_default();
        match row.shown {
            Some(REFUSED) => self.log.refuse(row.why.unwrap_or_default()),
            Some("step") => {
                if step == "AppendSide" {
                    self.side.append(&mut self.levels[level].list);
                }
                self.push(step, process);
            }
            Some("enters") => self.submitted(mq, process, was),
            Some("inserts" | "inserts-side") => {
                let list = core::mem::take(&mut self.levels[level].list);
                self.inserts(mq, &list);
                self.push(step, process);
            }
            Some("takes-side") => {
                self.levels[level].list = core::mem::take(&mut self.side);
                self.push(step, process);
            }
            Some("picks") => {
                self.picks(was, is);
                self.push(step, process);
            }
            Some("delays") => {
                if !cpu.outbox.is_empty() {
                    self.push(step, process);
                }
            }
            Some("ends") => self.ends(was),
            None | Some("leaves") => {
                let leaves = matches!(was, Frame::Run(_)) && next == Next::Done;
                if leaves && !cpu.outbox.is_empty() {
                    self.push("LeaveRun", process);
                }
            }
            Some(other) => unreachable!("specs/Dispatch/labels.txt: {other} is not known"),
        }
        if let (Frame::Run(_), Next::Submit(_) | Next::SubmitLast(_)) = (was, next) {
            self.push("Offer", process);
        }
    }

    /// Why the level takes the lock that it asks for.
    fn wants(&mut self, mq: &BlkMq, level: usize, is: &Frame, next: Next) {
        let (lock, tried) = match next {
            Next::Lock(lock) => (lock, false),
            Next::TryLock(lock) => (lock, true),
            _ => return,
        };
        if lock != DD_LOCK {
            return;
        }
        let process = self.levels[level].process;
        let wants = match (is, tried) {
            (Frame::Submit(_), false) => {
                self.push("MergeAsk", process);
                Wants::Merge
            }
            (Frame::Submit(_), true) => Wants::MergeIfFree,
            (Frame::Plug(_) | Frame::Issue(_) | Frame::Insert(_), true) => Wants::InsertIfFree,
            (Frame::Plug(_) | Frame::Issue(_) | Frame::Insert(_), false) => {
                if !is.label().is_of_scheduler() {
                    self.submitted(mq, process, is);
                }
                Wants::Insert
            }
            (Frame::Run(_), _) => Wants::Pick,
            _ => return self.refuse_lock(),
        };
        self.levels[level].wants = Some(wants);
    }

    fn refuse_lock(&mut self) {
        let what = "the scheduler's lock was taken for something else";
        self.log.refuse(what);
    }

    /// Requests are on their way to the scheduler.
    fn submitted(&mut self, mq: &BlkMq, process: u32, frame: &Frame) {
        for rq in to_insert(mq, frame) {
            match self.names.give(QUEUE, rq, false) {
                Some(request) => {
                    let of = [number("process", process), number("request", request)];
                    self.log.push("Submit", of);
                }
                None => {
                    let what = "more than 128 requests were under way at once";
                    return self.log.refuse(what);
                }
            }
        }
    }

    fn inserts(&mut self, mq: &BlkMq, list: &[RequestId]) {
        for &rq in list {
            let place = mq.queue(QUEUE).with_pool(|pool| pool[rq].place);
            if place != Place::Elevator {
                let what = "requests were merged; the specification has no merging";
                return self.log.refuse(what);
            }
            self.names.enters(QUEUE, rq);
        }
    }

    /// The scheduler was asked for a request.
    fn picks(&mut self, was: &Frame, is: &Frame) {
        let picked = |frame: &Frame| match frame {
            Frame::Run(path) => path.owned_pick(),
            _ => None,
        };
        if picked(was) != picked(is) {
            self.names.picked(QUEUE, picked(is));
        }
    }

    /// The end of a request begins.
    fn ends(&mut self, was: &Frame) {
        match was.ends().and_then(|rq| self.names.of(QUEUE, rq)) {
            Some(request) => {
                self.names.done(request);
                self.log.push("Complete", [number("request", request)]);
            }
            None => self.log.refuse("a request ended that no step submitted"),
        }
    }
}

impl Recorder for Dispatch {
    fn log(&mut self) -> &mut StepLog {
        &mut self.log
    }

    fn settle(&mut self, mq: &BlkMq) {
        let owner = self.owner.map_or(0, |(_, process)| process);
        let seen = (self.cpus, owner, self.armed);
        self.log.settle(|| steps::look(mq, &self.names, seen));
    }

    fn granted(&mut self, mq: &BlkMq, level: usize, lock: LockId) {
        if lock != DD_LOCK {
            return;
        }
        self.settle(mq);
        let process = self.levels[level].process;
        let wants = self.levels[level].wants.take();
        let action = match wants {
            Some(Wants::Merge | Wants::MergeIfFree) => "MergeLock",
            Some(Wants::InsertIfFree) => "TryLock",
            Some(Wants::Insert) => "Lock",
            Some(Wants::Pick) => "PickLock",
            None => return self.refuse_lock(),
        };
        self.owner = Some((level, process));
        self.push(action, process);
    }

    /// dd->lock is taken, or promised to the next CPU that waits for it.
    fn contended(&mut self, mq: &BlkMq, level: usize, lock: LockId) {
        if lock != DD_LOCK {
            return;
        }
        self.settle(mq);
        let process = self.levels[level].process;
        let wants = self.levels[level].wants.take();
        if wants == Some(Wants::InsertIfFree) {
            let taken = self.owner.is_some();
            self.push(if taken { "TryLock" } else { "TryLate" }, process);
        }
    }

    fn ran(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        let Ran { who, was, is, next } = ran;
        let level = who.context;
        let row = TABLE.row(was.label());
        self.step(mq, level, (was, is), (row, next), cpu);
        let has = self.owner.is_some_and(|(owner, _)| owner == level);
        if has && mq.is_free(DD_LOCK) {
            self.owner = None;
        }
        self.wants(mq, level, is, next);
        let following = TABLE.row(is.label());
        if following.shown == Some("inserts") || following.step == Some("AppendSide") {
            self.levels[level].list = to_insert(mq, is);
        }
        if next == Next::Done && who.depth == 0 {
            self.levels[level].process = level as u32 / 3 + 1;
        }
    }

    fn item_queued(&mut self, _queue: QueueId, _delayed: bool) {
        self.armed = true;
    }

    /// kblockd begins with the work item.
    fn item_begins(&mut self, mq: &BlkMq, context: usize, _queue: QueueId) {
        self.settle(mq);
        self.armed = false;
        self.levels[context].process = self.cpus + 2;
        self.log.push("Fire", []);
    }

    fn end(&mut self, mq: &BlkMq) -> Result<Vec<(String, String)>, String> {
        let requests = self.names.most.clamp(1, REQUESTS_MAX);
        let setting = Setting {
            cpus: self.cpus as u8,
            per_cpu: requests.div_ceil(self.cpus) as u8,
            ..Setting::of_rules(&mq.queue(QUEUE).settings.rules)
        };
        Ok(setting.constants())
    }
}

/// Requests of an insertion, in order.
fn to_insert(mq: &BlkMq, frame: &Frame) -> Vec<RequestId> {
    match frame.owned_by_insert() {
        Some(insert) => {
            let q = mq.queue(QUEUE);
            q.with_pool(|pool| insert.list.iter(pool).collect())
        }
        None => frame.inserts().into_iter().collect(),
    }
}
