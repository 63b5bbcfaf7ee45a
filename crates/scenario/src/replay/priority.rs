//! Priorities and groups of arrivals, which blktrace does not record.
//!
//! Best first: the script that the capture ran (it has the priority of each I/O), `priorities.txt`
//! of a simulated run for each task, the scheduler's `ins` probes (a request's priority is that of
//! its bios), the probes of the same task.

use std::collections::{BTreeMap, VecDeque};

use blkmq::request::{IoClass, IoPrio, Op};
use trace::capture::CaptureDir;
use trace::ftrace::{Event, IoPriority, Probe};
use trace::io_txt::{Call, IoKind, Process};
use trace::meta::Cgroup;
use trace::priorities::Task;
use trace::processes;

use sim::replay::{Arrival, Arrivals, Point, StepKind};

/// Source of the priorities of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrioritySource {
    /// `io.txt`.
    Script,
    /// `priorities.txt`.
    Tasks,
    /// `ins` probes of `ftrace.txt`.
    Probes,
    /// None: all are best effort 4.
    Default,
}

/// A place that an I/O asks for: direction (0 read, 1 write), first sector.
type Place = (u8, u64);

/// Gives every arrival its priority by a capture folder.
pub fn prioritise(
    arrivals: &mut Arrivals,
    capture: &CaptureDir,
) -> Result<PrioritySource, trace::Error> {
    if let Some(script) = capture.io_script()? {
        take_from_script(arrivals, &script.processes, &capture.meta.cgroups);
        return Ok(PrioritySource::Script);
    }
    if let Some(file) = capture.files.get("priorities.txt") {
        take_from_tasks(
            arrivals,
            &trace::priorities::open(file)?,
            &capture.meta.cgroups,
        );
        return Ok(PrioritySource::Tasks);
    }
    if !capture.files.contains_key("ftrace.txt") {
        return Ok(PrioritySource::Default);
    }
    let mut inserted: BTreeMap<Place, IoPriority> = BTreeMap::new();
    let mut of_task: BTreeMap<u32, IoPriority> = BTreeMap::new();
    for record in capture.ftrace()? {
        let record = record?;
        let Event::Probe(Probe::Insert(rq)) = record.event else {
            continue;
        };
        let write = (rq.cmd_flags & 0xff) % 2 == 1;
        inserted.insert((u8::from(write), rq.sector), rq.priority);
        if !record.in_interrupt() {
            of_task.insert(record.pid, rq.priority);
        }
    }
    for io in &mut arrivals.ios {
        let known = inserted.get(&place(io)).or_else(|| of_task.get(&io.pid));
        if let Some(priority) = known {
            io.ioprio = resolved(*priority);
        }
    }
    let none = inserted.is_empty();
    Ok(if none {
        PrioritySource::Default
    } else {
        PrioritySource::Probes
    })
}

/// Priorities of I/Os and groups of tasks.
fn take_from_tasks(arrivals: &mut Arrivals, tasks: &BTreeMap<u32, Task>, cgroups: &[Cgroup]) {
    for io in &mut arrivals.ios {
        if let Some(task) = tasks.get(&io.pid) {
            io.ioprio = resolved(task.priority);
        }
    }
    let entered = tasks.values().map(|task| task.group.as_str());
    arrivals.groups = processes::groups(cgroups, entered, None);
    for stream in &mut arrivals.streams {
        if let Some(task) = tasks.get(&stream.pid) {
            stream.group = processes::place_of(&task.group, &arrivals.groups);
        }
    }
}

/// Priorities of I/Os, and groups of processes and of what they write through the page cache.
fn take_from_script(arrivals: &mut Arrivals, processes: &[Process], cgroups: &[Cgroup]) {
    let names = arrivals.streams.iter().map(|of| (of.pid, of.name.clone()));
    let tasks = processes::tasks(processes, &names.collect());
    let entered = processes.iter().map(|process| process.group.as_str());
    arrivals.groups = processes::groups(cgroups, entered, None);
    for stream in &mut arrivals.streams {
        let Some(&number) = tasks.get(&stream.pid) else {
            continue;
        };
        let process = &processes[number];
        stream.group = processes::place_of(&process.group, &arrivals.groups);
        let direct = process.direct_writes();
        let mut asked = asked_by(process);
        for step in &stream.steps {
            let StepKind::Submit(index) = step.kind else {
                continue;
            };
            let io = &mut arrivals.ios[index as usize];
            let range = (io.sector.0, io.sectors.0);
            // Only bios are as in the script.
            let writes = arrivals.point == Point::Queue && io.op == Op::Write;
            io.of_root = writes && !direct.contains(&range);
            if let Some(priorities) = asked.get_mut(&place(io)) {
                io.ioprio = resolved(priorities[0]);
                // The last one holds for all that follow.
                if priorities.len() > 1 {
                    priorities.pop_front();
                }
            }
        }
    }
}

/// Priorities that a process asks for at each place, in order.
fn asked_by(process: &Process) -> BTreeMap<Place, VecDeque<IoPriority>> {
    let mut asked: BTreeMap<Place, VecDeque<IoPriority>> = BTreeMap::new();
    for call in process.expand() {
        let Call::Queue(io) = call else { continue };
        let write = !matches!(io.kind, IoKind::Read);
        let priority = io.priority.unwrap_or(process.priority);
        let place = (u8::from(write), io.sector);
        asked.entry(place).or_default().push_back(priority);
    }
    asked
}

fn place(io: &Arrival) -> Place {
    (u8::from(io.op != Op::Read), io.sector.0)
}

/// A priority of class none is that of the task, best effort 4.
fn resolved(priority: IoPriority) -> IoPrio {
    let class = match priority.class {
        1 => IoClass::RealTime,
        2 => IoClass::BestEffort,
        3 => IoClass::Idle,
        _ => {
            return IoPrio {
                class: IoClass::BestEffort,
                level: 4,
            };
        }
    };
    IoPrio {
        class,
        level: priority.level,
    }
}
