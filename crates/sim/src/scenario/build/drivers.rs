//! The device of a plan, as its driver sets it up.

use blkmq::rules::Rules;
use trace::fio::FioJob;

use super::{Driver, Result, Scenario};
use crate::plan::{BusyKind, FaultPlan, MachinePlan, Ratio};
use crate::scenario::device::Chance;

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
    machine: &'a MachinePlan,
    rules: &'a Rules,
    fault: FaultPlan,
    name: String,
}

impl Setup<'_> {
    fn error<T>(&self, parameter: &str, what: impl Into<String>) -> Result<T> {
        Err(self.scenario.error(&format!("device.{parameter}"), what))
    }

    /// A parameter within bounds.
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
const COMMON: &[&str] = &["type", "poll_queues", "rotational", "fault"];

pub(super) fn driver(
    scenario: &Scenario,
    jobs: &[FioJob],
    machine: &MachinePlan,
    rules: &Rules,
    ignored: &mut Vec<String>,
) -> Result<Driver> {
    let (kind, name) = kind_and_name(scenario, jobs, ignored)?;
    let parameters = match kind.as_str() {
        "null_blk" => null_blk::PARAMETERS,
        "nvme" => nvme::PARAMETERS,
        "scsi_debug" => scsi_debug::PARAMETERS,
        _ => {
            let known = ["null_blk", "nvme", "scsi_debug"];
            let what = match trace::fio::nearest(&kind, known) {
                Some(near) => format!("no device `{kind}`; did you mean `{near}`?"),
                None => format!("no device `{kind}`; there are {}", known.join(", ")),
            };
            return Err(scenario.error("device.type", what));
        }
    };
    if let Some(written) = scenario
        .source
        .table
        .get("device")
        .and_then(toml::Value::as_table)
    {
        for parameter in written.keys() {
            if !COMMON.contains(&parameter.as_str()) && !parameters.contains(&parameter.as_str()) {
                let what = format!(
                    "{kind} has no such parameter; it has {}",
                    parameters.join(", ")
                );
                return Err(scenario.error(&format!("device.{parameter}"), what));
            }
        }
    }
    let setup = Setup {
        scenario,
        machine,
        rules,
        fault: fault(scenario)?,
        name,
    };
    let mut driver = match kind.as_str() {
        "null_blk" => null_blk::set_up(&setup)?,
        "nvme" => nvme::set_up(&setup)?,
        _ => scsi_debug::set_up(&setup)?,
    };
    driver.plan.rotational = scenario.device.rotational.is_some_and(|switch| switch.0);
    Ok(driver)
}

/// Type of the device and its name below /dev. Written, or told by fio's filename.
fn kind_and_name(
    scenario: &Scenario,
    jobs: &[FioJob],
    ignored: &mut Vec<String>,
) -> Result<(String, String)> {
    let mut named: Option<(&str, String)> = None;
    for (i, job) in jobs.iter().enumerate() {
        for name in &job.filenames {
            let field = format!("job.{i}.filename");
            match &named {
                Some((first, _)) if first != name => {
                    let what = format!("{name} and {first}: one device only is modelled");
                    return Err(scenario.error(&field, what));
                }
                Some(_) => {}
                None => named = Some((name, field)),
            }
        }
    }
    let of_name = |name: &str| {
        let bare = name.strip_prefix("/dev/")?;
        // It becomes the name of files and a word of texts.
        if !bare.chars().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        ["nullb", "nvme", "sd"]
            .into_iter()
            .zip(["null_blk", "nvme", "scsi_debug"])
            .find(|(prefix, _)| bare.starts_with(prefix))
            .map(|(_, kind)| (kind.to_string(), bare.to_string()))
    };
    let told = named.as_ref().and_then(|(name, _)| of_name(name));
    match (&scenario.device.kind, told, named) {
        (None, Some((kind, name)), _) => Ok((kind, name)),
        (None, None, Some((name, field))) => {
            let what = format!(
                "{name} is no device that is modelled; use /dev/nullb0, /dev/nvme0n1 or /dev/sda, \
                 or tell the device (--device null_blk, or [device] type)"
            );
            Err(scenario.error(&field, what))
        }
        (None, None, None) => {
            let what = "no device is told: give --device null_blk (or nvme, scsi_debug), [device] \
                        type, or fio's filename=/dev/nullb0";
            Err(scenario.error("device", what))
        }
        (Some(kind), Some((told, name)), _) if *kind == told => Ok((told, name)),
        (Some(kind), _, named) => {
            if let Some((name, field)) = named {
                let place = scenario.source.place(&field);
                ignored.push(format!(
                    "{place}: filename: {name} stands for the {kind} told"
                ));
            }
            let name = match kind.as_str() {
                "null_blk" => "nullb0",
                "nvme" => "nvme0n1",
                _ => "sda",
            };
            Ok((kind.clone(), name.to_string()))
        }
    }
}

fn fault(scenario: &Scenario) -> Result<FaultPlan> {
    let written = &scenario.device.fault;
    let ratio = |chance: Option<Chance>| {
        chance.map_or(Ratio::NEVER, |c| Ratio {
            numerator: c.numerator,
            denominator: c.denominator,
        })
    };
    let refusals = [
        ("device.fault.busy", written.busy, "is always busy"),
        ("device.fault.requeue", written.requeue, "gives all back"),
    ];
    for (field, chance, how) in refusals {
        if chance.is_some_and(|c| c.numerator == c.denominator) {
            let what = format!("a device that {how} never takes a command; use less than 1");
            return Err(scenario.error(field, what));
        }
    }
    let busy_kind = match written.busy_status.as_deref() {
        None | Some("resource") => BusyKind::Resource,
        Some("dev_resource") => BusyKind::DevResource,
        Some(other) => {
            let what = format!("`{other}` is neither resource nor dev_resource");
            return Err(scenario.error("device.fault.busy_status", what));
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
    })
}
