//! What an observer wants to know of locks beyond sums: how long each wait and each hold was, and
//! how far each hand-off went; and, for a while, which CPU did what when (`timeline.rs`).
//!
//! Off unless asked for. Everything is allocated before the run, but for the timeline's spans.

use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};
use hdrhistogram::Histogram;

use super::timeline::{SpanKind, Timeline};
use crate::profile::Distance;

/// Longest wait or hold that is told apart: 10 seconds.
const LONGEST: u64 = 10_000_000_000;

/// Nobody has released the lock yet.
const NOBODY: u16 = u16::MAX;

/// Waits, holds and hand-offs of the locks of one name.
#[derive(Clone, Debug)]
pub struct LockSpread {
    /// What they are called.
    pub name: &'static str,
    /// Waits of those that had to, ns.
    pub wait: Histogram<u64>,
    /// Holds, ns.
    pub hold: Histogram<u64>,
    /// Grants to somebody who waited, by the distance from the CPU that released to the CPU that
    /// got it; in the order of [`Distance`].
    pub handoffs: [u64; 5],
}

/// What is noted at grants and releases.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Spreads by name, when they are wanted.
    spreads: Option<Box<[LockSpread]>>,
    /// Who did what when, when that is wanted.
    pub(crate) timeline: Option<Timeline>,
    /// What each lock is called, as a place in `names`.
    classes: Vec<u8>,
    names: Vec<&'static str>,
    /// CPU that released each lock last.
    last: Vec<u16>,
    /// Distance of each pair of CPUs.
    distances: Vec<Distance>,
    cpus: usize,
}

impl Watch {
    /// Notes nothing yet. `names`: of all locks; `classes`: the place there of each lock's name, by
    /// its dense number.
    pub(crate) fn new(
        names: Vec<&'static str>,
        classes: Vec<u8>,
        distances: Vec<Distance>,
        cpus: usize,
    ) -> Watch {
        assert_eq!(distances.len(), cpus * cpus, "a distance for each pair");
        Watch {
            spreads: None,
            timeline: None,
            last: vec![NOBODY; classes.len()],
            classes,
            names,
            distances,
            cpus,
        }
    }

    /// Notes waits, holds and hand-offs from now on.
    pub(crate) fn want_spreads(&mut self) {
        let histogram =
            || Histogram::new_with_bounds(1, LONGEST, 2).expect("bounds and digits are valid");
        let spreads = self.names.iter().map(|&name| LockSpread {
            name,
            wait: histogram(),
            hold: histogram(),
            handoffs: [0; 5],
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
            spread.handoffs = [0; 5];
        }
    }

    /// Somebody who waited got the lock at `now`.
    pub(crate) fn granted(&mut self, slot: usize, cpu: CpuId, waited: Duration, now: SimTime) {
        let class = usize::from(self.classes[slot]);
        if let Some(spreads) = &mut self.spreads {
            let spread = &mut spreads[class];
            spread.wait.saturating_record(waited.0.max(1));
            let from = self.last[slot];
            if from != NOBODY {
                let pair = usize::from(from) * self.cpus + usize::from(cpu.0);
                spread.handoffs[self.distances[pair] as usize] += 1;
            }
        }
        if let Some(timeline) = &mut self.timeline {
            let from = SimTime(now.0 - waited.0);
            timeline.add(cpu, SpanKind::Wait(self.names[class]), from, now);
        }
    }

    /// The lock is free again as of `at`.
    pub(crate) fn released(&mut self, slot: usize, cpu: CpuId, at: SimTime, held: Duration) {
        self.last[slot] = cpu.0;
        let class = usize::from(self.classes[slot]);
        if let Some(spreads) = &mut self.spreads {
            spreads[class].hold.saturating_record(held.0.max(1));
        }
        if let Some(timeline) = &mut self.timeline {
            let (name, slot) = (self.names[class], slot as u32);
            let from = SimTime(at.0 - held.0);
            timeline.add(cpu, SpanKind::Hold { name, slot }, from, at);
        }
    }
}
