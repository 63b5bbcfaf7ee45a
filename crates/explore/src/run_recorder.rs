//! A run as a schedule of a specification: the steps of the block layer in order, each with what it
//! changed.
//!
//! Runs under `specs/Restart` and `specs/Dispatch` have one step per label (`labels.txt` beside
//! them lists the actions), runs under `specs/CfqMerge` and `specs/BfqMerge` one step for each
//! event that the scheduler records. Variables are read off the block layer after the label and its
//! effects. Read first: README.md of each specification; next: `run_recorder/restart.rs`,
//! `dispatch.rs` and `merging.rs`. Request numbers are in `names.rs`.

mod bfq_merge;
mod cfq_merge;
mod dispatch;
mod merging;
mod names;
mod properties;
mod restart;
mod schedule_writer;

use blkmq::drive::{Follower, Ran};
use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{HctxId, QueueId};
use blkmq::schedule::{Schedule, Step};

pub use properties::properties_of_run;

/// The most steps of a schedule, to bound its memory.
pub const STEPS_MAX: usize = 100_000;

/// Why a longer run is refused.
const TOO_LONG: &str = "more than 100000 steps; a shorter run can be followed (job.runtime)";

/// The hctx of each queue that has requests.
const FOLLOWED: HctxId = HctxId(0);

/// A run that is being recorded.
#[derive(Debug)]
pub struct Recording(Box<dyn Recorder>);

trait Recorder: Follower {
    /// The schedule of the whole run; `stalled`: the run ended in a stall. An error if something
    /// happened that the specification does not have.
    fn schedule(&mut self, mq: &BlkMq, stalled: bool) -> Result<Schedule, String>;
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

    /// The schedule of the whole run; `stalled`: the run ended in a stall. An error if something
    /// happened that the specification does not have.
    pub fn schedule(&mut self, mq: &BlkMq, stalled: bool) -> Result<Schedule, String> {
        self.0.schedule(mq, stalled)
    }
}

impl Follower for Recording {
    fn before(&mut self, mq: &BlkMq, frame: &Frame) {
        self.0.before(mq, frame);
    }

    fn after(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        self.0.after(mq, ran, cpu);
    }

    fn granted(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        self.0.granted(mq, context, lock);
    }

    fn contended(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        self.0.contended(mq, context, lock);
    }

    fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        self.0.item_queued(queue, delayed);
    }

    fn item_begins(&mut self, mq: &BlkMq, context: usize, queue: QueueId) {
        self.0.item_begins(mq, context, queue);
    }
}

/// A step made of one or more labels. `O`: its arguments, as far as they are known.
#[derive(Clone, Debug)]
struct Event<O> {
    action: &'static str,
    of: O,
    /// Values of the observed variables after the step.
    seen: Vec<String>,
}

/// The steps of a run so far.
#[derive(Debug)]
struct StepLog<O> {
    name: String,
    events: Vec<Event<O>>,
    /// The values of the last event are still to be read.
    open: bool,
    seen: Vec<String>,
    refused: Option<String>,
}

impl<O> StepLog<O> {
    fn new(name: &str, first: Vec<String>) -> StepLog<O> {
        StepLog {
            name: name.to_owned(),
            events: Vec::new(),
            open: false,
            seen: first,
            refused: None,
        }
    }

    fn refuse(&mut self, why: &str) {
        self.refused.get_or_insert_with(|| why.to_owned());
        self.events = Vec::new();
    }

    fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Of several steps in one label only the last changes variables.
    fn push(&mut self, action: &'static str, of: O) {
        if core::mem::replace(&mut self.open, true)
            && let Some(last) = self.events.last_mut()
        {
            last.seen.clone_from(&self.seen);
        }
        if self.events.len() == STEPS_MAX {
            return self.refuse(TOO_LONG);
        }
        let seen = Vec::new();
        self.events.push(Event { action, of, seen });
    }

    /// Completes the last step, before a label or the grant of a lock.
    fn settle(&mut self, look: impl FnOnce() -> Result<Vec<String>, &'static str>) {
        if self.is_refused() || !core::mem::take(&mut self.open) {
            return;
        }
        match look() {
            Ok(seen) => {
                if let Some(event) = self.events.last_mut() {
                    event.seen.clone_from(&seen);
                }
                self.seen = seen;
            }
            Err(why) => self.refuse(why),
        }
    }

    /// An error if the run was refused.
    fn check(&self) -> Result<(), String> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    /// The schedule of these steps, with what each changed of `names`; `first`: the values before
    /// all steps.
    fn write(
        &self,
        (spec, names): (&str, &[&str]),
        (first, steps): (Vec<String>, Vec<(Step, Vec<String>)>),
        settings: Vec<(String, String)>,
        stalled: bool,
    ) -> Schedule {
        let mut before = first;
        let changed = steps.into_iter().map(|(mut step, seen)| {
            for ((name, old), new) in names.iter().zip(&before).zip(&seen) {
                if old != new {
                    step.observed.push(((*name).to_owned(), new.clone()));
                }
            }
            before = seen;
            step
        });
        Schedule {
            spec: spec.to_owned(),
            variant: self.name.clone(),
            shows: match stalled {
                true => "NoStall violated",
                false => "NeverAllDone violated",
            }
            .to_owned(),
            steps: changed.collect(),
            settings,
            repeats_from: None,
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
