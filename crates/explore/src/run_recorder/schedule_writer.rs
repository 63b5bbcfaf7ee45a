//! Recorded steps, until the end of the run gives the number of processes and queues.

use blkmq::request::IoContextId;
use blkmq::schedule::{Argument, Schedule, Step, view};

use super::properties::{PROCESSES_MAX, QUEUES_MAX};
use super::{STEPS_MAX, TOO_LONG};

/// The queue that belongs to no process, until its number is known.
pub(super) const SHARED: i32 = -1;

/// The index of a variable's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    All,
    Process,
    /// A value per queue; the shared queue comes last.
    Queue,
    Group(usize),
}

/// A variable of the specification: its name, and its values after a step. Values missing at the
/// end are 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) name: &'static str,
    pub(super) of: Of,
    pub(super) values: Vec<i32>,
    /// Of the queue that belongs to no process.
    pub(super) shared: i32,
}

impl Seen {
    pub(super) fn new(name: &'static str, of: Of, values: Vec<i32>) -> Seen {
        Seen {
            name,
            of,
            values,
            shared: 0,
        }
    }

    /// Whether all values are the same; missing ones are 0.
    fn is(&self, other: &Seen) -> bool {
        let longer = self.values.len().max(other.values.len());
        let at = |seen: &Seen, at: usize| seen.values.get(at).copied().unwrap_or(0);
        self.shared == other.shared && (0..longer).all(|i| at(self, i) == at(other, i))
    }
}

#[derive(Clone, Debug)]
struct Event {
    action: &'static str,
    arguments: Vec<(&'static str, i32)>,
    changed: Vec<Seen>,
}

/// All steps so far, and the processes that took them.
#[derive(Debug, Default)]
pub(super) struct ScheduleWriter {
    events: Vec<Event>,
    seen: Vec<Seen>,
    /// The process of each number, while it lives.
    processes: Vec<Option<IoContextId>>,
    /// Requests that each has submitted.
    requests: Vec<u32>,
    /// Queues that processes have created.
    pub(super) born: usize,
    /// The run has a queue that belongs to no process.
    pub(super) has_shared: bool,
}

impl ScheduleWriter {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// An error if the run is larger than a schedule may be.
    pub(super) fn is_within(&self) -> Result<(), &'static str> {
        if self.events.len() > STEPS_MAX {
            return Err(TOO_LONG);
        }
        if self.processes.len() > PROCESSES_MAX as usize {
            return Err("more than 64 processes took part; a run of fewer jobs can be followed");
        }
        if self.born > QUEUES_MAX as usize {
            return Err("more than 256 queues were created; a shorter run can be followed");
        }
        Ok(())
    }

    /// The number of a process, from 1. A process that returns gets another number.
    pub(super) fn number_of(&mut self, process: IoContextId) -> i32 {
        if let Some(number) = self.known(process) {
            return number;
        }
        self.processes.push(Some(process));
        self.requests.push(0);
        self.processes.len() as i32
    }

    /// The number of a process, if it has one.
    pub(super) fn known(&self, process: IoContextId) -> Option<i32> {
        let at = self.processes.iter().position(|&p| p == Some(process))?;
        Some(at as i32 + 1)
    }

    /// A process has exited; returns its number, if it had one.
    pub(super) fn exits(&mut self, process: IoContextId) -> Option<i32> {
        let number = self.known(process)?;
        self.processes[number as usize - 1] = None;
        Some(number)
    }

    /// A process has submitted a request.
    pub(super) fn submits(&mut self, number: i32) {
        self.requests[number as usize - 1] += 1;
    }

    /// A value per process; 0 if it has exited.
    pub(super) fn of_processes(&self, of: impl Fn(IoContextId) -> i32) -> Vec<i32> {
        let each = self.processes.iter();
        each.map(|process| process.map_or(0, &of)).collect()
    }

    /// The last recorded value of a process.
    pub(super) fn last_seen(&self, name: &str, process: i32) -> i32 {
        let seen = self.seen.iter().find(|seen| seen.name == name);
        let values = seen.map_or(&[][..], |seen| &seen.values);
        values.get(process as usize - 1).copied().unwrap_or(0)
    }

    /// Adds a step, with all variables after it.
    pub(super) fn push(
        &mut self,
        action: &'static str,
        arguments: Vec<(&'static str, i32)>,
        seen: Vec<Seen>,
    ) {
        let same = |now: &&Seen| match self.seen.iter().find(|old| old.name == now.name) {
            Some(old) => old.is(now),
            None => now.is(&Seen::new(now.name, now.of, Vec::new())),
        };
        let changed = seen.iter().filter(|now| !same(now)).cloned().collect();
        self.events.push(Event {
            action,
            arguments,
            changed,
        });
        self.seen = seen;
    }

    /// The schedule of `spec`, with constants that are not sizes.
    pub(super) fn schedule(
        &self,
        (spec, variant): (&str, &str),
        rules: Vec<(String, String)>,
    ) -> Schedule {
        let most = self.requests.iter().max().copied().unwrap_or(0).max(1);
        let sizes = [
            ("Processes", self.processes.len()),
            ("Queues", self.born.max(1)),
            ("Requests", most as usize),
        ];
        let sizes = sizes.map(|(name, size)| (name.to_owned(), size.to_string()));
        let record = [("Record".to_owned(), view::flag(true))];
        Schedule {
            spec: format!("{spec}Runs"),
            variant: variant.to_owned(),
            shows: match self.ends_well() {
                true => "NeverAllDone violated",
                false => "holds",
            }
            .to_owned(),
            settings: sizes.into_iter().chain(rules).chain(record).collect(),
            steps: self.events.iter().map(|event| self.step(event)).collect(),
            repeats_from: None,
        }
    }

    /// All processes have exited, nothing is under way, and no queue of a process is left.
    fn ends_well(&self) -> bool {
        let gone = self.processes.iter().all(Option::is_none);
        let held = ["ref", "io"].map(|name| {
            let seen = self.seen.iter().find(|seen| seen.name == name);
            seen.map_or(0, |seen| seen.values.iter().sum())
        });
        let shared = self.seen.iter().find(|seen| seen.name == "io");
        gone && self.born > 1 && held == [0, 0] && shared.is_none_or(|seen| seen.shared == 0)
    }

    /// A number of a queue.
    fn settled(&self, number: i32) -> i32 {
        match number {
            SHARED => self.born.max(1) as i32 + 1,
            number => number,
        }
    }

    fn step(&self, event: &Event) -> Step {
        let arguments = event.arguments.iter().map(|&(name, number)| {
            let number = Argument::Number(self.settled(number).cast_unsigned());
            (name.to_owned(), number)
        });
        let changed = event.changed.iter();
        Step {
            action: event.action.to_owned(),
            arguments: arguments.collect(),
            observed: changed
                .map(|seen| (seen.name.to_owned(), self.text(seen)))
                .collect(),
        }
    }

    /// As TLC prints it.
    fn text(&self, seen: &Seen) -> String {
        let value = |at: usize| {
            self.settled(seen.values.get(at).copied().unwrap_or(0))
                .to_string()
        };
        let shared = [self.settled(seen.shared).to_string()];
        match seen.of {
            Of::All => value(0),
            Of::Process => view::tuple((0..self.processes.len()).map(value)),
            Of::Queue => {
                let shared = shared.into_iter().filter(|_| self.has_shared);
                view::tuple((0..self.born.max(1)).map(value).chain(shared))
            }
            Of::Group(groups) => view::tuple((0..groups).map(value)),
        }
    }
}
