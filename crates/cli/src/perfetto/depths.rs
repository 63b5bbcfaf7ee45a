//! Requests of each queue over time, as counters: those that wait for the driver, and those with
//! it; of several hardware queues, each of them too.
//!
//! From the trace points alone, which carry the number of their request. A request waits from its
//! insertion to its issue, on whatever list it is (scheduler, software queue, dispatch list), and
//! again once it is requeued.

use std::collections::{BTreeMap, BTreeSet};

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{HctxId, QueueId, RequestId};
use blkmq::time::SimTime;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    Queued,
    InFlight,
}

/// What is counted: of a whole queue, or of a hardware queue.
pub(super) type Key = (QueueId, Option<HctxId>, Stage);

#[derive(Clone, Default, Debug)]
pub(super) struct Depths {
    /// Where each request is.
    requests: BTreeMap<(QueueId, RequestId), (Stage, HctxId)>,
    /// Requests by what is counted, at the beginning of the window.
    first: BTreeMap<Key, i64>,
    /// Changes in the window.
    changes: BTreeMap<Key, Vec<(SimTime, i64)>>,
}

impl Depths {
    /// Takes note of a trace point. While the window is not known it has not begun.
    pub(super) fn note(
        &mut self,
        window: Option<(SimTime, SimTime)>,
        time: SimTime,
        point: &TracePoint,
    ) {
        let Some(request) = point.request else {
            return;
        };
        let place = (point.queue, request.id);
        let known = self.requests.get(&place).copied();
        let next = match point.action {
            TraceAction::Insert => Some(Stage::Queued),
            TraceAction::Issue => Some(Stage::InFlight),
            TraceAction::Requeue => Some(Stage::Queued),
            // The number is a new request's, or the request has joined another.
            TraceAction::GetRq | TraceAction::BackMerge | TraceAction::FrontMerge => None,
            TraceAction::Complete => None,
            _ => return,
        };
        if let Some((stage, hctx)) = known {
            self.change(window, time, (point.queue, hctx, stage), -1);
        }
        match next {
            Some(stage) => {
                self.requests.insert(place, (stage, request.hctx));
                self.change(window, time, (point.queue, request.hctx, stage), 1);
            }
            None => {
                self.requests.remove(&place);
            }
        }
    }

    fn change(
        &mut self,
        window: Option<(SimTime, SimTime)>,
        time: SimTime,
        (queue, hctx, stage): (QueueId, HctxId, Stage),
        by: i64,
    ) {
        for key in [(queue, None, stage), (queue, Some(hctx), stage)] {
            match window {
                Some((_, to)) if to <= time => {}
                Some((from, _)) if from <= time => {
                    self.changes.entry(key).or_default().push((time, by));
                }
                _ => *self.first.entry(key).or_default() += by,
            }
        }
    }

    /// The values of each counter in order of time, the first at the beginning of the window.
    /// A queue with one hardware queue has the counters of the whole queue only.
    pub(super) fn counters(&self, from: SimTime) -> Vec<(Key, Vec<(SimTime, i64)>)> {
        let keys: BTreeSet<Key> = self
            .first
            .keys()
            .chain(self.changes.keys())
            .copied()
            .collect();
        let hctxs = |queue: QueueId| {
            let of_queue = keys.iter().filter(|key| key.0 == queue);
            of_queue.filter_map(|key| key.1).collect::<BTreeSet<_>>()
        };
        let shown = |key: &&Key| key.1.is_none() || hctxs(key.0).len() > 1;
        keys.iter()
            .filter(shown)
            .map(|key| (*key, self.values(key, from)))
            .collect()
    }

    fn values(&self, key: &Key, from: SimTime) -> Vec<(SimTime, i64)> {
        let first = self.first.get(key).copied().unwrap_or_default();
        let changes = self.changes.get(key).map_or(&[][..], Vec::as_slice);
        levels((from, first), changes.to_vec())
    }
}

/// Levels over time: of changes in any order, one value for each time at which it is another.
pub(super) fn levels(
    first: (SimTime, i64),
    mut changes: Vec<(SimTime, i64)>,
) -> Vec<(SimTime, i64)> {
    changes.sort_unstable();
    let (mut all, mut level) = (vec![first], first.1);
    for of_time in changes.chunk_by(|a, b| a.0 == b.0) {
        level += of_time.iter().map(|(_, by)| by).sum::<i64>();
        let at = of_time[0].0;
        match all.last_mut() {
            Some(last) if last.0 == at => last.1 = level,
            Some(last) if last.1 == level => {}
            _ => all.push((at, level)),
        }
    }
    all
}
