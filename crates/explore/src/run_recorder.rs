//! A run as a schedule of a specification, one step a label: what the machine's CPUs did to words,
//! locks and lists, in the order in which they did it, and what each changed.
//!
//! Everything shown is read off the block layer behind the label and its effects. What the block
//! layer does not know - which run was asked for, which request an end is of - follows from the
//! labels that ran. Read first: the README.md of specs/Restart and specs/Dispatch, which say which
//! label is which step; then `run_recorder/restart.rs` and `run_recorder/dispatch.rs`. Common to both are numbers
//! of requests (`run_recorder/names.rs`) and what hooks tell (`blkmq::drive::Follower`).

mod dispatch;
mod merging;
mod names;
mod restart;

use blkmq::drive::{Follower, Ran};
use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{HctxId, QueueId};
use blkmq::schedule::{Schedule, Step};

use merging::Teller;
pub use merging::properties_of_run;

/// Most steps of a schedule: so that memory has a bound, and who reads it need not give up.
pub const STEPS_MAX: usize = 100_000;

/// Why a longer run is refused.
const TOO_LONG: &str = "more than 100000 steps; a shorter run can be followed (job.runtime)";

/// The hctx of each queue that has requests.
const FOLLOWED: HctxId = HctxId(0);

/// A run that is being written down.
#[derive(Debug)]
pub struct Recording(Binding);

/// The specification that it is bound to.
#[expect(clippy::large_enum_variant, reason = "one a run, and in a box")]
#[derive(Debug)]
enum Binding {
    /// Of `specs/Restart`.
    Restart(restart::Binding),
    /// Of `specs/Dispatch`.
    Dispatch(dispatch::Binding),
    /// Of `specs/CfqMerge`.
    Ties(merging::Binding<merging::Ties>),
    /// Of `specs/BfqMerge`.
    Merges(merging::Binding<merging::Merges>),
}

impl Recording {
    /// Of a run of this block layer, before it begins; `name` is the schedule's variant. The block
    /// layer chooses the specification. An error: what either of them needs.
    pub fn new(mq: &BlkMq, name: &str) -> Result<Recording, String> {
        let of = |spec: &'static str| {
            move |missing: String| format!("expected for specs/{spec}: {missing}")
        };
        if merging::Ties::is_there(mq) {
            let binding = merging::Binding::new(mq, name).map_err(of("CfqMerge"))?;
            return Ok(Recording(Binding::Ties(binding)));
        }
        if merging::Merges::is_there(mq) {
            let binding = merging::Binding::new(mq, name).map_err(of("BfqMerge"))?;
            return Ok(Recording(Binding::Merges(binding)));
        }
        match (restart::outside(mq), dispatch::outside(mq)) {
            (None, _) => Ok(Recording(Binding::Restart(restart::Binding::new(mq, name)))),
            (_, None) => Ok(Recording(Binding::Dispatch(dispatch::Binding::new(
                mq, name,
            )))),
            (Some(restart), Some(dispatch)) => Err(format!(
                "expected for specs/Restart: {restart}; or for specs/Dispatch: {dispatch}; or for \
                 specs/CfqMerge or specs/BfqMerge: a scheduler that merges queues (queue.scheduler)"
            )),
        }
    }

    /// The schedule of the whole run. `stalled`: how it ended. An error: something happened that
    /// the specification has not.
    pub fn schedule(&mut self, mq: &BlkMq, stalled: bool) -> Result<Schedule, String> {
        match &mut self.0 {
            Binding::Restart(binding) => binding.schedule(mq, stalled),
            Binding::Dispatch(binding) => binding.schedule(mq, stalled),
            Binding::Ties(binding) => binding.schedule(mq),
            Binding::Merges(binding) => binding.schedule(mq),
        }
    }

    fn of_it(&mut self) -> &mut dyn Follower {
        match &mut self.0 {
            Binding::Restart(binding) => binding,
            Binding::Dispatch(binding) => binding,
            Binding::Ties(binding) => binding,
            Binding::Merges(binding) => binding,
        }
    }
}

impl Follower for Recording {
    fn before(&mut self, mq: &BlkMq, frame: &Frame) {
        self.of_it().before(mq, frame);
    }

    fn behind(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        self.of_it().behind(mq, ran, cpu);
    }

    fn granted(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        self.of_it().granted(mq, context, lock);
    }

    fn contended(&mut self, mq: &BlkMq, context: usize, lock: LockId) {
        self.of_it().contended(mq, context, lock);
    }

    fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        self.of_it().item_queued(queue, delayed);
    }

    fn item_begins(&mut self, mq: &BlkMq, context: usize, queue: QueueId) {
        self.of_it().item_begins(mq, context, queue);
    }
}

/// CPUs of the machine.
fn cpus(mq: &BlkMq) -> u32 {
    mq.queue(QueueId(0)).ctxs.len() as u32
}

/// The first that does not hold of what a specification needs.
fn first_missing(needs: &[(bool, &str)]) -> Option<String> {
    let missing = needs.iter().find(|(holds, _)| !holds)?;
    Some(missing.1.to_owned())
}

/// What the step changed of what is seen.
fn show_changes(step: &mut Step, names: &[&str], before: &[String], after: &[String]) {
    for ((name, old), new) in names.iter().zip(before).zip(after) {
        if old != new {
            step.observed.push(((*name).to_owned(), new.clone()));
        }
    }
}
