//! Who submits: pid, priority and group of each task, for schedulers that keep books on processes.
//!
//! Best first: the I/O script (`script.rs`), the insertion probes, nothing. Groups and weights are
//! of `meta.txt`. Not here: the priority of a single bio (`priority.rs`).

use std::collections::{BTreeMap, BTreeSet};

use blkmq::elevator::{Submitter, SubmitterGroup, Submitters};
use blkmq::request::{IoClass, IoContextId, IoPrio, Op};
use trace::capture::CaptureDir;
use trace::io_txt::{Call, IoKind, Process};
use trace::meta::Cgroup;

use super::event::{self, Event, Kind};
use super::script::{self, Script};
use super::setup::Setup;
use super::stream::Stream;

/// io.bfq.weight of a group that nobody gave one.
const WEIGHT: u16 = 100;

/// What a capture tells of processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// Priority and group by pid.
    written: BTreeMap<u32, (IoPrio, String)>,
    /// Ranges that a process of the script writes without the page cache, by pid.
    direct: BTreeMap<u32, BTreeSet<(u64, u32)>>,
    /// Groups that processes of the script are in.
    entered: Vec<String>,
    groups: Vec<Cgroup>,
    /// Numbers of the devices, which weights may be about.
    devices: BTreeMap<String, (u32, u32)>,
}

/// The I/O context of a task: number 0 is nobody's.
pub(super) fn io_context_of(task: usize) -> IoContextId {
    IoContextId(task as u32 + 1)
}

impl Processes {
    pub(super) fn of_script(
        dir: &CaptureDir,
        script: &Script,
        names: &BTreeMap<u32, String>,
    ) -> Processes {
        let written = |(pid, number): (u32, usize)| {
            let process = &script.processes[number];
            (pid, (script::ioprio_of(process), process.group.clone()))
        };
        let direct = |(pid, number): (u32, usize)| (pid, direct(&script.processes[number]));
        let entered = script.processes.iter();
        Processes {
            written: script.tasks(names).into_iter().map(written).collect(),
            direct: script.tasks(names).into_iter().map(direct).collect(),
            entered: entered.map(|process| process.group.clone()).collect(),
            groups: dir.meta.cgroups.clone(),
            devices: numbers(dir),
        }
    }

    /// The devices with who submits to them.
    pub(super) fn add_to(&self, setups: &[Setup], stream: &mut Stream) -> Vec<Setup> {
        let submitters = self.of(stream);
        for (index, event) in stream.events.iter().enumerate() {
            stream.of_root[index] = self.is_writeback(event);
        }
        let add = |setup: &Setup| Setup {
            submitters: Submitters {
                groups: self.groups(&setup.device),
                ..submitters.clone()
            },
            ..setup.clone()
        };
        setups.iter().map(add).collect()
    }

    /// Without the memory controller, writeback of a block device is the root group's, whoever
    /// starts it (wbc_init_bio()). It is what no line of the script writes directly; without a
    /// script, what nobody waits for.
    fn is_writeback(&self, event: &Event) -> bool {
        if (event.kind, event.op) != (Kind::Queue, Op::Write) {
            return false;
        }
        match self.direct.get(&event.pid) {
            Some(direct) => !direct.contains(&(event.sector.0, event.sectors.0)),
            None => !event.flags.sync,
        }
    }

    /// As schedulers see them, by I/O context; weights of groups as on any device.
    fn of(&self, stream: &Stream) -> Submitters {
        let groups = self.groups("");
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
            let written = self.written.get(&event.pid);
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

    /// The root, and each group behind the one that it is in, with the weights of a device.
    fn groups(&self, device: &str) -> Vec<SubmitterGroup> {
        let device = self.devices.get(device);
        let mut groups = Submitters::default().groups;
        let mut paths: Vec<(String, u16)> = self
            .groups
            .iter()
            .map(|group| {
                let own = device.and_then(|device| group.weight_on.get(device));
                let weight = own.copied().unwrap_or(group.weight).clamp(1, 1000) as u16;
                (group.path.trim_matches('/').to_owned(), weight)
            })
            .collect();
        for group in &self.entered {
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

/// Starts and lengths of what a process writes without the page cache.
fn direct(process: &Process) -> BTreeSet<(u64, u32)> {
    let writes = process.expand().into_iter().filter_map(|call| match call {
        Call::Queue(io) if matches!(io.kind, IoKind::Write | IoKind::WriteDsync) => {
            Some((io.sector, io.sectors))
        }
        _ => None,
    });
    writes.collect()
}

/// Of the devices that have records.
fn numbers(dir: &CaptureDir) -> BTreeMap<String, (u32, u32)> {
    let number = |name: &String| {
        let number = event::number_of(dir, name).ok()?;
        Some((name.clone(), (number.major, number.minor)))
    };
    let names = dir.devices.iter().map(|device| &device.name);
    names.filter_map(number).collect()
}
