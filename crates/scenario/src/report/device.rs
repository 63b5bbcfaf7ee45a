//! The devices in a report: settings, I/O, and depth of their queues.

use blkmq::elevator::Value;
use blkmq::rules::Series;
use blkmq::time::Duration;
use serde::Serialize;

use super::{Direction, Sync, as_map};
use sim::device::{DriverInfo, Parameters};
use sim::plan::{BusyKind, DiskPlan, FaultPlan, Plan, Ratio};
use sim::recorder::{Depth, DiskStats, Recorder};

/// Value of a field in which devices of one report differ.
pub(super) const SEVERAL: &str = "several";

/// The device and its queue. Of several devices: what they have in common, and their depths
/// together.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct DeviceReport {
    /// Name below /dev; of several devices their number.
    pub name: String,
    /// Type; `several` if devices differ.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Hardware queues of all types; 0 of a bio-based device, which has no requests.
    pub hw_queues: u16,
    /// Driver tags of each hardware queue, or of all together with `shared_tags`.
    pub queue_depth: u32,
    /// All hardware queues share one tag map.
    pub shared_tags: bool,
    /// Parameters, by their names in a scenario; empty if devices differ.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(&'static str, String)>,
    /// Requests with the device, mean over the measured time.
    pub depth_mean: f64,
    /// Largest number of requests with the device.
    pub depth_max: u32,
}

/// One of several devices.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct DiskReport {
    /// Its device; depths are its own.
    #[serde(flatten)]
    pub device: DeviceReport,
    /// Number of the tag set; devices with the same number share it.
    pub tag_set: u16,
    /// Scheduler of its queue.
    pub scheduler: &'static str,
    /// Part of the January 2024 series. Left out for `stock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<&'static str>,
    /// queue/nr_requests.
    pub nr_requests: u32,
    /// queue/iosched/, by name; empty without a scheduler.
    #[serde(serialize_with = "as_map")]
    pub iosched: Vec<(&'static str, Value)>,
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

    /// A device that had these depths.
    pub(super) fn of(disk: &DiskPlan, depth: &Depth) -> DeviceReport {
        let device = &disk.device;
        let DriverInfo {
            driver: kind,
            mut parameters,
            ..
        } = disk.info();
        faults(&device.fault, &mut parameters);
        let bios = disk.maps_bios();
        DeviceReport {
            name: device.name.clone(),
            kind,
            hw_queues: if bios { 0 } else { disk.capacity.hctxs },
            queue_depth: if bios { 0 } else { device.queue_depth },
            shared_tags: device.hctx_shared,
            parameters,
            depth_mean: depth.mean_milli() as f64 / 1000.0,
            depth_max: depth.max,
        }
    }
}

impl DiskReport {
    /// One entry per disk if there are several, else none. `span`: the measured time of all jobs.
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
            scheduler: disk.queue.scheduler.kind().name(),
            series: Some(series.name).filter(|_| series != Series::STOCK),
            nr_requests: disk.queue.nr_requests,
            iosched: disk.queue.scheduler.shown(),
            read: Direction::new(read, span, None),
            write: Direction::new(write, span, None),
            trim: Direction::new(trim, span, None),
            sync: Sync::new(sync, None),
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

fn faults(fault: &FaultPlan, list: &mut Parameters) {
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

/// A parameter, unless it is at its default.
fn number(name: &'static str, value: u64, default: u64, list: &mut Parameters) {
    if value != default {
        list.push((name, value.to_string()));
    }
}
