//! Changes of schedulers and suspensions during a run: when each was requested, and how long it
//! took.

use core::fmt;

use blkmq::elevator::Value;
use serde::Serialize;

use super::as_map;
use sim::plan::{ChangeTo, Plan};
use sim::recorder::Recorder;

/// A write to queue/scheduler or a file of queue/iosched/ during the run.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ChangeReport {
    /// Name of the device.
    pub device: String,
    /// The new scheduler. Left out of a write to an attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<&'static str>,
    /// queue/iosched/ of the new scheduler, or the attribute that was written, by name; empty
    /// without a scheduler.
    #[serde(serialize_with = "as_map")]
    pub iosched: Vec<(&'static str, Value)>,
    /// Scheduled time, ns from the start of the run.
    pub at_ns: u64,
    /// Start, ns. Null if the run ended before.
    pub begun_ns: Option<u64>,
    /// Time until the queue took I/O again, ns. Null if the run ended before.
    pub took_ns: Option<u64>,
}

impl ChangeReport {
    /// All of a run, in order of time.
    pub(super) fn all(plan: &Plan, recorder: &Recorder) -> Vec<ChangeReport> {
        let pairs = plan.changes.iter().zip(&recorder.changes);
        let one = pairs.map(|(change, times)| {
            let took = times.begun.zip(times.ended);
            let disk = &plan.disks[change.disk.index()];
            let (scheduler, iosched) = match change.to {
                ChangeTo::Attribute(name, value) => (None, vec![(name, value.into())]),
                ChangeTo::Scheduler(to) => {
                    let settings = &disk.queue.further[usize::from(to)];
                    (Some(settings.kind().name()), settings.shown())
                }
            };
            ChangeReport {
                device: disk.device.name.clone(),
                scheduler,
                iosched,
                at_ns: change.at.0,
                begun_ns: times.begun.map(|begun| begun.0),
                took_ns: took.map(|(begun, ended)| ended.since(begun).0),
            }
        });
        one.collect()
    }
}

impl fmt::Display for ChangeReport {
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| ns as f64 / 1e9;
        match (self.scheduler, self.iosched.first()) {
            (Some(scheduler), _) => write!(f, "{} to {scheduler}", self.device)?,
            (None, written) => {
                let (name, value) = written.expect("a change without scheduler is of an attribute");
                write!(f, "{} {name}={value}", self.device)?;
            }
        }
        match (self.begun_ns, self.took_ns) {
            (Some(begun), Some(took)) => {
                let ms = took as f64 / 1e6;
                write!(f, " at {:.6} s, took {ms:.3} ms", seconds(begun))
            }
            (Some(begun), None) => {
                write!(
                    f,
                    " at {:.6} s, not over when the run ended",
                    seconds(begun)
                )
            }
            (None, _) => write!(f, " at {:.6} s: the run ended before", seconds(self.at_ns)),
        }
    }
}

/// `dmsetup suspend` and `dmsetup resume` of a mapped device.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SuspensionReport {
    /// Name of the device.
    pub device: String,
    /// `--noflush`: requests that wait for a path stayed queued.
    pub noflush: bool,
    /// Scheduled time, ns from the start of the run.
    pub at_ns: u64,
    /// Start, ns. Null if the run ended before.
    pub begun_ns: Option<u64>,
    /// Time until nothing was in flight, ns. Null if the run ended before.
    pub took_ns: Option<u64>,
    /// Time of the resume, ns. Null if the run ended before.
    pub resumed_ns: Option<u64>,
}

impl SuspensionReport {
    /// All of a run, in order of time.
    pub(super) fn all(plan: &Plan, recorder: &Recorder) -> Vec<SuspensionReport> {
        let all = plan.suspensions();
        let pairs = all.iter().zip(&recorder.suspensions);
        let one = pairs.map(|(&(disk, suspension), times)| {
            let took = times.begun.zip(times.suspended);
            SuspensionReport {
                device: plan.disks[disk.index()].device.name.clone(),
                noflush: suspension.noflush,
                at_ns: suspension.at.0,
                begun_ns: times.begun.map(|begun| begun.0),
                took_ns: took.map(|(begun, over)| over.since(begun).0),
                resumed_ns: times.resumed.map(|resumed| resumed.0),
            }
        });
        one.collect()
    }
}

impl fmt::Display for SuspensionReport {
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let how = if self.noflush { " without flush" } else { "" };
        let at = seconds(self.begun_ns.unwrap_or(self.at_ns));
        write!(f, "{}{how} at {at:.6} s", self.device)?;
        match (self.begun_ns, self.took_ns, self.resumed_ns) {
            (None, ..) => write!(f, ": the run ended before"),
            (_, None, _) => write!(f, ", not over when the run ended"),
            (_, Some(took), None) => write!(f, ", took {:.3} ms, stays so", took as f64 / 1e6),
            (_, Some(took), Some(resumed)) => {
                let (took, resumed) = (took as f64 / 1e6, seconds(resumed));
                write!(f, ", took {took:.3} ms, goes on at {resumed:.6} s")
            }
        }
    }
}
