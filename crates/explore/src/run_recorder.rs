//! A run as a schedule of a specification: the steps of the block layer in order, each with what it
//! changed.
//!
//! Runs under `specs/Restart` and `specs/Dispatch` have one step per label (`labels.txt` beside
//! them lists the actions), runs under `specs/CfqMerge` and `specs/BfqMerge` one step for each
//! event that the scheduler records. Variables are read off the block layer after the label and its
//! effects. Read first: README.md of each specification; next: `run_recorder/restart.rs`,
//! `dispatch.rs` and `merging.rs`. All steps are in `step_log.rs`, request numbers in `names.rs`.

mod bfq_merge;
mod cfq_merge;
mod dispatch;
mod merging;
mod names;
mod properties;
mod restart;
mod step_log;

use blkmq::drive::{Follower, Ran};
use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{HctxId, QueueId};
use blkmq::schedule::{Schedule, view};

pub use properties::properties_of_run;
pub use step_log::STEPS_MAX;
use step_log::{StepLog, Value, number};

/// The hctx of each queue that has requests.
const FOLLOWED: HctxId = HctxId(0);

/// A run that is being recorded.
#[derive(Debug)]
pub struct Recording(Box<dyn Recorder>);

/// What the steps of one specification are in a run.
trait Recorder: core::fmt::Debug {
    fn log(&mut self) -> &mut StepLog;
    /// Completes the last step: the last label and its effects are complete.
    fn settle(&mut self, mq: &BlkMq);
    /// A label has run.
    fn ran(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu);
    fn granted(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    fn item_queued(&mut self, _queue: QueueId, _delayed: bool) {}
    fn item_begins(&mut self, _mq: &BlkMq, _context: usize, _queue: QueueId) {}
    /// Decides what only the whole run shows of its steps, and returns the constants.
    fn end(&mut self, mq: &BlkMq) -> Result<Vec<(String, String)>, String>;
    /// The result that the run shows; `stalled`: it ended in a stall.
    fn shows(&self, stalled: bool) -> &'static str {
        match stalled {
            true => "NoStall violated",
            false => "NeverAllDone violated",
        }
    }
    /// A value as TLC prints it.
    fn text(&self, value: &Value) -> String {
        let Value::Text(text) = value else {
            unreachable!("{value:?}: only merges have numbers");
        };
        text.clone()
    }
}

impl Recording {
    /// A recording of this block layer, before the run begins; `name` is the schedule's variant.
    /// The block layer selects the specification. An error lists what the specifications need.
    pub fn new(mq: &BlkMq, name: &str) -> Result<Recording, String> {
        if let Some(recorder) = merging::recorder(mq, name) {
            return recorder.map(Recording);
        }
        match (restart::outside(mq), dispatch::outside(mq)) {
            (None, _) => Ok(Recording(Box::new(restart::Restart::new(mq, name)))),
            (_, None) => Ok(Recording(Box::new(dispatch::Dispatch::new(mq, name)))),
            (Some(restart), Some(dispatch)) => Err(format!(
                "expected for specs/Restart: {restart}; or for specs/Dispatch: {dispatch}; or for \
                 specs/CfqMerge or specs/BfqMerge: a scheduler that merges queues (queue.scheduler)"
            )),
        }
    }

    /// The recorder, unless the run was refused.
    fn active(&mut self) -> Option<&mut dyn Recorder> {
        let refused = self.0.log().refused.is_some();
        (!refused).then_some(&mut *self.0)
    }

    /// The schedule of the whole run; `stalled`: the run ended in a stall. An error if something
    /// happened that the specification does not have.
    pub fn schedule(&mut self, mq: &BlkMq, stalled: bool) -> Result<Schedule, String> {
        if let Some(recorder) = self.active() {
            recorder.settle(mq);
        }
        if let Some(why) = &self.0.log().refused {
            return Err(why.clone());
        }
        let mut settings = self.0.end(mq)?;
        settings.push(("Record".to_owned(), view::flag(true)));
        let shows = self.0.shows(stalled);
        let log = core::mem::take(self.0.log());
        Ok(log.schedule(shows, settings, |value| self.0.text(value)))
    }
}

impl Follower for Recording {
    fn before(&mut self, mq: &BlkMq, _frame: &Frame) {
        if let Some(recorder) = self.active() {
            recorder.settle(mq);
        }
    }

    fn after(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        if let Some(recorder) = self.active() {
            recorder.ran(mq, ran, cpu);
        }
    }

    fn granted(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        if let Some(recorder) = self.active() {
            recorder.granted(mq, context, lock);
        }
    }

    fn contended(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        if let Some(recorder) = self.active() {
            recorder.contended(mq, context, lock);
        }
    }

    fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        if let Some(recorder) = self.active() {
            recorder.item_queued(queue, delayed);
        }
    }

    fn item_begins(&mut self, mq: &BlkMq, context: usize, queue: QueueId) {
        if let Some(recorder) = self.active() {
            recorder.item_begins(mq, context, queue);
        }
    }
}

fn cpus(mq: &BlkMq) -> u32 {
    mq.queue(QueueId(0)).ctxs.len() as u32
}

/// The first requirement of a specification that is not met.
fn first_missing(needs: &[(bool, &str)]) -> Option<String> {
    let missing = needs.iter().find(|(holds, _)| !holds)?;
    Some(missing.1.to_owned())
}
