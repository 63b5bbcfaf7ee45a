//! Names, numbers and prices of null_blk.

use crate::cost::Step;
use crate::device::info::{Charges, DeviceNumbers, DriverInfo, Ops, switch, unless};
use crate::plan::{IrqMode, NullBlkPlan};
use blkmq::rules::Rules;

/// null_blk in a kernel of these rules.
pub(crate) fn info(plan: &NullBlkPlan, rules: &Rules) -> DriverInfo {
    let timer = plan.irqmode == IrqMode::Timer;
    let irqmode = match plan.irqmode {
        IrqMode::None => 0,
        IrqMode::Softirq => 1,
        IrqMode::Timer => 2,
    };
    let mut parameters = vec![("irqmode", irqmode.to_string())];
    if timer {
        parameters.push(("completion_nsec", plan.completion.0.to_string()));
    }
    let jitter = u64::from(plan.jitter_percent);
    unless(0, "jitter_percent", jitter, &mut parameters);
    switch("blocking", plan.blocking, &mut parameters);
    switch("memory_backed", plan.memory_backed, &mut parameters);
    unless(0, "mbps", u64::from(plan.mbps), &mut parameters);
    DriverInfo {
        driver: "null_blk",
        parameters,
        numbers: DeviceNumbers {
            major: 252,
            minors: 1,
        },
        ops: Ops {
            queue_rqs: rules.null_blk_queue_rqs,
            blocking: plan.blocking,
            redirects: false,
            ..Ops::PLAIN
        },
        charges: Charges {
            starts_first: true,
            timer: timer.then_some(Step::HrtimerStart),
            maps_bios: plan.memory_backed,
            poll: Some(Step::NullBlkPoll),
            ..Charges::plain(Step::NullBlkQueueRq)
        },
    }
}
