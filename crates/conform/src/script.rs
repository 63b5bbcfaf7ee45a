//! The I/O script of a capture. `trace::processes` assigns tasks to its processes.

use blkmq::request::IoPrio;
use trace::capture::CaptureDir;
use trace::ftrace::IoPriority;
use trace::io_txt::{IoScript, Process};

use super::event;
use super::judge::Judge;
use super::{Error, Mode};

/// Data of a capture on its submitters, if it has a script.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) processes: Vec<Process>,
}

impl Script {
    /// Reads it. Modes with the same data in probes or the log can do without.
    pub(super) fn read(dir: &CaptureDir, mode: Mode, judge: &mut Judge) -> Result<Script, Error> {
        match (dir.io_script(), mode) {
            (Ok(script), _) => Ok(Script {
                processes: script.map_or_else(Vec::new, |IoScript { processes }| processes),
            }),
            (Err(bad), Mode::Records) => Err(bad.into()),
            (Err(bad), Mode::Calls | Mode::Log) => {
                judge.note(&format!(
                    "{bad}: priorities and groups are only those of probes"
                ));
                Ok(Script::default())
            }
        }
    }
}

/// ioprio_set() of a process; class 0: unchanged.
pub(super) fn ioprio_of(asked: IoPriority) -> IoPrio {
    match asked.class {
        0 => IoPrio::default(),
        _ => event::ioprio(asked),
    }
}
