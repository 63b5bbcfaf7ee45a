//! `--blktrace DIR`: the simulated run as the files that blktrace would have written.
//!
//! Maps trace points of the block layer to events; the bytes are `trace::blktrace::Writer`'s.
//! Kernel: __blk_add_trace() and its callers in kernel/trace/blktrace.c (v6.12).

mod folder;
mod ftrace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, Op, QueueId};
use blkmq::time::SimTime;
use sim::device::DeviceNumbers;
use sim::machine::{FIRST_PID, Simulator};
use sim::plan::{DiskId, Plan, Submitter, ThreadPlan};
use trace::blktrace::{Action, Categories, Device, Event, Writer, WriterOptions};

use crate::error::Error;
use crate::output::{OutputFile, Written as WrittenFile};

pub(crate) use folder::Written;

/// cgroup id of a message without a cgroup, and of every one unless blktrace is asked for ids
/// (trace_note() with CONFIG_BLK_CGROUP, v6.1, v6.12).
const NO_CGROUP: u64 = 1;

/// The files being written. Dropped without [`TraceOut::keep`] it leaves nothing.
#[derive(Debug)]
pub(crate) struct TraceOut {
    /// By queue: one set of files.
    writers: Vec<(Writer, Device)>,
    /// By queue of a path: the device above.
    above: BTreeMap<QueueId, Device>,
    /// ftrace.txt, where a scheduler is probed, and its settings for each queue.
    ftrace: Option<trace::ftrace::Writer>,
    shown: Vec<ftrace::Shown>,
    names: Vec<String>,
    /// meta.txt, queue.txt and priorities.txt.
    texts: [WrittenFile; 3],
    /// Dropped last: then the directory is empty again.
    made: Made,
}

/// A directory that this run made, removed again unless there is something in it.
#[derive(Debug)]
struct Made(Option<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(dir) = &self.0 {
            // Fails where files are in it: then it is wanted.
            let _ = std::fs::remove_dir(dir);
        }
    }
}

impl TraceOut {
    /// Starts the files, and the recording. The directory is made if it is not there; files that
    /// this run would not replace are an error, since they would be read as part of it.
    pub(crate) fn create(
        dir: &Path,
        plan: &Plan,
        written: &Written,
        simulator: &mut Simulator,
    ) -> Result<TraceOut, Error> {
        let refuse = |source| Error::output(dir.display().to_string(), source);
        let made = if dir.exists() {
            Made(None)
        } else {
            std::fs::create_dir(dir).map_err(refuse)?;
            Made(Some(dir.to_path_buf()))
        };
        folder::check(dir, plan, written)?;
        let numbers = numbers(plan);
        let text = |name: &str, text: &str| OutputFile::open(&dir.join(name))?.put(text);
        let texts = [
            text("meta.txt", &folder::meta(plan, written, &numbers))?,
            text("queue.txt", &folder::queue(plan, simulator))?,
            text("priorities.txt", &folder::priorities(plan))?,
        ];
        let cpus = u32::from(plan.machine.cpus);
        let mut writers = Vec::new();
        for (disk, device) in plan.queues().zip(numbers.iter().copied()) {
            let name = &disk.device.name;
            let mut writer = Writer::create(dir, name, device, cpus, WriterOptions::default())?;
            for (index, name) in task_names(plan).iter().enumerate() {
                writer.name_process(FIRST_PID + index as u32, name);
            }
            writers.push((writer, device));
        }
        simulator.trace();
        let shown = ftrace::shown(plan, &numbers);
        let mut ftrace = None;
        if shown.iter().any(|disk| disk.probes.is_some()) {
            ftrace = Some(trace::ftrace::Writer::create(&dir.join("ftrace.txt"))?);
            simulator.probe();
        }
        Ok(TraceOut {
            above: above(plan, &numbers),
            writers,
            ftrace,
            shown,
            names: task_names(plan),
            texts,
            made,
        })
    }

    /// Everything was written: only the names are missing now.
    pub(crate) fn complete(&mut self) -> Result<(), Error> {
        for (writer, _) in &mut self.writers {
            writer.flush()?;
        }
        if let Some(ftrace) = &mut self.ftrace {
            ftrace.flush()?;
        }
        Ok(())
    }

    /// Writes points, which are in order of time for each CPU, with the text of their messages;
    /// none before `until` is to come.
    pub(crate) fn write(
        &mut self,
        points: &[(SimTime, CpuId, u32, TracePoint)],
        messages: &str,
        until: SimTime,
    ) -> Result<(), Error> {
        for &(time, cpu, task, point) in points {
            // Task 0 is the idle task.
            let (pid, name) = match task.checked_sub(1) {
                None => (0, "<idle>"),
                Some(index) => (FIRST_PID + index, self.names[index as usize].as_str()),
            };
            if let Some(ftrace) = &mut self.ftrace
                && let Some(event) = ftrace::event(&self.shown[point.queue.index()], &point, name)
            {
                ftrace.write(ftrace::record(time, cpu.0, (pid, name), event));
            }
            let Some(mut event) = event(time, &point) else {
                continue;
            };
            event.cpu = u32::from(cpu.0);
            event.pid = pid;
            let (writer, device) = &mut self.writers[point.queue.index()];
            event.device = *device;
            match point.action {
                TraceAction::Message(said) => {
                    let text = noted(said.text(messages));
                    writer.write_with(&event, Some(NO_CGROUP), text.as_bytes())?;
                }
                TraceAction::Remap => {
                    event.from = self.above[&point.queue];
                    writer.write(&event)?;
                }
                _ => writer.write(&event)?,
            }
        }
        match &mut self.ftrace {
            Some(ftrace) => Ok(ftrace.settle(until)?),
            None => Ok(()),
        }
    }

    /// Gives the files their names.
    pub(crate) fn keep(mut self) -> Result<(), Error> {
        for (writer, _) in self.writers {
            writer.finish()?;
        }
        if let Some(ftrace) = self.ftrace {
            ftrace.finish()?;
        }
        for text in self.texts {
            text.keep()?;
        }
        self.made.0 = None;
        Ok(())
    }
}

/// Of each queue, device numbers as a Debian kernel gives them to the devices of each driver, the
/// first one first.
fn numbers(plan: &Plan) -> Vec<Device> {
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    let disks = plan.queues().map(|disk| {
        let DeviceNumbers { major, minors } = disk.info().numbers;
        let minor = next.entry(major).or_default();
        let number = Device::new(major, *minor);
        *minor += minors;
        number
    });
    disks.collect()
}

/// For each queue of a path: the device that is mapped to it.
fn above(plan: &Plan, numbers: &[Device]) -> BTreeMap<QueueId, Device> {
    let disks = (0..plan.disks.len() as u16).map(DiskId).zip(numbers);
    let paths = disks.flat_map(|(disk, device)| {
        let below = plan.queues_below(disk).into_iter();
        below.map(|queue| (queue, *device))
    });
    paths.collect()
}

/// Names of the machine's tasks in its order: threads of fio or t/io_uring, io_uring's workers,
/// kblockd's, writers to files of sysfs, dmsetup, lock holders, threads and workers of mapped
/// devices that have some.
fn task_names(plan: &Plan) -> Vec<String> {
    let of_thread = |thread: &ThreadPlan| match thread.submitter {
        Submitter::Fio => "fio".to_owned(),
        Submitter::TIoUring { .. } => "io_uring".to_owned(),
    };
    let mut names: Vec<String> = plan.threads.iter().map(of_thread).collect();
    for (index, thread) in plan.threads.iter().enumerate() {
        let name = match thread.hires() {
            true => "fio".to_owned(),
            false => format!("iou-wrk-{}", FIRST_PID + index as u32),
        };
        let count = thread.workers(plan.machine.cpus) as usize;
        names.extend(std::iter::repeat_n(name, count));
    }
    names.extend((0..plan.machine.cpus).map(|cpu| format!("kworker/{cpu}:1H")));
    names.extend((!plan.changes.is_empty()).then(|| "tee".to_owned()));
    names.extend((!plan.suspensions().is_empty()).then(|| "dmsetup".to_owned()));
    let numbers = numbers(plan);
    let mapped = plan.disks.iter().zip(numbers);
    let with_thread = mapped
        .filter(|(disk, _)| disk.mapped().is_some() && disk.queue.rules.single_queue.is_some());
    names.extend(
        with_thread.map(|(_, number)| format!("kdmwork-{}:{}", number.major(), number.minor())),
    );
    let bio_based = plan.disks.iter().filter(|disk| disk.maps_bios());
    names.extend(bio_based.flat_map(|_| ["kmpathd", "kdmflush"].map(str::to_owned)));
    names
}

/// The record of a point; probes have none.
pub(crate) fn event(time: SimTime, point: &TracePoint) -> Option<Event> {
    let (action, group) = match point.action {
        TraceAction::Queue => (Action::Queue, Categories::QUEUE),
        // A split belongs to no group.
        TraceAction::Split => (Action::Split, Categories(0)),
        TraceAction::BackMerge => (Action::BackMerge, Categories::QUEUE),
        TraceAction::FrontMerge => (Action::FrontMerge, Categories::QUEUE),
        TraceAction::GetRq => (Action::GetRequest, Categories::QUEUE),
        TraceAction::Plug => (Action::Plug, Categories::QUEUE),
        TraceAction::Unplug => (Action::Unplug, Categories::QUEUE),
        TraceAction::UnplugTimer => (Action::UnplugTimer, Categories::QUEUE),
        TraceAction::Insert => (Action::Insert, Categories::QUEUE),
        TraceAction::Issue => (Action::Issue, Categories::ISSUE),
        TraceAction::Requeue => (Action::Requeue, Categories::REQUEUE),
        TraceAction::Complete => (Action::Complete, Categories::COMPLETE),
        TraceAction::Remap => (Action::Remap, Categories::QUEUE),
        TraceAction::Message(_) => return Some(Event::new(time, Action::Message)),
        TraceAction::Probe(_) => return None,
    };
    let mut event = Event::new(time, action);
    event.sector = point.sector.0;
    event.bytes = point.sectors.0 << 9;
    event.categories = group.with(categories(point));
    event.extra = point.payload;
    event.error = point.status.errno();
    Some(event)
}

/// As much of a message as a note takes (BLK_TN_MAX_MSG, with the end of the string).
fn noted(message: &str) -> &str {
    &message[..message.floor_char_boundary(127)]
}

fn categories(point: &TracePoint) -> Categories {
    let direction = match point.op {
        Op::Read => Categories::READ,
        Op::Write | Op::WriteZeroes => Categories::WRITE,
        // Number 2 is even, so a flush counts as a read.
        Op::Flush => Categories::READ.with(Categories::FLUSH),
        Op::Discard => Categories::WRITE.with(Categories::DISCARD),
    };
    let flags = point.flags;
    let switches = [
        (flags.sync, Categories::SYNC),
        (flags.meta, Categories::META),
        (flags.rahead, Categories::AHEAD),
        (flags.preflush, Categories::FLUSH),
        (flags.fua, Categories::FUA),
        (point.of_request, Categories::FS),
    ];
    switches
        .into_iter()
        .filter(|(on, _)| *on)
        .fold(direction, |all, (_, category)| all.with(category))
}
