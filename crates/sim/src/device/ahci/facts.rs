//! Facts of a rotational disk behind libata and the SCSI mid-layer.

use crate::cost::Step;
use crate::device::facts::{Charges, Facts, Numbers, Ops, unless};
use crate::plan::{AhciPlan, NcqOrder};

/// Of a disk of AHCI. The driver's work costs what the SCSI mid-layer's does: libata's own part is
/// not told apart.
pub(crate) fn facts(plan: &AhciPlan) -> Facts {
    let mut parameters = vec![
        ("rpm", plan.rpm.to_string()),
        ("outer_mb_s", (plan.outer_bytes / 1_000_000).to_string()),
        ("inner_mb_s", (plan.inner_bytes / 1_000_000).to_string()),
    ];
    unless(31, "queue_depth", plan.queue_depth.into(), &mut parameters);
    if plan.order == NcqOrder::Arrival {
        parameters.push(("ncq_order", plan.order.name().to_owned()));
    }
    Facts {
        driver: "ahci",
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
            timer: None,
            last: None,
            commit: None,
            maps_bios: true,
            completion: Some(Step::ScsiCompletion),
            poll: None,
            pair: None,
        },
    }
}
