//! A scheduler's own events, compared with those of the kernel's scheduler.
//!
//! The model's come when its timers expire or its calls are decided, those of the kernel when the
//! trace has them: a little later, on several CPUs up to two ticks. Each of the kernel's is matched
//! with the oldest equal event of the model.

use blkmq::path::{Call, Frame};
use blkmq::queue::TokenMap;
use blkmq::request::QueueId;
use blkmq::time::{Duration, SimTime};

use super::{Hypotheses, Hypothesis, Role};
use crate::event::Kind;
use crate::judge::Judge;
use crate::scheduler_event::{SchedulerEvent, Word};
use crate::world::{Goal, Stop};

/// After this long an unmatched event of the model is only the model's.
const FORGOTTEN_AFTER: Duration = Duration::from_millis(1000);

impl Hypotheses<'_> {
    /// A line of the scheduler's log that the model has not reached: its task continues to its next
    /// line. An interrupt may come between that and the next record of the task.
    pub(super) fn line(&self, state: &mut Hypothesis, index: usize) {
        let task = self.stream.task[index];
        let actor = &state.world.actors[task];
        let goes = matches!(actor.stop, Stop::AwaitsEvent | Stop::AtTracePoint);
        let stopped = actor.stack.is_empty() || !actor.shown.is_empty() || !goes;
        let queue = self.stream.queue[index];
        let comes = state.coming(queue) == self.number_of(index)
            || self.is_next_unlocked(state, (queue, task), index);
        if stopped || !comes {
            return;
        }
        let next = self.stream.next[index];
        let get = next.filter(|&next| self.stream.events[next].kind == Kind::Get);
        let submits = matches!(actor.stack.last(), Some(Frame::Submit(_)));
        self.at(state, index);
        if let Some(get) = get.filter(|_| submits) {
            self.begin_plug(state, get);
        }
        state.world.go(task, Goal::UntilMessage);
    }

    /// An event of the kernel's scheduler.
    pub(crate) fn compare_event(
        &self,
        state: &mut Hypothesis,
        index: usize,
        reported: SchedulerEvent,
        judge: &mut Judge,
    ) {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        self.run_timer_now(state, index, reported);
        let all = &mut state.world.outside.reported;
        let same =
            |&(of, _, other): &(QueueId, SimTime, SchedulerEvent)| of == queue && other == reported;
        if let Some(at) = all.iter().position(same) {
            all.remove(at);
            if let Some(events) = judge.events() {
                events.have(reported.is_of_timer());
            }
            return;
        }
        let like = |&&(of, _, other): &&(QueueId, SimTime, SchedulerEvent)| {
            of == queue && reported.is_like(other)
        };
        let instead = all.iter().find(like).copied();
        let model = instead.map_or("nothing".to_owned(), |(.., other)| other.to_string());
        if let Some(instead) = instead {
            all.retain(|other| *other != instead);
        }
        let text = Self::show(state, queue);
        let (kernel, timer) = (reported.to_string(), reported.is_of_timer());
        judge.event_diverged(timer, event.time, kernel, model, text);
        self.force_depth(state, queue, reported);
    }

    /// Events of a dispatch call that has returned now: the kernel's, and the model's.
    pub(crate) fn compare_events_of_call(
        &self,
        state: &mut Hypothesis,
        answer: usize,
        events: &[usize],
        judge: &mut Judge,
    ) {
        let decided = !self.is_interrupted(answer);
        for &index in events {
            let Kind::SchedulerEvent(reported) = self.stream.events[index].kind else {
                continue;
            };
            if decided || self.has_reported(state, index, reported) {
                self.compare_event(state, index, reported, judge);
            } else if let Some(events) = judge.events() {
                events.throttled += 1;
                events.throttled_undecided += 1;
            }
        }
    }

    /// No call is in progress any more: unmatched events of the model's last call are only the
    /// model's.
    pub(crate) fn end_call_events(&self, state: &mut Hypothesis, answer: usize, judge: &mut Judge) {
        let (queue, decided) = (self.stream.queue[answer], !self.is_interrupted(answer));
        state.world.outside.reported.retain(|&(of, _, reported)| {
            let left = of == queue && !reported.is_of_timer();
            if left && decided {
                judge.event_of_model_only(false);
            }
            !left
        });
    }

    /// The model has an equal unmatched event.
    fn has_reported(&self, state: &Hypothesis, index: usize, reported: SchedulerEvent) -> bool {
        let queue = self.stream.queue[index];
        let mut all = state.world.outside.reported.iter();
        all.any(|&(of, _, other)| of == queue && other == reported)
    }

    /// A request ended while this call was in progress, or may have, if its entry is not recorded:
    /// no record shows whether its token came back before or after an attempt.
    fn is_interrupted(&self, answer: usize) -> bool {
        let Some(asked) = self.stream.other_end[answer] else {
            return true;
        };
        let ends = |kind: Kind| matches!(kind, Kind::Complete { .. } | Kind::Finish { .. });
        (asked..answer).any(|index| {
            self.stream.queue[index] == self.stream.queue[answer]
                && ends(self.stream.events[index].kind)
        })
    }

    /// The kernel's timer ran, and that of the model is armed and has recorded nothing: it runs
    /// now. With several CPUs a tick may be missed, or the one that armed it be another.
    fn run_timer_now(&self, state: &mut Hypothesis, index: usize, reported: SchedulerEvent) {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let outside = &mut state.world.outside;
        let lately = |&&(of, time, other): &&(QueueId, SimTime, SchedulerEvent)| {
            of == queue && other.is_of_timer() && time + self.late() > self.measured(event.time)
        };
        if !reported.is_of_timer() || outside.reported.iter().any(|other| lately(&other)) {
            return;
        }
        let Some(armed) = outside.timers.take(queue) else {
            return;
        };
        Self::note(
            state,
            "a timer of the scheduler ran at another tick than that it was set for",
        );
        let time = self.measured(event.time);
        self.expire(state, armed, time);
    }

    /// The kernel set this depth: so it is in the model.
    fn force_depth(&self, state: &mut Hypothesis, queue: QueueId, reported: SchedulerEvent) {
        let SchedulerEvent::Depth { group, depth } = reported else {
            return;
        };
        let tokens = &state.world.mq.queue(queue).tokens;
        let named = |tokens: &TokenMap| Word::new(tokens.info.group) == group;
        let Some(map) = tokens.iter().position(named) else {
            return;
        };
        let depth = depth.clamp(1, tokens[map].info.depth);
        let scratch = self.actor(Role::Forced);
        let call = Call::ResizeTokens {
            queue,
            map: map as u8,
            depth,
        };
        state.world.begin(scratch, Frame::from(call));
        Self::run_out(state, scratch);
    }

    /// Events older than this time have no counterpart in the kernel any more.
    pub(crate) fn forget_events(&self, state: &mut Hypothesis, now: SimTime, judge: &mut Judge) {
        let now = self.measured(now);
        let all = &mut state.world.outside.reported;
        let old =
            |&(_, time, _): &(QueueId, SimTime, SchedulerEvent)| time + FORGOTTEN_AFTER <= now;
        for &(.., reported) in all.iter().filter(|reported| old(reported)) {
            judge.event_of_model_only(reported.is_of_timer());
        }
        all.retain(|reported| !old(reported));
    }

    /// Unmatched events of the model at the end of the trace: unless the trace ends before the
    /// kernel's would have come.
    pub(crate) fn remaining_events(state: &Hypothesis, judge: &mut Judge) {
        for &(.., reported) in &state.world.outside.reported {
            judge.event_of_model_only(reported.is_of_timer());
        }
    }
}
