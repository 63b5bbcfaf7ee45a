//! Several CPUs, and nothing but records: which time of a decision explains a `D`?
//!
//! Each is tried by going back to a state before it and applying all events since again. The paths
//! keep their rules: a decision needs a budget, and a request without a tag waits.

use super::{BACK_MOST, Records};
use blkmq::request::{QueueId, RequestId};

use crate::event::Kind;
use crate::hypothesis::{Hypotheses, Hypothesis};

/// Another time may explain only a few: at most one D in so many. Rules of another kernel need
/// more, and diverge.
const ONE_IN: usize = 7;
/// Decisions of other CPUs just before the one that is looked for, with it, at most.
const AHEAD_MOST: usize = 4;
/// D of which as many may be exceptions, at first.
const AT_FIRST: usize = 64;
/// Ways that are tried for one D, at most.
const TRIES_MOST: usize = 24;
/// D that have to follow from a way that is taken, and events until them, at most.
const FAR_MOST: usize = 4;
const FAR_EVENTS: usize = 40;
/// Runs that are tried to come later, and places for each, at most.
const LATER_MOST: usize = 6;
/// Tasks that are tried to have decided before they show it, at most.
const BEGUN_MOST: usize = 4;
/// D whose tasks are tried to have begun nothing, at most.
const NO_RUN_YET_MOST: usize = 6;
/// Largest distance of a record from the scheduler's look at the clock, in nanoseconds.
const TICK_EDGE: i64 = 30_000;

impl Records<'_> {
    /// The state after a D that does not follow at once, if there is a way that leads to it.
    pub(super) fn explain(&mut self, index: usize) -> Option<Hypothesis> {
        if let Some(found) = self.beside_tick(index) {
            return Some(found);
        }
        if let Some(found) = self.begun_before(index) {
            return Some(found);
        }
        let scheduled = self.setups[self.stream.queue[index].index()].has_scheduler();
        if !self.several || !scheduled {
            return None;
        }
        let queue = self.stream.queue[index];
        let explained = self.explained.get(&queue).copied().unwrap_or(0);
        let in_vain = self.in_vain.get(&queue).copied().unwrap_or(0);
        if explained.max(in_vain) * ONE_IN > self.numbers[index] + AT_FIRST {
            return None;
        }
        let found = self.look(index, true).or_else(|| self.look(index, false));
        self.far = false;
        let count = match found {
            Some(_) => &mut self.explained,
            None => &mut self.in_vain,
        };
        *count.entry(queue).or_insert(0) += 1;
        found
    }

    /// Tries each way. `far`: the next events have to follow from it, too.
    fn look(&mut self, index: usize, far: bool) -> Option<Hypothesis> {
        self.far = far;
        let cpus = self.stream.cpus.min(AHEAD_MOST);
        self.decided_ahead(index, 1)
            .or_else(|| self.picked_later(index))
            .or_else(|| self.no_run_yet(index))
            .or_else(|| self.ran_later(index))
            .or_else(|| self.decided_ahead(index, cpus))
    }

    /// The next D follow from this state as well.
    fn leads_on(&self, state: &Hypothesis, index: usize) -> bool {
        let mut state = state.clone();
        let mut left = FAR_MOST;
        for event in index + 1..self.stream.events.len().min(index + 1 + FAR_EVENTS) {
            let Ok(found) = self.step(&mut state, event) else {
                return false;
            };
            if !self.agrees(self.stream.queue[event], found) {
                return false;
            }
            left -= usize::from(found.is_some());
            if left == 0 {
                break;
            }
        }
        true
    }

    /// Takes events `from` to `index` again. None if a D is not as it was.
    fn again(&self, mut state: Hypothesis, from: usize, index: usize) -> Option<Hypothesis> {
        state.notes.clear();
        for event in from..=index {
            let found = self.step(&mut state, event).ok()?;
            let queue = self.stream.queue[event];
            if !self.agrees(queue, found) && !self.forced.contains(&event) {
                return None;
            }
        }
        state.notes.clear();
        (!self.far || self.leads_on(&state, index)).then_some(state)
    }

    /// The same from the latest state before `first`. Checkpoints after that are dropped on
    /// success.
    pub(super) fn attempt(&mut self, first: usize, index: usize) -> Option<Hypothesis> {
        let (state, from) = self.checkpoints.before(first);
        let found = self.again(state, from, index)?;
        self.checkpoints.forget_after(first);
        Some(found)
    }

    /// The tick changed near a record: a decision may have been made in the other one.
    fn beside_tick(&mut self, index: usize) -> Option<Hypothesis> {
        let hz = self.setups[0].hz;
        for event in (index.saturating_sub(16)..=index).rev() {
            let at = self.stream.events[event].time;
            let other = [-TICK_EDGE, TICK_EDGE].into_iter().find(|&edge| {
                let read = blkmq::time::SimTime(at.0.saturating_add_signed(edge));
                read.jiffies(hz) != at.jiffies(hz)
            });
            let Some(edge) = other.filter(|_| !self.plans.beside.contains_key(&event)) else {
                continue;
            };
            self.plans.beside.insert(event, edge);
            if let Some(found) = self.attempt(event, index) {
                return Some(found);
            }
            self.plans.beside.remove(&event);
        }
        None
    }

    /// A task that owns requests was preempted between its decisions and their records: it decided
    /// before this D.
    fn begun_before(&mut self, index: usize) -> Option<Hypothesis> {
        let oldest = index.saturating_sub(BACK_MOST);
        let owned = |&event: &usize| {
            let next = self.stream.next[event].filter(|&next| next > index);
            let shows = next.is_some_and(|next| self.stream.events[next].kind == Kind::Issue);
            let puts = matches!(
                self.stream.events[event].kind,
                Kind::Insert | Kind::RequestMerge
            );
            shows && puts && !self.plans.begun.contains(&event)
        };
        let last: Vec<usize> = (oldest..index).rev().filter(owned).collect();
        for event in last.into_iter().take(BEGUN_MOST) {
            self.plans.begun.insert(event);
            if let Some(found) = self.attempt(event, index) {
                return Some(found);
            }
            self.plans.begun.remove(&event);
        }
        None
    }

    /// Another CPU decided at some time since the request was inserted, latest first, after as many
    /// others as it takes.
    fn decided_ahead(&mut self, index: usize, most: usize) -> Option<Hypothesis> {
        let queue = self.stream.queue[index];
        let oldest = index.saturating_sub(BACK_MOST);
        let since = self.inserted[index].map_or(oldest, |inserted| inserted + 1);
        let since = since.max(oldest).min(index);
        let (mut state, from) = self.checkpoints.before(since);
        let mut places: Vec<(usize, Hypothesis)> = Vec::new();
        for event in from..=index {
            if event >= since && (event == index || self.changes(event)) {
                places.push((event, state.clone()));
            }
            if event < index {
                self.step(&mut state, event).ok()?;
            }
        }
        let issue = &self.stream.events[index];
        let mut tries = 0;
        for (place, state) in places.into_iter().rev() {
            let mut tried = state.clone();
            let mut wanted = Vec::new();
            let decides = loop {
                if wanted.len() == most {
                    break false;
                }
                wanted.push((queue, issue.cpu));
                let chosen = self
                    .hypotheses
                    .decide_ahead(&mut tried, place, (queue, issue.cpu));
                match chosen {
                    None => break false,
                    Some(rq) if Hypotheses::is(&tried, queue, rq, issue) => break true,
                    Some(rq) if self.comes_soon(&tried, (queue, place), rq) => {}
                    Some(_) => break false,
                }
            };
            if !decides {
                continue;
            }
            tries += 1;
            if tries > TRIES_MOST {
                return None;
            }
            let before = self.plans.ahead.get(&place).cloned();
            self.plans.ahead.entry(place).or_default().extend(wanted);
            // The checkpoint of the place still has the former plans for later events.
            if let Some(found) = self.again(state, place, index) {
                self.checkpoints.forget_after(place);
                return Some(found);
            }
            match before {
                Some(before) => self.plans.ahead.insert(place, before),
                None => self.plans.ahead.remove(&place),
            };
        }
        None
    }

    /// A dequeued request has a tag or is the next to get one: its D is among the next, as many as
    /// there are tags.
    fn comes_soon(
        &self,
        state: &Hypothesis,
        (queue, from): (QueueId, usize),
        rq: RequestId,
    ) -> bool {
        let start = Hypotheses::start(state, queue, rq);
        let setup = &self.setups[queue.index()];
        let tags: u32 = setup.hctxs.iter().map(|hctx| hctx.tags).sum();
        let soon = tags as usize + self.stream.cpus;
        let all = self.issues.get(&(queue, start.0));
        let issue = all.and_then(|all| all.iter().find(|&&(at, _)| at >= from));
        issue.is_some_and(|&(_, number)| number <= self.of_queue(queue, from) + soon)
    }

    /// D of a device before an event.
    fn of_queue(&self, queue: QueueId, from: usize) -> usize {
        let before = (0..from).rev().find(|&at| self.stream.queue[at] == queue);
        before.map_or(0, |at| self.numbers[at])
    }

    /// Runs had not yet picked requests that they show later: the latest of them, then more.
    fn picked_later(&mut self, index: usize) -> Option<Hypothesis> {
        let oldest = index.saturating_sub(BACK_MOST);
        let mut limited = Vec::new();
        let issues: Vec<usize> = (oldest..=index)
            .rev()
            .filter(|&event| self.stream.events[event].kind == Kind::Issue)
            .filter(|event| !self.plans.picks.contains_key(event))
            .take(6)
            .collect();
        for event in issues {
            self.plans.picks.insert(event, 1);
            limited.push(event);
            if let Some(found) = self.attempt(event, index) {
                return Some(found);
            }
        }
        for event in limited {
            self.plans.picks.remove(&event);
        }
        None
    }

    /// The task of a D whose request waited for its turn had begun no run, latest of them first.
    fn no_run_yet(&mut self, index: usize) -> Option<Hypothesis> {
        let oldest = index.saturating_sub(BACK_MOST);
        let chosen: Vec<usize> = self.chosen.range(oldest..index).rev().copied().collect();
        for event in chosen.into_iter().take(NO_RUN_YET_MOST) {
            if self.plans.no_run_yet.insert(event) {
                if let Some(found) = self.attempt(event, index) {
                    return Some(found);
                }
                self.plans.no_run_yet.remove(&event);
            }
        }
        None
    }

    /// Runs that show nowhere came later than they were caused.
    fn ran_later(&mut self, index: usize) -> Option<Hypothesis> {
        let oldest = index.saturating_sub(BACK_MOST);
        let (mut state, from) = self.checkpoints.before(oldest);
        let mut ran = Vec::new();
        for event in from..index {
            state.ran_unseen = false;
            self.step(&mut state, event).ok()?;
            if state.ran_unseen {
                ran.push(event);
            }
        }
        for &event in ran.iter().rev().take(LATER_MOST) {
            let until = (event + 1..=index).rev();
            let until: Vec<usize> = until.filter(|&until| self.changes(until)).collect();
            for until in until.into_iter().take(LATER_MOST) {
                let before = self.plans.later.clone();
                self.plans.later.extend(event..until);
                if let Some(found) = self.attempt(event, index) {
                    return Some(found);
                }
                self.plans.later = before;
            }
        }
        None
    }

    /// An event that can change the scheduler's answer, or the free tags.
    fn changes(&self, event: usize) -> bool {
        matches!(
            self.stream.events[event].kind,
            Kind::Insert
                | Kind::RequestMerge
                | Kind::BioMerge { .. }
                | Kind::Issue
                | Kind::Complete { .. }
        )
    }
}
