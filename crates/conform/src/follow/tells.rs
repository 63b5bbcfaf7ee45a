//! What a scheduler tells of itself, against what the kernel's told.
//!
//! The model's come when its timers expire or its calls are decided, those of the kernel when the
//! trace has them: a little later, on several CPUs up to two ticks. Each of the kernel's takes the
//! oldest of the model's that says the same.

use blkmq::env::Solo;
use blkmq::path::{Call, Frame};
use blkmq::queue::TokenMap;
use blkmq::request::QueueId;
use blkmq::time::{Duration, SimTime};

use super::{Follow, State};
use crate::told::{Told, Word};
use crate::verdict::Judge;

/// The model's events that nobody has taken for so long are its own.
const FORGOTTEN_AFTER: Duration = Duration::from_millis(1000);

impl Follow<'_> {
    /// An event of the kernel's scheduler.
    pub(crate) fn compare_told(
        &self,
        state: &mut State,
        index: usize,
        told: Told,
        judge: &mut Judge,
    ) {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        self.run_timer_now(state, index, told);
        let all = &mut state.world.outside.told;
        let same = |&(of, _, other): &(QueueId, SimTime, Told)| of == queue && other == told;
        if let Some(at) = all.iter().position(same) {
            all.remove(at);
            match told.is_of_timer() {
                true => judge.told_alike(),
                false => judge.throttled(true),
            }
            return;
        }
        if !told.is_of_timer() {
            judge.throttled(false);
            return;
        }
        let like =
            |&&(of, _, other): &&(QueueId, SimTime, Told)| of == queue && told.is_like(other);
        let instead = all.iter().find(like).copied();
        let model = instead.map_or("nothing".to_owned(), |(.., other)| other.to_string());
        if let Some(instead) = instead {
            all.retain(|other| *other != instead);
        }
        let text = Self::show(state, queue);
        judge.told_otherwise(event.time, told.to_string(), model, text);
        self.impose_told(state, queue, told);
    }

    /// The kernel's timer ran, and that of the model is armed and has told nothing: it runs now.
    /// With several CPUs a tick may be missed, or the one that armed it be another.
    fn run_timer_now(&self, state: &mut State, index: usize, told: Told) {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let outside = &mut state.world.outside;
        let lately = |&&(of, time, other): &&(QueueId, SimTime, Told)| {
            of == queue && other.is_of_timer() && time + self.late() > self.measured(event.time)
        };
        if !told.is_of_timer() || outside.told.iter().any(|other| lately(&other)) {
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
    fn impose_told(&self, state: &mut State, queue: QueueId, told: Told) {
        let Told::Depth { group, depth } = told else {
            return;
        };
        let tokens = &state.world.mq.queue(queue).tokens;
        let named = |tokens: &TokenMap<Solo>| Word::new(tokens.facts.group) == group;
        let Some(map) = tokens.iter().position(named) else {
            return;
        };
        let depth = depth.clamp(1, tokens[map].facts.depth);
        let scratch = self.scratch();
        let call = Call::ResizeTokens {
            queue,
            map: map as u8,
            depth,
        };
        state.world.begin(scratch, Frame::from(call));
        Self::run_out(state, scratch);
    }

    /// What is older than this time the kernel will not tell any more.
    pub(crate) fn forget_told(&self, state: &mut State, now: SimTime, judge: &mut Judge) {
        let now = self.measured(now);
        let all = &mut state.world.outside.told;
        let old = |&(_, time, _): &(QueueId, SimTime, Told)| time + FORGOTTEN_AFTER <= now;
        let alone = all.iter().filter(|told| old(told) && told.2.is_of_timer());
        judge.told_alone(alone.count() as u64);
        all.retain(|told| !old(told));
    }

    /// What the model told and the kernel did not, to the end of the trace: unless the trace ends
    /// before the kernel would have.
    pub(crate) fn left_to_tell(state: &State, judge: &mut Judge) {
        let all = state.world.outside.told.iter();
        let alone = all.filter(|(.., told)| told.is_of_timer());
        judge.told_alone(alone.count() as u64);
    }
}
