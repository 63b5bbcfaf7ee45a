//! The unit of comparison: three modes. Each reads another part of a capture, as one stream of
//! events with the decisions that they show.

mod calls;
pub(super) mod log;
mod records;

use std::collections::BTreeMap;

use blkmq::request::QueueId;
use trace::capture::CaptureDir;

use super::event::{Event, Events};
use super::judge::Judge;
use super::script::Script;
use super::setup::Setup;
use super::stream::Stream;
use super::submitters::Processes;
use super::{Error, Options};

/// The unit of comparison, and the part of a capture that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The probes of `ftrace.txt`: one call of the scheduler's dispatch function.
    Calls,
    /// The records of blktrace: one `D`.
    Records,
    /// The scheduler's messages in blktrace: each line, and each dispatch call among them.
    Log,
}

impl Mode {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Calls => "calls",
            Mode::Records => "records",
            Mode::Log => "log",
        }
    }

    pub fn by_name(name: &str) -> Option<Mode> {
        [Mode::Calls, Mode::Records, Mode::Log]
            .into_iter()
            .find(|mode| mode.name() == name)
    }

    /// The events of the devices, and the devices with their submitters.
    pub(super) fn read(
        self,
        (dir, options): (&CaptureDir, &Options),
        setups: &[Setup],
        script: &Script,
        judge: &mut Judge,
    ) -> Result<(Stream, Vec<Setup>), Error> {
        let mut probed = match self {
            Mode::Calls => calls::probed(dir, setups, judge)?,
            Mode::Records | Mode::Log => BTreeMap::new(),
        };
        let mut traces = Vec::new();
        let mut names = BTreeMap::new();
        for setup in setups {
            let mut trace = match self {
                Mode::Calls => calls::of_device((dir, options), setup, &mut probed, judge)?,
                Mode::Records => records::of_device((dir, options), setup, script, judge)?,
                Mode::Log => log::of_device(dir, setup, script, judge)?,
            };
            names.append(&mut trace.names);
            traces.push(trace);
        }
        if self == Mode::Calls && setups.iter().any(Setup::reports_events) {
            judge.reports_events();
        }
        let processes = Processes::of_script(dir, script, &names)?;
        Ok(self.join(traces, setups, &processes))
    }

    /// The events of all devices in one order, with the decisions that they show.
    pub(super) fn join(
        self,
        traces: Vec<Events>,
        setups: &[Setup],
        processes: &Processes,
    ) -> (Stream, Vec<Setup>) {
        let mut events: Vec<(QueueId, Event)> = Vec::new();
        let (mut texts, mut ticks) = (Vec::new(), Vec::new());
        for (queue, trace) in traces.into_iter().enumerate() {
            let of_device = trace.list.into_iter();
            events.extend(of_device.map(|event| (QueueId(queue as _), event)));
            texts.push(trace.lines);
            ticks.push(trace.ticks);
        }
        events.sort_by_key(|(_, event)| event.order());
        let mut stream = Stream::new(events);
        stream.refused_by(|queue| setups[queue.index()].is_mapped());
        let mut setups = processes.add_to(setups, &mut stream);
        match self {
            Mode::Calls => {}
            Mode::Records => {
                stream.decided_by_issues(|queue| setups[queue.index()].has_scheduler());
            }
            Mode::Log => log::add(&mut stream, &mut setups, (texts, &ticks)),
        }
        (stream, setups)
    }
}
