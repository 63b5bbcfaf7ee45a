//! The search over hypotheses: one loop over the events of a capture.
//!
//! A decision was made before some event between `not_before` and `not_after` ([`Decision`]). The
//! latest moment is taken first. If the model then decides otherwise than the kernel did, other
//! assumptions are tried in a fixed order (`candidates.rs`): a kept state from before takes all
//! events since once more, and each decision among them must still follow. If no hypothesis leads
//! to it, that is a miss (`miss.rs`): it is counted, and the kernel's choice is forced.

use std::collections::{BTreeMap, BTreeSet};

use blkmq::request::QueueId;
use blkmq::time::SimTime;

use super::checkpoints::Checkpoints;
use super::issue::Found;
use super::plan::{Assumption, Plan};
use super::{Hypotheses, Hypothesis};
use crate::Error;
use crate::event::Kind;
use crate::judge::Judge;
use crate::setup::Setup;
use crate::stream::{Decision, Stream};

/// Decisions of runs at one event, at most.
pub(super) const PICKS_MOST: u32 = 1 << 20;
/// Events that a search goes back where calls are not recorded, at most.
pub(super) const BACK_MOST: usize = 192;
/// Decisions that have to follow from a hypothesis that is kept, and events until them, at most.
const FAR_MOST: usize = 4;
const FAR_EVENTS: usize = 40;

/// How many decisions of a device another moment explains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) decisions: usize,
    pub(super) explained: usize,
    /// Nothing that was tried explains these.
    pub(super) in_vain: usize,
}

#[derive(Debug)]
pub(crate) struct Search<'a> {
    pub(super) hypotheses: Hypotheses<'a>,
    pub(super) stream: &'a Stream,
    pub(super) setups: &'a [Setup],
    pub(super) plan: Plan,
    pub(super) checkpoints: Checkpoints,
    /// Entries of calls in progress.
    pub(super) open: BTreeSet<usize>,
    /// D whose requests waited for their turn.
    pub(super) waited: BTreeSet<usize>,
    /// Decisions that no hypothesis explains.
    pub(super) missed: BTreeSet<usize>,
    pub(super) counts: Vec<Counts>,
    /// More than one CPU dispatches requests.
    pub(super) several: bool,
    /// Decisions after the one that is looked for have to follow, too.
    pub(super) far: bool,
    /// Scheduler events of calls that have not returned.
    uncompared: Vec<usize>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(stream: &'a Stream, setups: &'a [Setup]) -> Search<'a> {
        let cpus = |setup: &Setup| {
            setup
                .hctxs
                .iter()
                .map(|hctx| hctx.cpus.len())
                .sum::<usize>()
        };
        Search {
            hypotheses: Hypotheses::new(stream, setups),
            stream,
            setups,
            plan: Plan::default(),
            checkpoints: Checkpoints::new(setups),
            open: BTreeSet::new(),
            waited: BTreeSet::new(),
            missed: BTreeSet::new(),
            counts: vec![Counts::default(); setups.len()],
            several: setups.iter().any(|setup| cpus(setup) > 1),
            far: false,
            uncompared: Vec::new(),
        }
    }

    /// Compares every decision, and what else the capture has of the scheduler.
    pub(crate) fn run(&mut self, capture: &str, judge: &mut Judge) -> Result<(), Error> {
        let after = self.hypotheses.after_tick();
        if after.0 > 0 {
            let us = after.0 / 1000;
            judge.takes(vec![format!(
                "timers of the scheduler run {us} us after their tick, as the earliest one in the \
                 capture"
            )]);
        }
        let stream = self.stream;
        let mut state = self.hypotheses.first();
        let mut starts: BTreeMap<QueueId, SimTime> = BTreeMap::new();
        for (index, event) in stream.events.iter().enumerate() {
            let queue = stream.queue[index];
            let device = &self.setups[queue.index()].device;
            judge.start(device, *starts.entry(queue).or_insert(event.time));
            let back = index.saturating_sub(BACK_MOST);
            let oldest = self.open.first().map_or(back, |&entry| entry.min(back));
            self.checkpoints.keep(&state, index, oldest);
            match (event.kind, stream.other_end[index]) {
                (Kind::Ask { .. }, Some(_)) => self.open.insert(index),
                (Kind::Answer { .. }, Some(entry)) => self.open.remove(&entry),
                _ => false,
            };
            let found = self
                .step(&mut state, index)
                .map_err(|what| event.contradiction(capture, device, what))?;
            if let Some((decision, found)) = stream.decisions[index].zip(found) {
                self.counts[queue.index()].decisions += 1;
                if found == Found::Dispatched {
                    self.waited.insert(index);
                }
                match self.agrees(queue, found) {
                    true => judge.hit(),
                    false => state = self.settle(state, decision, found, judge),
                }
            }
            self.hypotheses.forget_events(&mut state, event.time, judge);
            self.compare_events(&mut state, index, judge);
            for what in state.notes.drain(..) {
                judge.note(what);
            }
        }
        Hypotheses::remaining_events(&state, judge);
        self.hypotheses.end_lines(&mut state, judge);
        Ok(())
    }

    /// Events that the scheduler recorded: those of its timer at once, those of a dispatch call
    /// when it has returned.
    fn compare_events(&mut self, state: &mut Hypothesis, index: usize, judge: &mut Judge) {
        let event = &self.stream.events[index];
        match event.kind {
            Kind::SchedulerEvent(reported) if reported.is_of_timer() => {
                self.hypotheses.compare_event(state, index, reported, judge);
            }
            Kind::SchedulerEvent(_) => self.uncompared.push(index),
            Kind::Answer { .. } => {
                let here = |&reported: &usize| self.stream.events[reported].cpu == event.cpu;
                let (now, later) = self
                    .uncompared
                    .iter()
                    .partition::<Vec<usize>, _>(|at| here(at));
                self.uncompared = later;
                self.hypotheses
                    .compare_events_of_call(state, index, &now, judge);
                if self.open.is_empty() {
                    self.hypotheses.end_call_events(state, index, judge);
                }
            }
            _ => {}
        }
    }

    /// Takes one event as planned. Of a decision: how the request was found.
    pub(super) fn step(
        &self,
        state: &mut Hypothesis,
        index: usize,
    ) -> Result<Option<Found>, String> {
        let hypotheses = &self.hypotheses;
        self.plan.apply(hypotheses, state, index)?;
        hypotheses.set_log_times(state, index);
        hypotheses.before(state, index)?;
        if !hypotheses.calls {
            hypotheses.run_due(state, index);
        }
        let found = hypotheses.take_without_tags(state, index)?;
        hypotheses.resync(state, self.stream.queue[index], &self.stream.events[index]);
        if !hypotheses.calls {
            let later = self.plan.has(index, Assumption::RunsLater);
            hypotheses.run_unseen(state, index, later);
            if self.plan.has(index, Assumption::ToOffer) {
                hypotheses.go_to_offer(state, index);
            }
        }
        state.reads_beside = 0;
        hypotheses.compare_lines(state, index, false);
        Ok(found)
    }

    /// The model has decided as the kernel did, as far as the capture shows.
    pub(super) fn agrees(&self, queue: QueueId, found: Found) -> bool {
        match found {
            Found::ByTask | Found::ByCpu => true,
            Found::Dispatched => self.several && self.setups[queue.index()].has_scheduler(),
            Found::Queued | Found::Missing => false,
        }
    }

    /// A decision does not follow at its latest moment: another hypothesis, or a miss.
    fn settle(
        &mut self,
        state: Hypothesis,
        decision: Decision,
        found: Found,
        judge: &mut Judge,
    ) -> Hypothesis {
        if let Some(other) = self.explain(&state, decision) {
            judge.hit();
            return other;
        }
        self.missed.insert(decision.not_after);
        match self.undecided(decision, found) {
            Some(why) => judge.unjudged(why),
            None => self.report(decision, judge),
        }
        self.force(decision, found).unwrap_or(state)
    }

    /// The state before an event, as planned.
    pub(super) fn before(&self, index: usize) -> Option<Hypothesis> {
        let (mut state, from) = self.checkpoints.before(index);
        for event in from..index {
            self.step(&mut state, event).ok()?;
        }
        Some(state)
    }

    /// The state after event `index`, if all decisions since `from` follow with these assumptions
    /// before it as well: then they stay.
    pub(super) fn attempt(
        &mut self,
        (state, from): (Hypothesis, usize),
        assumed: &[(usize, Assumption)],
        index: usize,
    ) -> Option<Hypothesis> {
        self.plan.add(assumed);
        let found = self.again(state, from, index);
        match found {
            // States that were kept later had another past.
            Some(_) => self.checkpoints.forget_after(from),
            None => self.plan.undo(assumed),
        }
        found
    }

    fn again(&self, mut state: Hypothesis, from: usize, index: usize) -> Option<Hypothesis> {
        for event in from..=index {
            // Those of earlier events are counted.
            state.notes.clear();
            let found = self.step(&mut state, event).ok()?;
            if !self.follows(event, found) && !self.missed.contains(&event) {
                return None;
            }
        }
        (!self.far || self.leads_on(&state, index)).then_some(state)
    }

    fn follows(&self, index: usize, found: Option<Found>) -> bool {
        found.is_none_or(|found| self.agrees(self.stream.queue[index], found))
    }

    /// The next decisions follow from this state as well.
    fn leads_on(&self, state: &Hypothesis, index: usize) -> bool {
        let mut state = state.clone();
        let mut left = FAR_MOST;
        for event in index + 1..self.stream.events.len().min(index + 1 + FAR_EVENTS) {
            match self.step(&mut state, event) {
                Ok(found) if self.follows(event, found) => left -= usize::from(found.is_some()),
                _ => return false,
            }
            if left == 0 {
                break;
            }
        }
        true
    }
}
