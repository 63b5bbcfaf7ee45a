//! Protocol events inside one critical section, recorded for trace checking: several steps under
//! the scheduler's lock, each with the state after it.
//!
//! Off unless a recorder is attached.

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EventLog<T>(Option<Vec<T>>);

impl<T> Default for EventLog<T> {
    /// Recording is off.
    fn default() -> EventLog<T> {
        EventLog(None)
    }
}

impl<T> EventLog<T> {
    pub fn enable(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records an event, if recording is on.
    pub fn record(&mut self, what: T) {
        if let Some(events) = &mut self.0 {
            events.push(what);
        }
    }

    /// The events since the last call; none if recording is off.
    pub fn take(&mut self) -> Option<Vec<T>> {
        self.0.as_mut().map(core::mem::take)
    }
}
