//! What may explain a decision that does not follow at its latest moment: assumptions in the order
//! in which they are tried.
//!
//! Of a recorded call the moment between its entry and its return is open, and which other calls in
//! progress decided before. Of a `D` also runs without a record are, and the tick. The paths keep
//! their rules: a decision needs a budget, and a request without a tag waits.

use blkmq::elevator::LEVELS;
use blkmq::request::{QueueId, RequestId};
use blkmq::time::SimTime;

use super::plan::{Assumption, Read};
use super::search::{BACK_MOST, Search};
use super::{Hypotheses, Hypothesis};
use crate::event::Kind;
use crate::stream::Decision;

/// Other moments may explain only a few D: at most one in so many. Rules of another kernel need
/// more, and diverge.
const ONE_IN: usize = 7;
/// D of which as many may be exceptions, at first.
const AT_FIRST: usize = 64;
/// Decisions of other CPUs just before the one that is looked for, with it, at most.
const AHEAD_MOST: usize = 4;
/// Plans that are tried for moments of one decision, at most: of a D, and of a call.
const TRIES_MOST: [usize; 2] = [24, 4000];
/// Runs that are tried to come later, and places for each, at most.
const LATER_MOST: usize = 6;
/// Tasks that are tried to have decided before they show it, at most.
const BEGUN_MOST: usize = 4;
/// D that are tried to have decided once, or whose tasks are tried to have begun nothing, at most.
const ISSUES_MOST: usize = 6;
/// Events whose tick is tried to be another one, and their largest distance from the scheduler's
/// look at the clock, in nanoseconds.
const TICKS_MOST: usize = 17;
const TICK_EDGE: i64 = 30_000;

/// Assumptions with their events.
type Assumed = Vec<(usize, Assumption)>;

impl Search<'_> {
    /// The state after a decision that does not follow at once, if a hypothesis leads to it.
    pub(super) fn explain(&mut self, state: &Hypothesis, decision: Decision) -> Option<Hypothesis> {
        let index = decision.not_after;
        if self.hypotheses.calls {
            let reads = self.reads(state, index);
            let others = self.others(state);
            return others.iter().find_map(|others| {
                self.at_moments(decision, |search, moment, _| {
                    search.with_others(moment, index, others, &reads)
                })
            });
        }
        let queue = self.stream.queue[index];
        let found = self.beside_tick(index).or_else(|| self.begun(index));
        if found.is_some() || !self.several || !self.setups[queue.index()].has_scheduler() {
            return found;
        }
        let counts = self.counts[queue.index()];
        if counts.explained.max(counts.in_vain) * ONE_IN > counts.decisions + AT_FIRST {
            return None;
        }
        let found = [true, false].into_iter().find_map(|far| {
            self.far = far;
            let cpus = self.stream.cpus.min(AHEAD_MOST);
            self.ahead(decision, 1)
                .or_else(|| self.picked_later(index))
                .or_else(|| self.no_run_yet(index))
                .or_else(|| self.ran_later(index))
                .or_else(|| self.ahead(decision, cpus))
        });
        self.far = false;
        let counts = &mut self.counts[queue.index()];
        match found {
            Some(_) => counts.explained += 1,
            None => counts.in_vain += 1,
        }
        found
    }

    /// The decision was made at another moment, latest first: before an event that can have changed
    /// the scheduler's answer. `plans` are those for a moment with the state then.
    fn at_moments(
        &mut self,
        decision: Decision,
        plans: impl Fn(&Self, usize, &Hypothesis) -> Vec<Assumed>,
    ) -> Option<Hypothesis> {
        let index = decision.not_after;
        let oldest = index.saturating_sub(BACK_MOST);
        let first = match self.hypotheses.calls {
            true => decision.not_before?,
            false => decision.not_before.map_or(oldest, |at| at.max(oldest)),
        };
        let mut tries = TRIES_MOST[usize::from(self.hypotheses.calls)];
        let mut until = index + 1;
        while until > first {
            let (mut state, from) = self.checkpoints.before(until - 1);
            if from >= until {
                break;
            }
            let mut moments = Vec::new();
            for event in from..until {
                let bounds = event == index || self.hypotheses.calls && event == first;
                if event >= first && (bounds || self.changes(event)) {
                    moments.push((event, state.clone()));
                }
                if event + 1 < until {
                    self.step(&mut state, event).ok()?;
                }
            }
            while let Some((moment, state)) = moments.pop() {
                for plan in plans(self, moment, &state) {
                    tries = tries.checked_sub(1)?;
                    let found = self.attempt((state.clone(), moment), &plan, index);
                    if found.is_some() {
                        return found;
                    }
                }
            }
            until = from;
        }
        None
    }

    /// An event that can change the scheduler's answer, or the free tags.
    fn changes(&self, event: usize) -> bool {
        match self.stream.events[event].kind {
            Kind::Insert | Kind::RequestMerge | Kind::BioMerge { .. } | Kind::Complete { .. } => {
                true
            }
            Kind::Answer { .. } | Kind::Finish { .. } | Kind::Get => self.hypotheses.calls,
            Kind::Issue => !self.hypotheses.calls,
            _ => false,
        }
    }

    /// Before this moment other calls decide, and then the one that returns at `index`, which may
    /// have read any of these.
    fn with_others(
        &self,
        moment: usize,
        index: usize,
        others: &[usize],
        reads: &[Read],
    ) -> Vec<Assumed> {
        let decides = |&other: &usize| {
            let entered = self.stream.other_end[other]? < moment;
            let Kind::Answer { at, .. } = self.stream.events[other].kind else {
                return None;
            };
            entered.then_some((moment, Assumption::Decides(other, Read::at(at))))
        };
        let Some(before) = others.iter().map(decides).collect::<Option<Assumed>>() else {
            return Vec::new();
        };
        let own = |&read: &Read| match moment == index {
            true => Assumption::Reads(read),
            false => Assumption::Decides(index, read),
        };
        let plan = |read: &Read| [&before[..], &[(moment, own(read))]].concat();
        // This has been tried first of all.
        let first = usize::from(moment == index && others.is_empty());
        reads.iter().skip(first).map(plan).collect()
    }

    /// Possible reads of a call outside the lock: of the second look at the tick only a range is
    /// known, and requests that another CPU is about to complete may not be counted yet.
    fn reads(&self, state: &Hypothesis, index: usize) -> Vec<Read> {
        let mut reads = Vec::new();
        let entry = self.stream.other_end[index].unwrap_or(index);
        let mut late = [0; LEVELS];
        let cpu = self.stream.events[index].cpu;
        for (_, &level) in state.late.iter().filter(|(of, _)| **of != cpu) {
            late[level] += 1;
        }
        for uncounted in [[0; LEVELS], late] {
            for event in [index, entry] {
                if let Kind::Ask { at, .. } | Kind::Answer { at, .. } =
                    self.stream.events[event].kind
                {
                    let read = Read {
                        locked: at,
                        uncounted,
                    };
                    if !reads.contains(&read) {
                        reads.push(read);
                    }
                }
            }
        }
        reads
    }

    /// Ways in which other calls under way can have decided before: none first, then each, then
    /// each two. More than that at once has not been seen.
    fn others(&self, state: &Hypothesis) -> Vec<Vec<usize>> {
        let open = self.open.iter();
        let open: Vec<usize> = open
            .filter_map(|&entry| self.stream.other_end[entry])
            .filter(|answer| !state.early.contains_key(answer))
            .collect();
        let mut orders = vec![Vec::new()];
        orders.extend(open.iter().map(|&one| vec![one]));
        for &first in &open {
            for &second in open.iter().filter(|&&second| second != first) {
                orders.push(vec![first, second]);
            }
        }
        orders
    }

    /// The D's CPU decided at another moment, after as many others as it takes.
    fn ahead(&mut self, decision: Decision, most: usize) -> Option<Hypothesis> {
        self.at_moments(decision, |search, moment, state| {
            let plan = search.decided_ahead(decision.not_after, most, moment, state);
            plan.into_iter().collect()
        })
    }

    fn decided_ahead(
        &self,
        index: usize,
        most: usize,
        moment: usize,
        state: &Hypothesis,
    ) -> Option<Assumed> {
        let (issue, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let by = (queue, issue.cpu);
        let mut tried = state.clone();
        for number in 1..=most {
            let chosen = self.hypotheses.decide_ahead(&mut tried, moment, by)?;
            if Hypotheses::is(&tried, queue, chosen, issue) {
                return Some(vec![(moment, Assumption::DecidesAhead(by.0, by.1)); number]);
            }
            if !self.comes_soon(&tried, (queue, moment), chosen) {
                return None;
            }
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
        let tags = self.setups[queue.index()]
            .hctxs
            .iter()
            .map(|hctx| hctx.tags);
        let soon = tags.sum::<u32>() as usize + self.stream.cpus;
        let issues = (from..self.stream.events.len()).filter(|&event| {
            self.stream.queue[event] == queue && self.stream.events[event].kind == Kind::Issue
        });
        let mut next = issues.take(soon);
        next.any(|issue| self.stream.events[issue].sector == start)
    }

    /// The first of these hypotheses from which the D follows, each from its first event on.
    fn first_of(
        &mut self,
        all: impl IntoIterator<Item = Assumed>,
        index: usize,
    ) -> Option<Hypothesis> {
        all.into_iter().find_map(|assumed| {
            let first = assumed.iter().map(|&(event, _)| event).min()?;
            self.attempt(self.checkpoints.before(first), &assumed, index)
        })
    }

    /// The tick changed near a record: a decision may have been made in the other one.
    fn beside_tick(&mut self, index: usize) -> Option<Hypothesis> {
        let hz = self.setups[0].hz;
        let beside = |event: usize| {
            let at = self.stream.events[event].time;
            let edge = [-TICK_EDGE, TICK_EDGE].into_iter().find(|&edge| {
                let read = SimTime(at.0.saturating_add_signed(edge));
                read.jiffies(hz) != at.jiffies(hz)
            })?;
            let known = self.plan.at(event).iter();
            let known = known.filter(|of| matches!(of, Assumption::ReadsBeside(_)));
            (known.count() == 0).then(|| vec![(event, Assumption::ReadsBeside(edge))])
        };
        let events = (0..=index).rev().take(TICKS_MOST);
        let all: Vec<Assumed> = events.filter_map(beside).collect();
        self.first_of(all, index)
    }

    /// A task that owns requests was preempted between its decisions and their records: it decided
    /// before this D.
    fn begun(&mut self, index: usize) -> Option<Hypothesis> {
        let owns = |&event: &usize| {
            let next = self.stream.next[event].filter(|&next| next > index);
            let shows = next.is_some_and(|next| self.stream.events[next].kind == Kind::Issue);
            let kind = self.stream.events[event].kind;
            let puts = matches!(kind, Kind::Insert | Kind::RequestMerge);
            shows && puts && !self.plan.has(event, Assumption::ToOffer)
        };
        let back = index.saturating_sub(BACK_MOST)..index;
        let all: Vec<Assumed> = back
            .rev()
            .filter(owns)
            .take(BEGUN_MOST)
            .map(|event| vec![(event, Assumption::ToOffer)])
            .collect();
        self.first_of(all, index)
    }

    /// Runs had not yet picked requests that they show later: the latest of them, then more.
    fn picked_later(&mut self, index: usize) -> Option<Hypothesis> {
        let back = index.saturating_sub(BACK_MOST)..=index;
        let unlimited = |&event: &usize| {
            let mut at = self.plan.at(event).iter();
            self.stream.events[event].kind == Kind::Issue
                && !at.any(|of| matches!(of, Assumption::Picks(_)))
        };
        let issues = back.rev().filter(unlimited).take(ISSUES_MOST);
        let limited: Assumed = issues.map(|at| (at, Assumption::Picks(1))).collect();
        let more = (1..=limited.len()).map(|count| limited[..count].to_vec());
        self.first_of(more, index)
    }

    /// The task of a D whose request waited for its turn had begun no run, latest of them first.
    fn no_run_yet(&mut self, index: usize) -> Option<Hypothesis> {
        let back = index.saturating_sub(BACK_MOST)..index;
        let waited = self.waited.range(back).rev().take(ISSUES_MOST);
        let fresh = waited.filter(|&&event| !self.plan.has(event, Assumption::NoRunYet));
        let all: Vec<Assumed> = fresh
            .map(|&event| vec![(event, Assumption::NoRunYet)])
            .collect();
        self.first_of(all, index)
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
        let until = |&event: &usize| {
            let until = (event + 1..=index)
                .rev()
                .filter(|&until| self.changes(until));
            let runs = move |until| {
                (event..until)
                    .map(|at| (at, Assumption::RunsLater))
                    .collect()
            };
            until.take(LATER_MOST).map(runs)
        };
        let all: Vec<Assumed> = ran.iter().rev().take(LATER_MOST).flat_map(until).collect();
        self.first_of(all, index)
    }
}
