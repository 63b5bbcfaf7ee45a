//! Mode calls: every dispatch call of the scheduler that the probes saw.
//!
//! A call is known by its entry and its return, both outside the scheduler's lock. With several
//! CPUs the lock was taken anywhere in between: a decision counts as predicted if it follows at
//! some moment of that interval, and everything after it still does. Such a moment is looked for
//! by going back to a state before the call and taking all events since once more
//! (`calls/search.rs`). Read next: `calls/decision.rs`.

mod ask;
mod decision;
mod entries;
mod report;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use blkmq::request::{QueueId, Sector};
use blkmq::time::SimTime;
use trace::capture::CaptureDir;

use super::checkpoints::Checkpoints;
use super::event::{self, Event, Kind};
use super::hypothesis::{Hypotheses, Hypothesis};
use super::judge::Judge;
use super::script::Script;
use super::setup::Setup;
use super::stream::Stream;
use super::submitters::Processes;
use super::{Error, Options, decision_time};
use decision::{Plan, Read};

/// Compares every call of every device.
pub(super) fn judge(
    dir: &CaptureDir,
    options: &Options,
    setups: &[Setup],
    script: &Script,
    judge: &mut Judge,
) -> Result<(), Error> {
    let capture = super::name_of(dir);
    if setups.iter().any(|setup| !setup.has_scheduler()) {
        let what = "scheduler none makes no dispatch calls; compare with mode records".to_owned();
        return Err(Error::Unfit { capture, what });
    }
    let mut traces = event::of_ftrace(dir)?;
    for (name, count) in &traces.unread {
        let name = if name.is_empty() { "no name" } else { name };
        judge.note(&format!(
            "ftrace.txt: {count} events that are not read: {name}"
        ));
    }
    if traces.erases > 0 {
        let erases = traces.erases;
        judge.note(&format!(
            "ftrace.txt: {erases} events of secure erases are taken as write zeroes"
        ));
    }
    let mut events: Vec<(QueueId, Event)> = Vec::new();
    let mut names = BTreeMap::new();
    for (queue, setup) in setups.iter().enumerate() {
        let number = event::number_of(dir, &setup.device)?;
        let mut trace = traces.devices.remove(&number).unwrap_or_default();
        event::mark_sleeps(dir, &setup.device, &mut trace)?;
        event::mark_refused(dir, &setup.device, &mut trace)?;
        decision_time::add_exits(dir, options, setup, &mut trace, judge);
        names.append(&mut trace.names);
        let mut of_device = trace.list;
        let answer = |e: &Event| matches!(e.kind, Kind::Answer { .. });
        if !of_device.iter().any(answer) {
            let what = format!(
                "ftrace.txt has no dispatch calls (probe dd) of {}; compare with mode records",
                setup.device
            );
            return Err(Error::Unfit { capture, what });
        }
        if !of_device.iter().any(|e| matches!(e.kind, Kind::Ask { .. })) {
            of_device = entries::with_entries(of_device);
            let device = &setup.device;
            judge.note(&format!(
                "{device}: no probe at the entry of dispatch calls: each may have begun after the \
                 last event of its CPU, and one without a request is unknown"
            ));
        }
        events.extend(
            of_device
                .into_iter()
                .map(|event| (QueueId(queue as _), event)),
        );
    }
    events.sort_by_key(|(_, event)| event.place.number());
    if setups.iter().any(Setup::reports_events) {
        judge.reports_events();
    }
    let mut stream = Stream::new(events);
    stream.refused_by(|queue| setups[queue.index()].is_mapped());
    let setups = Processes::of_script(dir, script, &names)?.add_to(setups, &mut stream);
    Calls::new(&stream, &setups).run(&capture, judge)
}

/// The same for calls that the log records, in their order, and for the log.
pub(super) fn judge_stream(
    capture: &str,
    stream: &Stream,
    setups: &[Setup],
    judge: &mut Judge,
) -> Result<(), Error> {
    Calls::new(stream, setups).run(capture, judge)
}

#[derive(Debug)]
struct Calls<'a> {
    hypotheses: Hypotheses<'a>,
    stream: &'a Stream,
    setups: &'a [Setup],
    /// How answers came about that were not simply decided at their return.
    plans: BTreeMap<usize, Plan>,
    /// Decisions that were made before their return, with the start of what they gave.
    early: BTreeMap<usize, Sector>,
    checkpoints: Checkpoints,
    open: BTreeSet<usize>,
    /// Turns given so far.
    turns: u64,
    uncompared: Vec<usize>,
}

impl<'a> Calls<'a> {
    fn new(stream: &'a Stream, setups: &'a [Setup]) -> Calls<'a> {
        Calls {
            hypotheses: Hypotheses::new(stream, setups, true),
            stream,
            setups,
            plans: BTreeMap::new(),
            early: BTreeMap::new(),
            checkpoints: Checkpoints::new(setups),
            open: BTreeSet::new(),
            turns: 0,
            uncompared: Vec::new(),
        }
    }

    fn run(&mut self, capture: &str, judge: &mut Judge) -> Result<(), Error> {
        let after = self.hypotheses.after_tick();
        if after.0 > 0 {
            let us = after.0 / 1000;
            judge.takes(vec![format!(
                "timers of the scheduler run {us} us after their tick, as the earliest one in the \
                 capture"
            )]);
        }
        let mut state = self.hypotheses.first();
        let mut starts: BTreeMap<QueueId, SimTime> = BTreeMap::new();
        let mut reported = 0;
        for index in 0..self.stream.events.len() {
            let event = &self.stream.events[index];
            let queue = self.stream.queue[index];
            let device = &self.setups[queue.index()].device;
            let start = *starts.entry(queue).or_insert(event.time);
            judge.start(device, start);
            let oldest = self.open.first().copied().unwrap_or(index);
            self.checkpoints.keep(&state, index, oldest);
            match (event.kind, self.stream.other_end[index]) {
                (Kind::Ask { .. }, Some(_)) => {
                    self.open.insert(index);
                }
                (Kind::Answer { .. }, Some(asked)) => {
                    self.open.remove(&asked);
                }
                _ => {}
            }
            let agrees = self
                .step(&mut state, index)
                .map_err(|what| event.contradiction(capture, device, what))?;
            if matches!(event.kind, Kind::Answer { .. }) {
                if agrees {
                    judge.hit();
                } else {
                    state = self.settle(&state, index, judge);
                }
            }
            self.hypotheses.forget_events(&mut state, event.time, judge);
            self.reported(&mut state, index, judge);
            for what in state.notes.drain(..) {
                judge.note(what);
            }
            reported = reported.max(index);
        }
        Hypotheses::remaining_events(&state, judge);
        self.hypotheses.end_lines(&mut state, judge);
        Ok(())
    }

    /// Events that the scheduler recorded: those of its timer at once, those of a dispatch call
    /// when it has returned.
    fn reported(&mut self, state: &mut Hypothesis, index: usize, judge: &mut Judge) {
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
                    .partition::<Vec<usize>, _>(|reported| here(reported));
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

    /// Takes one event as planned. False: the scheduler decides otherwise than the kernel's did.
    fn step(&mut self, state: &mut Hypothesis, index: usize) -> Result<bool, String> {
        self.hypotheses.set_log_times(state, index);
        let agrees = self.step_unlogged(state, index);
        self.hypotheses.compare_lines(state, index, false);
        agrees
    }

    fn step_unlogged(&mut self, state: &mut Hypothesis, index: usize) -> Result<bool, String> {
        self.hypotheses.before(state, index)?;
        let queue = self.stream.queue[index];
        // A task that waits for a tag finds one at its G and not before.
        let waits = self.stream.while_waiting[index];
        if waits {
            self.hypotheses.deny(state, index);
        }
        let hidden = waits.then(|| state.world.hide_tags(queue));
        let agrees = self.take(state, index);
        if let Some(hidden) = hidden {
            state.world.show_tags(queue, &hidden);
        }
        agrees
    }

    fn take(&mut self, state: &mut Hypothesis, index: usize) -> Result<bool, String> {
        let event = &self.stream.events[index];
        match event.kind {
            Kind::Ask { hctx, .. } => self.ask(state, index, hctx),
            Kind::Answer { .. } => return Ok(self.answer(state, index)),
            Kind::Issue => {
                self.hypotheses.issue(state, index);
                let queue = self.stream.queue[index].index();
                state.kernels[queue].issue(event, false);
            }
            _ => self.hypotheses.take(state, index)?,
        }
        let queue = self.stream.queue[index];
        self.hypotheses.resync(state, queue, event);
        Ok(true)
    }
}
