//! Names, numbers and prices of an NVMe drive and its driver.

use crate::cost::Step;
use crate::device::info::{Charges, DeviceNumbers, DriverInfo, Ops, Pair, switch, unless};
use crate::plan::{Jitter, NvmePlan};

pub(crate) fn info(plan: &NvmePlan) -> DriverInfo {
    let latency = plan.latency;
    let reads = latency.read.0;
    let mut parameters = vec![("latency_ns", reads.to_string())];
    let list = &mut parameters;
    unless(reads, "write_latency_ns", latency.write.0, list);
    unless(reads, "trim_latency_ns", latency.trim.0, list);
    unless(reads, "flush_latency_ns", latency.flush.0, list);
    match plan.jitter {
        Jitter::Percent(percent) => unless(0, "jitter_percent", u64::from(percent), list),
        Jitter::Flash => switch("jitter", true, list),
    }
    list.push(("channels", plan.channels.to_string()));
    unless(0, "dies", u64::from(plan.dies), list);
    unless(0, "die_ns", plan.die_time.0, list);
    unless(0, "iops_max", u64::from(plan.iops_max), list);
    unless(0, "mbps", u64::from(plan.mbps), list);
    unless(
        1,
        "coalesce_threshold",
        u64::from(plan.coalesce_count),
        list,
    );
    unless(0, "coalesce_time", plan.coalesce_time.0 / 100_000, list);
    unless(0, "irq_delay_ns", plan.irq_delay.0, list);
    switch("volatile_cache", plan.volatile_cache, list);
    DriverInfo {
        driver: "nvme",
        parameters,
        numbers: DeviceNumbers {
            major: 259,
            minors: 1,
        },
        ops: Ops {
            queue_rqs: true,
            commit_rqs: true,
            vectors: true,
            batches: true,
            ..Ops::PLAIN
        },
        charges: Charges {
            last: Some(Step::NvmeDoorbell),
            commit: Some(Step::NvmeDoorbell),
            maps_bios: true,
            completion: Some(Step::NvmeCompletion),
            poll: Some(Step::NvmePoll),
            pair: Some(Pair {
                submission: Step::NvmeQueueRq,
                completion: Step::NvmeCompletion,
            }),
            ..Charges::plain(Step::NvmeQueueRq)
        },
    }
}
