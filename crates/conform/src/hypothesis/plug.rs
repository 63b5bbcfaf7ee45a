//! Plugs: P, U and UT, and the events that show that a request is plugged.
//!
//! Q and G are in `arrive.rs`.

use blkmq::env::TraceAction;
use blkmq::path::{Frame, PlugPath, Unplug};
use blkmq::rules::BioPlug;

use super::{Hypotheses, Hypothesis, STOPS_MOST};
use crate::event::Kind;
use crate::world::{Goal, Stop};

impl Hypotheses<'_> {
    /// The event after a request's G shows whether it is plugged.
    pub(super) fn begin_plug(&self, state: &mut Hypothesis, get: usize) {
        let next = self.follows(get, Kind::Plug);
        let lone = next.is_some_and(|plug| self.is_lone(plug));
        let announced = self.stream.batches.get(&get).copied();
        let announced = announced.unwrap_or(self.stream.announces[self.stream.task[get]]);
        let plug = &mut state.world.actors[self.stream.task[get]].cpu.plug;
        if plug.is_empty() {
            plug.active = false;
            if next.is_some() && !lone {
                plug.start(announced);
            }
        }
    }

    /// A plug for one bio, or one part of it, which its path begins and ends by itself.
    fn is_lone(&self, plug: usize) -> bool {
        let rules = &self.setups[self.stream.queue[plug].index()].rules;
        let lets_go = Kind::Unplug {
            count: 1,
            sleeps: false,
        };
        rules.bio_plug == BioPlug::EachBio && self.follows(plug, lets_go).is_some()
    }

    /// The first bio of a plug: its task has read the clock, and keeps that time until the plug is
    /// flushed. In a plug of several bios at Q (bio_issue_init()); in one that the path begins by
    /// itself (__submit_bio(), v6.10) no earlier than its request is there. A task that slept for a
    /// tag reads the clock again.
    pub(super) fn start_plug_clock(&self, state: &mut Hypothesis, index: usize) {
        let (task, queue) = (self.stream.task[index], self.stream.queue[index]);
        if !self.setups[queue.index()].rules.plug_keeps_time || self.stream.logs.is_empty() {
            return;
        }
        let waited = self.stream.waited[index];
        let get = self.follows(index, Kind::Get).or(waited);
        let plug = get.and_then(|get| self.follows(get, Kind::Plug));
        if let (Some(get), Some(plug)) = (get, plug) {
            let again = waited.is_some() || self.is_lone(plug);
            let read = if again { get } else { index };
            // In a simulated run the path reads at the very time of its label.
            let reported = !(again && self.times_of_labels());
            state.plugged[task] = reported.then(|| self.measured(self.stream.events[read].time));
        } else if state.world.actors[task].cpu.plug.list.is_empty() {
            state.plugged[task] = None;
        } else if state.let_go[task] && !self.times_of_labels() {
            // It was full at the bio before, and forgot its time when it was flushed.
            state.plugged[task] = Some(self.measured(self.stream.events[index].time));
        }
        state.let_go[task] = false;
    }

    pub(super) fn plug(&self, state: &mut Hypothesis, index: usize) {
        let task = self.at(state, index);
        if !state.world.actors[task].is_lost() {
            self.shows(state, task, index, TraceAction::Plug);
        }
    }

    /// U or UT: the plug is flushed. The model may have begun that by itself: the plug is full, or
    /// the task sleeps for a tag.
    pub(super) fn unplug(&self, state: &mut Hypothesis, index: usize, sleeps: bool) {
        let task = self.at(state, index);
        state.let_go[self.stream.task[index]] = true;
        if !Self::shows_unplug(state, task) {
            let plug = &state.world.actors[task].cpu.plug;
            let queue = plug.queue();
            if plug.list.is_empty() || !state.world.actors[task].is_lost() {
                return;
            }
            let why = match sleeps {
                true => Unplug::Schedule,
                false => Unplug::Finish,
            };
            let path = PlugPath::new(queue, why);
            state.world.begin(task, Frame::Plug(path));
            Self::shows_unplug(state, task);
            state.world.actors[task].cpu.plug.active = false;
        }
        self.go_on(state, index);
    }

    /// The path in progress continues to the flush of the plug.
    fn shows_unplug(state: &mut Hypothesis, task: usize) -> bool {
        for _ in 0..STOPS_MOST {
            let shown = &mut state.world.actors[task].shown;
            let unplugs = |action| matches!(action, TraceAction::Unplug | TraceAction::UnplugTimer);
            if let Some(at) = shown.iter().position(|point| unplugs(point.action)) {
                shown.remove(at);
                return true;
            }
            if !shown.is_empty() {
                return false;
            }
            match state.world.go(task, Goal::UntilTracePoint) {
                Stop::AtTracePoint | Stop::AwaitsEvent => {}
                Stop::Idle | Stop::WaitsForTag | Stop::BeforeQueueRq(_) | Stop::BeforeDecision => {
                    return false;
                }
            }
        }
        false
    }

    /// The task's next event, if it is of this kind.
    fn follows(&self, index: usize, kind: Kind) -> Option<usize> {
        let next = self.stream.next[index];
        next.filter(|&next| self.stream.events[next].kind == kind)
    }
}
