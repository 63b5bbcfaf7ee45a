//! Tags: a task finds one, waits for one, or goes on without one.
//!
//! A tag is allocated some time before its G, and is free some time after its C: where the model
//! has one too early its task is held back, and where it has none too late it looks once more.

use blkmq::env::{TraceAction, TracePoint};
use blkmq::path::Frame;
use blkmq::path::label::Submit;

use super::forced::end_bio;
use super::{Hypotheses, Hypothesis};
use crate::event::Kind;
use crate::world::{Goal, Hint, Stop};

/// The capture's task waited.
const WAITED: &str = "a task waited for a tag where the model has one";

impl Hypotheses<'_> {
    /// After its Q, tasks that cannot wait for their next event: a task that may not wait, or one
    /// in a tag's wait queue on a CPU that it leaves.
    pub(super) fn allocate(&self, state: &mut Hypothesis, index: usize) {
        match self.stream.waited[index] {
            Some(get) if !self.calls => self.wait(state, index, get),
            _ if self.stream.would_block[index] => self.would_block(state, index),
            _ => {}
        }
    }

    /// There was no tag. The model may have one: a tag is free some time after its C. Then it is
    /// hidden if events of a sleeping task follow on this CPU, or else the search comes with the G.
    fn wait(&self, state: &mut Hypothesis, index: usize, get: usize) {
        let task = self.stream.task[index];
        let before = state.world.clone();
        self.search(state, index, get);
        let found = |point: &TracePoint| point.action == TraceAction::GetRq;
        let here = |other: usize| self.stream.events[other].cpu == self.stream.events[index].cpu;
        let slept = self.stream.next[index].is_some_and(|next| next != get && here(next));
        if !here(get) && !slept || !state.world.actors[task].shown.iter().any(found) {
            return;
        }
        state.world = before;
        Self::note(state, WAITED);
        if slept {
            let queue = self.stream.queue[index];
            let hidden = state.world.hide_tags(queue);
            self.search(state, index, get);
            state.world.show_tags(queue, &hidden);
        }
    }

    /// The task of a Q looks for a tag and may sleep: without a D, unless its next event is one.
    fn search(&self, state: &mut Hypothesis, index: usize, get: usize) {
        let task = self.stream.task[index];
        let before = state.world.clone();
        let next = self.stream.next[index].map(|next| self.stream.events[next].kind);
        let shows = matches!(next, Some(Kind::Issue | Kind::Requeue));
        let hint = self.hint(index);
        state.world.actors[task].hint = hint;
        self.begin_plug(state, get);
        self.go_to_tag(state, get);
        if matches!(state.world.actors[task].stop, Stop::BeforeQueueRq(_)) && !shows {
            state.world = before;
            self.begin_plug(state, get);
            state.world.actors[task].hint = Hint::Nothing;
            self.go_to_tag(state, get);
            state.world.actors[task].hint = hint;
        }
    }

    /// The task of a G goes to its tag.
    pub(super) fn go_to_tag(&self, state: &mut Hypothesis, get: usize) {
        let (task, queue) = (self.stream.task[get], self.stream.queue[get].index());
        // Tags of a batch allocation have another limit than single ones, and their number is not
        // recorded. A task that waits flushes its plug first.
        let plugged = !state.world.actors[task].cpu.plug.list.is_empty();
        let before = state.world.mq.queues[queue].settings.nr_requests;
        if plugged && self.stream.announces[task] > 1 {
            state.world.mq.queues[queue].settings.nr_requests = 1;
        }
        state.world.go(task, Goal::UntilTracePoint);
        state.world.mq.queues[queue].settings.nr_requests = before;
    }

    /// There was no tag for a bio that must not wait. The model may have one: a tag is free some
    /// time after its C. Then the bio ends all the same.
    fn would_block(&self, state: &mut Hypothesis, index: usize) {
        let (task, queue) = (self.stream.task[index], self.stream.queue[index]);
        let before = state.world.clone();
        let ends = |point: &TracePoint| point.action == TraceAction::Complete;
        for hides in [false, true] {
            let hidden = hides.then(|| state.world.hide_tags(queue));
            state.world.go(task, Goal::UntilTracePoint);
            if let Some(hidden) = hidden {
                state.world.show_tags(queue, &hidden);
            }
            if state.world.actors[task].shown.iter().any(ends) {
                return;
            }
            state.world.clone_from(&before);
        }
        let actor = &state.world.actors[task];
        if let Some(Frame::Submit(path)) = actor.stack.last() {
            let bio = path.bio();
            state
                .world
                .mq
                .queue(queue)
                .with_pool(|pool| end_bio(pool, bio));
        }
        state.world.drop_paths(task);
    }

    /// A task waits for a tag: does the model have one? A tag is allocated some time before its G,
    /// and the wake-up and second look of a task are not recorded: with several CPUs nothing
    /// follows from a tag that is free.
    pub(crate) fn deny(&self, state: &mut Hypothesis, index: usize) {
        let task = self.stream.task[index];
        let Some(frame @ Frame::Submit(_)) = state.world.actors[task].stack.last() else {
            return;
        };
        let again = frame.label() == Submit::WaitRetry.label();
        let decidable = self.stream.cpus == 1 && !state.tag_denied[task];
        if decidable && Self::finds_tag(state, task) {
            state.tag_denied[task] = true;
            if !again {
                Self::note(state, WAITED);
            }
        }
    }

    /// A task that goes on from here finds a tag.
    fn finds_tag(state: &mut Hypothesis, task: usize) -> bool {
        let before = state.world.clone();
        state.world.go(task, Goal::UntilTracePoint);
        let found = |point: &TracePoint| point.action == TraceAction::GetRq;
        let finds = state.world.actors[task].shown.iter().any(found);
        state.world = before;
        finds
    }

    /// A task that found no tag before finds one now. The set of allocated tags depends on more
    /// than the records show, and so does whether there is one below the limit of an asynchronous
    /// operation. The kernel found one: so does the model, above the limit. A note reports it where
    /// tasks allocate tags when the model's do.
    pub(super) fn gets_other(&self, state: &mut Hypothesis, index: usize) -> bool {
        let task = self.stream.task[index];
        let in_order = !self.calls || self.stream.cpus == 1;
        for limited in [true, false] {
            let found = state.world.look_again(task, limited)
                && self.shows(state, task, index, TraceAction::GetRq);
            if found && !limited && !state.tag_denied[task] && in_order {
                // A kernel draws where its search for tags begins.
                let what = "a request has a tag above the limit of its operation: where maps of \
                            tags begin is not recorded, and taken as 0";
                Self::note(state, what);
            }
            if found {
                return true;
            }
        }
        false
    }
}
