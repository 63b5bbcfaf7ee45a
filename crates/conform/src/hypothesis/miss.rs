//! A decision that no hypothesis explains: undecided, or a divergence with its report; and the
//! kernel's choice is forced.
//!
//! An undecided one needs evidence in the records. With one CPU their order is the order of the
//! events, and nothing is left open.

use blkmq::request::{Place, QueueId, RequestId};

use super::issue::Found;
use super::plan::{Assumption, Read};
use super::search::{BACK_MOST, PICKS_MOST, Search};
use super::{Hypotheses, Hypothesis};
use crate::event::Kind;
use crate::judge::{Judge, Unjudged};
use crate::stream::Decision;
use crate::world::Stop;

impl Search<'_> {
    /// The data that the capture lacks to decide.
    pub(super) fn undecided(&self, decision: Decision, found: Found) -> Option<Unjudged> {
        let Some(not_before) = decision.not_before else {
            return self.hypotheses.calls.then_some(Unjudged::Probe);
        };
        if self.hypotheses.calls || !self.several {
            return None;
        }
        let (index, since) = (decision.not_after, not_before - 1);
        let queue = self.stream.queue[index];
        let open = match (self.setups[queue.index()].has_scheduler(), found) {
            (true, Found::Queued) => self.several_issue(index, since),
            (false, Found::Queued | Found::Dispatched) => {
                self.others_run(index, since) && !self.overtakes(index, since)
            }
            _ => false,
        };
        open.then_some(Unjudged::Order)
    }

    /// Since both requests waited in the scheduler more than one CPU has handed requests over. With
    /// one CPU, or while only one was at it, the order of records is the order of decisions, and
    /// another one is a divergence.
    fn several_issue(&self, index: usize, since: usize) -> bool {
        let queue = self.stream.queue[index];
        let issues = (since..=index).filter(|&event| {
            self.stream.events[event].kind == Kind::Issue && self.stream.queue[event] == queue
        });
        let mut cpus = issues.map(|event| self.stream.events[event].cpu);
        let first = cpus.next();
        cpus.any(|cpu| Some(cpu) != first)
    }

    /// Without a scheduler a run takes the insertions of all CPUs of the hctx, and puts the
    /// remainder on the dispatch list, of which there is no record. If another CPU of its hctx
    /// dispatched while the request waited, the run that took it is not recorded.
    fn others_run(&self, index: usize, since: usize) -> bool {
        let queue = self.stream.queue[index];
        let own = self.stream.events[index].cpu;
        let hctx = self.hctx_of(queue, self.stream.events[since].cpu);
        let oldest = since.saturating_sub(BACK_MOST);
        (oldest..=index).any(|event| {
            let (of, cpu) = (self.stream.queue[event], self.stream.events[event].cpu);
            let kind = self.stream.events[event].kind;
            let runs = matches!(kind, Kind::Insert | Kind::Issue | Kind::Requeue);
            // Until it does something else its run may go on.
            let until = self.stream.next[event];
            let on = event >= since || until.is_none_or(|until| until > since);
            runs && on && of == queue && cpu != own && self.hctx_of(queue, cpu) == hctx
        })
    }

    /// An older request of the same software queue waited there still: its D comes later, from a
    /// run that had not begun. A software queue is first in, first out. Requests that a run put
    /// back wait on the dispatch list, and are exempt.
    fn overtakes(&self, index: usize, since: usize) -> bool {
        let stream = self.stream;
        let inserts = |event: usize| stream.events[event].kind == Kind::Insert;
        let queue = stream.queue[index];
        if self.setups[queue.index()].budget.is_some() || !inserts(since) {
            return false;
        }
        let older = index.saturating_sub(BACK_MOST)..since;
        let of_ctx = |event: usize| {
            inserts(event)
                && stream.queue[event] == queue
                && stream.events[event].cpu == stream.events[since].cpu
        };
        let mut later = stream.decisions[index + 1..].iter().flatten();
        later.any(|later| {
            let (insert, issue) = (later.not_before.map_or(0, |at| at - 1), later.not_after);
            older.contains(&insert)
                && of_ctx(insert)
                && !self.gave_back(queue, insert..issue)
                && self.began_after(index, issue)
        })
    }

    /// A request came back meanwhile.
    fn gave_back(&self, queue: QueueId, mut while_: core::ops::Range<usize>) -> bool {
        while_.any(|event| {
            self.stream.queue[event] == queue && self.stream.events[event].kind == Kind::Requeue
        })
    }

    /// The task of the later D has the earlier one, too, or did something between them that is no
    /// part of a run.
    fn began_after(&self, index: usize, issue: usize) -> bool {
        let task = self.stream.task[issue];
        let mut between = (index..issue).filter(|&event| self.stream.task[event] == task);
        between.any(|event| {
            let kind = self.stream.events[event].kind;
            event == index || matches!(kind, Kind::Queue | Kind::Get | Kind::Insert)
        })
    }

    fn hctx_of(&self, queue: QueueId, cpu: u16) -> Option<usize> {
        let mut hctxs = self.setups[queue.index()].hctxs.iter();
        hctxs.position(|hctx| hctx.cpus.contains(&cpu))
    }

    /// The decision of the kernel and that of the model, with both queues before it.
    pub(super) fn report(&self, decision: Decision, judge: &mut Judge) {
        let index = decision.not_after;
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let Some(mut state) = self.before(index) else {
            return;
        };
        let by_kernel = match event.kind {
            Kind::Answer { rq: None, .. } => "nothing".to_owned(),
            Kind::Answer { .. } => match self.hypotheses.given(&state, index, |_| false) {
                Some(issue) => self.stream.events[issue].range(),
                None => format!(
                    "a request at {}, which the driver never got",
                    event.sector.0
                ),
            },
            _ => event.range(),
        };
        // The events on the way to the decision.
        if self.hypotheses.before(&mut state, index).is_err() {
            return;
        }
        let mut text = Hypotheses::show(&state, queue);
        let by_model = match event.kind {
            Kind::Answer { at, .. } => {
                let entry =
                    self.stream.other_end[index].map(|entry| self.stream.events[entry].kind);
                if let Some(Kind::Ask { at: entry, .. }) = entry {
                    let ticks = format!("  jiffies {} at entry, {} at return\n", entry.0, at.0);
                    text.push_str(&ticks);
                }
                self.would_give(&mut state, index, Read::at(at))
            }
            _ => {
                text.push_str(&leftovers(&state, queue));
                let offered = self.hypotheses.would_offer(&mut state, index);
                offered.map_or("nothing".to_owned(), |rq| {
                    Hypotheses::range(&state, queue, rq)
                })
            }
        };
        judge.miss(event.time, by_kernel, by_model, text);
    }

    /// The model's answer to a call, or why it does not come to one.
    fn would_give(&self, state: &mut Hypothesis, index: usize, read: Read) -> String {
        let queue = self.stream.queue[index];
        let task = self.hypotheses.acting(state, self.stream.task[index]);
        let why = match state.world.actors[task].stop {
            Stop::BeforeDecision => {
                let before = Hypotheses::held_by_run(state, task);
                self.hypotheses.decide(state, index, read);
                let chosen = Hypotheses::owned(state, task).filter(|rq| !before.contains(rq));
                return chosen.map_or("nothing".to_owned(), |rq| {
                    Hypotheses::range(state, queue, rq)
                });
            }
            Stop::BeforeQueueRq(rq) => {
                let range = Hypotheses::range(state, queue, rq);
                return format!("no call: it hands over {range} first");
            }
            Stop::WaitsForTag => "its task waits for a tag",
            Stop::AtTracePoint => "its task did something first that no record shows",
            Stop::Idle | Stop::AwaitsEvent => "its run of the queue ends without one",
        };
        format!("no call: {why}")
    }

    /// The kernel's choice replaces the model's decision, and events since are applied again.
    pub(super) fn force(&mut self, decision: Decision, found: Found) -> Option<Hypothesis> {
        let index = decision.not_after;
        let plan = match self.hypotheses.calls {
            true => vec![(index, Assumption::Forced(index))],
            false => self.instead(index, found)?,
        };
        let first = plan[0].0;
        self.attempt(self.checkpoints.before(first), &plan, index)
    }

    /// The D's request is chosen where the model's scheduler chose the one that it would have
    /// dispatched instead.
    fn instead(&self, index: usize, found: Found) -> Option<Vec<(usize, Assumption)>> {
        if found != Found::Queued {
            return None;
        }
        let queue = self.stream.queue[index];
        let state = self.before(index)?;
        let other = self.hypotheses.would_offer(&mut state.clone(), index)?;
        let is_queued =
            |state: &Hypothesis| Hypotheses::place(state, queue, other) == Place::Elevator;
        let mut plan = Vec::new();
        let mut at = index;
        if !is_queued(&state) {
            let mut picks = 0;
            let oldest = index.saturating_sub(BACK_MOST);
            let (mut state, from) = self.checkpoints.before(oldest);
            for event in from..index {
                let before = is_queued(&state);
                self.step(&mut state, event).ok()?;
                if before && !is_queued(&state) {
                    at = event;
                    picks = PICKS_MOST - state.world.outside.picks;
                }
            }
            if at == index {
                return None;
            }
            plan.push((at, Assumption::Picks(picks.saturating_sub(1))));
        }
        let planned = |of: &Assumption| match of {
            Assumption::Forced(_) => true,
            Assumption::Picks(_) => at != index,
            _ => false,
        };
        plan.push((at, Assumption::Forced(index)));
        (!self.plan.at(at).iter().any(planned)).then_some(plan)
    }
}

/// Dispatch lists and restart marks of a device.
fn leftovers(state: &Hypothesis, queue: QueueId) -> String {
    let q = state.world.mq.queue(queue);
    let of_hctx = |(number, hctx): (usize, &blkmq::queue::HwQueue)| {
        let waiting = hctx.dispatch.inspect(|list| *list);
        let waiting: Vec<RequestId> = q.with_pool(|pool| waiting.iter(pool).collect());
        let names = waiting
            .iter()
            .map(|&rq| Hypotheses::range(state, queue, rq));
        format!(
            "  hctx {number}: dispatch [{}] restart={} busy={}\n",
            names.collect::<Vec<_>>().join(", "),
            u8::from(hctx.restart.peek()),
            hctx.dispatch_busy.peek()
        )
    };
    q.hctxs.iter().enumerate().map(of_hctx).collect()
}

#[cfg(test)]
mod tests;
