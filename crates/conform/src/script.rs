//! The I/O script of a capture, and which task of the trace is which of its processes.
//!
//! A task is known by its name. Several processes of one name were started one after the other: the
//! lowest pid is the first of them.

use std::collections::BTreeMap;

use blkmq::request::IoPrio;
use trace::capture::CaptureDir;
use trace::io_txt::{IoScript, Process};

use super::event;
use super::verdict::Judge;
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

    /// The process of each pid.
    pub(super) fn tasks(&self, names: &BTreeMap<u32, String>) -> BTreeMap<u32, usize> {
        let mut of_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, process) in self.processes.iter().enumerate() {
            of_name.entry(&process.name).or_default().push(number);
        }
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut tasks = BTreeMap::new();
        for (&pid, name) in names {
            let Some(same) = of_name.get(name.as_str()) else {
                continue;
            };
            let before = seen.entry(name).or_default();
            tasks.insert(pid, same[(*before).min(same.len() - 1)]);
            *before += 1;
        }
        tasks
    }
}

/// ioprio_set() of a process; none: it left that alone.
pub(super) fn ioprio_of(process: &Process) -> IoPrio {
    match process.priority.class {
        0 => IoPrio::default(),
        _ => event::ioprio(process.priority),
    }
}

#[cfg(test)]
mod tests;
