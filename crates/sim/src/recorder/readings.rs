//! Values of schedulers over time: numbers of tokens, percentiles of latencies, failed attempts,
//! and any further gauges. As curves in bounded memory, and summed up for each group.
//!
//! No scheduler is named here. Off unless requested.

use blkmq::elevator::{SchedulerInfo, SubmitterGroup};
use blkmq::env::{CounterForm, CounterUnit, Percentile, Probe, Reading, Which};
use blkmq::request::QueueId;
use blkmq::time::SimTime;

use super::curve::Curve;
use super::turns::Turns;

/// Most curves that are kept; values of further groups are in the sums only.
const CURVES: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// One for each gauge and group, in the order of their first values.
    pub tracks: Vec<Track>,
    /// Groups with tokens, by queue, in the order of their scheduler.
    pub groups: Vec<GroupStats>,
    pub turns: Turns,
}

/// A value that a scheduler reported, and its subject.
#[derive(Clone, Copy, Debug)]
pub struct CounterValue {
    of: Of,
    /// The scheduler's name for the group of requests.
    pub group: &'static str,
    pub which: Which,
    /// The meaning of a value for the time around it.
    pub form: CounterForm,
    pub unit: CounterUnit,
    /// The gauge that it is shown beside.
    pub beside: Option<&'static str>,
    pub value: u64,
}

/// A gauge, or an event that kernels have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Depth,
    Percentile(&'static str, u8),
    Throttled,
    Counter(&'static str),
}

impl CounterValue {
    /// `None` for a probe without a value.
    pub fn of(probe: Probe) -> Option<CounterValue> {
        let (of, group, value) = match probe {
            Probe::Depth { group, depth } => (Of::Depth, group, depth.into()),
            Probe::Throttled { group } => (Of::Throttled, group, 1),
            Probe::Percentile(found) => {
                let of = Of::Percentile(found.kind, found.percentile);
                (of, found.group, of_target(found))
            }
            Probe::Reading(Reading {
                counter,
                group,
                which,
                value,
            }) => {
                return Some(CounterValue {
                    of: Of::Counter(counter.name),
                    group,
                    which,
                    form: counter.form,
                    unit: counter.unit,
                    beside: counter.beside,
                    value,
                });
            }
            _ => return None,
        };
        let (form, unit) = match of {
            Of::Depth => (CounterForm::Level, CounterUnit::Number),
            Of::Percentile(..) => (CounterForm::Sample, CounterUnit::OfTarget),
            Of::Throttled | Of::Counter(_) => (CounterForm::Count, CounterUnit::Number),
        };
        Some(CounterValue {
            of,
            group,
            which: Which::One,
            form,
            unit,
            beside: None,
            value,
        })
    }

    pub fn name(&self) -> String {
        match self.of {
            Of::Depth => "tokens".to_owned(),
            Of::Percentile(kind, percentile) => format!("{kind} latency, {percentile} %"),
            Of::Throttled => "requests without a token".to_owned(),
            Of::Counter(name) => name.to_owned(),
        }
    }

    /// The group, for people: a queue with its kind (S or A) and its owner, as kernels write it to
    /// blktrace, after the path of its cgroup. `groups`: all of them, the root first.
    pub fn group_name(&self, groups: &[SubmitterGroup]) -> String {
        let Which::Queue {
            number,
            pid,
            sync,
            cgroup,
        } = self.which
        else {
            return self.group.to_owned();
        };
        let group = self.group;
        let name = match (pid, sync) {
            (0.., true) => format!("{group}{pid}S"),
            // A process has several, by level, and shares queues that others have created.
            (0.., false) => format!("{group}{pid}A #{number}"),
            (_, true) => format!("{group}SHARED-S #{number}"),
            (_, false) => format!("{group}SHARED-A #{number}"),
        };
        match groups.get(usize::from(cgroup)) {
            Some(group) if cgroup != 0 => format!("{} {name}", group.path),
            _ => name,
        }
    }

    /// In its unit, whole targets among them.
    pub fn scaled(&self, value: f64) -> f64 {
        match self.unit {
            CounterUnit::OfTarget => value / 1000.0,
            CounterUnit::Number | CounterUnit::Sectors | CounterUnit::Nanoseconds => value,
        }
    }

    fn is_like(&self, other: &CounterValue) -> bool {
        self.of == other.of && self.which == other.which && self.group == other.group
    }
}

/// A gauge of one group over time.
#[derive(Clone, Debug)]
pub struct Track {
    pub queue: QueueId,
    /// The first value, which has its subject.
    pub sample: CounterValue,
    pub curve: Curve,
}

/// A group of requests that need tokens.
#[derive(Clone, Debug)]
pub struct GroupStats {
    pub queue: QueueId,
    /// The scheduler's name for it.
    pub group: &'static str,
    /// Tokens when measuring began, or the scheduler came.
    pub first: u32,
    pub depth: u32,
    pub least: u32,
    pub most: u32,
    /// Times that their number changed.
    pub changes: u64,
    /// Requests that found none (each look counts).
    pub throttled: u64,
    /// Latencies, in the order of their first values.
    pub latencies: Vec<LatencyStats>,
    /// Its scheduler is still in use.
    here: bool,
}

/// A percentile of a group's latencies, as its scheduler calculated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyStats {
    pub kind: &'static str,
    pub percentile: u8,
    /// How often it was calculated.
    pub calculated: u64,
    /// How often it was not above the target.
    pub within: u64,
    /// The largest, in thousandths of the target.
    pub worst: u64,
}

impl Readings {
    /// This scheduler begins to work for a queue; the one before has stopped.
    pub(crate) fn scheduler_is(
        &mut self,
        queue: QueueId,
        info: Option<&'static SchedulerInfo>,
        now: SimTime,
    ) {
        for track in self.tracks.iter_mut().filter(|track| track.queue == queue) {
            track.curve.gone(now);
        }
        for group in self.groups.iter_mut().filter(|group| group.queue == queue) {
            group.here = false;
        }
        self.turns.over(queue, now);
        for tokens in info.map_or(&[][..], |info| info.tokens) {
            self.begin_group(queue, tokens.group, tokens.depth);
            let (group, depth) = (tokens.group, tokens.depth);
            if let Some(sample) = CounterValue::of(Probe::Depth { group, depth }) {
                self.put(now, queue, sample);
            }
        }
    }

    /// A group with so many tokens; an earlier one of the same name is continued.
    fn begin_group(&mut self, queue: QueueId, group: &'static str, depth: u32) {
        if let Some(known) = self.group(queue, group) {
            known.here = true;
            known.has(depth);
            return;
        }
        self.groups.push(GroupStats {
            queue,
            group,
            first: depth,
            depth,
            least: depth,
            most: depth,
            changes: 0,
            throttled: 0,
            latencies: Vec::new(),
            here: true,
        });
    }

    fn group(&mut self, queue: QueueId, group: &str) -> Option<&mut GroupStats> {
        let mut groups = self.groups.iter_mut();
        groups.find(|known| known.queue == queue && known.group == group)
    }

    /// Measuring begins: sums start, curves cover the whole run.
    pub(super) fn begin(&mut self) {
        self.groups.retain(|group| group.here);
        for group in &mut self.groups {
            (group.first, group.least, group.most) = (group.depth, group.depth, group.depth);
            (group.changes, group.throttled) = (0, 0);
            group.latencies.clear();
        }
    }

    pub(super) fn finish(&mut self, now: SimTime) {
        for track in &mut self.tracks {
            track.curve.until(now);
        }
        self.turns.finish(now);
    }

    /// Records the values of a probe, if it has any.
    pub(crate) fn note(&mut self, at: SimTime, queue: QueueId, probe: Probe) {
        match probe {
            Probe::Depth { group, depth } => {
                if let Some(known) = self.group(queue, group) {
                    known.changes += 1;
                    known.has(depth);
                }
            }
            Probe::Throttled { group } => {
                if let Some(known) = self.group(queue, group) {
                    known.throttled += 1;
                }
            }
            Probe::Percentile(found) => {
                if let Some(known) = self.group(queue, found.group) {
                    known.latency(found);
                }
            }
            _ => {}
        }
        match CounterValue::of(probe) {
            Some(sample) if sample.form == CounterForm::Turn => self.turns.note(at, queue, sample),
            Some(sample) => self.put(at, queue, sample),
            None => {}
        }
    }

    fn put(&mut self, at: SimTime, queue: QueueId, sample: CounterValue) {
        let mut known = self.tracks.iter();
        let index = known.position(|track| track.queue == queue && track.sample.is_like(&sample));
        let index = match index {
            Some(index) => index,
            None if self.tracks.len() == CURVES => return,
            None => {
                let curve = Curve::new(sample.form);
                self.tracks.push(Track {
                    queue,
                    sample,
                    curve,
                });
                self.tracks.len() - 1
            }
        };
        self.tracks[index].curve.add(at, sample.value);
    }
}

impl GroupStats {
    fn has(&mut self, depth: u32) {
        self.depth = depth;
        self.least = self.least.min(depth);
        self.most = self.most.max(depth);
    }

    fn latency(&mut self, found: Percentile) {
        let is =
            |known: &LatencyStats| known.kind == found.kind && known.percentile == found.percentile;
        let index = self.latencies.iter().position(is).unwrap_or_else(|| {
            self.latencies.push(LatencyStats {
                kind: found.kind,
                percentile: found.percentile,
                calculated: 0,
                within: 0,
                worst: 0,
            });
            self.latencies.len() - 1
        });
        let known = &mut self.latencies[index];
        known.calculated += 1;
        known.within += u64::from(found.numerator <= found.denominator);
        known.worst = known.worst.max(of_target(found));
    }

    /// There are values other than a constant number of tokens.
    pub fn has_events(&self) -> bool {
        self.changes > 0 || self.throttled > 0 || !self.latencies.is_empty()
    }
}

/// In thousandths of the target.
fn of_target(found: Percentile) -> u64 {
    u64::from(found.numerator) * 1000 / u64::from(found.denominator.max(1))
}

#[cfg(test)]
mod tests;
