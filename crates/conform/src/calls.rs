//! Mode calls: every dispatch call of the scheduler that the probes saw.
//!
//! A call is known by its entry and its return, both outside the scheduler's lock. With several
//! CPUs the lock was taken anywhere in between: a decision counts as predicted if it follows at
//! some moment of that interval, and everything after it still does. Such a moment is looked for
//! by going back to a state before the call and taking all events since once more.

mod entries;
mod report;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use blkmq::elevator::LEVELS;
use blkmq::env::Count;
use blkmq::path::Frame;
use blkmq::request::{HctxId, QueueId, RequestId};
use blkmq::time::Jiffies;
use trace::capture::CaptureDir;

use super::Error;
use super::event::{self, Event, Kind};
use super::follow::{Follow, State};
use super::kept::Kept;
use super::script::Script;
use super::setup::Setup;
use super::stream::Stream;
use super::submitters::Processes;
use super::verdict::{Judge, Unjudged};
use super::world::{Goal, Stop};

/// Compares every call of every device.
pub(super) fn judge(
    dir: &CaptureDir,
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
        names.append(&mut trace.names);
        event::tell_sleeps(dir, &setup.device, &mut trace)?;
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
                "{device}: no probe at the entry of dispatch calls: each may have begun behind the \
                 last event of its CPU, and one that gave nothing is not known"
            ));
        }
        events.extend(
            of_device
                .into_iter()
                .map(|event| (QueueId(queue as _), event)),
        );
    }
    events.sort_by_key(|(_, event)| event.place.number());
    if setups.iter().any(Setup::tells) {
        judge.tells();
    }
    let mut stream = Stream::new(events);
    let setups = Processes::of_script(dir, script, &names)?.add_to(setups, &mut stream);
    Calls::new(&stream, &setups).run(&capture, judge)
}

/// The same of calls that the log tells of, in their order, and of the log.
pub(super) fn judge_stream(
    capture: &str,
    stream: &Stream,
    setups: &[Setup],
    judge: &mut Judge,
) -> Result<(), Error> {
    Calls::new(stream, setups).run(capture, judge)
}

/// What a call read outside the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Read {
    /// The tick under the lock.
    locked: Jiffies,
    /// Requests per level whose end was on its way and was not counted yet.
    uncounted: [u32; LEVELS],
}

/// How an answer came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// At its return.
    Then(Read),
    /// Before the event of this number; of several there in the order of their turns.
    Before { event: usize, turn: u64, read: Read },
    /// No rule led to it.
    Imposed,
}

#[derive(Debug)]
struct Calls<'a> {
    follow: Follow<'a>,
    stream: &'a Stream,
    setups: &'a [Setup],
    /// How answers came about that were not simply decided at their return.
    plans: BTreeMap<usize, Plan>,
    /// Decisions that were made before their return: the request's shape agrees.
    early: BTreeMap<usize, bool>,
    kept: Kept,
    /// Calls that have not returned.
    open: BTreeSet<usize>,
    /// Turns given so far.
    turns: u64,
    /// What calls under way have told.
    untold: Vec<usize>,
}

impl<'a> Calls<'a> {
    fn new(stream: &'a Stream, setups: &'a [Setup]) -> Calls<'a> {
        Calls {
            follow: Follow::new(stream, setups, true),
            stream,
            setups,
            plans: BTreeMap::new(),
            early: BTreeMap::new(),
            kept: Kept::new(setups),
            open: BTreeSet::new(),
            turns: 0,
            untold: Vec::new(),
        }
    }

    fn run(&mut self, capture: &str, judge: &mut Judge) -> Result<(), Error> {
        let behind = self.follow.behind_tick();
        if behind.0 > 0 {
            let us = behind.0 / 1000;
            judge.takes(vec![format!(
                "timers of the scheduler run {us} us behind their tick, as soon as any that the \
                 capture shows"
            )]);
        }
        let mut state = self.follow.first();
        let mut starts: BTreeMap<QueueId, blkmq::time::SimTime> = BTreeMap::new();
        let mut told = 0;
        for index in 0..self.stream.events.len() {
            let event = &self.stream.events[index];
            let queue = self.stream.queue[index];
            let device = &self.setups[queue.index()].device;
            let start = *starts.entry(queue).or_insert(event.time);
            judge.start(device, start);
            let oldest = self.open.first().copied().unwrap_or(index);
            self.kept.keep(&state, index, oldest);
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
            self.follow.forget_told(&mut state, event.time, judge);
            self.told(&mut state, index, judge);
            for what in state.notes.drain(..) {
                judge.note(what);
            }
            told = told.max(index);
        }
        Follow::left_to_tell(&state, judge);
        self.follow.end_lines(&mut state, judge);
        Ok(())
    }

    /// Events that the scheduler told: those of its timer at once, those of a dispatch call when
    /// that has returned.
    fn told(&mut self, state: &mut State, index: usize, judge: &mut Judge) {
        let event = &self.stream.events[index];
        match event.kind {
            Kind::Told(told) if told.is_of_timer() => {
                self.follow.compare_told(state, index, told, judge);
            }
            Kind::Told(_) => self.untold.push(index),
            Kind::Answer { .. } => {
                let here = |&told: &usize| self.stream.events[told].cpu == event.cpu;
                let (now, later) = self
                    .untold
                    .iter()
                    .partition::<Vec<usize>, _>(|told| here(told));
                self.untold = later;
                self.follow.compare_told_by_call(state, index, &now, judge);
                if self.open.is_empty() {
                    self.follow.end_telling(state, index, judge);
                }
            }
            _ => {}
        }
    }

    /// Takes one event as planned. False: the scheduler decides otherwise than the kernel's did.
    fn step(&mut self, state: &mut State, index: usize) -> Result<bool, String> {
        self.follow.tell_times(state, index);
        let agrees = self.step_unlogged(state, index);
        self.follow.compare_lines(state, index, false);
        agrees
    }

    fn step_unlogged(&mut self, state: &mut State, index: usize) -> Result<bool, String> {
        self.follow.before(state, index)?;
        let queue = self.stream.queue[index];
        // A task that waits for a tag finds one at its G and not before.
        let waits = self.stream.while_waiting[index];
        if waits {
            self.follow.deny(state, index);
        }
        let hidden = waits.then(|| state.world.hide_tags(queue));
        let agrees = self.take(state, index);
        if let Some(hidden) = hidden {
            state.world.show_tags(queue, &hidden);
        }
        agrees
    }

    fn take(&mut self, state: &mut State, index: usize) -> Result<bool, String> {
        let event = &self.stream.events[index];
        match event.kind {
            Kind::Ask { hctx, .. } => self.ask(state, index, hctx),
            Kind::Answer { .. } => return Ok(self.answer(state, index)),
            Kind::Issue => {
                self.follow.issue(state, index);
                let queue = self.stream.queue[index].index();
                state.kernels[queue].issue(event, false);
            }
            _ => self.follow.take(state, index)?,
        }
        let queue = self.stream.queue[index];
        self.follow.resync(state, queue, event);
        Ok(true)
    }

    /// The task comes to the point where it asks the scheduler.
    fn ask(&self, state: &mut State, index: usize, hctx: Option<u16>) {
        let queue = self.stream.queue[index];
        let task = self.follow.at(state, index);
        let hctx = match hctx {
            Some(hctx) => HctxId(hctx),
            None => self.hctx_asked(state, index),
        };
        for _ in 0..64 {
            let acting = self.follow.acting(state, task);
            let stop = state.world.go(acting, Goal::Show);
            let of = state.world.actors[acting].stack.last().map(Frame::queue);
            match stop {
                Stop::Pick if of == Some(queue) => return,
                Stop::Pick => Follow::leave_run(state, acting),
                Stop::Offer(_) => {
                    state.world.refuse(acting, Goal::Show);
                }
                Stop::Later => {}
                Stop::Idle if acting == task => Follow::begin_run(state, task, queue, hctx),
                Stop::Shown if acting != task => state.world.actors[acting].shown.clear(),
                Stop::Idle | Stop::Parked | Stop::Shown => {
                    self.follow.begin_aside(state, task, queue, hctx);
                }
            }
        }
    }

    /// The hctx of a call of which the capture does not tell: where one hctx has no request of
    /// another's, that of the request that it gave; else that of the CPU.
    fn hctx_asked(&self, state: &State, index: usize) -> HctxId {
        let queue = self.stream.queue[index];
        let q = state.world.mq.queue(queue);
        let answer = self.stream.other_end[index].unwrap_or(index);
        let given = match self.stream.events[answer].kind {
            Kind::Answer { rq: Some(_), .. } if !q.settings.sq_sched() => {
                Follow::queued_at(state, queue, &self.stream.events[answer])
            }
            _ => None,
        };
        match given {
            Some(rq) => q.with_pool(|pool| pool[rq].hctx),
            None => state.world.hctx_of(queue, self.stream.events[index].cpu),
        }
    }

    /// The scheduler answers, now or as planned. False if the kernel's answered otherwise.
    fn answer(&mut self, state: &mut State, index: usize) -> bool {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, at } = event.kind else {
            unreachable!("an answer");
        };
        let queue = self.stream.queue[index];
        if self.stream.other_end[index].is_none() {
            self.ask(state, index, None);
        }
        let agrees = match self.plans.get(&index).copied() {
            Some(Plan::Before { .. }) => self.early.get(&index).copied().unwrap_or(false),
            Some(Plan::Imposed) => {
                self.impose(state, index);
                true
            }
            Some(Plan::Then(read)) => self.decide(state, index, read),
            None => self.decide(
                state,
                index,
                Read {
                    locked: at,
                    uncounted: [0; LEVELS],
                },
            ),
        };
        if let Some(address) = rq {
            state.kernels[queue.index()].choose(address, event.sector);
        }
        if agrees {
            self.follow.go_on(state, index);
            self.follow.resync(state, queue, event);
        }
        agrees
    }

    /// The scheduler decides for the task of an answer. True if it does as the kernel's.
    fn decide(&self, state: &mut State, index: usize, read: Read) -> bool {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.follow.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop != Stop::Pick {
            return false;
        }
        let time = self.follow.decides_at(state, index, read.locked);
        state
            .world
            .place(task, event.cpu, time, self.follow.hint(index));
        state.world.actors[task].cpu.ktime = state.plugged[self.stream.task[index]];
        self.count(state, queue, read.uncounted, -1);
        let before = Follow::held_by_run(state, task);
        state.world.decide(task, Goal::Run);
        let chosen = Follow::in_hand(state, task).filter(|rq| !before.contains(rq));
        self.count(state, queue, read.uncounted, 1);
        self.is_kernels(state, index, chosen)
    }

    fn count(&self, state: &mut State, queue: QueueId, counts: [u32; LEVELS], by: i32) {
        let task = self.stream.tasks + self.stream.cpus;
        let world = &mut state.world;
        let Some(completed) = world.mq.queue(queue).elevator.completed() else {
            return;
        };
        for (level, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let cpu = &mut world.actors[task].cpu;
            cpu.begin_label();
            completed[level].add(cpu, by * count as i32);
        }
    }

    /// The kernel's answer is this one: nothing, or this direction, start and length. At the end
    /// of a trace that was cut off there may be no D that tells the length.
    fn is_kernels(&self, state: &State, index: usize, chosen: Option<RequestId>) -> bool {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, .. } = event.kind else {
            return false;
        };
        let (Some(_), Some(chosen)) = (rq, chosen) else {
            return rq.is_none() && chosen.is_none();
        };
        let issue = self.stream.issue[index].map(|issue| &self.stream.events[issue]);
        let q = state.world.mq.queue(self.stream.queue[index]);
        q.with_pool(|pool| {
            let model = &pool[chosen];
            let issued = match issue {
                Some(issue) => {
                    model.op.direction() == issue.op.direction() && model.sectors == issue.sectors
                }
                None => index > self.stream.last_issued,
            };
            issued && model.sector == event.sector
        })
    }

    /// The kernel's choice becomes the model's, and the run that asked is over.
    fn impose(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, .. } = event.kind else {
            return;
        };
        let queue = self.stream.queue[index];
        let task = self.follow.acting(state, self.stream.task[index]);
        if state.world.actors[task].stop == Stop::Pick {
            Follow::leave_run(state, task);
        }
        state.differs[queue.index()] = true;
        if rq.is_some()
            && let Some(chosen) = Follow::queued_at(state, queue, event)
        {
            self.follow.impose(state, queue, chosen);
        }
    }

    /// A decision that does not follow at its return: another moment of the call, or a miss.
    fn settle(&mut self, state: &State, index: usize, judge: &mut Judge) -> State {
        // The log tells when a call was decided.
        let several = self.stream.logs.is_empty();
        if let Some(found) = several.then(|| self.explain(state, index)).flatten() {
            judge.hit();
            return found;
        }
        let entered = self.stream.other_end[index].is_some();
        self.plans.insert(index, Plan::Imposed);
        let (mut before, from) = self.kept.before(index);
        for event in from..index {
            // It went well the first time.
            let went = self.replayed(&mut before, event);
            debug_assert!(
                went.is_some(),
                "event {event} goes otherwise the second time"
            );
        }
        match entered {
            true => self.report(&before, index, judge),
            false => judge.unjudged(Unjudged::Probe),
        }
        let went = self.replayed(&mut before, index);
        debug_assert!(went.is_some());
        before.notes.clear();
        before
    }

    /// Takes an event again, with the decisions that are planned before it.
    fn replayed(&mut self, state: &mut State, index: usize) -> Option<()> {
        // A call that is decided before an event returns behind it.
        let mut due: Vec<(u64, usize, Read)> = self
            .plans
            .range(index..)
            .filter_map(|(&answer, &plan)| match plan {
                Plan::Before { event, turn, read } if event == index => Some((turn, answer, read)),
                _ => None,
            })
            .collect();
        due.sort_unstable_by_key(|&(turn, ..)| turn);
        for (_, answer, read) in due {
            // What a way that is only tried finds must not be remembered.
            if !self.decide(state, answer, read) {
                return None;
            }
            self.early.insert(answer, true);
            // Until its return it stands behind the decision.
        }
        match self.step(state, index) {
            Ok(true) => Some(()),
            _ => None,
        }
    }
}
