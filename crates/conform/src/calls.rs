//! Mode calls: every call of dd_dispatch_request() that the probes saw.
//!
//! A call is known by its entry and its return, both outside the scheduler's lock. With several
//! CPUs the lock was taken anywhere in between: a decision counts as predicted if it follows at
//! some moment of that interval, and everything after it still does.

use std::collections::BTreeMap;

use blkmq::elevator::{DispatchTime, LEVELS};
use blkmq::request::{IoPrio, RequestId, Sector};
use blkmq::time::Jiffies;
use trace::capture::CaptureDir;

use super::Error;
use super::event::{self, Event, Kind};
use super::ledger::{At, Entry, letter};
use super::links::Links;
use super::model::{Call, Model, Outcome, Step};
use super::replay::{Arrival, Replay};
use super::setup::{Scheduler, Setup};
use super::verdict::{Judge, show_queues, show_request};

/// Compares every call of every device.
pub(super) fn judge(dir: &CaptureDir, setups: &[Setup], judge: &mut Judge) -> Result<(), Error> {
    let capture = super::name_of(dir);
    if setups
        .iter()
        .any(|setup| setup.scheduler == Scheduler::None)
    {
        let what = "scheduler none makes no dispatch calls; compare with mode records".to_owned();
        return Err(Error::Unfit { capture, what });
    }
    let mut traces = event::of_ftrace(dir)?;
    for setup in setups {
        let number = event::number_of(dir, &setup.device)?;
        let events = traces.remove(&number).unwrap_or_default().list;
        let answers = events
            .iter()
            .filter(|e| matches!(e.kind, Kind::Answer { .. }));
        if answers.count() == 0 {
            let what = format!(
                "ftrace.txt has no dispatch calls (probe dd) of {}; compare with mode records",
                setup.device
            );
            return Err(Error::Unfit { capture, what });
        }
        judge.start(&setup.device, events[0].time);
        Calls::new(setup, &events).run(&capture, &events, judge)?;
    }
    Ok(())
}

/// A call that has not returned.
#[derive(Debug)]
struct Asked {
    at: Jiffies,
    /// What it will return, as the trace tells further on: address and tick.
    answer: Option<(Option<u64>, Jiffies)>,
    /// Its decision was found to lie before that of a call that returned earlier.
    decided: bool,
    /// Where in the log it was entered.
    from: usize,
    /// The model at that moment.
    before: Model,
}

#[derive(Debug)]
struct Calls<'a> {
    replay: Replay<'a>,
    /// Calls under way, by CPU.
    asked: BTreeMap<u16, Asked>,
    /// Requests that reached the scheduler's insertion, by CPU: address, priority, tick.
    arriving: BTreeMap<u16, (u64, IoPrio, Jiffies)>,
    /// Completions whose finish probe follows, by CPU.
    finishing: BTreeMap<u16, RequestId>,
    /// Levels of requests that ended on a CPU which has traced nothing since: the count may come
    /// later than the trace.
    late: BTreeMap<u16, usize>,
    /// Latest tick seen.
    now: Jiffies,
}

impl<'a> Calls<'a> {
    fn new(setup: &'a Setup, events: &[Event]) -> Calls<'a> {
        Calls {
            replay: Replay::new(setup, events),
            asked: BTreeMap::new(),
            arriving: BTreeMap::new(),
            finishing: BTreeMap::new(),
            late: BTreeMap::new(),
            now: Jiffies(0),
        }
    }

    fn run(&mut self, capture: &str, events: &[Event], judge: &mut Judge) -> Result<(), Error> {
        let links = Links::new(events);
        for (index, event) in events.iter().enumerate() {
            event
                .check()
                .map_err(|what| self.replay.contradiction(capture, event, what))?;
            if let Kind::Arrive { at, .. } | Kind::Ask { at } | Kind::Answer { at, .. } = event.kind
            {
                self.now = self.now.max(at);
            }
            self.late.remove(&event.cpu);
            self.take(index, event, events, &links, judge)
                .map_err(|what| self.replay.contradiction(capture, event, what))?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        index: usize,
        event: &Event,
        events: &[Event],
        links: &Links,
        judge: &mut Judge,
    ) -> Result<(), String> {
        self.replay.overdue(event, judge);
        match event.kind {
            Kind::Get => {
                self.replay.get(event)?;
            }
            Kind::BioMerge { front } => self.replay.bio_merge(event, front, judge)?,
            Kind::Arrive { rq, at } => {
                let ioprio = event.ioprio.unwrap_or_default();
                self.arriving.insert(event.cpu, (rq, ioprio, at));
            }
            Kind::Insert => {
                let (arrival, now) = self.arrival(event.cpu);
                self.replay.insert(event, arrival, now, judge)?;
            }
            Kind::RequestMerge => {
                let (arrival, now) = self.arrival(event.cpu);
                self.replay.request_merge(event, arrival, now, judge)?;
            }
            Kind::Ask { at } => self.ask(event.cpu, at, links.answer[index]),
            Kind::Answer { rq, at } => {
                let issue = links.issue[index].map(|issue| &events[issue]);
                let cut_off = index > links.last_issued;
                self.answer(event, rq, at, issue, cut_off, judge);
            }
            Kind::Issue => self.replay.issue(event),
            Kind::Requeue => self.replay.requeue(event),
            Kind::Complete { .. } => {
                if let Some(rq) = self.replay.complete(event) {
                    if links.finish_follows[index] {
                        self.finishing.insert(event.cpu, rq);
                    } else {
                        self.finish(event.cpu, rq);
                    }
                }
            }
            Kind::Finish { .. } => {
                if let Some(rq) = self.finishing.remove(&event.cpu) {
                    self.finish(event.cpu, rq);
                }
            }
            Kind::Queue | Kind::Split { .. } | Kind::Plug | Kind::Unplug { .. } => {}
        }
        if self.asked.is_empty() {
            self.replay.resync(self.now, |_| false);
        }
        Ok(())
    }

    fn finish(&mut self, cpu: u16, rq: RequestId) {
        if let Some(level) = self.replay.finish(rq) {
            self.late.insert(cpu, level);
        }
    }

    fn arrival(&mut self, cpu: u16) -> (Option<Arrival>, Jiffies) {
        match self.arriving.remove(&cpu) {
            Some((rq, ioprio, at)) => (
                Some(Arrival {
                    rq: Some(rq),
                    ioprio,
                }),
                at,
            ),
            None => (None, self.now),
        }
    }

    fn ask(&mut self, cpu: u16, at: Jiffies, answer: Option<(Option<u64>, Jiffies)>) {
        let asked = Asked {
            at,
            answer,
            decided: false,
            from: self.replay.log.len(),
            before: self.replay.model.clone(),
        };
        self.asked.insert(cpu, asked);
        self.replay.logging = true;
    }

    fn answer(
        &mut self,
        event: &Event,
        address: Option<u64>,
        at: Jiffies,
        issue: Option<&Event>,
        cut_off: bool,
        judge: &mut Judge,
    ) {
        let asked = self.asked.remove(&event.cpu).unwrap_or_else(|| {
            judge.note("a dispatch call without the probe of its entry");
            Asked {
                at,
                answer: None,
                decided: false,
                from: self.replay.log.len(),
                before: self.replay.model.clone(),
            }
        });
        let kernel = address.map(|address| self.chosen_by_kernel(event.sector, address));
        let calls = self.calls_between(asked.at, at, event.cpu);
        let found = match kernel {
            _ if asked.decided => true,
            Some(None) => false,
            None => self.find(&asked, &calls, None),
            Some(Some(rq)) => self.find(&asked, &calls, Some(rq)),
        };
        let same_shape = match kernel {
            Some(Some(rq)) if found => self.shape_agrees(rq, event, issue, cut_off),
            _ => true,
        };
        if found && same_shape {
            judge.hit();
        } else {
            self.report(event, &asked, kernel, issue, &calls, judge);
            self.replay.has_differed();
            if !found {
                let answer = kernel.flatten();
                self.replay.apply(Step::Dispatch {
                    call: calls[0],
                    answer,
                    forced: true,
                });
            }
        }
        if let Some(Some(rq)) = kernel {
            self.replay.ledger.entry_mut(rq).at = At::Chosen;
        }
        if self.asked.is_empty() {
            self.replay.logging = false;
            self.replay.log.clear();
        }
    }

    /// The queued request of this address, or at least of this start.
    fn chosen_by_kernel(&self, start: Sector, address: u64) -> Option<RequestId> {
        let ledger = &self.replay.ledger;
        ledger
            .oldest(At::Queued, |e| e.rq == Some(address))
            .or_else(|| ledger.oldest(At::Queued, |e| e.sector == start))
    }

    /// The model's request is the one that the driver got: same direction, start and length. At
    /// the end of a trace that was cut off there may be no D.
    fn shape_agrees(
        &self,
        rq: RequestId,
        event: &Event,
        issue: Option<&Event>,
        cut_off: bool,
    ) -> bool {
        let model = &self.replay.model.pool[rq];
        let issued = match issue {
            Some(issue) => {
                model.op.direction() == issue.op.direction() && model.sectors == issue.sectors
            }
            None => cut_off,
        };
        issued && model.sector == event.sector
    }

    /// Looks for a moment of the call at which the model decides as the kernel did, latest first,
    /// and goes on from there. Other calls that have not returned may have decided before.
    fn find(&mut self, asked: &Asked, calls: &[Call], answer: Option<RequestId>) -> bool {
        let last = self.replay.log.len();
        for others in self.orders_of_others() {
            for place in (asked.from..=last).rev() {
                if others.iter().any(|cpu| self.asked[cpu].from > place) {
                    continue;
                }
                for &call in calls {
                    let mut steps: Vec<Step> = Vec::new();
                    steps.extend(others.iter().filter_map(|cpu| self.decision_of(*cpu)));
                    if steps.len() < others.len() {
                        continue;
                    }
                    steps.push(Step::Dispatch {
                        call,
                        answer,
                        forced: false,
                    });
                    if let Some(model) = self.retry(asked, &steps, place) {
                        self.accept(asked, model, steps, place, &others);
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Ways in which other calls under way can have decided before: none first, then each, then
    /// each two. More than that at once has not been seen.
    fn orders_of_others(&self) -> Vec<Vec<u16>> {
        let open = |asked: &Asked| !asked.decided && asked.answer.is_some();
        let cpus: Vec<u16> = self
            .asked
            .iter()
            .filter(|(_, asked)| open(asked))
            .map(|(&cpu, _)| cpu)
            .collect();
        let mut orders = vec![Vec::new()];
        orders.extend(cpus.iter().map(|&cpu| vec![cpu]));
        for &first in &cpus {
            for &second in cpus.iter().filter(|&&second| second != first) {
                orders.push(vec![first, second]);
            }
        }
        orders
    }

    /// What a call can have read outside the lock: of the second look at the tick only a range is
    /// known, and requests whose end another CPU is about to count may not be counted yet.
    fn calls_between(&self, entry: Jiffies, exit: Jiffies, cpu: u16) -> Vec<Call> {
        let mut late = [0; LEVELS];
        for &level in self
            .late
            .iter()
            .filter(|(of, _)| **of != cpu)
            .map(|(_, level)| level)
        {
            late[level] += 1;
        }
        let mut calls = Vec::new();
        for uncounted in [[0; LEVELS], late] {
            for locked in [exit, entry] {
                let time = DispatchTime {
                    entered: entry,
                    locked,
                };
                let call = Call { time, uncounted };
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
        }
        calls
    }

    /// The decision that a call under way will turn out to have made.
    fn decision_of(&self, cpu: u16) -> Option<Step> {
        let asked = &self.asked[&cpu];
        let (address, at) = asked.answer?;
        let answer = match address {
            None => None,
            Some(address) => {
                let of_address = |e: &Entry| e.rq == Some(address);
                Some(self.replay.ledger.oldest(At::Queued, of_address)?)
            }
        };
        let call = Call::at(DispatchTime {
            entered: asked.at,
            locked: at,
        });
        Some(Step::Dispatch {
            call,
            answer,
            forced: false,
        })
    }

    /// The model with `steps` taken before step `place` of the log, if all decisions agree.
    fn retry(&self, asked: &Asked, steps: &[Step], place: usize) -> Option<Model> {
        let log = &self.replay.log;
        let agrees = |model: &mut Model, step: &Step| match (model.apply(step), step) {
            (Outcome::Chose(chosen), Step::Dispatch { answer, forced, .. }) => {
                *forced || chosen == *answer
            }
            _ => true,
        };
        let mut model;
        if place == log.len() {
            model = self.replay.model.clone();
        } else {
            model = asked.before.clone();
            for before in &log[asked.from..place] {
                model.apply(before);
            }
        }
        let rest = steps.iter().chain(&log[place..]);
        for step in rest {
            if !agrees(&mut model, step) {
                return None;
            }
        }
        Some(model)
    }

    /// Goes on from the order that was found.
    fn accept(
        &mut self,
        asked: &Asked,
        model: Model,
        steps: Vec<Step>,
        place: usize,
        others: &[u16],
    ) {
        self.replay.model = model;
        for cpu in others {
            if let Some(other) = self.asked.get_mut(cpu) {
                other.decided = true;
            }
        }
        if self.replay.logging {
            let count = steps.len();
            self.replay.log.splice(place..place, steps);
            self.rebuild(asked, place, count);
        }
    }

    /// Calls that were entered after a step that was found to lie earlier began from another
    /// state.
    fn rebuild(&mut self, asked: &Asked, place: usize, count: usize) {
        let log = &self.replay.log;
        for other in self.asked.values_mut().filter(|other| other.from > place) {
            other.from += count;
            let mut model = asked.before.clone();
            for step in &log[asked.from..other.from] {
                model.apply(step);
            }
            other.before = model;
        }
    }

    fn report(
        &self,
        event: &Event,
        asked: &Asked,
        kernel: Option<Option<RequestId>>,
        issue: Option<&Event>,
        calls: &[Call],
        judge: &mut Judge,
    ) {
        let replay = &self.replay;
        let by_kernel = match (kernel, issue) {
            (None, _) => "nothing".to_owned(),
            (Some(_), Some(d)) => show_request(d),
            (Some(Some(rq)), None) => {
                format!("{}, which the driver never got", replay.ledger.entry(rq))
            }
            (Some(None), None) => format!("a request at {} that was not inserted", event.sector.0),
        };
        let chosen = replay.model.would_choose(calls[0]);
        let by_model = match chosen {
            None => "nothing".to_owned(),
            Some(rq) => show_model(&replay.model, rq),
        };
        let mut text = show_queues(replay);
        let overlap = replay.log.len() - asked.from;
        text.push_str(&format!(
            "  jiffies {} at entry, {} at return; {overlap} changes in between\n",
            calls[0].time.entered.0, calls[0].time.locked.0
        ));
        judge.miss(event.time, by_kernel, by_model, text);
    }
}

fn show_model(model: &Model, rq: RequestId) -> String {
    let request = &model.pool[rq];
    format!(
        "{} {}+{}",
        letter(request.op),
        request.sector.0,
        request.sectors.0
    )
}
