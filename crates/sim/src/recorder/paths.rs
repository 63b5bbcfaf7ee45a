//! Paths of mapped devices: their requests, and when they were out of use.

use blkmq::time::{Duration, SimTime};

use super::Depth;
use crate::plan::Plan;

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PathStats {
    pub depth: Depth,
    /// Requests that its device took in the measured time.
    pub requests: u64,
    /// Requests that ended with an error in the measured time.
    pub errors: u64,
    /// Times that it went out of use, over the whole run.
    pub fail_count: u64,
    /// Total length of the times that ended with a reinstatement.
    out_of_use: Duration,
    /// When it last went out of use.
    pub failed: Option<SimTime>,
    /// When it came back from there; none: it stays out of use.
    pub reinstated: Option<SimTime>,
}

impl PathStats {
    pub(super) fn all(plan: &Plan) -> Vec<PathStats> {
        vec![PathStats::default(); plan.paths().len()]
    }

    pub fn is_active(&self) -> bool {
        self.failed.is_none() || self.reinstated.is_some()
    }

    pub(super) fn begin(&mut self, now: SimTime) {
        self.depth.begin(now);
        (self.requests, self.errors) = (0, 0);
    }

    pub(super) fn depth_changes(&mut self, now: SimTime, more: bool) {
        self.depth.change(now, more);
        self.requests += u64::from(more);
    }

    /// It goes out of use, or comes back.
    pub(super) fn changes(&mut self, now: SimTime, failed: bool) {
        match (failed, self.failed) {
            (true, _) => {
                self.fail_count += 1;
                (self.failed, self.reinstated) = (Some(now), None);
            }
            (false, Some(since)) => {
                self.out_of_use += now.since(since);
                self.reinstated = Some(now);
            }
            (false, None) => debug_assert!(false, "it comes back from nowhere"),
        }
    }

    pub(super) fn settle(&mut self, now: SimTime) {
        self.depth.settle(now);
    }

    /// How long it was out of use, up to the end of the run.
    pub fn out_of_use(&self, end: SimTime) -> Duration {
        match self.failed {
            Some(since) if !self.is_active() => self.out_of_use + end.since(since),
            _ => self.out_of_use,
        }
    }
}
