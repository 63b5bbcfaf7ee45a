//! What a scheduler tells whoever follows a run of what no label names: several steps of a protocol
//! in one section under its lock, each with what is to be seen behind it.
//!
//! Nothing is kept, nor looked at, unless somebody listens.

/// What was told and has not been taken, oldest first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EventLog<T>(Option<Vec<T>>);

impl<T> Default for EventLog<T> {
    /// Nobody listens.
    fn default() -> EventLog<T> {
        EventLog(None)
    }
}

impl<T> EventLog<T> {
    /// Somebody listens from now on.
    pub fn enable(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// One more. Nothing, if nobody listens.
    pub fn record(&mut self, what: T) {
        if let Some(events) = &mut self.0 {
            events.push(what);
        }
    }

    /// All that was told since this was called last; none if nobody listens.
    pub fn take(&mut self) -> Option<Vec<T>> {
        self.0.as_mut().map(core::mem::take)
    }
}
