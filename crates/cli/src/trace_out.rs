//! `--blktrace DIR`: the simulated run as the files that blktrace would have written.
//!
//! Maps trace points of the block layer to events; the bytes are `trace::blktrace::Writer`'s.
//! Kernel: __blk_add_trace() and its callers in kernel/trace/blktrace.c (v6.12).

use std::path::Path;

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, Op, Status};
use blkmq::time::SimTime;
use sim::plan::{DeviceKind, Engine, Plan};
use trace::blktrace::{Action, Categories, Device, Event, Writer, WriterOptions};

use crate::error::Error;
use crate::interrupt::Interrupt;

/// Process id of the first task.
const FIRST_PID: u32 = 1000;
/// Events between two looks at Ctrl-C.
const CHECK_EVERY: usize = 1 << 16;

/// The files being written. Dropped without `finish` it leaves nothing.
#[derive(Debug)]
pub(crate) struct TraceOut {
    writer: Writer,
    device: Device,
}

impl TraceOut {
    /// Starts the files. The directory is made if it is not there; files of the device that this
    /// run would not replace are an error, since they would be read as part of it.
    pub(crate) fn create(dir: &Path, plan: &Plan) -> Result<TraceOut, Error> {
        let refuse = |source| Error::output(dir.display().to_string(), source);
        if !dir.exists() {
            std::fs::create_dir(dir).map_err(refuse)?;
        }
        let name = &plan.device.name;
        for entry in std::fs::read_dir(dir).map_err(refuse)? {
            let path = entry.map_err(refuse)?.path();
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let cpu = file
                .strip_prefix(&format!("{name}.blktrace."))
                .map(str::parse::<u16>);
            if cpu.is_some_and(|cpu| {
                cpu.is_ok_and(|cpu| cpu >= plan.machine.cpus) || file.ends_with('z')
            }) {
                let what = "is of another run with more CPUs, and would be read as part of this \
                            one; remove it or name another directory";
                return Err(Error::input(path, what));
            }
        }
        let device = number(plan);
        let cpus = u32::from(plan.machine.cpus);
        let mut writer = Writer::create(dir, name, device, cpus, WriterOptions::default())?;
        for (index, name) in task_names(plan).iter().enumerate() {
            writer.name_process(FIRST_PID + index as u32, name);
        }
        Ok(TraceOut { writer, device })
    }

    /// Writes events, which are in order of time for each CPU.
    pub(crate) fn write(
        &mut self,
        points: &[(SimTime, CpuId, u32, TracePoint)],
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        for chunk in points.chunks(CHECK_EVERY) {
            for &(time, cpu, task, point) in chunk {
                let mut event = event(time, &point);
                event.cpu = u32::from(cpu.0);
                // Task 0 is the idle task.
                event.pid = if task == 0 { 0 } else { FIRST_PID + task - 1 };
                event.device = self.device;
                self.writer.write(&event)?;
            }
            interrupt.check()?;
        }
        Ok(())
    }

    /// Gives the files their names.
    pub(crate) fn finish(self) -> Result<(), Error> {
        Ok(self.writer.finish()?)
    }
}

/// Device numbers as a Debian kernel gives them to the first device of a driver.
fn number(plan: &Plan) -> Device {
    match plan.device.kind {
        DeviceKind::NullBlk(_) => Device::new(252, 0),
        DeviceKind::Nvme(_) => Device::new(259, 0),
        DeviceKind::ScsiDebug(_) => Device::new(8, 0),
    }
}

/// Names of the machine's tasks in its order: fio's threads, io_uring's workers, kblockd's.
fn task_names(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> = plan.threads.iter().map(|_| "fio".to_owned()).collect();
    for (index, thread) in plan.threads.iter().enumerate() {
        if thread.engine == Engine::IoUring {
            names.push(format!("iou-wrk-{}", FIRST_PID + index as u32));
        }
    }
    names.extend((0..plan.machine.cpus).map(|cpu| format!("kworker/{cpu}:1H")));
    names
}

fn event(time: SimTime, point: &TracePoint) -> Event {
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
    };
    let mut event = Event::new(time, action);
    event.sector = point.sector.0;
    event.bytes = point.sectors.0 << 9;
    event.categories = group.with(categories(point));
    event.extra = point.payload;
    event.error = match point.status {
        Status::Ok => 0,
        Status::IoError => 5,
        Status::Again => 11,
        Status::NotSupported => 95,
        Status::Timeout => 110,
    };
    event
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
