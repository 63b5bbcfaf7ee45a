//! The device in a report: what it was set up as, and how deep its queue was.

use serde::Serialize;

use super::as_map;
use crate::plan::{
    BusyKind, DeviceKind, FaultPlan, IrqMode, NullBlkPlan, NvmePlan, Plan, Ratio, ScsiDebugPlan,
};
use crate::recorder::Recorder;

/// The device and its queue.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct DeviceReport {
    /// Name below /dev.
    pub name: String,
    /// Model.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Hardware queues of all types.
    pub hw_queues: u16,
    /// Driver tags of each, or of all together if they share one map.
    pub queue_depth: u32,
    /// They share one map.
    pub shared_tags: bool,
    /// Parameters of the model, by the names of a scenario.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(&'static str, String)>,
    /// Requests with the device: mean over the measured time.
    pub depth_mean: f64,
    /// Most at once.
    pub depth_max: u32,
}

impl DeviceReport {
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> DeviceReport {
        let device = &plan.device;
        let (kind, mut parameters) = parameters(&device.kind);
        faults(&device.fault, &mut parameters);
        DeviceReport {
            name: device.name.clone(),
            kind,
            hw_queues: plan.capacity.hctxs,
            queue_depth: device.queue_depth,
            shared_tags: device.hctx_shared,
            parameters,
            depth_mean: recorder.device_depth.mean_milli() as f64 / 1000.0,
            depth_max: recorder.device_depth.max,
        }
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
