//! Names, numbers and prices of a Fibre Channel host below the SCSI mid-layer.

use crate::device::info::{Charges, DriverInfo, Ops, SCSI_NUMBERS, unless};
use crate::plan::FcPlan;

pub(crate) fn info(plan: &FcPlan) -> DriverInfo {
    let latency = plan.latency;
    let reads = latency.read.0;
    let mut parameters = vec![
        ("can_queue", plan.can_queue.to_string()),
        ("cmd_per_lun", plan.lun_depth.to_string()),
        ("latency_ns", reads.to_string()),
    ];
    let list = &mut parameters;
    unless(reads, "write_latency_ns", latency.write.0, list);
    unless(reads, "trim_latency_ns", latency.trim.0, list);
    unless(reads, "flush_latency_ns", latency.flush.0, list);
    unless(0, "jitter_percent", u64::from(plan.jitter_percent), list);
    unless(0, "read_mbps", u64::from(plan.read_mbps), list);
    unless(0, "write_mbps", u64::from(plan.write_mbps), list);
    DriverInfo {
        driver: "fc",
        parameters,
        numbers: SCSI_NUMBERS,
        ops: Ops {
            vectors: true,
            ..Ops::PLAIN
        },
        charges: Charges::SCSI,
    }
}
