//! Data beside the state, which the explorer neither compares nor hashes.

/// A value beside the state, like a time or a count of work: neither compared nor hashed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotState<T>(pub T);

impl<T> PartialEq for NotState<T> {
    fn eq(&self, _other: &NotState<T>) -> bool {
        true
    }
}

impl<T> Eq for NotState<T> {}

impl<T> core::hash::Hash for NotState<T> {
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}
