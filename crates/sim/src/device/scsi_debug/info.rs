//! Names, numbers and prices of scsi_debug below the SCSI mid-layer.

use crate::cost::Step;
use crate::device::info::{Charges, DriverInfo, Ops, SCSI_NUMBERS, switch, unless};
use crate::plan::ScsiDebugPlan;

pub(crate) fn info(plan: &ScsiDebugPlan) -> DriverInfo {
    let mut parameters = vec![("ndelay", plan.delay.0.to_string())];
    switch("random", plan.random, &mut parameters);
    let host = u64::from(plan.host_max_queue);
    unless(0, "host_max_queue", host, &mut parameters);
    parameters.push(("max_queue", plan.max_queue.to_string()));
    let (depth, limit) = (u64::from(plan.lun_depth), u64::from(plan.max_queue));
    unless(limit, "cmd_per_lun", depth, &mut parameters);
    DriverInfo {
        driver: "scsi_debug",
        parameters,
        numbers: SCSI_NUMBERS,
        ops: Ops::PLAIN,
        charges: Charges {
            timer: Some(Step::HrtimerStart),
            poll: Some(Step::ScsiPoll),
            ..Charges::SCSI
        },
    }
}
