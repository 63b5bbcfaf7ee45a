//! Optional records of locks: waits by caller and distance (`waits.rs`), length of each wait and
//! each hold; and, for a window, spans of each CPU (`timeline.rs`).
//!
//! Off unless requested. All memory is allocated before the run, except the timeline's spans.

use blkmq::path::{Frame, Label};
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};
use hdrhistogram::Histogram;

use super::LockStats;
use super::runs::{RunStats, Runs};
use super::switches::Switches;
use super::timeline::{SpanKind, Timeline};
use super::waits::Waits;
use crate::profile::Distance;

/// Longest wait or hold that is resolved: 10 seconds.
const LONGEST: u64 = 10_000_000_000;

/// Waits and holds of the locks of one name.
#[derive(Clone, Debug)]
pub struct LockSpread {
    pub name: &'static str,
    /// Waits of contended acquisitions, ns.
    pub wait: Histogram<u64>,
    /// Holds, ns.
    pub hold: Histogram<u64>,
}

/// Records of grants and releases.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Spreads by name, if requested.
    spreads: Option<Box<[LockSpread]>>,
    /// Waits by caller, if requested.
    waits: Option<Waits>,
    /// Runs by hctx, if requested.
    runs: Option<Runs>,
    /// Spans of each CPU, if requested.
    pub(crate) timeline: Option<Timeline>,
    /// Context switches over time, if requested.
    pub(crate) switches: Option<Box<Switches>>,
    /// The name of each lock, as an index into `names`.
    classes: Vec<u8>,
    names: Vec<&'static str>,
    distances: Vec<Distance>,
}

impl Watch {
    /// Records nothing yet. `names`: of all locks; `classes`: the index there of each lock's name,
    /// by its dense number.
    pub(crate) fn new(
        names: Vec<&'static str>,
        classes: Vec<u8>,
        distances: Vec<Distance>,
    ) -> Watch {
        Watch {
            spreads: None,
            waits: None,
            runs: None,
            timeline: None,
            switches: None,
            classes,
            names,
            distances,
        }
    }

    /// Records waits by caller, and distances, from now on.
    pub(crate) fn want_waits(&mut self) {
        let waits = Waits::new(self.names.len(), self.classes.len(), self.distances.clone());
        self.waits = Some(waits);
    }

    /// Counts runs from now on. `hctxs`: how many each queue has.
    /// `owners`: numbers of levels.
    pub(crate) fn want_runs(&mut self, hctxs: &[usize], owners: usize) {
        self.runs = Some(Runs::new(hctxs, owners));
    }

    /// Runs by queue and hctx, if requested.
    pub(crate) fn runs(&self) -> Option<Vec<Vec<RunStats>>> {
        Some(self.runs.as_ref()?.stats())
    }

    /// A path offers the driver a request; direct issue is no run. `owner`: the level of a CPU, as
    /// a lock's owner.
    pub(crate) fn offers(&mut self, path: Option<&Frame>, owner: u32) {
        if let (Some(runs), Some(frame @ Frame::Run(_))) = (&mut self.runs, path) {
            runs.offers(frame.queue(), owner);
        }
    }

    /// A path of this level has ended.
    pub(crate) fn over(&mut self, frame: &Frame, owner: u32) {
        if let (Some(runs), Frame::Run(run)) = (&mut self.runs, frame)
            && run.has_run()
        {
            runs.add(frame.queue(), run.hctx(), owner);
        }
    }

    /// No CPU of its hctx asked for the run of this queue that a level begins.
    pub(crate) fn run_is_foreign(&mut self, queue: QueueId, owner: u32) {
        if let Some(runs) = &mut self.runs {
            runs.foreign(queue, owner);
        }
    }

    /// Adds the waits to statistics by name, in the order of the names.
    pub(crate) fn report(&self, stats: &mut [LockStats]) {
        let Some(waits) = &self.waits else {
            return;
        };
        for (name, stats) in stats.iter_mut().enumerate() {
            stats.waits = Some(waits.of(name));
        }
    }

    /// Records waits and holds from now on.
    pub(crate) fn want_spreads(&mut self) {
        let histogram =
            || Histogram::new_with_bounds(1, LONGEST, 2).expect("bounds and digits are valid");
        let spreads = self.names.iter().map(|&name| LockSpread {
            name,
            wait: histogram(),
            hold: histogram(),
        });
        self.spreads = Some(spreads.collect());
    }

    /// Spreads of the locks that were held at all.
    pub(crate) fn spreads(&self) -> Option<Vec<LockSpread>> {
        let spreads = self.spreads.as_ref()?.iter();
        Some(spreads.filter(|s| !s.hold.is_empty()).cloned().collect())
    }

    /// Forgets the spreads (end of the ramp).
    pub(crate) fn reset(&mut self) {
        for spread in self.spreads.iter_mut().flatten() {
            spread.wait.reset();
            spread.hold.reset();
        }
        if let Some(waits) = &mut self.waits {
            waits.reset();
        }
        if let Some(runs) = &mut self.runs {
            runs.reset();
        }
    }

    /// A waiter got the lock at `now`: a CPU, and the label that runs with it.
    pub(crate) fn granted(
        &mut self,
        slot: usize,
        (cpu, caller): (CpuId, Label),
        waited: Duration,
        now: SimTime,
    ) {
        if let Some(waits) = &mut self.waits {
            waits.granted((slot, self.classes[slot]), (cpu, caller), waited);
        }
        let class = usize::from(self.classes[slot]);
        if let Some(spreads) = &mut self.spreads {
            spreads[class].wait.saturating_record(waited.0.max(1));
        }
        if self.timeline.is_some() {
            let (name, slot, label) = (self.names[class], slot as u32, caller);
            self.span(cpu, SpanKind::Wait { name, slot, label }, now, waited);
        }
    }

    /// The lock is free again as of `at`.
    pub(crate) fn released(&mut self, slot: usize, cpu: CpuId, at: SimTime, held: Duration) {
        if let Some(waits) = &mut self.waits {
            waits.released(slot, cpu);
        }
        let class = usize::from(self.classes[slot]);
        if let Some(spreads) = &mut self.spreads {
            spreads[class].hold.saturating_record(held.0.max(1));
        }
        if self.timeline.is_some() {
            let (name, slot) = (self.names[class], slot as u32);
            self.span(cpu, SpanKind::Hold { name, slot }, at, held);
        }
    }

    #[cold]
    fn span(&mut self, cpu: CpuId, kind: SpanKind, to: SimTime, length: Duration) {
        if let Some(timeline) = &mut self.timeline {
            timeline.add(cpu, kind, SimTime(to.0 - length.0), to);
        }
    }
}
