//! The device of a plan, as its driver sets it up.

use std::ops::Range;

use blkmq::queue::ACCESS_RANGES_MAX;
use blkmq::rules::Rules;

use super::disks::{Disk, Kind};
use super::{Driver, Result, Scenario};
use crate::Device;
use crate::device::Chance;
use sim::plan::{BusyKind, FaultPlan, MachinePlan, Ratio};

mod ahci;
mod fc;
mod null_blk;
mod nvme;
mod scsi_debug;

/// Largest max_sectors that the core gives by itself, sectors (BLK_DEF_MAX_SECTORS).
const DEFAULT_CAP: u32 = 2560;
/// max_hw_sectors of a driver that tells none, sectors (BLK_SAFE_MAX_SECTORS).
const SAFE_MAX: u32 = 255;

/// What a driver's set-up sees.
struct Setup<'a> {
    scenario: &'a Scenario,
    device: &'a Device,
    /// Name of the device's table: `device`, `device.1`.
    field: &'a str,
    machine: &'a MachinePlan,
    rules: &'a Rules,
    fault: FaultPlan,
    name: String,
}

impl Setup<'_> {
    fn error<T>(&self, parameter: &str, what: impl Into<String>) -> Result<T> {
        Err(self
            .scenario
            .error(&format!("{}.{parameter}", self.field), what))
    }

    fn within(&self, parameter: &str, value: u64, least: u64, most: u64) -> Result<()> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        self.error(parameter, format!("{value} is not {least} to {most}"))
    }

    /// A logical block size, bytes, to sectors.
    fn block_sectors(&self, parameter: &str, bytes: u32) -> Result<u32> {
        if bytes.is_power_of_two() && (512..=4096).contains(&bytes) {
            return Ok(bytes / 512);
        }
        self.error(
            parameter,
            format!("{bytes} is none of 512, 1024, 2048, 4096"),
        )
    }
}

/// Parameters of every type.
const COMMON: &[&str] = &[
    "type",
    "name",
    "drive",
    "queue",
    "poll_queues",
    "rotational",
    "rotational_when_chosen",
    "actuators",
    "fault",
];

/// Sets up the driver of one disk.
pub(super) fn driver(
    scenario: &Scenario,
    disk: &Disk<'_>,
    machine: &MachinePlan,
    rules: &Rules,
) -> Result<Driver> {
    let parameters = match disk.kind {
        Kind::NullBlk => null_blk::PARAMETERS,
        Kind::Nvme => nvme::PARAMETERS,
        Kind::ScsiDebug => scsi_debug::PARAMETERS,
        Kind::Ahci => ahci::PARAMETERS,
        Kind::Fc => fc::PARAMETERS,
        Kind::Mapped => unreachable!("its driver is that of mapped.rs"),
    };
    for parameter in scenario.source.keys(&disk.field) {
        if !COMMON.contains(&parameter.as_str()) && !parameters.contains(&parameter.as_str()) {
            let what = format!(
                "{} has no such parameter; it has {}",
                disk.kind.name(),
                parameters.join(", ")
            );
            return Err(scenario.error(&format!("{}.{parameter}", disk.field), what));
        }
    }
    let setup = Setup {
        scenario,
        device: disk.device,
        field: &disk.field,
        machine,
        rules,
        fault: fault(scenario, disk)?,
        name: disk.name.clone(),
    };
    let mut driver = match disk.kind {
        Kind::NullBlk => null_blk::set_up(&setup)?,
        Kind::Nvme => nvme::set_up(&setup)?,
        Kind::ScsiDebug => scsi_debug::set_up(&setup)?,
        Kind::Ahci => ahci::set_up(&setup)?,
        Kind::Fc => fc::set_up(&setup)?,
        Kind::Mapped => unreachable!("its driver is that of mapped.rs"),
    };
    let device = disk.device;
    let spins = driver.plan.rotational;
    let rotational = device.rotational.map_or(spins, |switch| switch.0);
    let chosen = device.rotational_when_chosen.map(|switch| switch.0);
    driver.plan.rotational = rotational;
    driver.plan.rotational_when_chosen = chosen.unwrap_or(rotational);
    driver.plan.access_ranges = access_ranges(scenario, disk, driver.plan.sectors)?;
    Ok(driver)
}

/// Sectors of each arm: as many as the others, the last one has the rest.
fn access_ranges(scenario: &Scenario, disk: &Disk<'_>, sectors: u64) -> Result<Vec<Range<u64>>> {
    let arms = match disk.device.actuators {
        None | Some(1) => return Ok(Vec::new()),
        Some(arms) if arms > 0 && usize::from(arms) <= ACCESS_RANGES_MAX => u64::from(arms),
        Some(arms) => {
            let what =
                format!("a drive has no {arms} actuators; expected 1 to {ACCESS_RANGES_MAX}");
            return Err(scenario.error(&format!("{}.actuators", disk.field), what));
        }
    };
    let each = sectors / arms;
    let end = |arm| {
        if arm + 1 == arms {
            sectors
        } else {
            (arm + 1) * each
        }
    };
    Ok((0..arms).map(|arm| arm * each..end(arm)).collect())
}

fn fault(scenario: &Scenario, disk: &Disk<'_>) -> Result<FaultPlan> {
    let written = &disk.device.fault;
    let field = |name: &str| format!("{}.fault.{name}", disk.field);
    let ratio = |chance: Option<Chance>| {
        chance.map_or(Ratio::NEVER, |c| Ratio {
            numerator: c.numerator,
            denominator: c.denominator,
        })
    };
    let refusals = [
        ("busy", written.busy, "is always busy"),
        ("requeue", written.requeue, "gives all back"),
    ];
    for (name, chance, how) in refusals {
        if chance.is_some_and(|c| c.numerator == c.denominator) {
            let what = format!("a device that {how} never takes a command; use less than 1");
            return Err(scenario.error(&field(name), what));
        }
    }
    let busy_kind = match written.busy_status.as_deref() {
        None | Some("resource") => BusyKind::Resource,
        Some("dev_resource") => BusyKind::DevResource,
        Some(other) => {
            let what = format!("`{other}` is neither resource nor dev_resource");
            return Err(scenario.error(&field("busy_status"), what));
        }
    };
    Ok(FaultPlan {
        busy: ratio(written.busy),
        busy_kind,
        requeue: ratio(written.requeue),
        error: ratio(written.error),
        timeout: ratio(written.timeout),
        lost_completion: ratio(written.lost_completion),
        after_commands: written.after_commands.unwrap_or(0),
        outages: false,
    })
}
