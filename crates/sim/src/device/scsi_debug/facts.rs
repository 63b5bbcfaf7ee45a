//! Facts of scsi_debug below the SCSI mid-layer.

use crate::cost::Step;
use crate::device::facts::{Charges, Facts, Numbers, Ops, switch, unless};
use crate::plan::ScsiDebugPlan;

/// Of scsi_debug. A SCSI disk has sixteen numbers, for its partitions.
pub(crate) fn facts(plan: &ScsiDebugPlan) -> Facts {
    let mut parameters = vec![("ndelay", plan.delay.0.to_string())];
    switch("random", plan.random, &mut parameters);
    let host = u64::from(plan.host_max_queue);
    unless(0, "host_max_queue", host, &mut parameters);
    parameters.push(("max_queue", plan.max_queue.to_string()));
    let (depth, limit) = (u64::from(plan.lun_depth), u64::from(plan.max_queue));
    unless(limit, "cmd_per_lun", depth, &mut parameters);
    Facts {
        driver: "scsi_debug",
        parameters,
        numbers: Numbers {
            major: 8,
            minors: 16,
        },
        ops: Ops {
            queue_rqs: false,
            commit_rqs: false,
            blocking: false,
            vectors: false,
            batches: false,
            redirects: true,
        },
        charges: Charges {
            queue_rq: Step::ScsiQueueRq,
            starts_first: false,
            timer: Some(Step::HrtimerStart),
            last: None,
            commit: None,
            maps_bios: true,
            completion: Some(Step::ScsiCompletion),
            poll: Some(Step::ScsiPoll),
            pair: None,
        },
    }
}
