//! The report of a miss.

use blkmq::request::QueueId;

use super::{Calls, Read};
use crate::event::Kind;
use crate::hypothesis::{Hypotheses, Hypothesis};
use crate::judge::Judge;
use crate::world::Stop;

impl Calls<'_> {
    /// The decision of the kernel and that of the model, which has just not been taken.
    pub(super) fn report(&self, state: &Hypothesis, index: usize, judge: &mut Judge) {
        let event = &self.stream.events[index];
        let Kind::Answer { rq, at } = event.kind else {
            return;
        };
        let queue = self.stream.queue[index];
        let issue = self.given(state, index, |_| false);
        let issue = issue.map(|issue| &self.stream.events[issue]);
        let by_kernel = match (rq, issue) {
            (None, _) => "nothing".to_owned(),
            (Some(_), Some(d)) => d.range(),
            (Some(_), None) => {
                format!(
                    "a request at {}, which the driver never got",
                    event.sector.0
                )
            }
        };
        let mut tried = state.clone();
        // The events on the way to the call.
        if self.hypotheses.before(&mut tried, index).is_err() {
            return;
        }
        let shown = Hypotheses::show(&tried, queue);
        let read = Read::at(at);
        let task = self.hypotheses.acting(&tried, self.stream.task[index]);
        let stopped = tried.world.actors[task].stop == Stop::Pick;
        let before = Hypotheses::held_by_run(&tried, task);
        self.decide(&mut tried, index, read);
        let chosen = Hypotheses::owned(&tried, task).filter(|rq| !before.contains(rq));
        let by_model = match (stopped, chosen) {
            (false, _) => Self::where_it_is(&tried, task, queue),
            (true, None) => "nothing".to_owned(),
            (true, Some(rq)) => Hypotheses::range(&tried, queue, rq),
        };
        let mut text = shown;
        let asked = self.stream.other_end[index];
        if let Some(Kind::Ask { at: entry, .. }) = asked.map(|at| self.stream.events[at].kind) {
            text.push_str(&format!(
                "  jiffies {} at entry, {} at return\n",
                entry.0, at.0
            ));
        }
        judge.miss(event.time, by_kernel, by_model, text);
    }

    /// Why the model did not come to a call.
    fn where_it_is(state: &Hypothesis, task: usize, queue: QueueId) -> String {
        let why = match state.world.actors[task].stop {
            Stop::Pick => "it is asked for another device".to_owned(),
            Stop::Offer(rq) => format!(
                "it hands over {} first",
                Hypotheses::range(state, queue, rq)
            ),
            Stop::Parked => "its task waits for a tag".to_owned(),
            Stop::AtTracePoint => "its task did something first that no record shows".to_owned(),
            Stop::Idle | Stop::Yielded => "its run of the queue ends without one".to_owned(),
        };
        format!("no call: {why}")
    }
}
