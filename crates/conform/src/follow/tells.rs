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
        let all = &mut state.world.outside.told;
        let same = |&(of, _, other): &(QueueId, SimTime, Told)| of == queue && other == told;
        if let Some(at) = all.iter().position(same) {
            all.remove(at);
            judge.told_alike();
            return;
        }
        let like = |&&(of, _, other): &&(QueueId, SimTime, Told)| of == queue && told.is_like(other);
        let instead = all.iter().find(like).copied();
        let model = instead.map_or("nothing".to_owned(), |(.., other)| other.to_string());
        if let Some(instead) = instead {
            all.retain(|other| *other != instead);
        }
        let text = Self::show(state, queue);
        judge.told_otherwise(event.time, told.to_string(), model, text);
        self.impose_told(state, queue, told);
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
    pub(crate) fn forget_told(state: &mut State, now: SimTime, judge: &mut Judge) {
        let all = &mut state.world.outside.told;
        let before = all.len();
        all.retain(|&(_, time, _)| time + FORGOTTEN_AFTER > now);
        judge.told_alone((before - all.len()) as u64);
    }

    /// What the model told and the kernel did not, to the end of the trace: unless the trace ends
    /// before the kernel would have.
    pub(crate) fn left_to_tell(state: &State, judge: &mut Judge) {
        judge.told_alone(state.world.outside.told.len() as u64);
    }
}
