//! The result of a comparison, for callers: counts, and the first difference of each kind.
//!
//! Five things are compared: dispatches, events of the scheduler's own (`verdict/events.rs`), lines
//! of its log (`verdict/log.rs`), paths of a multipath target and the results of its clones
//! (`verdict/choices.rs`). JSON is written here, text in `verdict/text.rs`. `judge.rs` counts.

mod choices;
mod events;
mod log;
mod text;

use std::collections::BTreeMap;

use blkmq::time::SimTime;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Mode;

pub use choices::{ChoiceVerdict, RivalVerdict, Rivals, TargetVerdict};
pub use events::SchedulerEvents;
pub use log::LogVerdict;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Name of the capture's folder.
    pub capture: String,
    /// Name of the rules that were applied.
    pub rules: String,
    /// queue/scheduler.
    pub scheduler: String,
    pub mode: Mode,
    /// Dispatches of the kernel.
    pub total: u64,
    /// Those that the model predicted.
    pub predicted: u64,
    /// Those that this capture cannot decide about, by reason.
    pub unjudged: BTreeMap<&'static str, u64>,
    /// The reason for the default mode.
    pub chosen: Option<&'static str>,
    /// The first that it did not.
    pub first_divergence: Option<Divergence>,
    /// All that it did not, the first included. Not in the JSON.
    pub divergences: Vec<Divergence>,
    /// Events of the scheduler, if both the capture and the model have them.
    pub scheduler_events: Option<SchedulerEvents>,
    /// Lines of the scheduler's log, in mode log.
    pub log: Option<LogVerdict>,
    /// Each multipath target by itself.
    pub targets: Vec<TargetVerdict>,
    /// Multipath targets of which no path choice can be judged, and why.
    pub unjudged_targets: Vec<String>,
    /// Path choices of all multipath targets.
    pub choices: Option<ChoiceVerdict>,
    /// Results of their clones: a tag was found or not, a failed one was retried or not.
    pub clones: Option<ChoiceVerdict>,
    /// Assumptions that no file of the capture states. Not in the JSON.
    pub taken: Vec<String>,
    /// Unexplained effects that decide nothing by themselves. Not in the JSON.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Every dispatch was predicted, and every event of the scheduler's own.
    pub fn conforms(&self) -> bool {
        self.predicted == self.total && self.events_alike()
    }

    /// The scheduler's events are those of the kernel's, and each path is the kernel's.
    pub fn events_alike(&self) -> bool {
        self.scheduler_events
            .as_ref()
            .is_none_or(SchedulerEvents::alike)
            && self.log.as_ref().is_none_or(LogVerdict::alike)
            && self.choices.as_ref().is_none_or(ChoiceVerdict::alike)
            && self.clones.as_ref().is_none_or(ChoiceVerdict::alike)
    }

    /// Dispatches that the capture cannot decide about.
    pub fn unjudged(&self) -> u64 {
        self.unjudged.values().sum()
    }

    /// The capture can decide about everything that it has.
    pub fn is_whole(&self) -> bool {
        self.unjudged() == 0 && self.unjudged_targets.is_empty()
    }

    /// Dispatches that the model did not predict.
    pub fn diverged(&self) -> u64 {
        self.total - self.predicted - self.unjudged()
    }
}

/// A dispatch that the model did not predict.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Divergence {
    /// Number of the dispatch on its device, first 1.
    pub index: u64,
    pub device: String,
    /// When, since the first event of the trace.
    #[serde(serialize_with = "as_text")]
    pub time: SimTime,
    /// The kernel's choice: direction, sector and length, or nothing.
    pub kernel: String,
    pub model: String,
    /// Both queues as they were just before.
    pub text: String,
}

fn as_text<S: Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Verdict", 16)?;
        object.serialize_field("capture", &self.capture)?;
        object.serialize_field("rules", &self.rules)?;
        object.serialize_field("scheduler", &self.scheduler)?;
        object.serialize_field("mode", self.mode.name())?;
        object.serialize_field("total", &self.total)?;
        object.serialize_field("predicted", &self.predicted)?;
        object.serialize_field("diverged", &self.diverged())?;
        object.serialize_field("unjudged", &self.unjudged())?;
        object.serialize_field("unjudged_reasons", &self.unjudged)?;
        object.serialize_field("first_divergence", &self.first_divergence)?;
        object.serialize_field("events", &self.scheduler_events)?;
        object.serialize_field("log", &self.log)?;
        object.serialize_field("choices", &self.choices)?;
        object.serialize_field("clones", &self.clones)?;
        object.serialize_field("targets", &self.targets)?;
        object.serialize_field("unjudged_targets", &self.unjudged_targets)?;
        object.end()
    }
}
