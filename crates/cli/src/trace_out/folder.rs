//! The texts next to a simulated trace: with them the directory is a capture folder like those of
//! real kernels, for `replay` and `conform`.
//!
//! Keys and their order are those of /sys/block/DEVICE/queue (block/blk-sysfs.c, v6.12); only keys
//! that a reader of captures uses are written. Read next: docs/reference/formats.md.

use std::fmt::Write as _;
use std::path::Path;

use blkmq::elevator::{SchedulerKind, SubmitterGroup};
use blkmq::queue::RequestQueue;
use blkmq::request::{CpuId, IoClass, IoPrio};
use blkmq::rules::NoMerges;
use sim::machine::{FIRST_PID, Simulator};
use sim::plan::{DevicePlan, DiskPlan, Plan};
use trace::blktrace::Device;

use crate::error::Error;

/// The command in meta.txt begins with this; only such a folder may be written over.
const COMMAND: &str = "cmd=blksim run ";

/// Facts that the plan does not keep.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// Parameters of the devices' module, as the scenario has them; none if devices differ.
    pub(crate) parameters: Option<Vec<(String, String)>>,
    pub(crate) tables: Vec<String>,
    pub(crate) arguments: Vec<String>,
}

/// meta.txt: kernel, machine, devices with their numbers, and command.
pub(super) fn meta(plan: &Plan, written: &Written, numbers: &[Device]) -> String {
    let disk = plan.disks.first().expect("a plan has a disk");
    let kernel = disk.queue.rules.name.trim_start_matches('v');
    let version = env!("CARGO_PKG_VERSION");
    let module = real(plan).next().unwrap_or(disk).info().driver;
    let parameters: String = written
        .parameters
        .iter()
        .flatten()
        .map(|(name, value)| format!(" {name}={value}"))
        .collect();
    let arguments: Vec<String> = written
        .arguments
        .iter()
        .map(|argument| argument.replace(char::is_control, " "))
        .collect();
    format!(
        "uname=Linux simulated {kernel} blksim {version}, HZ={}\ncpus={}\n\
         device={module}{parameters}\n\
         {}{COMMAND}{}\nrecord_times=labels\n{}{}",
        plan.machine.hz,
        plan.machine.cpus,
        tables(plan, written, numbers),
        arguments.join(" "),
        rotational(plan),
        cgroups(plan)
    )
}

/// Devices that are not mapped to others.
fn real(plan: &Plan) -> impl Iterator<Item = &DiskPlan> {
    plan.queues().filter(|disk| disk.mapped().is_none())
}

/// Tables as dmsetup shows them: with numbers of devices.
fn tables(plan: &Plan, written: &Written, numbers: &[Device]) -> String {
    let mut text = String::new();
    for table in &written.tables {
        text.push_str("dm:");
        for word in table.split_whitespace() {
            let mut named = plan.queues().zip(numbers);
            let number = named.find(|(disk, _)| disk.device.name == word);
            // Writing into a string cannot fail.
            let _ = match number {
                Some((_, number)) => write!(text, " {}:{}", number.major(), number.minor()),
                None => write!(text, " {word}"),
            };
        }
        text.push('\n');
    }
    text
}

/// queue/rotational of each device when its scheduler was chosen.
fn rotational(plan: &Plan) -> String {
    let line = |disk: &DiskPlan| {
        let DevicePlan {
            name,
            rotational_when_chosen,
            ..
        } = &disk.device;
        let chosen = u8::from(*rotational_when_chosen);
        format!("rotational_when_scheduler_chosen_{name}={chosen}\n")
    };
    plan.queues().map(line).collect()
}

/// Weights of groups, under the name that they have with a scheduler of these devices; none of them
/// keeps books on groups: nothing.
fn cgroups(plan: &Plan) -> String {
    let info = |disk: &DiskPlan| disk.queue.scheduler.kind().info();
    let mut info = plan.disks.iter().filter_map(info);
    let Some(attribute) = info.find_map(|info| info.group_weight) else {
        return String::new();
    };
    let line = |group: &SubmitterGroup| {
        let SubmitterGroup { path, weight, .. } = group;
        format!("cgroup /{path} {attribute}=default {weight}\n")
    };
    plan.groups.iter().skip(1).map(line).collect()
}

/// queue.txt: a section for each device.
pub(super) fn queue(plan: &Plan, simulator: &Simulator) -> String {
    let queues = simulator.block_layer().queues.iter();
    let disks = plan.queues().zip(queues);
    disks.map(|(disk, queue)| section(disk, queue)).collect()
}

fn section(disk: &DiskPlan, live: &RequestQueue) -> String {
    let DiskPlan { queue, device, .. } = disk;
    let limits = &queue.limits;
    let kind = queue.scheduler.kind();
    let all = SchedulerKind::of_path(live.single.is_some());
    let others = all.filter(|&other| other != kind);
    let others: Vec<&str> = others.map(SchedulerKind::name).collect();
    let nomerges = match queue.nomerges {
        NoMerges::All => 0,
        NoMerges::Simple => 1,
        NoMerges::Never => 2,
    };
    let cache = if limits.write_cache {
        "write back"
    } else {
        "write through"
    };
    let mut text = format!("== {} size {}\n", device.name, device.sectors);
    let mut put = |name: &str, value: &dyn std::fmt::Display| {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "queue/{name}={value}");
    };
    put("chunk_sectors", &limits.chunk_sectors);
    put(
        "discard_granularity",
        &(u64::from(limits.discard_granularity) * 512),
    );
    put(
        "discard_max_bytes",
        &(u64::from(limits.max_discard_sectors) * 512),
    );
    put("fua", &u8::from(limits.fua));
    put("io_timeout", &(queue.io_timeout.0 / 1_000_000));
    put("logical_block_size", &(device.block_sectors * 512));
    put("max_discard_segments", &limits.max_discard_segments);
    put("max_sectors_kb", &(limits.max_sectors / 2));
    put("max_segments", &limits.max_segments);
    put("nomerges", &nomerges);
    put("nr_requests", &queue.nr_requests);
    put("rotational", &u8::from(device.rotational));
    put("rq_affinity", &queue.rq_affinity);
    put(
        "scheduler",
        &format_args!("[{}] {}", kind.name(), others.join(" ")),
    );
    put("write_cache", &cache);
    for (name, value) in queue.scheduler.shown() {
        put(&format!("iosched/{name}"), &value);
    }
    for (index, hctx) in live.hctxs.iter().enumerate() {
        let cpus: Vec<String> = hctx
            .cpumask
            .iter()
            .map(|CpuId(cpu)| cpu.to_string())
            .collect();
        let _ = writeln!(
            text,
            "mq/{index}: tags={} cpus={}",
            device.queue_depth,
            cpus.join(", ")
        );
    }
    text
}

/// priorities.txt: the priority of each fio thread, and of its io_uring workers, and its group.
pub(super) fn priorities(plan: &Plan) -> String {
    let threads = plan.threads.iter();
    let workers = plan.of_workers();
    let mut text = String::new();
    for (pid, thread) in (FIRST_PID..).zip(threads.chain(workers)) {
        let IoPrio { class, level } = thread.priority;
        let class = match class {
            IoClass::None => 0,
            IoClass::RealTime => 1,
            IoClass::BestEffort => 2,
            IoClass::Idle => 3,
        };
        // Writing into a string cannot fail.
        let _ = write!(text, "{pid} {class} {level}");
        let group = &plan.groups[usize::from(thread.group)].path;
        text.push_str(if group.is_empty() { "\n" } else { " " });
        if !group.is_empty() {
            text.push_str(group);
            text.push('\n');
        }
    }
    text
}

/// An error if `dir` holds files that this run would not replace and that would be read as part of
/// it, or a capture that it would destroy.
pub(super) fn check(dir: &Path, plan: &Plan, written: &Written) -> Result<(), Error> {
    let type_of = |disk: &DiskPlan| std::mem::discriminant(&disk.device.kind);
    let mut types = real(plan).map(type_of);
    let first = types.next();
    let types = types.all(|of| Some(of) == first);
    if !types || written.parameters.is_none() {
        let what = "meta.txt has one line for the module of all devices, but these differ in type \
                    or parameters; trace devices that are alike";
        return Err(Error::input(dir, what));
    }
    if plan.disks.iter().any(|disk| disk.owner.is_some()) {
        let what = "a capture does not record which disks are of one SCSI host; trace hosts of one \
                    disk each (num_tgts = 1, max_luns = 1)";
        return Err(Error::input(dir, what));
    }
    if !plan.changes.is_empty() {
        let what = "queue.txt has one scheduler of each device for all of the run; trace a run \
                    without [[change]]";
        return Err(Error::input(dir, what));
    }
    let refuse = |source| Error::output(dir.display().to_string(), source);
    for entry in std::fs::read_dir(dir).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(what) = objection(&path, &file, plan) else {
            continue;
        };
        let advice = "remove it or name another directory";
        return Err(Error::input(path, format!("{what}; {advice}")));
    }
    Ok(())
}

fn objection(path: &Path, file: &str, plan: &Plan) -> Option<&'static str> {
    const ELSE: &str = "belongs to another capture, and would be read as part of this one";
    let bare = file
        .strip_suffix(".xz")
        .or_else(|| file.strip_suffix(".gz"))
        .unwrap_or(file);
    if ["queue_after.txt", "capture.json"].contains(&bare) {
        return Some(ELSE);
    }
    let probed = plan
        .queues()
        .any(|disk| super::ftrace::probes_of(disk.queue.scheduler.kind()).is_some());
    if bare == "ftrace.txt" && !probed {
        return Some(ELSE);
    }
    if ["meta.txt", "queue.txt", "priorities.txt", "ftrace.txt"].contains(&bare) {
        if bare != file {
            return Some(ELSE);
        }
        // The others are ours if meta.txt is.
        let meta = std::fs::read_to_string(path.with_file_name("meta.txt")).unwrap_or_default();
        let ours = meta.lines().any(|line| line.starts_with(COMMAND));
        return (!ours).then_some("belongs to a capture that this one would destroy");
    }
    let (device, cpu) = trace::blktrace::parse_name(Path::new(bare))?;
    if device.starts_with('.') {
        return None;
    }
    let ours = plan.queues().any(|disk| disk.device.name == device);
    if ours && cpu < u32::from(plan.machine.cpus) && bare == file {
        return path.is_dir().then_some("is a directory");
    }
    if ours && bare == file {
        return Some("is of another run with more CPUs, and would be read as part of this one");
    }
    Some(ELSE)
}
