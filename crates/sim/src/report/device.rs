//! The devices in a report: what they were set up as, what they did, and how deep their queues
//! were.

use blkmq::rules::Series;
use blkmq::time::Duration;
use serde::Serialize;

use super::{Direction, Sync, as_map, iosched};
use crate::plan::{
    BusyKind, DeviceKind, DiskPlan, FaultPlan, IrqMode, NullBlkPlan, NvmePlan, Plan, Ratio,
    ScsiDebugPlan,
};
use crate::recorder::{Depth, DiskStats, Recorder};

/// What differs between devices of one report.
pub(super) const SEVERAL: &str = "several";

/// The device and its queue. Of several: what they have in common, and their depths together.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct DeviceReport {
    /// Name below /dev; of several how many there are.
    pub name: String,
    /// Model; `several` if they differ.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Hardware queues of all types.
    pub hw_queues: u16,
    /// Driver tags of each, or of all together if they share one map.
    pub queue_depth: u32,
    /// They share one map.
    pub shared_tags: bool,
    /// Parameters of the model, by the names of a scenario; empty if devices differ.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(&'static str, String)>,
    /// Requests with the device: mean over the measured time.
    pub depth_mean: f64,
    /// Most at once.
    pub depth_max: u32,
}

/// One disk of several.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct DiskReport {
    /// Its device; depths are its own.
    #[serde(flatten)]
    pub device: DeviceReport,
    /// Number of its tag set.
    pub tag_set: u8,
    /// Scheduler of its queue.
    pub scheduler: &'static str,
    /// What of the January 2024 series mq-deadline has; left out for `stock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<&'static str>,
    /// queue/nr_requests.
    pub nr_requests: u32,
    /// queue/iosched, by name; empty without a scheduler.
    #[serde(serialize_with = "as_map")]
    pub iosched: Vec<(&'static str, i64)>,
    /// Reads of all jobs.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Trims.
    pub trim: Direction,
    /// fsync(2) and fdatasync(2).
    pub sync: Sync,
}

impl DeviceReport {
    /// The device, or all of them.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> DeviceReport {
        let mut all = plan.disks.iter();
        let disk = all.next().expect("a plan has a disk");
        let mut report = DeviceReport::of(disk, &recorder.device_depth);
        if plan.disks.len() > 1 {
            report.name = format!("{} devices", plan.disks.len());
        }
        for other in all.map(|disk| DeviceReport::of(disk, &recorder.device_depth)) {
            if other.kind != report.kind {
                report.kind = SEVERAL;
            }
            if other.parameters != report.parameters {
                report.parameters.clear();
            }
        }
        report
    }

    fn of(disk: &DiskPlan, depth: &Depth) -> DeviceReport {
        let device = &disk.device;
        let (kind, mut parameters) = parameters(&device.kind);
        faults(&device.fault, &mut parameters);
        DeviceReport {
            name: device.name.clone(),
            kind,
            hw_queues: disk.capacity.hctxs,
            queue_depth: device.queue_depth,
            shared_tags: device.hctx_shared,
            parameters,
            depth_mean: depth.mean_milli() as f64 / 1000.0,
            depth_max: depth.max,
        }
    }
}

impl DiskReport {
    /// One entry a disk if there are several, else none. `span`: the measured time of all jobs.
    pub(super) fn all(plan: &Plan, recorder: &Recorder, span: Duration) -> Vec<DiskReport> {
        let disks = plan.disks.iter().zip(&recorder.disks);
        disks
            .map(|(disk, stats)| DiskReport::new(disk, stats, span))
            .collect()
    }

    fn new(disk: &DiskPlan, stats: &DiskStats, span: Duration) -> DiskReport {
        let [read, write, trim, sync] = &stats.directions;
        let series = disk.queue.rules.series;
        DiskReport {
            device: DeviceReport::of(disk, &stats.depth),
            tag_set: disk.set.0,
            scheduler: disk.queue.scheduler.name(),
            series: Some(series.name).filter(|_| series != Series::STOCK),
            nr_requests: disk.queue.nr_requests,
            iosched: iosched(&disk.queue),
            read: Direction::new(read, span),
            write: Direction::new(write, span),
            trim: Direction::new(trim, span),
            sync: Sync::new(sync),
        }
    }

    /// Reads, writes and trims with their names.
    pub fn directions(&self) -> [(&'static str, &Direction); 3] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("trim", &self.trim),
        ]
    }
}

/// Pairs of name and value.
type List = Vec<(&'static str, String)>;

/// Name of the model, and those of its parameters that decide how fast it is.
fn parameters(kind: &DeviceKind) -> (&'static str, List) {
    match kind {
        DeviceKind::NullBlk(plan) => ("null_blk", null_blk(*plan)),
        DeviceKind::Nvme(plan) => ("nvme", nvme(*plan)),
        DeviceKind::ScsiDebug(plan) => ("scsi_debug", scsi_debug(*plan)),
    }
}

fn null_blk(plan: NullBlkPlan) -> List {
    let irqmode = match plan.irqmode {
        IrqMode::None => 0,
        IrqMode::Softirq => 1,
        IrqMode::Timer => 2,
    };
    let mut list = vec![("irqmode", irqmode.to_string())];
    if plan.irqmode == IrqMode::Timer {
        list.push(("completion_nsec", plan.completion.0.to_string()));
    }
    switch("blocking", plan.blocking, &mut list);
    switch("memory_backed", plan.memory_backed, &mut list);
    number("mbps", u64::from(plan.mbps), 0, &mut list);
    list
}

fn nvme(plan: NvmePlan) -> List {
    let latency = plan.latency;
    let mut list = vec![("latency_ns", latency.read.0.to_string())];
    number(
        "write_latency_ns",
        latency.write.0,
        latency.read.0,
        &mut list,
    );
    number("trim_latency_ns", latency.trim.0, latency.read.0, &mut list);
    number(
        "flush_latency_ns",
        latency.flush.0,
        latency.read.0,
        &mut list,
    );
    number(
        "jitter_percent",
        u64::from(plan.jitter_percent),
        0,
        &mut list,
    );
    list.push(("channels", plan.channels.to_string()));
    number("iops_max", u64::from(plan.iops_max), 0, &mut list);
    number("mbps", u64::from(plan.mbps), 0, &mut list);
    number(
        "coalesce_threshold",
        u64::from(plan.coalesce_count),
        1,
        &mut list,
    );
    number(
        "coalesce_time",
        plan.coalesce_time.0 / 100_000,
        0,
        &mut list,
    );
    number("irq_delay_ns", plan.irq_delay.0, 0, &mut list);
    switch("volatile_cache", plan.volatile_cache, &mut list);
    list
}

fn scsi_debug(plan: ScsiDebugPlan) -> List {
    let mut list = vec![("ndelay", plan.delay.0.to_string())];
    switch("random", plan.random, &mut list);
    number(
        "host_max_queue",
        u64::from(plan.host_max_queue),
        0,
        &mut list,
    );
    list.push(("max_queue", plan.lun_depth.to_string()));
    list
}

fn faults(fault: &FaultPlan, list: &mut List) {
    let chances = [
        ("fault.busy", fault.busy),
        ("fault.requeue", fault.requeue),
        ("fault.error", fault.error),
        ("fault.timeout", fault.timeout),
        ("fault.lost_completion", fault.lost_completion),
    ];
    for (
        name,
        Ratio {
            numerator,
            denominator,
        },
    ) in chances
    {
        if numerator > 0 {
            list.push((name, format!("{numerator}/{denominator}")));
        }
    }
    if fault.busy.numerator > 0 {
        let status = match fault.busy_kind {
            BusyKind::Resource => "resource",
            BusyKind::DevResource => "dev_resource",
        };
        list.push(("fault.busy_status", status.to_owned()));
    }
    number("fault.after_commands", fault.after_commands, 0, list);
}

fn switch(name: &'static str, on: bool, list: &mut List) {
    if on {
        list.push((name, "1".to_owned()));
    }
}

/// A parameter, unless it is at its default.
fn number(name: &'static str, value: u64, default: u64, list: &mut List) {
    if value != default {
        list.push((name, value.to_string()));
    }
}
