//! Latencies, and the depths that follow from them: histograms and percentiles.
//!
//! Only Kyber's timer evaluates, so nothing here is under a lock. Kernel: add_latency_sample(),
//! calculate_percentile(), kyber_timer_fn() in block/kyber-iosched.c (6.1.192, 6.12.117).

use super::domain::{DOMAINS, Domain, MEASURED};
use crate::env::Toucher;
use crate::request::CpuId;
use crate::time::{Duration, Jiffies};

/// Buckets of a histogram; the last one has no upper end.
pub const BUCKETS: usize = 8;
/// KYBER_LATENCY_SHIFT: a bucket is this power of two of the target wide, downwards.
pub const LATENCY_SHIFT: u32 = 2;
/// Buckets up to the target.
pub const GOOD_BUCKETS: u32 = 1 << LATENCY_SHIFT;
/// With so many samples the evaluation is immediate; with fewer a second must have passed.
const SAMPLES_ENOUGH: u32 = 500;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// From allocation to end.
    Total,
    /// From issue to end.
    Io,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Total => "total",
            Kind::Io => "I/O",
        }
    }
}

/// The bucket of a latency against a target.
pub fn bucket_of(latency: Duration, target_ns: u64) -> usize {
    let width = (target_ns >> LATENCY_SHIFT).max(1);
    let bucket = latency.0.saturating_sub(1) / width;
    bucket.min(BUCKETS as u64 - 1) as usize
}

/// Counts of samples (struct kyber_cpu_latency).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Histograms([[[u32; BUCKETS]; 2]; MEASURED]);

impl Histograms {
    /// Adds a request of a measured domain.
    pub fn add(&mut self, domain: Domain, kind: Kind, bucket: usize) {
        self.0[domain.index()][kind as usize][bucket] += 1;
    }

    /// Adds the counts of another one, and clears it.
    pub fn absorb(&mut self, other: &mut Histograms) {
        let all = |histograms: &mut Histograms| core::mem::take(&mut histograms.0);
        let (mine, theirs) = (self.0.iter_mut().flatten().flatten(), all(other));
        for (count, more) in mine.zip(theirs.into_iter().flatten().flatten()) {
            *count = count.wrapping_add(more);
        }
    }

    pub fn counts(&self, domain: Domain, kind: Kind) -> &[u32; BUCKETS] {
        &self.0[domain.index()][kind as usize]
    }
}

/// State of the timer (struct kyber_queue_data), and the targets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueueData {
    /// Ticks per second.
    pub hz: u32,
    /// Targets of measured domains, nanoseconds.
    pub targets: [u64; MEASURED],
    /// The result of limit_depth() where it does not follow from the map in use.
    pub async_depth: u32,
    /// Samples that were not evaluated yet.
    pub buckets: Histograms,
    /// The tick at which a domain's samples are evaluated however few there are; 0: not set. One
    /// for both kinds of latency.
    pub timeouts: [Jiffies; MEASURED],
    /// The last 99th percentile of total latency, until a congestion uses it.
    pub p99: [Option<u32>; MEASURED],
}

impl Toucher for QueueData {
    fn touched_by(&mut self, _cpu: CpuId) {}
}

impl Toucher for Histograms {
    fn touched_by(&mut self, _cpu: CpuId) {}
}

/// A percentile (trace event kyber_latency).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Percentile {
    pub domain: Domain,
    pub kind: Kind,
    pub percentile: u32,
    /// The bucket of the percentile.
    pub bucket: u32,
    pub samples: u32,
}

impl QueueData {
    /// calculate_percentile(): none if there are too few samples yet. Clears the samples.
    fn percentile(
        &mut self,
        domain: Domain,
        (kind, percentile): (Kind, u32),
        now: Jiffies,
    ) -> Option<Percentile> {
        let at = domain.index();
        let counts = &mut self.buckets.0[at][kind as usize];
        let samples: u32 = counts.iter().sum();
        if samples == 0 {
            return None;
        }
        if self.timeouts[at] == Jiffies(0) {
            self.timeouts[at] = Jiffies((now.0 + u64::from(self.hz)).max(1));
        }
        if samples < SAMPLES_ENOUGH && self.timeouts[at] > now {
            return None;
        }
        // For the other kind of latency another second begins, if it is evaluated later.
        self.timeouts[at] = Jiffies(0);
        let mut wanted = (samples * percentile).div_ceil(100);
        let mut bucket = 0;
        while bucket < BUCKETS - 1 && counts[bucket] < wanted {
            wanted -= counts[bucket];
            bucket += 1;
        }
        *counts = [0; BUCKETS];
        Some(Percentile {
            domain,
            kind,
            percentile,
            bucket: bucket as u32,
            samples,
        })
    }

    /// The first half of kyber_timer_fn(): has any domain a high I/O latency? Reports each
    /// percentile that it calculates.
    pub fn congested(&mut self, now: Jiffies, mut report: impl FnMut(Percentile)) -> bool {
        let mut bad = false;
        for domain in &Domain::ALL[..MEASURED] {
            if let Some(p90) = self.percentile(*domain, (Kind::Io, 90), now) {
                report(p90);
                bad |= p90.bucket >= GOOD_BUCKETS;
            }
        }
        bad
    }

    /// The second half for one domain: its new depth, if there is a percentile. With congestion it
    /// decreases with the latency; without, it only increases.
    pub fn wanted_depth(
        &mut self,
        domain: Domain,
        (bad, depth): (bool, u32),
        now: Jiffies,
        report: impl FnOnce(Percentile),
    ) -> Option<u32> {
        let at = domain.index();
        let found = self.percentile(domain, (Kind::Total, 99), now);
        let mut p99 = found.map(|found| found.bucket);
        if let Some(found) = found {
            report(found);
        }
        if bad {
            // A stored percentile is used once.
            p99 = p99.or(self.p99[at]);
            self.p99[at] = None;
        } else if p99.is_some() {
            self.p99[at] = p99;
        }
        let p99 = p99.filter(|&p99| bad || p99 >= GOOD_BUCKETS)?;
        let scaled = (depth * (p99 + 1)) >> LATENCY_SHIFT;
        Some(scaled.clamp(1, domain.depth_max()))
    }
}

/// The domain of a number in the frames of paths, which are small.
pub(super) fn domain_at(index: u8) -> Domain {
    Domain::ALL[usize::from(index) % DOMAINS]
}

#[cfg(test)]
mod tests;
