//! Timers of schedulers and of queues expire between two events of the capture.
//!
//! When the records' clock has come to its time, before the event that is next: what it does shows
//! in that event, or later. Read first: `world/timers.rs`.

use blkmq::elevator::Hook;
use blkmq::path::{Frame, HookFrame, TimeoutPath};

use super::{Follow, State};
use crate::world::Hint;

impl Follow<'_> {
    /// Timers that are due before an event have expired.
    pub(super) fn expire_timers(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        while let Some(armed) = state.world.outside.timers.next_until(event.time) {
            let time = match self.measures {
                true => self.measured(armed.due),
                false => self.time(state, event),
            };
            let actor = self.timers();
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
}

#[cfg(test)]
mod tests;
