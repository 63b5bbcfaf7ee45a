//! Timers of schedulers expire between two events of the capture.
//!
//! When the records' clock has come to its time, before the event that is next: what it does shows
//! in that event, or later. Read first: `world/timers.rs`.

use blkmq::elevator::Hook;
use blkmq::path::{Frame, HookFrame};

use super::{Follow, State};
use crate::world::Hint;

impl Follow<'_> {
    /// Timers that are due before an event have expired.
    pub(super) fn expire_timers(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        while let Some(armed) = state.world.outside.timers.next_until(event.time) {
            let time = self.time(state, event);
            let actor = self.timers();
            let path = HookFrame::new(armed.queue, Hook::Timer(armed.timer));
            state.world.place(actor, armed.cpu, time, Hint::Else);
            state.world.begin(actor, Frame::Hook(path));
            let ended = Self::finish(state, actor);
            assert!(ended, "a timer's function waits for nothing");
        }
    }
}

#[cfg(test)]
mod tests;
