//! A run as a schedule of a specification, one step a label: what the machine's CPUs did to words,
//! locks and lists, in the order in which they did it, and what each changed.
//!
//! Everything shown is read off the block layer behind the label and its effects. What the block
//! layer does not know - which run was asked for, which request an end is of - follows from the
//! labels that ran. Read first: the README.md of specs/Restart and specs/Dispatch, which say which
//! label is which step; then `binding/restart.rs` and `binding/dispatch.rs`. Common to both are
//! numbers of requests (`binding/names.rs`) and what hooks tell (`machine/bound.rs`).

mod dispatch;
mod names;
mod restart;

use blkmq::env::{Cpu, Solo};
use blkmq::path::{Frame, Next};
use blkmq::queue::BlkMq;
use blkmq::request::{HctxId, QueueId};
use blkmq::schedule::{Schedule, Step};

use crate::plan::Plan;

/// Most steps of a schedule: so that memory has a bound, and who reads it need not give up.
pub const STEPS_MAX: usize = 100_000;

/// Why a longer run is refused.
const TOO_LONG: &str = "more than 100000 steps; a shorter run can be followed (job.runtime)";

/// The hctx of each queue that has requests.
const FOLLOWED: HctxId = HctxId(0);

/// Who runs a label: a level of a CPU, and how deep in its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    /// Number of CPU and level.
    pub(crate) lane: usize,
    /// Frames below.
    pub(crate) depth: usize,
}

/// A defect made on purpose: the run goes on with it, and its schedule must be rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// Restart: a mark that is cleared stays counted.
    StaysCounted,
    /// Restart: leftovers are offered without SCHED_RESTART.
    ForgottenRestart,
    /// Restart: a freed tag wakes nobody.
    ForgottenWake,
    /// Restart: the run that a re-check asks for is not made.
    ForgottenRun,
    /// Dispatch: whoever enters dispatch leaves the gate open.
    GateLeftOpen,
    /// Dispatch: a bucket that was filled looks empty to the inserter.
    LostFill,
    /// Dispatch: the mark of a filled bucket is not set.
    ForgottenMark,
    /// Dispatch: a run that was turned away asks for no run later.
    ForgottenDelay,
}

/// A recording under way.
#[expect(clippy::large_enum_variant, reason = "one a run, and in a box")]
#[derive(Debug)]
pub(crate) enum Binding {
    /// Of `specs/Restart`.
    Restart(restart::Binding),
    /// Of `specs/Dispatch`.
    Dispatch(dispatch::Binding),
}

impl Binding {
    /// The specification is chosen by the plan. An error: what either of them needs.
    pub(crate) fn new(plan: &Plan, wrong: Option<Wrong>) -> Result<Binding, String> {
        let (restart, dispatch) = (restart::outside(plan), dispatch::outside(plan));
        match (restart, dispatch) {
            (None, _) => Ok(Binding::Restart(restart::Binding::new(plan, wrong))),
            (_, None) => Ok(Binding::Dispatch(dispatch::Binding::new(plan, wrong))),
            (Some(restart), Some(dispatch)) => Err(format!(
                "expected for specs/Restart: {restart}; or for specs/Dispatch: {dispatch}"
            )),
        }
    }

    /// The schedule of the whole run. `stalled`: how it ended.
    pub(crate) fn schedule(
        &mut self,
        mq: &BlkMq<Solo>,
        plan: &Plan,
        stalled: bool,
    ) -> Result<Schedule, String> {
        match self {
            Binding::Restart(binding) => binding.schedule(mq, plan, stalled),
            Binding::Dispatch(binding) => binding.schedule(mq, plan, stalled),
        }
    }

    /// A work item is to run; `delayed`: after a time.
    pub(crate) fn item(&mut self, queue: QueueId, delayed: bool) {
        match self {
            Binding::Restart(binding) => binding.item(queue, delayed),
            Binding::Dispatch(binding) => binding.armed(),
        }
    }

    /// The worker on this lane is about to run the hctx.
    pub(crate) fn work_begins(&mut self, mq: &BlkMq<Solo>, lane: usize, queue: QueueId) {
        match self {
            Binding::Restart(binding) => binding.work_begins(lane, queue),
            Binding::Dispatch(binding) => binding.fires(mq, lane),
        }
    }

    /// Before a label: what the last one and its effects left is complete now.
    pub(crate) fn settle(&mut self, mq: &BlkMq<Solo>) {
        match self {
            Binding::Restart(binding) => binding.settle(mq),
            Binding::Dispatch(binding) => binding.settle(mq),
        }
    }

    /// A level has a scheduler's lock from now on, though it may find out later.
    pub(crate) fn granted(&mut self, mq: &BlkMq<Solo>, lane: usize) {
        if let Binding::Dispatch(binding) = self {
            binding.granted(mq, lane);
        }
    }

    /// A level has tried to get a scheduler's lock, in vain.
    pub(crate) fn contended(&mut self, mq: &BlkMq<Solo>, lane: usize) {
        if let Binding::Dispatch(binding) = self {
            binding.contended(mq, lane);
        }
    }

    /// Behind a label, before its effects. Answers what the path wants: with a defect made on
    /// purpose something else.
    pub(crate) fn note(
        &mut self,
        mq: &BlkMq<Solo>,
        who: Who,
        frames: (&Frame, &Frame),
        next: Next,
        cpu: &mut Cpu,
    ) -> Next {
        match self {
            Binding::Restart(binding) => binding.note(mq, who, frames, next, cpu),
            Binding::Dispatch(binding) => binding.note(mq, who, frames, next, cpu),
        }
    }
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
