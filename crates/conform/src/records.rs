//! Mode records: every `D` of blktrace, with nothing but records.
//!
//! The paths decide which actor dispatches a request: a `D` is predicted if its task, or an actor
//! on its CPU, offers this request. On one CPU the order of records is the order of the events. On
//! several the time of a decision is not recorded: a `D` counts as predicted, too, if the scheduler
//! has returned the request and it waits somewhere for its turn, or can have returned it at some
//! time since it was inserted, with every `D` since unchanged (`records/search.rs`).

mod race;
mod report;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use blkmq::request::QueueId;
use blkmq::time::SimTime;

use super::Error;
use super::checkpoints::Checkpoints;
use super::event::{Event, Events, Kind};
use super::hypothesis::{Found, Hypotheses, Hypothesis};
use super::judge::{Judge, Unjudged};
use super::setup::Setup;
use super::stream::{Return, Stream};
use super::submitters::Processes;

/// Decisions at one event, at most.
const PICKS_MOST: u32 = 1 << 20;
/// Events that a search goes back, at most.
const BACK_MOST: usize = 192;

/// Compares every D of every device.
pub(super) fn judge(
    capture: &str,
    setups: &[Setup],
    traces: &[Events],
    processes: &Processes,
    judge: &mut Judge,
) -> Result<(), Error> {
    let mut events: Vec<(QueueId, Event)> = Vec::new();
    for (queue, trace) in traces.iter().enumerate() {
        let of_device = trace.list.iter().cloned();
        events.extend(of_device.map(|event| (QueueId(queue as _), event)));
    }
    events.sort_by_key(|(_, event)| event.time);
    let mut stream = Stream::new(events);
    stream.refused_by(|queue| setups[queue.index()].is_mapped());
    let setups = processes.add_to(setups, &mut stream);
    Records::new(&stream, &setups).run(capture, judge)
}

#[derive(Clone, Debug, Default)]
struct Plans {
    /// Before an event: decisions that show later, each by its queue and the CPU that decides.
    ahead: BTreeMap<usize, Vec<(QueueId, u16)>>,
    /// At an event: so many decisions, the others later.
    picks: BTreeMap<usize, u32>,
    /// Before an event: a decision to which no rule led, that a later D shows.
    instead: BTreeMap<usize, usize>,
    /// Events after which pending runs do not run yet.
    later: BTreeSet<usize>,
    /// Insertions after which a task continues to its next offer to the driver.
    begun: BTreeSet<usize>,
    /// D whose tasks have begun no run of their own.
    no_run_yet: BTreeSet<usize>,
    /// At an event: the clock is read so many nanoseconds beside its record.
    beside: BTreeMap<usize, i64>,
}

#[derive(Debug)]
struct Records<'a> {
    hypotheses: Hypotheses<'a>,
    stream: &'a Stream,
    setups: &'a [Setup],
    plans: Plans,
    /// Each D that no rule led to.
    forced: BTreeSet<usize>,
    checkpoints: Checkpoints,
    /// D whose requests waited for their turn.
    chosen: BTreeSet<usize>,
    /// How many D of a device another moment explains.
    explained: BTreeMap<QueueId, usize>,
    /// And how many nothing that was tried explains.
    in_vain: BTreeMap<QueueId, usize>,
    /// A way has to lead further than to the D that is looked for.
    far: bool,
    /// More than one CPU dispatches requests.
    several: bool,
    /// The event that inserted the request of a D; where no scheduler has it, or gave it back.
    inserted: Vec<Option<usize>>,
    /// The D of the request of an insertion.
    issued: Vec<Option<usize>>,
    /// For each start: each D with its number.
    issues: BTreeMap<(QueueId, u64), Vec<(usize, usize)>>,
    /// How many D of its device there were up to an event.
    numbers: Vec<usize>,
}

impl<'a> Records<'a> {
    fn new(stream: &'a Stream, setups: &'a [Setup]) -> Records<'a> {
        let cpus = |setup: &Setup| {
            setup
                .hctxs
                .iter()
                .map(|hctx| hctx.cpus.len())
                .sum::<usize>()
        };
        let inserted = inserted(stream, setups);
        let mut issued = vec![None; stream.events.len()];
        for (issue, insert) in inserted.iter().enumerate() {
            if let Some(insert) = insert {
                issued[*insert] = Some(issue);
            }
        }
        Records {
            hypotheses: Hypotheses::new(stream, setups, false),
            stream,
            setups,
            plans: Plans::default(),
            forced: BTreeSet::new(),
            checkpoints: Checkpoints::new(setups),
            chosen: BTreeSet::new(),
            explained: BTreeMap::new(),
            in_vain: BTreeMap::new(),
            far: false,
            several: setups.iter().any(|setup| cpus(setup) > 1),
            inserted,
            issued,
            issues: BTreeMap::new(),
            numbers: Vec::new(),
        }
    }

    fn number(&mut self) {
        let mut counts: BTreeMap<QueueId, usize> = BTreeMap::new();
        for (index, event) in self.stream.events.iter().enumerate() {
            let queue = self.stream.queue[index];
            let count = counts.entry(queue).or_insert(0);
            if event.kind == Kind::Issue {
                *count += 1;
                let of_start = self.issues.entry((queue, event.sector.0)).or_default();
                of_start.push((index, *count));
            }
            self.numbers.push(*count);
        }
    }

    fn run(&mut self, capture: &str, judge: &mut Judge) -> Result<(), Error> {
        self.number();
        let mut state = self.hypotheses.first();
        let mut starts: BTreeMap<QueueId, SimTime> = BTreeMap::new();
        for index in 0..self.stream.events.len() {
            let event = &self.stream.events[index];
            let queue = self.stream.queue[index];
            let device = &self.setups[queue.index()].device;
            let start = *starts.entry(queue).or_insert(event.time);
            judge.start(device, start);
            self.checkpoints
                .keep(&state, index, index.saturating_sub(BACK_MOST));
            let found = self
                .step(&mut state, index)
                .map_err(|what| event.contradiction(capture, device, what))?;
            if found == Some(Found::Chosen) {
                self.chosen.insert(index);
            }
            if event.kind == Kind::Issue {
                if self.agrees(queue, found) {
                    judge.hit();
                } else if let Some(other) = self.explain(index) {
                    state = other;
                    judge.hit();
                } else {
                    self.miss(index, found, judge);
                    if let Some(other) = self.force(index, found) {
                        state = other;
                    }
                }
            }
            for what in state.notes.drain(..) {
                judge.note(what);
            }
        }
        Ok(())
    }

    /// The model has dispatched the kernel's request, as far as the records show.
    fn agrees(&self, queue: QueueId, found: Option<Found>) -> bool {
        let scheduled = self.setups[queue.index()].has_scheduler();
        match found {
            None | Some(Found::Offered | Found::Elsewhere) => true,
            Some(Found::Chosen) => self.several && scheduled,
            Some(Found::Taken | Found::Unknown) => false,
        }
    }

    /// Takes one event as planned. Of a D: how its request was found.
    fn step(&self, state: &mut Hypothesis, index: usize) -> Result<Option<Found>, String> {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let hypotheses = &self.hypotheses;
        for &ahead in self.plans.ahead.get(&index).into_iter().flatten() {
            hypotheses.decide_ahead(state, index, ahead);
        }
        if let Some(&issue) = self.plans.instead.get(&index) {
            hypotheses.decide_instead(state, issue);
        }
        let picks = self.plans.picks.get(&index).copied();
        state.world.outside.picks = picks.unwrap_or(PICKS_MOST);
        state.no_run_yet = self.plans.no_run_yet.contains(&index);
        state.reads_beside = self.plans.beside.get(&index).copied().unwrap_or(0);
        hypotheses.before(state, index)?;
        hypotheses.run_due(state, index);
        let mut found = None;
        if event.kind == Kind::Issue {
            let how = hypotheses.issue(state, index);
            found = Some(how);
            if !state.kernels[queue.index()].issue(event, true) && how == Found::Unknown {
                hypotheses.stand_in(state, index);
            }
            hypotheses.end_early(state, index);
        } else {
            hypotheses.take(state, index)?;
        }
        hypotheses.resync(state, queue, event);
        let later = self.plans.later.contains(&index);
        hypotheses.run_unseen(state, index, later);
        if self.plans.begun.contains(&index) {
            hypotheses.go_to_offer(state, index);
        }
        state.reads_beside = 0;
        Ok(found)
    }

    /// The kernel's choice replaces the decision of the model, and later events are applied again.
    fn force(&mut self, index: usize, found: Option<Found>) -> Option<Hypothesis> {
        if found != Some(Found::Taken) {
            return None;
        }
        let oldest = index.saturating_sub(BACK_MOST);
        let (mut state, from) = self.checkpoints.before(index);
        for event in from..index {
            self.step(&mut state, event).ok()?;
        }
        let queue = self.stream.queue[index];
        let mut at = index;
        let mut picks = 0;
        let is_queued = |state: &Hypothesis, rq| {
            Hypotheses::place(state, queue, rq) == blkmq::request::Place::Elevator
        };
        let mut tried = state.clone();
        let other = self.hypotheses.would_offer(&mut tried, index)?;
        if !is_queued(&state, other) {
            let (mut state, from) = self.checkpoints.before(oldest);
            for event in from..index {
                let before = is_queued(&state, other);
                self.step(&mut state, event).ok()?;
                if before && !is_queued(&state, other) {
                    at = event;
                    picks = PICKS_MOST - state.world.outside.picks;
                }
            }
            if at == index || self.plans.picks.contains_key(&at) {
                return None;
            }
            self.plans.picks.insert(at, picks.saturating_sub(1));
        }
        if self.plans.instead.contains_key(&at) {
            self.plans.picks.remove(&at);
            return None;
        }
        self.plans.instead.insert(at, index);
        let found = self.attempt(at, index);
        if found.is_none() {
            self.plans.instead.remove(&at);
            self.plans.picks.remove(&at);
        }
        found
    }

    /// No rule led to it. A divergence, unless the records lack the data to decide.
    fn miss(&mut self, index: usize, found: Option<Found>, judge: &mut Judge) {
        self.forced.insert(index);
        match self.is_race(index, found) {
            true => judge.unjudged(Unjudged::Order),
            false => self.report(index, judge),
        }
    }
}

/// The insertion of each D's request: the latest of its range before it. Without a scheduler a
/// request that comes back waits as one that was inserted.
fn inserted(stream: &Stream, setups: &[Setup]) -> Vec<Option<usize>> {
    let mut known: BTreeMap<(QueueId, u64), Vec<usize>> = BTreeMap::new();
    let mut inserted = vec![None; stream.events.len()];
    for (index, event) in stream.events.iter().enumerate() {
        let place = (stream.queue[index], event.sector.0);
        match event.kind {
            Kind::Requeue if !setups[place.0.index()].has_scheduler() => {
                let of_start = known.entry(place).or_default();
                match stream.returns[index] {
                    Return::Started => of_start.push(index),
                    Return::Refused => {
                        of_start.pop();
                        of_start.push(index);
                    }
                    Return::Listed => {}
                }
            }
            Kind::Insert => known.entry(place).or_default().push(index),
            Kind::Issue => inserted[index] = known.get_mut(&place).and_then(Vec::pop),
            _ => {}
        }
    }
    inserted
}
