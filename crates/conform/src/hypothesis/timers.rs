//! Timers of schedulers and of queues expire between two events of the capture.
//!
//! When the records' clock has reached the timer's time, before the next event: the effect shows in
//! that event, or later. Read first: `world/timers.rs`.

use blkmq::elevator::Hook;
use blkmq::path::{Frame, HookFrame, TimeoutPath};
use blkmq::time::{Duration, SimTime};

use super::{Hypotheses, Hypothesis, Role};
use crate::submitters::io_context_of;
use crate::world::{Armed, Hint};

/// Interrupts are off for so long, at most, in the sections of a scheduler.
const NEAR: Duration = Duration(60_000);

impl Hypotheses<'_> {
    /// Timers that are due before an event have expired.
    pub(super) fn expire_timers(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let held = |armed: &Armed| self.is_held(index, armed);
        let until = self.acts_at(state, index);
        let timers = |state: &mut Hypothesis| state.world.outside.timers.next_until(until, held);
        while let Some(armed) = timers(state) {
            if self.is_too_early(state, index, armed) {
                state.world.outside.timers.put_back(armed);
                return;
            }
            let time = match self.measures {
                true if self.times_of_labels() => {
                    self.time_of_section(state, armed.queue, (armed.due, armed.cpu))
                }
                true => self.measured(armed.due),
                false => self.time(state, armed.queue, event),
            };
            state.passed = state.passed.max(armed.due);
            self.expire(state, armed, time);
        }
    }

    /// The capture shows by an event when the function of this timer ran: not before this event.
    fn is_held(&self, index: usize, armed: &Armed) -> bool {
        if !self.measures || armed.timer.is_none() {
            return false;
        }
        let reported = &self.stream.events_of_timer;
        let next = reported.partition_point(|&at| at < index);
        let mut next = reported[next..].iter();
        let shown = next.find(|&&at| self.stream.queue[at] == armed.queue);
        shown.is_some_and(|&at| at > index && self.stream.events[at].time < armed.due + self.late())
    }

    /// The timer is due before an event that the kernel's log has first: the lock was held, with
    /// interrupts off, before its time came, or its CPU stood still.
    fn is_too_early(&self, state: &Hypothesis, index: usize, armed: Armed) -> bool {
        let event = &self.stream.events[index];
        if self.stream.logs.is_empty() || armed.timer.is_none() {
            return false;
        }
        let late = event.time.since(armed.due);
        if late > NEAR && !self.is_silent(index, armed) {
            return false;
        }
        let mut tried = state.clone();
        self.expire(&mut tried, armed, self.measured(armed.due));
        self.speaks_otherwise(&tried, state.coming(armed.queue), armed.queue)
    }

    /// Another CPU has an event, and the timer's CPU has had none since it was due: its hypervisor
    /// may have stopped it.
    fn is_silent(&self, index: usize, armed: Armed) -> bool {
        let since = self.stream.events[..=index].iter().rev();
        let mut since = since.take_while(|event| event.time > armed.due);
        since.all(|event| event.cpu != armed.cpu)
    }

    /// So late the function of a timer may run (captures' README: up to two ticks, and
    /// one more as a margin).
    pub(super) fn late(&self) -> Duration {
        Duration(3 * 1_000_000_000 / u64::from(self.setups[0].hz))
    }

    /// A task exits: schedulers free their data for it (exit_io_context()).
    pub(super) fn exit(&self, state: &mut Hypothesis, index: usize) {
        let queue = self.stream.queue[index];
        let task = self.at(state, index);
        let info = state.world.mq.queue(queue).settings.scheduler.info();
        let reported = info.is_some_and(|info| info.hooks.exits);
        if !reported || !Self::finish(state, task) {
            return;
        }
        let io_context = io_context_of(self.stream.context[self.stream.task[index]]);
        let frame = HookFrame::new(queue, Hook::Exits(io_context));
        state.world.begin(task, Frame::Hook(frame));
        Self::finish(state, task);
    }

    /// The function of a timer runs.
    pub(super) fn expire(&self, state: &mut Hypothesis, armed: Armed, time: SimTime) {
        let actor = self.actor(Role::Timers);
        let frame = match armed.timer {
            Some(timer) => Frame::Hook(HookFrame::new(armed.queue, Hook::Timer(timer))),
            None => {
                state.world.mq.timer_expires(armed.queue);
                Frame::Timeout(TimeoutPath::new(armed.queue))
            }
        };
        state.world.place(actor, armed.cpu, time, Hint::Else);
        state.world.begin(actor, frame);
        let ended = Self::finish(state, actor);
        assert!(ended, "a timer's function waits for nothing");
    }
}

#[cfg(test)]
mod tests;
