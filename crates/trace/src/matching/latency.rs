//! Count, least, greatest and total of a span, in integers.

use blkmq::time::{Duration, SimTime};

/// A statistic over spans of time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Latency {
    pub count: u64,
    /// The shortest; zero if there is none.
    pub min: Duration,
    /// The longest; zero if there is none.
    pub max: Duration,
    /// Their sum in nanoseconds.
    pub total_ns: u128,
}

impl Latency {
    #[inline]
    pub fn add(&mut self, span: Duration) {
        if self.count == 0 || span < self.min {
            self.min = span;
        }
        self.max = self.max.max(span);
        self.count += 1;
        self.total_ns += u128::from(span.0);
    }

    /// Adds the span between two times, if both are there; nothing is shorter than zero.
    #[inline]
    pub(super) fn between(&mut self, from: Option<SimTime>, to: Option<SimTime>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.add(to.since(from));
        }
    }

    /// Mean, rounded to the nearest nanosecond; zero if there is none.
    pub fn mean(&self) -> Duration {
        let count = u128::from(self.count.max(1));
        Duration(((self.total_ns + count / 2) / count) as u64)
    }
}
