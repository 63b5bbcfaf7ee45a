//! Figures of one direction of one job: rates and the spread of latencies.
//!
//! Field names and units are those of fio's JSON.

use blkmq::time::Duration;
use hdrhistogram::Histogram;
use serde::ser::{Serialize, Serializer};

use super::{Intervals, ratio, round};
use sim::recorder::DirectionStats;

/// fio's default percentile_list, with its way of writing them.
pub(super) const LIST: [(f64, &str); 17] = [
    (1.0, "1.000000"),
    (5.0, "5.000000"),
    (10.0, "10.000000"),
    (20.0, "20.000000"),
    (30.0, "30.000000"),
    (40.0, "40.000000"),
    (50.0, "50.000000"),
    (60.0, "60.000000"),
    (70.0, "70.000000"),
    (80.0, "80.000000"),
    (90.0, "90.000000"),
    (95.0, "95.000000"),
    (99.0, "99.000000"),
    (99.5, "99.500000"),
    (99.9, "99.900000"),
    (99.95, "99.950000"),
    (99.99, "99.990000"),
];

/// Rates and latencies of reads, writes or trims.
#[derive(Clone, Debug, serde::Serialize, PartialEq)]
pub struct Direction {
    /// Bytes.
    pub io_bytes: u64,
    /// KiB.
    pub io_kbytes: u64,
    /// Bytes a second.
    pub bw_bytes: u64,
    /// KiB a second.
    pub bw: u64,
    /// IOPS.
    pub iops: f64,
    /// Measured time, ms.
    pub runtime: u64,
    /// Number of I/Os.
    pub total_ios: u64,
    /// Failed I/Os.
    pub errors: u64,
    /// From submission to the time at which the thread sees the completion.
    pub clat_ns: Spread,
    /// Intervals of these figures. Left out of devices, and without I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
}

/// Latencies of fsync(2) and fdatasync(2).
#[derive(Clone, Debug, serde::Serialize, PartialEq)]
pub struct Sync {
    /// Number of calls.
    pub total_ios: u64,
    /// From call to return.
    pub lat_ns: Spread,
    /// As of a direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
}

/// Distribution of latencies, to three digits.
#[derive(Clone, Debug, serde::Serialize, PartialEq)]
pub struct Spread {
    /// Shortest, ns; 0 if there is none.
    pub min: u64,
    /// Longest, ns.
    pub max: u64,
    /// Mean, ns.
    pub mean: f64,
    /// Standard deviation, ns.
    pub stddev: f64,
    /// Number of latencies.
    #[serde(rename = "N")]
    pub count: u64,
    /// Latencies, ns, by fio's percentiles. Left out if `N` is 0.
    #[serde(skip_serializing_if = "Percentiles::is_empty")]
    pub percentile: Percentiles,
}

/// Latencies, ns, by fio's percentiles; empty if nothing was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Percentiles(pub Vec<(&'static str, u64)>);

impl Direction {
    pub(super) fn new(
        stats: &DirectionStats,
        span: Duration,
        intervals: Option<Intervals>,
    ) -> Direction {
        let a_second = |count: u64| u128::from(count) * 1_000_000_000;
        let bytes = a_second(stats.bytes)
            .checked_div(u128::from(span.0))
            .unwrap_or(0);
        Direction {
            io_bytes: stats.bytes,
            io_kbytes: stats.bytes / 1024,
            bw_bytes: bytes as u64,
            bw: (bytes / 1024) as u64,
            iops: round(ratio(a_second(stats.ios), u128::from(span.0))),
            runtime: span.0 / 1_000_000,
            total_ios: stats.ios,
            errors: stats.errors,
            clat_ns: Spread::new(&stats.latency),
            intervals: intervals.filter(|_| stats.ios > 0),
        }
    }
}

impl Sync {
    pub(super) fn new(stats: &DirectionStats, intervals: Option<Intervals>) -> Sync {
        Sync {
            total_ios: stats.ios,
            lat_ns: Spread::new(&stats.latency),
            intervals: intervals.filter(|_| stats.ios > 0),
        }
    }
}

impl Spread {
    fn new(histogram: &Histogram<u64>) -> Spread {
        if histogram.is_empty() {
            let percentile = Percentiles::default();
            return Spread {
                min: 0,
                max: 0,
                mean: 0.0,
                stddev: 0.0,
                count: 0,
                percentile,
            };
        }
        let at = |(percent, name)| (name, histogram.value_at_quantile(percent / 100.0));
        Spread {
            min: histogram.min(),
            max: histogram.max(),
            mean: round(histogram.mean()),
            stddev: round(histogram.stdev()),
            count: histogram.len(),
            percentile: Percentiles(LIST.into_iter().map(at).collect()),
        }
    }
}

impl Percentiles {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Latency at a percentile by fio's name, e.g. `99.900000`.
    pub fn at(&self, name: &str) -> Option<u64> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }
}

impl Serialize for Percentiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
