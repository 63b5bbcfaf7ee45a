//! The device of a plan, as its driver sets it up.

use std::ops::Range;

use blkmq::queue::ACCESS_RANGES_MAX;
use blkmq::rules::Rules;
use blkmq::time::Duration;

use super::disks::{Disk, Kind};
use super::{Driver, Result, Scenario};
use crate::Device;
use crate::device::Chance;
use crate::parameter::{Parameter, Usual};
use sim::plan::{BusyKind, FaultPlan, MachinePlan, Ratio, ServiceTime};

mod ahci;
mod fc;
mod null_blk;
mod nvme;
mod scsi_debug;

/// max_hw_sectors of a driver that sets none, sectors (BLK_SAFE_MAX_SECTORS).
const SAFE_MAX: u32 = 255;

/// The longest service time.
pub(crate) const SERVICE_MAX: Duration = Duration::from_secs(60);

struct Setup<'a> {
    scenario: &'a Scenario,
    kind: Kind,
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

    /// A number or a switch: the written value, or the default.
    fn get(&self, parameter: &str) -> u64 {
        value(self.kind, self.device, parameter)
    }

    /// The same for numbers that fit.
    fn count(&self, parameter: &str) -> u32 {
        self.get(parameter) as u32
    }

    /// A switch that is on.
    fn on(&self, parameter: &str) -> bool {
        self.get(parameter) > 0
    }
}

/// Fields of every type's table; `poll_queues` is refused by types without them.
const COMMON: &[&str] = &[
    "type",
    "name",
    "drive",
    "queue",
    "poll_queues",
    "rotational",
    "rotational_when_chosen",
    "actuators",
    "service_times",
    "fault",
];

/// Types of devices with their parameters.
pub fn device_types() -> impl Iterator<Item = (&'static str, &'static [Parameter])> {
    let types = Kind::ALL.into_iter();
    types.map(|kind| (kind.name(), parameters(kind)))
}

fn parameters(kind: Kind) -> &'static [Parameter] {
    match kind {
        Kind::NullBlk => null_blk::PARAMETERS,
        Kind::Nvme => nvme::PARAMETERS,
        Kind::ScsiDebug => scsi_debug::PARAMETERS,
        Kind::Ahci => ahci::PARAMETERS,
        Kind::Fc => fc::PARAMETERS,
        Kind::Mapped => &[],
    }
}

/// The value of a number or a switch: the written one, or the default.
pub(super) fn value(kind: Kind, device: &Device, name: &str) -> u64 {
    let parameter = parameters(kind).iter().find(|known| known.name == name);
    match parameter.map(|known| known.default) {
        Some(Usual::Is(usual)) => device.number(name).unwrap_or(usual),
        _ => unreachable!("{name} is declared with a default"),
    }
}

/// Sets up the driver of one disk.
pub(super) fn driver(
    scenario: &Scenario,
    disk: &Disk<'_>,
    machine: &MachinePlan,
    rules: &Rules,
) -> Result<Driver> {
    let known = parameters(disk.kind);
    for name in scenario.source.keys(&disk.field) {
        let wrong = match known.iter().find(|parameter| parameter.name == name) {
            Some(parameter) => match disk.device.parameters.get(name) {
                Some(written) => parameter.takes(written),
                None => Ok(()),
            },
            None if COMMON.contains(&name.as_str()) => Ok(()),
            None => {
                let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
                let kind = disk.kind.name();
                let names = names.join(", ");
                Err(format!("{kind} has no such parameter; it has {names}"))
            }
        };
        wrong.map_err(|what| scenario.error(&format!("{}.{name}", disk.field), what))?;
    }
    let setup = Setup {
        scenario,
        kind: disk.kind,
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
    driver.plan.service_times = service_times(&setup, driver.plan.poll_queues)?;
    driver.plan.access_ranges = access_ranges(scenario, disk, driver.plan.sectors)?;
    Ok(driver)
}

/// Service times as written, which end with an interrupt.
fn service_times(setup: &Setup<'_>, poll_queues: u16) -> Result<Vec<ServiceTime>> {
    let times = &setup.device.service_times;
    if !times.is_empty() && poll_queues > 0 {
        let what = "a device with service_times ends requests by interrupts; expected 0";
        return setup.error("poll_queues", what);
    }
    for time in times {
        setup.within("service_times", time.ns, 1, SERVICE_MAX.0)?;
    }
    Ok(times.clone())
}

/// Sectors of each arm: equal parts, the last one with the remainder.
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
