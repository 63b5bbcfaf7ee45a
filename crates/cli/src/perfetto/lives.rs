//! The lives of I/Os: when each bio that was submitted in the window got a request, was inserted,
//! issued and completed.
//!
//! Trace points carry no number of a bio, as blktrace's do not: a bio is found by its request, and
//! without one (before G, or merged) by operation and sector, the oldest first.

use std::collections::{BTreeMap, VecDeque};

use blkmq::env::{TraceAction, TracePoint, TracedRequest};
use blkmq::request::{CpuId, Op, QueueId};
use blkmq::time::SimTime;

/// Something that happened to a bio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    /// It has a request, its own or another's.
    Request,
    /// The request is with the scheduler or in a software queue.
    Inserted,
    /// The request is with the driver.
    Issued,
    Completed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Life {
    pub(super) queue: QueueId,
    pub(super) op: Op,
    pub(super) sector: u64,
    pub(super) bytes: u64,
    pub(super) began: (SimTime, CpuId),
    /// Its submitter: one more than the number of the task.
    pub(super) task: u32,
    /// Its own request as of the last trace point before its end.
    pub(super) request: Option<TracedRequest>,
    /// It joined the request of another.
    pub(super) merged: bool,
    /// By [`Phase`], the last time of each.
    pub(super) phases: [Option<(SimTime, CpuId)>; 4],
}

impl Life {
    fn reached(&self, phase: Phase) -> bool {
        self.phases[phase as usize].is_some()
    }

    /// The trace point's request may be that of this bio.
    fn may_have(&self, point: &TracePoint) -> bool {
        match (self.request, point.request) {
            // A flush has a request of its own hctx.
            (Some(own), Some(other)) => own.id == other.id || point.op == Op::Flush,
            _ => true,
        }
    }
}

#[derive(Clone, Default, Debug)]
pub(super) struct Lives {
    pub(super) all: Vec<Life>,
    /// Those under way by queue, operation and first sector.
    open: BTreeMap<(QueueId, u8, u64), VecDeque<usize>>,
}

impl Lives {
    /// Takes note of a trace point, and returns the first bio that it is about. Bios that begin
    /// outside the window are not followed.
    pub(super) fn note(
        &mut self,
        window: (SimTime, SimTime),
        (time, cpu, task): (SimTime, CpuId, u32),
        point: &TracePoint,
    ) -> Option<usize> {
        let inside = window.0 <= time && time < window.1;
        let (at, sector) = ((time, cpu), point.sector.0);
        match point.action {
            TraceAction::Queue if inside => Some(self.begin(sector, point, at, task)),
            // The rest of a bio that was too long goes on as a bio of its own.
            TraceAction::Split if inside => Some(self.begin(point.payload, point, at, task)),
            TraceAction::GetRq => self.reach(point, Phase::Request, at),
            // A request was absorbed: its bios go on with another one.
            TraceAction::BackMerge | TraceAction::FrontMerge if point.of_request => {
                let bios = self.of(point, |life| life.request.is_some());
                for &index in &bios {
                    (self.all[index].merged, self.all[index].request) = (true, None);
                }
                bios.first().copied()
            }
            TraceAction::BackMerge | TraceAction::FrontMerge => {
                for index in self.of(point, |life| !life.reached(Phase::Request)) {
                    self.all[index].merged = true;
                }
                self.reach(point, Phase::Request, at)
            }
            TraceAction::Insert => self.reach(point, Phase::Inserted, at),
            TraceAction::Issue => self.reach(point, Phase::Issued, at),
            TraceAction::Requeue => {
                let bios = self.of(point, |life| life.reached(Phase::Issued));
                for &index in &bios {
                    self.all[index].phases[Phase::Issued as usize] = None;
                }
                bios.first().copied()
            }
            TraceAction::Complete => self.end(point, at),
            TraceAction::Queue
            | TraceAction::Split
            | TraceAction::Plug
            | TraceAction::Unplug
            | TraceAction::UnplugTimer
            | TraceAction::Remap
            | TraceAction::Message(_)
            | TraceAction::Probe(_) => None,
        }
    }

    fn begin(&mut self, sector: u64, point: &TracePoint, at: (SimTime, CpuId), task: u32) -> usize {
        let place = (point.queue, number(point.op), sector);
        self.open
            .entry(place)
            .or_default()
            .push_back(self.all.len());
        self.all.push(Life {
            queue: point.queue,
            op: point.op,
            sector,
            bytes: u64::from(point.sectors.0) * 512,
            began: at,
            task,
            request: None,
            merged: false,
            phases: [None; 4],
        });
        self.all.len() - 1
    }

    /// The oldest bio at each sector of a request for which `wanted` holds, and that is not another
    /// request's.
    fn of(&self, point: &TracePoint, wanted: impl Fn(&Life) -> bool) -> Vec<usize> {
        let first = point.sector.0;
        let last = first + u64::from(point.sectors.0).max(1) - 1;
        let op = number(point.op);
        let places = self
            .open
            .range((point.queue, op, first)..=(point.queue, op, last));
        let oldest = places.filter_map(|(_, lives)| {
            let mut lives = lives.iter().copied();
            lives.find(|&index| {
                let life = &self.all[index];
                wanted(life) && life.may_have(point)
            })
        });
        oldest.collect()
    }

    fn reach(&mut self, point: &TracePoint, phase: Phase, at: (SimTime, CpuId)) -> Option<usize> {
        let bios = self.of(point, |life| !life.reached(phase));
        for &index in &bios {
            let life = &mut self.all[index];
            life.phases[phase as usize] = Some(at);
            if !life.merged {
                life.request = point.request;
            }
        }
        bios.first().copied()
    }

    fn end(&mut self, point: &TracePoint, at: (SimTime, CpuId)) -> Option<usize> {
        let bios = self.of(point, |life| life.reached(Phase::Issued));
        for &index in &bios {
            self.all[index].phases[Phase::Completed as usize] = Some(at);
            let life = &self.all[index];
            let place = (point.queue, number(life.op), life.sector);
            if let Some(lives) = self.open.get_mut(&place) {
                lives.retain(|&other| other != index);
                if lives.is_empty() {
                    self.open.remove(&place);
                }
            }
        }
        bios.first().copied()
    }
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
