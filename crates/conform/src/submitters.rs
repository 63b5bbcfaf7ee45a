//! Who submits: pid, priority and group of each task, for schedulers that keep books on processes.
//!
//! Best first: the I/O script by the process's name, the insertion probes, nothing. Groups and
//! weights are of `meta.txt`. Not here: the priority of a single bio (`priority.rs`).

use std::collections::BTreeMap;

use blkmq::elevator::{Submitter, SubmitterGroup, Submitters};
use blkmq::request::{IoClass, IoContextId, IoPrio};
use trace::capture::CaptureDir;
use trace::ftrace::IoPriority;
use trace::meta::Cgroup;

use super::Error;
use super::event::{self, Kind};
use super::setup::Setup;
use super::stream::Stream;

/// io.bfq.weight of a group that nobody gave one.
const WEIGHT: u16 = 100;

/// What a capture tells of processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// By pid.
    names: BTreeMap<u32, String>,
    /// By name: priority and group.
    script: BTreeMap<String, (IoPrio, String)>,
    groups: Vec<Cgroup>,
}

/// The I/O context of a task: number 0 is nobody's.
pub(super) fn io_context_of(task: usize) -> IoContextId {
    IoContextId(task as u32 + 1)
}

impl Processes {
    pub(super) fn read(dir: &CaptureDir, names: BTreeMap<u32, String>) -> Result<Processes, Error> {
        let mut script = BTreeMap::new();
        for process in dir.io_script()?.into_iter().flat_map(|s| s.processes) {
            let raw: IoPriority = process.priority;
            let ioprio = match raw.class {
                0 => IoPrio::default(),
                _ => event::ioprio(raw),
            };
            script.insert(process.name, (ioprio, process.group));
        }
        Ok(Processes {
            names,
            script,
            groups: dir.meta.cgroups.clone(),
        })
    }

    /// The devices with who submits to them.
    pub(super) fn add_to(&self, setups: &[Setup], stream: &Stream) -> Vec<Setup> {
        let submitters = self.of(stream);
        let add = |setup: &Setup| Setup {
            submitters: submitters.clone(),
            ..setup.clone()
        };
        setups.iter().map(add).collect()
    }

    /// As schedulers see them, by I/O context.
    fn of(&self, stream: &Stream) -> Submitters {
        let groups = self.groups();
        let nice = IoPrio {
            class: IoClass::BestEffort,
            level: 4,
        };
        let mut tasks = vec![Submitter::default(); stream.tasks + 1];
        for (index, event) in stream.events.iter().enumerate() {
            let task = &mut tasks[io_context_of(stream.task[index]).0 as usize];
            if task.nice == nice {
                continue;
            }
            let name = self.names.get(&event.pid);
            let written = name.and_then(|name| self.script.get(name));
            let path = written.map_or("", |(_, group)| group.as_str());
            task.pid = event.pid as i32;
            task.ioprio = written.map_or(IoPrio::default(), |&(ioprio, _)| ioprio);
            task.nice = nice;
            let group = groups.iter().position(|group| group.path == path);
            task.group = group.unwrap_or(0) as u16;
        }
        for (index, event) in stream.events.iter().enumerate() {
            let task = &mut tasks[io_context_of(stream.task[index]).0 as usize];
            if event.kind == Kind::Queue
                && task.ioprio == IoPrio::default()
                && let Some(ioprio) = stream.ioprio[index]
            {
                task.ioprio = ioprio;
            }
        }
        Submitters { tasks, groups }
    }

    /// The root, and each group behind the one that it is in.
    fn groups(&self) -> Vec<SubmitterGroup> {
        let mut groups = Submitters::default().groups;
        let mut paths: Vec<(String, u16)> = self
            .groups
            .iter()
            .map(|group| {
                let weight = group.weight.clamp(1, 1000) as u16;
                (group.path.trim_matches('/').to_owned(), weight)
            })
            .collect();
        for (_, group) in self.script.values() {
            if !group.is_empty() && !paths.iter().any(|(path, _)| path == group) {
                paths.push((group.clone(), WEIGHT));
            }
        }
        // A path sorts behind that of the group that it is in.
        paths.sort();
        for (path, weight) in paths {
            let above = path.rsplit_once('/').map_or("", |(above, _)| above);
            let parent = groups.iter().position(|group| group.path == above);
            groups.push(SubmitterGroup {
                path,
                parent: parent.unwrap_or(0) as u16,
                weight,
            });
        }
        groups
    }
}
