//! Counts the results of a comparison while the replay goes on.
//!
//! Several devices may be followed and one of them judged: then only its dispatches count.
//! Dispatches that a capture cannot decide are counted by reason, apart from right and wrong ones.
//! Callers see the counts in `verdict.rs`.

use std::collections::BTreeMap;

use blkmq::time::SimTime;

use super::Mode;
use super::setup::Setup;
use super::verdict::{Divergence, SchedulerEvents, TargetVerdict, Verdict};

/// Data that a capture lacks to decide about a dispatch. A wrong model never shows only in these:
/// each needs evidence in the records, and none of it is there on one CPU with all probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unjudged {
    /// A request below a stacked device: D without any Q or G of its device, where `meta.txt` names
    /// the stack.
    Clone,
    /// Two requests waited in the scheduler, and since both were there more than one CPU has
    /// dispatched: the order of the decisions is not recorded. Without a scheduler: runs of two
    /// CPUs may have taken the request.
    Order,
    /// The return of a call without an entry: its reads outside the lock are unknown.
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
                scheduler_events: None,
                log: None,
                targets: Vec::new(),
                unjudged_targets: Vec::new(),
                choices: None,
                clones: None,
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

    /// The reason for the default mode.
    pub(super) fn chosen(&mut self, why: Option<&'static str>) {
        self.verdict.chosen = why;
    }

    /// Assumptions that no file of the capture states.
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

    pub(super) fn hit(&mut self) {
        if !self.counts() {
            return;
        }
        self.next_index();
        self.verdict.total += 1;
        self.verdict.predicted += 1;
    }

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

    /// Path choices of a target, and results of its clones.
    pub(super) fn target(&mut self, target: TargetVerdict) {
        let verdict = &mut self.verdict;
        verdict.choices.get_or_insert_default().add(&target.choices);
        verdict.clones.get_or_insert_default().add(&target.clones);
        verdict.targets.push(target);
    }

    /// No path choice of a target can be judged.
    pub(super) fn target_unjudged(&mut self, device: &str, why: &str) {
        let of = format!("path choices of {device}: {why}");
        self.verdict.unjudged_targets.push(of);
    }

    /// Clones were followed from the device above.
    pub(super) fn has_clones(&self) -> bool {
        self.verdict.clones.is_some()
    }

    /// The capture would have events of the scheduler's own.
    pub(super) fn reports_events(&mut self) {
        self.verdict.scheduler_events.get_or_insert_default();
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

    /// Counts of the scheduler's own events, if those of the device count.
    pub(super) fn events(&mut self) -> Option<&mut SchedulerEvents> {
        self.counts()
            .then(|| self.verdict.scheduler_events.get_or_insert_default())
    }

    /// The model has another event, or none.
    pub(super) fn event_diverged(
        &mut self,
        of_timer: bool,
        time: SimTime,
        kernel: String,
        model: String,
        text: String,
    ) {
        let time = SimTime(time.since(self.genesis).0);
        let device = self.device.clone();
        if let Some(scheduler_events) = self.events() {
            match of_timer {
                true => scheduler_events.total += 1,
                false => scheduler_events.throttled += 1,
            }
            scheduler_events.first_divergence.get_or_insert(Divergence {
                index: scheduler_events.total + scheduler_events.throttled,
                device,
                time,
                kernel,
                model,
                text,
            });
        }
    }

    /// An event of the model without one of the kernel.
    pub(super) fn event_of_model_only(&mut self, of_timer: bool) {
        if let Some(scheduler_events) = &mut self.verdict.scheduler_events {
            match of_timer {
                true => scheduler_events.alone += 1,
                false => scheduler_events.throttled_model_only += 1,
            }
        }
    }

    /// The capture lacks the data to decide about this dispatch.
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
        verdict.notes.extend(
            verdict
                .scheduler_events
                .as_mut()
                .and_then(SchedulerEvents::without_untraced),
        );
        self.verdict
    }
}
