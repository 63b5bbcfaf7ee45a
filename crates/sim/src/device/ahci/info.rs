//! Names, numbers and prices of a rotational disk below libata and the SCSI mid-layer.

use crate::device::info::{Charges, DriverInfo, Ops, SCSI_NUMBERS, unless};
use crate::plan::{AhciPlan, NcqOrder};

/// A disk of AHCI. The driver's work costs as much as the SCSI mid-layer's: libata's own part is
/// not measured separately.
pub(crate) fn info(plan: &AhciPlan) -> DriverInfo {
    let mut parameters = vec![
        ("rpm", plan.rpm.to_string()),
        ("outer_mb_s", (plan.outer_bytes / 1_000_000).to_string()),
        ("inner_mb_s", (plan.inner_bytes / 1_000_000).to_string()),
    ];
    unless(31, "queue_depth", plan.queue_depth.into(), &mut parameters);
    if plan.order == NcqOrder::Arrival {
        parameters.push(("ncq_order", plan.order.name().to_owned()));
    }
    DriverInfo {
        driver: "ahci",
        parameters,
        numbers: SCSI_NUMBERS,
        ops: Ops::PLAIN,
        charges: Charges::SCSI,
    }
}
