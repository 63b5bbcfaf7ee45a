//! The steps of a run so far, each with the values of all variables after it.

use std::rc::Rc;

use blkmq::schedule::{Argument, Schedule, Step};

/// The most steps of a schedule, to bound its memory.
pub const STEPS_MAX: usize = 100_000;

/// Why a longer run is refused.
const TOO_LONG: &str = "more than 100000 steps; a shorter run can be followed (job.runtime)";

/// The index of a variable's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    All,
    Process,
    /// A value per queue; the shared queue comes last.
    Queue,
    Group(usize),
}

/// The value of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// As TLC prints it.
    Text(String),
    /// Numbers, as many as the end of the run shows; missing ones are 0. Then that of the queue
    /// which belongs to no process.
    Numbers(Of, Vec<i32>, i32),
}

/// A step made of one or more labels, or an event that a scheduler has recorded.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) action: &'static str,
    pub(super) arguments: Vec<(&'static str, Argument)>,
    /// Values of the variables after the step.
    pub(super) seen: Vec<Rc<Value>>,
}

#[derive(Debug, Default)]
pub(super) struct StepLog {
    /// The module of the schedule.
    spec: &'static str,
    variant: String,
    variables: Vec<&'static str>,
    pub(super) events: Vec<Event>,
    /// The values of the last event are still to be read.
    pub(super) open: bool,
    first: Vec<Rc<Value>>,
    seen: Vec<Rc<Value>>,
    pub(super) refused: Option<String>,
}

/// An argument of a step.
pub(super) fn number(name: &'static str, number: u32) -> (&'static str, Argument) {
    (name, Argument::Number(number))
}

impl StepLog {
    /// `first`: the variables with their values before all steps.
    pub(super) fn new(
        (spec, variant): (&'static str, &str),
        first: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> StepLog {
        let mut log = StepLog {
            spec,
            variant: variant.to_owned(),
            ..StepLog::default()
        };
        log.begin(first);
        log
    }

    /// Begins with these variables.
    pub(super) fn begin(&mut self, first: impl IntoIterator<Item = (&'static str, Value)>) {
        let first = first
            .into_iter()
            .map(|(name, value)| (name, Rc::new(value)));
        (self.variables, self.first) = first.unzip();
        self.seen.clone_from(&self.first);
    }

    pub(super) fn refuse(&mut self, why: &str) {
        self.refused.get_or_insert_with(|| why.to_owned());
        self.events = Vec::new();
    }

    /// Of several steps in one label only the last changes variables.
    pub(super) fn push(
        &mut self,
        action: &'static str,
        arguments: impl IntoIterator<Item = (&'static str, Argument)>,
    ) {
        self.open = true;
        if self.events.len() == STEPS_MAX {
            return self.refuse(TOO_LONG);
        }
        self.events.push(Event {
            action,
            arguments: arguments.into_iter().collect(),
            seen: self.seen.clone(),
        });
    }

    /// Completes the last step, before a label or the grant of a lock.
    pub(super) fn settle(&mut self, look: impl FnOnce() -> Result<Vec<Value>, &'static str>) {
        if self.refused.is_some() || !core::mem::take(&mut self.open) {
            return;
        }
        match look() {
            Ok(seen) => {
                for (known, now) in self.seen.iter_mut().zip(seen) {
                    if **known != now {
                        *known = Rc::new(now);
                    }
                }
                if let Some(event) = self.events.last_mut() {
                    event.seen.clone_from(&self.seen);
                }
            }
            Err(why) => self.refuse(why),
        }
    }

    /// The last value of a variable, if there is a step.
    pub(super) fn last(&self, variable: &str) -> Option<&Value> {
        let at = self.variables.iter().position(|name| *name == variable)?;
        Some(&self.seen[at])
    }

    /// The schedule of all steps, with what each of them changed.
    pub(super) fn schedule(
        self,
        shows: &str,
        settings: Vec<(String, String)>,
        text: impl Fn(&Value) -> String,
    ) -> Schedule {
        let mut before = self.first;
        let steps = self.events.into_iter().map(|event| {
            let values = self.variables.iter().zip(before.iter().zip(&event.seen));
            let changed = values.filter(|(_, (old, new))| !Rc::ptr_eq(old, new));
            let changed = changed.map(|(name, (old, new))| (name, text(old), text(new)));
            let changed = changed.filter(|(_, old, new)| old != new);
            let observed = changed.map(|(name, _, new)| ((*name).to_owned(), new));
            let observed = observed.collect();
            before = event.seen;
            let arguments = event.arguments.into_iter();
            Step {
                action: event.action.to_owned(),
                arguments: arguments.map(|(name, of)| (name.to_owned(), of)).collect(),
                observed,
            }
        });
        Schedule {
            spec: self.spec.to_owned(),
            variant: self.variant,
            shows: shows.to_owned(),
            steps: steps.collect(),
            settings,
            repeats_from: None,
        }
    }
}
