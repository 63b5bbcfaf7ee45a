//! A run as a schedule of `specs/CfqMerge` or `specs/BfqMerge`: the merge events that the scheduler
//! records, each with all references after it.
//!
//! Several steps may happen in one label, under one lock, so the schedulers record them
//! (`blkmq::elevator::EventLog`). Queues and processes are numbered in the order of their creation;
//! no number is used twice. Read first: README.md of both specifications, section "Runs of the
//! simulator"; then `cfq_merge.rs` and `bfq_merge.rs`.

use core::fmt::Debug;

use blkmq::drive::Ran;
use blkmq::env::Cpu;
use blkmq::queue::BlkMq;
use blkmq::request::{IoContextId, QueueId};
use blkmq::schedule::{Argument, view};

use super::Recorder;
use super::bfq_merge::BfqMerges;
use super::cfq_merge::CfqMerges;
use super::properties::{PROCESSES_MAX, QUEUES_MAX};
use super::step_log::{Of, StepLog, Value, number};

pub(super) const QUEUE: QueueId = QueueId(0);

/// The queue that belongs to no process, until its number is known.
pub(super) const SHARED: i32 = -1;

/// A scheduler that records merge events, and their meaning as steps of its specification.
pub(super) trait MergeEvents: Debug + Sized + 'static {
    type Event;
    /// Its folder below `specs/`, and the module of the schedules.
    const SPEC: (&'static str, &'static str);

    /// The block layer has this scheduler.
    fn is_there(mq: &BlkMq) -> bool;
    /// Starts the recording. An error: why the specification has no runs of this block layer.
    fn start(mq: &BlkMq) -> Result<Self, String>;
    /// The events since the last call; none if the queue has another scheduler by now.
    fn take(mq: &BlkMq) -> Option<Vec<Self::Event>>;
    /// Takes the event's step, if it has one. An error if the specification has no such step.
    fn note(&mut self, event: &Self::Event, out: &mut Steps) -> Result<(), &'static str>;
    /// The specification's constants, but for sizes.
    fn constants(&self) -> Vec<(String, String)>;
}

/// A recorder, if the scheduler of this block layer merges queues.
pub(super) fn recorder(mq: &BlkMq, name: &str) -> Option<Result<Box<dyn Recorder>, String>> {
    of::<CfqMerges>(mq, name).or_else(|| of::<BfqMerges>(mq, name))
}

fn of<T: MergeEvents>(mq: &BlkMq, name: &str) -> Option<Result<Box<dyn Recorder>, String>> {
    let (spec, runs) = T::SPEC;
    let recorder = |events: T| -> Box<dyn Recorder> {
        let steps = Steps {
            log: StepLog::new((runs, name), []),
            ..Steps::default()
        };
        Box::new(Merges { events, steps })
    };
    let missing = |missing| format!("expected for specs/{spec}: {missing}");
    T::is_there(mq).then(|| T::start(mq).map(recorder).map_err(missing))
}

#[derive(Debug)]
struct Merges<T> {
    events: T,
    steps: Steps,
}

impl<T: MergeEvents> Recorder for Merges<T> {
    fn log(&mut self) -> &mut StepLog {
        &mut self.steps.log
    }

    /// Takes the events since the last call.
    fn settle(&mut self, mq: &BlkMq) {
        let steps = &mut self.steps;
        let Some(events) = T::take(mq) else {
            let what = "the scheduler was changed; a run of one can be followed";
            return steps.log.refuse(what);
        };
        for event in &events {
            let noted = self.events.note(event, steps);
            if let Err(why) = noted.and_then(|()| steps.are_within()) {
                steps.log.refuse(why);
            }
            if steps.log.refused.is_some() {
                return;
            }
        }
    }

    fn ran(&mut self, mq: &BlkMq, _ran: Ran<'_>, _cpu: &mut Cpu) {
        self.settle(mq);
    }

    fn end(&mut self, _mq: &BlkMq) -> Result<Vec<(String, String)>, String> {
        let steps = &mut self.steps;
        if steps.log.events.is_empty() {
            return Err("no process has submitted anything".to_owned());
        }
        let shared = steps.born.max(1) as u32 + 1;
        let events = steps.log.events.iter_mut();
        for (_, argument) in events.flat_map(|event| &mut event.arguments) {
            if *argument == Argument::Number(SHARED.cast_unsigned()) {
                *argument = Argument::Number(shared);
            }
        }
        let most = steps.requests.iter().max().copied().unwrap_or(0).max(1);
        let sizes = [
            ("Processes", steps.processes.len()),
            ("Queues", steps.born.max(1)),
            ("Requests", most),
        ];
        let sizes = sizes.map(|(name, size)| (name.to_owned(), size.to_string()));
        Ok(sizes.into_iter().chain(self.events.constants()).collect())
    }

    /// All processes have exited, nothing is under way, and no queue of a process is left.
    fn shows(&self, _stalled: bool) -> &'static str {
        let steps = &self.steps;
        let none = |name| match steps.log.last(name) {
            Some(Value::Numbers(_, values, shared)) => (values.iter().sum(), *shared),
            _ => (0, 0),
        };
        let gone = steps.processes.iter().all(Option::is_none);
        let ((references, _), io) = (none("ref"), none("io"));
        match gone && steps.born > 1 && (references, io) == (0, (0, 0)) {
            true => "NeverAllDone violated",
            false => "holds",
        }
    }

    fn text(&self, value: &Value) -> String {
        let steps = &self.steps;
        let Value::Numbers(of, values, shared) = value else {
            unreachable!("{value:?}: merges have numbers");
        };
        let text = |number: i32| match number {
            SHARED => (steps.born.max(1) + 1).to_string(),
            number => number.to_string(),
        };
        let value = |at: usize| text(values.get(at).copied().unwrap_or(0));
        match of {
            Of::All => value(0),
            Of::Process => view::tuple((0..steps.processes.len()).map(value)),
            Of::Queue => {
                let shared = steps.has_shared.then(|| text(*shared));
                view::tuple((0..steps.born.max(1)).map(value).chain(shared))
            }
            Of::Group(groups) => view::tuple((0..*groups).map(value)),
        }
    }
}

/// All steps so far, and the processes that took them.
#[derive(Debug, Default)]
pub(super) struct Steps {
    log: StepLog,
    /// The process of each number, while it lives.
    processes: Vec<Option<IoContextId>>,
    /// Requests that each has submitted.
    requests: Vec<usize>,
    /// Queues that processes have created.
    pub(super) born: usize,
    /// The run has a queue that belongs to no process.
    pub(super) has_shared: bool,
}

impl Steps {
    /// An error if the run is larger than a schedule may be.
    fn are_within(&self) -> Result<(), &'static str> {
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
        match self.log.last(name) {
            Some(Value::Numbers(_, values, _)) => {
                values.get(process as usize - 1).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Adds a step, with the values of all variables after it.
    pub(super) fn push(
        &mut self,
        action: &'static str,
        arguments: &[(&'static str, i32)],
        seen: Vec<(&'static str, Value)>,
    ) {
        if self.log.events.is_empty() {
            let zero = |value: &Value| match value {
                Value::Numbers(of, ..) => Value::Numbers(*of, Vec::new(), 0),
                Value::Text(_) => value.clone(),
            };
            self.log
                .begin(seen.iter().map(|(name, value)| (*name, zero(value))));
        }
        let seen = seen.into_iter().map(|(_, value)| value).collect();
        let arguments = arguments.iter();
        let arguments = arguments.map(|&(name, of)| number(name, of.cast_unsigned()));
        self.log.push(action, arguments);
        self.log.settle(|| Ok(seen));
    }
}
