//! Runs of hardware queues: by requesting CPU, and how many offered no request.

use core::fmt;

use serde::Serialize;

use sim::plan::Plan;
use sim::recorder::{Recorder, RunStats};

/// Hardware queues in the text; the others are in JSON.
const SHOWN: usize = 4;

/// Runs of all hardware queues.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct RunsReport {
    /// All together.
    #[serde(flatten)]
    pub all: RunCounts,
    /// One entry per hardware queue; those that never ran are left out.
    pub hctxs: Vec<HctxRuns>,
}

/// Numbers of runs.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct RunCounts {
    /// Runs by the CPU that asked for them, or by kblockd after a CPU of this hctx asked.
    pub own: u64,
    /// Runs by kblockd for which only CPUs of other hctxs asked.
    pub foreign: u64,
    /// Runs of either kind that offered no request to the driver.
    pub in_vain: u64,
}

/// Runs of one hardware queue.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct HctxRuns {
    /// Name of the device.
    pub device: String,
    /// Number of the hardware queue.
    pub hctx: usize,
    /// How many.
    #[serde(flatten)]
    pub counts: RunCounts,
}

impl RunCounts {
    fn new(stats: &RunStats) -> RunCounts {
        RunCounts {
            own: stats.runs - stats.foreign,
            foreign: stats.foreign,
            in_vain: stats.in_vain,
        }
    }

    fn add(&mut self, other: RunCounts) {
        self.own += other.own;
        self.foreign += other.foreign;
        self.in_vain += other.in_vain;
    }
}

impl RunsReport {
    /// `None` if no hardware queue ran, or if runs were not collected.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> Option<RunsReport> {
        let mut hctxs = Vec::new();
        let mut all = RunCounts::default();
        for (disk, queue) in plan.queues().zip(recorder.runs.iter().flatten()) {
            for (hctx, stats) in queue.iter().enumerate() {
                let counts = RunCounts::new(stats);
                if counts == RunCounts::default() {
                    continue;
                }
                all.add(counts);
                hctxs.push(HctxRuns {
                    device: disk.device.name.clone(),
                    hctx,
                    counts,
                });
            }
        }
        (!hctxs.is_empty()).then_some(RunsReport { all, hctxs })
    }
}

impl fmt::Display for RunsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunCounts {
            own,
            foreign,
            in_vain,
        } = self.all;
        writeln!(
            f,
            "\nRuns of hardware queues: {own} own, {foreign} foreign; \
             {in_vain} of them offered no request"
        )?;
        if self.hctxs.len() == 1 {
            return Ok(());
        }
        let of_one = self.hctxs.iter().all(|h| h.device == self.hctxs[0].device);
        write!(f, "  by hctx:")?;
        for (index, hctx) in self.hctxs.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let device = match of_one {
                true => String::new(),
                false => format!("{} ", hctx.device),
            };
            let RunCounts {
                own,
                foreign,
                in_vain,
            } = hctx.counts;
            write!(f, "{comma} {device}{} {own}/{foreign}/{in_vain}", hctx.hctx)?;
        }
        match self.hctxs.len().checked_sub(SHOWN) {
            Some(more @ 1..) => writeln!(f, ", and {more} more, see --json"),
            _ => writeln!(f),
        }
    }
}
