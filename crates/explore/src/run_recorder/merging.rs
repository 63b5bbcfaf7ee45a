//! A run as a schedule of `specs/CfqMerge` or `specs/BfqMerge`: what the schedulers tell of their
//! merging, step by step, with all references behind each.
//!
//! Under one lock several steps may be of one label, so that labels do not name them: schedulers
//! tell them themselves (`blkmq::elevator::Telling`). Numbers of queues and processes are given
//! here, in the order in which they come, and never again. Read first: the README.md of both
//! specifications, section "Runs of the simulator"; then `cfq_merge.rs` and `bfq_merge.rs`.

mod bfq_merge;
mod cfq_merge;
mod properties;
mod schedule_writer;

use core::fmt::Debug;

use blkmq::drive::{Follower, Ran};
use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::QueueId;
use blkmq::schedule::Schedule;

pub(super) use bfq_merge::Merges;
pub(super) use cfq_merge::Ties;
pub use properties::properties_of_run;
pub(super) use schedule_writer::ScheduleWriter;

/// The only queue.
const QUEUE: QueueId = QueueId(0);

/// A scheduler that tells, and how its words read as steps of its specification.
pub(super) trait Teller: Debug + Sized {
    /// What it tells of one call.
    type Told;
    /// The specification.
    const SPEC: &'static str;

    /// The scheduler is this one.
    fn is_there(mq: &BlkMq) -> bool;
    /// Makes it tell. An error: why no run of this block layer is one of the
    /// specification.
    fn listen(mq: &BlkMq) -> Result<Self, String>;
    /// What it has told since this was asked last; none if it is another scheduler by now.
    fn take(mq: &BlkMq) -> Option<Vec<Self::Told>>;
    /// Notes the step that this is, if it is one. An error: the specification has no such.
    fn note(&mut self, told: &Self::Told, out: &mut ScheduleWriter) -> Result<(), &'static str>;
    /// The specification's constants, but for sizes.
    fn rules(&self) -> Vec<(&'static str, String)>;
}

/// A recording under way.
#[derive(Debug)]
pub(crate) struct Binding<T> {
    teller: T,
    out: ScheduleWriter,
    /// The schedule's variant.
    name: String,
    refused: Option<String>,
}

impl<T: Teller> Binding<T> {
    pub(super) fn new(mq: &BlkMq, name: &str) -> Result<Binding<T>, String> {
        Ok(Binding {
            teller: T::listen(mq)?,
            out: ScheduleWriter::default(),
            name: name.to_owned(),
            refused: None,
        })
    }

    /// What was told meanwhile.
    fn hear(&mut self, mq: &BlkMq) {
        if self.refused.is_some() {
            return;
        }
        let Some(told) = T::take(mq) else {
            self.refused =
                Some("the scheduler was changed; a run of one can be followed".to_owned());
            return;
        };
        for told in &told {
            let noted = self.teller.note(told, &mut self.out);
            if let Err(why) = noted.and_then(|()| self.out.is_within()) {
                self.refused = Some(why.to_owned());
                self.out = ScheduleWriter::default();
                return;
            }
        }
    }

    /// The schedule of the whole run.
    pub(super) fn schedule(&mut self, mq: &BlkMq) -> Result<Schedule, String> {
        self.hear(mq);
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        if self.out.is_empty() {
            return Err("no process has submitted anything".to_owned());
        }
        let rules = self.teller.rules();
        Ok(self.out.schedule((T::SPEC, &self.name), rules))
    }
}

impl<T: Teller + 'static> Follower for Binding<T> {
    fn before(&mut self, mq: &BlkMq, _frame: &Frame) {
        self.hear(mq);
    }

    fn behind(&mut self, mq: &BlkMq, _ran: Ran<'_>, _cpu: &mut Cpu) {
        self.hear(mq);
    }

    fn granted(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}

    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}

    fn item_queued(&mut self, _queue: QueueId, _delayed: bool) {}

    fn item_begins(&mut self, _mq: &BlkMq, _context: usize, _queue: QueueId) {}
}
