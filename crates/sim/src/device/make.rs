//! Makes devices from plans: the only place that knows which kind of device a plan has.

use super::ahci::Ahci;
use super::fault::{Faulty, is_wanted};
use super::fc::Fc;
use super::null_blk::NullBlk;
use super::nvme::Nvme;
use super::scsi_debug::ScsiDebug;
use super::{CapturedDevice, Device, DeviceSetup, DriverInfo, MappedDevice};
use super::{ahci, fc, mapped, null_blk, nvme, scsi_debug};
use crate::plan::{DeviceKind, DiskPlan};
use crate::replay::Services;
use blkmq::rules::Rules;

/// The device of a plan, idle, with its faults. Panics if a size in it is zero.
pub fn make(setup: &DeviceSetup<'_>) -> Box<dyn Device> {
    let times = &setup.plan.service_times;
    if !times.is_empty() {
        let services = Services::drawn(times, setup.random("service times"));
        return with_faults(CapturedDevice::new(services, setup), setup);
    }
    match &setup.plan.kind {
        DeviceKind::NullBlk(plan) => with_faults(NullBlk::new(plan, setup), setup),
        DeviceKind::Nvme(plan) => with_faults(Nvme::new(plan, setup), setup),
        DeviceKind::ScsiDebug(plan) => with_faults(ScsiDebug::new(plan, setup), setup),
        DeviceKind::Ahci(plan) => with_faults(Ahci::new(plan, setup), setup),
        DeviceKind::Fc(plan) => with_faults(Fc::new(plan, setup), setup),
        DeviceKind::Mapped(_) => Box::new(MappedDevice::new(setup)),
    }
}

fn with_faults(device: impl Device, setup: &DeviceSetup<'_>) -> Box<dyn Device> {
    match is_wanted(&setup.plan.fault) {
        true => Box::new(Faulty::new(device, setup)),
        false => Box::new(device),
    }
}

impl DriverInfo {
    /// Names, numbers and prices of a driver of these rules and its device.
    pub fn of(kind: &DeviceKind, rules: &Rules) -> DriverInfo {
        match kind {
            DeviceKind::NullBlk(plan) => null_blk::info(plan, rules),
            DeviceKind::Nvme(plan) => nvme::info(plan),
            DeviceKind::ScsiDebug(plan) => scsi_debug::info(plan),
            DeviceKind::Ahci(plan) => ahci::info(plan),
            DeviceKind::Fc(plan) => fc::info(plan),
            DeviceKind::Mapped(plan) => mapped::info(plan, rules),
        }
    }
}

impl DiskPlan {
    pub fn info(&self) -> DriverInfo {
        let mut info = DriverInfo::of(&self.device.kind, &self.queue.rules);
        let multi_queue = self.queue.rules.single_queue.is_none() && !self.maps_bios();
        if self.mapped().is_some() && multi_queue {
            let (hctxs, depth) = (self.capacity.hctxs, self.device.queue_depth);
            info.parameters.extend([
                ("dm_mq_nr_hw_queues", hctxs.to_string()),
                ("dm_mq_queue_depth", depth.to_string()),
            ]);
        }
        info
    }
}
