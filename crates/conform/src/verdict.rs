//! What came of a comparison, as text and as JSON.
//!
//! `Judge` collects while the replay runs, `Verdict` is what callers see.

use std::collections::BTreeMap;
use std::fmt;

use blkmq::time::SimTime;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Mode;
use super::event::Event;
use super::kernel::letter;
use super::setup::Setup;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Name of the capture's folder.
    pub capture: String,
    /// Name of the rules that were applied.
    pub rules: String,
    /// queue/scheduler.
    pub scheduler: String,
    /// What counted as a dispatch.
    pub mode: Mode,
    /// Dispatches of the kernel.
    pub total: u64,
    /// Those that the model predicted.
    pub predicted: u64,
    /// Those that this capture cannot decide about, by reason.
    pub unjudged: BTreeMap<&'static str, u64>,
    /// Why this mode, where nobody named one.
    pub chosen: Option<&'static str>,
    /// The first that it did not.
    pub first_divergence: Option<Divergence>,
    /// All that it did not, the first included. Not in the JSON.
    pub divergences: Vec<Divergence>,
    /// Events by which the scheduler tells of itself, where the capture has them and the model
    /// tells them.
    pub told: Option<ToldVerdict>,
    /// Lines of the scheduler's log, in mode log.
    pub log: Option<LogVerdict>,
    /// What no file of the capture says outright, and as what it was taken. Not in the JSON.
    pub taken: Vec<String>,
    /// What could not be explained but decides nothing by itself. Not in the JSON.
    pub notes: Vec<String>,
}

/// Events of the scheduler's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldVerdict {
    /// The kernel's.
    pub total: u64,
    /// Those that the model told, too.
    pub predicted: u64,
    /// Those that the model told alone.
    pub alone: u64,
    /// Looks for a token that found none, of the kernel. Not among `total`.
    pub throttled: u64,
    /// Those that were in vain in the model, too.
    pub throttled_alike: u64,
    /// Those that were not, in calls in which a request ended: its token came back before the look
    /// or behind it, which no record shows.
    pub throttled_undecided: u64,
    /// Looks that were in vain in the model alone.
    pub throttled_alone: u64,
    /// The first that it did not tell, or told otherwise.
    pub first_divergence: Option<Divergence>,
}

/// Lines of the scheduler's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogVerdict {
    /// The kernel's.
    pub total: u64,
    /// Those that the model wrote, too, in this order.
    pub predicted: u64,
    /// Those that the model wrote alone.
    pub alone: u64,
    /// The first that it did not write, or wrote otherwise.
    pub first_divergence: Option<Divergence>,
}

impl ToldVerdict {
    /// Every event of the kernel that the capture can decide about, and no other.
    pub fn alike(&self) -> bool {
        let decided = self.throttled - self.throttled_undecided;
        self.predicted == self.total
            && self.alone == 0
            && self.throttled_alike == decided
            && self.throttled_alone == 0
    }
}

impl LogVerdict {
    /// Every line of the kernel, and no other.
    pub fn alike(&self) -> bool {
        self.predicted == self.total && self.alone == 0
    }
}

impl Verdict {
    /// Every dispatch was predicted, and every event of the scheduler's own.
    pub fn conforms(&self) -> bool {
        self.predicted == self.total && self.tells_alike()
    }

    /// The scheduler told what the kernel's did, and nothing else.
    pub fn tells_alike(&self) -> bool {
        self.told.as_ref().is_none_or(ToldVerdict::alike)
            && self.log.as_ref().is_none_or(LogVerdict::alike)
    }

    /// Dispatches that the capture cannot decide about.
    pub fn unjudged(&self) -> u64 {
        self.unjudged.values().sum()
    }

    /// Dispatches that the model did not predict.
    pub fn diverged(&self) -> u64 {
        self.total - self.predicted - self.unjudged()
    }
}

/// A dispatch that the model did not predict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Which dispatch of its device, first 1.
    pub index: u64,
    /// Device.
    pub device: String,
    /// When, since the first event of the trace.
    pub time: SimTime,
    /// What the kernel did: direction, sector and length, or nothing.
    pub kernel: String,
    /// What the model would have done.
    pub model: String,
    /// Both queues as they were just before.
    pub text: String,
}

/// Seconds as a number; queue states as lines.
impl Serialize for Divergence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Divergence", 6)?;
        object.serialize_field("index", &self.index)?;
        object.serialize_field("device", &self.device)?;
        object.serialize_field("time", &self.time.to_string())?;
        object.serialize_field("kernel", &self.kernel)?;
        object.serialize_field("model", &self.model)?;
        object.serialize_field("text", &self.text)?;
        object.end()
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Verdict", 12)?;
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
        object.serialize_field("told", &self.told)?;
        object.serialize_field("log", &self.log)?;
        object.end()
    }
}

impl Serialize for LogVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("LogVerdict", 4)?;
        object.serialize_field("total", &self.total)?;
        object.serialize_field("predicted", &self.predicted)?;
        object.serialize_field("alone", &self.alone)?;
        object.serialize_field("first_divergence", &self.first_divergence)?;
        object.end()
    }
}

impl Serialize for ToldVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ToldVerdict", 8)?;
        object.serialize_field("total", &self.total)?;
        object.serialize_field("predicted", &self.predicted)?;
        object.serialize_field("alone", &self.alone)?;
        object.serialize_field("throttled", &self.throttled)?;
        object.serialize_field("throttled_alike", &self.throttled_alike)?;
        object.serialize_field("throttled_undecided", &self.throttled_undecided)?;
        object.serialize_field("throttled_alone", &self.throttled_alone)?;
        object.serialize_field("first_divergence", &self.first_divergence)?;
        object.end()
    }
}

/// What was taken and notes first, then the first divergence with both queues, last the count.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} under rules {}, mode {}",
            self.capture,
            self.scheduler,
            self.rules,
            self.mode.name()
        )?;
        if let Some(why) = self.chosen {
            writeln!(f, "mode {}: {why}", self.mode.name())?;
        }
        for taken in &self.taken {
            writeln!(f, "taken: {taken}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        if let Some(first) = &self.first_divergence {
            write_first(f, "dispatch", first)?;
        }
        let told = self.told.as_ref();
        if let Some(first) = told.and_then(|told| told.first_divergence.as_ref()) {
            write_first(f, "event", first)?;
        }
        let log = self.log.as_ref();
        if let Some(first) = log.and_then(|log| log.first_divergence.as_ref()) {
            write_first(f, "line", first)?;
        }
        for (reason, count) in &self.unjudged {
            writeln!(f, "cannot be judged: {count}, {reason}")?;
        }
        if let Some(told) = told {
            let (predicted, total) = (told.predicted, told.total);
            write!(f, "predicted {predicted}/{total} events of the scheduler")?;
            match told.alone {
                0 => writeln!(f)?,
                alone => writeln!(f, ", {alone} are the model's alone")?,
            }
            if told.throttled > 0 {
                write_throttled(f, told)?;
            }
        }
        if let Some(log) = log {
            write!(f, "predicted {} of {} log lines", log.predicted, log.total)?;
            match log.alone {
                0 => writeln!(f)?,
                alone => writeln!(f, ", {alone} are the model's alone")?,
            }
        }
        write!(f, "predicted {}/{} dispatches", self.predicted, self.total)
    }
}

fn write_first(f: &mut fmt::Formatter<'_>, what: &str, first: &Divergence) -> fmt::Result {
    writeln!(
        f,
        "first divergence: {what} {} of {} at {}",
        first.index, first.device, first.time
    )?;
    writeln!(f, "kernel: {}", first.kernel)?;
    writeln!(f, "model:  {}", first.model)?;
    writeln!(f, "{}", first.text.trim_end())
}

fn write_throttled(f: &mut fmt::Formatter<'_>, told: &ToldVerdict) -> fmt::Result {
    let (alike, all) = (told.throttled_alike, told.throttled);
    write!(
        f,
        "without a token for a request in both: {alike} of {all} times"
    )?;
    if told.throttled_undecided > 0 {
        let undecided = told.throttled_undecided;
        write!(
            f,
            ", {undecided} not decidable: a request ended in the same call"
        )?;
    }
    match told.throttled_alone {
        0 => writeln!(f),
        alone => writeln!(f, ", {alone} are the model's alone"),
    }
}

/// What a capture lacks to decide about a dispatch. A wrong model never shows in one of these
/// alone: each needs evidence in the records, and none of it is there on one CPU with all probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unjudged {
    /// A request below a stacked device: D without any Q, G or I of its device, where `meta.txt`
    /// names the stack.
    Clone,
    /// Two requests waited in the scheduler, and since both were there more than one CPU has handed
    /// requests over: whose decision came first is not recorded.
    Order,
    /// The return of a call whose entry was missed: what it read outside the lock is unknown.
    Probe,
}

impl Unjudged {
    const fn reason(self) -> &'static str {
        match self {
            Unjudged::Clone => "clones of a stacked device, which go around the path's scheduler",
            Unjudged::Order => "the order of decisions on several CPUs is not in the records",
            Unjudged::Probe => "the probe of the call's entry is missing",
        }
    }
}

/// Counts as the replay goes on.
#[derive(Debug)]
pub(super) struct Judge {
    verdict: Verdict,
    device: String,
    /// Only dispatches of this device count.
    only: Option<String>,
    indices: BTreeMap<String, u64>,
    genesis: SimTime,
    counted: Vec<(String, u64)>,
}

impl Judge {
    pub(super) fn new(capture: &str, setup: &Setup, mode: Mode) -> Judge {
        Judge {
            verdict: Verdict {
                capture: capture.to_owned(),
                rules: setup.rules.name.to_owned(),
                scheduler: setup.scheduler_name().to_owned(),
                mode,
                total: 0,
                predicted: 0,
                unjudged: BTreeMap::new(),
                chosen: None,
                first_divergence: None,
                divergences: Vec::new(),
                told: None,
                log: None,
                taken: Vec::new(),
                notes: Vec::new(),
            },
            device: setup.device.clone(),
            only: None,
            indices: BTreeMap::new(),
            genesis: SimTime::ZERO,
            counted: Vec::new(),
        }
    }

    /// Why this mode, where nobody named one.
    pub(super) fn chosen(&mut self, why: Option<&'static str>) {
        self.verdict.chosen = why;
    }

    /// What no file of the capture says outright.
    pub(super) fn takes(&mut self, what: Vec<String>) {
        self.verdict.taken.extend(what);
    }

    /// Others are followed, but not judged.
    pub(super) fn only(&mut self, device: Option<String>) {
        self.only = device;
    }

    fn counts(&self) -> bool {
        self.only.as_ref().is_none_or(|only| *only == self.device)
    }

    /// The dispatches that follow are those of `device`, whose trace begins at `genesis`.
    pub(super) fn start(&mut self, device: &str, genesis: SimTime) {
        if self.device != device {
            device.clone_into(&mut self.device);
        }
        self.genesis = genesis;
    }

    /// Number of the dispatch of the current device that is being judged, first 1.
    fn next_index(&mut self) -> u64 {
        let index = self.indices.entry(self.device.clone()).or_insert(0);
        *index += 1;
        *index
    }

    /// The model was right.
    pub(super) fn hit(&mut self) {
        if !self.counts() {
            return;
        }
        self.next_index();
        self.verdict.total += 1;
        self.verdict.predicted += 1;
    }

    /// The model was wrong.
    pub(super) fn miss(&mut self, time: SimTime, kernel: String, model: String, text: String) {
        if !self.counts() {
            return;
        }
        let index = self.next_index();
        self.verdict.total += 1;
        self.verdict.divergences.push(Divergence {
            index,
            device: self.device.clone(),
            time: SimTime(time.since(self.genesis).0),
            kernel,
            model,
            text,
        });
    }

    /// The capture would have events of the scheduler's own.
    pub(super) fn tells(&mut self) {
        self.verdict.told.get_or_insert_default();
    }

    /// Lines of the log of a device.
    pub(super) fn lines(
        &mut self,
        device: &str,
        (total, predicted, alone): (u64, u64, u64),
        first: Option<Divergence>,
    ) {
        let others = self.only.as_ref().is_some_and(|only| only != device);
        if others || self.verdict.mode != Mode::Log {
            return;
        }
        let genesis = self.genesis;
        let log = self.verdict.log.get_or_insert_default();
        log.total += total;
        log.predicted += predicted;
        log.alone += alone;
        let first = first.map(|first| Divergence {
            time: SimTime(first.time.since(genesis).0),
            ..first
        });
        log.first_divergence = log.first_divergence.take().or(first);
    }

    /// Those.
    fn told(&mut self) -> Option<&mut ToldVerdict> {
        self.counts()
            .then(|| self.verdict.told.get_or_insert_default())
    }

    /// The model told the same.
    pub(super) fn told_alike(&mut self) {
        if let Some(told) = self.told() {
            told.total += 1;
            told.predicted += 1;
        }
    }

    /// The model told something else, or nothing.
    pub(super) fn told_otherwise(
        &mut self,
        of_timer: bool,
        time: SimTime,
        kernel: String,
        model: String,
        text: String,
    ) {
        let time = SimTime(time.since(self.genesis).0);
        let device = self.device.clone();
        if let Some(told) = self.told() {
            match of_timer {
                true => told.total += 1,
                false => told.throttled += 1,
            }
            told.first_divergence.get_or_insert(Divergence {
                index: told.total + told.throttled,
                device,
                time,
                kernel,
                model,
                text,
            });
        }
    }

    /// Neither the kernel nor the model found a token.
    pub(super) fn throttled(&mut self) {
        if let Some(told) = self.told() {
            told.throttled += 1;
            told.throttled_alike += 1;
        }
    }

    /// The kernel found no token, and the records do not tell whether the model ought to.
    pub(super) fn throttled_undecided(&mut self) {
        if let Some(told) = self.told() {
            told.throttled += 1;
            told.throttled_undecided += 1;
        }
    }

    /// The model told an event that the kernel did not.
    pub(super) fn told_alone(&mut self, of_timer: bool) {
        if let Some(told) = &mut self.verdict.told {
            match of_timer {
                true => told.alone += 1,
                false => told.throttled_alone += 1,
            }
        }
    }

    /// The capture does not tell what would decide about this dispatch.
    pub(super) fn unjudged(&mut self, why: Unjudged) {
        if !self.counts() {
            return;
        }
        self.next_index();
        self.verdict.total += 1;
        *self.verdict.unjudged.entry(why.reason()).or_insert(0) += 1;
    }

    /// Something that decides nothing, counted by kind.
    pub(super) fn note(&mut self, what: &str) {
        if !self.counts() {
            return;
        }
        match self.counted.iter_mut().find(|(known, _)| known == what) {
            Some((_, count)) => *count += 1,
            None => self.counted.push((what.to_owned(), 1)),
        }
    }

    pub(super) fn verdict(mut self) -> Verdict {
        let verdict = &mut self.verdict;
        verdict.first_divergence = verdict
            .divergences
            .iter()
            .min_by_key(|divergence| (divergence.time, divergence.index))
            .cloned();
        let line = |(what, count): (String, u64)| match count {
            1 => what,
            _ => format!("{what} ({count} times)"),
        };
        verdict.notes = self.counted.into_iter().map(line).collect();
        verdict
            .notes
            .extend(verdict.told.as_mut().and_then(untraced));
        self.verdict
    }
}

/// Whether events of looks in vain were traced shows only where there is one.
fn untraced(told: &mut ToldVerdict) -> Option<String> {
    if told.throttled > 0 || told.throttled_alone == 0 {
        return None;
    }
    let alone = std::mem::take(&mut told.throttled_alone);
    Some(format!(
        "the model finds no token {alone} times, the capture has no such event: perhaps untraced"
    ))
}

/// Direction, start and length.
pub(super) fn show_request(event: &Event) -> String {
    let letter = letter(event.op);
    format!("{letter} {}+{}", event.sector.0, event.sectors.0)
}
