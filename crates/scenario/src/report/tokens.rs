//! Tokens of schedulers: their number for each group of requests, requests that found none, and
//! latencies against their targets.

use core::fmt;

use blkmq::request::QueueId;
use serde::Serialize;

use sim::plan::Plan;
use sim::recorder::{GroupStats, LatencyStats, Recorder};

/// Tokens of one group of requests of one device.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct TokenReport {
    /// Name of the device.
    pub device: String,
    /// Name of the group in the scheduler.
    pub group: String,
    /// Tokens at the start of the measured time.
    pub first: u32,
    /// Tokens at the end.
    pub last: u32,
    /// Smallest number in between.
    pub least: u32,
    /// Largest number in between.
    pub most: u32,
    /// Times that the scheduler changed the number.
    pub changes: u64,
    /// Requests for a token that found none.
    pub throttled: u64,
    /// Latencies that the scheduler calculated.
    pub latencies: Vec<LatencyReport>,
}

/// A percentile of latencies against its target.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LatencyReport {
    /// Name of the latency in the scheduler.
    pub latency: &'static str,
    /// The percentile.
    pub percentile: u8,
    /// Times that the scheduler calculated it.
    pub calculated: u64,
    /// Times that it was not above the target.
    pub within: u64,
    /// Largest one, in parts of the target, as the scheduler sees it (the end of a bucket).
    pub worst: f64,
}

impl TokenReport {
    pub(super) fn all(plan: &Plan, recorder: &Recorder) -> Vec<TokenReport> {
        let groups = recorder
            .readings
            .iter()
            .flat_map(|readings| &readings.groups);
        let groups_with_events = groups.filter(|group| group.has_events());
        groups_with_events
            .map(|group| TokenReport::new(plan, group))
            .collect()
    }

    fn new(plan: &Plan, group: &GroupStats) -> TokenReport {
        TokenReport {
            device: device_of(plan, group.queue),
            group: group.group.to_owned(),
            first: group.first,
            last: group.depth,
            least: group.least,
            most: group.most,
            changes: group.changes,
            throttled: group.throttled,
            latencies: group.latencies.iter().map(LatencyReport::new).collect(),
        }
    }
}

impl LatencyReport {
    fn new(stats: &LatencyStats) -> LatencyReport {
        LatencyReport {
            latency: stats.kind,
            percentile: stats.percentile,
            calculated: stats.calculated,
            within: stats.within,
            worst: stats.worst as f64 / 1000.0,
        }
    }

    /// It was never above its target.
    pub fn is_met(&self) -> bool {
        self.within == self.calculated
    }
}

pub(super) fn device_of(plan: &Plan, queue: QueueId) -> String {
    let disk = plan.queues().nth(queue.index());
    disk.map_or_else(String::new, |disk| disk.device.name.clone())
}

/// All of them; nothing without tokens.
pub(super) fn write(all: &[TokenReport], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "\nTokens of the scheduler      first    last   least    most  changes  found none"
    )?;
    let of_one = all.iter().all(|tokens| tokens.device == all[0].device);
    for tokens in all {
        let name = match of_one {
            true => tokens.group.clone(),
            false => format!("{} {}", tokens.device, tokens.group),
        };
        writeln!(
            f,
            "  {name:<24} {:>7} {:>7} {:>7} {:>7} {:>8} {:>11}",
            tokens.first, tokens.last, tokens.least, tokens.most, tokens.changes, tokens.throttled
        )?;
        for latency in &tokens.latencies {
            writeln!(f, "    {latency}")?;
        }
    }
    Ok(())
}

impl fmt::Display for LatencyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.is_met() {
            true => "target met",
            false => "TARGET MISSED",
        };
        write!(
            f,
            "{} latency, {} %: {verdict}, within it {} of {} times, at worst {:.2} of it",
            self.latency, self.percentile, self.within, self.calculated, self.worst
        )
    }
}
