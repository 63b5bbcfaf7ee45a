//! Count, least, greatest, total and percentiles of a span, in integers and in bounded memory.

use blkmq::time::{Duration, SimTime};
use hdrhistogram::Histogram;

/// A statistic over spans of time.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Latency {
    pub count: u64,
    /// The shortest; zero if there is none.
    pub min: Duration,
    /// The longest; zero if there is none.
    pub max: Duration,
    /// Their sum in nanoseconds.
    pub total_ns: u128,
    /// None before the first span.
    spans: Option<Histogram<u64>>,
}

/// Grows with the largest value: 18 KiB up to a second. Values are kept within 1 %.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut spans = Histogram::new(2).expect("two digits are allowed");
    spans.auto(true);
    spans
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
        let spans = self.spans.get_or_insert_with(histogram);
        spans.record(span.0).expect("it grows");
    }

    /// Adds the span between two times, if both are there; nothing is shorter than zero.
    #[inline]
    pub(super) fn between(&mut self, from: Option<SimTime>, to: Option<SimTime>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.add(to.since(from));
        }
    }

    /// Adds all spans of another one.
    pub(super) fn merge(&mut self, other: &Latency) {
        let Some(spans) = &other.spans else { return };
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.total_ns += other.total_ns;
        let own = self.spans.get_or_insert_with(histogram);
        own.add(spans).expect("it grows");
    }

    /// Mean, rounded to the nearest nanosecond; zero if there is none.
    pub fn mean(&self) -> Duration {
        let count = u128::from(self.count.max(1));
        Duration(((self.total_ns + count / 2) / count) as u64)
    }

    /// The span that so many percent do not exceed, at most 1 % too long; zero if there is none.
    pub fn percentile(&self, percent: f64) -> Duration {
        let Some(spans) = &self.spans else {
            return Duration(0);
        };
        let span = Duration(spans.value_at_quantile(percent / 100.0));
        span.clamp(self.min, self.max)
    }
}
