//! Values of schedulers over time, as counters: levels, samples, and sums of counts.

use std::collections::BTreeMap;

use blkmq::elevator::SubmitterGroup;
use blkmq::env::{CounterForm, TraceAction, TracePoint};
use blkmq::request::QueueId;
use blkmq::time::SimTime;
use sim::recorder::{CounterValue, Readings};

/// The queue, and the name of the value with its group.
type Name = (QueueId, String);

/// The values recorded in the window, and the levels at its beginning.
#[derive(Clone, Default, Debug)]
pub(super) struct Counters {
    levels: BTreeMap<Name, f64>,
    /// Sums of counts, from the window's beginning on.
    sums: BTreeMap<Name, f64>,
    values: Vec<(SimTime, Name, f64)>,
}

impl Counters {
    /// Takes note of a trace point. While the window is not known it has not begun.
    pub(super) fn note(
        &mut self,
        window: Option<(SimTime, SimTime)>,
        groups: &[SubmitterGroup],
        time: SimTime,
        point: &TracePoint,
    ) {
        let TraceAction::Probe(probe) = point.action else {
            return;
        };
        let Some(sample) = CounterValue::of(probe) else {
            return;
        };
        let name = (point.queue, name(&sample, groups));
        let value = sample.scaled(sample.value as f64);
        match window {
            Some((from, to)) if from <= time && time < to => {
                let shown = match sample.form {
                    CounterForm::Level | CounterForm::Sample | CounterForm::Turn => value,
                    CounterForm::Count => {
                        let sum = self.sums.entry(name.clone()).or_default();
                        *sum += value;
                        *sum
                    }
                };
                self.values.push((time, name, shown));
            }
            Some((from, _)) if from <= time => {}
            _ if matches!(sample.form, CounterForm::Level | CounterForm::Turn) => {
                self.levels.insert(name, value);
            }
            _ => {}
        }
    }

    /// All values in order of time. A level without a record before the window has its initial
    /// value.
    pub(super) fn complete(
        &self,
        from: SimTime,
        groups: &[SubmitterGroup],
        readings: Option<&Readings>,
    ) -> Vec<(SimTime, Name, f64)> {
        let mut levels = self.levels.clone();
        for track in readings.iter().flat_map(|readings| &readings.tracks) {
            let first = track.curve.values().next().flatten();
            if let (CounterForm::Level, Some(first)) = (track.curve.form, first) {
                let name = (track.queue, name(&track.sample, groups));
                levels
                    .entry(name)
                    .or_insert_with(|| track.sample.scaled(first));
            }
        }
        let levels = levels.into_iter().map(|(name, value)| (from, name, value));
        let mut all: Vec<_> = levels.chain(self.values.iter().cloned()).collect();
        all.sort_by_key(|(time, ..)| *time);
        all
    }
}

fn name(sample: &CounterValue, groups: &[SubmitterGroup]) -> String {
    format!("{}: {}", sample.group_name(groups), sample.name())
}
