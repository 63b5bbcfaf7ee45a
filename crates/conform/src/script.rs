//! The I/O script of a capture. Which task is which of its processes: `trace::processes`.

use blkmq::request::IoPrio;
use trace::capture::CaptureDir;
use trace::ftrace::IoPriority;
use trace::io_txt::{IoScript, Process};

use super::event;
use super::judge::Judge;
use super::{Error, Mode};

/// What a capture tells of who submitted, if it has a script.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) processes: Vec<Process>,
}

impl Script {
    /// Reads it. Modes in which the probes or the log tell the same can do without.
    pub(super) fn read(dir: &CaptureDir, mode: Mode, judge: &mut Judge) -> Result<Script, Error> {
        match (dir.io_script(), mode) {
            (Ok(script), _) => Ok(Script {
                processes: script.map_or_else(Vec::new, |IoScript { processes }| processes),
            }),
            (Err(bad), Mode::Records) => Err(bad.into()),
            (Err(bad), Mode::Calls | Mode::Log) => {
                judge.note(&format!(
                    "{bad}: priorities and groups are those of probes alone"
                ));
                Ok(Script::default())
            }
        }
    }
}

/// ioprio_set() of a process; class 0: it left that alone.
pub(super) fn ioprio_of(asked: IoPriority) -> IoPrio {
    match asked.class {
        0 => IoPrio::default(),
        _ => event::ioprio(asked),
    }
}
