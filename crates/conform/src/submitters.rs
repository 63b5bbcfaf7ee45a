//! Submitters: pid and priority of each task, and groups of bios, for schedulers that keep accounts
//! by process.
//!
//! Best first: the I/O script (`script.rs`), the task's line in `priorities.txt` of a simulated
//! run, the insertion probes, nothing. Groups and weights are of `meta.txt`, and moves to other
//! groups of `ftrace.txt`. Not here: the priority of a single bio (`priority.rs`).

use std::collections::{BTreeMap, BTreeSet};

use blkmq::elevator::{Submitter, SubmitterGroup, Submitters};
use blkmq::request::{IoClass, IoContextId, IoPrio, Op};
use trace::capture::CaptureDir;
use trace::ftrace;
use trace::io_txt::Process;
use trace::meta::Cgroup;
use trace::priorities;
use trace::processes::{self, Group};

use super::Error;
use super::event::{self, Event, Kind};
use super::script::{self, Script};
use super::setup::Setup;
use super::stream::Stream;

/// Data of a capture on processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    written: Vec<Process>,
    /// Number of its process by pid.
    tasks: BTreeMap<u32, usize>,
    /// Of `priorities.txt`, by pid.
    recorded: BTreeMap<u32, priorities::Task>,
    /// Workers of io_uring, each with its owner, by pid.
    workers: BTreeMap<u32, u32>,
    /// Ranges that a process of the script writes without the page cache, by pid.
    direct: BTreeMap<u32, BTreeSet<(u64, u32)>>,
    groups: Vec<Cgroup>,
    /// In order.
    moves: Vec<Move>,
    /// Numbers of the devices, which weights may be about.
    devices: BTreeMap<String, (u32, u32)>,
}

/// A process moves to another group.
#[derive(Debug)]
struct Move {
    pid: u32,
    path: String,
    /// Bios until then, by device and pid: blktrace has another clock than `ftrace.txt`, and bios
    /// of a task in the same order.
    queued: BTreeMap<((u32, u32), u32), usize>,
}

/// The I/O context of a task: number 0 is unused.
pub(super) fn io_context_of(task: usize) -> IoContextId {
    IoContextId(task as u32 + 1)
}

impl Processes {
    pub(super) fn of_script(
        dir: &CaptureDir,
        script: &Script,
        names: &BTreeMap<u32, String>,
    ) -> Result<Processes, Error> {
        let recorded = dir.files.get("priorities.txt");
        let recorded = recorded.map(|file| priorities::open(file)).transpose()?;
        let tasks = processes::tasks(&script.processes, names);
        let direct =
            |(&pid, &number): (&u32, &usize)| (pid, script.processes[number].direct_writes());
        let worker = |(&pid, name): (&u32, &String)| Some((pid, event::works_for(name)?));
        Ok(Processes {
            workers: names.iter().filter_map(worker).collect(),
            direct: tasks.iter().map(direct).collect(),
            written: script.processes.clone(),
            tasks,
            recorded: recorded.unwrap_or_default(),
            groups: dir.meta.cgroups.clone(),
            moves: moves(dir)?,
            devices: numbers(dir),
        })
    }

    /// The devices with their submitters.
    pub(super) fn add_to(&self, setups: &[Setup], stream: &mut Stream) -> Vec<Setup> {
        stream.share_contexts(&self.workers);
        let submitters = self.of(stream);
        self.group_bios(setups, stream);
        let add = |setup: &Setup| Setup {
            submitters: Submitters {
                groups: self.groups(&setup.device).into_iter().map(seen).collect(),
                ..submitters.clone()
            },
            ..setup.clone()
        };
        setups.iter().map(add).collect()
    }

    /// The groups of bios: where their tasks began or were moved to, or the root.
    fn group_bios(&self, setups: &[Setup], stream: &mut Stream) {
        let groups = self.groups("");
        let number = |setup: &Setup| self.devices.get(&setup.device).copied();
        let numbers: Vec<_> = setups.iter().map(number).collect();
        let mut queued: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        for (index, event) in stream.events.iter().enumerate() {
            if event.kind != Kind::Queue {
                continue;
            }
            let queue = stream.queue[index].index();
            let before = queued.entry((queue, event.pid)).or_default();
            let moved = || self.moved_to((numbers[queue]?, event.pid), *before);
            let pid = self.workers.get(&event.pid).copied().unwrap_or(event.pid);
            if !self.is_writeback(event) {
                let path = moved().unwrap_or(self.asked_by(pid).1);
                stream.group[index] = processes::place_of(path, &groups);
            }
            *before += 1;
        }
    }

    /// The group to which a task was moved last before it submitted so many bios and one more.
    fn moved_to(&self, of: ((u32, u32), u32), before: usize) -> Option<&str> {
        let pid = self.workers.get(&of.1).copied().unwrap_or(of.1);
        let moves = self.moves.iter().rev();
        let mut own = moves.filter(|to| to.pid == pid);
        let last = own.find(|to| to.queued.get(&of).is_none_or(|&queued| queued <= before))?;
        Some(&last.path)
    }

    /// Without the memory controller, writeback of a block device belongs to the root group for
    /// every submitter (wbc_init_bio()). Writeback is a write that no line of the script makes
    /// directly; without a script, an asynchronous write.
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
            let context = stream.context[stream.task[index]];
            let task = &mut tasks[io_context_of(context).0 as usize];
            if task.nice == nice {
                continue;
            }
            let pid = self.workers.get(&event.pid).copied().unwrap_or(event.pid);
            let (ioprio, _) = self.asked_by(pid);
            task.pid = event.pid as i32;
            task.ioprio = ioprio;
            task.nice = nice;
        }
        for (index, event) in stream.events.iter().enumerate() {
            let context = stream.context[stream.task[index]];
            let task = &mut tasks[io_context_of(context).0 as usize];
            if event.kind == Kind::Queue
                && task.ioprio == IoPrio::default()
                && let Some(ioprio) = stream.ioprio[index]
            {
                task.ioprio = ioprio;
            }
        }
        let groups = groups.into_iter().map(seen).collect();
        Submitters { tasks, groups }
    }

    /// ioprio_set() of a task, and the path of its group.
    fn asked_by(&self, pid: u32) -> (IoPrio, &str) {
        if let Some(&number) = self.tasks.get(&pid) {
            let process = &self.written[number];
            return (script::ioprio_of(process.priority), &process.group);
        }
        match self.recorded.get(&pid) {
            Some(task) => (script::ioprio_of(task.priority), &task.group),
            None => (IoPrio::default(), ""),
        }
    }

    /// Groups with the weights of a device.
    fn groups(&self, device: &str) -> Vec<Group> {
        let device = self.devices.get(device).copied();
        let written = self.written.iter().map(|process| process.group.as_str());
        let recorded = self.recorded.values().map(|task| task.group.as_str());
        let moved = self.moves.iter().map(|to| to.path.as_str());
        let entered = written.chain(recorded).chain(moved);
        processes::groups(&self.groups, entered, device)
    }
}

/// Moves of processes, where the capture has groups.
fn moves(dir: &CaptureDir) -> Result<Vec<Move>, Error> {
    let mut moves = Vec::new();
    if dir.meta.cgroups.is_empty() || !dir.files.contains_key("ftrace.txt") {
        return Ok(moves);
    }
    let mut queued: BTreeMap<((u32, u32), u32), usize> = BTreeMap::new();
    for record in dir.ftrace()? {
        let record = record?;
        match record.event {
            ftrace::Event::BioQueue(bio) => {
                let device = (bio.device.major, bio.device.minor);
                *queued.entry((device, record.pid)).or_default() += 1;
            }
            // Of the hierarchy of cgroup v2.
            ftrace::Event::CgroupAttach(to) if to.root == 0 => moves.push(Move {
                pid: to.pid,
                path: to.path.trim_matches('/').to_owned(),
                queued: queued.clone(),
            }),
            _ => {}
        }
    }
    Ok(moves)
}

fn seen(group: Group) -> SubmitterGroup {
    let Group {
        path,
        parent,
        weight,
    } = group;
    SubmitterGroup {
        path,
        parent,
        weight,
    }
}

/// For the devices that have records.
fn numbers(dir: &CaptureDir) -> BTreeMap<String, (u32, u32)> {
    let number = |name: &String| {
        let number = event::number_of(dir, name).ok()?;
        Some((name.clone(), (number.major, number.minor)))
    };
    let names = dir.devices.iter().map(|device| &device.name);
    names.filter_map(number).collect()
}
