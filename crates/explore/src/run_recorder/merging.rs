//! A run as a schedule of `specs/CfqMerge` or `specs/BfqMerge`: the merge events that the scheduler
//! records, each with all references after it.
//!
//! Several steps may happen in one label, under one lock, so the schedulers record them
//! (`blkmq::elevator::EventLog`). Queues and processes are numbered in the order of their creation;
//! no number is used twice. Read first: README.md of both specifications, section "Runs of the
//! simulator"; then `cfq_merge.rs` and `bfq_merge.rs`.

use core::fmt::Debug;

use blkmq::drive::{Follower, Ran};
use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::BlkMq;
use blkmq::request::QueueId;
use blkmq::schedule::Schedule;

use super::Recorder;
use super::bfq_merge::BfqMerges;
use super::cfq_merge::CfqMerges;
use super::schedule_writer::ScheduleWriter;

pub(super) const QUEUE: QueueId = QueueId(0);

/// A scheduler that records merge events, and their meaning as steps of its specification.
pub(super) trait MergeEvents: Debug + Sized + 'static {
    type Event;
    const SPEC: &'static str;

    /// The block layer has this scheduler.
    fn is_there(mq: &BlkMq) -> bool;
    /// Starts the recording. An error: why the specification has no runs of this block layer.
    fn start(mq: &BlkMq) -> Result<Self, String>;
    /// The events since the last call; none if the queue has another scheduler by now.
    fn take(mq: &BlkMq) -> Option<Vec<Self::Event>>;
    /// Writes the event's step, if it has one. An error if the specification has no such step.
    fn note(&mut self, event: &Self::Event, out: &mut ScheduleWriter) -> Result<(), &'static str>;
    /// The specification's constants, but for sizes.
    fn constants(&self) -> Vec<(String, String)>;
}

/// A recorder, if the scheduler of this block layer merges queues.
pub(super) fn recorder(mq: &BlkMq, name: &str) -> Option<Result<Box<dyn Recorder>, String>> {
    of::<CfqMerges>(mq, name).or_else(|| of::<BfqMerges>(mq, name))
}

fn of<T: MergeEvents>(mq: &BlkMq, name: &str) -> Option<Result<Box<dyn Recorder>, String>> {
    let recorder = |events: T| -> Box<dyn Recorder> {
        Box::new(Merges {
            events,
            out: ScheduleWriter::default(),
            name: name.to_owned(),
            refused: None,
        })
    };
    let missing = |missing| format!("expected for specs/{}: {missing}", T::SPEC);
    T::is_there(mq).then(|| T::start(mq).map(recorder).map_err(missing))
}

#[derive(Debug)]
struct Merges<T> {
    events: T,
    out: ScheduleWriter,
    name: String,
    refused: Option<String>,
}

impl<T: MergeEvents> Merges<T> {
    /// Writes the events since the last call.
    fn note_all(&mut self, mq: &BlkMq) {
        if self.refused.is_some() {
            return;
        }
        let Some(events) = T::take(mq) else {
            let what = "the scheduler was changed; a run of one can be followed";
            self.refused = Some(what.to_owned());
            return;
        };
        for event in &events {
            let noted = self.events.note(event, &mut self.out);
            if let Err(why) = noted.and_then(|()| self.out.is_within()) {
                self.refused = Some(why.to_owned());
                self.out = ScheduleWriter::default();
                return;
            }
        }
    }
}

impl<T: MergeEvents> Recorder for Merges<T> {
    fn schedule(&mut self, mq: &BlkMq, _stalled: bool) -> Result<Schedule, String> {
        self.note_all(mq);
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        if self.out.is_empty() {
            return Err("no process has submitted anything".to_owned());
        }
        let constants = self.events.constants();
        Ok(self.out.schedule((T::SPEC, &self.name), constants))
    }
}

impl<T: MergeEvents> Follower for Merges<T> {
    fn before(&mut self, mq: &BlkMq, _frame: &Frame) {
        self.note_all(mq);
    }

    fn after(&mut self, mq: &BlkMq, _ran: Ran<'_>, _cpu: &mut Cpu) {
        self.note_all(mq);
    }
}
