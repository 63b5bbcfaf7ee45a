//! The oracle of the records of a run: the points of an I/O are recorded in the order in which they
//! can happen, each at a later time, and the records of a CPU have increasing times.
//!
//! It uses the records only. It follows bios, found by their sectors as in a trace: a request's
//! points concern every bio within it. Read first: docs/decisions/0002.

use std::collections::{BTreeMap, VecDeque};

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, Op, QueueId, Status};
use blkmq::time::SimTime;

/// A trace point, when and where.
pub(crate) type Record = (SimTime, CpuId, u32, TracePoint);

/// The last recorded point of a bio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    Queued,
    HasRequest,
    Inserted,
    Issued,
}

/// A bio in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    phase: Phase,
    at: SimTime,
}

/// Queue, operation and first sector.
type Place = (QueueId, u8, u64);

#[derive(Default)]
pub(crate) struct Order {
    last: BTreeMap<CpuId, SimTime>,
    pub(crate) lives: BTreeMap<Place, VecDeque<Life>>,
    pub(crate) ended: usize,
    /// Beginnings and ends of requests with the driver, by queue.
    issues: BTreeMap<QueueId, Vec<(SimTime, i32)>>,
    pub(crate) wrong: Vec<String>,
}

impl Order {
    pub(crate) fn of(records: &[Record]) -> Order {
        let mut order = Order::default();
        for record in records {
            order.note(record);
        }
        order
    }

    fn note(&mut self, &(at, cpu, _, point): &Record) {
        let what = format!(
            "{:?} of {} at {at} on {cpu:?}",
            point.action, point.sector.0
        );
        let last = self.last.insert(cpu, at);
        if last.is_some_and(|last| last >= at) {
            self.wrong.push(format!("{what}: not after {last:?}"));
        }
        let count = match point.action {
            TraceAction::Issue => 1,
            TraceAction::Complete if refused(&point) => 0,
            TraceAction::Complete | TraceAction::Requeue => -1,
            _ => 0,
        };
        if count != 0 {
            self.issues
                .entry(point.queue)
                .or_default()
                .push((at, count));
        }
        // Flushes have no sectors, and none of their own bios.
        if point.sectors.0 > 0 {
            self.follow(at, &point, &what);
        }
    }

    fn follow(&mut self, at: SimTime, point: &TracePoint, what: &str) {
        match point.action {
            TraceAction::Queue => self.begin(point.sector.0, point, at),
            TraceAction::Split => self.begin(point.payload, point, at),
            TraceAction::GetRq | TraceAction::BackMerge | TraceAction::FrontMerge => {
                self.step(at, point, what, &[Phase::Queued], Some(Phase::HasRequest));
            }
            TraceAction::Insert => {
                self.step(at, point, what, &[Phase::HasRequest], Some(Phase::Inserted));
            }
            TraceAction::Issue => {
                let before = [Phase::HasRequest, Phase::Inserted];
                self.step(at, point, what, &before, Some(Phase::Issued));
            }
            TraceAction::Requeue => {
                self.step(at, point, what, &[Phase::Issued], Some(Phase::HasRequest));
            }
            TraceAction::Complete if refused(point) => {
                self.step(at, point, what, &[Phase::Queued], None);
            }
            TraceAction::Complete => self.step(at, point, what, &[Phase::Issued], None),
            TraceAction::Plug
            | TraceAction::Unplug
            | TraceAction::UnplugTimer
            | TraceAction::Remap
            | TraceAction::Message(_)
            | TraceAction::Probe(_) => {}
        }
    }

    fn begin(&mut self, sector: u64, point: &TracePoint, at: SimTime) {
        let phase = Phase::Queued;
        let place = (point.queue, number(point.op), sector);
        self.lives
            .entry(place)
            .or_default()
            .push_back(Life { phase, at });
    }

    /// The oldest bio at each sector of the request that is in a phase of `before` enters the phase
    /// `to`, or ends.
    fn step(
        &mut self,
        at: SimTime,
        point: &TracePoint,
        what: &str,
        before: &[Phase],
        to: Option<Phase>,
    ) {
        let (queue, op, first) = (point.queue, number(point.op), point.sector.0);
        let last = first + u64::from(point.sectors.0) - 1;
        for (_, lives) in self.lives.range_mut((queue, op, first)..=(queue, op, last)) {
            let Some(index) = lives.iter().position(|life| before.contains(&life.phase)) else {
                continue;
            };
            let life = &mut lives[index];
            if life.at >= at {
                let (phase, since) = (life.phase, life.at);
                self.wrong.push(format!("{what}: {phase:?} at {since}"));
            }
            match to {
                Some(phase) => *life = Life { phase, at },
                None => {
                    lives.remove(index);
                    self.ended += 1;
                }
            }
        }
    }

    /// Most requests with the driver of the queues of a set at once, going by the times.
    pub(crate) fn depth(&self, queues: &[QueueId]) -> i32 {
        let all = queues.iter().filter_map(|queue| self.issues.get(queue));
        let mut all: Vec<(SimTime, i32)> = all.flatten().copied().collect();
        all.sort_unstable();
        let sums = all.iter().scan(0, |sum, (_, count)| {
            *sum += count;
            Some(*sum)
        });
        sums.max().unwrap_or(0)
    }
}

/// The end of a nowait bio that got no request (bio_wouldblock_error()).
fn refused(point: &TracePoint) -> bool {
    !point.of_request && point.status == Status::Again
}

fn number(op: Op) -> u8 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::WriteZeroes => 2,
        Op::Discard => 3,
        Op::Flush => 4,
    }
}
